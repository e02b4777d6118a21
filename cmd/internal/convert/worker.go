package convert

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"

	"github.com/mxwiden/mxwiden/mmapio"
	"github.com/mxwiden/mxwiden/mmapio/slru"
	"golang.org/x/sync/errgroup"
)

// batch is how many segments of output a worker writes through one window.
const batch = 4

// A worker is what one goroutine of the conversion works with: windows on both sides, a fixed number of segments each.
type worker struct {
	*input
	out *mmapio.Writer
}

func (c *conversion) newWorker() (*worker, error) {
	in, err := c.src.input(c.choice.Read)
	if err != nil {
		return nil, err
	}
	out, err := mmapio.NewWriter(c.src.offsets.SegmentBytes(), batch, c.choice.Write, c.place.perm, c.Sync != mmapio.NoSync)
	if err != nil {
		in.Close()
		return nil, err
	}
	return &worker{in, out}, nil
}

func (w *worker) Close() error { return errors.Join(w.input.Close(), w.out.Close()) }

// parallel calls work for each of n pieces, on as many workers as there are jobs, under a fault guard. The first error ends it.
func (c *conversion) parallel(ctx context.Context, n int, work func(w *worker, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(c.Jobs, n) {
		group.Go(func() error {
			w, err := c.newWorker()
			if err != nil {
				return err
			}
			err = mmapio.Guard(func() error {
				for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
					if err := errors.Join(ctx.Err(), work(w, i)); err != nil {
						return err
					}
				}
				return nil
			})
			return errors.Join(err, w.Close())
		})
	}
	return group.Wait()
}

// A segment is one file of the result: its number, and its size in pages.
type segment struct{ no, pages int64 }

// write creates a batch of segments of dir below the place of the result, has fill set every byte of each, and writes them out.
func (c *conversion) write(w *worker, dir string, naming slru.Naming, batch []segment, fill func(i int, window []byte) error) error {
	files := make([]mmapio.NewFile, len(batch))
	for i, s := range batch {
		files[i] = mmapio.NewFile{Path: filepath.Join(c.place.build, dir, naming.Name(s.no)), Size: s.pages * int64(c.src.layout.BlockSize())}
	}
	window, err := w.out.Begin(files)
	if err != nil {
		return err
	}
	at := int64(0)
	for i, f := range files {
		if err := fill(i, window[at:at+f.Size]); err != nil {
			return err
		}
		at += c.src.offsets.SegmentBytes()
	}
	if err := w.out.Commit(); err != nil {
		return err
	}
	for i, f := range files {
		c.wrote(dir+"/"+naming.Name(batch[i].no), f.Size)
	}
	return nil
}
