package mmapio_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mxwiden/mxwiden/mmapio"
	"golang.org/x/sys/unix"
)

func TestSyncTreeLeavesNothingDirty(t *testing.T) {
	for _, m := range []mmapio.SyncMethod{mmapio.Fsync, mmapio.Syncfs} {
		for _, jobs := range []int{0, 3} {
			dir := t.TempDir()
			var paths []string
			for _, name := range []string{"a", "b", "sub/c", "sub/sub/d"} {
				path := filepath.Join(dir, name)
				made := os.MkdirAll(filepath.Dir(path), 0o700)
				if err := errors.Join(made, os.WriteFile(path, make([]byte, 100_000), 0o600)); err != nil {
					t.Fatal(err)
				}
				paths = append(paths, path)
			}
			if err := mmapio.SyncTree(dir, m, jobs); err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				if n := dirtyPages(t, path); n > 0 {
					t.Errorf("%s leaves %d pages of %s dirty", m, n, path)
				}
			}
		}
	}
}

// dirtyPages is how many pages of a file are in memory alone.
func dirtyPages(t *testing.T, path string) uint64 {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err == nil && st.Type == unix.TMPFS_MAGIC {
		t.Skip("set TMPDIR to a folder on a disk: what is on tmpfs is always dirty")
	}
	var pages unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &pages, 0); err != nil {
		t.Skipf("needs Linux 6.5: cachestat: %v", err)
	}
	return pages.Dirty + pages.Writeback
}
