package mmapio

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	populateRead  = unix.MADV_POPULATE_READ
	populateWrite = unix.MADV_POPULATE_WRITE
)

// allocate gives a new file its size and its room on disk, so that a full disk is an error here and not a fault later. A file
// system that can't only gives the size: Guard takes the fault then.
func allocate(f *os.File, size int64) error {
	err := retry(func() error { return unix.Fallocate(int(f.Fd()), 0, 0, size) })
	if errors.Is(err, unix.EOPNOTSUPP) {
		return f.Truncate(size)
	}
	if err != nil {
		return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
	}
	return nil
}

// writeBehind starts the writing of a file to disk and does not wait for it.
func writeBehind(f *os.File) {
	_ = unix.SyncFileRange(int(f.Fd()), 0, 0, unix.SYNC_FILE_RANGE_WRITE)
}

func syncfs(dir *os.File) error { return unix.Syncfs(int(dir.Fd())) }

func reflink(dst, src *os.File) error {
	return retry(func() error { return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) })
}

func copyRange(dst, src *os.File, n int) (copied int, err error) {
	err = retry(func() error {
		copied, err = unix.CopyFileRange(int(src.Fd()), nil, int(dst.Fd()), nil, n, 0)
		return err
	})
	return copied, err
}

// retry calls again what a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
