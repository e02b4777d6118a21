package slru

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		naming Naming
		segno  int64
		name   string
	}{
		{Short, 0, "0000"},
		{Short, 0xAB, "00AB"},
		{Short, 0xFFFF, "FFFF"},
		{Short, 0x14078, "14078"},
		{Short, 0xFFFFFF, "FFFFFF"},
		{Long, 0, "000000000000000"},
		{Long, 0x14078, "000000000014078"},
		{Long, 1<<60 - 1, "FFFFFFFFFFFFFFF"},
	} {
		if name := c.naming.Name(c.segno); name != c.name {
			t.Errorf("segment %#x: name %q, want %q", c.segno, name, c.name)
		}
		if segno, ok := c.naming.Parse(c.name); !ok || segno != c.segno {
			t.Errorf("%q: segment %#x, %v, want %#x", c.name, segno, ok, c.segno)
		}
	}
}

func TestNamesThatAreNoSegments(t *testing.T) {
	for naming, names := range map[Naming][]string{
		Short: {"", "0", "000", "00ab", "00aB", "00000", "0FFFF", "0x1F", "+01F", "-001", " 001", "001G", "1_00", "1000000", "000000000000000"},
		Long:  {"", "0000", "00000000000000", "0000000000000000", "00000000000000a", "+00000000000001", "-00000000000001"},
	} {
		for _, name := range names {
			if segno, ok := naming.Parse(name); ok {
				t.Errorf("naming %d: %q is taken for segment %#x", naming, name, segno)
			}
		}
	}
}

func FuzzParseIsTheInverseOfName(f *testing.F) {
	f.Add("0000")
	f.Add("000000000000000")
	f.Add("1FFFF")
	f.Fuzz(func(t *testing.T, name string) {
		for _, n := range []Naming{Short, Long} {
			if segno, ok := n.Parse(name); ok && n.Name(segno) != name {
				t.Errorf("naming %d: %q is segment %#x, whose name is %q", n, name, segno, n.Name(segno))
			}
		}
	})
}

const pageSize = 1024

// directory makes an SLRU directory with files of the given sizes and opens it.
func directory(t *testing.T, sizes map[int64]int64) *Dir {
	t.Helper()
	path := t.TempDir()
	for segno, size := range sizes {
		if err := os.WriteFile(filepath.Join(path, Short.Name(segno)), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := Open(path, Short, pageSize)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const full = PagesPerSegment * pageSize

func TestSegmentsAndWhatIsForeign(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{"10000", "FFFF", "0001", "0002.tmp", "00ff", "000000000000003"} {
		if err := os.WriteFile(filepath.Join(path, name), make([]byte, len(name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(path, "0004"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("0001", filepath.Join(path, "0005")); err != nil {
		t.Fatal(err)
	}
	d, err := Open(path, Short, pageSize)
	if err != nil {
		t.Fatal(err)
	}
	if want := []Segment{{1, 4}, {0xFFFF, 4}, {0x10000, 5}}; !slices.Equal(d.Segments(0, 1<<20), want) {
		t.Errorf("segments %v, want %v", d.Segments(0, 1<<20), want)
	}
	if want := []string{"000000000000003", "0002.tmp", "0004", "0005", "00ff"}; !slices.Equal(d.Foreign(), want) {
		t.Errorf("foreign %q, want %q", d.Foreign(), want)
	}
	if file, size, ok := d.File(0x10000); file != filepath.Join(path, "10000") || size != 5 || !ok {
		t.Errorf("segment 10000: %s, %d bytes, %v", file, size, ok)
	}
	if file, size, ok := d.File(2); file != filepath.Join(path, "0002") || size != 0 || ok {
		t.Errorf("segment 2, which is missing: %s, %d bytes, %v", file, size, ok)
	}
}

func TestMissingAndShortAgreeWithFile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		sizes := map[int64]int64{}
		for range random.IntN(30) {
			sizes[random.Int64N(40)] = []int64{full, full, full - 1, 0, full + 1}[random.IntN(5)]
		}
		d := directory(t, sizes)
		lo, hi := random.Int64N(45), random.Int64N(45)
		var gone []int64
		var short []Segment
		for segno := lo; segno < hi; segno++ {
			if size, ok := sizes[segno]; !ok {
				gone = append(gone, segno)
			} else if size < full {
				short = append(short, Segment{segno, size})
			}
		}
		var missing []int64
		spans := d.Missing(lo, hi)
		for i, span := range spans {
			if span.Lo >= span.Hi || i > 0 && spans[i-1].Hi >= span.Lo {
				t.Errorf("missing in [%d, %d): %v is empty, out of order or could be one with the span before", lo, hi, span)
			}
			for segno := span.Lo; segno < span.Hi; segno++ {
				missing = append(missing, segno)
			}
		}
		if !slices.Equal(missing, gone) {
			t.Errorf("missing in [%d, %d): %v, want %v", lo, hi, missing, gone)
		}
		if got := d.Short(lo, hi); !slices.Equal(got, short) {
			t.Errorf("short in [%d, %d): %v, want %v", lo, hi, got, short)
		}
	}
}

func TestMoreSegmentsThanOneReadOfTheDirectory(t *testing.T) {
	sizes := map[int64]int64{}
	for segno := range int64(2*listed + 1) {
		sizes[segno] = 0
	}
	d := directory(t, sizes)
	if len(d.Segments(0, 1<<20)) != len(sizes) || d.Missing(0, int64(len(sizes))) != nil {
		t.Errorf("%d segments, missing %v; want %d and none", len(d.Segments(0, 1<<20)), d.Missing(0, int64(len(sizes))), len(sizes))
	}
}

func TestReadPage(t *testing.T) {
	d := directory(t, map[int64]int64{0: full, 1: 0, 3: 0})
	page := func(value byte, filled int) []byte {
		return append(bytes.Repeat([]byte{value}, filled), make([]byte, pageSize-filled)...)
	}
	file, _, _ := d.File(1)
	if err := os.WriteFile(file, append(page(1, pageSize), page(2, pageSize)[:100]...), 0o600); err != nil {
		t.Fatal(err)
	}
	for number, want := range map[int64][]byte{31: page(0, 0), 32: page(1, pageSize), 33: page(2, 100), 34: page(0, 0), 96: page(0, 0)} {
		buf := bytes.Repeat([]byte{0xEE}, pageSize)
		if err := d.ReadPage(number, buf); err != nil || !bytes.Equal(buf, want) {
			t.Errorf("page %d: %x, %v, want %x", number, buf, err, want)
		}
	}
	err := d.ReadPage(64, make([]byte, pageSize))
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), filepath.Join(d.Path(), "0002")) {
		t.Errorf("page 64, whose segment is missing: %v", err)
	}
}

func TestOpenNamesWhatItCannotList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offsets")
	if _, err := Open(path, Short, pageSize); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("a directory that is not there: %v", err)
	}
}
