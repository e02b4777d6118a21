package convert_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/bench/postgres/postgrestest"
	"github.com/mxwiden/mxwiden/cmd/internal/convert"
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

const block = 8192

// startingAt is a stopped cluster of version 18 whose next multi will be multi, with its members at offset.
func startingAt(t *testing.T, multi, offset uint32) *postgres.Cluster {
	t.Helper()
	c := postgrestest.Init(t, "18")
	layout, dir := multixact.Old(block), t.TempDir()
	for name, page := range map[string]int64{"offsets": layout.OffsetPage(multi), "members": layout.MemberPage(uint64(offset))} {
		path := filepath.Join(dir, name, slru.Short.Name(page/slru.PagesPerSegment))
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, slru.PagesPerSegment*block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Inject(dir, multi, multi, offset); err != nil {
		t.Fatal(err)
	}
	return c
}

// The one multi of a cluster ends exactly at 2^32, and a row can be read only by it. pg_upgrade loses it; both modes keep it, in
// a fresh cluster and over what pg_upgrade left.
func TestServerAgreesAtTheEndOfOffsets(t *testing.T) {
	t.Parallel()
	old := startingAt(t, 1, math.MaxUint32-1)
	postgrestest.Start(t, old, small)
	const row = "SELECT id, v, note, xmax FROM mxwiden WHERE id = 1"
	for _, sql := range []string{
		"CREATE TABLE mxwiden (id int PRIMARY KEY, v int, note text); INSERT INTO mxwiden VALUES (1, 0, 'kept')",
		"BEGIN; SELECT FROM mxwiden FOR KEY SHARE; SAVEPOINT s; UPDATE mxwiden SET v = 1; COMMIT",
	} {
		if err := old.Exec(sql); err != nil {
			t.Fatal(err)
		}
	}
	said := look(t, old)
	if members := said.multis[1].Members; said.live.Len() != 1 || len(members) != 2 || members[1].Mode != "nokeyupd" {
		t.Fatalf("expected one multi of two members, the second of them an updater, and got %+v", said)
	}
	postgrestest.Stop(t, old)
	if c := postgrestest.Control(t, old); c.NextMulti != 2 || c.NextOffset != 0 {
		t.Fatalf("pg_control says %v, want next multi 2 and offset 0", c.Counters())
	}

	broken := postgrestest.Init(t, "19")
	if _, err := postgres.Upgrade(old, broken); err != nil {
		t.Fatal(err)
	}
	reads := postgrestest.Copy(t, broken)
	postgrestest.Start(t, reads, small)
	if rows, err := reads.Query(row); err == nil || !strings.Contains(err.Error(), "MultiXact 1 has invalid offset") {
		t.Errorf("pg_upgrade does not lose the multi: %v, %v", rows, err)
	}
	postgrestest.Stop(t, reads)

	for _, mode := range modes {
		for name, new := range map[string]*postgres.Cluster{"fresh": postgrestest.Init(t, "19"), "over pg_upgrade": postgrestest.Copy(t, broken)} {
			t.Run(string(mode)+" "+name, func(t *testing.T) {
				r := converted(t, options(old, new, mode))
				if r.Count[convert.KeptAtBoundary] != 1 {
					t.Errorf("findings %v do not say that pg_upgrade would lose it", r.Findings)
				}
				postgrestest.Start(t, new, small)
				want := after(mode, said.multis)
				if name == "fresh" {
					goesOn(t, new, r, want)
					return
				}
				if rows, err := postgres.Rows(new); err != nil || !reflect.DeepEqual(rows, said.rows) {
					t.Errorf("rows are %v, %v, want %v", rows, err, said.rows)
				}
				goesOn(t, new, r, want)
			})
		}
	}
}

// Multis and members both wrap, in a cluster that starts at one of four offsets: of these, some leave slot 0 empty, and some
// have a multi that straddles the wrap.
func TestServerAgreesPastBothWraps(t *testing.T) {
	postgrestest.Require(t, "18")
	postgrestest.Require(t, "19")
	const multi = 4294965760
	empty := make(chan bool, 4)
	t.Run("offsets", func(t *testing.T) {
		for offset := uint32(4294962176); offset < 4294962180; offset++ {
			t.Run(fmt.Sprint(offset), func(t *testing.T) {
				if testing.Short() && offset%2 == 1 {
					t.Skip("two of the four have to do")
				}
				t.Parallel()
				old := startingAt(t, multi, offset)
				said := consumed(t, old, 1000)
				c := postgrestest.Control(t, old)
				if c.OldestMulti != multi || c.NextMulti > multi || c.NextOffset > uint64(offset) {
					t.Fatalf("not past both wraps: pg_control says %v", c.Counters())
				}
				page, err := os.ReadFile(filepath.Join(old.Dir, "pg_multixact", "members", "0000"))
				if err != nil {
					t.Fatal(err)
				}
				empty <- multixact.MemberAt(page, 0).XID == 0
				t.Run("widen over pg_upgrade", func(t *testing.T) {
					new := postgrestest.Init(t, "19")
					if _, err := postgres.Upgrade(old, new); err != nil {
						t.Fatal(err)
					}
					r := converted(t, options(old, new, convert.Widen))
					postgrestest.Start(t, new, small)
					if got := look(t, new); !reflect.DeepEqual(got, said) {
						t.Errorf("the new server sees other rows or multis")
					}
					goesOn(t, new, r, said.multis)
				})
				for _, mode := range modes {
					t.Run(string(mode), func(t *testing.T) {
						new := postgrestest.Init(t, "19")
						r := converted(t, options(old, new, mode))
						if r.Count[convert.FreshCluster] != 1 {
							t.Errorf("findings %v do not say what to do about datminmxid", r.Findings)
						}
						postgrestest.Start(t, new, small)
						adopt(t, new, r)
						goesOn(t, new, r, after(mode, said.multis))
					})
				}
			})
		}
	})
	close(empty)
	seen := map[bool]int{}
	for e := range empty {
		seen[e]++
	}
	if !t.Failed() && !testing.Short() && (seen[true] == 0 || seen[false] == 0) {
		t.Errorf("slot 0 was empty %d times, used %d times, want some of each", seen[true], seen[false])
	}
}

// adopt does in a fresh cluster what the finding about it says.
func adopt(t *testing.T, c *postgres.Cluster, r *convert.Result) {
	t.Helper()
	for _, sql := range []string{"UPDATE pg_database SET datminmxid = '%d'",
		"UPDATE pg_class SET relminmxid = '%d' WHERE relkind IN ('r', 'm', 't')"} {
		if err := c.Exec(fmt.Sprintf(sql, r.New.Oldest)); err != nil {
			t.Fatal(err)
		}
	}
}
