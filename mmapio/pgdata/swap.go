package pgdata

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mxwiden/mxwiden/mmapio"
)

// The names in a data directory that a swap works with. Nothing else in it is touched.
const (
	multixactDir = "pg_multixact"
	buildDir     = "pg_multixact.mxwiden-new"   // the result, until it is in place
	asideDir     = "pg_multixact.mxwiden-old"   // what was there before
	probeDir     = "pg_multixact.mxwiden-probe" // pg_multixact for the moment of a probe
	journalFile  = "mxwiden.journal"
)

const journalVersion = 1

// A Journal is what a run of Swap writes down for the run that has to end it. A caller fills in OldSystemID, After and Retain.
type Journal struct {
	Version     int      `json:"version"`
	OldSystemID uint64   `json:"oldSystemID"` // of the cluster that was converted, for whoever reads the journal
	NewSystemID uint64   `json:"newSystemID"`
	Before      Counters `json:"before"` // what pg_control says before the reset
	After       Counters `json:"after"`  // and after it
	Retain      bool     `json:"retain"` // keep the old folder
}

// ErrSwap is what the errors of Swap and Recover wrap when the journal is left in place: a later Recover needs all that is
// there, the folder at BuildPath too.
var ErrSwap = errors.New("the swap of pg_multixact is neither finished nor undone")

// BuildPath is where the caller builds the pg_multixact that Swap puts in place: beside it, under a name of its own.
func (d *Dir) BuildPath() string { return filepath.Join(d.Path, buildDir) }

// ProbeSwap finds out whether Swap will be able to rename pg_multixact, by renaming it and renaming it back. That is the one
// certain way (an overlayfs refuses a directory of a lower layer, and that one alone). What a server can do in between is
// as in Swap; a run that dies there leaves the folder under a name that only a probe uses, and Recover puts it back. The
// cluster must be "shut down"; what Swap requires to be absent must be.
func (d *Dir) ProbeSwap() error {
	s, err := d.swap(mmapio.NoSync)
	if err != nil {
		return err
	}
	if err := s.rename(multixactDir, probeDir); err != nil {
		if crossDevice(err) {
			err = fmt.Errorf("%w: it is in a lower layer of an overlayfs; copy it, and put the copy in its place", err)
		}
		return err
	}
	return s.rename(probeDir, multixactDir)
}

// Swap puts the folder at BuildPath, which must be whole and synced, in the place of pg_multixact, and has reset set the
// counters of pg_control to j.After in between, so that the one is never there without the other:
//
//   - write the journal;
//   - rename pg_multixact aside;
//   - call reset, and see that pg_control says j.After;
//   - rename the result into place;
//   - remove the old folder, unless j.Retain, and the journal.
//
// Every step is on disk before the next, unless sync is NoSync. While pg_multixact is aside, a server does not start, or (version 19
// with a nextMulti that begins a page) starts but can neither make a multixact nor write a checkpoint, so pg_control stays as it is.
//
// Whenever the process dies, Recover ends or undoes what it did. An error that wraps ErrSwap leaves the rest to Recover as
// well; any other leaves everything as it was, and after the journal was begun the result is removed.
//
// The cluster must be "shut down" and still have the counters and the system identifier of d.Control. The caller holds Lock.
func (d *Dir) Swap(j Journal, reset func() error, sync mmapio.SyncMethod) error {
	before := d.Control
	s, err := d.swap(sync)
	if err != nil {
		return err
	}
	if c := d.Control; c.Counters() != before.Counters() || c.SystemID != before.SystemID {
		return fmt.Errorf("swapping pg_multixact of %s: pg_control has changed: it said %v, and now says %v", d.Path, before.Counters(), c.Counters())
	}
	if info, err := os.Lstat(d.BuildPath()); err != nil || !info.IsDir() {
		return errors.Join(fmt.Errorf("swapping pg_multixact of %s: there is no folder at %s", d.Path, d.BuildPath()), err)
	}
	j.Version, j.NewSystemID, j.Before = journalVersion, before.SystemID, before.Counters()
	err = s.run(j, d.Perm, reset)
	if there, _ := s.there(journalFile); there && err != nil && !errors.Is(err, ErrSwap) {
		err = fmt.Errorf("%w, and the next run will go on with it: %w", ErrSwap, err)
	}
	return err
}

// swap is a swap in the data directory, after all that must hold before one.
func (d *Dir) swap(sync mmapio.SyncMethod) (swap, error) {
	s := swap{d.Path, sync}
	if err := d.CheckStopped(ShutDown); err != nil {
		return s, err
	}
	info, err := os.Lstat(s.path(multixactDir))
	if err != nil {
		return s, fmt.Errorf("swapping pg_multixact: %w", err)
	}
	if !info.IsDir() {
		return s, fmt.Errorf("swapping pg_multixact: %s is no directory (%v), and only one can be swapped; convert with --output, and put the result in place by hand",
			s.path(multixactDir), info.Mode().Type())
	}
	for _, name := range []string{asideDir, probeDir, journalFile} {
		if there, err := s.there(name); err != nil || there {
			return s, errors.Join(fmt.Errorf("swapping pg_multixact: %s is in the way: an earlier run left or retained it; move it away", s.path(name)), err)
		}
	}
	return s, nil
}

// A swap is the steps, each of which is on disk when it returns.
type swap struct {
	dir  string
	sync mmapio.SyncMethod
}

// step is called before every change to the disk, by name. Tests die here.
var step = func(name string) {}

func (s swap) path(name string) string { return filepath.Join(s.dir, name) }

func (s swap) there(name string) (bool, error) {
	_, err := os.Lstat(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (s swap) rename(from, to string) error {
	step("rename " + from)
	if err := os.Rename(s.path(from), s.path(to)); err != nil {
		return fmt.Errorf("swapping pg_multixact: %w", err)
	}
	return s.settle()
}

func (s swap) remove(name string) error {
	step("remove " + name)
	if err := os.RemoveAll(s.path(name)); err != nil {
		return fmt.Errorf("swapping pg_multixact: %w", err)
	}
	return s.settle()
}

// settle syncs the data directory itself.
func (s swap) settle() error {
	if s.sync == mmapio.NoSync {
		return nil
	}
	return mmapio.SyncDir(s.dir)
}

func (s swap) write(j Journal, perm mmapio.Perm) error {
	b, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return fmt.Errorf("writing a journal: %w", err)
	}
	step("write " + journalFile)
	if err := mmapio.WriteFileAtomic(s.path(journalFile), perm, s.sync, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	}); err != nil {
		return fmt.Errorf("writing a journal: %w", err)
	}
	return nil
}

// run is the swap from the journal on.
func (s swap) run(j Journal, perm mmapio.Perm, reset func() error) error {
	err := s.write(j, perm)
	if err == nil {
		err = s.rename(multixactDir, asideDir)
	}
	if err != nil {
		return errors.Join(err, s.undo())
	}
	return s.reset(j, reset)
}

// reset calls the reset, with pg_multixact aside, and goes on or back by what pg_control then says.
func (s swap) reset(j Journal, reset func() error) error {
	step("reset")
	failure := reset()
	step("after the reset")
	c, err := readControl(s.dir)
	if err != nil {
		return errors.Join(failure, s.damaged(err))
	}
	counters := c.Counters()
	if failure == nil && counters != j.After {
		failure = fmt.Errorf("pg_control then says %v, not %v", counters, j.After)
	}
	switch {
	case failure == nil:
		return s.finish(j)
	case counters == j.Before:
		return errors.Join(fmt.Errorf("setting the counters of %s: %w", s.dir, failure), s.undo())
	}
	return fmt.Errorf("setting the counters of %s: %w: pg_multixact is kept aside, as %s, until the next run: %w", s.dir, ErrSwap, asideDir, failure)
}

// finish puts the result in place, once the counters are set.
func (s swap) finish(j Journal) error {
	if err := s.rename(buildDir, multixactDir); err != nil {
		return err
	}
	return s.tidy(j)
}

// tidy removes what a finished swap does not need. The journal goes last: without it, an old folder is one that was retained.
func (s swap) tidy(j Journal) error {
	if !j.Retain {
		if err := s.remove(asideDir); err != nil {
			return err
		}
	}
	return s.remove(journalFile)
}

// undo puts the old folder back, if it is not there. The result goes last: without it, a journal is that of a finished swap.
func (s swap) undo() error {
	there, err := s.there(multixactDir)
	if err == nil && !there {
		err = s.rename(asideDir, multixactDir)
	}
	if err != nil {
		return err
	}
	if err := s.remove(journalFile); err != nil {
		return err
	}
	return s.remove(buildDir)
}

// damaged explains a pg_control that cannot be read between the two renames.
func (s swap) damaged(err error) error {
	return fmt.Errorf("swapping pg_multixact of %s: %w: a pg_resetwal that was killed may have left it so; make the new cluster again: %w", s.dir, ErrSwap, err)
}
