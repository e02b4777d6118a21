package mmapio_test

import (
	"bytes"
	"errors"
	"hash/crc32"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"github.com/mxwiden/mxwiden/kernels"
	"github.com/mxwiden/mxwiden/mmapio"
	"golang.org/x/sys/unix"
)

// readsOf is every way in which a fault may be met.
var readsOf = map[string]func(b []byte) error{
	"Go": func(b []byte) error {
		var sum byte
		for _, c := range b {
			sum += c
		}
		if sum == 1 {
			return errors.New("never, but the sum is used")
		}
		return nil
	},
	"memmove":   func(b []byte) error { copy(make([]byte, len(b)), b); return nil },
	"IndexByte": func(b []byte) error { bytes.IndexByte(b, 1); return nil },
	"crc32":     func(b []byte) error { crc32.Update(0, crc32.MakeTable(crc32.Castagnoli), b); return nil },
	"a kernel": func(b []byte) error {
		entries := unsafe.Slice((*uint32)(unsafe.Pointer(&b[0])), len(b)/4)
		kernels.Widen(make([]uint64, len(entries)), entries, 1, 0)
		return nil
	},
	"write(2)": func(b []byte) error {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer r.Close()
		defer w.Close()
		_, err = w.Write(b[len(b)-4096:])
		return err
	},
	"pwrite(2) to a file": func(b []byte) error {
		f, err := os.CreateTemp("", "")
		if err != nil {
			return err
		}
		defer os.Remove(f.Name())
		defer f.Close()
		_, err = f.WriteAt(b, 0)
		return err
	},
}

func TestGuardNamesAFileCutUnderItsMap(t *testing.T) {
	const fileBytes = 32 << 10
	for way, read := range readsOf {
		t.Run(way, func(t *testing.T) {
			files, _ := fill(t, fileBytes, fileBytes, 0, fileBytes, fileBytes)
			for n := range files.sizes { // zeros, so that IndexByte finds nothing before the fault
				if err := os.WriteFile(files.path(n), make([]byte, files.sizes[n]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := newReader(t, files, fileBytes, 4, mmapio.Map)
			newReader(t, files, fileBytes, 4, mmapio.Map) // not to be blamed
			err := mmapio.Guard(func() error {
				b, err := r.Bytes(0, 3*fileBytes)
				if err != nil {
					return err
				}
				if err := read(b); err != nil {
					t.Errorf("before the fault: %v", err)
				}
				if err := os.Truncate(files.path(2), 4096); err != nil {
					t.Fatal(err)
				}
				return read(b)
			})
			if !errors.Is(err, mmapio.ErrFault) || !names(err, files.path(2)) {
				t.Errorf("got %v, want a fault that names %s", err, files.path(2))
			}
			if strings.Contains(way, "write") && !errors.Is(err, unix.EFAULT) {
				t.Errorf("%v does not wrap EFAULT", err)
			}
			if debug.SetPanicOnFault(false) {
				t.Error("faults are still panics after Guard")
			}
			if _, err := r.Bytes(3*fileBytes, fileBytes); err != nil {
				t.Errorf("the reader is of no use after a fault: %v", err)
			}
		})
	}
}

func TestGuardNamesAFileCutWhileItIsWritten(t *testing.T) {
	const fileBytes = 32 << 10
	path := t.TempDir() + "/new"
	w := newWriter(t, fileBytes, 1, mmapio.Map, private, false)
	err := mmapio.Guard(func() error {
		window, err := w.Begin([]mmapio.NewFile{{Path: path, Size: fileBytes}})
		if err != nil {
			return err
		}
		if err := os.Truncate(path, 0); err != nil {
			return err
		}
		window[fileBytes-1] = 1
		return w.Commit()
	})
	if !errors.Is(err, mmapio.ErrFault) || !names(err, path) {
		t.Errorf("got %v, want a fault that names %s", err, path)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestGuardLeavesAloneWhatIsNotItsOwn(t *testing.T) {
	elsewhere, err := unix.Mmap(-1, 0, 4096, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(elsewhere)
	// nor is a place that no file is mapped at any more
	files, _ := fill(t, 4096, 4096)
	r := newReader(t, files, 4096, 1, mmapio.Map)
	if _, err := r.Bytes(0, 4096); err != nil {
		t.Fatal(err)
	}
	zeros, err := r.Bytes(4096, 4096)
	if err != nil {
		t.Fatal(err)
	}
	var nowhere *int
	for what, f := range map[string]func() error{
		"a panic":                func() error { panic("a panic") },
		"a nil pointer":          func() error { *nowhere = 1; return nil },
		"a fault elsewhere":      func() error { elsewhere[0] = 1; return nil },
		"a write without a file": func() error { zeros[0] = 1; return nil },
	} {
		t.Run(what, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not go on")
				}
			}()
			t.Errorf("returned %v", mmapio.Guard(f))
		})
	}
	own := errors.New("own")
	if err := mmapio.Guard(func() error { return own }); err != own {
		t.Errorf("the error of the function became %v", err)
	}
	if err := mmapio.Guard(func() error { return unix.EFAULT }); err != unix.EFAULT {
		t.Errorf("an EFAULT that is not of a map became %v", err)
	}
}
