package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mxwiden/mxwiden/bench/synth"
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

// most is what the program may take in all: its windows, the heap beside them, and the runtime.
const most = 64 << 20

// Windows are of a fixed number of segments, whatever there is to convert. The program itself, with its runtime, takes some 15 MiB.
func TestMemoryDoesNotGrowWithTheCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it is for a program without the race detector's memory, and takes some seconds")
	}
	small := cluster(t, 100_000, 1)
	huge := sparse(t, 1<<28)
	for _, mode := range modes {
		for _, io := range []string{"stage", "map"} {
			for _, c := range []struct{ name, old string }{{"a hundred thousand", small}, {"a quarter of a billion, checked", huge}} {
				t.Run(fmt.Sprint(mode, " ", io, " ", c.name), func(t *testing.T) {
					args := []string{"convert", "-d", c.old, "-o", filepath.Join(t.TempDir(), "out"), "--mode", string(mode), "--io", io, "-N", "-j", "2"}
					if c.old == huge {
						args = append(args, "--check")
					}
					cmd := mxwiden(args...)
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Fatalf("%v: %s", err, out)
					}
					peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
					t.Logf("peak resident set: %d KiB", peak>>10)
					if peak > most {
						t.Errorf("peak resident set is %d bytes, more than %d", peak, most)
					}
				})
			}
		}
	}
}

// Segments of large blocks are four times as large, and there may be many workers: the windows of all have a bound.
func TestMemoryDoesNotGrowWithWorkersAndBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("it is for a program without the race detector's memory")
	}
	old := filepath.Join(t.TempDir(), "old")
	if _, err := (synth.Shape{Header: synth.Header{BlockSize: 32768}, Count: 20_000_000, Seed: 1}).Write(old); err != nil {
		t.Fatal(err)
	}
	for _, mode := range modes {
		cmd := mxwiden("convert", "-d", old, "-o", filepath.Join(t.TempDir(), "out"), "--mode", string(mode), "--io", "stage", "-N", "-j", "64", "--link")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10; peak > most {
			t.Errorf("%s by 64 workers: peak resident set is %d bytes, more than %d", mode, peak, most)
		}
	}
}

// sparse makes a cluster of n multis, of one member each in one segment in a hundred and lost in the others, which take no room on
// disk.
func sparse(t *testing.T, n uint32) string {
	t.Helper()
	old := filepath.Join(t.TempDir(), "old")
	if _, err := (synth.Shape{Count: 1}).Write(old); err != nil {
		t.Fatal(err)
	}
	control, err := pgdata.NewControl("18")
	if err != nil {
		t.Fatal(err)
	}
	control.NextMulti, control.NextOffset = n, uint64(n)
	if err := os.WriteFile(filepath.Join(old, "global", "pg_control"), control.Encode(), 0o600); err != nil {
		t.Fatal(err)
	}
	layout := multixact.Old(int(control.BlockSize))
	segment := make([]byte, slru.PagesPerSegment*layout.BlockSize())
	for dir, last := range map[string]int64{"offsets": layout.OffsetPage(n), "members": layout.MemberPage(uint64(n))} {
		for no := range last/slru.PagesPerSegment + 1 {
			path := filepath.Join(old, "pg_multixact", dir, slru.Short.Name(no))
			if dir == "offsets" && no%100 == 0 {
				entries := multixact.OldEntries(segment)
				for i := range entries {
					entries[i] = uint32(no)*uint32(len(entries)) + uint32(i) // of multi m it is m
				}
				err = os.WriteFile(path, segment, 0o600)
			} else if err = os.WriteFile(path, nil, 0o600); err == nil {
				err = os.Truncate(path, int64(len(segment)))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return old
}
