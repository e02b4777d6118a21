package kernels

// Sequence sets dst[i] to base + i.
func Sequence(dst []uint64, base uint64) {
	for i := range dst {
		dst[i] = base + uint64(i)
	}
}
