package convert

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
)

// openCluster takes a stopped cluster of version 19, once what a run that died in it left is ended.
func (c *conversion) openCluster() (*place, error) {
	if err := c.inside(c.NewDir); err != nil {
		return nil, err
	}
	reset, err := newResetter(c.NewBin, c.NewDir)
	if err != nil {
		return nil, err
	}
	if reset.lock, err = pgdata.Lock(c.NewDir); err != nil {
		return nil, err
	}
	p := &place{path: c.NewDir, there: c.NewDir, lock: reset.lock}
	if err := c.takeCluster(p, reset); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// takeCluster makes sure that the cluster at p can take the result, and says how it is put there.
func (c *conversion) takeCluster(p *place, reset resetter) error {
	dead, err := pgdata.ReadJournal(c.NewDir)
	if err != nil {
		return err
	}
	outcome := pgdata.Nothing
	if !c.Check {
		if outcome, err = pgdata.Recover(c.NewDir, reset.run, c.Sync); err != nil {
			return err
		}
		if outcome != pgdata.Nothing {
			c.recovered = outcome.String()
			c.Verbose("an earlier run on %s had died: %s", c.NewDir, outcome)
		}
	}
	dir, err := pgdata.Open(c.NewDir)
	if err != nil {
		return err
	}
	if err := c.suits(dir); err != nil {
		return err
	}
	switch {
	case outcome == pgdata.Finished && dead.OldSystemID == c.src.dir.Control.SystemID:
		c.stands = dir.Control.Counters() // and pg_multixact could be renamed, as has just been done
	case !c.Check:
		if err := dir.ProbeSwap(); err != nil {
			return err
		}
	}
	p.perm, p.build = dir.Perm, dir.BuildPath()
	p.prepare = func() error { return nil }
	p.discard = func() error { return os.RemoveAll(p.build) }
	p.put = func(c *conversion) error {
		after := c.after()
		journal := pgdata.Journal{OldSystemID: c.src.dir.Control.SystemID, After: after, Retain: c.Retain}
		err := dir.Swap(journal, func() error { return reset.run(after) }, c.Sync)
		if errors.Is(err, pgdata.ErrSwap) {
			p.discard = func() error { return nil } // the next run needs it
		}
		return err
	}
	return nil
}

// after is what the counters of the new cluster are to be.
func (c *conversion) after() pgdata.Counters {
	return pgdata.Counters{NextMulti: c.src.live.Next, OldestMulti: c.src.live.Oldest, NextOffset: c.next}
}

// suits refuses a new cluster that is not of version 19, not shut down, of another block size, or that holds what the
// conversion would destroy.
func (c *conversion) suits(dir *pgdata.Dir) error {
	control, old := dir.Control, c.src.dir.Control
	if control.Major() != newMajor {
		return fmt.Errorf("new cluster %s is of version %s, not %s: make one with initdb of version %s", dir.Path, control.Major(), newMajor, newMajor)
	}
	if err := dir.CheckStopped(pgdata.ShutDown); err != nil {
		return err
	}
	if control.BlockSize != old.BlockSize {
		return fmt.Errorf("new cluster %s has blocks of %d bytes, the old one of %d: it takes a server built with the same", dir.Path, control.BlockSize, old.BlockSize)
	}
	slots, err := dir.LogicalSlots()
	if err != nil {
		return err
	}
	if len(slots) > 0 {
		if err := c.override("new cluster %s has logical replication slots, which pg_resetwal breaks: %s; drop them, or", dir.Path, strings.Join(slots, ", ")); err != nil {
			return err
		}
	}
	has, live := control.Counters(), c.src.live
	switch {
	case has == pgdata.Counters{NextMulti: multixact.FirstMulti, OldestMulti: multixact.FirstMulti, NextOffset: 1}:
		if live.Oldest != multixact.FirstMulti { // else what initdb has set is right
			c.add(Finding{Kind: FreshCluster, Text: fmt.Sprintf("datminmxid and relminmxid of %s are those of initdb; once what refers to the old multis is in it, run "+
				"UPDATE pg_database SET datminmxid = '%d', and for its tables UPDATE pg_class SET relminmxid = '%d' WHERE relkind IN ('r', 'm', 't'), as pg_upgrade does", dir.Path, live.Oldest, live.Oldest)})
		}
	case has.NextMulti == live.Next && has.OldestMulti == live.Oldest: // pg_upgrade's, or ours
	default:
		return c.override("new cluster %s is neither fresh nor just made by pg_upgrade from %s: it has %v, the old one next multi %d, oldest multi %d; make it again, or",
			dir.Path, c.src.dir.Path, has, live.Next, live.Oldest)
	}
	return nil
}

// override refuses, unless the user forces it: then the refusal is a finding.
func (c *conversion) override(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if !c.Force {
		return fmt.Errorf("%s use --force", text)
	}
	c.add(Finding{Kind: Forced, Text: strings.TrimSuffix(text, ", or")})
	return nil
}

// A resetter runs pg_resetwal of version 19 as the owner of the new cluster: it refuses to be run by anybody else.
type resetter struct {
	program, dataDir string
	lock             *os.File // pg_resetwal inherits it: if it outlives this run, no other can begin
}

// newResetter refuses a bin folder that has no pg_resetwal of version 19, and a user who is neither root nor the cluster's owner.
func newResetter(bin, dataDir string) (resetter, error) {
	r := resetter{program: filepath.Join(bin, "pg_resetwal"), dataDir: dataDir}
	var err error
	if r.dataDir, err = filepath.Abs(dataDir); err != nil {
		return r, err
	}
	out, err := exec.Command(r.program, "--version").Output()
	if err != nil {
		return r, fmt.Errorf("asking %s for its version: %w; -B has to name the bin folder of PostgreSQL %s", r.program, err, newMajor)
	}
	version := strings.TrimSpace(string(out))
	if fields := strings.Fields(version); len(fields) < 3 || !strings.HasPrefix(fields[2], newMajor) {
		return r, fmt.Errorf("%s is %q; -B has to name the bin folder of PostgreSQL %s", r.program, version, newMajor)
	}
	return r, asOwner(exec.Command(r.program), dataDir)
}

// run sets the counters.
func (r resetter) run(to pgdata.Counters) error {
	cmd := exec.Command(r.program, "-O", strconv.FormatUint(to.NextOffset, 10), "-m", fmt.Sprintf("%d,%d", to.NextMulti, to.OldestMulti), r.dataDir)
	cmd.Dir = r.dataDir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.ExtraFiles = []*os.File{r.lock}
	if err := asOwner(cmd, r.dataDir); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
