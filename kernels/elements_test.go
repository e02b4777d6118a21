package kernels

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// decode is the elements of a page one by one, from the description of the format.
func decode(page []byte) []Held {
	elements := make([]Held, len(page)/GroupBytes*GroupElements)
	for i := range elements {
		elements[i] = element(page, i)
	}
	return elements
}

func encode(elements []Held) []byte {
	page := make([]byte, len(elements)/GroupElements*GroupBytes)
	for i, e := range elements {
		setElement(page, i, e)
	}
	return page
}

func TestElementsStandAsTheFormatSays(t *testing.T) {
	page := encode([]Held{{0x01020304, 10}, {0x11121314, 11}, {0x21222324, 12}, {0x31323334, 13}, {}, {}, {0x41424344, 14}, {}})
	little := []byte{
		10, 11, 12, 13, 4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21, 0x34, 0x33, 0x32, 0x31,
		0, 0, 14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x44, 0x43, 0x42, 0x41, 0, 0, 0, 0,
	}
	want := slices.Clone(little)
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		for word := range slices.Chunk(want, 4) {
			slices.Reverse(word)
		}
	}
	if !bytes.Equal(page, want) {
		t.Errorf("page is %v, want %v", page, want)
	}
}

func randomPage(r *rand.Rand, groups int) []byte {
	page := make([]byte, groups*GroupBytes)
	for i := range page {
		page[i] = byte(r.Uint32())
	}
	return page
}

func checkCopyElements(t *testing.T, dst []byte, di int, src []byte, si, n int) {
	t.Helper()
	want := decode(dst)
	copy(want[di:], decode(src)[si:][:n])
	in, got := slices.Clone(src), slices.Clone(dst)
	CopyElements(got, di, in, si, n)
	if i := differ(decode(got), want); i >= 0 {
		t.Fatalf("%d elements from %d to %d: element %d is %v, want %v", n, si, di, i, element(got, i), want[i])
	}
	if !bytes.Equal(in, src) {
		t.Fatalf("%d elements from %d to %d: src has changed", n, si, di)
	}
}

func TestCopyElements(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		src, dst := randomPage(r, 7), randomPage(r, 6)
		for si := range len(src) / 5 {
			for di := range len(dst) / 5 {
				for n := range min(len(src)/5-si, len(dst)/5-di) + 1 {
					checkCopyElements(t, dst, di, src, si, n)
				}
			}
		}
		// Runs to the very ends of pages, whatever their alignment in memory.
		for n := range 400 {
			src, dst := randomPage(r, 101)[n%20*20:], randomPage(r, 102)[n%3*20:]
			slots := min(len(src), len(dst)) / 5
			n := min(n, slots)
			checkCopyElements(t, dst, slots-n, src, len(src)/5-n, n)
			checkCopyElements(t, dst, len(dst)/5-n, src, slots-n, n)
			checkCopyElements(t, dst, 0, src, min(n%4, slots-n), n)
		}
	})
}

func TestCopyElementsLeavesTheRestOfAPage(t *testing.T) {
	src, dst := bytes.Repeat([]byte{1}, 8192), bytes.Repeat([]byte{2}, 8192)
	for shift := range 4 {
		CopyElements(dst, 0, src, shift, 1636-shift)
		if rest := dst[8180:]; !bytes.Equal(rest, bytes.Repeat([]byte{2}, 12)) {
			t.Errorf("shift %d: the 12 bytes after the last group are %v", shift, rest)
		}
	}
}

func obviousSelect(held Held, elements []Held, limit uint8) (Held, bool) {
	for _, e := range elements {
		if e.Tag > limit {
			if held.Tag > limit {
				return held, false
			}
			held = e
		} else if held.Value == 0 {
			held = e
		}
	}
	return held, true
}

func checkSelectTagged(t *testing.T, held Held, page []byte, si, n int, limit uint8) {
	t.Helper()
	got, ok := SelectTagged(held, page, si, n, limit)
	elements := decode(page)[si:][:n]
	want, wantOK := obviousSelect(held, elements, limit)
	if got != want || ok != wantOK {
		t.Fatalf("%v then %v, limit %d: %v, %t, want %v, %t", held, elements, limit, got, ok, want, wantOK)
	}
}

func TestSelectTagged(t *testing.T) {
	const limit = 3
	for _, c := range []struct {
		name     string
		held     Held
		elements []Held
		want     Held
		ok       bool
	}{
		{"none", Held{5, 1}, nil, Held{5, 1}, true},
		{"the first below the limit", Held{}, []Held{{7, 1}, {8, 3}}, Held{7, 1}, true},
		{"one above the limit, first", Held{}, []Held{{7, 4}, {8, 3}}, Held{7, 4}, true},
		{"one above the limit, last", Held{}, []Held{{7, 1}, {8, 3}, {9, 255}}, Held{9, 255}, true},
		{"two above the limit", Held{}, []Held{{7, 4}, {8, 0}, {9, 5}, {1, 0}}, Held{7, 4}, false},
		{"held above the limit already", Held{1, 4}, []Held{{7, 4}}, Held{1, 4}, false},
		{"a value of 0 is replaced", Held{}, []Held{{0, 1}, {8, 2}}, Held{8, 2}, true},
		{"a value of 0 above the limit is replaced by one below", Held{}, []Held{{0, 5}, {8, 2}}, Held{8, 2}, true},
		{"a value of 0 above the limit fails at the next above", Held{}, []Held{{0, 5}, {8, 5}}, Held{0, 5}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for si := range 4 {
				slots := append(make([]Held, si), c.elements...)
				page := encode(append(slots, make([]Held, 8-len(slots))...))
				if got, ok := SelectTagged(c.held, page, si, len(c.elements), limit); got != c.want || ok != c.ok {
					t.Errorf("from slot %d: %v, %t, want %v, %t", si, got, ok, c.want, c.ok)
				}
			}
		})
	}
}

func TestSelectTaggedEqualsTheObviousFold(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 2000 {
		elements := make([]Held, 24)
		for i := range elements {
			elements[i] = Held{uint32(r.IntN(3)), uint8(r.IntN(7))}
			if r.IntN(4) > 0 {
				elements[i].Tag %= 4
			}
		}
		si := r.IntN(len(elements))
		checkSelectTagged(t, elements[r.IntN(24)], encode(elements), si, r.IntN(len(elements)-si+1), uint8(3+r.IntN(3)))
	}
}

// pageOf makes of data a page of at least two groups, and of at and n a run of slots in it.
func pageOf(data []byte, at, n uint16) (page []byte, slot, count int) {
	groups := max(2, len(data)/GroupBytes)
	page = make([]byte, groups*GroupBytes)
	copy(page, data)
	slot = int(at) % (groups * GroupElements)
	return page, slot, int(n) % (groups*GroupElements - slot + 1)
}

func FuzzCopyElements(f *testing.F) {
	f.Add(bytes.Repeat([]byte{1, 2, 3}, 40), uint16(1), uint16(3), uint16(16))
	f.Fuzz(func(t *testing.T, data []byte, di, si, n uint16) {
		src, slot, count := pageOf(data, si, n)
		dst := bytes.Repeat([]byte{0xA5}, len(src)+GroupBytes)
		to := int(di) % (len(dst)/5 - count + 1)
		for l := range best() + 1 {
			useLevel(t, l)
			checkCopyElements(t, dst, to, src, slot, count)
		}
	})
}

func FuzzSelectTagged(f *testing.F) {
	f.Add(bytes.Repeat([]byte{1, 2, 3, 4, 5}, 24), uint16(1), uint16(9), uint32(0), uint8(0), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, si, n uint16, value uint32, tag, limit uint8) {
		page, slot, count := pageOf(data, si, n)
		for l := range best() + 1 {
			useLevel(t, l)
			checkSelectTagged(t, Held{value, tag}, page, slot, count, limit)
		}
	})
}
