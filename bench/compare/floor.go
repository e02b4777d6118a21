package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mxwiden/mxwiden/mmapio"
)

// floorWindow is how many files a worker of the floor writes at a time.
const floorWindow = 4

// floor writes files of the given sizes in a new folder, from a buffer of each worker, and gives the time that it took.
func (b *bench) floor(sizes []int64, backing mmapio.Backing) (time.Duration, error) {
	dir := filepath.Join(b.temp, "floor")
	perm := mmapio.Perm{File: 0o600, Dir: 0o700, UID: -1, GID: -1}
	begin := time.Now()
	if err := mmapio.MkdirPerm(dir, perm); err != nil {
		return 0, err
	}
	var next atomic.Int64
	var group errgroup.Group
	for range b.jobs {
		group.Go(func() error {
			return mmapio.Guard(func() error { return writeFiles(dir, sizes, &next, backing, perm, b.sync) })
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if b.sync {
		if err := mmapio.SyncTree(dir, mmapio.Fsync, b.jobs); err != nil {
			return 0, err
		}
	}
	took := time.Since(begin)
	return took, os.RemoveAll(dir)
}

// writeFiles writes what of the files is next, until none is left.
func writeFiles(dir string, sizes []int64, next *atomic.Int64, backing mmapio.Backing, perm mmapio.Perm, behind bool) error {
	whole := slices.Max(sizes)
	w, err := mmapio.NewWriter(whole, floorWindow, backing, perm, behind)
	if err != nil {
		return err
	}
	buffer := make([]byte, whole)
	for i := range buffer {
		buffer[i] = byte(i)
	}
	for {
		last := int(next.Add(floorWindow))
		first := last - floorWindow
		if first >= len(sizes) {
			return w.Close()
		}
		var files []mmapio.NewFile
		for i := first; i < min(last, len(sizes)); i++ {
			files = append(files, mmapio.NewFile{Path: filepath.Join(dir, strconv.Itoa(i)), Size: sizes[i]})
		}
		window, err := w.Begin(files)
		if err != nil {
			return errors.Join(err, w.Close())
		}
		if backing == mmapio.Map {
			for i, f := range files {
				copy(window[int64(i)*whole:][:f.Size], buffer)
			}
		}
		if err := w.Commit(); err != nil {
			return errors.Join(err, w.Close())
		}
	}
}
