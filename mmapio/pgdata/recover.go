package pgdata

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/mxwiden/mxwiden/mmapio"
)

// An Outcome is what Recover found and did.
type Outcome uint8

// The outcomes.
const (
	Nothing  Outcome = iota // no run died here
	Finished                // the new pg_multixact and its counters are in place
	Undone                  // the old ones are
)

// String is the outcome in words.
func (o Outcome) String() string {
	return [...]string{"nothing to do", "finished", "undone"}[o]
}

// Recover ends what a dead run of ProbeSwap or Swap left in the data directory at path, and removes a result that was not
// yet being put in place. It is to be called, under Lock, before anything else is done with a new cluster; where there is
// nothing to do, it changes nothing, even if there is no data directory. The outcome is meant only where there is no error.
//
// Between Swap's two renames pg_control cannot have moved from what the run left: if it says the journal's Before, the old
// folder is put back. If it says After, reset is called with these counters once more, since the run may have died before
// pg_resetwal had written its WAL, and then the result is put in place. If it says neither, or cannot be read, nothing is
// touched, and the error wraps ErrSwap and says what was found. A server that runs there must be stopped first: ErrRunning.
func Recover(path string, reset func(Counters) error, sync mmapio.SyncMethod) (Outcome, error) {
	s := swap{path, sync}
	f, err := s.find()
	if err != nil {
		return Nothing, err
	}
	if !f.inPlace && (f.aside || f.probed) {
		if err := checkProcess(path); err != nil {
			return Nothing, err
		}
	}
	if f.journal == nil {
		return s.recoverWithout(f)
	}
	j := *f.journal
	c, err := readControl(path)
	if err != nil {
		return Nothing, s.damaged(err)
	}
	before, after := c.Counters() == j.Before, c.Counters() == j.After
	switch {
	case j.Version != journalVersion:
		return Nothing, s.unclear("%s has version %d, and this program knows %d", journalFile, j.Version, journalVersion)
	case c.SystemID != j.NewSystemID:
		return Nothing, s.unclear("%s is of the cluster with system identifier %d, but pg_control says %d", journalFile, j.NewSystemID, c.SystemID)

	case f.inPlace && !f.built: // the second rename was done
		return Finished, s.tidy(j)
	case f.inPlace && !f.aside && (before || !after): // the first rename was not done, or undone; a server may have run since
		return Undone, s.undo()

	case !f.inPlace && f.aside && f.built && after && c.State != ShutDown: // pg_resetwal was done: a server has run since
		return Finished, s.finish(j)
	case !f.inPlace && f.aside && f.built && after:
		return Finished, s.reset(j, func() error { return reset(j.After) })
	case !f.inPlace && f.aside && before:
		return Undone, s.undo()
	}
	return Nothing, s.unclear("pg_control says %v; the journal says %v before and %v after; %s", c.Counters(), j.Before, j.After, f)
}

// ReadJournal is the journal that a dead run of Swap left in the data directory at path, nil where there is none.
func ReadJournal(path string) (*Journal, error) {
	f, err := swap{dir: path}.find()
	return f.journal, err
}

// recoverWithout is Recover where there is no journal.
func (s swap) recoverWithout(f found) (Outcome, error) {
	switch {
	case f.probed && !f.inPlace:
		return Undone, s.rename(probeDir, multixactDir)
	case f.aside && !f.inPlace:
		return Nothing, s.unclear("there is no %s; %s", journalFile, f)
	}
	entries, err := os.ReadDir(s.dir)
	for _, entry := range entries {
		if name := entry.Name(); name == buildDir || mmapio.IsTemp(name, journalFile) {
			err = errors.Join(err, s.remove(name))
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Nothing, nil // not even a data directory
	}
	return Nothing, err
}

func (s swap) unclear(format string, args ...any) error {
	return fmt.Errorf("recovering %s: %w, and nothing is changed: %s; make the new cluster again", s.dir, ErrSwap, fmt.Sprintf(format, args...))
}

// found is what of a swap is in a data directory.
type found struct {
	inPlace, aside, built, probed bool
	journal                       *Journal
}

func (s swap) find() (f found, err error) {
	for name, there := range map[string]*bool{multixactDir: &f.inPlace, asideDir: &f.aside, buildDir: &f.built, probeDir: &f.probed} {
		if *there, err = s.there(name); err != nil {
			return f, fmt.Errorf("recovering a data directory: %w", err)
		}
	}
	b, err := os.ReadFile(s.path(journalFile))
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &f.journal)
	}
	if err != nil {
		return f, fmt.Errorf("recovering a data directory: reading %s: %w", s.path(journalFile), err)
	}
	return f, nil
}

// String names the folders that are there and those that are not.
func (f found) String() string {
	is := map[bool]string{true: "there", false: "missing"}
	return fmt.Sprintf("%s is %s, %s is %s, %s is %s", multixactDir, is[f.inPlace], asideDir, is[f.aside], buildDir, is[f.built])
}
