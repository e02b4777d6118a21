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
//
// No branch depends on an entry: what is counted are the signs of differences, which are 0 where an entry is unset.
func CountSteps(src []uint32) Steps {
	if len(src) == 0 {
		return Steps{}
	}
	var fromSet, bothSet, below0, below1, below2 int64
	from, set := src[0], setMask(src[0])
	for _, to := range src[1:] {
		fromSet -= set
		both := set
		set = setMask(to)
		both &= set
		bothSet -= both
		d := int64(int32(to-from)) & both
		below0 -= d >> 63
		below1 -= (d - 1) >> 63
		below2 -= (d - 2) >> 63
		from = to
	}
	steps := int64(len(src) - 1)
	rising := steps - below1
	return Steps{
		Rising:  int(rising),
		Ones:    int(below2 - below1),
		Falling: int(below0),
		Level:   int(bothSet - rising - below0),
		Unset:   int(steps - fromSet),
	}
}

// MaskedSequence numbers the rising steps of src (see Steps), where step i is from src[i] to src[i+1] and prev tells of the
// step before src[0]: dst[i] = base + the number of rising steps before i where step i or the one before it is rising,
// and 0 elsewhere. It returns the base of what follows, base + the number of rising steps.
// len(src) is len(dst)+1.
func MaskedSequence(dst []uint64, src []uint32, prev bool, base uint64) (next uint64) {
	var before int64
	if prev {
		before = -1
	}
	from, set := src[0], setMask(src[0])
	for i, to := range src[1:][:len(dst)] {
		both := set
		set = setMask(to)
		both &= set
		rising := -int64(int32(to-from)) & both >> 63
		dst[i] = base & uint64(rising|before)
		base -= uint64(rising)
		from, before = to, rising
	}
	return base
}

// setMask is -1 where entry is set, and 0 where it is not.
func setMask(entry uint32) int64 { return -int64(entry) >> 63 }
