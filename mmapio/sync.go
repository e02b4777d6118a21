package mmapio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// A SyncMethod is how what was written is brought to disk.
type SyncMethod uint8

const (
	Fsync  SyncMethod = iota // file by file
	Syncfs                   // the whole file system at once
	NoSync                   // not at all
)

// String is "fsync", "syncfs" or "none".
func (m SyncMethod) String() string {
	switch m {
	case Fsync:
		return "fsync"
	case Syncfs:
		return "syncfs"
	}
	return "none"
}

// ParseSyncMethod is the method of the name "fsync" or "syncfs".
func ParseSyncMethod(name string) (SyncMethod, error) {
	for _, m := range []SyncMethod{Fsync, Syncfs} {
		if name == m.String() {
			return m, nil
		}
	}
	return 0, fmt.Errorf("sync method %q: expected fsync or syncfs", name)
}

// SyncTree brings dir and every file and folder below it to disk: by Fsync up to jobs files at a time, then the
// folders; by Syncfs in one call for the file system that dir is on.
func SyncTree(dir string, m SyncMethod, jobs int) error {
	switch m {
	case NoSync:
		return nil
	case Syncfs:
		f, err := open(dir)
		if err != nil {
			return err
		}
		defer f.close()
		return f.syncfs()
	}
	var group errgroup.Group
	group.SetLimit(max(jobs, 1))
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			dirs = append(dirs, path)
		case entry.Type().IsRegular():
			group.Go(func() error { return syncPath(path) })
		}
		return nil
	})
	err = errors.Join(err, group.Wait())
	for _, d := range slices.Backward(dirs) { // a folder after what is in it
		err = errors.Join(err, SyncDir(d))
	}
	return err
}

// SyncDir brings the names in a folder to disk, not what they name.
func SyncDir(dir string) error { return syncPath(dir) }

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// WriteFileAtomic puts a file that write fills at path, in place of one that is there: after a crash there is either of them,
// whole. It is written beside its place, synced unless m is NoSync, and renamed. One file alone is synced by fsync also
// where m is Syncfs. What a process leaves that dies meanwhile is beside it as "."+base+".*", with digits for the star.
func WriteFileAtomic(path string, perm Perm, m SyncMethod, write func(io.Writer) error) error {
	beside, err := createBeside(path)
	if err != nil {
		return err
	}
	defer os.Remove(beside.Name()) // in vain once it is renamed
	buffer := bufio.NewWriter(beside)
	if err = write(buffer); err == nil {
		err = buffer.Flush()
	}
	if err == nil {
		err = perm.give(file{int(beside.Fd()), beside.Name()}, perm.File)
	}
	if err == nil && m != NoSync {
		err = beside.Sync()
	}
	if err = errors.Join(err, beside.Close()); err != nil {
		return err
	}
	if err := os.Rename(beside.Name(), path); err != nil || m == NoSync {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// IsTemp reports whether name is one under which WriteFileAtomic writes a file of the given base name: after a crash it may be
// there for ever.
func IsTemp(name, base string) bool { return strings.HasPrefix(name, "."+base+".") }

func createBeside(path string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
}

// FreeBytes is the room that the file system of dir has for files of ours, without what it reserves for root.
func FreeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := (file{path: dir}).retry("statfs", func() error { return unix.Statfs(dir, &st) }); err != nil {
		return 0, err
	}
	return uint64(st.Bavail) * blockSize(&st), nil
}
