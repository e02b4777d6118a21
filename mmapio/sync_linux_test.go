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
			dir := onDisk(t)
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

// onDisk is a folder whose files can be brought to a disk. What is on tmpfs is always dirty.
func onDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	if st.Type == unix.TMPFS_MAGIC {
		return mount(t, "ext4", 64<<20)
	}
	return dir
}

func TestWriteBehindStartsWritingAtOnce(t *testing.T) {
	dir := onDisk(t)
	for _, backing := range []mmapio.Backing{mmapio.Stage, mmapio.Map} {
		dirty := map[bool]uint64{}
		for _, behind := range []bool{true, false} {
			w, err := mmapio.NewWriter(1<<20, 1, backing, private, behind)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, backing.String()+map[bool]string{true: " behind", false: " as it comes"}[behind])
			window, err := w.Begin([]mmapio.NewFile{{Path: path, Size: 1 << 20}})
			if err != nil {
				t.Fatal(err)
			}
			for i := range window {
				window[i] = byte(i)
			}
			if err := errors.Join(w.Commit(), w.Close()); err != nil {
				t.Fatal(err)
			}
			dirty[behind] = cached(t, path).Dirty
		}
		if dirty[true] > 0 || dirty[false] == 0 {
			t.Errorf("%s: %d pages wait to be written with write-behind, %d without", backing, dirty[true], dirty[false])
		}
	}
}

// dirtyPages is how many pages of a file are in memory alone.
func dirtyPages(t *testing.T, path string) uint64 {
	pages := cached(t, path)
	return pages.Dirty + pages.Writeback
}

// cached is what the page cache holds of a file.
func cached(t *testing.T, path string) unix.Cachestat_t {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var pages unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &pages, 0); err != nil {
		t.Skipf("needs Linux 6.5: cachestat: %v", err)
	}
	return pages
}
