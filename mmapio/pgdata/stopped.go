package pgdata

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrLocked is what the error of Lock wraps when another process holds the lock.
var ErrLocked = errors.New("another mxwiden is working on it: wait until it ends")

// CheckStopped makes sure that no server uses the data directory and that the last one ended well, by reading postmaster.pid
// and pg_control again (Control is what it then finds). Errors wrap ErrRunning or ErrNotShutDown, and say what to do.
//
// The states that pass are those given; without any they are ShutDown and ShutDownInRecovery. A process counts as a server
// if it lives and is neither this one nor its parent, whatever program it is, as it does for PostgreSQL itself. A
// postmaster.pid whose process is dead is let pass when the state is right: nothing is lost then.
func (d *Dir) CheckStopped(states ...State) error {
	if err := checkProcess(d.Path); err != nil {
		return err
	}
	c, err := readControl(d.Path)
	if err != nil {
		return err
	}
	d.Control = c
	if len(states) == 0 {
		states = []State{ShutDown, ShutDownInRecovery}
	}
	if slices.Contains(states, c.State) {
		return nil
	}
	advice := "start the server and stop it again (pg_ctl stop -m fast)"
	if c.State == ShutDownInRecovery {
		advice = "it is a standby: start it, promote it (pg_ctl promote) and stop it"
	}
	return fmt.Errorf("checking %s: %w: its state is %q; %s", d.Path, ErrNotShutDown, c.State, advice)
}

func checkProcess(path string) error {
	file := filepath.Join(path, "postmaster.pid")
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for a server: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid == 0 {
		return fmt.Errorf("looking for a server: %w: %s begins with %q, not with a process: a server may be starting; if it is not, remove the file",
			ErrRunning, file, line)
	}
	pid = max(pid, -pid) // of a server in single-user mode it is negative
	if pid == os.Getpid() || pid == os.Getppid() || !alive(pid) {
		return nil
	}
	return fmt.Errorf("looking for a server: %w: process %d of %s lives: stop it first (pg_ctl stop -m fast)", ErrRunning, pid, file)
}

// Lock keeps other runs of this program off the data directory at path, until what it returns is closed, and leaves nothing
// behind in it, not even when the process is killed. A child that inherits the file holds the lock as well. It does not keep
// servers off. The error wraps ErrLocked if somebody else has the lock.
func Lock(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("locking a data directory: %w", err)
	}
	if err := flock(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), dir.Close())
	}
	return dir, nil
}
