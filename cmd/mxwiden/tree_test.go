package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// readTree is a line for everything that is at path and below: mode, owner, modification time, and a hash of what it holds.
// It is empty where there is nothing.
func readTree(path string) (string, error) {
	var b strings.Builder
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(path, name)
		if err != nil {
			return err
		}
		uid, gid := owner(info)
		fmt.Fprintf(&b, "%v %d:%d %d %s", info.Mode(), uid, gid, info.ModTime().UnixNano(), rel)
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %d %x", len(content), sha256.Sum256(content))
		}
		b.WriteByte('\n')
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) && b.Len() == 0 {
		err = nil
	}
	return b.String(), err
}

// keepsTree fails the test if what is at path is another at its end.
func keepsTree(t *testing.T, path string) {
	t.Helper()
	before, err := readTree(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		after, err := readTree(path)
		if err != nil {
			t.Error(err)
		}
		if after != before {
			t.Errorf("%s has changed: it was\n%sand is\n%s", path, before, after)
		}
	})
}

// exitStatus is that of a program that has been run, -1 where it did not come to exit.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}
