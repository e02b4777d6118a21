package mmapio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A CopyMethod is how a file is brought elsewhere unread.
type CopyMethod uint8

// The methods. AutoCopy clones where the file system can, else uses copy_file_range, else reads and writes; each of the others
// is what its name says, and fails where that can't be done.
const (
	AutoCopy CopyMethod = iota
	Copy
	Clone
	CopyFileRange
	Link
)

func (m CopyMethod) String() string {
	return [...]string{"clone or copy_file_range", "copy", "clone", "copy_file_range", "link"}[m]
}

// ErrNotLinkable is wrapped where a file can't be linked because its owner or mode is not what the link needs: changing it
// would reach through the link. The file can still be copied.
var ErrNotLinkable = errors.New("can't be linked")

// CarryFile makes dst, which must not exist, hold exactly the bytes of src, or be a second name of it.
func CarryFile(dst, src string, m CopyMethod, perm Perm) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	if m == Link {
		return link(dst, in, perm)
	}
	out, err := perm.create(dst)
	if err != nil {
		return err
	}
	if err := carry(out, in, m); err != nil {
		return errors.Join(fmt.Errorf("carrying %s to %s: %w", src, dst, err), out.Close())
	}
	return out.Close()
}

func link(dst string, src *os.File, perm Perm) error {
	info, err := src.Stat()
	if err != nil {
		return err
	}
	if !perm.fits(info) {
		uid, gid := owner(info)
		return fmt.Errorf("%s: %w: its mode is %04o and its owner %d:%d, and they would have to be %04o and %d:%d",
			src.Name(), ErrNotLinkable, info.Mode().Perm(), uid, gid, perm.File, perm.UID, perm.GID)
	}
	return os.Link(src.Name(), dst)
}

// carry copies the whole of in by one method, or, for AutoCopy, by the first that works.
func carry(out, in *os.File, m CopyMethod) error {
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if m == Clone || m == AutoCopy {
		if err := reflink(out, in); err == nil || m == Clone {
			return err
		}
	}
	if m == CopyFileRange || m == AutoCopy {
		done, err := copyAll(out, in, info.Size())
		if err == nil || m == CopyFileRange || done > 0 || !unsupported(err) {
			return err
		}
	}
	n, err := io.Copy(struct{ io.Writer }{out}, in) // the bare Writer keeps io.Copy from copy_file_range
	if err == nil && n != info.Size() {
		err = fmt.Errorf("it has %d bytes, %d of which could be read: %w", info.Size(), n, io.ErrUnexpectedEOF)
	}
	return err
}

// copyAll copies size bytes by copy_file_range.
func copyAll(out, in *os.File, size int64) (done int64, err error) {
	for done < size {
		n, err := copyRange(out, in, int(size-done))
		if err != nil {
			return done, fmt.Errorf("copy_file_range: %w", err)
		}
		if n == 0 {
			return done, fmt.Errorf("it has %d bytes, %d of which could be read: %w", size, done, io.ErrUnexpectedEOF)
		}
		done += int64(n)
	}
	return done, nil
}

// unsupported reports whether a file system, or a pair of them, can't do what was asked of it, as opposed to failing at it.
func unsupported(err error) bool {
	for _, no := range []error{unix.ENOTSUP, unix.EOPNOTSUPP, unix.EXDEV, unix.EINVAL, unix.ENOSYS, unix.ENOTTY} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// CheckCopy says before any work whether files like src can be brought to a folder by a method. Only names in dir are made,
// and removed again; src is read, and with Link gets a second name for a moment.
func CheckCopy(src, dir string, m CopyMethod, perm Perm) error {
	if m == AutoCopy || m == Copy {
		return nil
	}
	tmp, err := os.MkdirTemp(dir, ".mxwiden-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	err = CarryFile(filepath.Join(tmp, "probe"), src, m, perm)
	switch {
	case err == nil, errors.Is(err, ErrNotLinkable):
		return nil
	case errors.Is(err, unix.EXDEV):
		return fmt.Errorf("--%s: %s is on another file system than %s: leave the option out, or use --copy: %w", m.flag(), src, dir, err)
	case unsupported(err):
		return fmt.Errorf("--%s: the file system of %s can't do it: leave the option out, or use --copy: %w", m.flag(), dir, err)
	}
	return err
}

func (m CopyMethod) flag() string {
	if m == CopyFileRange {
		return "copy-file-range"
	}
	return m.String()
}
