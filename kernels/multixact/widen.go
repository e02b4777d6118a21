package multixact

import "github.com/mxwiden/mxwiden/kernels"

// A Widening is where widen puts each old offset: what stands before First has wrapped, and moves up by Add.
type Widening struct {
	Range Range  // the old range, with First
	Add   uint64 // 0 without a wrap, else 2^32, less one where the wrap left slot 0 empty
}

// NewWidening is the widening of an old range whose First is known. slotZero is the xid in slot 0 of the members: 0 says
// that the wrap skipped it. It matters only where the members wrap.
func NewWidening(r Range, slotZero uint32) Widening {
	w := Widening{Range: r}
	if r.MembersWrap() {
		w.Add = OffsetSpace
		if slotZero == 0 {
			w.Add--
		}
	}
	return w
}

// Offset is the new place of an old offset; unset stays unset.
func (w Widening) Offset(old uint64) uint64 {
	if old == 0 || old >= uint64(w.Range.First) {
		return old
	}
	return old + w.Add
}

// First is the first slot of the new members. It is NextOffset where no entry is set.
func (w Widening) First() uint64 {
	if w.Range.First == 0 {
		return w.NextOffset()
	}
	return uint64(w.Range.First)
}

// NextOffset is the nextOffset of the new cluster, never 0.
func (w Widening) NextOffset() uint64 { return max(w.Offset(w.Range.NextOffset), 1) }

// Source is the old slot whose member stands in the new slot.
func (w Widening) Source(slot uint64) uint64 {
	if slot < OffsetSpace || w.Add == 0 {
		return slot
	}
	return slot - w.Add
}

// Entries widens entries of the old offsets; dst and src are of one length.
func (w Widening) Entries(dst []uint64, src []uint32) {
	kernels.Widen(dst, src, w.Range.First, w.Add)
}

// Members fills a window of new member pages, the first of them page `page`, with the members below NextOffset from the old
// pages; every other byte of the window is cleared. An old page that old can't give is its error.
func (w Widening) Members(l Layout, window []byte, page int64, old Pages) error {
	clear(window)
	perPage := uint64(l.MembersPerPage())
	for ; len(window) > 0; window, page = window[l.block:], page+1 {
		slot := uint64(page) * perPage
		for end := min(slot+perPage, w.NextOffset()); slot < end; {
			// a run ends where the new page, the old page or the space of old offsets does
			from := w.Source(slot)
			n := min(end-slot, perPage-from%perPage)
			if slot < OffsetSpace {
				n = min(n, OffsetSpace-slot)
			}
			src, err := old(l.MemberPage(from))
			if err != nil {
				return err
			}
			kernels.CopyElements(window[:l.block], l.MemberSlot(slot), src, l.MemberSlot(from), int(n))
			slot += n
		}
	}
	return nil
}
