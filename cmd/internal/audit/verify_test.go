package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/mxwiden/mxwiden/bench/synth"
	"github.com/mxwiden/mxwiden/cmd/internal/audit"
	"github.com/mxwiden/mxwiden/cmd/internal/convert"
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio"
)

var modes = []convert.Mode{convert.Widen, convert.Rewrite}

// converted converts a cluster into a folder of its own and gives its path.
func converted(t *testing.T, old string, mode convert.Mode, io string) (string, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	_, err := convert.Run(context.Background(), convert.Options{OldDir: old, Output: out, Mode: mode, IO: io, Jobs: 2, Sync: mmapio.NoSync})
	return out, err
}

func verified(t *testing.T, old, out string, mode convert.Mode) *audit.Comparison {
	t.Helper()
	c, err := audit.Verify(context.Background(), audit.VerifyOptions{OldDir: old, NewDir: out, Mode: mode, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// made makes a cluster that passes both wraps.
func made(t *testing.T, block int) string {
	t.Helper()
	old := filepath.Join(t.TempDir(), "old")
	_, err := synth.Shape{
		Header: synth.Header{BlockSize: block, First: 1<<32 - 2000, FirstOffset: 1<<32 - 9000},
		Count:  5000, MinMembers: 1, MaxMembers: 7, Updaters: 0.4, Holes: 0.05, HoleRun: 4, Seed: uint64(block),
	}.Write(old)
	if err != nil {
		t.Fatal(err)
	}
	return old
}

func TestEveryBlockSizeConvertsAndVerifies(t *testing.T) {
	for block := 1024; block <= 32768; block *= 2 {
		old := made(t, block)
		for _, mode := range modes {
			for _, io := range []string{"stage", "map"} {
				out, err := converted(t, old, mode, io)
				if err != nil {
					t.Fatalf("blocks of %d, %s, %s: %v", block, mode, io, err)
				}
				if c := verified(t, old, out, ""); c.Mode != mode || c.Differences != 0 || c.Multis != 5000 || c.Holes == 0 {
					t.Errorf("blocks of %d, %s, %s: %+v", block, mode, io, c)
				}
			}
		}
	}
}

// What the result means is changed one byte at a time; members of other multis, unused bytes and holes of no multi are not looked at.
func TestVerifyFindsEveryChangedByteOfOffsetsAndMembers(t *testing.T) {
	old := filepath.Join(t.TempDir(), "old")
	_, err := synth.Shape{Header: synth.Header{BlockSize: 1024, First: 100, FirstOffset: 150}, Count: 60, MinMembers: 1, MaxMembers: 4, Updaters: 0.5, Seed: 3}.Write(old)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range modes {
		out, err := converted(t, old, mode, "stage")
		if err != nil {
			t.Fatal(err)
		}
		m, err := convert.ReadManifest(out)
		if err != nil {
			t.Fatal(err)
		}
		first := map[convert.Mode]uint64{convert.Widen: 150, convert.Rewrite: 1}[mode]
		layout := multixact.New(1024)
		changed := func(what string, segment string, page int64, change func(page []byte)) {
			path := filepath.Join(out, "pg_multixact", segment)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, see := range []bool{true, false} { // a second change undoes the first
				change(whole[page*1024:][:1024])
				if err := os.WriteFile(path, whole, 0o600); err != nil {
					t.Fatal(err)
				}
				if c := verified(t, old, out, mode); (c.Differences > 0) != see {
					t.Errorf("%s: %s changed: %t, seen: %d differences", mode, what, see, c.Differences)
				}
			}
		}
		for multi := m.New.Oldest; multi <= m.New.Next; multi++ {
			for b := range 8 {
				changed(fmt.Sprintf("byte %d of the entry of %d", b, multi), "offsets/0000", layout.OffsetPage(multi), func(page []byte) {
					i := layout.OffsetEntry(multi)
					layout.SetEntry(page, i, layout.Entry(page, i)^0x41<<(8*b))
				})
			}
		}
		for slot := first; slot < m.New.NextOffset; slot++ {
			for b := range 5 {
				changed(fmt.Sprintf("byte %d of slot %d", b, slot), "members/000000000000000", layout.MemberPage(slot), func(page []byte) {
					i := layout.MemberSlot(slot)
					member := multixact.MemberAt(page, i)
					if b == 4 {
						member.Status ^= 0x41
					} else {
						member.XID ^= 0x41 << (8 * b)
					}
					multixact.SetMember(page, i, member)
				})
			}
		}
	}
}

// The manifest is written file by file from what is planned: it has to be what is there.
func TestManifestListsEveryFileOfTheResult(t *testing.T) {
	old := made(t, 1024)
	for _, mode := range modes {
		out, err := converted(t, old, mode, "stage")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(out, "mxwiden_manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		var listed struct{ Files []convert.File }
		if err := json.Unmarshal(text, &listed); err != nil {
			t.Fatal(err)
		}
		sizes := map[string]int64{}
		for _, f := range listed.Files {
			sizes[f.Path] = f.Bytes
		}
		paths, err := filepath.Glob(filepath.Join(out, "pg_multixact", "*", "*"))
		if err != nil || len(paths) == 0 || len(paths) != len(listed.Files) || len(paths) != len(sizes) {
			t.Errorf("%s: %d files, %d listed, of %d names: %v", mode, len(paths), len(listed.Files), len(sizes), err)
		}
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			name, _ := filepath.Rel(filepath.Join(out, "pg_multixact"), path)
			if size, ok := sizes[name]; !ok || size != info.Size() {
				t.Errorf("%s: %s has %d bytes, listed (%t) with %d", mode, name, info.Size(), ok, size)
			}
		}
	}
}

// Whatever stands in the segments, a conversion refuses them, saying why, or makes what verify agrees with.
func FuzzDamagedClusters(f *testing.F) {
	f.Add(uint64(1), uint32(1), uint32(1), uint16(300), uint16(0))
	f.Add(uint64(2), uint32(1<<32-100), uint32(1<<32-500), uint16(700), uint16(3))
	f.Add(uint64(3), uint32(255), uint32(6527), uint16(400), uint16(40))
	f.Add(uint64(4), uint32(1<<32-1), uint32(1<<32-1), uint16(1), uint16(1))
	f.Fuzz(func(t *testing.T, seed uint64, first, offset uint32, count, damage uint16) {
		rng := rand.New(rand.NewPCG(seed, 1))
		old := filepath.Join(t.TempDir(), "old")
		_, err := synth.Shape{
			Header: synth.Header{BlockSize: 1024, First: first, FirstOffset: max(offset, 1)},
			Count:  uint32(count % 4096), MinMembers: 1, MaxMembers: 1 + rng.IntN(20), Updaters: 0.5, Holes: rng.Float64() / 2, HoleRun: 1 + rng.IntN(300), Seed: seed,
		}.Write(old)
		if err != nil {
			t.Fatal(err)
		}
		for range damage % 64 {
			scribble(t, rng, old)
		}
		for _, mode := range modes {
			out, err := converted(t, old, mode, []string{"stage", "map"}[seed%2])
			var refused *convert.RefusedError
			if errors.As(err, &refused) || errors.Is(err, convert.ErrMissing) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if c := verified(t, old, out, mode); c.Differences != 0 {
				t.Fatalf("%s: %d differences, the first: %v", mode, c.Differences, c.First)
			}
		}
	})
}

// scribble damages a segment: an entry or a member gets another value, pages are cut off, or it goes.
func scribble(t *testing.T, rng *rand.Rand, old string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(old, "pg_multixact", "*", "*"))
	if err != nil || len(segments) == 0 {
		t.Skip("no segments")
	}
	path := segments[rng.IntN(len(segments))]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch kind := rng.IntN(20); {
	case kind == 0:
		err = os.Remove(path)
	case kind == 1:
		err = os.Truncate(path, rng.Int64N(int64(len(b))+1))
	case len(b) > 0:
		b[rng.IntN(len(b))] ^= byte(1 + rng.IntN(255))
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
