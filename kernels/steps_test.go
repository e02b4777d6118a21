package kernels

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func obviousRising(src []uint32, i int) bool {
	return src[i] != 0 && src[i+1] != 0 && int32(src[i+1]-src[i]) > 0
}

func obviousSteps(src []uint32) (s Steps) {
	for i := 0; i+1 < len(src); i++ {
		from, to := src[i], src[i+1]
		switch {
		case from == 0:
			s.Unset++
		case to == 0:
		case from == to:
			s.Level++
		case obviousRising(src, i):
			s.Rising++
			if to == from+1 {
				s.Ones++
			}
		default:
			s.Falling++
		}
	}
	return s
}

func obviousMaskedSequence(dst []uint64, src []uint32, prev bool, base uint64) uint64 {
	for i := range dst {
		rising := obviousRising(src, i)
		dst[i] = 0
		if rising || prev {
			dst[i] = base
		}
		if rising {
			base++
		}
		prev = rising
	}
	return base
}

func checkSteps(t *testing.T, src []uint32) {
	t.Helper()
	if got, want := CountSteps(src), obviousSteps(src); got != want {
		t.Fatalf("%#x: %+v, want %+v", src, got, want)
	}
}

func checkMaskedSequence(t *testing.T, src []uint32, prev bool, base uint64, do int) {
	t.Helper()
	n := len(src) - 1
	got := canaries(do + n + 32)
	want := slices.Clone(got)
	next := MaskedSequence(got[do:][:n], src, prev, base)
	if wantNext := obviousMaskedSequence(want[do:][:n], src, prev, base); next != wantNext {
		t.Fatalf("%#x, prev %t, base %#x: next is %#x, want %#x", src, prev, base, next, wantNext)
	}
	if i := differ(got, want); i >= 0 {
		t.Fatalf("%#x, prev %t, base %#x: entry %d is %#x, want %#x", src, prev, base, i-do, got[i], want[i])
	}
}

// Every pair of edge values, alone and among others, in every count and in the numbers.
func TestSteps(t *testing.T) {
	edges := []uint32{0, 1, 2, 3, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<31 + 2, 1<<32 - 2, 1<<32 - 1}
	atEveryLevel(t, func(t *testing.T) {
		for _, a := range edges {
			for _, b := range edges {
				checkSteps(t, []uint32{a, b})
				for _, prev := range []bool{false, true} {
					checkMaskedSequence(t, []uint32{a, b}, prev, 7, 0)
				}
			}
		}
		r := rand.New(rand.NewPCG(3, 4))
		for n := range 400 {
			src := edgeEntries(r, n+16, 1000)
			for so := range 16 {
				checkSteps(t, src[so:][:n])
				if n > 0 {
					checkMaskedSequence(t, src[so:][:n], so%2 == 0, uint64(n)<<31-1, so/2)
				}
			}
		}
	})
}

func TestMaskedSequenceGoesOnWhereItStopped(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		src := edgeEntries(r, 301, 1000)
		whole, parts := make([]uint64, 300), make([]uint64, 300)
		end := MaskedSequence(whole, src, true, 1)
		for cut := range 301 {
			next := MaskedSequence(parts[:cut], src[:cut+1], true, 1)
			prev := cut == 0 || obviousRising(src, cut-1)
			if next = MaskedSequence(parts[cut:], src[cut:], prev, next); next != end || !slices.Equal(parts, whole) {
				t.Fatalf("cut at %d: it ends at %d, want %d", cut, next, end)
			}
		}
	})
}

func FuzzCountSteps(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		for l := range best() + 1 {
			useLevel(t, l)
			checkSteps(t, entriesOf(data))
		}
	})
}

func FuzzMaskedSequence(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0}, true, uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, prev bool, base uint64) {
		src := entriesOf(data)
		if len(src) == 0 {
			return
		}
		for l := range best() + 1 {
			useLevel(t, l)
			checkMaskedSequence(t, src, prev, base, int(base%8))
		}
	})
}
