package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/mmapio"
)

// A bench is an input and those who contend on it.
type bench struct {
	options
	temp        string // for all that is written
	old         string // the data directory that is converted
	program     string // mxwiden
	contestants []*contestant
}

// A contestant is somebody's way of writing a result. run gives the time that counts.
type contestant struct {
	name  string
	bytes int64 // written by one run
	floor *contestant
	times []time.Duration
	run   func() (time.Duration, error)
}

// newBench makes the input, builds mxwiden, and lists the contestants: of each mode its floor first, then the peer, then mxwiden.
func newBench(dir string, o options) (*bench, error) {
	b := &bench{options: o, temp: dir, old: filepath.Join(dir, "old"), program: filepath.Join(dir, "mxwiden")}
	made, err := o.shape.Write(b.old)
	if err != nil {
		return nil, err
	}
	fmt.Printf("%d multis, %d members, %d bytes in %d segments, in %s\n", made.Len(), made.Members, made.Bytes, made.Files, o.dir)
	if out, err := exec.Command("go", "build", "-o", b.program, "github.com/mxwiden/mxwiden/cmd/mxwiden").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building mxwiden: %w: %s", err, out)
	}
	peer, err := newPeer(b, made)
	if err != nil && !errors.Is(err, postgres.ErrAbsent) {
		return nil, err
	}
	if peer == nil {
		fmt.Printf("without the peer: %v\n", err)
	}
	for _, mode := range o.modes {
		if err := b.addMode(mode, peer); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *bench) addMode(mode string, peer *peer) error {
	sizes, err := b.sizes(mode)
	if err != nil {
		return err
	}
	bytes := int64(0)
	for _, size := range sizes {
		bytes += size
	}
	var floor *contestant
	for _, backing := range []mmapio.Backing{mmapio.Stage, mmapio.Map} {
		c := &contestant{name: mode + " floor " + backing.String(), bytes: bytes}
		c.run = func() (time.Duration, error) { return b.floor(sizes, backing) }
		if floor == nil {
			floor = c
		}
		b.contestants = append(b.contestants, c)
	}
	if mode == "rewrite" && peer != nil && !b.sync {
		b.contestants = append(b.contestants, &contestant{name: peerName, bytes: bytes, floor: floor, run: peer.run})
	}
	for _, io := range b.io {
		c := &contestant{name: mode + " --io=" + io, bytes: bytes, floor: floor}
		c.run = func() (time.Duration, error) { return b.mxwiden(mode, io, peer) }
		b.contestants = append(b.contestants, c)
	}
	return nil
}

// mxwiden converts once, with members by hard link, and gives the time of the whole process.
func (b *bench) mxwiden(mode, io string, peer *peer) (time.Duration, error) {
	out := filepath.Join(b.temp, "out")
	begin := time.Now()
	if err := b.convert(out, mode, "--io", io); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	if mode == "rewrite" && peer != nil && peer.result != "" {
		if err := sameFiles(filepath.Join(out, "pg_multixact"), peer.result); err != nil {
			return 0, err
		}
	}
	return took, os.RemoveAll(out)
}

func (b *bench) convert(out, mode string, args ...string) error {
	args = append([]string{"convert", "-d", b.old, "-o", out, "--mode", mode, "--jobs", strconv.Itoa(b.jobs), "--progress", "never"}, args...)
	if !b.sync {
		args = append(args, "-N")
	}
	if mode == "widen" {
		args = append(args, "--link")
	}
	if said, err := exec.Command(b.program, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("mxwiden: %w: %s", err, said)
	}
	return nil
}

// sizes is the sizes of the files that a mode writes itself, in bytes, from the manifest of a first conversion.
func (b *bench) sizes(mode string) (sizes []int64, err error) {
	out := filepath.Join(b.temp, "out")
	if err := b.convert(out, mode); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(out, "mxwiden_manifest.json"))
	if err != nil {
		return nil, err
	}
	var manifest struct {
		Files []struct {
			Bytes int64
			How   string
		}
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, err
	}
	for _, f := range manifest.Files {
		if f.How == "written" {
			sizes = append(sizes, f.Bytes)
		}
	}
	return sizes, os.RemoveAll(out)
}

// sameFiles refuses two folders whose files differ in name, length or any byte.
func sameFiles(a, b string) error {
	count := map[string]int{}
	for _, dir := range []string{a, b} {
		err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			count[path]++
			return nil
		})
		if err != nil {
			return err
		}
	}
	for path, n := range count {
		if n != 2 {
			return fmt.Errorf("%s is in only one of %s and %s", path, a, b)
		}
		if err := exec.Command("cmp", filepath.Join(a, path), filepath.Join(b, path)).Run(); err != nil {
			return fmt.Errorf("%s differs between %s and %s: %w", path, a, b, err)
		}
	}
	return nil
}
