package kernels

// Steps counts the steps between neighbouring entries of an array by what they are. A step from a set entry to one that is
// unset is in none of the counts.
type Steps struct {
	Rising  int // both set, and the difference as an int32 is above 0
	Ones    int // of those, the difference is 1
	Falling int // both set, and the difference as an int32 is below 0
	Level   int // both set and equal
	Unset   int // from an entry that is unset (0)
}

// CountSteps counts the len(src)-1 steps from each entry of src to the next.
func CountSteps(src []uint32) Steps {
	if len(src) == 0 {
		return Steps{}
	}
	var set, rising, ones, falling, unset uint64
	from, fromSet := src[0], isSet(src[0])
	for _, to := range src[1:] {
		toSet := isSet(to)
		d := int64(int32(to - from))
		both := fromSet & toSet
		up, down := both&(uint64(-d)>>63), both&(uint64(d)>>63)
		unset += fromSet ^ 1
		set += both
		rising += up
		falling += down
		ones += up &^ isSet(uint32(d)^1)
		from, fromSet = to, toSet
	}
	return Steps{int(rising), int(ones), int(falling), int(set - rising - falling), int(unset)}
}

// MaskedSequence numbers the rising steps of src (see Steps), where step i is from src[i] to src[i+1] and prev tells of the
// step before src[0]: dst[i] = base + the number of rising steps before i where step i or the one before it is rising,
// and 0 elsewhere. It returns the base of what follows, base + the number of rising steps.
// len(src) is len(dst)+1.
func MaskedSequence(dst []uint64, src []uint32, prev bool, base uint64) (next uint64) {
	var before uint64
	if prev {
		before = 1
	}
	from, fromSet := src[0], isSet(src[0])
	src = src[1:][:len(dst)]
	for i, to := range src {
		toSet := isSet(to)
		rising := fromSet & toSet & (uint64(-int64(int32(to-from))) >> 63)
		dst[i] = base & -(rising | before)
		base += rising
		from, fromSet, before = to, toSet, rising
	}
	return base
}

// isSet is 1 where entry is not 0.
func isSet(entry uint32) uint64 { return (uint64(entry) + 1<<32 - 1) >> 32 }
