package multixact

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/mxwiden/mxwiden/kernels"
)

// FirstMulti is the lowest multi that PostgreSQL hands out; 0 is never one, so the multi after 0xFFFFFFFF is FirstMulti.
const FirstMulti = 1

// OffsetSpace is the number of member slots that a 32-bit offset can address: old offsets wrap here.
const OffsetSpace = 1 << 32

// The size in bytes of a group of members, and the number of members in it: four status bytes, then four xids.
// (MULTIXACT_MEMBERGROUP_SIZE in PostgreSQL's multixact_internal.h.)
const (
	GroupBytes   = kernels.GroupBytes
	GroupMembers = kernels.GroupElements
)

// A Status is how a member holds the tuple that refers to its multi, as in PostgreSQL's MultiXactStatus.
type Status uint8

// The statuses. Above ForUpdate is an updater; what is above Update is not PostgreSQL's, and counts as an updater too.
const (
	ForKeyShare Status = iota
	ForShare
	ForNoKeyUpdate
	ForUpdate
	NoKeyUpdate
	Update
)

// Updater reports whether a member of this status changed the tuple, and did not only lock it (ISUPDATE_from_mxstatus).
func (s Status) Updater() bool { return s > ForUpdate }

// String is the status in the words of pg_get_multixact_members.
func (s Status) String() string {
	switch s {
	case ForKeyShare:
		return "keysh"
	case ForShare:
		return "sh"
	case ForNoKeyUpdate:
		return "fornokeyupd"
	case ForUpdate:
		return "forupd"
	case NoKeyUpdate:
		return "nokeyupd"
	case Update:
		return "upd"
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// A Member is one transaction of a multi.
type Member struct {
	XID    uint32
	Status Status
}

// A Layout is the page format of one side of the conversion: how many offsets and members a page holds, and where.
// Every page and slot formula of the project is a method of it.
type Layout struct {
	block int // bytes a page
	width int // bytes an offset
}

// Old is the layout up to PostgreSQL 18: 32-bit offsets. The block size is in bytes.
func Old(block int) Layout { return Layout{block, 4} }

// New is the layout of PostgreSQL 19: 64-bit offsets. The block size is in bytes.
func New(block int) Layout { return Layout{block, 8} }

// BlockSize is the size of a page in bytes.
func (l Layout) BlockSize() int { return l.block }

// EntriesPerPage is the number of offsets a page holds.
func (l Layout) EntriesPerPage() int { return l.block / l.width }

// OffsetPage is the page of the offsets SLRU that holds the entry of multi (MultiXactIdToOffsetPage).
func (l Layout) OffsetPage(multi uint32) int64 { return int64(multi) / int64(l.EntriesPerPage()) }

// OffsetEntry is the index of multi's entry within its page (MultiXactIdToOffsetEntry).
func (l Layout) OffsetEntry(multi uint32) int { return int(int64(multi) % int64(l.EntriesPerPage())) }

// OffsetByte is the place of multi's entry, in bytes from the start of the offsets SLRU.
func (l Layout) OffsetByte(multi uint32) int64 { return int64(multi) * int64(l.width) }

// MembersPerPage is the number of members a page holds (MULTIXACT_MEMBERS_PER_PAGE); the rest of the page is unused.
func (l Layout) MembersPerPage() int { return l.block / GroupBytes * GroupMembers }

// MemberPage is the page of the members SLRU that holds the slot at offset (MXOffsetToMemberPage).
func (l Layout) MemberPage(offset uint64) int64 { return int64(offset / uint64(l.MembersPerPage())) }

// MemberSlot is the index of the slot at offset within its page, in members.
func (l Layout) MemberSlot(offset uint64) int { return int(offset % uint64(l.MembersPerPage())) }

// ClearUnused clears what no member stands in, in a window of member pages.
func (l Layout) ClearUnused(window []byte) {
	for ; len(window) > 0; window = window[l.block:] {
		clear(window[l.block/GroupBytes*GroupBytes : l.block])
	}
}

// Entry reads the i-th offset of a page of the offsets SLRU.
func (l Layout) Entry(page []byte, i int) uint64 {
	if l.width == 4 {
		return uint64(binary.NativeEndian.Uint32(page[4*i:]))
	}
	return binary.NativeEndian.Uint64(page[8*i:])
}

// OldEntries views bytes of old offsets pages, 4-byte aligned, as the entries they are.
func OldEntries(b []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// NewEntries views bytes of new offsets pages, 8-byte aligned, as the entries they are.
func NewEntries(b []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

// SetEntry writes the i-th offset of a page of the offsets SLRU; an old page keeps the low 32 bits.
func (l Layout) SetEntry(page []byte, i int, offset uint64) {
	if l.width == 4 {
		binary.NativeEndian.PutUint32(page[4*i:], uint32(offset))
		return
	}
	binary.NativeEndian.PutUint64(page[8*i:], offset)
}

// MemberAt reads the member in the given slot of a page of the members SLRU (MXOffsetToMemberOffset, MXOffsetToFlagsOffset).
func MemberAt(page []byte, slot int) Member {
	group := page[slot/GroupMembers*GroupBytes:][:GroupBytes]
	i := slot % GroupMembers
	return Member{binary.NativeEndian.Uint32(group[GroupMembers+4*i:]), Status(group[statusByte(i)])}
}

// SetMember writes the member in the given slot of a page of the members SLRU.
func SetMember(page []byte, slot int, m Member) {
	group := page[slot/GroupMembers*GroupBytes:][:GroupBytes]
	i := slot % GroupMembers
	group[statusByte(i)] = byte(m.Status)
	binary.NativeEndian.PutUint32(group[GroupMembers+4*i:], m.XID)
}

// statusByte is where the status of the i-th member of a group stands: PostgreSQL shifts it by 8*i bits into a
// native uint32 (MXOffsetToFlagsBitShift).
func statusByte(i int) int {
	if littleEndian {
		return i
	}
	return GroupMembers - 1 - i
}

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1
