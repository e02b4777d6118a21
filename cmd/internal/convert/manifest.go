package convert

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mxwiden/mxwiden/mmapio"
	"github.com/mxwiden/mxwiden/mmapio/slru"
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
// pg_resetwal -O NextOffset -m Next,Oldest has to be given. Its last key, "files", is a list of every File, in the order of what
// they hold; it is long, and not read back.
type Manifest struct {
	Format           int    `json:"mxwiden_manifest_version"`
	Program          string `json:"program"`
	Mode             Mode   `json:"mode"`
	SystemIdentifier uint64 `json:"old_system_identifier"`
	Old              Side   `json:"old"`
	New              Side   `json:"new"`
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

// writeManifest writes the manifest file by file: of a large cluster it is larger than the memory that a conversion takes.
func (c *conversion) writeManifest(path string) error {
	r := c.result(Seconds{})
	m := Manifest{1, "mxwiden " + c.Version, c.Mode, c.src.dir.Control.SystemID, r.Old, r.New}
	head, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return mmapio.WriteFileAtomic(path, c.place.perm, c.Sync, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s,\n  \"files\": [", head[:len(head)-len("\n}")])
		separator := ""
		for f := range c.files {
			line, _ := json.Marshal(f) // strings and a number
			if _, err := fmt.Fprintf(w, "%s\n    %s", separator, line); err != nil {
				return err
			}
			separator = ","
		}
		if err == nil {
			_, err = fmt.Fprint(w, "\n  ]\n}\n")
		}
		return err
	})
}

// files yields every file of the result.
func (c *conversion) files(yield func(File) bool) {
	block := int64(c.src.layout.BlockSize())
	for i := range c.src.units() {
		u := c.src.unit(i)
		if !yield(File{"offsets/" + slru.Short.Name(u.segment), u.pages * block, howWritten}) {
			return
		}
	}
	for _, no := range c.carry {
		if !yield(File{"members/" + slru.Long.Name(no), c.src.members.SegmentBytes(), howCarried}) {
			return
		}
	}
	for _, no := range c.rebuild {
		if !yield(File{"members/" + slru.Long.Name(no), c.membersSegment(no).pages * block, howWritten}) {
			return
		}
	}
}
