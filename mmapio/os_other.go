//go:build !linux

package mmapio

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

func populateRead([]byte)  {}
func populateWrite([]byte) {}

// preallocate makes the file size bytes long.
func (f file) preallocate(size int64) error {
	return f.retry("truncate", func() error { return unix.Ftruncate(f.fd, size) })
}

func (f file) writeBehind() error { return nil }

func (f file) syncfs() error { return f.failed("syncfs", errors.ErrUnsupported) }

func (f file) clone(file) error { return f.failed("clone", errors.ErrUnsupported) }

func (f file) copyRange(file, int64, int64) (int, error) {
	return 0, f.failed("copy_file_range", errors.ErrUnsupported)
}

var started = time.Now()

// threadTime is how long this thread has had a processor, at most.
func threadTime() time.Duration { return time.Since(started) }

func blockSize(st *unix.Statfs_t) uint64 { return uint64(st.Bsize) }
