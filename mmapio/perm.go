package mmapio

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Perm is what the files and folders that are written get: permission bits whatever the umask, and user and group, -1
// to leave either as it comes.
type Perm struct {
	File, Dir os.FileMode
	UID, GID  int
}

// MkdirPerm makes the folder at path, whose parent exists, with the mode and owner of perm. After an error there is
// none, unless it existed before.
func MkdirPerm(path string, perm Perm) error {
	if err := os.Mkdir(path, perm.Dir.Perm()); err != nil {
		return err
	}
	if err := perm.giveDir(path); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func (p Perm) giveDir(path string) error {
	if err := os.Chmod(path, p.Dir.Perm()); err != nil { // the umask may keep it from being opened
		return err
	}
	dir, err := open(path)
	if err != nil {
		return err
	}
	defer dir.close()
	return p.give(dir, p.Dir)
}

// give sets mode and owner of what is open as f, where they differ.
func (p Perm) give(f file, mode os.FileMode) error {
	st, err := f.stat()
	if err != nil {
		return err
	}
	if !p.owns(st) {
		if err := f.retry("chown", func() error { return unix.Fchown(f.fd, p.UID, p.GID) }); err != nil {
			return err
		}
	}
	if modeOf(st) != mode.Perm() {
		return f.retry("chmod", func() error { return unix.Fchmod(f.fd, uint32(mode.Perm())) })
	}
	return nil
}

// misfit says in what way a file is not as perm wants files to be. It is empty where the file is.
func (p Perm) misfit(st unix.Stat_t) string {
	switch {
	case !p.owns(st):
		return fmt.Sprintf("its owner is %d:%d, not %d:%d", st.Uid, st.Gid, p.UID, p.GID)
	case modeOf(st) != p.File.Perm():
		return fmt.Sprintf("its mode is %#o, not %#o", modeOf(st), p.File.Perm())
	}
	return ""
}

func (p Perm) owns(st unix.Stat_t) bool {
	return (p.UID < 0 || uint32(p.UID) == st.Uid) && (p.GID < 0 || uint32(p.GID) == st.Gid)
}

func modeOf(st unix.Stat_t) os.FileMode { return os.FileMode(st.Mode).Perm() }
