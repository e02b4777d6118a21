package mmapio

import (
	"errors"
	"fmt"
	"os"

	"github.com/edsrzf/mmap-go"
	"golang.org/x/sys/unix"
)

// Files numbers files that form one range of bytes, each of the same full size, some perhaps short or absent.
type Files interface {
	// File is where file n is and its size in bytes. It is not ok where there is none.
	File(n int64) (path string, size int64, ok bool)
}

// A Reader shows a numbered run of files as one contiguous range of bytes. It belongs to one goroutine.
type Reader struct {
	run
	window int64 // bytes
	source source
	start  int64 // of the view, in the range
	view   []byte
}

// A run is files of equal full size.
type run struct {
	files     Files
	fileBytes int64
}

// file is the path of file n and how many of its bytes count: none of a file that is absent, no more than a whole
// file's.
func (r run) file(n int64) (path string, size int64) {
	path, size, ok := r.files.File(n)
	if !ok {
		return "", 0
	}
	return path, min(size, r.fileBytes)
}

// A source brings bytes of a run into memory.
type source interface {
	// load returns memory with at least the n bytes at off, n above 0, and where in the run it starts.
	load(off int64, n int) (start int64, view []byte, err error)
	close() error
}

// NewReader is a Reader of files of fileBytes each when whole, a multiple of the page size for Map. It has room for
// window of them at once.
func NewReader(files Files, fileBytes int64, window int, b Backing) (*Reader, error) {
	if fileBytes <= 0 || window <= 0 {
		return nil, fmt.Errorf("reading %d files of %d bytes at once: neither can be", window, fileBytes)
	}
	r := &Reader{run: run{files, fileBytes}, window: int64(window) * fileBytes}
	if b == Map {
		a, err := newArena(window, fileBytes, unix.PROT_READ)
		if err != nil {
			return nil, err
		}
		r.source = &mapSource{r.run, a}
		return r, nil
	}
	memory, err := newStage(r.window + pageSize)
	if err != nil {
		return nil, err
	}
	r.source = &stageSource{run: r.run, memory: memory}
	return r, nil
}

// Bytes is the n bytes at off, where file i begins at i*fileBytes. They may span as many files as the window has. They
// are to be read only, within Guard, and stand until the next call; their address is off, modulo the page size. What is
// absent, a file or the end of a short one, reads as zeros. What the call before brought into view costs nothing. A
// file that has become shorter than Files says is an error that wraps io.ErrUnexpectedEOF, or a fault.
func (r *Reader) Bytes(off int64, n int) ([]byte, error) {
	if n <= 0 {
		return nil, nil
	}
	if at := off - r.start; at >= 0 && at+int64(n) <= int64(len(r.view)) {
		return r.view[at:][:n:n], nil
	}
	if off < 0 || off%r.fileBytes+int64(n) > r.window {
		return nil, fmt.Errorf("reading %d bytes at %d: outside a window of %d bytes", n, off, r.window)
	}
	r.view = nil
	start, view, err := r.source.load(off, n)
	if err != nil {
		return nil, err
	}
	r.start, r.view = start, view
	return view[off-start:][:n:n], nil
}

// Close unmaps and closes everything. What Bytes returned is gone.
func (r *Reader) Close() error {
	r.view = nil
	return r.source.close()
}

var pageSize = int64(os.Getpagesize())

// A stageSource copies exactly what is asked for into its memory.
type stageSource struct {
	run
	memory mmap.MMap
	last   *file // kept open, since what comes next is mostly in the same file
	number int64 // of last
}

func (s *stageSource) load(off int64, n int) (int64, []byte, error) {
	view := s.memory[off%pageSize:][:n]
	for rest, off := view, off; len(rest) > 0; {
		number, at := off/s.fileBytes, off%s.fileBytes
		piece := rest[:min(int64(len(rest)), s.fileBytes-at)]
		if err := s.read(piece, number, at); err != nil {
			return 0, nil, err
		}
		rest, off = rest[len(piece):], off+int64(len(piece))
	}
	return off, view, nil
}

func (s *stageSource) read(b []byte, number, at int64) error {
	path, size := s.file(number)
	present := min(max(size-at, 0), int64(len(b)))
	clear(b[present:])
	if present == 0 {
		return nil
	}
	if s.last == nil || s.number != number {
		if err := s.drop(); err != nil {
			return err
		}
		f, err := open(path)
		if err != nil {
			return err
		}
		s.last, s.number = &f, number
	}
	return s.last.read(b[:present], at)
}

func (s *stageSource) drop() error {
	if s.last == nil {
		return nil
	}
	f := *s.last
	s.last = nil
	return f.close()
}

func (s *stageSource) close() error { return errors.Join(s.drop(), s.memory.Unmap()) }

// A mapSource maps whole files.
type mapSource struct {
	run
	*arena
}

func (s *mapSource) load(off int64, n int) (int64, []byte, error) {
	if err := s.clear(); err != nil {
		return 0, nil, err
	}
	first, last := off/s.fileBytes, (off+int64(n)-1)/s.fileBytes
	for number := first; number <= last; number++ {
		if err := s.open(int(number-first), number); err != nil {
			return 0, nil, err
		}
	}
	view := s.memory[:(last-first+1)*s.fileBytes]
	populateRead(view)
	return first * s.fileBytes, view, nil
}

// open maps a file into a slot. Where it is short or absent the slot reads as zeros.
func (s *mapSource) open(slot int, number int64) error {
	path, size := s.file(number)
	if size == 0 {
		return nil
	}
	f, err := open(path)
	if err != nil {
		return err
	}
	defer f.close()
	st, err := f.stat()
	if err != nil {
		return err
	}
	if st.Size < size {
		return f.ended(st.Size)
	}
	return s.place(slot, f, size)
}
