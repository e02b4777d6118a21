// Widen generates the vector forms of kernels.Widen. Both take whole blocks of entries; what is left of a slice is for
// the plain form.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/mxwiden/mxwiden/kernels/asm/blocks"
)

const signature = "func(dst []uint64, src []uint32, first uint32, add uint64)"

func main() {
	ConstraintExpr("!purego")
	avx2()
	avx512()
	Generate()
}

// avx2 does four entries a vector. There is no unsigned comparison, so an entry counts as below first by the sign of a
// 64-bit difference, and one is taken off both sides of it, within 32 bits, so that 0 becomes the largest entry.
func avx2() {
	TEXT("widenAVX2", NOSPLIT, signature)
	Doc("widenAVX2 is Widen of whole blocks in AVX2.")
	dst, src, turns := blocks.Slice("dst"), blocks.Slice("src"), blocks.Turns("src")

	Comment("first - 1, where 0 stays 0")
	first := Load(Param("first"), GP32())
	SUBL(U8(1), first)
	ADCL(U8(0), first)
	limit, add, minusOne := YMM(), YMM(), YMM()
	VMOVD(first, limit.AsX())
	VPBROADCASTQ(limit.AsX(), limit)
	VPBROADCASTQ(blocks.Place("add"), add)

	Comment("-1 in the low half of every quadword")
	VPCMPEQD(minusOne, minusOne, minusOne)
	VPSRLQ(U8(32), minusOne, minusOne)

	blocks.Loop("avx2", turns, func() {
		for i := 0; i < blocks.Size; i += 4 {
			entry, below, moved := YMM(), YMM(), YMM()
			VPMOVZXDQ(src.Offset(4*i), entry)
			VPADDD(minusOne, entry, below)
			VPSUBQ(limit, below, below)
			VPADDQ(add, entry, moved)
			VBLENDVPD(below, moved, entry, entry)
			VMOVDQU(entry, dst.Offset(8*i))
		}
		onward(dst, src)
	})
	VZEROUPPER()
	RET()
}

// avx512 does eight entries a vector, with no more than AVX512F.
func avx512() {
	TEXT("widenAVX512", NOSPLIT, signature)
	Doc("widenAVX512 is Widen of whole blocks in AVX512F.")
	dst, src, turns := blocks.Slice("dst"), blocks.Slice("src"), blocks.Turns("src")
	first, limit, add := GP64(), ZMM(), ZMM()
	Load(Param("first"), first.As32())
	VPBROADCASTQ(first, limit)
	VPBROADCASTQ(blocks.Place("add"), add)

	const less = 1 // the predicate LT of VPCMPUQ
	blocks.Loop("avx512", turns, func() {
		for i := 0; i < blocks.Size; i += 8 {
			entry, set, move := ZMM(), K(), K()
			VPMOVZXDQ(src.Offset(4*i), entry)
			VPTESTMQ(entry, entry, set)
			VPCMPUQ(U8(less), limit, entry, set, move)
			VPADDQ(add, entry, move, entry)
			VMOVDQU64(entry, dst.Offset(8*i))
		}
		onward(dst, src)
	})
	VZEROUPPER()
	RET()
}

// onward goes on to the next block.
func onward(dst, src Mem) {
	ADDQ(U8(4*blocks.Size), src.Base)
	ADDQ(U32(8*blocks.Size), dst.Base)
}
