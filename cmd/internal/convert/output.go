package convert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/mxwiden/mxwiden/mmapio"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
)

// The names in an output folder. What is partial is the sign of a run that is going on, or has died.
const (
	partialName  = "pg_multixact.partial"
	resultName   = "pg_multixact"
	manifestName = "mxwiden_manifest.json"
)

// An output is a folder for one result.
type output struct {
	path string
	made []string // by this run: the folder, and those above it, outermost first
}

// openOutput takes a folder that does not exist or is empty, or holds what a run that died there left.
func (c *conversion) openOutput() (*place, error) {
	if err := c.inside(c.Output); err != nil {
		return nil, err
	}
	o := &output{path: filepath.Clean(c.Output)}
	if _, err := o.leftovers(); err != nil {
		return nil, err
	}
	there, err := existing(o.path)
	if err != nil {
		return nil, err
	}
	p := &place{path: o.path, build: o.in(partialName), there: there, perm: c.src.dir.Perm}
	if os.Geteuid() != 0 {
		p.perm.UID, p.perm.GID = -1, -1
	}
	p.prepare = func() error {
		if err := o.make(p.perm); err != nil {
			return err
		}
		var err error
		if p.lock, err = pgdata.Lock(o.path); err != nil {
			return err
		}
		return o.clear() // looks again: another run may have ended since
	}
	p.put = o.put
	p.discard = o.discard
	return p, nil
}

func (o *output) in(name string) string { return filepath.Join(o.path, name) }

// leftovers is what a run that died has left in the folder. What is there besides is refused.
func (o *output) leftovers() ([]string, error) {
	entries, err := os.ReadDir(o.path)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Lstat(o.path); err == nil {
			return nil, fmt.Errorf("output folder %s is a symbolic link to nothing: make the folder that it names, or name another", o.path)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking into the output folder: %w", err)
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	died := slices.Contains(names, partialName)
	for _, name := range names {
		ours := name == partialName || name == manifestName && died || mmapio.IsTemp(name, manifestName)
		if !ours {
			return nil, fmt.Errorf("output folder %s is not empty, it holds %s: name one that does not exist, or is empty", o.path, name)
		}
	}
	return names, nil
}

// clear removes what a run that died has left.
func (o *output) clear() error {
	names, err := o.leftovers()
	for _, name := range names {
		err = errors.Join(err, os.RemoveAll(o.in(name)))
	}
	return err
}

// make makes the folder, and those above it, where they are absent.
func (o *output) make(perm mmapio.Perm) error {
	var absent []string
	for dir := o.path; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			break
		}
		absent = append(absent, dir)
	}
	for i, dir := range slices.Backward(absent) {
		make := func() error { return os.Mkdir(dir, 0o777) }
		if i == 0 {
			make = func() error { return mmapio.MkdirPerm(dir, perm) }
		}
		if err := make(); err != nil {
			return errors.Join(fmt.Errorf("making the output folder: %w", err), o.unmake())
		}
		o.made = append(o.made, dir)
	}
	return nil
}

// unmake removes the folders that make made.
func (o *output) unmake() (err error) {
	for _, dir := range slices.Backward(o.made) {
		err = errors.Join(err, os.Remove(dir))
	}
	return err
}

// put writes the manifest, and gives the result its name.
func (o *output) put(c *conversion) error {
	if err := c.writeManifest(o.in(manifestName)); err != nil {
		return err
	}
	if err := os.Rename(o.in(partialName), o.in(resultName)); err != nil {
		return err
	}
	if c.Sync == mmapio.NoSync {
		return nil
	}
	err := errors.Join(mmapio.SyncDir(o.path), mmapio.SyncDir(filepath.Dir(o.path)))
	for _, dir := range o.made {
		err = errors.Join(err, mmapio.SyncDir(filepath.Dir(dir)))
	}
	return err
}

// discard leaves the folder as it was.
func (o *output) discard() error {
	var err error
	for _, name := range []string{partialName, resultName, manifestName} {
		err = errors.Join(err, os.RemoveAll(o.in(name)))
	}
	return errors.Join(err, o.unmake())
}
