package mmapio

import (
	"fmt"
	"os"

	"github.com/edsrzf/mmap-go"
)

// A NewFile is a file to be written, with its size in bytes.
type NewFile struct {
	Path string
	Size int64
}

// A Writer fills new files, several at a time, through one window. It belongs to one goroutine, which should run under Guard.
type Writer struct {
	fileBytes int64
	window    int
	perm      Perm
	behind    bool

	stage mmap.MMap
	area  *area
	open  []*os.File
	files []NewFile
}

// NewWriter writes files of at most fileBytes each, a multiple of the memory page, window of them at a time. With behind, the
// writing to disk of each is started when it is finished, for whoever waits for it later.
func NewWriter(fileBytes int64, window int, b Backing, perm Perm, behind bool) (w *Writer, err error) {
	w = &Writer{fileBytes: fileBytes, window: window, perm: perm, behind: behind}
	if b == Map && fileBytes%int64(os.Getpagesize()) == 0 {
		w.area, err = reserve(window, fileBytes)
	} else {
		w.stage, err = newArena(int64(window) * fileBytes)
	}
	return w, err
}

// Begin creates files, none of which may exist, and has a window to be filled: file i is at [i*fileBytes, i*fileBytes+Size).
// What is there before is not defined, so every byte must be set. Mapped files have their room on disk from here on.
func (w *Writer) Begin(files []NewFile) ([]byte, error) {
	if len(files) > w.window || len(w.open) > 0 {
		return nil, fmt.Errorf("beginning %d files with %d open, in a window of %d", len(files), len(w.open), w.window)
	}
	w.files = files
	for i, file := range files {
		if file.Size > w.fileBytes {
			return nil, fmt.Errorf("%s: %d bytes do not fit a window of %d", file.Path, file.Size, w.fileBytes)
		}
		f, err := w.perm.create(file.Path)
		if err != nil {
			return nil, err
		}
		w.open = append(w.open, f)
		if w.area == nil || file.Size == 0 {
			continue
		}
		if err := allocate(f, file.Size); err != nil {
			return nil, err
		}
		if err := w.area.show(i, f, file.Size, true); err != nil {
			return nil, err
		}
	}
	if w.area != nil {
		w.area.populate(len(files), true)
		return w.area.bytes[:int64(len(files))*w.fileBytes], nil
	}
	return w.stage[:int64(len(files))*w.fileBytes], nil
}

// Commit writes out what is staged and closes the files. A full or failing disk is an error that names the file.
func (w *Writer) Commit() error {
	if w.area != nil {
		if err := w.area.clear(); err != nil {
			return err
		}
	}
	for i, f := range w.open {
		if w.area == nil {
			if _, err := f.WriteAt(w.stage[int64(i)*w.fileBytes:][:w.files[i].Size], 0); err != nil {
				return err
			}
		}
		if w.behind {
			writeBehind(f)
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	w.open = w.open[:0]
	return nil
}

// Close lets go of the memory, and of files that were begun and not committed: they stay as they are.
func (w *Writer) Close() error {
	for _, f := range w.open {
		f.Close() // of those already closed by Commit this is an error that does not matter
	}
	w.open = nil
	if w.area != nil {
		return w.area.Close()
	}
	return w.stage.Unmap()
}
