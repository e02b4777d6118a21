package convert

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mxwiden/mxwiden/kernels"
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

// ErrMissing is wrapped where a segment of the live range is not there.
var ErrMissing = errors.New("segment is missing")

// A source is the old side: its control data, its two SLRUs and what of them is live. It is only ever read.
type source struct {
	dir              *pgdata.Dir
	layout           multixact.Layout
	live             multixact.Range // First is set by find
	offsets, members *slru.Dir
}

// openSource opens a stopped cluster of a version up to 18. Errors say which of that it is not.
func openSource(path string) (*source, error) {
	dir, err := pgdata.Open(path)
	if err != nil {
		return nil, err
	}
	if dir.Control.Major() == newMajor {
		return nil, fmt.Errorf("old cluster %s is of version %s, whose pg_multixact has 64-bit offsets already: there is nothing to convert", path, newMajor)
	}
	if err := dir.CheckStopped(pgdata.ShutDown); err != nil {
		return nil, err
	}
	c := dir.Control
	s := &source{
		dir:    dir,
		layout: multixact.Old(int(c.BlockSize)),
		live:   multixact.OldRange(c.OldestMulti, c.NextMulti, uint32(c.NextOffset)),
	}
	if s.offsets, err = slru.Open(dir.OffsetsDir(), slru.Short, s.layout.BlockSize()); err != nil {
		return nil, err
	}
	if s.members, err = slru.Open(dir.MembersDir(), slru.Short, s.layout.BlockSize()); err != nil {
		return nil, err
	}
	if units := s.units(); s.live.Wraps() && s.unit(0).segment == s.unit(units-1).segment {
		return nil, fmt.Errorf("%s: the live range [%d, %d) of pg_control goes round all multis there are, which no server lets happen", path, s.live.Oldest, s.live.Next)
	}
	return s, s.checkOffsets()
}

// spans are the pages of the offsets SLRU that hold live entries, as one or, after a wrap, two ranges [lo, hi).
func (s *source) spans() [][2]int64 {
	page := s.layout.OffsetPage
	switch {
	case s.live.Empty():
		return nil
	case s.live.Wraps() && s.live.Next == multixact.FirstMulti:
		return [][2]int64{{page(s.live.Oldest), page(s.live.Last()) + 1}}
	case s.live.Wraps():
		return [][2]int64{{page(s.live.Oldest), page(1<<32-1) + 1}, {0, page(s.live.Last()) + 1}}
	}
	return [][2]int64{{page(s.live.Oldest), page(s.live.Last()) + 1}}
}

// checkOffsets refuses a source that lacks offsets segments of the live range.
func (s *source) checkOffsets() error {
	var names []string
	for _, span := range s.spans() {
		for _, gap := range s.offsets.Missing(span[0]/slru.PagesPerSegment, (span[1]-1)/slru.PagesPerSegment+1) {
			name := slru.Short.Name(gap.Lo)
			if slices.Contains(s.offsets.Foreign(), name) {
				name += " (what has that name is no regular file)"
			}
			if gap.Hi > gap.Lo+1 {
				name += " to " + slru.Short.Name(gap.Hi-1)
			}
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s: offsets %w: %s, though multis %d to %d are live; restore it from a backup of the cluster",
		s.offsets.Path(), ErrMissing, strings.Join(names, ", "), s.live.Oldest, s.live.Last())
}

// short lists the segments of an SLRU that end before the live range does, and so are read as zeros from there on.
// pages are the live pages, [lo, hi).
func short(dir *slru.Dir, lo, hi int64) (list []Finding) {
	if lo >= hi {
		return nil
	}
	last := (hi - 1) / slru.PagesPerSegment
	for _, seg := range dir.Short(lo/slru.PagesPerSegment, last+1) {
		want := dir.SegmentBytes()
		if seg.No == last {
			want = ((hi-1)%slru.PagesPerSegment + 1) * int64(dir.PageSize())
		}
		if seg.Size < want {
			list = append(list, Finding{Kind: ShortSegment, Segment: filepath.Join(filepath.Base(dir.Path()), slru.Short.Name(seg.No)),
				Text: "has " + strconv.FormatInt(seg.Size, 10) + " of " + strconv.FormatInt(want, 10) + " bytes; the rest is read as zeros"})
		}
	}
	return list
}

// shortSegments lists the short segments of the live range, whose First is known.
func (s *source) shortSegments() (list []Finding) {
	for _, span := range s.spans() {
		list = append(list, short(s.offsets, span[0], span[1])...)
	}
	if s.live.First == 0 {
		return list
	}
	page := s.layout.MemberPage
	first, end := uint64(s.live.First), s.live.NextOffset
	if s.live.MembersWrap() {
		list = append(list, short(s.members, page(first), page(multixact.OffsetSpace-1)+1)...)
		first = 0
	}
	if end > first {
		list = append(list, short(s.members, page(first), page(end-1)+1)...)
	}
	return list
}

// find reads the offsets until it has the oldest set entry: live.First.
func (s *source) find(in *input) error {
	for u := range s.units() {
		r, err := in.run(s.unit(u))
		if err != nil {
			return err
		}
		if i := kernels.IndexSet(r.Entries[:r.Len()]); i >= 0 {
			s.live.First = r.Entries[i]
			return nil
		}
	}
	return nil
}

// widening is where widen puts every offset. The source must have been searched by find.
func (s *source) widening(in *input) (multixact.Widening, error) {
	var slotZero uint32
	if s.live.MembersWrap() {
		page, err := in.memberPage(0)
		if err != nil {
			return multixact.Widening{}, err
		}
		slotZero = multixact.MemberAt(page, 0).XID
	}
	return multixact.NewWidening(s.live, slotZero), nil
}

// The windows of an input, in segments: a unit of offsets is half a segment, and its end may stand in the next.
const (
	offsetsWindow = 2
	membersWindow = 1
)

// An input is one worker's windows on the source.
type input struct {
	src              *source
	offsets, members *mmapio.Reader
	scratch          []uint32
}

func (s *source) input(b mmapio.Backing) (in *input, err error) {
	in = &input{src: s}
	if in.offsets, err = mmapio.NewReader(s.offsets, s.offsets.SegmentBytes(), offsetsWindow, b); err != nil {
		return nil, err
	}
	if in.members, err = mmapio.NewReader(s.members, s.members.SegmentBytes(), membersWindow, b); err != nil {
		in.offsets.Close()
		return nil, err
	}
	return in, nil
}

func (in *input) Close() error { return errors.Join(in.offsets.Close(), in.members.Close()) }

// run reads the entries of a unit and the one after them. It is valid until the next call.
func (in *input) run(u unit) (multixact.Run, error) {
	n := u.multis()
	live := in.src.live
	follows := u.hi < 1<<32 && uint32(u.hi) != live.Next // the file holds the end of the last multi right after it
	if follows {
		n++
	}
	b, err := in.offsets.Bytes(in.src.layout.OffsetByte(uint32(u.lo)), 4*n)
	if err != nil {
		return multixact.Run{}, err
	}
	if follows {
		return multixact.Run{First: uint32(u.lo), Entries: multixact.OldEntries(b)}, nil
	}
	in.scratch = append(append(in.scratch[:0], multixact.OldEntries(b)...), 0)
	if multixact.After(uint32(u.hi-1)) == live.Next || n == 0 {
		return multixact.CloseRun(uint32(u.lo), in.scratch, live.NextOffset), nil
	}
	b, err = in.offsets.Bytes(in.src.layout.OffsetByte(multixact.FirstMulti), 4) // the multis wrap here
	if err != nil {
		return multixact.Run{}, err
	}
	in.scratch[n] = multixact.OldEntries(b)[0]
	return multixact.Run{First: uint32(u.lo), Entries: in.scratch}, nil
}

// memberPage is a page of the old members. An absent segment reads as zeros: whether a multi needs it has been asked before.
func (in *input) memberPage(page int64) ([]byte, error) {
	segment := page / slru.PagesPerSegment
	b, err := in.members.Bytes(segment*in.src.members.SegmentBytes(), int(in.src.members.SegmentBytes()))
	if err != nil {
		return nil, err
	}
	block := in.src.layout.BlockSize()
	return b[int(page%slru.PagesPerSegment)*block:][:block], nil
}
