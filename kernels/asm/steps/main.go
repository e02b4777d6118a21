// Steps generates the vector form of kernels.CountSteps. It takes whole blocks of steps; what is left of a slice is for
// the plain form.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"github.com/mxwiden/mxwiden/kernels/asm/blocks"
)

func main() {
	ConstraintExpr("!purego")
	countSteps()
	Generate()
}

// countSteps does eight steps a vector. Each lane counts by itself: what is true of a step is -1, and is taken off.
// As the counts stay below the length of src, 32 bits hold them if it does not reach 1<<32.
func countSteps() {
	TEXT("countStepsAVX2", NOSPLIT, "func(src []uint32) (rising, ones, falling, unset, either uint32)")
	Doc("countStepsAVX2 is CountSteps of whole blocks in AVX2. Either counts the steps of which one end or both are unset.")
	src, turns := blocks.Slice("src"), blocks.Turns("src")

	names := []string{"rising", "ones", "falling", "unset", "either"}
	counts := make(map[string]VecVirtual)
	for _, name := range names {
		counts[name] = YMM()
		VPXOR(counts[name], counts[name], counts[name])
	}
	zero, one := YMM(), YMM()
	VPXOR(zero, zero, zero)
	VPCMPEQD(one, one, one)
	VPSRLD(U8(31), one, one)

	blocks.Loop("steps", turns, func() {
		for i := 0; i < blocks.Size; i += 8 {
			from, to := YMM(), YMM()
			VMOVDQU(src.Offset(4*i), from)
			VMOVDQU(src.Offset(4*i+4), to)
			is := make(map[string]VecVirtual)
			for _, name := range names {
				is[name] = YMM()
			}
			VPCMPEQD(zero, from, is["unset"])
			VPCMPEQD(zero, to, is["either"])
			VPOR(is["unset"], is["either"], is["either"])
			Comment("the difference, and 0 where an end is unset")
			difference := YMM()
			VPSUBD(from, to, difference)
			VPANDN(difference, is["either"], difference)
			VPCMPGTD(zero, difference, is["rising"])
			VPCMPEQD(one, difference, is["ones"])
			VPCMPGTD(difference, zero, is["falling"])
			for _, name := range names {
				VPSUBD(is[name], counts[name], counts[name])
			}
		}
		ADDQ(U8(4*blocks.Size), src.Base)
	})

	for _, name := range names {
		sum, high := counts[name].AsX(), XMM()
		VEXTRACTI128(U8(1), counts[name], high)
		VPADDD(high, sum, sum)
		VPHADDD(sum, sum, sum)
		VPHADDD(sum, sum, sum)
		total := GP32()
		VMOVD(sum, total)
		Store(total, Return(name))
	}
	VZEROUPPER()
	RET()
}
