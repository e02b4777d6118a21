package mmapio

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// A CopyMethod is how a file is brought to a new place without being looked into.
type CopyMethod uint8

const (
	AutoCopy      CopyMethod = iota // the first of Clone, CopyFileRange and Copy that the file system can
	Copy                            // read and write
	Clone                           // share the blocks until one of the two is written to (FICLONE)
	CopyFileRange                   // let the file system copy (copy_file_range)
	Link                            // a second name of the same file
)

// String is the method in words as they stand on a command line.
func (m CopyMethod) String() string {
	return [...]string{"auto", "copy", "clone", "copy-file-range", "link"}[m]
}

// ErrNotLinkable is wrapped, with the reason, where Link cannot or must not be used for a file that could be copied.
var ErrNotLinkable = errors.New("not to be linked")

// errUnfit is the ErrNotLinkable of a file by its looks.
var errUnfit = fmt.Errorf("%w for what it is", ErrNotLinkable)

// CarryFile makes a new file dst that holds exactly the bytes of src, with the mode and owner of perm. Src is only
// read. Link is refused with an error that wraps ErrNotLinkable where the file system cannot, and where src has not
// mode and owner of perm already, since a change would reach through the link. After an error there is no dst, unless
// it existed before.
func CarryFile(dst, src string, m CopyMethod, perm Perm) error {
	if err := carry(dst, src, m, perm); err != nil {
		return fmt.Errorf("carrying %s to %s by %s: %w", src, dst, m, err)
	}
	return nil
}

func carry(dst, src string, m CopyMethod, perm Perm) error {
	if m == Link {
		if err := perm.Linkable(src); err != nil {
			return err
		}
		return link(dst, src)
	}
	from, err := open(src)
	if err != nil {
		return err
	}
	defer from.close()
	to, err := create(dst, perm)
	if err != nil {
		return err
	}
	if err = errors.Join(to.fill(from, m), to.close()); err != nil {
		return errors.Join(err, os.Remove(dst))
	}
	return nil
}

// CheckCopy says before any work whether m can bring srcFile, and files like it, into dstDir, by doing so once to a
// temporary name there, which it removes. The error says why not, and what to use instead. A file that must not be
// linked for its own mode or owner is none: CarryFile tells that of each file.
func CheckCopy(srcFile, dstDir string, m CopyMethod, perm Perm) error {
	dir, err := os.MkdirTemp(dstDir, ".probe-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	err = carry(filepath.Join(dir, "file"), srcFile, m, perm)
	switch {
	case err == nil || errors.Is(err, errUnfit):
		return nil
	case !unsupported(err) && !errors.Is(err, ErrNotLinkable):
		return fmt.Errorf("trying to %s %s into %s: %w", m, srcFile, dstDir, err)
	case m == CopyFileRange:
		return fmt.Errorf("%s cannot bring %s into %s: %w; use copy", m, srcFile, dstDir, err)
	}
	return fmt.Errorf("%s cannot bring %s into %s: %w; use copy-file-range or copy", m, srcFile, dstDir, err)
}

// Linkable says why CarryFile will not link a file, by its looks: an error that wraps ErrNotLinkable where it has not mode and
// owner of p.
func (p Perm) Linkable(path string) error {
	var st unix.Stat_t
	if err := (file{path: path}).retry("lstat", func() error { return unix.Lstat(path, &st) }); err != nil {
		return err
	}
	reason := p.misfit(st)
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		reason = "it is no regular file"
	}
	if reason != "" {
		return fmt.Errorf("%w: %s", errUnfit, reason)
	}
	return nil
}

// link gives src a second name. What fails for a reason that lies in src or the file system wraps ErrNotLinkable.
func link(dst, src string) error {
	err := os.Link(src, dst)
	reason := ""
	switch {
	case errors.Is(err, unix.EXDEV):
		reason = "the two are not on the same file system"
	case errors.Is(err, unix.EPERM):
		reason = "the file system has no links, or fs.protected_hardlinks forbids them to who does not own the file"
	case errors.Is(err, unix.EMLINK):
		reason = "it has as many links as the file system allows"
	case unsupported(err):
		reason = "the file system has no links"
	default:
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrNotLinkable, reason, err)
}

// fill gives the new file the bytes of from.
func (f file) fill(from file, m CopyMethod) error {
	st, err := from.stat()
	if err != nil {
		return err
	}
	switch m {
	case Copy:
		return f.copyBytes(from, st.Size)
	case Clone:
		return explain(f.clone(from))
	case CopyFileRange:
		return explain(f.copyWhole(from, st.Size))
	}
	err = f.clone(from)
	if unsupported(err) {
		err = f.copyWhole(from, st.Size)
	}
	if unsupported(err) {
		err = f.copyBytes(from, st.Size)
	}
	return err
}

func (f file) copyWhole(from file, size int64) error {
	for off := int64(0); off < size; {
		n, err := f.copyRange(from, off, size-off)
		if err != nil {
			return err
		}
		if n == 0 {
			return from.ended(off)
		}
		off += int64(n)
	}
	return nil
}

var buffers = sync.Pool{New: func() any { return new([256 << 10]byte) }}

func (f file) copyBytes(from file, size int64) error {
	buffer := buffers.Get().(*[256 << 10]byte)
	defer buffers.Put(buffer)
	for off := int64(0); off < size; {
		piece := buffer[:min(size-off, int64(len(buffer)))]
		if err := from.read(piece, off); err != nil {
			return err
		}
		if err := f.write(piece, off); err != nil {
			return err
		}
		off += int64(len(piece))
	}
	return nil
}

// unsupported tells that a file system cannot do what it was asked, from that it failed at it. Of a device without the
// call ENOTTY comes, of a file system that only sometimes can EINVAL.
func unsupported(err error) bool {
	return errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EXDEV) ||
		errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTTY)
}

// explain puts into words why a file system cannot.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EXDEV):
		return fmt.Errorf("the two are not on the same file system: %w", err)
	case unsupported(err):
		return fmt.Errorf("the file system cannot do it: %w", err)
	}
	return err
}
