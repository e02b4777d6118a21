// Package synth writes data directories of PostgreSQL 9.3 to 18 that hold multixacts of any kind and number, and nothing
// else: enough for a conversion, and with postgres.Cluster.Inject for a real server. A [Shape] draws a large one from a
// few numbers; a [Spec] lists every multi.
package synth

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
)

// A Header is what a cluster is beside its multis.
type Header struct {
	Version     string // "18" without one; "9.3" to "18"
	BlockSize   int    // bytes, 8192 without one
	First       uint32 // the oldest multi; 0 stands for 1
	FirstOffset uint32 // nextOffset before the first multi: where it begins, but at 1 for 0
	Ahead       bool   // the entry of nextMulti is written too, as recent minor releases of 14 and later do: 1 for 2^32

	// Control, if there, changes pg_control before it is written.
	Control func(*pgdata.Control)
}

// A Spec is a cluster with every multi listed. They are numbered from First on.
type Spec struct {
	Header
	Multis []Multi
}

// A Multi is one multi as it is to be on disk, sound or not.
type Multi struct {
	Members []multixact.Member // written to its slots; a zero Member is a slot that was never written
	Lost    bool               // its entry is unset
	Offset  uint32             // where it begins if not at the end of the multi before; 0 for there
}

// A Result is what has been written.
type Result struct {
	multixact.Range        // as pg_control has it, but a nextOffset of 2^32 is that, and not 0
	Members         uint64 // slots given to multis
	Files           int    // segments
	Bytes           int64  // of segments
}

// WriteMultis makes the cluster of spec in dir, which must be absent or empty.
func WriteMultis(dir string, spec Spec) (Result, error) {
	return write(dir, spec.Header, slices.Values(spec.Multis))
}

func write(dir string, h Header, multis iter.Seq[Multi]) (Result, error) {
	if h.Version == "" {
		h.Version = "18"
	}
	if h.BlockSize == 0 {
		h.BlockSize = 8192
	}
	if h.BlockSize < 1024 || h.BlockSize > 32768 || h.BlockSize&(h.BlockSize-1) != 0 {
		return Result{}, fmt.Errorf("making a cluster: block size %d is not a power of two from 1024 to 32768", h.BlockSize)
	}
	control, err := pgdata.NewControl(h.Version)
	if err != nil {
		return Result{}, fmt.Errorf("making a cluster: %w", err)
	}
	if control.SLRUPagesPerSegment != 0 { // 19 brought the field together with the new format
		return Result{}, fmt.Errorf("making a cluster: version %s does not have the old format", h.Version)
	}
	if err := folders(dir, h.Version); err != nil {
		return Result{}, err
	}
	result, err := writeMultixact(filepath.Join(dir, "pg_multixact"), h, multis)
	if err != nil {
		return Result{}, err
	}
	control.SystemID = 1
	control.BlockSize = uint32(h.BlockSize)
	control.OldestMulti, control.NextMulti, control.NextOffset = result.Oldest, result.Next, uint64(uint32(result.NextOffset))
	if h.Control != nil {
		h.Control(&control)
	}
	if err := os.WriteFile(filepath.Join(dir, "global", "pg_control"), control.Encode(), 0o600); err != nil {
		return Result{}, err
	}
	return result, os.WriteFile(filepath.Join(dir, "PG_VERSION"), []byte(h.Version+"\n"), 0o600)
}

// folders makes the folders by which a data directory is known (check_data_dir in pg_upgrade's exec.c).
func folders(dir, version string) error {
	switch held, err := os.ReadDir(dir); {
	case err == nil && len(held) > 0:
		return fmt.Errorf("making a cluster: %s is not empty: %w", dir, fs.ErrExist)
	case err != nil && !os.IsNotExist(err):
		return fmt.Errorf("making a cluster: %w", err)
	}
	names := []string{"base", "global", "pg_multixact/offsets", "pg_multixact/members", "pg_subtrans", "pg_tblspc", "pg_twophase"}
	renamed := []string{"pg_wal", "pg_xact"}
	if strings.HasPrefix(version, "9.") {
		renamed = []string{"pg_xlog", "pg_clog"}
	}
	for _, name := range append(names, renamed...) {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return fmt.Errorf("making a cluster: %w", err)
		}
	}
	return nil
}
