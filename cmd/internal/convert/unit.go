package convert

import (
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

// A unit is what is converted at a time: the live multis [lo, hi) whose new entries stand in one segment of the new offsets,
// and the size of that segment in pages. multis are counted in 64 bits, so that hi can be 2^32.
type unit struct {
	segment int64
	lo, hi  uint64
	pages   int64
}

func (u unit) multis() int { return int(u.hi - u.lo) }

// layoutNew is the format that is written.
func (s *source) layoutNew() multixact.Layout { return multixact.New(s.layout.BlockSize()) }

// perUnit is the number of entries in a segment of the new offsets.
func (s *source) perUnit() uint64 {
	return uint64(s.layoutNew().EntriesPerPage()) * slru.PagesPerSegment
}

// units is the number of segments that the new offsets have: those of the live multis, and of nextMulti.
func (s *source) units() int {
	per := s.perUnit()
	if s.live.Wraps() {
		return int((1<<32-1)/per-uint64(s.live.Oldest)/per+1) + int(uint64(s.live.Next)/per+1)
	}
	return int(uint64(s.live.Next)/per - uint64(s.live.Oldest)/per + 1)
}

// unit is the i-th of units, in the order of their making: after a wrap segment 0 follows the last.
func (s *source) unit(i int) unit {
	per := s.perUnit()
	segment := uint64(s.live.Oldest)/per + uint64(i)
	lo, end := uint64(s.live.Oldest), uint64(s.live.Next)
	if s.live.Wraps() {
		if last := uint64(1<<32-1) / per; segment > last {
			segment -= last + 1
			lo = multixact.FirstMulti
		} else {
			end = 1 << 32
		}
	}
	u := unit{segment: int64(segment), lo: max(lo, segment*per), hi: min(end, (segment+1)*per), pages: slru.PagesPerSegment}
	if segment == uint64(s.live.Next)/per && end == uint64(s.live.Next) {
		u.pages = s.layoutNew().OffsetPage(s.live.Next)%slru.PagesPerSegment + 1
	}
	return u
}
