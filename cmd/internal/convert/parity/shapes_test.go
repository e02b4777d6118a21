package parity

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/bench/synth"
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

// The borders of the format at the usual block size.
var (
	oldPage        = multixact.Old(8192).EntriesPerPage()
	newPage        = multixact.New(8192).EntriesPerPage()
	membersPage    = multixact.Old(8192).MembersPerPage()
	oldSegment     = oldPage * slru.PagesPerSegment
	newSegment     = newPage * slru.PagesPerSegment
	membersSegment = membersPage * slru.PagesPerSegment
)

var (
	both   = []string{"18", "15"}
	only18 = []string{"18"}
	only15 = []string{"15"}
)

type header = synth.Header

// A parityTable is cases in the making.
type parityTable []parityCase

// add is for multixacts that write makes, once damage has been done to them.
func (p *parityTable) add(majors []string, name string, write func(dir string) (synth.Result, error), damage ...func(*testing.T, string)) {
	*p = append(*p, parityCase{name: name, majors: majors, prepare: injected(write, damage...)})
}

// parityCases are the clusters that pg_upgrade converts. What depends on where the live range or the members begin and end
// takes one each; all else stands side by side in a few.
func parityCases() (p parityTable) {
	p = parityTable{
		{name: "fresh", majors: both, prepare: func(*testing.T, *postgres.Cluster) {}},
		{name: "a workload", majors: both, prepare: worked},
	}
	p.add(only18, "no multi", listed(header{First: 77, FirstOffset: 7777}))
	p.add(both, "no multi, on page borders", listed(header{First: 2048, FirstOffset: 1636}))
	p.add(only18, "no multi, on segment borders", listed(header{First: 65536, FirstOffset: 52352}))
	p.add(only18, "no multi, next offset 0", listed(header{First: 9}))
	p.add(only18, "one multi", listed(header{}, singles(1)))
	p.add(only18, "one multi, a hole", listed(header{First: 3}, lost(1, 1)))
	p.add(both, "one multi, the highest", listed(header{First: math.MaxUint32, FirstOffset: 5}, singles(1)))
	p.add(both, "the highest multi, next multi 0", nextZero(listed(header{First: math.MaxUint32 - 9}, singles(10))))

	p.add(both, "members in every order", listed(header{}, orders))
	p.add(both, "1 to 200 members, the updater in every place", listed(header{FirstOffset: 700}, places))
	for seed, h := range []header{{}, {First: 12_345, FirstOffset: 67_890}, {First: math.MaxUint32 - 300_000, FirstOffset: math.MaxUint32 - 1_000_000},
		{FirstOffset: math.MaxUint32 - 7}, {First: math.MaxUint32}} {
		p.add([][]string{only18, only18, both, only15, only18}[seed], fmt.Sprintf("a million multis, seed %d", seed), synth.Shape{Header: h, Count: 1_000_000,
			MaxMembers: 1 + 3*seed, Updaters: 0.4, Holes: 0.01 * float64(seed), HoleRun: 1 + 9*seed, Seed: uint64(seed)}.Write)
	}
	p.addHoles()
	p.addDamaged()
	p.addRanges()
	p.addWraps()
	for i, c := range p {
		p[i].short = slices.Contains([]string{"fresh", "a workload", "members in every order", "both wraps at once"}, c.name)
	}
	return p
}

func (p *parityTable) addHoles() {
	p.add(both, "holes in every pattern at page and segment borders", listed(header{}, patterns))
	p.add(both, "holes and lengths of 0 in every order", listed(header{First: 1000}, kinds))
	p.add(only18, "only holes", listed(header{First: 3}, lost(3*newPage, 1)))
	p.add(both, "whole pages and segments of holes", listed(header{First: 3}, singles(newPage+20), lost(newPage, 1), singles(100), lost(oldPage, 2),
		singles(newPage), lost(5*oldPage, 1), singles(oldPage), lost(2*oldSegment, 1), singles(3)))
	for _, n := range [][2]int{{1, 1}, {newPage, newPage}, {3 * oldPage, 2*oldPage + 100}, {oldSegment + 5, newSegment + 5}} {
		p.add(only18, fmt.Sprintf("%d holes first, %d last", n[0], n[1]), listed(header{First: 1000}, lost(n[0], 2), singles(5000), lost(n[1], 3)))
	}
}

// addDamaged adds clusters in which segments are missing where no multi is that needs them, or are short.
func (p *parityTable) addDamaged() {
	p.add(only18, "a segment outside the live range", listed(header{First: 200_000, FirstOffset: 300_000}, singles(10)), zeros("offsets/0000", 1), zeros("members/0000", 32))
	p.add(both, "members of holes gone", listed(header{}, singles(100), lost(1500, 200), singles(100)),
		gone("members/0001"), gone("members/0002"), gone("members/0003"), gone("members/0004"))
	p.add(both, "members of holes gone around the offset wrap", listed(header{FirstOffset: math.MaxUint32 - 150_000}, singles(100), lost(1500, 200), singles(100)),
		gone("members/14077"), gone("members/14078"), gone("members/0000"), gone("members/0001"))

	offsets := listed(header{}, singles(2*oldSegment+5))
	p.add(only18, "an offsets segment short in the middle", offsets, cut("offsets/0000", 30*8192))
	p.add(only18, "an offsets segment cut within a page", offsets, cut("offsets/0001", 3*8192+1236))
	p.add(only18, "an offsets segment without a byte", offsets, cut("offsets/0000", 0))
	p.add(both, "the offsets short at the end", listed(header{First: 5}, singles(2*oldSegment-5)), cut("offsets/0001", 30*8192))
	p.add(only18, "the offsets short at the end of a page", listed(header{First: 5}, singles(7*oldPage-5)), cut("offsets/0000", 5*8192))

	members := listed(header{}, singles(2*membersSegment+5))
	p.add(both, "a members segment short in the middle", members, cut("members/0001", 11*8192))
	p.add(only18, "a members segment without a byte", members, cut("members/0000", 0))
	p.add(only18, "a members segment cut within a page", listed(header{}, places), cut("members/0002", 11*8192+1234))
	p.add(only18, "the members short at the end", listed(header{}, singles(2*membersSegment-1)), cut("members/0001", 20*8192))
	p.add(only18, "the members short at the end of a page", listed(header{}, singles(7*membersPage-1)), cut("members/0000", 5*8192))
}

// addRanges adds ranges that begin, end, and have as many multis that the new members end on, before and after borders.
func (p *parityTable) addRanges() {
	var near []int
	for _, border := range []int{newPage, oldPage, newSegment, oldSegment} {
		near = append(near, border-1, border, border+1)
	}
	add := func(majors []string, first, next int) {
		p.add(majors, fmt.Sprintf("multis %d to %d", first, next), synth.Shape{Header: header{First: uint32(first)},
			Count: uint32(next - first), MaxMembers: 2, Updaters: 0.3, Holes: 0.02, HoleRun: 2, Seed: uint64(first)}.Write)
	}
	for i, first := range near {
		add(only18, first, 2*oldSegment+near[(i+3)%len(near)])
		if i%3 == 0 {
			add(only15, first, 2*oldSegment+near[(i+8)%len(near)])
		}
	}
	for i, border := range []int{membersPage, 3 * membersPage, membersSegment} {
		for next := border - 1; next <= border+1; next++ {
			multis, slots := valid(next - 1)
			h := header{FirstOffset: uint32(3*membersSegment + next - slots)} // the old members end on, before or after a border, too
			p.add([][]string{both, only18, only18}[i], fmt.Sprintf("next offset %d", next), listed(h, multis))
		}
	}
}

// addWraps adds ranges that pass from the highest multi to 1, from the highest slot to 0 or 1, or both.
func (p *parityTable) addWraps() {
	const end = math.MaxUint32 // the highest multi, and the highest slot
	for i, next := range []int{1, 2, newPage - 1, newPage, newPage + 1, oldPage, newSegment, oldSegment + 1} {
		majors := only18
		if i == 0 {
			majors = both
		}
		p.add(majors, fmt.Sprintf("multi wrap, to %d", next), listed(header{First: end - uint32(i*newPage), FirstOffset: 40}, singles(i*newPage+next)))
	}
	p.add(both, "multi wrap among holes", listed(header{First: end - 1200}, singles(1000), lost(1300, 2), singles(500)))
	p.add(only18, "multi wrap before a hole", listed(header{First: end - 1000}, singles(1001), lost(1, 2), singles(500)))
	p.add(only18, "multi wrap after a hole", listed(header{First: end - 1000}, singles(1000), lost(1, 2), singles(500)))

	one := multixact.Member{XID: 77, Status: multixact.ForShare}
	updater := multixact.Member{XID: 78, Status: multixact.Update}
	p.add(both, "offset wrap, slot 0 empty", listed(header{FirstOffset: end - 199}, multi(2, 300)))
	p.add(only18, "offset wrap, slot 0 empty after one slot", listed(header{FirstOffset: end - 199}, singles(300)))
	p.add(only18, "offset wrap, slot 0 empty after a hole", listed(header{FirstOffset: end - 199}, singles(199), lost(1, 1), singles(100)))
	p.add(only18, "offset wrap, first entries unset", listed(header{FirstOffset: end - 199}, lost(50, 1), singles(300)))
	p.add(only18, "offset wrap, all before it unset", listed(header{FirstOffset: end - 199}, lost(200, 1), singles(300)))
	p.add(only18, "offset wrap, next offset 1", listed(header{FirstOffset: end - 200}, multi(2, 101)))
	for _, slot0 := range []multixact.Member{one, updater, {}, {Status: multixact.Update}} {
		for _, at := range []int{1, 100, 199} {
			majors := only18
			if at == 100 {
				majors = both
			}
			straddling := altered(multi(200, 1), func(multis []synth.Multi) { multis[0].Members[at] = slot0 })
			p.add(majors, fmt.Sprintf("offset wrap, slot 0 has xid %d as %v, %d after the first", slot0.XID, slot0.Status, at),
				listed(header{First: 5, FirstOffset: uint32(end - 1000 - at + 1)}, multi(10, 100), straddling, multi(3, 100)))
		}
	}
	p.add(only18, "both wraps, slot 0 empty", listed(header{First: 4294965760, FirstOffset: 4294962176}, multi(2, 6000)))
	p.add(only18, "both wraps, slot 0 used", listed(header{First: 4294965760, FirstOffset: 4294962177}, multi(2, 6000)))
	p.add(both, "both wraps at once", listed(header{First: end - 999, FirstOffset: end - 1998}, multi(2, 3000)))
	p.add(both, "both wraps at once, slot 0 empty", listed(header{First: end - 999, FirstOffset: end - 1999}, multi(2, 3000)))
	p.add(only18, "ends at 2^32 with a hole", listed(header{First: 9, FirstOffset: end - 19}, multi(2, 9), lost(1, 2)))
}

// A shape is multis in a row.
type shape func() []synth.Multi

// listed writes the multis of shapes, one after the other.
func listed(h header, shapes ...shape) func(dir string) (synth.Result, error) {
	return func(dir string) (synth.Result, error) {
		spec := synth.Spec{Header: h}
		for _, s := range shapes {
			spec.Multis = append(spec.Multis, s()...)
		}
		return synth.WriteMultis(dir, spec)
	}
}

// nextZero has pg_control say 0 for a nextMulti of 1, as real servers have done.
func nextZero(write func(dir string) (synth.Result, error)) func(dir string) (synth.Result, error) {
	return func(dir string) (synth.Result, error) {
		r, err := write(dir)
		r.Next = 0
		return r, err
	}
}

// altered is a shape with some of its multis changed.
func altered(s shape, change func(multis []synth.Multi)) shape {
	return func() []synth.Multi {
		multis := s()
		change(multis)
		return multis
	}
}

// multi is n multis of so many members. No two members near each other are alike.
func multi(members, n int) shape {
	return func() []synth.Multi {
		multis := make([]synth.Multi, n)
		all := make([]multixact.Member, members*n)
		for i := range all {
			all[i] = locker(i)
		}
		for i := range multis {
			multis[i].Members = all[i*members:][:members]
		}
		return multis
	}
}

func singles(n int) shape { return multi(1, n) }

func locker(i int) multixact.Member {
	return multixact.Member{XID: uint32(1000 + i), Status: multixact.Status(i % 4)}
}

// lost is n holes, each of which has taken so many slots.
func lost(n, members int) shape {
	return altered(multi(members, n), func(multis []synth.Multi) {
		for i := range multis {
			clear(multis[i].Members)
			multis[i].Lost = true
		}
	})
}

// valid is n multis with members, some holes among them, and the slots that they take. The multi before a hole is lost with it.
func valid(n int) (s shape, slots int) {
	every := func(i int) []synth.Multi {
		m := synth.Multi{Members: []multixact.Member{locker(3 * i), locker(3*i + 1), locker(3*i + 2)}[:1+i%3]}
		if i%50 != 49 {
			return []synth.Multi{m}
		}
		return append(append([]synth.Multi{m}, singles(1)()...), lost(1+i%4, 2)()...)
	}
	for i := range n {
		for _, m := range every(i) {
			slots += len(m.Members)
		}
	}
	return func() (multis []synth.Multi) {
		for i := range n {
			multis = append(multis, every(i)...)
		}
		return multis
	}, slots
}

// orders is a multi for every order of up to six members that are lockers or updaters, with an xid or without, as long as it has not two
// updaters of which the second would replace the first.
func orders() (multis []synth.Multi) {
	xid := uint32(1000)
	for n := 1; n <= 6; n++ {
		for code := range 1 << (2 * n) {
			m := synth.Multi{Members: make([]multixact.Member, n)}
			for i := range m.Members {
				kind := code >> (2 * i) & 3
				status := multixact.Status(xid % 4)
				if kind&1 != 0 {
					status = []multixact.Status{multixact.NoKeyUpdate, multixact.Update, 6, 255}[xid%4]
				}
				xid++
				m.Members[i] = multixact.Member{XID: xid * uint32(1-kind>>1), Status: status}
			}
			if _, ok := multixact.Select(m.Members); ok {
				multis = append(multis, m)
			}
		}
	}
	return multis
}

// places is a multi for every length from 1 to 200, without an updater and with one in every place.
func places() (multis []synth.Multi) {
	for n := 1; n <= 200; n++ {
		group := multi(n, n+1)()
		for i := range n {
			group[i].Members[i].Status = multixact.NoKeyUpdate + multixact.Status(i%2)
		}
		multis = append(multis, group...)
	}
	return multis
}

// patterns is one multi after the other from 1 on, with holes around page borders of the new format: every pattern of the eight entries
// next to a border, on borders that are pages of the old format too, and on those that are not; and of the four next to segment borders.
func patterns() []synth.Multi {
	multis := singles(33 * newSegment)()
	for page := 1; page*newPage+4 <= len(multis); page++ {
		bits := (page/2 + page/512) % 256 // not the same ones at segment borders in each round
		if page%slru.PagesPerSegment == 0 {
			bits = page / slru.PagesPerSegment / 2 % 16 << 2
		}
		for i := range 8 {
			multis[page*newPage-1-4+i].Lost = bits>>i&1 != 0
		}
	}
	return multis
}

// kinds is every order of six that are valid, unset or of no length.
func kinds() (multis []synth.Multi) {
	for code := range 3 * 3 * 3 * 3 * 3 * 3 {
		for range 6 {
			m := locker(len(multis))
			multis = append(multis, [][]synth.Multi{{{Members: []multixact.Member{m}}}, lost(1, 1)(), {{}}}[code%3]...)
			code /= 3
		}
	}
	return multis
}

// damage to a segment of a pg_multixact, before it is put into the old cluster.
func damage(name string, f func(path string) error) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := f(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func gone(name string) func(*testing.T, string) { return damage(name, os.Remove) }

func cut(name string, bytes int64) func(*testing.T, string) {
	return damage(name, func(path string) error { return os.Truncate(path, bytes) })
}

func zeros(name string, pages int) func(*testing.T, string) {
	return damage(name, func(path string) error { return os.WriteFile(path, make([]byte, pages*8192), 0o600) })
}
