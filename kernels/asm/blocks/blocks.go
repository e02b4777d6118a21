// Package blocks is what the generators have in common: kernels that do whole blocks of entries, and leave the rest of a
// slice to the plain form.
package blocks

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Size is the number of entries in a block: blockEntries in kernels.
const Size = 16

// Slice is the memory of the slice that is the named argument.
func Slice(name string) Mem { return Mem{Base: Load(Param(name).Base(), GP64())} }

// Turns is the number of whole blocks in the slice that is the named argument.
func Turns(name string) Register {
	turns := Load(Param(name).Len(), GP64())
	SHRQ(U8(4), turns)
	return turns
}

// Place is where the named argument stands on the stack.
func Place(name string) Op {
	argument, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return argument.Addr
}

// Loop does body turns times. The body goes on to the next block itself.
func Loop(name string, turns Register, body func()) {
	TESTQ(turns, turns)
	JZ(LabelRef(name + "_done"))
	Label(name + "_loop")
	body()
	DECQ(turns)
	JNZ(LabelRef(name + "_loop"))
	Label(name + "_done")
}
