package kernels

// Widen sets dst[i] to src[i] + add where 0 < src[i] < first, and to src[i] elsewhere: an entry of 0 is unset and stays 0.
// It does as many entries as the shorter of the two has. They must not overlap.
func Widen(dst []uint64, src []uint32, first uint32, add uint64) {
	n := min(len(dst), len(src))
	widen(dst[:n], src[:n], first, add)
}

func widenGeneric(dst []uint64, src []uint32, first uint32, add uint64) {
	dst = dst[:len(src)]
	below := max(first, 1) - 1
	for i, entry := range src {
		var moved uint64
		if entry-1 < below { // 0 is the largest entry, less one
			moved = add
		}
		dst[i] = uint64(entry) + moved
	}
}
