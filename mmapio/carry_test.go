package mmapio_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/mxwiden/mxwiden/mmapio"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func holds(t *testing.T, path string, want []byte) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s holds %d bytes, not the %d it should: %v", path, len(got), len(want), err)
	}
}

// copying is the methods that work on every file system, within one.
var copying = []mmapio.CopyMethod{mmapio.AutoCopy, mmapio.Copy, mmapio.Link}

func TestCarryFileBringsEveryByte(t *testing.T) {
	for _, m := range copying {
		for _, size := range []int{0, 1, 4096, 700_001} {
			dir := t.TempDir()
			contents := bytes.Repeat([]byte("carried"), size/7+1)[:size]
			src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
			if err := os.WriteFile(src, contents, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := mmapio.CarryFile(dst, src, m, private); err != nil {
				t.Errorf("%s of %d bytes: %v", m, size, err)
			}
			holds(t, dst, contents)
			one, _ := os.Stat(src)
			two, _ := os.Stat(dst)
			if os.SameFile(one, two) != (m == mmapio.Link) {
				t.Errorf("%s: both are the same file or are not", m)
			}
			if err := mmapio.CarryFile(dst, filepath.Join(dir, "none"), m, private); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s of a file that is not there: %v", m, err)
			}
			if err := mmapio.CarryFile(dst, src, m, private); !errors.Is(err, fs.ErrExist) || !names(err, dst) {
				t.Errorf("%s onto a file that is there: %v", m, err)
			}
			holds(t, dst, contents)
		}
	}
}

func TestLinkIsRefusedWhereAChangeWouldReachThrough(t *testing.T) {
	dir := t.TempDir()
	src, alias := filepath.Join(dir, "src"), filepath.Join(dir, "alias")
	if err := errors.Join(os.WriteFile(src, nil, 0o600), os.Symlink(src, alias)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, src string
		perm      mmapio.Perm
		reason    string
	}{
		{"another mode", src, mmapio.Perm{File: 0o640, UID: -1, GID: -1}, "its mode is 0600, not 0640"},
		{"another user", src, mmapio.Perm{File: 0o600, UID: os.Getuid() + 1, GID: -1}, "its owner is"},
		{"another group", src, mmapio.Perm{File: 0o600, UID: -1, GID: 1 << 20}, "its owner is"},
		{"a symbolic link", alias, mmapio.Perm{File: 0o777, UID: -1, GID: -1}, "no regular file"},
	} {
		t.Run(c.what, func(t *testing.T) {
			dst := filepath.Join(dir, "dst")
			if err := mmapio.CarryFile(dst, c.src, mmapio.Link, c.perm); !errors.Is(err, mmapio.ErrNotLinkable) || !names(err, c.reason) {
				t.Errorf("got %v, want that it is not linkable since %s", err, c.reason)
			}
			if err := mmapio.CheckCopy(c.src, dir, mmapio.Link, c.perm); err != nil {
				t.Errorf("the method is refused for one file: %v", err)
			}
			if _, err := os.Lstat(dst); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is there: %v", dst, err)
			}
		})
	}
}

func TestCheckCopyLeavesNothing(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	src := filepath.Join(from, "src")
	if err := os.WriteFile(src, []byte("source"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(from)
	for m := mmapio.AutoCopy; m <= mmapio.Link; m++ {
		err := mmapio.CheckCopy(src, to, m, private)
		if (m == mmapio.AutoCopy || m == mmapio.Copy) && err != nil {
			t.Errorf("%s: %v", m, err)
		}
		if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
			t.Errorf("%s leaves %v, %v", m, left, err)
		}
	}
	if after, _ := os.Stat(from); !after.ModTime().Equal(before.ModTime()) {
		t.Error("the folder of the source was written to")
	}
	holds(t, src, []byte("source"))
	if err := mmapio.CheckCopy(src, filepath.Join(to, "none"), mmapio.Copy, private); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a folder that is not there: %v", err)
	}
	if err := mmapio.CheckCopy(filepath.Join(from, "none"), to, mmapio.Copy, private); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a file that is not there: %v", err)
	}
}
