// Package slru reads the directories that PostgreSQL keeps its SLRUs in: which file is which segment, which segments are
// there and how long they are, and which are missing. [Open] lists a directory once; a [Dir] answers from that list.
//
// It knows nothing of what is in a page, writes nothing, and opens files only in [Dir.ReadPage], for readers that may be slow.
package slru

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// PagesPerSegment is the length of a segment in pages (SLRU_PAGES_PER_SEGMENT).
const PagesPerSegment = 32

// ErrMissing is what an error wraps when a segment that is asked for is not there.
var ErrMissing = errors.New("segment is missing")

// A Segment is one file of the directory. Size is in bytes, as found: a segment is normally [Dir.SegmentBytes] long, and the
// last one of an SLRU shorter.
type Segment struct {
	No   int64
	Size int64
}

// A Span is the segment numbers from Lo up to and without Hi.
type Span struct {
	Lo, Hi int64
}

// A Dir is the listing of an SLRU directory. It may be used by several goroutines.
type Dir struct {
	path     string
	naming   Naming
	pageSize int
	segments []Segment // ascending
	foreign  []string  // ascending
}

// listed is how many entries are read at a time: a large directory must not be in memory as entries all at once.
const listed = 1024

// Open lists the directory at path, whose pages have pageSize bytes. A segment is a regular file with a name of the given
// naming; everything else is foreign.
func Open(path string, naming Naming, pageSize int) (*Dir, error) {
	d := &Dir{path: path, naming: naming, pageSize: pageSize}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("listing an SLRU: %w", err)
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(listed)
		for _, entry := range entries {
			if err := d.add(entry); err != nil {
				return nil, err
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("listing an SLRU: %w", err)
		}
	}
	slices.SortFunc(d.segments, func(a, b Segment) int { return cmp.Compare(a.No, b.No) })
	d.segments = slices.Clip(d.segments)
	slices.Sort(d.foreign)
	return d, nil
}

func (d *Dir) add(entry os.DirEntry) error {
	segno, ok := d.naming.Parse(entry.Name())
	if !ok || !entry.Type().IsRegular() {
		d.foreign = append(d.foreign, entry.Name())
		return nil
	}
	info, err := entry.Info()
	if err != nil {
		return fmt.Errorf("listing an SLRU: %w", err)
	}
	d.segments = append(d.segments, Segment{segno, info.Size()})
	return nil
}

// Path is the directory's path, as given to Open.
func (d *Dir) Path() string { return d.path }

// PageSize is the size of a page in bytes.
func (d *Dir) PageSize() int { return d.pageSize }

// SegmentBytes is the size of a full segment in bytes.
func (d *Dir) SegmentBytes() int64 { return PagesPerSegment * int64(d.pageSize) }

// File gives the path and the size in bytes of segment segno. Where it is missing, ok is false, and path is where it would be.
func (d *Dir) File(segno int64) (path string, size int64, ok bool) {
	path = filepath.Join(d.path, d.naming.Name(segno))
	i, ok := slices.BinarySearchFunc(d.segments, segno, compareNo)
	if ok {
		size = d.segments[i].Size
	}
	return path, size, ok
}

// Segments is the segments of [lo, hi) that are there, in ascending order. The caller must not change it.
func (d *Dir) Segments(lo, hi int64) []Segment {
	i, _ := slices.BinarySearchFunc(d.segments, lo, compareNo)
	j, _ := slices.BinarySearchFunc(d.segments, max(lo, hi), compareNo)
	return d.segments[i:j]
}

func compareNo(s Segment, segno int64) int { return cmp.Compare(s.No, segno) }

// Missing is the segments of [lo, hi) that are not there, in ascending order and in as few spans as there are gaps.
func (d *Dir) Missing(lo, hi int64) []Span {
	var gaps []Span
	for _, s := range d.Segments(lo, hi) {
		if lo < s.No {
			gaps = append(gaps, Span{lo, s.No})
		}
		lo = s.No + 1
	}
	if lo < hi {
		gaps = append(gaps, Span{lo, hi})
	}
	return gaps
}

// Short is the segments of [lo, hi) that are there and have fewer bytes than SegmentBytes. The last segment of an SLRU
// normally is one of them.
func (d *Dir) Short(lo, hi int64) []Segment {
	var short []Segment
	for _, s := range d.Segments(lo, hi) {
		if s.Size < d.SegmentBytes() {
			short = append(short, s)
		}
	}
	return short
}

// Foreign is the names in the directory that are no segments of this naming, and what has the name of one but is no regular
// file, in ascending order. The caller must not change it.
func (d *Dir) Foreign() []string { return d.foreign }

// ReadPage reads a page, counted from the start of segment 0, into buf, which must have PageSize bytes. What the file is too
// short to hold is zero. The error wraps ErrMissing and names the path where the segment is missing. The file is opened anew
// for every page: this is for readers that may be slow.
func (d *Dir) ReadPage(page int64, buf []byte) error {
	path, _, ok := d.File(page / PagesPerSegment)
	if !ok {
		return fmt.Errorf("reading page %d of %s: %w", page, path, ErrMissing)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading page %d: %w", page, err)
	}
	defer f.Close()
	n, err := f.ReadAt(buf[:d.pageSize], page%PagesPerSegment*int64(d.pageSize))
	if err != nil && err != io.EOF {
		return fmt.Errorf("reading page %d: %w", page, err)
	}
	clear(buf[n:d.pageSize])
	return nil
}
