//go:build !purego

package kernels

//go:generate go -C asm run ./widen -out ../widen_amd64.s

// widenBlock is the number of entries that the vector forms do at a time.
const widenBlock = 16

func widen(dst []uint64, src []uint32, first uint32, add uint64) {
	n := len(src) &^ (widenBlock - 1)
	switch active {
	case avx512:
		widenAVX512(dst[:n], src[:n], first, add)
	case avx2:
		widenAVX2(dst[:n], src[:n], first, add)
	default:
		n = 0
	}
	widenGeneric(dst[n:], src[n:], first, add)
}

//go:noescape
func widenAVX2(dst []uint64, src []uint32, first uint32, add uint64)

//go:noescape
func widenAVX512(dst []uint64, src []uint32, first uint32, add uint64)
