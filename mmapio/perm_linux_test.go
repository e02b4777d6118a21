package mmapio_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/mxwiden/mxwiden/mmapio"
	"golang.org/x/sys/unix"
)

// nobody is a user with no rights of its own.
const nobody = 65534

// asOrdinaryUser runs f as one, with a folder of its own.
func asOrdinaryUser(t *testing.T, f func(dir string)) {
	t.Helper()
	if os.Getuid() != 0 {
		f(t.TempDir())
		return
	}
	dir, err := os.MkdirTemp("", "mmapio")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // which alone has another user, for files
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	defer unix.Setfsuid(0)
	f(dir)
}

func TestNothingIsLeftOfWhatCannotBeGivenAway(t *testing.T) {
	asOrdinaryUser(t, func(dir string) {
		for what, write := range writers {
			path := filepath.Join(dir, "new")
			if err := write(t, path, mmapio.Perm{File: 0o600, Dir: 0o700, UID: 0, GID: -1}); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("giving %s to root: %v", what, err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%s that could not be given to root leaves %v, %v", what, left, err)
			}
		}
	})
}

func TestAFolderIsMadeUnderAUmaskThatTakesEverything(t *testing.T) {
	asOrdinaryUser(t, func(dir string) {
		path := filepath.Join(dir, "new")
		if err := underUmask(0o777, func() error { return mmapio.MkdirPerm(path, private) }); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != private.Dir|fs.ModeDir {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	})
}
