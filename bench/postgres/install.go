// Package postgres runs real PostgreSQL installations: it makes clusters, starts and stops them, puts multixacts into them,
// reads them back, and upgrades them with the pg_upgrade that is this project's peer. Tests of the whole project and the
// benchmarks stand on it; the helpers that need a testing.TB are in package postgrestest.
//
// PostgreSQL refuses to run as root, so whatever is started by root runs as the user postgres, and folders are given to it.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Env names the environment variable for the folder of installations: version 18 is looked for in $MXWIDEN_PG/18/bin.
const Env = "MXWIDEN_PG"

// ErrAbsent is wrapped by the error of Find for an installation that is not there.
var ErrAbsent = errors.New("no such PostgreSQL installation")

// An Install is a PostgreSQL installation.
type Install struct {
	Major string // "10" to "19"
	Bin   string // the folder of initdb, postgres and pg_ctl; only in complete ones pg_upgrade, pg_controldata and pg_resetwal too
}

// Find is the installation of a major version under $MXWIDEN_PG, or /opt/pg without it. The error wraps ErrAbsent where it
// is not there, and says what to set.
func Find(major string) (Install, error) {
	root := os.Getenv(Env)
	if root == "" {
		root = "/opt/pg"
	}
	i := Install{major, filepath.Join(root, major, "bin")}
	if !i.Has("postgres") {
		return Install{}, fmt.Errorf("%w: version %s is not in %s; set %s to a folder that has %s/bin/postgres",
			ErrAbsent, major, i.Bin, Env, major)
	}
	return i, nil
}

// Has reports whether the installation has a program.
func (i Install) Has(program string) bool {
	_, err := os.Stat(filepath.Join(i.Bin, program))
	return err == nil
}

// Init makes a cluster in dir, which must be absent or empty, in the C locale and with the superuser postgres, who needs no
// password. It has no data checksums unless args, which are initdb's, ask for them: so clusters of any two versions fit each
// other.
func (i Install) Init(dir string, args ...string) (*Cluster, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a data directory: %w", err)
	}
	if err := Own(dir); err != nil {
		return nil, err
	}
	c := i.Open(dir)
	all := []string{"--no-sync", "-A", "trust", "-U", "postgres", "-D", c.Dir}
	if number, err := strconv.Atoi(i.Major); err == nil && number >= 18 {
		all = append(all, "--no-data-checksums")
	}
	return c, run(c.Command(context.Background(), "initdb", append(all, args...)...))
}

// Open is the cluster in dir, which stays as it is. A data directory that root has written is made fit to start by Own.
func (i Install) Open(dir string) *Cluster {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return &Cluster{Install: i, Dir: dir}
}

// Own gives a folder and all in it to the user that servers run as.
func Own(dir string) error {
	cred, err := credential()
	if err != nil || cred == nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(cred.Uid), int(cred.Gid))
	})
}

// credential is that of the user postgres for root, nil for everybody else.
func credential() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, err
}

// run runs a command and keeps what it printed for the error.
func run(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %s: %w\n%s", filepath.Base(cmd.Path), err, tail(out))
	}
	return nil
}

// tail is the last lines of what a program printed.
func tail(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
