package convert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/mxwiden/mxwiden/mmapio"
)

// A File is one file of the result, named below pg_multixact.
type File struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	How   string `json:"how"` // written, or carried: the bytes of an old segment as they were
}

// How a file of the result came to be.
const (
	howWritten = "written"
	howCarried = "carried"
)

// A Manifest says what stands in an output folder: where it is from, and the counters that belong to it, which are what
// pg_resetwal -O NextOffset -m Next,Oldest has to be given.
type Manifest struct {
	Format           int    `json:"mxwiden_manifest_version"`
	Program          string `json:"program"`
	Mode             Mode   `json:"mode"`
	SystemIdentifier uint64 `json:"old_system_identifier"`
	Old              Side   `json:"old"`
	New              Side   `json:"new"`
	Files            []File `json:"files"`
}

// ReadManifest reads the manifest of an output folder.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, manifestName)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m := new(Manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("reading manifest %s: %w", path, err)
	}
	if m.Format != 1 {
		return nil, fmt.Errorf("manifest %s is of version %d, and this program knows 1", path, m.Format)
	}
	return m, nil
}

func (c *conversion) writeManifest(path string) error {
	r := c.result(Seconds{})
	slices.SortFunc(c.files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	m := Manifest{1, "mxwiden " + c.Version, c.Mode, c.src.dir.Control.SystemID, r.Old, r.New, c.files}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return mmapio.WriteFileAtomic(path, append(b, '\n'), c.place.perm, c.Sync)
}
