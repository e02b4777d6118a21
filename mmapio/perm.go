package mmapio

import (
	"fmt"
	"os"
)

// A Perm is the mode and owner that files and folders are made with, whatever the umask. A UID or GID of -1 is left as it is.
type Perm struct {
	File, Dir os.FileMode
	UID, GID  int
}

// MkdirPerm makes a folder, whose parent must exist.
func MkdirPerm(path string, perm Perm) error {
	if err := os.Mkdir(path, perm.Dir); err != nil {
		return err
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return perm.apply(dir, perm.Dir)
}

// create makes a file that must not exist.
func (p Perm) create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, p.File)
	if err != nil {
		return nil, err
	}
	if err := p.apply(f, p.File); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// apply gives an open file its mode and owner, by calls only where they differ.
func (p Perm) apply(f *os.File, mode os.FileMode) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if uid, gid := owner(info); p.UID >= 0 && p.UID != uid || p.GID >= 0 && p.GID != gid {
		if err := f.Chown(p.UID, p.GID); err != nil {
			return fmt.Errorf("giving it to its owner: %w", err)
		}
	}
	if info.Mode().Perm() != mode {
		return f.Chmod(mode)
	}
	return nil
}

// fits reports whether a file has the mode and owner that p would give it.
func (p Perm) fits(info os.FileInfo) bool {
	uid, gid := owner(info)
	return info.Mode().Perm() == p.File && (p.UID < 0 || p.UID == uid) && (p.GID < 0 || p.GID == gid)
}
