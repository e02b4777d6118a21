package pgdata

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mxwiden/mxwiden/mmapio"
)

// write writes a file below dir and makes the folders on the way.
func write(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// cluster makes a data directory with no more in it than Open and CheckStopped want, after change has had the Control.
func cluster(t *testing.T, major string, change func(*Control)) string {
	t.Helper()
	c, err := NewControl(major)
	if err != nil {
		t.Fatal(err)
	}
	c.SystemID = 0x1234567890ABCDEF
	if change != nil {
		change(&c)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "PG_VERSION", []byte(major+"\n"))
	write(t, dir, "global/pg_control", c.Encode())
	return dir
}

func open(t *testing.T, dir string) *Dir {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOpen(t *testing.T) {
	for _, r := range releases {
		dir := cluster(t, r.major, func(c *Control) { c.NextMulti = 77 })
		d := open(t, dir)
		if d.Path != dir || d.Version != r.major || d.Control.NextMulti != 77 {
			t.Errorf("%s: %+v", r.major, d)
		}
		if d.OffsetsDir() != dir+"/pg_multixact/offsets" || d.MembersDir() != dir+"/pg_multixact/members" {
			t.Errorf("SLRUs in %s and %s", d.OffsetsDir(), d.MembersDir())
		}
	}
}

func TestOpenGivesTheModesOfTheDataDirectory(t *testing.T) {
	for mode, want := range map[fs.FileMode]mmapio.Perm{
		0o700: {File: 0o600, Dir: 0o700},
		0o750: {File: 0o640, Dir: 0o750},
		0o740: {File: 0o600, Dir: 0o700},
		0o755: {File: 0o640, Dir: 0o750},
	} {
		dir := cluster(t, "18", nil)
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		want.UID, want.GID = os.Getuid(), os.Getgid()
		if got := open(t, dir).Perm; got != want {
			t.Errorf("%v: %+v, want %+v", mode, got, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  error
		says  string
	}{
		"nothing there":  {func(t *testing.T, dir string) { os.RemoveAll(dir) }, ErrNotDataDir, "PG_VERSION"},
		"no PG_VERSION":  {func(t *testing.T, dir string) { os.Remove(dir + "/PG_VERSION") }, ErrNotDataDir, "PG_VERSION"},
		"no pg_control":  {func(t *testing.T, dir string) { os.Remove(dir + "/global/pg_control") }, ErrNotDataDir, "global/pg_control"},
		"after --link":   {func(t *testing.T, dir string) { os.Rename(dir+"/global/pg_control", dir+"/global/pg_control.old") }, ErrNotDataDir, "pg_control.old"},
		"another's file": {func(t *testing.T, dir string) { write(t, dir, "PG_VERSION", []byte("17\n")) }, ErrUnsupported, `PG_VERSION says "17"`},
		"damaged": {func(t *testing.T, dir string) {
			b, _ := os.ReadFile(dir + "/global/pg_control")
			b[90]++
			write(t, dir, "global/pg_control", b)
		}, ErrCRC, "global/pg_control"},
		"truncated": {func(t *testing.T, dir string) { os.Truncate(dir+"/global/pg_control", 200) }, nil, "200 bytes"},
		"odd block size": {func(t *testing.T, dir string) {
			write(t, dir, "global/pg_control", Control{ControlVersion: 1800, CatalogVersion: 202506291, BlockSize: 8193}.Encode())
		}, ErrUnsupported, "8193 bytes"},
		"64 kB blocks": {func(t *testing.T, dir string) {
			write(t, dir, "global/pg_control", Control{ControlVersion: 1800, CatalogVersion: 202506291, BlockSize: 65536}.Encode())
		}, ErrUnsupported, "65536 bytes"},
	} {
		dir := cluster(t, "18", nil)
		c.spoil(t, dir)
		d, err := Open(dir)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %+v, %v; want %v that says %q and names the directory", name, d, err, c.want, c.says)
		}
	}
	dir := cluster(t, "19", func(c *Control) { c.SLRUPagesPerSegment = 64 })
	if _, err := Open(dir); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "64 pages") {
		t.Errorf("SLRU segments of 64 pages: %v", err)
	}
}

func TestCheckStoppedLooksAtTheState(t *testing.T) {
	for state := StartingUp; state <= InProduction+1; state++ {
		d := open(t, cluster(t, "18", func(c *Control) { c.State = state }))
		for name, c := range map[string]struct {
			states []State
			passes bool
		}{
			"old": {nil, state == ShutDown || state == ShutDownInRecovery},
			"new": {[]State{ShutDown}, state == ShutDown},
		} {
			err := d.CheckStopped(c.states...)
			switch {
			case c.passes && err != nil:
				t.Errorf("%s cluster, %v: %v", name, state, err)
			case !c.passes && (!errors.Is(err, ErrNotShutDown) || !strings.Contains(err.Error(), state.String()) || !strings.Contains(err.Error(), d.Path)):
				t.Errorf("%s cluster, %v: %v", name, state, err)
			}
		}
	}
}

func TestCheckStoppedReadsTheControlAgain(t *testing.T) {
	d := open(t, cluster(t, "18", nil))
	c := d.Control
	c.State, c.NextMulti = InProduction, 99
	write(t, d.Path, "global/pg_control", c.Encode())
	if err := d.CheckStopped(); !errors.Is(err, ErrNotShutDown) || d.Control.NextMulti != 99 {
		t.Errorf("next multi %d, %v", d.Control.NextMulti, err)
	}
}

func TestCheckStoppedLooksForTheProcess(t *testing.T) {
	live := exec.Command("sleep", "60")
	dead := exec.Command("true")
	if err := errors.Join(live.Start(), dead.Run()); err != nil {
		t.Fatal(err)
	}
	defer func() { live.Process.Kill(); live.Wait() }()
	for pidfile, want := range map[string]error{
		fmt.Sprintf("%d\n/data\n", live.Process.Pid): ErrRunning,
		fmt.Sprintf("-%d\n", live.Process.Pid):       ErrRunning, // single-user mode
		fmt.Sprintf("%d\n/data\n", dead.Process.Pid): nil,
		fmt.Sprintf("%d\n", os.Getpid()):             nil, // a number that was used again
		"":                                           ErrRunning,
		"nonsense\n":                                 ErrRunning,
	} {
		d := open(t, cluster(t, "18", nil))
		write(t, d.Path, "postmaster.pid", []byte(pidfile))
		if err := d.CheckStopped(); !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), "postmaster.pid") {
			t.Errorf("%q: %v, want %v", pidfile, err, want)
		}
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	lock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second lock: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	lock, err = Lock(dir)
	if err != nil {
		t.Fatalf("after the first was given back: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
