package mmapio_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mxwiden/mxwiden/mmapio"
)

// private is the mode of a user's own files.
var private = mmapio.Perm{File: 0o600, Dir: 0o700, UID: -1, GID: -1}

func newWriter(t testing.TB, fileBytes int64, window int, b mmapio.Backing, perm mmapio.Perm, behind bool) *mmapio.Writer {
	t.Helper()
	w, err := mmapio.NewWriter(fileBytes, window, b, perm, behind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// write fills files of the sizes given in dir through the window of w, and returns what each has to hold.
func write(w *mmapio.Writer, dir string, fileBytes int64, random *rand.ChaCha8, sizes ...int64) (map[string][]byte, error) {
	want := map[string][]byte{}
	var list []mmapio.NewFile
	for i, size := range sizes {
		list = append(list, mmapio.NewFile{Path: filepath.Join(dir, fmt.Sprint(i)), Size: size})
	}
	return want, mmapio.Guard(func() error {
		window, err := w.Begin(list)
		if err != nil {
			return err
		}
		for i, f := range list {
			contents := window[int64(i)*fileBytes:][:f.Size]
			random.Read(contents)
			want[f.Path] = bytes.Clone(contents)
		}
		return w.Commit()
	})
}

func TestWriterFillsFiles(t *testing.T) {
	const fileBytes = 32 << 10
	onEach(t, func(t *testing.T, b mmapio.Backing) {
		for _, behind := range []bool{false, true} {
			w := newWriter(t, fileBytes, 4, b, private, behind)
			random := rand.NewChaCha8([32]byte{2})
			for _, sizes := range [][]int64{
				{fileBytes, fileBytes, fileBytes, fileBytes},
				{fileBytes, 4096, 3072, fileBytes}, // short ones in the middle, and one that ends within a memory page
				{0, 5000},
				{},
				{fileBytes - 4096},
			} {
				want, err := write(w, t.TempDir(), fileBytes, random, sizes...)
				if err != nil {
					t.Fatal(err)
				}
				for path, contents := range want {
					if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, contents) {
						t.Errorf("%s does not hold the %d bytes written: %v", path, len(contents), err)
					}
				}
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestWriterRefuses(t *testing.T) {
	const fileBytes = 32 << 10
	onEach(t, func(t *testing.T, b mmapio.Backing) {
		dir := t.TempDir()
		there := filepath.Join(dir, "there")
		if err := os.WriteFile(there, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		begin := func(files ...mmapio.NewFile) error {
			w := newWriter(t, fileBytes, 2, b, private, false)
			_, err := w.Begin(files)
			return errors.Join(err, w.Close())
		}
		if err := begin(mmapio.NewFile{Path: there, Size: fileBytes}); !errors.Is(err, fs.ErrExist) || !names(err, there) {
			t.Errorf("a file that exists: %v", err)
		}
		if got, err := os.ReadFile(there); err != nil || string(got) != "kept" {
			t.Errorf("the file that existed is now %q, %v", got, err)
		}
		if err := begin(mmapio.NewFile{Path: filepath.Join(dir, "large"), Size: fileBytes + 1}); err == nil {
			t.Error("a file larger than its place is begun")
		}
		if err := begin(make([]mmapio.NewFile, 3)...); err == nil {
			t.Error("three files are begun in a window of two")
		}
		w := newWriter(t, fileBytes, 2, b, private, false)
		for i, refused := range []bool{false, true} {
			_, err := w.Begin([]mmapio.NewFile{{Path: filepath.Join(dir, fmt.Sprint(i)), Size: fileBytes}})
			if (err != nil) != refused {
				t.Errorf("begin %d without a commit between: %v", i, err)
			}
		}
	})
}

func BenchmarkWriter(b *testing.B) {
	const fileBytes, window = 256 << 10, 4
	for _, backing := range backings {
		b.Run(backing.String(), func(b *testing.B) {
			dir := b.TempDir()
			w := newWriter(b, fileBytes, window, backing, private, false)
			list := make([]mmapio.NewFile, window)
			for i := range list {
				list[i] = mmapio.NewFile{Path: filepath.Join(dir, fmt.Sprint(i)), Size: fileBytes}
			}
			b.SetBytes(window * fileBytes)
			for b.Loop() {
				memory, err := w.Begin(list)
				if err != nil {
					b.Fatal(err)
				}
				clear(memory)
				if err := w.Commit(); err != nil {
					b.Fatal(err)
				}
				for _, f := range list {
					os.Remove(f.Path)
				}
			}
		})
	}
}
