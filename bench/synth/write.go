package synth

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

// writeMultixact writes the segments of a pg_multixact whose folders are there, in the order of the multis.
func writeMultixact(dir string, h Header, multis iter.Seq[Multi]) (Result, error) {
	w := writer{
		layout:  multixact.Old(h.BlockSize),
		offsets: newSegments(filepath.Join(dir, "offsets"), h.BlockSize),
		members: newSegments(filepath.Join(dir, "members"), h.BlockSize),
		multi:   max(h.First, multixact.FirstMulti),
		next:    h.FirstOffset,
	}
	result := Result{Range: multixact.Range{Oldest: w.multi}}
	for m := range multis {
		if m.Offset != 0 {
			w.jump(m.Offset)
		}
		if w.next == 0 {
			w.jump(1) // slot 0 is not given out as a first one (GetNewMultiXactId)
		}
		if result.First == 0 && !m.Lost {
			result.First = w.next
		}
		w.put(m)
		result.Members += uint64(len(m.Members))
		if w.err() != nil {
			break
		}
	}
	w.finish(h.Ahead)
	live := multixact.OldRange(result.Oldest, w.multi, w.next)
	result.Next, result.NextOffset = live.Next, live.NextOffset
	for _, s := range []*segments{w.offsets, w.members} {
		for _, pages := range s.pages {
			result.Files++
			result.Bytes += int64(pages * h.BlockSize)
		}
	}
	return result, w.err()
}

// A writer is where the next multi goes. The page of its entry and that of its first slot are looked up when they are
// needed, and only then come to be.
type writer struct {
	layout multixact.Layout

	offsets           *segments
	multi             uint32
	entries           []byte // the page of multi's entry,
	entry, entriesEnd int    // its place there, and where to leave the page

	members        *segments
	next           uint32
	slots          []byte // the page of the slot at next,
	slot, slotsEnd int    // its place there, and where to leave the page
}

func (w *writer) put(m Multi) {
	if w.entry == w.entriesEnd {
		w.turnEntries()
	}
	if !m.Lost {
		w.layout.SetEntry(w.entries, w.entry, uint64(w.next))
	}
	w.entry++
	w.multi = multixact.After(w.multi)
	for _, member := range m.Members {
		if w.slot == w.slotsEnd {
			w.turnSlots()
		}
		multixact.SetMember(w.slots, w.slot, member)
		w.slot++
		w.next++
	}
}

func (w *writer) turnEntries() {
	w.entries = w.offsets.page(w.layout.OffsetPage(w.multi))
	w.entry, w.entriesEnd = w.layout.OffsetEntry(w.multi), w.layout.EntriesPerPage()
}

// turnSlots finds the page of next. It is left at its end, or where the slots go on at 0.
func (w *writer) turnSlots() {
	next := uint64(w.next)
	w.slots = w.members.page(w.layout.MemberPage(next))
	w.slot = w.layout.MemberSlot(next)
	w.slotsEnd = int(min(uint64(w.layout.MembersPerPage()), uint64(w.slot)+multixact.OffsetSpace-next))
}

func (w *writer) jump(offset uint32) {
	w.next = offset
	w.slot = w.slotsEnd
}

// finish makes what a server reads first: the next multi's entry and the slot at the next offset have their pages, unless
// they are the first on one, which the server then makes (TrimMultiXact). The first pages of both are there from initdb on.
func (w *writer) finish(ahead bool) {
	if ahead {
		end := max(w.next, 1) // nextOffset is 0 then: the entry will not be, until the server starts again
		w.layout.SetEntry(w.offsets.page(w.layout.OffsetPage(w.multi)), w.layout.OffsetEntry(w.multi), uint64(end))
	}
	if page := w.layout.OffsetPage(w.multi); page == 0 || w.layout.OffsetEntry(w.multi) != 0 {
		w.offsets.page(page)
	}
	if page := w.layout.MemberPage(uint64(w.next)); page == 0 || w.layout.MemberSlot(uint64(w.next)) != 0 {
		w.members.page(page)
	}
	for _, s := range []*segments{w.offsets, w.members} {
		s.flush()
		s.wait()
	}
}

func (w *writer) err() error {
	if w.offsets.err != nil {
		return w.offsets.err
	}
	return w.members.err
}

// segments is an SLRU that is written a segment at a time, in the background. A segment that comes up again is read back. Its
// first error stays in err.
type segments struct {
	dir   string
	block int
	pages map[int64]int // the length of each segment that has been written
	err   error

	no   int64 // the segment that is held, -1 for none,
	buf  []byte
	held int // and its length in pages

	spare   []byte // the segment that is being written, or nothing
	writing sync.WaitGroup
	failure error
}

func newSegments(dir string, block int) *segments {
	size := slru.PagesPerSegment * block
	return &segments{dir: dir, block: block, pages: map[int64]int{}, no: -1, buf: make([]byte, size), spare: make([]byte, size)}
}

// page is page n of the SLRU, to be written to until the next call. The segment becomes long enough to hold it.
func (s *segments) page(n int64) []byte {
	no, i := n/slru.PagesPerSegment, int(n%slru.PagesPerSegment)
	if no != s.no {
		s.flush()
		s.load(no)
	}
	s.held = max(s.held, i+1)
	return s.buf[i*s.block:][:s.block]
}

func (s *segments) path(no int64) string { return filepath.Join(s.dir, slru.Short.Name(no)) }

func (s *segments) load(no int64) {
	clear(s.buf)
	s.no, s.held = no, s.pages[no]
	if s.held == 0 {
		return
	}
	s.wait()
	before, err := os.ReadFile(s.path(no))
	copy(s.buf, before)
	if s.err == nil {
		s.err = err
	}
}

// flush begins to write the segment that is held.
func (s *segments) flush() {
	if s.no < 0 {
		return
	}
	s.wait()
	s.pages[s.no] = s.held
	path, segment := s.path(s.no), s.buf[:s.held*s.block]
	s.buf, s.spare = s.spare, s.buf
	s.writing.Go(func() { s.failure = os.WriteFile(path, segment, 0o600) })
}

// wait waits until what flush began is done.
func (s *segments) wait() {
	s.writing.Wait()
	if s.err == nil && s.failure != nil {
		s.err = fmt.Errorf("writing a segment: %w", s.failure)
	}
}
