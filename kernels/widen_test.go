package kernels

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

func obviousWiden(dst []uint64, src []uint32, first uint32, add uint64) {
	for i, entry := range src {
		switch {
		case entry == 0:
			dst[i] = 0
		case entry >= first:
			dst[i] = uint64(entry)
		default:
			dst[i] = uint64(entry) + add
		}
	}
}

// checkWiden compares Widen with the obvious form, at one place of src and dst in their arrays.
func checkWiden(t *testing.T, src []uint32, so, do int, first uint32, add uint64) {
	t.Helper()
	in := append(make([]uint32, so, so+len(src)), src...)[so:]
	got := canaries(do + len(src) + 32)
	want := slices.Clone(got)
	Widen(got[do:][:len(src)], in, first, add)
	obviousWiden(want[do:], src, first, add)
	if i := differ(got, want); i >= 0 {
		t.Fatalf("%d entries at %d to %d, first %#x, add %#x: entry %d is %#x, want %#x", len(src), so, do, first, add, i-do, got[i], want[i])
	}
}

// canaries is n entries that no kernel is told to write.
func canaries(n int) []uint64 {
	c := make([]uint64, n)
	for i := range c {
		c[i] = 0xC0FFEE0000000000 + uint64(i)
	}
	return c
}

// differ is the first index at which a and b, of one length, differ, or -1.
func differ[E comparable](a, b []E) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// edgeEntries is n entries around the values at which kernels decide.
func edgeEntries(r *rand.Rand, n int, first uint32) []uint32 {
	edges := []uint32{0, 0, 1, 2, first - 1, first, first + 1, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 2, 1<<32 - 1}
	src := make([]uint32, n)
	for i := range src {
		switch r.IntN(4) {
		case 0:
			src[i] = r.Uint32()
		case 1:
			src[i] = src[max(i, 1)-1] + uint32(r.IntN(3))
		default:
			src[i] = edges[r.IntN(len(edges))]
		}
	}
	return src
}

var (
	edgeFirsts = []uint32{0, 1, 2, 1000, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 2, 1<<32 - 1}
	edgeAdds   = []uint64{0, 1, 1<<32 - 1, 1 << 32, 1<<64 - 1}
)

func TestWiden(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for n := range 700 {
			checkWiden(t, edgeEntries(r, n, 1<<31), n%16, n%8, 1<<31, 1<<32)
		}
		for n := range 50 {
			for so := range 16 {
				for do := range 8 {
					checkWiden(t, edgeEntries(r, n, 1000), so, do, 1000, 1<<32-1)
				}
			}
		}
		for _, first := range edgeFirsts {
			for _, add := range edgeAdds {
				checkWiden(t, edgeEntries(r, 2048, first), 0, 0, first, add)
			}
		}
	})
}

func TestWidenStopsAtTheShorterSlice(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		for _, n := range []int{0, 1, 15, 16, 17, 40} {
			src, dst := make([]uint32, 40), canaries(60)
			Widen(dst, src[:n], 1, 1)
			if got := slices.Index(dst, canaries(n + 1)[n]); got != n {
				t.Errorf("%d entries into 60: %d written", n, got)
			}
			dst = canaries(60)
			Widen(dst[:n], src, 1, 1)
			if got := slices.Index(dst, canaries(n + 1)[n]); got != n {
				t.Errorf("40 entries into %d: %d written", n, got)
			}
		}
	})
}

func FuzzWiden(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255}, uint32(2), uint64(1<<32))
	f.Fuzz(func(t *testing.T, data []byte, first uint32, add uint64) {
		src := entriesOf(data)
		for l := range best() + 1 {
			useLevel(t, l)
			checkWiden(t, src, len(data)%16, int(first%8), first, add)
		}
	})
}

// entriesOf reads the whole entries of data, little-endian on every machine so that a corpus means the same.
func entriesOf(data []byte) []uint32 {
	entries := make([]uint32, len(data)/4)
	for i := range entries {
		entries[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	return entries
}
