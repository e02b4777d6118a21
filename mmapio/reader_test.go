package mmapio_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/mxwiden/mxwiden/mmapio"
)

var backings = []mmapio.Backing{mmapio.Stage, mmapio.Map}

// onEach runs a test on either backing.
func onEach(t *testing.T, f func(t *testing.T, b mmapio.Backing)) {
	for _, b := range backings {
		t.Run(b.String(), func(t *testing.T) { f(t, b) })
	}
}

// folder is files by their numbers: those that dir holds, of the sizes listed.
type folder struct {
	dir   string
	sizes map[int64]int64
}

func (f folder) path(n int64) string { return filepath.Join(f.dir, fmt.Sprint(n)) }

func (f folder) File(n int64) (path string, size int64, ok bool) {
	size, ok = f.sizes[n]
	return f.path(n), size, ok
}

// fill writes random files of the sizes given, where -1 is an absent one, and returns them and the range of bytes they
// stand for.
func fill(t testing.TB, fileBytes int64, sizes ...int64) (folder, []byte) {
	t.Helper()
	f := folder{t.TempDir(), map[int64]int64{}}
	all := make([]byte, int64(len(sizes))*fileBytes)
	random := rand.NewChaCha8([32]byte{1})
	for n, size := range sizes {
		if size < 0 {
			continue
		}
		contents := all[int64(n)*fileBytes:][:size]
		random.Read(contents)
		if err := os.WriteFile(f.path(int64(n)), contents, 0o600); err != nil {
			t.Fatal(err)
		}
		f.sizes[int64(n)] = size
	}
	return f, all
}

func newReader(t testing.TB, files mmapio.Files, fileBytes int64, window int, b mmapio.Backing) *mmapio.Reader {
	t.Helper()
	r, err := mmapio.NewReader(files, fileBytes, window, b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestReaderShowsFilesAsOneRange(t *testing.T) {
	const window = 3
	for _, fileBytes := range []int64{32 << 10, 256 << 10} {
		files, want := fill(t, fileBytes, fileBytes, fileBytes, -1, 5000, fileBytes-1, fileBytes, 0, fileBytes, 4096, -1, -1)
		onEach(t, func(t *testing.T, b mmapio.Backing) {
			r := newReader(t, files, fileBytes, window, b)
			random := rand.New(rand.NewPCG(1, 2))
			for range 400 {
				off := random.Int64N(int64(len(want)))
				longest := min(window*fileBytes-off%fileBytes, int64(len(want))-off)
				n := int(random.Int64N(longest + 1))
				if random.IntN(3) > 0 {
					n = min(n, 9000) // mostly within what is in view already, on Map
				}
				got, err := r.Bytes(off, n)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want[off:][:n]) {
					t.Fatalf("%d bytes at %d differ from the files", n, off)
				}
				if n > 0 && (uintptr(unsafe.Pointer(&got[0]))-uintptr(off))%4096 != 0 {
					t.Fatalf("%d bytes at %d are not placed as in their page", n, off)
				}
			}
		})
	}
}

func TestReaderShowsWhatIsInViewWithoutIO(t *testing.T) {
	const fileBytes = 32 << 10
	onEach(t, func(t *testing.T, b mmapio.Backing) {
		files, want := fill(t, fileBytes, fileBytes, fileBytes)
		r := newReader(t, files, fileBytes, 2, b)
		if _, err := r.Bytes(100, fileBytes); err != nil {
			t.Fatal(err)
		}
		for n := range files.sizes {
			if err := os.Remove(files.path(n)); err != nil {
				t.Fatal(err)
			}
		}
		got, err := r.Bytes(5000, fileBytes-4900)
		if err != nil || !bytes.Equal(got, want[5000:fileBytes+100]) {
			t.Errorf("bytes in view were read again: %v", err)
		}
	})
}

func TestReaderRefuses(t *testing.T) {
	const fileBytes = 32 << 10
	onEach(t, func(t *testing.T, b mmapio.Backing) {
		files, want := fill(t, fileBytes, fileBytes, fileBytes, fileBytes)
		files.sizes[3] = fileBytes // listed, and not there
		r := newReader(t, files, fileBytes, 2, b)
		for _, c := range []struct{ off, n int64 }{{0, 2*fileBytes + 1}, {1, 2 * fileBytes}, {-1, 1}} {
			if _, err := r.Bytes(c.off, int(c.n)); err == nil {
				t.Errorf("%d bytes at %d are within a window of two files", c.n, c.off)
			}
		}
		view := func() {
			if got, err := r.Bytes(0, fileBytes); err != nil || !bytes.Equal(got, want[:fileBytes]) {
				t.Errorf("after an error the first file reads otherwise: %v", err)
			}
		}
		view()
		if _, err := r.Bytes(3*fileBytes, 1); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a file that is listed and not there: %v", err)
		}
		if err := os.Truncate(files.path(1), 100); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Bytes(fileBytes, fileBytes); !errors.Is(err, io.ErrUnexpectedEOF) || !names(err, files.path(1)) {
			t.Errorf("a file that has become shorter: %v", err)
		}
		view()
	})
}

// names reports whether an error tells the path.
func names(err error, path string) bool {
	return err != nil && bytes.Contains([]byte(err.Error()), []byte(path))
}

func TestWindowsAreRefused(t *testing.T) {
	for _, c := range []struct {
		fileBytes int64
		window    int
		b         mmapio.Backing
	}{{0, 1, mmapio.Stage}, {4096, 0, mmapio.Stage}, {0, 1, mmapio.Map}, {5000, 1, mmapio.Map}} {
		if r, err := mmapio.NewReader(folder{}, c.fileBytes, c.window, c.b); err == nil || r != nil {
			t.Errorf("reader of %d files of %d bytes by %s: %v", c.window, c.fileBytes, c.b, err)
		}
		if w, err := mmapio.NewWriter(c.fileBytes, c.window, c.b, private, false); err == nil || w != nil {
			t.Errorf("writer of %d files of %d bytes by %s: %v", c.window, c.fileBytes, c.b, err)
		}
	}
}

func BenchmarkReader(b *testing.B) {
	const fileBytes, count = 256 << 10, 16
	sizes := make([]int64, count)
	for i := range sizes {
		sizes[i] = fileBytes
	}
	files, _ := fill(b, fileBytes, sizes...)
	for _, backing := range backings {
		b.Run(backing.String(), func(b *testing.B) {
			r := newReader(b, files, fileBytes, 4, backing)
			b.SetBytes(count * fileBytes)
			var sum byte
			for b.Loop() {
				for off := int64(0); off < count*fileBytes; off += 4 * fileBytes {
					view, err := r.Bytes(off, 4*fileBytes)
					if err != nil {
						b.Fatal(err)
					}
					for at := 0; at < len(view); at += 64 {
						sum += view[at]
					}
				}
			}
			_ = sum
		})
	}
}
