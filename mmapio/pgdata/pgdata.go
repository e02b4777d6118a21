// Package pgdata looks at a PostgreSQL data directory from outside: its version, what its pg_control says, whether a server
// may be using it, who owns it and how its files are to be made. [Open] reads all that without changing anything;
// [Dir.CheckStopped] is to be asked before anything is done.
//
// It also puts a new pg_multixact into a version 19 cluster together with the counters that belong to it ([Dir.Swap]), so
// that the two are never seen apart, and brings to an end what a dead run left ([Recover]).
//
// What is in pg_multixact it does not know: that is package slru and kernels/multixact.
package pgdata

import (
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"
	"strings"

	"github.com/mxwiden/mxwiden/mmapio"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

// What the errors of Open and CheckStopped wrap.
var (
	ErrNotDataDir  = errors.New("not a PostgreSQL data directory")
	ErrUnsupported = errors.New("cluster cannot be handled")
	ErrRunning     = errors.New("server is running")
	ErrNotShutDown = errors.New("cluster is not shut down cleanly")
)

// A Dir is a data directory as Open found it.
type Dir struct {
	Path    string
	Version string // of PG_VERSION: the major version, "9.3" to "19"
	Control Control
	Perm    mmapio.Perm // of the files and directories that PostgreSQL makes in it
}

// Open reads PG_VERSION, global/pg_control and the mode and owner of the data directory at path. Errors wrap ErrNotDataDir where one of
// the files is missing, ErrUnsupported where they contradict each other or the block size is none of PostgreSQL's, and those
// of ParseControl.
func Open(path string) (*Dir, error) {
	version, err := os.ReadFile(filepath.Join(path, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		what := "there is no PG_VERSION in it"
		if _, err := os.Stat(path); err != nil {
			what = "it does not exist"
		}
		return nil, fmt.Errorf("opening %s: %w: %s; name the folder that holds PG_VERSION and global/pg_control", path, ErrNotDataDir, what)
	}
	if err != nil {
		return nil, fmt.Errorf("opening a data directory: %w", err)
	}
	d := &Dir{Path: path, Version: strings.TrimSpace(string(version))}
	if d.Control, err = readControl(path); err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("opening %s: %w: %w", path, ErrUnsupported, err)
	}
	d.Perm, err = permOf(path)
	return d, err
}

func (d *Dir) check() error {
	c := d.Control
	if c.Major() != d.Version {
		return fmt.Errorf("PG_VERSION says %q, but pg_control (version %d, catalog version %d) is that of %s", d.Version, c.ControlVersion, c.CatalogVersion, c.Major())
	}
	if c.BlockSize < 1<<10 || c.BlockSize > 32<<10 || bits.OnesCount32(c.BlockSize) != 1 {
		return fmt.Errorf("pg_control gives a block size of %d bytes, which is none that PostgreSQL can have", c.BlockSize)
	}
	if c.SLRUPagesPerSegment != 0 && c.SLRUPagesPerSegment != slru.PagesPerSegment {
		return fmt.Errorf("its SLRU segments have %d pages, and only %d are supported", c.SLRUPagesPerSegment, slru.PagesPerSegment)
	}
	return nil
}

// readControl reads the pg_control of the data directory at path.
func readControl(path string) (Control, error) {
	file := filepath.Join(path, "global", "pg_control")
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(file + ".old"); err == nil {
			return Control{}, fmt.Errorf("opening %s: %w: pg_upgrade --link or --swap has renamed its global/pg_control to pg_control.old, so that "+
				"no server starts on it; to have it read, give the file its name back", path, ErrNotDataDir)
		}
		return Control{}, fmt.Errorf("opening %s: %w: there is no global/pg_control in it; name a whole data directory, or restore the file from a backup", path, ErrNotDataDir)
	}
	if err != nil {
		return Control{}, fmt.Errorf("opening a data directory: %w", err)
	}
	c, err := ParseControl(b)
	if err != nil {
		return Control{}, fmt.Errorf("reading %s: %w", file, err)
	}
	return c, nil
}

// permOf is what PostgreSQL makes files with in the data directory at path: group access there is group access in it
// (GetDataDirectoryCreatePerm in file_perm.c), and all belongs to one user.
func permOf(path string) (mmapio.Perm, error) {
	info, err := os.Stat(path)
	if err != nil {
		return mmapio.Perm{}, fmt.Errorf("opening a data directory: %w", err)
	}
	p := mmapio.Perm{File: 0o600, Dir: 0o700}
	if info.Mode()&0o750 == 0o750 {
		p.File, p.Dir = 0o640, 0o750
	}
	p.UID, p.GID = owner(info)
	return p, nil
}

// OffsetsDir is the path of the offsets SLRU.
func (d *Dir) OffsetsDir() string { return filepath.Join(d.Path, multixactDir, "offsets") }

// MembersDir is the path of the members SLRU.
func (d *Dir) MembersDir() string { return filepath.Join(d.Path, multixactDir, "members") }
