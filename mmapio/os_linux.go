package mmapio

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// populateRead and populateWrite bring all pages of a range into memory and into the page table in one call. It is
// advice: kernels before 5.14 lack it, and what cannot be populated will tell by a fault when it is touched.
func populateRead(b []byte)  { unix.Madvise(b, unix.MADV_POPULATE_READ) }
func populateWrite(b []byte) { unix.Madvise(b, unix.MADV_POPULATE_WRITE) }

// preallocate makes the file size bytes long, with room for them on disk where the file system can.
func (f file) preallocate(size int64) error {
	err := f.retry("fallocate", func() error { return unix.Fallocate(f.fd, 0, 0, size) })
	if errors.Is(err, errors.ErrUnsupported) {
		return f.retry("truncate", func() error { return unix.Ftruncate(f.fd, size) })
	}
	return err
}

// writeBehind starts to write what is in memory of the file to disk, where the system can without a sync.
func (f file) writeBehind() error {
	err := f.retry("sync_file_range", func() error {
		return unix.SyncFileRange(f.fd, 0, 0, unix.SYNC_FILE_RANGE_WRITE)
	})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

func (f file) syncfs() error {
	return f.retry("syncfs", func() error { return unix.Syncfs(f.fd) })
}

// clone makes f share the blocks of from.
func (f file) clone(from file) error {
	return f.retry("clone", func() error { return unix.IoctlFileClone(f.fd, from.fd) })
}

// copyRange has the file system copy up to size bytes of from, at off in both.
func (f file) copyRange(from file, off, size int64) (n int, err error) {
	err = f.retry("copy_file_range", func() (err error) {
		read, write := off, off
		n, err = unix.CopyFileRange(from.fd, &read, f.fd, &write, int(size), 0)
		return err
	})
	return n, err
}

// threadTime is how long this thread has had a processor.
func threadTime() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // cannot fail: the clock is always there
	return time.Duration(t.Nano())
}

// blockSize is what the counts of st are in: f_bsize is the best size of a transfer, and the same only mostly.
func blockSize(st *unix.Statfs_t) uint64 {
	if st.Frsize > 0 {
		return uint64(st.Frsize)
	}
	return uint64(st.Bsize)
}
