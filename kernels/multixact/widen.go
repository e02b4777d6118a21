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

// Entries widens entries of the old offsets; dst and src are of one length.
func (w Widening) Entries(dst []uint64, src []uint32) {
	kernels.Widen(dst, src, w.Range.First, w.Add)
}

// Members fills a window of new member pages, the first of them page `page`, with the members below NextOffset from the old
// pages; every other byte of the window is cleared. An old page that old can't give is its error.
func (w Widening) Members(l Layout, window []byte, page int64, old Pages) error {
	clear(window)
	perPage := uint64(l.MembersPerPage())
	slot := uint64(page) * perPage
	end := min(slot+uint64(len(window)/l.block)*perPage, w.NextOffset())
	c := copier{l, window, page, old}
	if slot < OffsetSpace {
		n := min(end, OffsetSpace) - slot
		if err := c.copy(slot, slot, n); err != nil {
			return err
		}
		slot += n
	}
	if slot >= end {
		return nil
	}
	return c.copy(slot, slot-w.Add, end-slot)
}

// A copier copies members from old pages into a window of new ones, the first of them page `page`.
type copier struct {
	layout Layout
	window []byte
	page   int64
	old    Pages
}

// copy copies n members to the slots from slot on, from the old slots from `from` on, page by page of both.
func (c *copier) copy(slot, from, n uint64) error {
	perPage := uint64(c.layout.MembersPerPage())
	for n > 0 {
		run := min(n, perPage-slot%perPage, perPage-from%perPage)
		src, err := c.old(c.layout.MemberPage(from))
		if err != nil {
			return err
		}
		kernels.CopyElements(c.at(slot), c.layout.MemberSlot(slot), src, c.layout.MemberSlot(from), int(run))
		slot, from, n = slot+run, from+run, n-run
	}
	return nil
}

// at is the page of the window that holds a slot.
func (c *copier) at(slot uint64) []byte {
	return c.window[int(c.layout.MemberPage(slot)-c.page)*c.layout.block:][:c.layout.block]
}
