package mmapio_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mxwiden/mxwiden/mmapio"
)

// writers is everything that creates something, by what it creates.
var writers = map[string]func(t *testing.T, path string, perm mmapio.Perm) error{
	"a folder": func(t *testing.T, path string, perm mmapio.Perm) error { return mmapio.MkdirPerm(path, perm) },
	"a file by stage": func(t *testing.T, path string, perm mmapio.Perm) error {
		return create(t, path, mmapio.Stage, perm)
	},
	"a file by map": func(t *testing.T, path string, perm mmapio.Perm) error { return create(t, path, mmapio.Map, perm) },
	"a file carried": func(t *testing.T, path string, perm mmapio.Perm) error {
		src := filepath.Join(t.TempDir(), "src")
		return errors.Join(os.WriteFile(src, nil, 0o600), mmapio.CarryFile(path, src, mmapio.AutoCopy, perm))
	},
	"a file put in place": func(t *testing.T, path string, perm mmapio.Perm) error {
		return mmapio.WriteFileAtomic(path, perm, mmapio.NoSync, writes(nil))
	},
}

func create(t *testing.T, path string, b mmapio.Backing, perm mmapio.Perm) error {
	w := newWriter(t, 4096, 1, b, perm, false)
	if _, err := w.Begin([]mmapio.NewFile{{Path: path, Size: 4096}}); err != nil {
		return err
	}
	return w.Commit()
}

func TestModesAreGivenWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o077} {
		for _, perm := range []mmapio.Perm{private, {File: 0o640, Dir: 0o750, UID: -1, GID: -1}} {
			for what, write := range writers {
				path := filepath.Join(t.TempDir(), "new")
				if err := underUmask(umask, func() error { return write(t, path, perm) }); err != nil {
					t.Fatalf("%s under umask %#o: %v", what, umask, err)
				}
				info, err := os.Stat(path)
				if err != nil {
					t.Fatal(err)
				}
				want := perm.File
				if info.IsDir() {
					want = perm.Dir | fs.ModeDir
				}
				if info.Mode() != want {
					t.Errorf("%s under umask %#o has mode %v, want %v", what, umask, info.Mode(), want)
				}
			}
		}
	}
}

func underUmask(umask int, f func() error) error {
	defer syscall.Umask(syscall.Umask(umask))
	return f()
}

func TestOwnersAreGiven(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("run as root to give files away")
	}
	for what, write := range writers {
		path := filepath.Join(t.TempDir(), "new")
		if err := write(t, path, mmapio.Perm{File: 0o600, Dir: 0o700, UID: 12, GID: 34}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 12 || st.Gid != 34 {
			t.Errorf("%s is owned by %d:%d", what, st.Uid, st.Gid)
		}
	}
}

func TestMkdirPermRefusesAFolderThatIsThere(t *testing.T) {
	if err := mmapio.MkdirPerm(t.TempDir(), private); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
}
