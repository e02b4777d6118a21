package convert

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"github.com/mxwiden/mxwiden/mmapio"
	"github.com/mxwiden/mxwiden/mmapio/slru"
	"golang.org/x/sync/errgroup"
)

// What the windows of a worker and of all workers may take, in bytes. Segments are of 32 KiB to 1 MiB, by the block size.
const (
	mostWritten = 1 << 20  // through one window
	mostStaged  = 48 << 20 // in all
)

// batch is how many segments of output a worker writes through one window.
func (c *conversion) batch() int { return int(max(1, mostWritten/c.src.offsets.SegmentBytes())) }

// workers is how many there are of n pieces of work: no more than the windows of all may take.
func (c *conversion) workers(n int) int {
	each := int64(c.batch()+offsetsWindow+membersWindow) * c.src.offsets.SegmentBytes()
	return min(c.Jobs, n, int(mostStaged/each))
}

// A worker is what one goroutine of the conversion works with: windows on both sides, a fixed number of segments each.
type worker struct {
	*input
	out     *mmapio.Writer
	scratch []byte // in place of out where nothing is to be written: one segment
}

func (c *conversion) newWorker() (*worker, error) {
	in, err := c.src.input(c.choice.Read)
	if err != nil {
		return nil, err
	}
	if c.Check {
		return &worker{input: in, scratch: make([]byte, c.src.offsets.SegmentBytes())}, nil
	}
	out, err := mmapio.NewWriter(c.src.offsets.SegmentBytes(), c.batch(), c.choice.Write, c.place.perm, c.Sync != mmapio.NoSync)
	if err != nil {
		in.Close()
		return nil, err
	}
	return &worker{input: in, out: out}, nil
}

func (w *worker) Close() error {
	if w.out == nil {
		return w.input.Close()
	}
	return errors.Join(w.input.Close(), w.out.Close())
}

// parallel calls work for each of n pieces, on as many workers as there are jobs, under a fault guard. The first error ends it.
func (c *conversion) parallel(ctx context.Context, n int, work func(w *worker, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range c.workers(n) {
		group.Go(func() error {
			w, err := c.newWorker()
			if err != nil {
				return err
			}
			err = mmapio.Guard(func() error {
				for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
					if ctx.Err() != nil {
						return stopped(ctx)
					}
					if err := work(w, i); err != nil {
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

// batches calls work for n segments of the result, as many at a time as one window holds: [lo, hi) of them.
func (c *conversion) batches(ctx context.Context, n int, work func(w *worker, lo, hi int) error) error {
	size := c.batch()
	return c.parallel(ctx, (n+size-1)/size, func(w *worker, i int) error {
		return work(w, i*size, min((i+1)*size, n))
	})
}

// stopped is the error of a run that was told to end.
func stopped(ctx context.Context) error {
	return fmt.Errorf("stopped before the end, and what was written is removed: %w", context.Cause(ctx))
}

// A segment is one file of the result: its number, and its size in pages.
type segment struct{ no, pages int64 }

// write creates a batch of segments of dir below the place of the result, has fill set every byte of each, and writes them out. For
// a check they are only filled.
func (c *conversion) write(w *worker, dir string, naming slru.Naming, batch []segment, fill func(i int, window []byte) error) error {
	files := make([]mmapio.NewFile, len(batch))
	for i, s := range batch {
		files[i] = mmapio.NewFile{Path: filepath.Join(c.place.build, dir, naming.Name(s.no)), Size: s.pages * int64(c.src.layout.BlockSize())}
	}
	if c.Check {
		for i, f := range files {
			if err := fill(i, w.scratch[:f.Size]); err != nil {
				return err
			}
		}
	} else if err := w.writeOut(files, fill); err != nil {
		return err
	}
	for _, f := range files {
		c.record(&c.written, f.Size)
	}
	return nil
}

// writeOut fills and writes files through the window.
func (w *worker) writeOut(files []mmapio.NewFile, fill func(i int, window []byte) error) error {
	window, err := w.out.Begin(files)
	if err != nil {
		return err
	}
	at := int64(0)
	for i, f := range files {
		if err := fill(i, window[at:at+f.Size]); err != nil {
			return err
		}
		at += w.src.offsets.SegmentBytes()
	}
	return w.out.Commit()
}
