package pgdata

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mxwiden/mxwiden/mmapio"
)

var (
	before = Counters{NextMulti: 1, OldestMulti: 1, NextOffset: 1}
	after  = Counters{NextMulti: 5000, OldestMulti: 300, NextOffset: 123456789012}
)

// swappable makes a version 19 cluster whose pg_multixact says "old" in a file, with a result that says "new" beside it.
func swappable(t *testing.T) *Dir {
	t.Helper()
	dir := cluster(t, "19", nil)
	for folder, content := range map[string]string{multixactDir: "old", buildDir: "new"} {
		write(t, dir, folder+"/offsets/0000", []byte(content))
		write(t, dir, folder+"/members/000000000000000", []byte(content))
	}
	return open(t, dir)
}

// resetTo sets the counters of a cluster, as pg_resetwal does.
func resetTo(dir string) func(Counters) error {
	return func(to Counters) error {
		c, err := readControl(dir)
		if err != nil {
			return err
		}
		c.NextMulti, c.OldestMulti, c.NextOffset = to.NextMulti, to.OldestMulti, to.NextOffset
		return os.WriteFile(filepath.Join(dir, "global/pg_control"), c.Encode(), 0o600)
	}
}

// content is "old" or "new" as the files below a folder say, and "" if it is not there.
func content(t *testing.T, dir, folder string) string {
	t.Helper()
	a, errA := os.ReadFile(filepath.Join(dir, folder, "offsets/0000"))
	b, errB := os.ReadFile(filepath.Join(dir, folder, "members/000000000000000"))
	if errors.Is(errA, os.ErrNotExist) && errors.Is(errB, os.ErrNotExist) {
		return ""
	}
	if errA != nil || errB != nil || string(a) != string(b) {
		t.Errorf("%s/%s is half there: %q, %v; %q, %v", dir, folder, a, errA, b, errB)
	}
	return string(a)
}

// expect says what is wrong with a cluster that should be at rest as "old" or "new", with nothing else left beside it than names.
func expect(t *testing.T, dir, want string, names ...string) {
	t.Helper()
	c, err := readControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	counters := map[string]Counters{"old": before, "new": after}[want]
	if got := content(t, dir, multixactDir); got != want || c.Counters() != counters {
		t.Errorf("pg_multixact is %q and pg_control says %v, want %q and %v", got, c.Counters(), want, counters)
	}
	var rest []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !slices.Contains([]string{"PG_VERSION", "global", multixactDir}, e.Name()) {
			rest = append(rest, e.Name())
		}
	}
	if !slices.Equal(rest, names) {
		t.Errorf("left beside it: %q, want %q", rest, names)
	}
}

// consistent fails if a server that started now would find counters and multixacts that do not belong together.
func consistent(t *testing.T, dir string) {
	t.Helper()
	c, err := readControl(dir)
	if err != nil {
		t.Fatal(err)
	}
	switch place := content(t, dir, multixactDir); {
	case place == "old" && c.Counters() != before, place == "new" && c.Counters() != after:
		t.Errorf("pg_multixact is %q while pg_control says %v", place, c.Counters())
	}
}

type death struct{ at string }

// dieAt runs f and has it die before its n-th change to the disk. It reports the change, and whether f came that far.
func dieAt(n int, f func() error) (at string, died bool, err error) {
	real := step
	defer func() {
		step = real
		if d, ok := recover().(death); ok {
			at, died = d.at, true
		}
	}()
	step = func(name string) {
		if n--; n < 0 {
			panic(death{name})
		}
	}
	return "", false, f()
}

func TestSwap(t *testing.T) {
	for _, sync := range []mmapio.SyncMethod{mmapio.Fsync, mmapio.Syncfs, mmapio.NoSync} {
		for retain, left := range map[bool][]string{false: nil, true: {asideDir}} {
			d := swappable(t)
			err := d.Swap(Journal{After: after, Retain: retain}, func() error {
				if got := content(t, d.Path, multixactDir); got != "" {
					t.Errorf("pg_multixact is in place during the reset: %q", got)
				}
				return resetTo(d.Path)(after)
			}, sync)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, d.Path, "new", left...)
			if retain && content(t, d.Path, asideDir) != "old" {
				t.Errorf("what is retained is %q", content(t, d.Path, asideDir))
			}
			if outcome, err := Recover(d.Path, resetTo(d.Path), sync); outcome != Nothing || err != nil {
				t.Errorf("afterwards: %v, %v", outcome, err)
			}
			expect(t, d.Path, "new", left...)
		}
	}
}

// A run of Swap dies before each of its changes in turn; the Recover after it dies before each of its own; the next one is
// left alone. No server may ever find a folder with counters that are not its own, and the end is one or the other.
func TestDeathAtEveryStep(t *testing.T) {
	for _, retain := range []bool{false, true} {
		seen := map[Outcome]int{}
		for n := 0; ; n++ {
			m, alive := 0, false
			for ; ; m++ {
				d := swappable(t)
				at, died, err := dieAt(n, func() error {
					return d.Swap(Journal{After: after, Retain: retain}, func() error { return resetTo(d.Path)(after) }, mmapio.NoSync)
				})
				if err != nil {
					t.Fatal(err)
				}
				if alive = !died; alive {
					break
				}
				consistent(t, d.Path)
				again, died, err := dieAt(m, func() error {
					_, err := Recover(d.Path, resetTo(d.Path), mmapio.NoSync)
					return err
				})
				if err != nil {
					t.Errorf("died before %q, then: %v", at, err)
				}
				consistent(t, d.Path)
				outcome, err := Recover(d.Path, resetTo(d.Path), mmapio.NoSync)
				if err != nil {
					t.Errorf("died before %q, then before %q, then: %v", at, again, err)
				}
				if died {
					seen[outcome]++
				} else if outcome != Nothing {
					t.Errorf("died before %q, and a second recovery after a whole one: %v", at, outcome)
				}
				place := content(t, d.Path, multixactDir)
				if outcome == Finished && place != "new" || outcome == Undone && place != "old" {
					t.Errorf("died before %q, then before %q, then %v, with pg_multixact %q", at, again, outcome, place)
				}
				if place == "old" {
					expect(t, d.Path, "old")
				} else if retain {
					expect(t, d.Path, "new", asideDir)
				} else {
					expect(t, d.Path, "new")
				}
				if !died {
					break
				}
			}
			if alive {
				if n < 6 {
					t.Errorf("a whole swap has only %d changes", n)
				}
				break
			}
		}
		if seen[Finished] == 0 || seen[Undone] == 0 {
			t.Errorf("outcomes %v, want some of each", seen)
		}
	}
}

func TestSwapWithAResetThatFails(t *testing.T) {
	failure := errors.New("cannot be executed by root")
	for name, c := range map[string]struct {
		reset  func(dir string) error
		says   string
		undone bool
	}{
		"before it did anything": {func(string) error { return failure }, "root", true},
		"without saying so":      {func(string) error { return nil }, "then says", true},
		"with the counters set":  {func(dir string) error { return errors.Join(failure, resetTo(dir)(after)) }, "root", false},
		"with others set":        {func(dir string) error { return resetTo(dir)(Counters{7, 7, 7}) }, "next multi 7", false},
		"and a damaged control": {func(dir string) error {
			return os.Truncate(filepath.Join(dir, "global/pg_control"), 100)
		}, "100 bytes", false},
	} {
		d := swappable(t)
		err := d.Swap(Journal{After: after}, func() error { return c.reset(d.Path) }, mmapio.Fsync)
		if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, ErrSwap) == c.undone || !strings.Contains(err.Error(), d.Path) {
			t.Errorf("%s: %v", name, err)
		}
		if c.undone {
			expect(t, d.Path, "old")
		} else if content(t, d.Path, multixactDir) != "" || content(t, d.Path, asideDir) != "old" || content(t, d.Path, buildDir) != "new" {
			t.Errorf("%s: pg_multixact is back or a folder is lost", name)
		}
	}
}

// Whoever clears away the result after an error must not do so when a later run needs it.
func TestSwapThatCannotGoOnSaysSo(t *testing.T) {
	d := swappable(t)
	hidden := d.BuildPath() + ".hidden"
	err := d.Swap(Journal{After: after}, func() error {
		return errors.Join(resetTo(d.Path)(after), os.Rename(d.BuildPath(), hidden)) // so that the second rename fails
	}, mmapio.Fsync)
	if !errors.Is(err, ErrSwap) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := os.Rename(hidden, d.BuildPath()); err != nil {
		t.Fatal(err)
	}
	if outcome, err := Recover(d.Path, resetTo(d.Path), mmapio.Fsync); outcome != Finished || err != nil {
		t.Errorf("%v, %v", outcome, err)
	}
	expect(t, d.Path, "new")
}

// listing is every path in a directory.
func listing(t *testing.T, dir string) (paths []string) {
	t.Helper()
	if err := filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		paths = append(paths, path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestSwapRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, d *Dir)
		says  string
	}{
		"not shut down": {func(t *testing.T, d *Dir) {
			c := d.Control
			c.State = ShutDownInRecovery
			write(t, d.Path, "global/pg_control", c.Encode())
		}, "shut down in recovery"},
		"counters that moved":    {func(t *testing.T, d *Dir) { resetTo(d.Path)(after) }, "next multi 5000"},
		"no result":              {func(t *testing.T, d *Dir) { os.RemoveAll(d.BuildPath()) }, buildDir},
		"an old folder retained": {func(t *testing.T, d *Dir) { write(t, d.Path, asideDir+"/x", nil) }, asideDir},
		"an unfinished swap":     {func(t *testing.T, d *Dir) { write(t, d.Path, journalFile, nil) }, journalFile},
		"a symbolic link": {func(t *testing.T, d *Dir) {
			os.Rename(filepath.Join(d.Path, multixactDir), filepath.Join(d.Path, "elsewhere"))
			os.Symlink("elsewhere", filepath.Join(d.Path, multixactDir))
		}, "no directory"},
		"no pg_multixact": {func(t *testing.T, d *Dir) { os.RemoveAll(filepath.Join(d.Path, multixactDir)) }, multixactDir},
	} {
		d := swappable(t)
		c.spoil(t, d)
		tree := listing(t, d.Path)
		err := d.Swap(Journal{After: after}, func() error { t.Errorf("%s: the reset is called", name); return nil }, mmapio.Fsync)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.says)
		}
		if now := listing(t, d.Path); !slices.Equal(now, tree) {
			t.Errorf("%s: %q became %q", name, tree, now)
		}
	}
}

func TestProbeSwap(t *testing.T) {
	d := swappable(t)
	os.RemoveAll(d.BuildPath())
	if err := d.ProbeSwap(); err != nil {
		t.Fatal(err)
	}
	expect(t, d.Path, "old")
	for n, want := range map[int]Outcome{0: Nothing, 1: Undone} {
		at, died, err := dieAt(n, d.ProbeSwap)
		if !died || err != nil {
			t.Fatalf("a probe has no change %d", n)
		}
		consistent(t, d.Path)
		if outcome, err := Recover(d.Path, nil, mmapio.Fsync); outcome != want || err != nil {
			t.Errorf("died before %q: %v, %v, want %v", at, outcome, err, want)
		}
		expect(t, d.Path, "old")
	}
	write(t, d.Path, asideDir+"/x", nil)
	if err := d.ProbeSwap(); err == nil || !strings.Contains(err.Error(), asideDir) {
		t.Errorf("with an old folder retained: %v", err)
	}
}
