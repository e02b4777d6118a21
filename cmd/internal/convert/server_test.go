package convert_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/bench/postgres/postgrestest"
	"github.com/mxwiden/mxwiden/cmd/internal/audit"
	"github.com/mxwiden/mxwiden/cmd/internal/convert"
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio"
)

var modes = []convert.Mode{convert.Widen, convert.Rewrite}

// small has many servers fit beside each other.
const small = "shared_buffers=1MB"

// A view is what a running server says of its multis, and the rows of postgres.Consume.
type view struct {
	live   multixact.Range
	multis map[uint32]postgres.Multi
	rows   [][]string
}

// look reads every multi of the live range, and the rows if there are any.
func look(t *testing.T, c *postgres.Cluster) view {
	t.Helper()
	oldest, next, _, err := c.Counters()
	if err != nil {
		t.Fatal(err)
	}
	v := view{live: multixact.OldRange(oldest, next, 1)}
	v.multis = multisOf(t, c, v.live)
	for multi, m := range v.multis {
		if m.Err != nil || len(m.Members) == 0 {
			t.Fatalf("version %s says of multi %d: %v, %v", c.Major, multi, m.Members, m.Err)
		}
	}
	table, err := c.Query("SELECT 1 FROM pg_tables WHERE tablename = 'mxwiden'")
	if err != nil {
		t.Fatal(err)
	}
	if len(table) > 0 {
		if v.rows, err = postgres.Rows(c); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

func multisOf(t *testing.T, c *postgres.Cluster, live multixact.Range) map[uint32]postgres.Multi {
	t.Helper()
	multis, err := c.Multis(t.Context(), live.All())
	if err != nil {
		t.Fatal(err)
	}
	return multis
}

// consumed makes multis on a stopped cluster and is what it said of them before it was stopped again.
func consumed(t *testing.T, c *postgres.Cluster, n int) view {
	t.Helper()
	postgrestest.Start(t, c, small)
	consume(t, c, n)
	v := look(t, c)
	postgrestest.Stop(t, c)
	return v
}

func consume(t *testing.T, c *postgres.Cluster, n int) {
	t.Helper()
	if err := postgres.Consume(t.Context(), c, n); err != nil {
		t.Fatal(err)
	}
}

// after is what a conversion makes of multis: nothing, or one member of each: the updater, or else the first.
func after(mode convert.Mode, multis map[uint32]postgres.Multi) map[uint32]postgres.Multi {
	if mode == convert.Widen {
		return multis
	}
	kept := map[uint32]postgres.Multi{}
	for multi, m := range multis {
		i := slices.IndexFunc(m.Members, func(m postgres.Member) bool {
			return strings.HasSuffix(m.Mode, "upd") && !strings.HasPrefix(m.Mode, "for")
		})
		i = max(i, 0)
		kept[multi] = postgres.Multi{Members: m.Members[i : i+1]}
	}
	return kept
}

// agree holds what a running server says of multis against what was said of them before.
func agree(t *testing.T, c *postgres.Cluster, live multixact.Range, want map[uint32]postgres.Multi) {
	t.Helper()
	got := multisOf(t, c, live)
	for multi := range live.All() {
		if !reflect.DeepEqual(got[multi], want[multi]) {
			t.Fatalf("version %s says of multi %d: %v; before, it was %v", c.Major, multi, got[multi], want[multi])
		}
	}
}

// options converts old into new, with nothing special.
func options(old, new *postgres.Cluster, mode convert.Mode) convert.Options {
	return convert.Options{OldDir: old.Dir, NewDir: new.Dir, NewBin: new.Bin, Mode: mode, IO: "auto", Jobs: 2, Sync: mmapio.NoSync}
}

// attempt converts, and sees that the old cluster stays as it was.
func attempt(t *testing.T, o convert.Options) (*convert.Result, error) {
	t.Helper()
	before := postgrestest.Hash(t, o.OldDir)
	r, err := convert.Run(t.Context(), o)
	if after := postgrestest.Hash(t, o.OldDir); after != before {
		t.Errorf("the conversion changed the old cluster")
	}
	return r, err
}

// converted is attempt where that has to succeed, and verify has to agree.
func converted(t *testing.T, o convert.Options) *convert.Result {
	t.Helper()
	r, err := attempt(t, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := audit.Verify(t.Context(), audit.VerifyOptions{OldDir: o.OldDir, NewDir: o.NewDir, Mode: o.Mode, Limit: 5})
	if err != nil || c.Differences > 0 {
		t.Errorf("verify: %+v, %v", c, err)
	}
	return r
}

// refused is attempt where that has to fail with an error that names all of words, and to leave the new cluster as it was.
func refused(t *testing.T, o convert.Options, words ...string) {
	t.Helper()
	before := postgrestest.Hash(t, o.NewDir)
	_, err := attempt(t, o)
	if err == nil {
		t.Fatalf("not refused, want an error that names %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not name %q", err, word)
		}
	}
	if after := postgrestest.Hash(t, o.NewDir); after != before {
		t.Error("what was refused changed the new cluster")
	}
}

// goesOn has a running new cluster do what servers do with multis. Those of want are said to be as before until the freeze of
// all databases, which drops them.
func goesOn(t *testing.T, c *postgres.Cluster, r *convert.Result, want map[uint32]postgres.Multi) {
	t.Helper()
	live := multixact.NewRange(r.New.Oldest, r.New.Next, r.New.NextOffset)
	agree(t, c, live, want)
	consume(t, c, 700)
	freeze(t, c, "postgres")
	now := look(t, c)
	if now.live.Oldest != live.Oldest || now.live.Len() <= live.Len()+700 {
		t.Errorf("the live range was %v, and is %v after more multis", live, now.live)
	}
	agree(t, c, live, want)

	postgrestest.Stop(t, c)
	postgrestest.Start(t, c, small)
	agree(t, c, now.live, now.multis)
	agree(t, c, live, want)

	// Databases that are empty of rows with multis keep the old range alive until they are frozen, too.
	if err := c.Exec("ALTER DATABASE template0 ALLOW_CONNECTIONS true"); err != nil {
		t.Fatal(err)
	}
	for _, db := range []string{"template0", "template1", "postgres"} {
		freeze(t, c, db)
	}
	if again := look(t, c); !again.live.Empty() {
		t.Errorf("the live range is %v after a freeze of everything", again.live)
	}
	consume(t, c, 100)
	now = look(t, c)
	postgrestest.Stop(t, c)
	postgrestest.Start(t, c, small)
	agree(t, c, now.live, now.multis)
	postgrestest.Stop(t, c)
}

func freeze(t *testing.T, c *postgres.Cluster, db string) {
	t.Helper()
	conn, err := c.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), "VACUUM FREEZE"); err != nil {
		t.Fatal(err)
	}
}

// Real multixacts of every old version are in both modes what they were, to a server of version 19 that then lives on with them.
func TestServerAgrees(t *testing.T) {
	for _, major := range []string{"18", "17", "16", "15", "14", "13", "12", "11", "10"} {
		t.Run(major, func(t *testing.T) {
			if testing.Short() && major != "18" {
				t.Skip("version 18 stands for all")
			}
			t.Parallel()
			old := postgrestest.Init(t, major)
			said := consumed(t, old, 1000)
			if n := said.live.Len(); n < 2048 {
				t.Fatalf("%d multis do not fill a page of offsets", n)
			}
			for _, mode := range modes {
				t.Run(string(mode), func(t *testing.T) {
					new := postgrestest.Init(t, "19")
					r := converted(t, options(old, new, mode))
					postgrestest.Start(t, new, small)
					goesOn(t, new, r, after(mode, said.multis))
				})
			}
		})
	}
}

// After a whole pg_upgrade, widen brings back the members that it dropped, and every row stays as it was.
func TestServerAgreesAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	old, new := postgrestest.Init(t, "18"), postgrestest.Init(t, "19")
	said := consumed(t, old, 1000)
	if _, err := postgres.Upgrade(old, new); err != nil {
		t.Fatal(err)
	}
	r := converted(t, options(old, new, convert.Widen))
	if len(r.Findings) > 0 {
		t.Errorf("findings: %v", r.Findings)
	}
	postgrestest.Start(t, new, small)
	if got := look(t, new); !reflect.DeepEqual(got, said) {
		t.Errorf("the new server sees other rows or multis")
	}
	goesOn(t, new, r, said.multis)

	postgrestest.Start(t, new, small)
	rows, err := postgres.Rows(new)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, row := range rows {
		seen[strings.Join(row[:3], "|")] = true
	}
	for _, row := range said.rows { // without xmax, which freezing takes
		if !seen[strings.Join(row[:3], "|")] {
			t.Fatalf("row %v is gone after a freeze", row)
		}
	}
}
