package mmapio

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// A file is a descriptor and the path it was opened by. An os.File costs an fstat, an epoll_ctl and a finalizer more,
// which among many small files is a tenth of the work.
type file struct {
	fd   int
	path string
}

func open(path string) (file, error) {
	return openFile(path, unix.O_RDONLY, 0)
}

// create makes a file that must not exist, with the mode and owner of perm. After an error there is none.
func create(path string, perm Perm) (file, error) {
	f, err := openFile(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL, uint32(perm.File.Perm()))
	if err != nil {
		return file{}, err
	}
	if err := perm.give(f, perm.File); err != nil {
		return file{}, errors.Join(err, f.close(), os.Remove(path))
	}
	return f, nil
}

func openFile(path string, flags int, mode uint32) (file, error) {
	f := file{-1, path}
	err := f.retry("open", func() (err error) {
		f.fd, err = unix.Open(path, flags|unix.O_CLOEXEC, mode)
		return err
	})
	return f, err
}

// close closes the descriptor. It is gone after an EINTR too.
func (f file) close() error {
	if err := unix.Close(f.fd); err != nil && err != unix.EINTR {
		return f.failed("close", err)
	}
	return nil
}

func (f file) stat() (unix.Stat_t, error) {
	var st unix.Stat_t
	err := f.retry("stat", func() error { return unix.Fstat(f.fd, &st) })
	return st, err
}

// read fills b with the bytes from off on. A file that ends before is an error.
func (f file) read(b []byte, off int64) error { return f.transfer("read", unix.Pread, b, off) }

func (f file) write(b []byte, off int64) error { return f.transfer("write", unix.Pwrite, b, off) }

func (f file) transfer(op string, call func(fd int, b []byte, off int64) (int, error), b []byte, off int64) error {
	for len(b) > 0 {
		n, err := call(f.fd, b, off)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return f.failed(op, err)
		case n == 0:
			return f.ended(off)
		default:
			b, off = b[n:], off+int64(n)
		}
	}
	return nil
}

// retry calls again what a signal interrupted, and names the file in what fails otherwise.
func (f file) retry(op string, call func() error) error {
	for {
		if err := call(); err == nil {
			return nil
		} else if err != unix.EINTR {
			return f.failed(op, err)
		}
	}
}

func (f file) failed(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.path, Err: err}
}

// ended is the error of a file that is shorter than it was.
func (f file) ended(at int64) error {
	return fmt.Errorf("read %s: it has become shorter: no bytes from %d on: %w", f.path, at, io.ErrUnexpectedEOF)
}
