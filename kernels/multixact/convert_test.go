package multixact

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// shapes are the places at which something is different: borders of pages, both wraps, and both of them at once.
func shapes() (list []struct{ oldest, offset uint32 }) {
	for _, oldest := range []uint32{1, 2, 255, 256, 1<<32 - 300, 1<<32 - 1} {
		for _, offset := range []uint32{1, 203, 204, 205, 1<<32 - 1000, 1<<32 - 7, 1<<32 - 2, 1<<32 - 1} {
			list = append(list, struct{ oldest, offset uint32 }{oldest, offset})
		}
	}
	return list
}

func eachModel(t *testing.T, test func(t *testing.T, m *model)) {
	for _, s := range shapes() {
		for _, most := range []int{1, 3, 300} {
			for _, holes := range []float64{0, 0.1, 0.9} {
				for _, count := range []int{0, 1, 600} {
					if count < 600 && (holes > 0.1 || most == 3) {
						continue
					}
					rng := rand.New(rand.NewPCG(uint64(s.oldest), uint64(s.offset)+uint64(most)))
					m := newModel(rng, 1024, s.oldest, s.offset, count, most, holes)
					t.Run(fmt.Sprintf("%d multis from %d at %d of %d members, holes %v", count, s.oldest, s.offset, most, holes), func(t *testing.T) { test(t, m) })
				}
			}
		}
	}
}

func TestWideningKeepsEveryMember(t *testing.T) {
	eachModel(t, checkWidening)
}

func checkWidening(t *testing.T, m *model) {
	var slotZero uint32
	if page := m.members[0]; page != nil {
		slotZero = MemberAt(page, 0).XID
	}
	w := NewWidening(m.r, slotZero)
	layout := New(m.layout.BlockSize())
	new := &Reader{Layout: layout, Range: NewRange(m.r.Oldest, m.r.Next, w.NextOffset())}
	offsets, members := pages{}, pages{}
	new.Offsets, new.Members = offsets.get, members.get

	set := func(multi uint32, offset uint64) {
		layout.SetEntry(offsets.at(layout.OffsetPage(multi), layout.BlockSize()), layout.OffsetEntry(multi), offset)
	}
	for _, run := range m.runs(100) {
		dst := make([]uint64, run.Len())
		w.Entries(dst, run.Entries[:run.Len()])
		for i, offset := range dst {
			if want := w.Offset(uint64(run.Entries[i])); offset != want {
				t.Fatalf("entry %d becomes %d, by the plain rule %d", run.Entries[i], offset, want)
			}
			set(run.First+uint32(i), offset)
		}
	}
	set(m.r.Next, w.NextOffset())
	old := func(n int64) ([]byte, error) { return m.members.at(n, layout.BlockSize()), nil }
	for page := layout.MemberPage(w.First()); page <= layout.MemberPage(w.NextOffset()); page += 3 {
		window := make([]byte, 3*layout.BlockSize())
		for i := range window {
			window[i] = 0xAA
		}
		if err := w.Members(layout, window, page, old); err != nil {
			t.Fatal(err)
		}
		for i := range int64(3) {
			members[page+i] = window[i*int64(layout.BlockSize()):][:layout.BlockSize()]
		}
	}

	reader := m.reader()
	for multi := range m.r.All() {
		want, err := reader.Multi(multi)
		got, newErr := new.Multi(multi)
		if Hole(err) {
			if newErr == nil {
				t.Fatalf("multi %d is a hole, and reads as %v", multi, got)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if newErr != nil && !errors.Is(newErr, ErrXID) {
			t.Fatalf("multi %d: %v", multi, newErr)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("multi %d: %v, want %v", multi, got, want)
		}
	}
}

func TestRewritingKeepsTheMemberThatSelectDoes(t *testing.T) {
	eachModel(t, func(t *testing.T, m *model) {
		for _, most := range []int{1, 77, 1 << 20} {
			checkRewriting(t, m, most)
		}
	})
}

func checkRewriting(t *testing.T, m *model, most int) {
	layout := m.layout
	reader := m.reader()
	var wantOffsets []uint64
	var wantMembers []Member
	var wantRefused []uint32
	next, prev := uint64(1), false
	for multi := range m.r.All() {
		members, err := reader.Multi(multi)
		valid := err == nil
		if !valid && !Hole(err) {
			t.Fatal(err)
		}
		offset := uint64(0)
		if valid || prev {
			offset = next
		}
		wantOffsets = append(wantOffsets, offset)
		if valid {
			kept, ok := Select(members)
			if !ok {
				wantRefused = append(wantRefused, multi)
			}
			wantMembers = append(wantMembers, kept)
			next++
		}
		prev = valid
	}

	var refused []uint32
	selection := Selection{Layout: layout, Old: m.members.get, TwoUpdaters: func(multi uint32) { refused = append(refused, multi) }}
	window := make([]byte, (int(layout.MemberPage(next))+1)*layout.BlockSize())
	base, prev := uint64(1), false
	cursor := Cursor{Slot: 1}
	var offsets []uint64
	for _, run := range m.runs(most) {
		dst := make([]uint64, run.Len())
		if got := run.Steps().Rising; base+uint64(got) != run.Number(dst, prev, base) {
			t.Fatalf("run of %d: %d steps rise, numbered otherwise", run.First, got)
		}
		base += uint64(run.Steps().Rising)
		prev = run.Valid(run.Len() - 1)
		offsets = append(offsets, dst...)

		// in pieces, so that every border is met
		cursor.Multi = 0
		for cursor.Multi < run.Len() && cursor.Slot < next {
			if at := run.Skip(int(cursor.Slot - (base - uint64(run.Steps().Rising)))); at != run.Len() && !run.Valid(at) {
				t.Fatal("skipped to a hole")
			}
			var err error
			if cursor, err = selection.Fill(window, 0, run, cursor, min(cursor.Slot+97, next)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if base != next || !slices.Equal(offsets, wantOffsets) {
		t.Fatalf("offsets differ: next %d, want %d", base, next)
	}
	if !slices.Equal(refused, wantRefused) {
		t.Fatalf("refused %v, want %v", refused, wantRefused)
	}
	for i, want := range wantMembers {
		slot := uint64(i + 1)
		page := window[int(layout.MemberPage(slot))*layout.BlockSize():][:layout.BlockSize()]
		if got := MemberAt(page, layout.MemberSlot(slot)); got != want {
			t.Fatalf("slot %d holds %v, want %v", slot, got, want)
		}
	}
}

// The fold of pg_upgrade, in every order of what it tells apart.
func TestSelect(t *testing.T) {
	lock, share, none := Member{7, ForKeyShare}, Member{8, ForShare}, Member{0, ForUpdate}
	update, odd, lost := Member{9, Update}, Member{10, 77}, Member{0, NoKeyUpdate}
	for _, c := range []struct {
		members []Member
		kept    Member
		ok      bool
	}{
		{nil, Member{}, true},
		{[]Member{lock, share}, lock, true},
		{[]Member{none, share}, share, true},
		{[]Member{none}, none, true},
		{[]Member{lock, update, share}, update, true},
		{[]Member{odd, lock}, odd, true},
		{[]Member{lost, lock}, lock, true},           // xid 0 is replaced, even that of an updater
		{[]Member{lost, lock, update}, update, true}, // and then it is no longer in the way
		{[]Member{update, lock, update}, update, false},
		{[]Member{lost, update}, lost, false},
		{[]Member{odd, odd}, odd, false},
	} {
		kept, ok := Select(c.members)
		if kept != c.kept || ok != c.ok {
			t.Errorf("of %v, %v is kept (%t), want %v (%t)", c.members, kept, ok, c.kept, c.ok)
		}
		m := &model{layout: Old(1024), offsets: pages{}, members: pages{}}
		for i, member := range c.members {
			m.setMember(203+uint32(i), member) // across a page border
		}
		refused := 0
		s := Selection{Layout: m.layout, Old: m.members.get, TwoUpdaters: func(uint32) { refused++ }}
		if kept, err := s.selectOne(5, 203, uint32(len(c.members))); err != nil || kept != c.kept && c.ok || (refused == 0) != c.ok {
			t.Errorf("of %v on pages, %v is kept, refused %d, error %v", c.members, kept, refused, err)
		}
	}
}

// The multi that ends exactly at 2^32 is live though the next entry is 0, and nextOffset too.
func TestMultiThatEndsAtTheBoundaryIsLive(t *testing.T) {
	for _, length := range []uint32{1, 2, 9, 1 << 20, 1<<31 - 1} {
		r := CloseRun(7, []uint32{5, -length, 0}, OffsetSpace)
		if offset, got := r.Extent(1); offset != -length || got != length {
			t.Errorf("a multi of %d members up to 2^32 reads as %d at %d", length, got, offset)
		}
		if got := r.Steps().Rising; got != 1 { // from 5 up to it is below zero as an int32, or past 2^31
			if length > 1<<31-5 && got == 2 {
				continue
			}
			t.Errorf("%d members: %d valid", length, got)
		}
	}
	for _, offset := range []uint32{1, 2, 1 << 31, 1<<31 - 1} {
		r := CloseRun(7, []uint32{offset, 0}, OffsetSpace)
		if steps := r.Steps(); steps.Falling != 1 && offset != 1<<31 {
			t.Errorf("from %d to 2^32 is more than an int32 holds: %+v", offset, steps)
		}
	}
}

// What lies past the live range is told before it is walked.
func TestLengthPastTheLiveRange(t *testing.T) {
	m := newModel(rand.New(rand.NewPCG(1, 2)), 1024, 10, 100, 5, 4, 0)
	m.setEntry(13, 1<<30)
	if _, err := m.reader().Multi(12); !errors.Is(err, ErrPast) {
		t.Errorf("multi 12: %v", err)
	}
	if _, err := m.reader().Multi(13); !errors.Is(err, ErrLength) || Hole(err) {
		t.Errorf("multi 13: %v", err)
	}
}

func FuzzConversions(f *testing.F) {
	f.Add(uint64(1), uint32(1), uint32(1), uint16(100), uint8(4), uint8(20))
	f.Add(uint64(2), uint32(1<<32-50), uint32(1<<32-90), uint16(300), uint8(9), uint8(3))
	f.Add(uint64(3), uint32(1<<32-1), uint32(1<<32-2), uint16(2), uint8(2), uint8(0))
	f.Fuzz(func(t *testing.T, seed uint64, oldest, offset uint32, count uint16, most, holes uint8) {
		if offset == 0 {
			offset = 1
		}
		m := newModel(rand.New(rand.NewPCG(seed, 0)), 1024, oldest, offset, int(count%2048), 1+int(most), float64(holes)/256)
		checkWidening(t, m)
		checkRewriting(t, m, 1+int(seed%500))
	})
}
