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

// RemoveAll may die halfway, which no step shows.
func TestRecoverGoesOnRemoving(t *testing.T) {
	d := swappable(t)
	if _, died, err := dieAt(5, func() error { // before the old folder goes
		return d.Swap(Journal{After: after}, func() error { return resetTo(d.Path)(after) }, mmapio.NoSync)
	}); !died || content(t, d.Path, asideDir) != "old" || content(t, d.Path, multixactDir) != "new" {
		t.Fatalf("not where it should have died: %v, %v", died, err)
	}
	if err := os.RemoveAll(filepath.Join(d.Path, asideDir, "offsets")); err != nil {
		t.Fatal(err)
	}
	// A server may have run by now: the place was open to it.
	moved := Counters{NextMulti: 6000, OldestMulti: 300, NextOffset: 123456800000}
	if err := resetTo(d.Path)(moved); err != nil {
		t.Fatal(err)
	}
	if outcome, err := Recover(d.Path, nil, mmapio.Fsync); outcome != Finished || err != nil {
		t.Errorf("%v, %v", outcome, err)
	}
	if err := resetTo(d.Path)(after); err != nil {
		t.Fatal(err)
	}
	expect(t, d.Path, "new")
}

func TestRecoverRunsTheResetAgain(t *testing.T) {
	d := swappable(t)
	if at, _, _ := dieAt(3, func() error {
		return d.Swap(Journal{After: after}, func() error { return resetTo(d.Path)(after) }, mmapio.Fsync)
	}); at != "after the reset" {
		t.Fatalf("died at %q", at)
	}
	var resets []Counters
	failure := errors.New("no WAL")
	outcome, err := Recover(d.Path, func(to Counters) error { resets = append(resets, to); return failure }, mmapio.Fsync)
	if !errors.Is(err, failure) || !errors.Is(err, ErrSwap) || content(t, d.Path, multixactDir) != "" {
		t.Errorf("with a reset that fails: %v, %v; pg_multixact is %q", outcome, err, content(t, d.Path, multixactDir))
	}
	outcome, err = Recover(d.Path, func(to Counters) error { resets = append(resets, to); return nil }, mmapio.Fsync)
	if outcome != Finished || err != nil || !slices.Equal(resets, []Counters{after, after}) {
		t.Errorf("%v, %v, resets to %v", outcome, err, resets)
	}
	expect(t, d.Path, "new")
}

// A server that was started between the renames proves that pg_resetwal had done its work, which it would refuse to do again.
func TestRecoverAfterAServerRanBetweenTheRenames(t *testing.T) {
	d := swappable(t)
	dieAt(3, func() error {
		return d.Swap(Journal{After: after}, func() error { return resetTo(d.Path)(after) }, mmapio.Fsync)
	})
	c, err := readControl(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	c.State = InProduction
	write(t, d.Path, "global/pg_control", c.Encode())
	write(t, d.Path, "postmaster.pid", []byte("nonsense"))
	if outcome, err := Recover(d.Path, nil, mmapio.Fsync); !errors.Is(err, ErrRunning) {
		t.Errorf("while it runs: %v, %v", outcome, err)
	}
	if err := os.Remove(filepath.Join(d.Path, "postmaster.pid")); err != nil {
		t.Fatal(err)
	}
	if outcome, err := Recover(d.Path, nil, mmapio.Fsync); outcome != Finished || err != nil {
		t.Errorf("%v, %v", outcome, err)
	}
	expect(t, d.Path, "new")
}

func TestRecoverRefusesWhatItCannotTell(t *testing.T) {
	closed := func(t *testing.T) *Dir { // died between the renames
		d := swappable(t)
		dieAt(2, func() error { return d.Swap(Journal{After: after}, nil, mmapio.Fsync) })
		return d
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, d *Dir)
		says  string
	}{
		"counters of neither": {func(t *testing.T, d *Dir) { resetTo(d.Path)(Counters{7, 8, 9}) }, "next multi 7"},
		"another cluster": {func(t *testing.T, d *Dir) {
			d.Control.SystemID = 42
			write(t, d.Path, "global/pg_control", d.Control.Encode())
		}, "42"},
		"a damaged control": {func(t *testing.T, d *Dir) { os.Truncate(filepath.Join(d.Path, "global/pg_control"), 100) }, "pg_resetwal"},
		"a damaged journal": {func(t *testing.T, d *Dir) { write(t, d.Path, journalFile, []byte("{")) }, journalFile},
		"a later journal": {func(t *testing.T, d *Dir) {
			b, _ := os.ReadFile(filepath.Join(d.Path, journalFile))
			write(t, d.Path, journalFile, []byte(strings.Replace(string(b), `"version": 1`, `"version": 2`, 1)))
		}, "version 2"},
		"no journal": {func(t *testing.T, d *Dir) { os.Remove(filepath.Join(d.Path, journalFile)) }, "there is no " + journalFile},
		"the result gone": {func(t *testing.T, d *Dir) {
			resetTo(d.Path)(after)
			os.RemoveAll(d.BuildPath())
		}, buildDir + " is missing"},
		"renames undone by a power cut": {func(t *testing.T, d *Dir) {
			resetTo(d.Path)(after)
			os.Rename(filepath.Join(d.Path, asideDir), filepath.Join(d.Path, multixactDir))
		}, multixactDir + " is there"},
		"a folder come from nowhere": {func(t *testing.T, d *Dir) { write(t, d.Path, multixactDir+"/offsets/0000", nil) }, multixactDir + " is there"},
	} {
		d := closed(t)
		c.spoil(t, d)
		tree := listing(t, d.Path)
		outcome, err := Recover(d.Path, func(Counters) error { t.Errorf("%s: the reset is called", name); return nil }, mmapio.Fsync)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), d.Path) {
			t.Errorf("%s: %v, %v; want an error that says %q", name, outcome, err, c.says)
		}
		if now := listing(t, d.Path); !slices.Equal(now, tree) {
			t.Errorf("%s: %q became %q", name, tree, now)
		}
	}
}

func TestRecoverRemovesAResultThatWasNotSwapped(t *testing.T) {
	d := swappable(t)
	write(t, d.Path, "."+journalFile+".123", nil) // died while it wrote the journal
	if outcome, err := Recover(d.Path, nil, mmapio.Fsync); outcome != Nothing || err != nil {
		t.Errorf("%v, %v", outcome, err)
	}
	expect(t, d.Path, "old")
	if outcome, err := Recover(filepath.Join(d.Path, "nowhere"), nil, mmapio.Fsync); outcome != Nothing || err != nil {
		t.Errorf("no data directory: %v, %v", outcome, err)
	}
}
