package mmapio

import (
	"errors"
	"fmt"

	"github.com/edsrzf/mmap-go"
	"golang.org/x/sys/unix"
)

// A NewFile is a file to be written: where, and its size in bytes.
type NewFile struct {
	Path string
	Size int64
}

// A Writer fills new files, a window of them at a time. It belongs to one goroutine.
type Writer struct {
	fileBytes int64
	window    int
	perm      Perm
	behind    bool

	stage  mmap.MMap // for Stage
	arena  *arena    // for Map
	memory []byte    // of either
	files  []NewFile // begun and not committed, or in part
	open   []file    // the first of files
}

// NewWriter is a Writer of files of up to fileBytes each, a multiple of the page size for Map, window of them at once.
// With behind the system starts to write each file to disk as soon as it is whole, for a sync that follows.
func NewWriter(fileBytes int64, window int, b Backing, perm Perm, behind bool) (*Writer, error) {
	if fileBytes <= 0 || window <= 0 {
		return nil, fmt.Errorf("writing %d files of %d bytes at once: neither can be", window, fileBytes)
	}
	w := &Writer{fileBytes: fileBytes, window: window, perm: perm, behind: behind}
	var err error
	if b == Map {
		if w.arena, err = newArena(window, fileBytes, unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return nil, err
		}
		w.memory = w.arena.memory
		return w, nil
	}
	if w.stage, err = newStage(int64(window) * fileBytes); err != nil {
		return nil, err
	}
	w.memory = w.stage
	return w, nil
}

// Begin creates files, none of which may exist, and returns the window to fill: file i is what stands at i*fileBytes,
// Size bytes of it. The window holds anything; all of it has to be set, within Guard, before Commit. On Map the files
// have their room on disk already, where the file system can give it. After an error the files created are there until
// the caller removes them.
func (w *Writer) Begin(files []NewFile) ([]byte, error) {
	if len(files) > w.window || len(w.files) > 0 {
		return nil, fmt.Errorf("writing %d files: the window has room for %d, and %d are in it",
			len(files), w.window, len(w.files))
	}
	w.files = append(w.files, files...)
	for i, n := range files {
		if err := w.create(i, n); err != nil {
			return nil, err
		}
	}
	window := w.memory[:int64(len(files))*w.fileBytes]
	if w.arena != nil {
		populateWrite(window)
	}
	return window, nil
}

func (w *Writer) create(i int, n NewFile) error {
	if n.Size < 0 || n.Size > w.fileBytes {
		return fmt.Errorf("writing %s: %d bytes are not within %d", n.Path, n.Size, w.fileBytes)
	}
	f, err := create(n.Path, w.perm)
	if err != nil {
		return err
	}
	w.open = append(w.open, f)
	if w.arena == nil || n.Size == 0 {
		return nil
	}
	if err := f.preallocate(n.Size); err != nil {
		return err
	}
	return w.arena.place(i, f, n.Size)
}

// Commit gives the files of Begin their contents and closes them. It does not sync. An error names the file, and
// ENOSPC, EIO and EFAULT are among what it may wrap.
func (w *Writer) Commit() error {
	if w.arena != nil {
		if err := w.arena.clear(); err != nil {
			return err
		}
	}
	for i, f := range w.open {
		if err := errors.Join(w.finish(i, f), f.close()); err != nil {
			w.open = w.open[i+1:]
			return err
		}
	}
	w.files, w.open = w.files[:0], w.open[:0]
	return nil
}

func (w *Writer) finish(i int, f file) error {
	if w.arena == nil {
		if err := f.write(w.memory[int64(i)*w.fileBytes:][:w.files[i].Size], 0); err != nil {
			return err
		}
	}
	if w.behind {
		return f.writeBehind()
	}
	return nil
}

// Close unmaps and closes everything, also after an error. Files that were begun and not committed stay as they are.
func (w *Writer) Close() error {
	var errs []error
	for _, f := range w.open {
		errs = append(errs, f.close())
	}
	w.open = nil
	if w.arena != nil {
		return errors.Join(append(errs, w.arena.close())...)
	}
	return errors.Join(append(errs, w.stage.Unmap())...)
}
