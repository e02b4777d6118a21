package synth_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mxwiden/mxwiden/bench/synth"
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

// random is n multis of 1 to longest members, some of them lost.
func random(n, longest int) []synth.Multi {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(longest)))
	multis := make([]synth.Multi, n)
	for i := range multis {
		m := &multis[i]
		m.Lost = rng.IntN(20) == 0
		for range 1 + rng.IntN(longest) {
			m.Members = append(m.Members, multixact.Member{XID: 3 + rng.Uint32N(math.MaxUint32-3), Status: multixact.Status(rng.IntN(4))})
		}
		if rng.IntN(2) == 0 {
			m.Members[rng.IntN(len(m.Members))].Status = multixact.Update
		}
	}
	return multis
}

// reader reads the cluster in dir one page at a time.
func reader(t *testing.T, dir string, block int, live multixact.Range) multixact.Reader {
	t.Helper()
	return multixact.Reader{Layout: multixact.Old(block), Range: live,
		Offsets: pages(t, dir, "offsets", block), Members: pages(t, dir, "members", block)}
}

func pages(t *testing.T, dir, name string, block int) multixact.Pages {
	t.Helper()
	d, err := slru.Open(filepath.Join(dir, "pg_multixact", name), slru.Short, block)
	if err != nil {
		t.Fatal(err)
	}
	if foreign := d.Foreign(); len(foreign) > 0 {
		t.Fatalf("%s holds %v", name, foreign)
	}
	buf, held := make([]byte, block), int64(-1)
	return func(n int64) ([]byte, error) {
		if n == held {
			return buf, nil
		}
		held = n
		return buf, d.ReadPage(n, buf)
	}
}

// control is what pg_control says.
func control(t *testing.T, dir string) pgdata.Control {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "global", "pg_control"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := pgdata.ParseControl(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What WriteMultis writes, the plain reader reads, whatever borders are in between.
func TestMultisReadBack(t *testing.T) {
	perPage := func(block int) uint32 { return uint32(multixact.Old(block).EntriesPerPage()) }
	for _, block := range []int{1024, 2048, 4096, 8192, 16384, 32768} {
		for _, c := range []struct {
			name                 string
			first, next, longest uint32
			n                    int
		}{
			{"none", 1, 1, 1, 0},
			{"one", 1, 1, 1, 1},
			{"to the end of a page", 1, 1, 3, int(perPage(block)) - 1},
			{"past the end of a page", 1, 1, 3, int(perPage(block))},
			{"past the end of a segment", 32*perPage(block) - 2, 4 * 409 * 32, 5, 100},
			{"long", 700, 7, 200, 300},
			{"multi wrap", math.MaxUint32 - 20, 5, 4, 300},
			{"offset wrap, slot 0 used", 5, math.MaxUint32 - 100, 7, 300},
			{"offset wrap, slot 0 empty", 5, math.MaxUint32 - 100, 1, 300},
			{"both wraps", math.MaxUint32 - 50, math.MaxUint32 - 100, 3, 300},
			{"to 2^32", 9, math.MaxUint32 - 2, 1, 3},
		} {
			t.Run(fmt.Sprint(block, " ", c.name), func(t *testing.T) {
				dir := t.TempDir()
				multis := random(c.n, int(c.longest))
				spec := synth.Spec{Header: synth.Header{BlockSize: block, First: c.first, FirstOffset: c.next}, Multis: multis}
				result, err := synth.WriteMultis(dir, spec)
				if err != nil {
					t.Fatal(err)
				}
				pg := control(t, dir)
				live := multixact.OldRange(pg.OldestMulti, pg.NextMulti, uint32(pg.NextOffset))
				live.First = result.First
				if live != result.Range || live.Oldest != c.first || live.Len() != uint64(c.n) || int(pg.BlockSize) != block {
					t.Errorf("pg_control has %+v, want %d multis from %d on, and %+v", live, c.n, c.first, result.Range)
				}
				same(t, reader(t, dir, block, result.Range), multis)
			})
		}
	}
}

func same(t *testing.T, r multixact.Reader, multis []synth.Multi) {
	t.Helper()
	multi := r.Range.Oldest
	for i, m := range multis {
		got, err := r.Multi(multi)
		hole := m.Lost || i+1 < len(multis) && multis[i+1].Lost
		if hole != multixact.Hole(err) || !hole && !slices.Equal(got, m.Members) {
			t.Fatalf("multi %d is %v, %v; want %+v", multi, got, err, m)
		}
		multi = multixact.After(multi)
	}
}

// Where an allocation would begin in slot 0, the slot stays empty.
func TestSlot0(t *testing.T) {
	two := []multixact.Member{{XID: 10}, {XID: 11, Status: multixact.Update}}
	for _, c := range []struct {
		firstOffset uint32
		entries     []uint64 // the last is the next multi's
		next        uint64
	}{
		{math.MaxUint32 - 3, []uint64{math.MaxUint32 - 3, math.MaxUint32 - 1, 1, 3}, 3},
		{math.MaxUint32 - 2, []uint64{math.MaxUint32 - 2, math.MaxUint32, 1, 3}, 3},
		{math.MaxUint32 - 5, []uint64{math.MaxUint32 - 5, math.MaxUint32 - 3, math.MaxUint32 - 1, 1}, 1 << 32},
		{0, []uint64{1, 3, 5, 7}, 7},
	} {
		dir := t.TempDir()
		result, err := synth.WriteMultis(dir, synth.Spec{
			Header: synth.Header{FirstOffset: c.firstOffset, Ahead: true},
			Multis: []synth.Multi{{Members: two}, {Members: two}, {Members: two}}})
		if err != nil {
			t.Fatal(err)
		}
		r := reader(t, dir, 8192, result.Range)
		for i, want := range c.entries {
			if got, err := r.Entry(1 + uint32(i)); got != want || err != nil {
				t.Errorf("from %d: entry of multi %d is %d, %v, want %d", c.firstOffset, i+1, got, err, want)
			}
		}
		if inControl := control(t, dir).NextOffset; result.NextOffset != c.next || inControl != uint64(uint32(c.next)) {
			t.Errorf("from %d: next offset is %d and %d in pg_control, want %d", c.firstOffset, result.NextOffset, inControl, c.next)
		}
	}
}

// Multis that no server would make stand on disk as they were asked for.
func TestUnsound(t *testing.T) {
	dir := t.TempDir()
	one := []multixact.Member{{XID: 10, Status: 9}}
	two := []multixact.Member{{XID: 0, Status: multixact.Update}, {XID: 12, Status: multixact.NoKeyUpdate}}
	result, err := synth.WriteMultis(dir, synth.Spec{
		Header: synth.Header{FirstOffset: 100, Ahead: true, Control: func(c *pgdata.Control) {
			c.NextMulti, c.State = 0, pgdata.InProduction
		}},
		Multis: []synth.Multi{{Members: one}, {}, {Members: two}, {Members: one, Offset: 50}, {Members: two, Lost: true},
			{Members: one, Offset: 90000}}})
	if err != nil {
		t.Fatal(err)
	}
	if c := control(t, dir); c.NextMulti != 0 || c.State != pgdata.InProduction {
		t.Errorf("pg_control is %+v, want it changed", c)
	}
	r := reader(t, dir, 8192, result.Range)
	for multi, want := range map[uint32]uint64{1: 100, 2: 101, 3: 101, 4: 50, 5: 0, 6: 90000, 7: 90001} {
		if got, err := r.Entry(multi); got != want || err != nil {
			t.Errorf("entry of multi %d is %d, %v, want %d", multi, got, err, want)
		}
	}
	page, err := r.Members(0)
	if err != nil {
		t.Fatal(err)
	}
	for slot, want := range map[int]multixact.Member{100: one[0], 101: two[0], 102: two[1], 50: one[0], 51: two[0], 52: two[1]} {
		if got := multixact.MemberAt(page, slot); got != want {
			t.Errorf("slot %d has %+v, want %+v", slot, got, want)
		}
	}
}

// Going back to a segment keeps what is in it.
func TestSegmentComesUpAgain(t *testing.T) {
	dir := t.TempDir()
	one := []multixact.Member{{XID: 10}}
	result, err := synth.WriteMultis(dir, synth.Spec{Multis: []synth.Multi{
		{Members: one, Offset: 7}, {Members: one, Offset: 1 << 20}, {Members: one, Offset: 9}}})
	if err != nil {
		t.Fatal(err)
	}
	page, err := reader(t, dir, 8192, result.Range).Members(0)
	if err != nil || multixact.MemberAt(page, 7) != one[0] || multixact.MemberAt(page, 9) != one[0] {
		t.Errorf("a slot of the first segment is lost: %v, %v, %v", multixact.MemberAt(page, 7), multixact.MemberAt(page, 9), err)
	}
}

// A shape has what was asked for, and is the same whenever it is written.
func TestShape(t *testing.T) {
	shape := synth.Shape{Header: synth.Header{First: 1 << 30, FirstOffset: math.MaxUint32 - 50000, Version: "9.3"}, Count: 50000,
		MinMembers: 2, MaxMembers: 6, Updaters: 0.25, Holes: 0.1, HoleRun: 5, Seed: 1}
	dir := filepath.Join(t.TempDir(), "new")
	result, err := shape.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	if c := control(t, dir); c.Major() != "9.3" {
		t.Errorf("pg_control is of version %s", c.Major())
	}
	r := reader(t, dir, 8192, result.Range)
	var unset, read, updaters, members int
	for multi := range result.All() {
		entry, err := r.Entry(multi)
		if err != nil {
			t.Fatal(err)
		}
		if entry == 0 {
			unset++
		}
		got, err := r.Multi(multi)
		if multixact.Hole(err) {
			continue
		}
		if err != nil || len(got) < 2 || len(got) > 6 {
			t.Fatalf("multi %d is %v, %v", multi, got, err)
		}
		read, members = read+1, members+len(got)
		n := 0
		for i, m := range got {
			if m.Status.Updater() {
				n++
			}
			if m.XID < 3 || i > 0 && m.XID <= got[i-1].XID {
				t.Fatalf("multi %d has xids out of order or none: %v", multi, got)
			}
		}
		if n > 1 {
			t.Fatalf("multi %d has %d updaters", multi, n)
		}
		updaters += n
	}
	near := func(what string, got, of int, want float64) {
		if share := float64(got) / float64(of); math.Abs(share-want) > 0.05*want {
			t.Errorf("%s are %.3f, want %.3f", what, share, want)
		}
	}
	near("holes", unset, 50000, 0.1)
	near("updaters", updaters, read, 0.25)
	near("members a multi", members, read, 4)

	again, other := filepath.Join(t.TempDir(), "again"), filepath.Join(t.TempDir(), "other")
	if _, err := shape.Write(again); err != nil {
		t.Fatal(err)
	}
	shape.Seed++
	if _, err := shape.Write(other); err != nil {
		t.Fatal(err)
	}
	if hash(t, dir) != hash(t, again) {
		t.Error("the same shape is not the same the second time")
	}
	if hash(t, dir) == hash(t, other) {
		t.Error("another seed makes no difference")
	}
	if bytes, files := size(t, dir); bytes != result.Bytes || files != result.Files {
		t.Errorf("said %d bytes in %d files, wrote %d in %d", result.Bytes, result.Files, bytes, files)
	}
}

// hash is a hash over all files.
func hash(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintln(sum, path[len(dir):], len(text))
		sum.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// size is the size of all segments.
func size(t *testing.T, dir string) (bytes int64, files int) {
	t.Helper()
	for _, name := range []string{"offsets", "members"} {
		d, err := slru.Open(filepath.Join(dir, "pg_multixact", name), slru.Short, 8192)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range d.Segments(0, 1<<20) {
			bytes, files = bytes+s.Size, files+1
		}
	}
	return bytes, files
}

func TestRefusals(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (synth.Shape{Count: 1}).Write(full); !errors.Is(err, fs.ErrExist) {
		t.Errorf("writing into a folder with something in it: got %v", err)
	}
	for name, shape := range map[string]synth.Shape{
		"block size": {Header: synth.Header{BlockSize: 3000}},
		"version":    {Header: synth.Header{Version: "9.2"}},
		"format":     {Header: synth.Header{Version: "19"}},
		"holes":      {Holes: 1},
	} {
		if _, err := shape.Write(t.TempDir()); err == nil {
			t.Errorf("a wrong %s is taken", name)
		}
	}
}
