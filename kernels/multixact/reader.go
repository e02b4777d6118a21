package multixact

import (
	"errors"
	"fmt"
)

// What can keep a Reader from the members of a multi. In the old format ErrUnset and a length of 0 are holes: what a crash
// left of a multi that nothing refers to. In the new format the server takes each of these for an error.
var (
	ErrUnset  = errors.New("offset is unset")
	ErrLength = errors.New("length is not above zero")
	ErrPast   = errors.New("members run past the live range")
	ErrXID    = errors.New("member has xid 0")
)

// Hole reports whether err, from a Reader of the old format, says that the multi is one that a crash lost: its own or the
// next offset is unset, or its length is 0.
func Hole(err error) bool {
	var length *lengthError
	return errors.Is(err, ErrUnset) || errors.As(err, &length) && length.length == 0
}

type lengthError struct{ length int64 }

func (e *lengthError) Error() string { return fmt.Sprintf("length %d is not above zero", e.length) }
func (e *lengthError) Unwrap() error { return ErrLength }

// Pages finds page n of an SLRU: BlockSize bytes, valid until the next call.
type Pages func(n int64) ([]byte, error)

// A Reader reads multis one at a time from the pages of either format, as slowly and as obviously as it can be done:
// it is what the fast conversions are held against. (GetMultiXactIdMembers in PostgreSQL's multixact.c.)
type Reader struct {
	Layout           Layout
	Range            Range
	Offsets, Members Pages
}

// Entry is the offset that is stored for multi, 0 where it is unset. A page that can't be had is the error of Offsets.
func (r *Reader) Entry(multi uint32) (uint64, error) {
	page, err := r.Offsets(r.Layout.OffsetPage(multi))
	if err != nil {
		return 0, err
	}
	return r.Layout.Entry(page, r.Layout.OffsetEntry(multi)), nil
}

// Extent is the slot of multi's first member and the number of slots to its end; in the old format slots go on at 0 after
// 0xFFFFFFFF. Errors wrap ErrUnset, ErrLength or ErrPast, or are those of Offsets.
func (r *Reader) Extent(multi uint32) (offset uint64, length int64, err error) {
	if offset, err = r.Entry(multi); err != nil {
		return 0, 0, err
	}
	end := r.Range.NextOffset
	if next := After(multi); next != r.Range.Next {
		if end, err = r.Entry(next); err != nil {
			return 0, 0, err
		}
	}
	if offset == 0 || end == 0 {
		return 0, 0, ErrUnset
	}
	length = int64(end - offset)
	if r.old() {
		length = int64(int32(uint32(end) - uint32(offset)))
	}
	if length <= 0 {
		return offset, length, &lengthError{length}
	}
	if r.Range.Unwrap(offset)+uint64(length) > r.Range.Unwrap(r.Range.NextOffset) {
		return offset, length, fmt.Errorf("%w: they begin at %d and end at %d, nextOffset is %d", ErrPast, offset, end, r.Range.NextOffset)
	}
	return offset, length, nil
}

// Multi is every member of multi, in their order. Errors are those of Extent, or of Members, or wrap ErrXID, with the members.
func (r *Reader) Multi(multi uint32) ([]Member, error) {
	offset, length, err := r.Extent(multi)
	if err != nil {
		return nil, err
	}
	members := make([]Member, 0, min(length, 1024))
	var bad error
	for slot := offset; slot < offset+uint64(length); slot++ {
		at := slot
		if r.old() {
			at %= OffsetSpace
		}
		page, err := r.Members(r.Layout.MemberPage(at))
		if err != nil {
			return nil, err
		}
		m := MemberAt(page, r.Layout.MemberSlot(at))
		switch {
		case m.XID == 0 && r.old() && at == 0:
			continue // the slot that an allocation skipped
		case m.XID == 0 && !r.old():
			bad = fmt.Errorf("%w in slot %d", ErrXID, at)
		}
		members = append(members, m)
	}
	return members, bad
}

// FindFirst is the offset of the oldest set entry of the live range, 0 where none is set: Range.First.
func (r *Reader) FindFirst() (uint32, error) {
	for multi := range r.Range.All() {
		if offset, err := r.Entry(multi); err != nil || offset != 0 {
			return uint32(offset), err
		}
	}
	return 0, nil
}

func (r *Reader) old() bool { return r.Layout.width == 4 }

// Select is the one member that PostgreSQL 19's pg_upgrade keeps of a multi: its updater, or else its first locker. It is a
// fold in the order of the members; ok is false where a second updater meets a first, at which pg_upgrade gives up.
// (GetOldMultiXactIdSingleMember in multixact_read_v18.c.)
func Select(members []Member) (kept Member, ok bool) {
	for _, m := range members {
		switch {
		case m.Status.Updater() && kept.Status.Updater():
			return kept, false
		case m.Status.Updater() || kept.XID == 0:
			kept = m
		}
	}
	return kept, true
}
