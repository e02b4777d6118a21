package convert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/mxwiden/mxwiden/mmapio"
)

// A place is where the result goes. It is built beside it, and put there whole or not at all.
type place struct {
	path  string // the folder that gets a pg_multixact
	build string // where that is built
	there string // a folder on the same file system that is there already
	perm  mmapio.Perm
	lock  *os.File // keeps other runs off, once there is one

	prepare func() error              // before the first file is written
	put     func(c *conversion) error // the result is built and synced: put it where readers look
	discard func() error              // whatever was built goes
}

// openPlace looks at where the result is to go and refuses what can't take it. Nothing is written.
func (c *conversion) openPlace() (*place, error) {
	if c.NewDir != "" {
		return c.openCluster()
	}
	return c.openOutput()
}

func (p *place) Close() {
	if p.lock != nil {
		p.lock.Close()
	}
}

// begin makes the empty folders that the result is built in.
func (p *place) begin() error {
	if err := p.prepare(); err != nil {
		return err
	}
	for _, dir := range []string{p.build, filepath.Join(p.build, "offsets"), filepath.Join(p.build, "members")} {
		if err := mmapio.MkdirPerm(dir, p.perm); err != nil {
			return p.undo(err)
		}
	}
	return nil
}

// undo removes what was built, after err.
func (p *place) undo(err error) error { return errors.Join(err, p.discard()) }

// inside refuses a path within the old cluster, in which nothing is ever written.
func (c *conversion) inside(path string) error {
	old, err := filepath.EvalSymlinks(c.src.dir.Path)
	if err != nil {
		return err
	}
	if old, err = filepath.Abs(old); err != nil {
		return err
	}
	real, err := existing(path)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(old, real); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
		return fmt.Errorf("%s is inside the old cluster %s, in which nothing is ever written: choose a folder elsewhere", path, old)
	}
	return nil
}

// existing is the nearest folder above path, or path itself, that is there: absolute and without symbolic links.
func existing(path string) (string, error) {
	asked := path
	path, err := filepath.Abs(path)
	for err == nil {
		var real string
		if real, err = filepath.EvalSymlinks(path); err == nil {
			return real, nil
		}
		if !errors.Is(err, os.ErrNotExist) || path == filepath.Dir(path) {
			break
		}
		path, err = filepath.Dir(path), nil
	}
	return "", fmt.Errorf("looking for %s: %w", asked, err)
}

// bytes is the size of the whole result, known once the new nextOffset is.
func (c *conversion) bytes() (bytes int64) {
	for f := range c.files {
		bytes += f.Bytes
	}
	return bytes
}

// room is how much of the result takes room: not what is cloned or linked. A segment that can't be linked is copied.
func (c *conversion) room() int64 {
	room := c.bytes()
	for _, no := range c.carry {
		path, size, _ := c.src.members.File(no)
		if c.Copy == mmapio.Clone || c.Copy == mmapio.Link && c.place.perm.Linkable(path) == nil {
			room -= size
		}
	}
	return room
}

// checkCopy settles how members segments are carried, and refuses a method that can't work where they go.
func (c *conversion) checkCopy() error {
	if len(c.carry) == 0 {
		return nil
	}
	sample, _, _ := c.src.members.File(c.carry[0])
	can := func(m mmapio.CopyMethod) error { return mmapio.CheckCopy(sample, c.place.build, m, c.place.perm) }
	switch {
	case c.Copy != mmapio.AutoCopy:
		return can(c.Copy)
	case can(mmapio.Clone) == nil:
		c.Copy = mmapio.Clone
	case can(mmapio.CopyFileRange) == nil:
		c.Copy = mmapio.CopyFileRange
	default:
		c.Copy = mmapio.Copy
	}
	return nil
}

// checkSpace refuses a file system without room, before anything is written.
func (c *conversion) checkSpace() error {
	room := c.room()
	free, err := mmapio.FreeBytes(c.place.there)
	if err != nil {
		return err
	}
	c.Verbose("the result takes %s; %s has %s free", humanize.IBytes(uint64(room)), c.place.there, humanize.IBytes(free))
	if uint64(room) > free {
		return fmt.Errorf("no room: the result takes %s (%d bytes), the file system of %s has %s (%d bytes) free; free some or choose another",
			humanize.IBytes(uint64(room)), room, c.place.path, humanize.IBytes(free), free)
	}
	return nil
}
