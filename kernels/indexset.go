package kernels

// IndexSet is the index of the first entry of src that is not 0, or -1.
func IndexSet(src []uint32) int {
	for i, entry := range src {
		if entry != 0 {
			return i
		}
	}
	return -1
}
