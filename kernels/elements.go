package kernels

import "encoding/binary"

// A page of elements is a run of groups: four tags, a byte each, and then their four values, uint32s. The tags are the bytes
// of one uint32 of the machine, the first the lowest, so on a big-endian machine they stand in memory from last to first.
const (
	groupBytes    = 20
	groupElements = 4
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
	head := min(-di&(groupElements-1), n)
	groups := (n - head) / groupElements
	tail := head + groups*groupElements

	copySlots(dst, di, src, si, head)
	if groups > 0 {
		whole := dst[(di+head)/groupElements*groupBytes:][:groups*groupBytes]
		copyGroups(whole, src[(si+head)/groupElements*groupBytes:], (si+head)%groupElements)
	}
	copySlots(dst, di+tail, src, si+tail, n-tail)
}

// copyGroups fills the groups of dst with the elements of src from slot shift (0 to 3) of its first group.
func copyGroups(dst, src []byte, shift int) {
	if shift == 0 {
		copy(dst, src[:len(dst)])
		return
	}
	tags := binary.NativeEndian.Uint32(src)
	for len(dst) >= groupBytes {
		d, s := (*[groupBytes]byte)(dst), (*[2 * groupBytes]byte)(src)
		next := binary.NativeEndian.Uint32(s[groupBytes:])
		binary.NativeEndian.PutUint32(d[:], tags>>(8*shift)|next<<(32-8*shift))
		tags = next
		switch shift { // in moves of one or two values, each within a group
		case 1:
			*(*[8]byte)(d[4:]) = *(*[8]byte)(s[8:])
			*(*[4]byte)(d[12:]) = *(*[4]byte)(s[16:])
			*(*[4]byte)(d[16:]) = *(*[4]byte)(s[24:])
		case 2:
			*(*[8]byte)(d[4:]) = *(*[8]byte)(s[12:])
			*(*[8]byte)(d[12:]) = *(*[8]byte)(s[24:])
		case 3:
			*(*[4]byte)(d[4:]) = *(*[4]byte)(s[16:])
			*(*[4]byte)(d[8:]) = *(*[4]byte)(s[24:])
			*(*[8]byte)(d[12:]) = *(*[8]byte)(s[28:])
		}
		dst, src = dst[groupBytes:], src[groupBytes:]
	}
}

// copySlots is CopyElements one element at a time, for what fills no group.
func copySlots(dst []byte, di int, src []byte, si, n int) {
	for i := range n {
		setElement(dst, di+i, element(src, si+i))
	}
}

func element(page []byte, slot int) Held {
	group := page[slot/groupElements*groupBytes:][:groupBytes]
	i := slot % groupElements
	return Held{binary.NativeEndian.Uint32(group[4+4*i:]), group[tagByte(i)]}
}

func setElement(page []byte, slot int, e Held) {
	group := page[slot/groupElements*groupBytes:][:groupBytes]
	i := slot % groupElements
	group[tagByte(i)] = e.Tag
	binary.NativeEndian.PutUint32(group[4+4*i:], e.Value)
}

// tagByte is where the tag of the i-th element of a group stands.
func tagByte(i int) int {
	if bigEndian {
		return groupElements - 1 - i
	}
	return i
}

var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1
