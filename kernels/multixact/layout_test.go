package multixact

import "testing"

// The figures are PostgreSQL's own: see the comments of multixact.c, and DESIGN's table.
func TestLayoutOf8kPages(t *testing.T) {
	old, new := Old(8192), New(8192)
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"old entries a page", int64(old.EntriesPerPage()), 2048},
		{"new entries a page", int64(new.EntriesPerPage()), 1024},
		{"members a page", int64(old.MembersPerPage()), 1636},
		{"new members a page", int64(new.MembersPerPage()), 1636},
		{"page of the last old entry", old.OffsetPage(1<<32 - 1), 2097151},
		{"page of the last new entry", new.OffsetPage(1<<32 - 1), 4194303},
		{"page of the last old member", old.MemberPage(OffsetSpace - 1), 2625285},
		{"slot of the last old member", int64(old.MemberSlot(OffsetSpace - 1)), 1035},
		{"entry of multi 2049", int64(old.OffsetEntry(2049)), 1},
		{"byte of multi 3", new.OffsetByte(3), 24},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
}

func TestMembersStandInGroups(t *testing.T) {
	page := make([]byte, 8192)
	SetMember(page, 5, Member{0x01020304, Update})
	if page[20+1] != byte(Update) && littleEndian {
		t.Error("the status of slot 5 is not the second byte of the second group")
	}
	if got := MemberAt(page, 5); got != (Member{0x01020304, Update}) {
		t.Errorf("slot 5 holds %v", got)
	}
	for _, slot := range []int{0, 4, 6, 7, 8, 1635} {
		if got := MemberAt(page, slot); got != (Member{}) {
			t.Errorf("slot %d holds %v, though only 5 was set", slot, got)
		}
	}
	SetMember(page, 1635, Member{1<<32 - 1, ForShare})
	for i := 8180; i < 8192; i++ {
		if page[i] != 0 {
			t.Fatalf("the last slot reaches into unused byte %d", i)
		}
	}
}

func TestRange(t *testing.T) {
	for _, c := range []struct {
		name    string
		r       Range
		len     uint64
		last    uint32
		in, out []uint32
		wraps   bool
	}{
		{"zeros stand for 1", OldRange(0, 0, 1), 0, 0, nil, []uint32{0, 1, 2}, false},
		{"plain", OldRange(5, 8, 20), 3, 7, []uint32{5, 7}, []uint32{4, 8, 0}, false},
		{"to the last multi", OldRange(1<<32-2, 0, 20), 2, 1<<32 - 1, []uint32{1<<32 - 2, 1<<32 - 1}, []uint32{0, 1}, true},
		{"past it", OldRange(1<<32-2, 3, 20), 4, 2, []uint32{1<<32 - 1, 1, 2}, []uint32{0, 3}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.r.Len() != c.len || c.r.Wraps() != c.wraps {
				t.Errorf("%d multis, wraps %t", c.r.Len(), c.r.Wraps())
			}
			n := uint64(0)
			for multi := range c.r.All() {
				n++
				if !c.r.Contains(multi) {
					t.Errorf("%d is yielded and not contained", multi)
				}
			}
			if n != c.len {
				t.Errorf("All yields %d multis", n)
			}
			if c.len > 0 && c.r.Last() != c.last {
				t.Errorf("last is %d", c.r.Last())
			}
			for _, multi := range c.in {
				if !c.r.Contains(multi) {
					t.Errorf("%d is not contained", multi)
				}
			}
			for _, multi := range c.out {
				if c.r.Contains(multi) {
					t.Errorf("%d is contained", multi)
				}
			}
		})
	}
	if got := OldRange(1, 5, 0).NextOffset; got != OffsetSpace {
		t.Errorf("nextOffset 0 of a live range means %d", got)
	}
	if got := OldRange(5, 5, 0).NextOffset; got != 0 {
		t.Errorf("nextOffset 0 of an empty range means %d", got)
	}
}
