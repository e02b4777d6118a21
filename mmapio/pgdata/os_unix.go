//go:build unix

package pgdata

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// owner is the user and group that a file belongs to.
func owner(info os.FileInfo) (uid, gid int) {
	stat := info.Sys().(*syscall.Stat_t)
	return int(stat.Uid), int(stat.Gid)
}

// alive reports whether there is a process, be it one that we may not signal.
func alive(pid int) bool {
	err := unix.Kill(pid, 0)
	return err == nil || errors.Is(err, unix.EPERM)
}

// flock takes the exclusive lock of an open file, which ends when the file is closed.
func flock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// crossDevice reports whether a rename failed as it does for a directory of a lower layer of an overlayfs.
func crossDevice(err error) bool { return errors.Is(err, unix.EXDEV) }
