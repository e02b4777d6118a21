package convert_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/bench/postgres/postgrestest"
	"github.com/mxwiden/mxwiden/cmd/internal/convert"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
)

// built is the folder of a mxwiden that the servers' user can run.
func built(t *testing.T) postgres.Install {
	t.Helper()
	dir := postgrestest.TempDir(t)
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "mxwiden"), "github.com/mxwiden/mxwiden/cmd/mxwiden")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return postgres.Install{Bin: dir}
}

// program is mxwiden convert -D, as the servers' user.
func program(t *testing.T, mxwiden postgres.Install, old, new *postgres.Cluster, bin string, args ...string) *exec.Cmd {
	return mxwiden.Open(new.Dir).Command(t.Context(), "mxwiden",
		append([]string{"convert", "--json", "-d", old.Dir, "-D", new.Dir, "-B", bin}, args...)...)
}

// ran is a program that has to succeed.
func ran(t *testing.T, cmd *exec.Cmd) (r convert.Result) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, &stderr)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// deadly is a bin folder whose pg_resetwal is the script, in which real is the one of an installation: the script can kill the
// program that calls it.
func deadly(t *testing.T, i postgres.Install, script string) string {
	t.Helper()
	dir := postgrestest.TempDir(t)
	text := fmt.Sprintf("#!/bin/sh\nreal() { '%s' \"$@\"; }\nif [ \"$1\" = --version ]; then real \"$@\"; exit; fi\n%s\n",
		filepath.Join(i.Bin, "pg_resetwal"), script)
	if err := os.WriteFile(filepath.Join(dir, "pg_resetwal"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// exists reports whether a file or folder of the data directory of c is there.
func exists(c *postgres.Cluster, name string) bool {
	_, err := os.Lstat(filepath.Join(c.Dir, name))
	return !errors.Is(err, fs.ErrNotExist)
}

// The names that a swap works with.
const (
	inPlace = "pg_multixact"
	result  = "pg_multixact.mxwiden-new"
	aside   = "pg_multixact.mxwiden-old"
	journal = "mxwiden.journal"
)

// A run over what pg_upgrade made is killed. The server then has the multis of pg_upgrade or all of them, or does not start
// for want of pg_multixact; the next run leaves all of them.
func TestServerAgreesAfterAKill(t *testing.T) {
	t.Parallel()
	mxwiden := built(t)
	old, upgraded := postgrestest.Init(t, "18"), postgrestest.Init(t, "19")
	said := consumed(t, old, 1000)
	if _, err := postgres.Upgrade(old, upgraded); err != nil {
		t.Fatal(err)
	}
	before := postgrestest.Hash(t, old.Dir)
	begin := time.Now()
	ran(t, program(t, mxwiden, old, postgrestest.Copy(t, upgraded), upgraded.Bin))
	whole := time.Since(begin)

	type death struct {
		name    string
		script  string // of pg_resetwal
		at      time.Duration
		reached func(c *postgres.Cluster) bool
		want    string // what the next run says that it did, where that is certain
		retain  bool
	}
	deaths := []death{
		{name: "before the reset", script: `kill -9 $PPID`, want: "undone"},
		{name: "after the reset", script: `real "$@"; kill -9 $PPID`, want: "finished"},
		{name: "after the reset, retaining", script: `real "$@"; kill -9 $PPID`, want: "finished", retain: true},
		{name: "while it builds", reached: func(c *postgres.Cluster) bool { return exists(c, result) }},
		{name: "at the journal", reached: func(c *postgres.Cluster) bool { return exists(c, journal) }},
		{name: "at the first rename", reached: func(c *postgres.Cluster) bool { return exists(c, aside) }},
		{name: "at the second rename", reached: func(c *postgres.Cluster) bool {
			return exists(c, aside) && exists(c, inPlace) && !exists(c, result)
		}},
	}
	for i := range 5 {
		deaths = append(deaths, death{name: fmt.Sprintf("after %d sixths", i+1), at: whole * time.Duration(i+1) / 6})
	}
	for _, d := range deaths {
		t.Run(d.name, func(t *testing.T) {
			if testing.Short() && d.want == "" {
				t.Skip("two deaths have to do")
			}
			new := postgrestest.Copy(t, upgraded)
			bin := new.Bin
			if d.script != "" {
				bin = deadly(t, new.Install, d.script)
			}
			var args []string
			if d.retain {
				args = append(args, "--retain")
			}
			first := program(t, mxwiden, old, new, bin, args...)
			if err := first.Start(); err != nil {
				t.Fatal(err)
			}
			died := make(chan error, 1)
			go func() { died <- first.Wait() }()
			if d.script == "" {
				time.Sleep(d.at)
				for limit := time.Now().Add(whole * 2); d.reached != nil && !d.reached(new) && time.Now().Before(limit); {
				}
				first.Process.Kill()
			}
			if err := <-died; d.script != "" && err == nil {
				t.Fatal("it was not killed")
			}
			settled(t, new)
			sound(t, new, said)
			if r := ran(t, program(t, mxwiden, old, new, new.Bin, args...)); d.want != "" && r.Recovered != d.want {
				t.Errorf("the next run says %q, want %q", r.Recovered, d.want)
			}
			if exists(new, result) || exists(new, journal) || exists(new, aside) != d.retain {
				t.Error("something is left beside pg_multixact, or not retained")
			}
			postgrestest.Start(t, new, small)
			if got := look(t, new); !reflect.DeepEqual(got, said) {
				t.Error("the new server sees other rows or multis")
			}
			postgrestest.Stop(t, new)
		})
	}
	if postgrestest.Hash(t, old.Dir) != before {
		t.Error("the old cluster has changed")
	}
}

// settled waits for the end of a pg_resetwal that outlives the run which called it.
func settled(t *testing.T, c *postgres.Cluster) {
	t.Helper()
	for range 1000 {
		lock, err := pgdata.Lock(c.Dir)
		if err == nil {
			lock.Close()
			return
		}
		if !errors.Is(err, pgdata.ErrLocked) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("still locked")
}

// sound starts a server on a copy of the cluster that a kill left.
func sound(t *testing.T, left *postgres.Cluster, said view) {
	t.Helper()
	c := postgrestest.Copy(t, left)
	if err := c.Start(small); err != nil {
		if exists(c, inPlace) {
			t.Errorf("the server does not start, and pg_multixact is there: %v", err)
		}
		return
	}
	if !exists(c, inPlace) {
		t.Fatal("the server starts without pg_multixact")
	}
	got := look(t, c)
	if !reflect.DeepEqual(got.rows, said.rows) {
		t.Error("the new server sees other rows")
	}
	if !reflect.DeepEqual(got.multis, said.multis) && !reflect.DeepEqual(got.multis, after(convert.Rewrite, said.multis)) {
		t.Error("the new server sees neither the multis of pg_upgrade nor the converted ones")
	}
	postgrestest.Stop(t, c)
}

// A pg_resetwal that outlives its run would set the counters under the next one, which has put the old folder back.
func TestTheNextRunWaitsForAnOrphanedReset(t *testing.T) {
	t.Parallel()
	mxwiden := built(t)
	old, new := postgrestest.Init(t, "18"), postgrestest.Init(t, "19")
	said := consumed(t, old, 100)
	done := filepath.Join(postgrestest.TempDir(t), "done")
	bin := deadly(t, new.Install, fmt.Sprintf(`kill -9 $PPID
for i in $(seq 1000); do
	if [ -e '%s' ]; then real "$@"; exit; fi
	sleep 0.01
done`, done))
	if err := program(t, mxwiden, old, new, bin).Run(); err == nil {
		t.Fatal("it was not killed")
	}
	if _, err := attempt(t, options(old, new, convert.Widen)); !errors.Is(err, pgdata.ErrLocked) {
		t.Errorf("while pg_resetwal runs: %v, want that it is locked", err)
	}
	if err := os.WriteFile(done, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	settled(t, new)
	r := converted(t, options(old, new, convert.Widen))
	if r.Recovered != "finished" {
		t.Errorf("the next run says %q, want that it finished the dead one's", r.Recovered)
	}
	postgrestest.Start(t, new, small)
	goesOn(t, new, r, said.multis)
}
