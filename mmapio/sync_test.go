package mmapio_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/mxwiden/mxwiden/mmapio"
)

func TestParseSyncMethod(t *testing.T) {
	for name, want := range map[string]mmapio.SyncMethod{"fsync": mmapio.Fsync, "syncfs": mmapio.Syncfs} {
		if got, err := mmapio.ParseSyncMethod(name); err != nil || got != want || got.String() != name {
			t.Errorf("%s is %s, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "none", "FSYNC"} {
		if got, err := mmapio.ParseSyncMethod(name); err == nil {
			t.Errorf("%q is %s", name, got)
		}
	}
}

func TestSyncOfAFolderThatIsNotThere(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for m, want := range map[mmapio.SyncMethod]error{mmapio.Fsync: fs.ErrNotExist, mmapio.Syncfs: fs.ErrNotExist, mmapio.NoSync: nil} {
		if err := mmapio.SyncTree(none, m, 2); !errors.Is(err, want) {
			t.Errorf("%s: %v", m, err)
		}
	}
	if err := mmapio.SyncDir(none); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := mmapio.FreeBytes(none); !errors.Is(err, fs.ErrNotExist) || !names(err, none) {
		t.Error(err)
	}
}

func TestWriteFileAtomicReplacesAFileWhole(t *testing.T) {
	for _, m := range []mmapio.SyncMethod{mmapio.Fsync, mmapio.Syncfs, mmapio.NoSync} {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		for _, data := range []string{"the first", "the second, which is longer", ""} {
			if err := mmapio.WriteFileAtomic(path, mmapio.Perm{File: 0o640, UID: -1, GID: -1}, m, writes([]byte(data))); err != nil {
				t.Fatal(err)
			}
			holds(t, path, []byte(data))
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		// what cannot be replaced stays, and nothing else does
		taken := filepath.Join(dir, "folder")
		if err := os.MkdirAll(filepath.Join(taken, "in it"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := mmapio.WriteFileAtomic(taken, private, m, writes([]byte("data"))); err == nil {
			t.Error("a folder was replaced by a file")
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
			t.Errorf("%v are left, %v", left, err)
		}
	}
}

// writes has WriteFileAtomic write data.
func writes(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}
