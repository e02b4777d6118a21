package convert_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/bench/postgres/postgrestest"
	"github.com/mxwiden/mxwiden/cmd/internal/convert"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
)

// What is put into a cluster whose group may read it is as its own files are, whoever runs the conversion.
func TestServerAgreesWithGroupAccess(t *testing.T) {
	t.Parallel()
	mxwiden := built(t)
	old := postgrestest.Init(t, "18")
	said := consumed(t, old, 100)
	for _, c := range []struct {
		initdb []string
		want   [2]fs.FileMode // of files and of folders
	}{{nil, [2]fs.FileMode{0o600, 0o700}}, {[]string{"-g"}, [2]fs.FileMode{0o640, 0o750}}} {
		for name, into := range map[string]func(new *postgres.Cluster) convert.Result{
			"by this user": func(new *postgres.Cluster) convert.Result {
				return *converted(t, options(old, new, convert.Widen))
			},
			"by the servers' user": func(new *postgres.Cluster) convert.Result {
				return ran(t, program(t, mxwiden, old, new, new.Bin))
			},
		} {
			t.Run(fmt.Sprint(c.initdb, name), func(t *testing.T) {
				new := postgrestest.Init(t, "19", c.initdb...)
				r := into(new)
				multixact := filepath.Join(new.Dir, inPlace)
				modesBelow(t, multixact, c.want)
				postgrestest.Start(t, new, small)
				goesOn(t, new, &r, said.multis)
				modesBelow(t, multixact, c.want)
			})
		}
	}
}

// modesBelow expects modes of the files and of the folders from dir on down.
func modesBelow(t *testing.T, dir string, want [2]fs.FileMode) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := want[0]
		if d.IsDir() {
			mode = want[1]
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), mode)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRetainKeepsTheOldFolder(t *testing.T) {
	t.Parallel()
	old, new := postgrestest.Init(t, "18"), postgrestest.Init(t, "19")
	said := consumed(t, old, 10)
	const segment = "offsets/0000"
	before, err := os.ReadFile(filepath.Join(new.Dir, inPlace, segment))
	if err != nil {
		t.Fatal(err)
	}
	o := options(old, new, convert.Widen)
	o.Retain = true
	r := converted(t, o)
	kept, err := os.ReadFile(filepath.Join(new.Dir, aside, segment))
	if err != nil || string(kept) != string(before) {
		t.Errorf("%s of the old folder is not what it was (%v)", segment, err)
	}
	refused(t, o, aside, "in the way")
	postgrestest.Start(t, new, small)
	goesOn(t, new, r, said.multis)
}

// What must not take a conversion is refused, by the name of what is in the way, and stays as it was.
func TestServerStatesThatAreRefused(t *testing.T) {
	t.Parallel()
	old := postgrestest.Init(t, "18")
	said := consumed(t, old, 10)

	t.Run("logical slots", func(t *testing.T) {
		new := postgrestest.Init(t, "19")
		postgrestest.Start(t, new, small, "wal_level=logical")
		for _, slot := range []string{"logical_replication_slot('orders', 'pgoutput')", "physical_replication_slot('standby')"} {
			if err := new.Exec("SELECT pg_create_" + slot); err != nil {
				t.Fatal(err)
			}
		}
		postgrestest.Stop(t, new)
		o := options(old, new, convert.Widen)
		refused(t, o, "logical", "orders", "--force")
		o.Force = true
		if r := converted(t, o); r.Count[convert.Forced] != 1 {
			t.Errorf("findings %v do not say that it was forced", r.Findings)
		}
		postgrestest.Start(t, new, small, "wal_level=logical")
		agree(t, new, said.live, said.multis)
		postgrestest.Stop(t, new)
	})
	t.Run("multis of its own", func(t *testing.T) {
		new := postgrestest.Init(t, "19")
		consumed(t, new, 20)
		refused(t, options(old, new, convert.Widen), "neither fresh", "--force")
	})
	t.Run("a standby", func(t *testing.T) {
		new := postgrestest.Init(t, "19")
		signal := filepath.Join(new.Dir, "standby.signal")
		if err := os.WriteFile(signal, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := postgres.Own(signal); err != nil {
			t.Fatal(err)
		}
		postgrestest.Start(t, new, small)
		postgrestest.Stop(t, new)
		refused(t, options(old, new, convert.Widen), "shut down in recovery")
	})
	t.Run("running", func(t *testing.T) {
		new := postgrestest.Init(t, "19")
		postgrestest.Start(t, new, small)
		// what it holds is not compared: it may write at any time
		if _, err := attempt(t, options(old, new, convert.Widen)); !errors.Is(err, pgdata.ErrRunning) {
			t.Errorf("got %v, want that it runs", err)
		}
		postgrestest.Stop(t, new)
	})
	t.Run("killed", func(t *testing.T) {
		new := postgrestest.Init(t, "19")
		postgrestest.Start(t, new, small)
		if err := new.Kill(); err != nil {
			t.Fatal(err)
		}
		refused(t, options(old, new, convert.Widen), "in production")
	})
}
