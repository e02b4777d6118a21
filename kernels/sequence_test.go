package kernels

import (
	"slices"
	"testing"
)

func TestSequence(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		for n := range 300 {
			for _, base := range []uint64{0, 1, 1<<32 - 3, 1<<64 - 5} {
				do := n % 8
				got := canaries(do + n + 16)
				want := slices.Clone(got)
				Sequence(got[do:][:n], base)
				for i := range n {
					want[do+i] = base + uint64(i)
				}
				if i := differ(got, want); i >= 0 {
					t.Fatalf("%d entries from %#x: entry %d is %#x, want %#x", n, base, i-do, got[i], want[i])
				}
			}
		}
	})
}

func TestIndexSet(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		for n := range 200 {
			src := make([]uint32, n)
			if got := IndexSet(src); got != -1 {
				t.Fatalf("%d unset entries: %d", n, got)
			}
			for i := n - 1; i >= 0; i-- {
				for _, entry := range []uint32{1, 1 << 16, 1 << 31} {
					src[i] = entry
					if got := IndexSet(src); got != i {
						t.Fatalf("first set entry of %d, %#x, is %d, not %d", n, entry, i, got)
					}
				}
			}
		}
	})
}
