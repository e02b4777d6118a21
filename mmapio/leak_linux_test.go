package mmapio_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mxwiden/mxwiden/mmapio"
)

// held is what this process has open or mapped of the files in dir.
func held(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if path, _ := os.Readlink(filepath.Join("/proc/self/fd", entry.Name())); strings.HasPrefix(path, dir) {
			all = append(all, "open: "+path)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, dir) {
			all = append(all, "mapped: "+line)
		}
	}
	return all
}

// A closer is a Reader or a Writer.
type closer interface{ Close() error }

func TestNothingIsHeldAfterClose(t *testing.T) {
	const fileBytes, window = 32 << 10, 3
	read := func(t *testing.T, f folder, b mmapio.Backing) (closer, error) {
		r, err := mmapio.NewReader(f, fileBytes, window, b)
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.Bytes(0, window*fileBytes)
		return r, err
	}
	write := func(t *testing.T, f folder, b mmapio.Backing) (closer, error) {
		w := newWriter(t, fileBytes, window, b, private, true)
		var list []mmapio.NewFile
		for n := range int64(window) {
			list = append(list, mmapio.NewFile{Path: f.path(window + n), Size: fileBytes})
		}
		_, err := w.Begin(list)
		return w, err
	}
	for _, c := range []struct {
		what    string
		prepare func(f folder) error
		open    func(t *testing.T, f folder, b mmapio.Backing) (closer, error)
		fails   bool
	}{
		{"a reader", nil, read, false},
		{"a reader whose last file is gone", func(f folder) error { return os.Remove(f.path(2)) }, read, true},
		{"a reader whose last file is cut", func(f folder) error { return os.Truncate(f.path(2), 100) }, read, true},
		{"a writer", nil, write, false},
		{"a writer whose last file exists", func(f folder) error { return os.WriteFile(f.path(5), nil, 0o600) }, write, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			onEach(t, func(t *testing.T, b mmapio.Backing) {
				files, _ := fill(t, fileBytes, fileBytes, fileBytes, fileBytes)
				if c.prepare != nil {
					if err := c.prepare(files); err != nil {
						t.Fatal(err)
					}
				}
				opened, err := c.open(t, files, b)
				if (err != nil) != c.fails {
					t.Errorf("got error %v", err)
				}
				if !c.fails && len(held(t, files.dir)) == 0 {
					t.Error("nothing is held before Close")
				}
				if err := opened.Close(); err != nil {
					t.Error(err)
				}
				for _, what := range held(t, files.dir) {
					t.Error("still", what)
				}
			})
		})
	}
}

func TestNothingIsHeldAfterCommit(t *testing.T) {
	const fileBytes = 32 << 10
	onEach(t, func(t *testing.T, b mmapio.Backing) {
		dir := t.TempDir()
		w := newWriter(t, fileBytes, 2, b, private, true)
		if _, err := write(w, dir, fileBytes, rand.NewChaCha8([32]byte{}), fileBytes, 5000); err != nil {
			t.Fatal(err)
		}
		for _, what := range held(t, dir) {
			t.Error("still", what)
		}
	})
}

func TestNothingIsHeldAfterCarryingAndChoosing(t *testing.T) {
	const fileBytes = 32 << 10
	files, _ := fill(t, fileBytes, fileBytes)
	src, dst := files.path(0), filepath.Join(files.dir, "dst")
	for m := mmapio.AutoCopy; m <= mmapio.Link; m++ {
		mmapio.CheckCopy(src, files.dir, m, private)
		mmapio.CarryFile(dst, src, m, private)
		mmapio.CarryFile(dst, src, m, private) // fails, since it exists
		os.Remove(dst)
	}
	if _, err := mmapio.Choose(files, 0, 1, fileBytes, files.dir, private); err != nil {
		t.Error(err)
	}
	mmapio.WriteFileAtomic(files.dir, private, mmapio.Fsync, writes(nil))
	mmapio.SyncTree(files.dir, mmapio.Fsync, 2)
	mmapio.SyncTree(files.dir, mmapio.Syncfs, 2)
	for _, what := range held(t, files.dir) {
		t.Error("still", what)
	}
}

// addressSpace is how much of it this process has taken, in bytes.
func addressSpace(t *testing.T) (pages int64) {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscan(bytes.NewReader(statm), &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

func TestWindowsAreGivenBack(t *testing.T) {
	const fileBytes, rounds = 256 << 20, 20
	onEach(t, func(t *testing.T, b mmapio.Backing) {
		before := addressSpace(t)
		for range rounds {
			r, err := mmapio.NewReader(folder{}, fileBytes, 1, b)
			if err != nil {
				t.Fatal(err)
			}
			w, err := mmapio.NewWriter(fileBytes, 1, b, private, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(r.Close(), w.Close()); err != nil {
				t.Fatal(err)
			}
		}
		if grown := addressSpace(t) - before; grown > rounds*fileBytes/2 {
			t.Errorf("%d bytes of address space are gone", grown)
		}
	})
}

// A call that maps over a window and fails may have left a gap, in which by now there is something else.
func TestAWindowIsLeftAloneAfterAFileThatCannotBeMapped(t *testing.T) {
	unmappable := folder{t.TempDir(), map[int64]int64{0: 1}}
	if err := os.MkdirAll(filepath.Join(unmappable.path(0), "in it"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := newReader(t, unmappable, 4096, 1, mmapio.Map)
	if _, err := r.Bytes(0, 1); !names(err, unmappable.path(0)) {
		t.Errorf("mapping a folder: %v", err)
	}
	if _, err := r.Bytes(4096, 1); err == nil {
		t.Error("the window is still used")
	}
}
