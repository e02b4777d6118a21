package kernels

import "encoding/binary"

// The size in bytes of a group of elements, and how many there are in it. A page of elements is a run of groups: four tags, a byte each, and then their four values, uint32s. The tags are the bytes
// of one uint32 of the machine, the first the lowest, so on a big-endian machine they stand in memory from last to first.
const (
	GroupBytes    = 20
	GroupElements = 4
)

// Held is one element, as a fold over elements holds it.
type Held struct {
	Value uint32
	Tag   uint8
}

// SelectTagged folds the n elements from slot si of page into held, in order: an element whose tag is above limit replaces held,
// or fails where held's tag is above limit already; any other replaces held only where held's value is 0. At a failure
// it stops, and ok is false.
func SelectTagged(held Held, page []byte, si, n int, limit uint8) (h Held, ok bool) {
	for slot := si; slot < si+n; slot++ {
		e := element(page, slot)
		switch {
		case e.Tag > limit && held.Tag > limit:
			return held, false
		case e.Tag > limit || held.Value == 0:
			held = e
		}
	}
	return held, true
}

// CopyElements copies n elements, from slot si of the page src to slot di of the page dst. Elements outside [di, di+n) keep
// their values. src and dst must hold the groups of all these slots, and must not overlap.
func CopyElements(dst []byte, di int, src []byte, si, n int) {
	head := min(-di&(GroupElements-1), n)
	groups := (n - head) / GroupElements
	tail := head + groups*GroupElements

	copySlots(dst, di, src, si, head)
	if groups > 0 {
		whole := dst[(di+head)/GroupElements*GroupBytes:][:groups*GroupBytes]
		copyGroups(whole, src[(si+head)/GroupElements*GroupBytes:], (si+head)%GroupElements)
	}
	copySlots(dst, di+tail, src, si+tail, n-tail)
}

// copyGroups fills the groups of dst with the elements of src from slot shift (0 to 3) of its first group.
func copyGroups(dst, src []byte, shift int) {
	if shift == 0 {
		copy(dst, src[:len(dst)])
		return
	}
	_ = src[len(dst)+GroupBytes-1]
	tags := binary.NativeEndian.Uint32(src)
	low, high := uint(8*shift)&31, uint(32-8*shift)&31
	for len(dst) >= GroupBytes && len(src) >= 2*GroupBytes {
		next := binary.NativeEndian.Uint32(src[GroupBytes:])
		binary.NativeEndian.PutUint32(dst, tags>>low|next<<high)
		tags = next
		switch shift { // in moves of one or two values, each within a group
		case 1:
			move64(dst[4:], src[8:])
			move32(dst[12:], src[16:])
			move32(dst[16:], src[24:])
		case 2:
			move64(dst[4:], src[12:])
			move64(dst[12:], src[24:])
		default:
			move32(dst[4:], src[16:])
			move32(dst[8:], src[24:])
			move64(dst[12:], src[28:])
		}
		dst, src = dst[GroupBytes:], src[GroupBytes:]
	}
}

func move32(dst, src []byte) { binary.NativeEndian.PutUint32(dst, binary.NativeEndian.Uint32(src)) }
func move64(dst, src []byte) { binary.NativeEndian.PutUint64(dst, binary.NativeEndian.Uint64(src)) }

// copySlots is CopyElements one element at a time, for what fills no group.
func copySlots(dst []byte, di int, src []byte, si, n int) {
	for i := range n {
		setElement(dst, di+i, element(src, si+i))
	}
}

func element(page []byte, slot int) Held {
	group, i := groupOf(page, slot)
	return Held{
		Value: binary.NativeEndian.Uint32(group[4+4*i:]),
		Tag:   uint8(binary.NativeEndian.Uint32(group) >> (8 * i)),
	}
}

func setElement(page []byte, slot int, e Held) {
	group, i := groupOf(page, slot)
	tags := binary.NativeEndian.Uint32(group) &^ (0xFF << (8 * i))
	binary.NativeEndian.PutUint32(group, tags|uint32(e.Tag)<<(8*i))
	binary.NativeEndian.PutUint32(group[4+4*i:], e.Value)
}

// groupOf is the group that a slot is in, and the index of the slot there.
func groupOf(page []byte, slot int) (group []byte, i uint) {
	return page[uint(slot)/GroupElements*GroupBytes:][:GroupBytes], uint(slot) % GroupElements
}
