package mmapio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// A SyncMethod is how a result is brought to disk.
type SyncMethod uint8

// The methods: Fsync syncs each file and folder, Syncfs the whole file system in one call, NoSync leaves it to the system.
const (
	Fsync SyncMethod = iota
	Syncfs
	NoSync
)

func (m SyncMethod) String() string { return [...]string{"fsync", "syncfs", "no sync"}[m] }

// ParseSyncMethod knows the names "fsync" and "syncfs".
func ParseSyncMethod(name string) (SyncMethod, error) {
	for _, m := range []SyncMethod{Fsync, Syncfs} {
		if m.String() == name {
			return m, nil
		}
	}
	return 0, fmt.Errorf("sync method is %q, and has to be fsync or syncfs", name)
}

// SyncTree returns when every file and folder in dir, and dir itself, is on disk. Files are synced by as many jobs at a time.
func SyncTree(dir string, m SyncMethod, jobs int) error {
	switch m {
	case NoSync:
		return nil
	case Syncfs:
		f, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := syncfs(f); err != nil {
			return fmt.Errorf("syncfs %s: %w", dir, err)
		}
		return nil
	}
	var group errgroup.Group
	group.SetLimit(max(jobs, 1))
	var folders []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			folders = append(folders, path)
		case entry.Type().IsRegular():
			group.Go(func() error { return syncPath(path) })
		}
		return nil
	})
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	for _, folder := range folders {
		if err := SyncDir(folder); err != nil {
			return err
		}
	}
	return nil
}

// SyncDir returns when the names in a folder are on disk.
func SyncDir(dir string) error { return syncPath(dir) }

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// WriteFileAtomic puts a file in the place of path, whole or not at all: it is written beside it, synced unless m is NoSync,
// and renamed, and the folder is synced.
func WriteFileAtomic(path string, data []byte, perm Perm, m SyncMethod) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, perm.apply(f, perm.File))
	if err == nil && m != NoSync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil || m == NoSync {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// FreeBytes is how much room the file system of dir has for us.
func FreeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return s.Bavail * uint64(s.Bsize), nil
}
