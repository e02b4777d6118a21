package synth_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/bench/postgres/postgrestest"
	"github.com/mxwiden/mxwiden/bench/synth"
	"github.com/mxwiden/mxwiden/kernels/multixact"
)

// A real old server takes a synthetic pg_multixact for its own and says of every multi what it was made of; then version
// 19's pg_upgrade converts it.
func TestServer(t *testing.T) {
	for _, c := range []struct {
		name, major string
		header      synth.Header
		n           int
	}{
		{"several pages", "18", synth.Header{}, 5000},
		{"several pages", "15", synth.Header{Ahead: true}, 5000},
		{"ends at a page border", "18", synth.Header{}, 2047},
		{"begins and ends at page borders", "15", synth.Header{First: 2048, FirstOffset: 1636}, 2048},
		{"both wraps", "18", synth.Header{First: math.MaxUint32 - 1000, FirstOffset: math.MaxUint32 - 2000}, 3000},
		{"none", "18", synth.Header{First: 77, FirstOffset: 7777}, 0},
	} {
		t.Run(c.major+" "+c.name, func(t *testing.T) {
			postgrestest.Require(t, "19")
			old := postgrestest.Init(t, c.major)
			multis := random(c.n, 6)
			for i := range multis {
				multis[i].Lost = multis[i].Lost && i > 0 && i+1 < c.n
			}
			dir := t.TempDir()
			result, err := synth.WriteMultis(dir, synth.Spec{Header: c.header, Multis: multis})
			if err != nil {
				t.Fatal(err)
			}
			if err := old.Inject(filepath.Join(dir, "pg_multixact"), result.Oldest, result.Next, uint32(result.NextOffset)); err != nil {
				t.Fatal(err)
			}
			postgrestest.Start(t, old)
			asServerSays(t, old, result.Range, multis)
			oldest, next, nextOffset, err := old.Counters()
			if err != nil || oldest != result.Oldest || next != result.Next || nextOffset != result.NextOffset {
				t.Errorf("counters are %d, %d, %d, %v, want %+v", oldest, next, nextOffset, err, result.Range)
			}
			postgrestest.Stop(t, old)

			new := postgrestest.Init(t, "19")
			if output, err := postgres.Upgrade(old, new); err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			if _, err := os.Stat(filepath.Join(new.Dir, "pg_multixact", "members", "000000000000000")); err != nil {
				t.Error(err)
			}
		})
	}
}

// An empty synthetic cluster just before both wraps is a place from which a real server goes on past them.
func TestServerGoesOnPastWraps(t *testing.T) {
	for _, major := range []string{"18", "15"} {
		t.Run(major, func(t *testing.T) {
			c := postgrestest.Init(t, major)
			dir := t.TempDir()
			start, err := synth.Shape{Header: synth.Header{First: math.MaxUint32 - 1535, FirstOffset: math.MaxUint32 - 5119}}.Write(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Inject(filepath.Join(dir, "pg_multixact"), start.Oldest, start.Next, uint32(start.NextOffset)); err != nil {
				t.Fatal(err)
			}
			postgrestest.Start(t, c)
			if err := postgres.Consume(t.Context(), c, 1000); err != nil {
				t.Fatal(err)
			}
			oldest, next, nextOffset, err := c.Counters()
			if err != nil || oldest != start.Oldest || next >= oldest || nextOffset >= start.NextOffset {
				t.Fatalf("counters are %d, %d, %d, %v, want both wrapped", oldest, next, nextOffset, err)
			}
			live := multixact.OldRange(oldest, next, uint32(nextOffset))
			multis, err := c.Multis(t.Context(), live.All())
			if err != nil || uint64(len(multis)) != live.Len() {
				t.Fatalf("read %d multis of %d, %v", len(multis), live.Len(), err)
			}
			for multi, m := range multis {
				if m.Err != nil || len(m.Members) < 2 {
					t.Fatalf("multi %d is %+v", multi, m)
				}
			}
		})
	}
}

// asServerSays compares all multis that are no holes with what they were made of.
func asServerSays(t *testing.T, c *postgres.Cluster, live multixact.Range, multis []synth.Multi) {
	t.Helper()
	want := map[uint32][]postgres.Member{}
	var asked []uint32
	multi := live.Oldest
	for i, m := range multis {
		if !m.Lost && (i+1 == len(multis) || !multis[i+1].Lost) {
			asked = append(asked, multi)
			for _, member := range m.Members {
				want[multi] = append(want[multi], postgres.Member{XID: member.XID, Mode: member.Status.String()})
			}
		}
		multi = multixact.After(multi)
	}
	got, err := c.Multis(t.Context(), slices.Values(asked))
	if err != nil {
		t.Fatal(err)
	}
	for _, multi := range asked {
		if got[multi].Err != nil || !slices.Equal(got[multi].Members, want[multi]) {
			t.Fatalf("multi %d is %+v, want %v", multi, got[multi], want[multi])
		}
	}
}
