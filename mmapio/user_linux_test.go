package mmapio_test

import (
	"os"
	"runtime"
	"testing"

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
