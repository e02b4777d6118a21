// Widen generates the vector forms of kernels.Widen. Both take whole blocks of entries; what is left of a slice is for
// the plain form.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// block is the number of entries a turn of the loop does: widenBlock in kernels.
const block = 16

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
	dst, src, turns := arguments()

	Comment("first - 1, where 0 stays 0")
	first := Load(Param("first"), GP32())
	SUBL(U8(1), first)
	ADCL(U8(0), first)
	limit, add, minusOne := YMM(), YMM(), YMM()
	VMOVD(first, limit.AsX())
	VPBROADCASTQ(limit.AsX(), limit)
	VPBROADCASTQ(param("add"), add)

	Comment("-1 in the low half of every quadword")
	VPCMPEQD(minusOne, minusOne, minusOne)
	VPSRLQ(U8(32), minusOne, minusOne)

	loop("avx2", dst, src, turns, func() {
		for i := 0; i < block; i += 4 {
			entry, below, moved := YMM(), YMM(), YMM()
			VPMOVZXDQ(src.Offset(4*i), entry)
			VPADDD(minusOne, entry, below)
			VPSUBQ(limit, below, below)
			VPADDQ(add, entry, moved)
			VBLENDVPD(below, moved, entry, entry)
			VMOVDQU(entry, dst.Offset(8*i))
		}
	})
	VZEROUPPER()
	RET()
}

// avx512 does eight entries a vector, with no more than AVX512F.
func avx512() {
	TEXT("widenAVX512", NOSPLIT, signature)
	Doc("widenAVX512 is Widen of whole blocks in AVX512F.")
	dst, src, turns := arguments()
	first, limit, add := GP64(), ZMM(), ZMM()
	Load(Param("first"), first.As32())
	VPBROADCASTQ(first, limit)
	VPBROADCASTQ(param("add"), add)

	const less = 1 // the predicate LT of VPCMPUQ
	loop("avx512", dst, src, turns, func() {
		for i := 0; i < block; i += 8 {
			entry, set, move := ZMM(), K(), K()
			VPMOVZXDQ(src.Offset(4*i), entry)
			VPTESTMQ(entry, entry, set)
			VPCMPUQ(U8(less), limit, entry, set, move)
			VPADDQ(add, entry, move, entry)
			VMOVDQU64(entry, dst.Offset(8*i))
		}
	})
	VZEROUPPER()
	RET()
}

// arguments loads what both forms begin with: the two arrays and the number of whole blocks in src.
func arguments() (dst, src Mem, turns Register) {
	dst = Mem{Base: Load(Param("dst").Base(), GP64())}
	src = Mem{Base: Load(Param("src").Base(), GP64())}
	turns = Load(Param("src").Len(), GP64())
	SHRQ(U8(4), turns)
	return dst, src, turns
}

// param is the place of an argument on the stack.
func param(name string) Op {
	argument, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return argument.Addr
}

// loop does body turns times, each a block further in dst and src.
func loop(name string, dst, src Mem, turns Register, body func()) {
	TESTQ(turns, turns)
	JZ(LabelRef(name + "_done"))
	Label(name + "_loop")
	body()
	ADDQ(U8(4*block), src.Base)
	ADDQ(U32(8*block), dst.Base)
	DECQ(turns)
	JNZ(LabelRef(name + "_loop"))
	Label(name + "_done")
}
