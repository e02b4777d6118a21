package multixact

import "iter"

// A Range is the live range of a cluster: as pg_control tells it, multis [Oldest, Next), which may wrap past 0xFFFFFFFF to
// FirstMulti, and NextOffset, where the members of the last of them end.
type Range struct {
	Oldest, Next uint32
	NextOffset   uint64

	// First is the offset of the oldest set entry in the old format, 0 where none is set. pg_control does not hold it:
	// whoever can read the offsets fills it in. It tells whether the members have wrapped.
	First uint32
}

// OldRange is the live range from the fields of an old pg_control, read as the server means them: a multi of 0 stands for 1,
// and a nextOffset of 0 with a non-empty range stands for 2^32.
func OldRange(oldest, next, nextOffset uint32) Range {
	r := Range{Oldest: max(oldest, FirstMulti), Next: max(next, FirstMulti), NextOffset: uint64(nextOffset)}
	if nextOffset == 0 && !r.Empty() {
		r.NextOffset = OffsetSpace
	}
	return r
}

// NewRange is the live range from the fields of a version 19 pg_control.
func NewRange(oldest, next uint32, nextOffset uint64) Range {
	return Range{Oldest: max(oldest, FirstMulti), Next: max(next, FirstMulti), NextOffset: nextOffset}
}

// Empty reports whether there is no multi in the range.
func (r Range) Empty() bool { return r.Oldest == r.Next }

// Wraps reports whether the multis of the range pass from 0xFFFFFFFF to FirstMulti.
func (r Range) Wraps() bool { return r.Next < r.Oldest }

// Len is the number of multis in the range.
func (r Range) Len() uint64 {
	if r.Wraps() {
		return OffsetSpace - uint64(r.Oldest) + uint64(r.Next) - FirstMulti
	}
	return uint64(r.Next - r.Oldest)
}

// Last is the youngest multi of a range that is not empty.
func (r Range) Last() uint32 {
	if r.Next == FirstMulti {
		return 1<<32 - 1
	}
	return r.Next - 1
}

// Contains reports whether multi is in the range.
func (r Range) Contains(multi uint32) bool {
	if r.Wraps() {
		return multi >= r.Oldest || multi >= FirstMulti && multi < r.Next
	}
	return multi >= r.Oldest && multi < r.Next
}

// All yields every multi of the range in the order of their making.
func (r Range) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for multi := r.Oldest; multi != r.Next; multi = After(multi) {
			if !yield(multi) {
				return
			}
		}
	}
}

// After is the multi that is made after multi.
func After(multi uint32) uint32 { return max(multi+1, FirstMulti) }

// MembersWrap reports whether the members of the range pass from slot 0xFFFFFFFF to slot 0.
func (r Range) MembersWrap() bool { return r.NextOffset < uint64(r.First) }

// Unwrap is the place of an old offset in a space that does not wrap: what comes after the wrap stands 2^32 higher.
func (r Range) Unwrap(offset uint64) uint64 {
	if r.MembersWrap() && offset < uint64(r.First) {
		return offset + OffsetSpace
	}
	return offset
}
