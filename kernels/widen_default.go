//go:build purego || !amd64

package kernels

func widen(dst []uint64, src []uint32, first uint32, add uint64) { widenGeneric(dst, src, first, add) }
