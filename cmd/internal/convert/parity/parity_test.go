package parity

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/bench/postgres/postgrestest"
	"github.com/mxwiden/mxwiden/bench/synth"
	"github.com/mxwiden/mxwiden/cmd/internal/audit"
	"github.com/mxwiden/mxwiden/cmd/internal/convert"
	"github.com/mxwiden/mxwiden/mmapio"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
)

// In mode rewrite the result is what pg_upgrade leaves, every byte, and verify takes the one as well as the other for a true
// conversion; the result of mode widen too. The old cluster stays as it is.
func TestParity(t *testing.T) {
	eachParityCase(t, parityCases(), func(t *testing.T, old, new *postgres.Cluster, _ parityCase) {
		before := files(t, old.Dir)
		counters, result := rewritten(t, old)
		verify(t, old.Dir, widened(t, old), convert.Widen)
		sameFiles(t, "old pg_multixact after the conversions", files(t, old.Dir), before)
		upgrade(t, old, new)
		sameFiles(t, "result of mode rewrite", result, files(t, new.Dir))
		if want := postgrestest.Control(t, new).Counters(); counters != want {
			t.Errorf("counters are %v, those of pg_upgrade %v", counters, want)
		}
		verify(t, old.Dir, new.Dir, convert.Rewrite)
	})
}

// A parityCase is an old cluster: what is done to a fresh one, and with which versions.
type parityCase struct {
	name    string
	majors  []string
	short   bool // it is among the few of -short
	prepare func(t *testing.T, old *postgres.Cluster)

	wrong []wrong // what mode rewrite refuses it for
	says  string  // what pg_upgrade says then
}

// wrong is what can't be converted: a multi, or a segment.
type wrong struct {
	kind    convert.Kind
	multi   uint32
	segment string
}

// eachParityCase runs test for every case, on clusters of its own: an old one that is prepared, and a fresh one of version 19.

func eachParityCase(t *testing.T, cases []parityCase, test func(t *testing.T, old, new *postgres.Cluster, c parityCase)) {
	freshNew := postgrestest.Init(t, "19")
	for _, major := range []string{"18", "15"} {
		t.Run(major, func(t *testing.T) {
			freshOld := postgrestest.Init(t, major)
			for _, c := range cases {
				if !slices.Contains(c.majors, major) || testing.Short() && !c.short {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					old, new := postgrestest.Copy(t, freshOld), postgrestest.Copy(t, freshNew)
					c.prepare(t, old)
					test(t, old, new, c)
				})
			}
		})
	}
}

// injected prepares a cluster that has the multixacts which write makes, once damage has been done to them.
func injected(write func(dir string) (synth.Result, error), damage ...func(t *testing.T, multixact string)) func(*testing.T, *postgres.Cluster) {
	return func(t *testing.T, old *postgres.Cluster) {
		dir := t.TempDir()
		made, err := write(dir)
		if err != nil {
			t.Fatal(err)
		}
		from := filepath.Join(dir, "pg_multixact")
		for _, f := range damage {
			f(t, from)
		}
		if err := old.Inject(from, made.Oldest, made.Next, uint32(made.NextOffset)); err != nil {
			t.Fatal(err)
		}
	}
}

// worked prepares a cluster that has served sessions which locked and updated rows.
func worked(t *testing.T, old *postgres.Cluster) {
	postgrestest.Start(t, old)
	if err := postgres.Consume(t.Context(), old, 3000); err != nil {
		t.Fatal(err)
	}
	postgrestest.Stop(t, old)
}

// output converts into a folder of its own.
func output(t *testing.T, old *postgres.Cluster, mode convert.Mode, io string) (out string, r *convert.Result, err error) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "out")
	r, err = convert.Run(t.Context(), convert.Options{OldDir: old.Dir, Output: out, Mode: mode, IO: io, Jobs: 2, Sync: mmapio.NoSync})
	return out, r, err
}

// rewritten converts in mode rewrite by both backings, and is the counters and the files that come of it.
func rewritten(t *testing.T, old *postgres.Cluster) (pgdata.Counters, map[string][]byte) {
	t.Helper()
	var counters pgdata.Counters
	var results []map[string][]byte
	for _, io := range []string{"map", "stage"} {
		out, r, err := output(t, old, convert.Rewrite, io)
		if err != nil {
			t.Fatal(err)
		}
		counters = pgdata.Counters{NextMulti: r.New.Next, OldestMulti: r.New.Oldest, NextOffset: r.New.NextOffset}
		results = append(results, files(t, out))
		if io == "stage" {
			verify(t, old.Dir, out, convert.Rewrite)
		}
	}
	sameFiles(t, "result by the other backing", results[1], results[0])
	return counters, results[0]
}

// widened converts in mode widen, and is the folder of the result.
func widened(t *testing.T, old *postgres.Cluster) string {
	t.Helper()
	out, _, err := output(t, old, convert.Widen, "stage")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func upgrade(t *testing.T, old, new *postgres.Cluster) {
	t.Helper()
	if out, err := postgres.Upgrade(old, new); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func verify(t *testing.T, old, new string, mode convert.Mode) {
	t.Helper()
	c, err := audit.Verify(t.Context(), audit.VerifyOptions{OldDir: old, NewDir: new, Mode: mode, Limit: 5})
	if err != nil {
		t.Errorf("verifying mode %s in %s: %v", mode, new, err)
	} else if c.Differences > 0 {
		t.Errorf("verify finds %d differences in %s: %v", c.Differences, new, c.First)
	}
}

// files is the pg_multixact of a data directory or an output folder: every file by its name below it.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	root := os.DirFS(filepath.Join(dir, "pg_multixact"))
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all[path], err = fs.ReadFile(root, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func sameFiles(t *testing.T, what string, got, want map[string][]byte) {
	t.Helper()
	names := slices.Sorted(maps.Keys(want))
	if has := slices.Sorted(maps.Keys(got)); !slices.Equal(has, names) {
		t.Errorf("%s: files are %v, want %v", what, has, names)
		return
	}
	for _, name := range names {
		g, w := got[name], want[name]
		if len(g) != len(w) {
			t.Errorf("%s: %s has %d bytes, want %d", what, name, len(g), len(w))
		}
		if n := min(len(g), len(w)); !bytes.Equal(g[:n], w[:n]) {
			at := 0
			for g[at] == w[at] {
				at++
			}
			from, to := at&^7, min(at&^7+8, n)
			t.Errorf("%s: %s differs from byte %d on: there are % x, want % x", what, name, at, g[from:to], w[from:to])
		}
	}
}
