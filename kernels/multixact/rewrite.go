package multixact

import (
	"iter"

	"github.com/mxwiden/mxwiden/kernels"
)

// A Run is the old entries of consecutive multis and of the one after them, where the last ends.
type Run struct {
	First   uint32   // the multi of Entries[0]
	Entries []uint32 // one more than multis
	length  uint32   // of the last multi, where it ends at 2^32: no entry can say so
}

// CloseRun makes a run of multis whose last is the last of the live range: it ends at nextOffset, whatever the file holds.
// entries has room for that end after the multis; it is written to.
func CloseRun(first uint32, entries []uint32, nextOffset uint64) Run {
	r := Run{First: first, Entries: entries}
	n := r.Len()
	entries[n] = uint32(nextOffset)
	if nextOffset != OffsetSpace || n == 0 || entries[n-1] == 0 {
		return r
	}
	// As an entry, 0 would make a hole of a multi that is live. A step of the same direction stands for it.
	last := entries[n-1]
	if length := -last; int32(length) > 0 {
		r.length = length
		entries[n] = max(last+1, 1)
	} else {
		entries[n] = last - 1
		if last == 1 {
			entries[n] = 1<<32 - 1
		}
	}
	return r
}

// Len is the number of multis in the run.
func (r Run) Len() int { return len(r.Entries) - 1 }

// Extent is the slot of the first member of the i-th multi and the number of slots to its end; 0 slots for a multi that is not
// valid: unset, not ended, or of no length above zero.
func (r Run) Extent(i int) (offset, length uint32) {
	offset, end := r.Entries[i], r.Entries[i+1]
	if offset == 0 || end == 0 || int32(end-offset) <= 0 {
		return offset, 0
	}
	if r.length != 0 && i == r.Len()-1 {
		return offset, r.length
	}
	return offset, end - offset
}

// Valid reports whether the i-th multi has members.
func (r Run) Valid(i int) bool {
	_, length := r.Extent(i)
	return length > 0
}

// Skip is the index of the multi that follows the first n valid ones, or Len where there are no more.
func (r Run) Skip(n int) int {
	for i := range r.Len() {
		if r.Valid(i) {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return r.Len()
}

// Slots yields the old slots of a multi's members as ranges [lo, hi): one, or two where they pass from 0xFFFFFFFF to 0.
func Slots(offset, length uint32) iter.Seq2[uint64, uint64] {
	return func(yield func(lo, hi uint64) bool) {
		lo, hi := uint64(offset), uint64(offset)+uint64(length)
		if hi <= OffsetSpace {
			yield(lo, hi)
		} else if yield(lo, OffsetSpace) {
			yield(0, hi-OffsetSpace)
		}
	}
}

// Bounds is the lowest and the highest of the set entries of the run, 0 where none is set. The end of a run at 2^32 counts
// as the last slot before it.
func (r Run) Bounds() (lowest, highest uint32) {
	lowest = 1<<32 - 1
	for _, offset := range r.Entries {
		lowest = min(lowest, offset-1) // unset is the highest of all then
		highest = max(highest, offset)
	}
	if r.length != 0 {
		highest = 1<<32 - 1
	}
	return lowest + 1, highest
}

// Steps counts the multis by what lies between their entries and the next: the rising are the valid ones.
func (r Run) Steps() kernels.Steps { return kernels.CountSteps(r.Entries) }

// Number writes the new offsets of the run, one a multi: base, counted on by one for each valid multi, and 0 for a hole that
// follows a hole. prev says whether the multi before the run is valid. It returns the base of what follows.
func (r Run) Number(dst []uint64, prev bool, base uint64) uint64 {
	return kernels.MaskedSequence(dst, r.Entries, prev, base)
}

// A Selection writes the one member that rewrite keeps of each valid multi.
type Selection struct {
	Layout      Layout
	Old         Pages              // of the members
	TwoUpdaters func(multi uint32) // called for a multi at which pg_upgrade would give up
}

// A Cursor is where a Selection stands: the multi of the run that is next to be read, and the new slot to be written.
type Cursor struct {
	Multi int
	Slot  uint64
}

// Straight reports whether steps, those of a run, say that each of its multis has one member, and all of them stand one after the
// other: the slot of the first entry and what follows it are all there is to know of such a run.
func (r Run) Straight(steps kernels.Steps) bool { return steps.Ones == r.Len() && r.length == 0 }

// Fill writes members of the run from c on, up to slot end, into a window of new pages, the first of them page `page`.
// It returns where it stopped: at end, or at the end of the run.
func (s *Selection) Fill(window []byte, page int64, r Run, c Cursor, end uint64) (Cursor, error) {
	to := copier{s.Layout, window, page, s.Old}
	for c.Slot < end && c.Multi < r.Len() {
		if n := r.singles(c.Multi, int(min(end-c.Slot, uint64(r.Len())))); n > 0 {
			if err := to.copy(c.Slot, uint64(r.Entries[c.Multi]), uint64(n)); err != nil {
				return c, err
			}
			c.Multi += n
			c.Slot += uint64(n)
			continue
		}
		offset, length := r.Extent(c.Multi)
		if length > 0 {
			kept, err := s.selectOne(r.First+uint32(c.Multi), offset, length)
			if err != nil {
				return c, err
			}
			SetMember(to.at(c.Slot), s.Layout.MemberSlot(c.Slot), kept)
			c.Slot++
		}
		c.Multi++
	}
	return c, nil
}

// Copy writes n members of a straight run, from old slot `from` on, to the slots from slot on of a window of new pages, the first
// of them page `page`.
func (s *Selection) Copy(window []byte, page int64, slot, from, n uint64) error {
	to := copier{s.Layout, window, page, s.Old}
	return to.copy(slot, from, n)
}

// singles is how many multis from the i-th on have one member each, one after the other, at most so many: they can be copied as
// they are.
func (r Run) singles(i, most int) int {
	from := r.Entries[i]
	if from == 0 {
		return 0
	}
	most = min(most, r.Len()-i)
	if r.length > 0 {
		most = min(most, r.Len()-1-i) // what stands after the last is not where it ends
	}
	n := 0
	for n < most && r.Entries[i+n+1]-from == uint32(n+1) && r.Entries[i+n+1] != 0 {
		n++
	}
	return n
}

// Check reads the members of the i-th multi of the run, which is valid, for the call of TwoUpdaters alone.
func (s *Selection) Check(r Run, i int) error {
	offset, length := r.Extent(i)
	_, err := s.selectOne(r.First+uint32(i), offset, length)
	return err
}

// selectOne folds the members of a multi, page by page. See Select, which it is tested against.
func (s *Selection) selectOne(multi, offset, length uint32) (Member, error) {
	var held kernels.Held
	for length > 0 {
		page, err := s.Old(s.Layout.MemberPage(uint64(offset)))
		if err != nil {
			return Member{}, err
		}
		slot := s.Layout.MemberSlot(uint64(offset))
		n := min(length, uint32(s.Layout.MembersPerPage()-slot))
		if rest := -offset; rest != 0 {
			n = min(n, rest) // the last old page ends at 2^32
		}
		if offset == 0 && MemberAt(page, 0).XID == 0 {
			n = 1 // the slot that an allocation skipped
		} else {
			var ok bool
			if held, ok = kernels.SelectTagged(held, page, slot, int(n), uint8(ForUpdate)); !ok {
				s.TwoUpdaters(multi)
				break
			}
		}
		offset += n // wraps as old offsets do
		length -= n
	}
	return Member{held.Value, Status(held.Tag)}, nil
}
