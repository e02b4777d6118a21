package mmapio

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/edsrzf/mmap-go"
)

// Files numbers files that form one range of bytes, each of the same size when whole. A file may be short, or not there.
type Files interface {
	// File is the path of file n and its size in bytes; ok is false where there is none.
	File(n int64) (path string, size int64, ok bool)
}

// A Reader shows numbered files as one range of bytes: file n is [n*fileBytes, (n+1)*fileBytes). What is beyond the end of a
// short file reads as zeros, and so does one that is not there. It belongs to one goroutine, which should run under Guard.
type Reader struct {
	files     Files
	fileBytes int64
	window    int64 // in files

	stage    mmap.MMap
	area     *area
	off, end int64 // what is in view
	view     []byte
}

// NewReader reads files of fileBytes each, a multiple of the memory page, with at most window of them in view.
func NewReader(files Files, fileBytes int64, window int, b Backing) (r *Reader, err error) {
	r = &Reader{files: files, fileBytes: fileBytes, window: int64(window)}
	if b == Map && fileBytes%int64(os.Getpagesize()) == 0 {
		r.area, err = reserve(window, fileBytes)
	} else {
		r.stage, err = newArena(int64(window) * fileBytes)
	}
	return r, err
}

// Bytes is n bytes from off on. They may span files, up to the window, and are valid until the next call. Errors name the file.
func (r *Reader) Bytes(off int64, n int) ([]byte, error) {
	end := off + int64(n)
	if off < r.off || end > r.end {
		if err := r.load(off, end); err != nil {
			r.off, r.end = 0, 0
			return nil, err
		}
	}
	return r.view[off-r.off : end-r.off : end-r.off], nil
}

func (r *Reader) load(off, end int64) error {
	first, last := off/r.fileBytes, max(off, end-1)/r.fileBytes
	if last-first >= r.window {
		return fmt.Errorf("%d bytes at %d span %d files, and %d are shown at a time", end-off, off, last-first+1, r.window)
	}
	if r.area != nil {
		r.off, r.end, r.view = first*r.fileBytes, (last+1)*r.fileBytes, r.area.bytes
		return r.show(first, last)
	}
	r.off, r.end, r.view = off, end, r.stage
	for n := first; n <= last; n++ {
		lo, hi := max(off, n*r.fileBytes), min(end, (n+1)*r.fileBytes)
		if err := r.read(n, r.stage[lo-off:hi-off], lo-n*r.fileBytes); err != nil {
			return err
		}
	}
	return nil
}

// show maps files [first, last] side by side.
func (r *Reader) show(first, last int64) error {
	if err := r.area.clear(); err != nil {
		return err
	}
	for n := first; n <= last; n++ {
		path, size, ok := r.files.File(n)
		if size = min(size, r.fileBytes); !ok || size == 0 {
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		// the length may have changed since it was listed, and what is mapped beyond it would fault
		if info, err := f.Stat(); err == nil {
			size = min(size, info.Size())
		}
		if size > 0 {
			err = r.area.show(int(n-first), f, size, false)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	r.area.populate(int(last-first+1), false)
	return nil
}

// read fills dst from offset at of file n, and clears what the file does not have.
func (r *Reader) read(n int64, dst []byte, at int64) error {
	path, _, ok := r.files.File(n)
	if !ok {
		clear(dst)
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	got, err := f.ReadAt(dst, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	clear(dst[got:])
	return nil
}

// Close lets go of the memory.
func (r *Reader) Close() error {
	if r.area != nil {
		return r.area.Close()
	}
	return r.stage.Unmap()
}
