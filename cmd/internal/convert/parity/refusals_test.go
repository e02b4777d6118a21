package parity

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/bench/postgres/postgrestest"
	"github.com/mxwiden/mxwiden/bench/synth"
	"github.com/mxwiden/mxwiden/cmd/internal/convert"
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

// Where pg_upgrade gives up at the first thing that is wrong, mode rewrite names all of them, and writes nothing. Mode widen, which drops nothing,
// carries what can be read.
func TestParityOfRefusals(t *testing.T) {
	eachParityCase(t, refusedCases(), func(t *testing.T, old, new *postgres.Cluster, c parityCase) {
		before := postgrestest.Hash(t, old.Dir)
		out, _, err := output(t, old, convert.Rewrite, "stage")
		var refused *convert.RefusedError
		if errors.As(err, &refused) {
			if got := findingsOf(refused.Findings); !slices.Equal(got, c.wrong) {
				t.Errorf("refused for %v, want %v", got, c.wrong)
			}
		} else if c.wrong != nil || !errors.Is(err, convert.ErrMissing) {
			t.Errorf("got %v, want %v", err, c.wrong)
		}
		if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the output folder is there: %v", err)
		}
		if readable := c.wrong != nil && c.wrong[0].kind != convert.MissingSegment; readable {
			verify(t, old.Dir, widened(t, old), convert.Widen)
		} else if _, _, err := output(t, old, convert.Widen, "stage"); err == nil {
			t.Error("mode widen converts what it cannot read")
		}
		if postgrestest.Hash(t, old.Dir) != before {
			t.Error("the old cluster is not as it was")
		}
		if said, err := postgres.Upgrade(old, new); err == nil || !strings.Contains(said, c.says) {
			t.Errorf("pg_upgrade does not say %q: %v\n%s", c.says, err, said)
		}
	})
}

func findingsOf(list []convert.Finding) (all []wrong) {
	for _, f := range list {
		all = append(all, wrong{f.Kind, f.Multi, f.Segment})
	}
	return all
}

func refusedCases() []parityCase {
	crowded := altered(multi(200, 3000), func(multis []synth.Multi) {
		updating(multis[0], 0, 199)
		updating(multis[261], 150, 151) // between them is the border of a segment
		multis[2998].Members[7] = multixact.Member{Status: multixact.Update}
		updating(multis[2998], 8)
		multis[2999].Members[0] = multixact.Member{Status: multixact.NoKeyUpdate} // which a locker replaces
		updating(multis[2999], 2)
	})
	straddling := altered(multi(5, 4), func(multis []synth.Multi) { updating(multis[2], 1, 4) })
	negative := altered(multi(3, 2000), func(multis []synth.Multi) {
		multis[101].Offset, multis[102].Offset = 5000, 400 // from 301 up, and back
	})
	all := altered(multi(3, 2000), func(multis []synth.Multi) {
		updating(multis[50], 0, 1)
		multis[101].Offset = 200
	})
	return []parityCase{
		{name: "two updaters", majors: both, short: true, prepare: injected(listed(header{}, crowded)), says: "multixact 1 has more than one updating member",
			wrong: []wrong{{convert.TwoUpdaters, 1, ""}, {convert.TwoUpdaters, 262, ""}, {convert.TwoUpdaters, 2999, ""}}},
		{name: "two updaters around slot 0", majors: only18, prepare: injected(listed(header{FirstOffset: math.MaxUint32 - 11}, straddling)), says: "multixact 3 has more than one updating member",
			wrong: []wrong{{convert.TwoUpdaters, 3, ""}}},
		{name: "lengths below zero", majors: both, prepare: injected(listed(header{}, negative)), says: "multixact 102 has an invalid length (-4600)",
			wrong: []wrong{{convert.NegativeLength, 102, ""}}},
		{name: "both", majors: only18, prepare: injected(listed(header{}, all)), says: "multixact 51 has more than one updating member",
			wrong: []wrong{{convert.NegativeLength, 101, ""}, {convert.TwoUpdaters, 51, ""}}},
		{name: "members gone", majors: both, prepare: injected(listed(header{}, multi(200, 3000)), gone("members/0001"), gone("members/0004")), says: "could not open file",
			wrong: []wrong{{convert.MissingSegment, 0, "members/0001"}, {convert.MissingSegment, 0, "members/0004"}}},
		{name: "offsets gone", majors: only18, prepare: injected(listed(header{}, singles(3*oldSegment)), gone("offsets/0001")), says: "could not open file"},
	}
}

// updating makes updaters of members.
func updating(m synth.Multi, places ...int) {
	for _, i := range places {
		m.Members[i].Status = multixact.Update
	}
}

// The one difference: pg_upgrade takes the multi that ends at 2^32 for a hole. Mode rewrite keeps it, says so, and does the rest as pg_upgrade.
func TestParityBesideTheEndOfOffsets(t *testing.T) {
	const end = math.MaxUint32
	eachParityCase(t, []parityCase{
		{name: "two", majors: both, prepare: injected(listed(header{First: 7, FirstOffset: end - 3}, multi(2, 2)))},
		{name: "many", majors: both, short: true, prepare: injected(listed(header{First: 7, FirstOffset: end - 19999}, multi(2, 10_000)))},
		{name: "the highest multi", majors: only18, prepare: injected(listed(header{First: end - 99, FirstOffset: end - 299}, multi(3, 100)))},
		{name: "past the multi wrap", majors: only18, prepare: injected(listed(header{First: end - 99, FirstOffset: end - 599}, multi(3, 200)))},
	}, func(t *testing.T, old, new *postgres.Cluster, _ parityCase) {
		counters, result := rewritten(t, old)
		verify(t, old.Dir, widened(t, old), convert.Widen)
		upgrade(t, old, new)

		want := postgrestest.Control(t, new).Counters()
		want.NextOffset++
		if counters != want {
			t.Errorf("counters are %v, want %v: one more than pg_upgrade", counters, want)
		}
		layout, slot := multixact.New(8192), want.NextOffset-1
		page := layout.OffsetPage(want.NextMulti)
		entries := result["offsets/"+slru.Short.Name(page/slru.PagesPerSegment)][page%slru.PagesPerSegment*8192:]
		layout.SetEntry(entries, layout.OffsetEntry(want.NextMulti), slot)
		page = layout.MemberPage(slot)
		members := result["members/"+slru.Long.Name(page/slru.PagesPerSegment)][page%slru.PagesPerSegment*8192:]
		if kept := multixact.MemberAt(members, layout.MemberSlot(slot)); kept.XID == 0 {
			t.Error("the last multi is not kept")
		}
		multixact.SetMember(members, layout.MemberSlot(slot), multixact.Member{})
		sameFiles(t, "result of mode rewrite without the multi that it keeps", result, files(t, new.Dir))
	})
}
