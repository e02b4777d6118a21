package mmapio

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A Choice is the backing that is faster for reading and for writing, and what was measured, in GB/s: the median of some
// rounds, 0 where there was nothing to measure.
type Choice struct {
	Read, Write                              Backing
	ReadStage, ReadMap, WriteStage, WriteMap float64
}

// rounds and sample bound what Choose costs: sample files are read, and written, in each round by each backing.
const (
	rounds = 3
	sample = 2
)

// Choose measures both backings for some milliseconds on the very file systems: reading files [first, last), and writing as
// many bytes to a folder. What it writes is removed. A backing that can't be measured is not chosen, and no error.
func Choose(files Files, first, last, fileBytes int64, dir string, perm Perm) (Choice, error) {
	var c Choice
	c.ReadStage, c.ReadMap = compare(func(b Backing) (float64, error) { return timeRead(files, first, last, fileBytes, b) })
	tmp, err := os.MkdirTemp(dir, ".mxwiden-probe-")
	if err != nil {
		return c, fmt.Errorf("measuring how files are written: %w", err)
	}
	c.WriteStage, c.WriteMap = compare(func(b Backing) (float64, error) { return timeWrite(tmp, fileBytes, perm, b) })
	if c.ReadMap > c.ReadStage {
		c.Read = Map
	}
	if c.WriteMap > c.WriteStage {
		c.Write = Map
	}
	return c, os.RemoveAll(tmp)
}

// compare runs both backings in turn, so that both meet the same neighbours, and gives the median of each.
func compare(run func(Backing) (float64, error)) (stage, mapped float64) {
	var rates [2][]float64
	for range rounds {
		for _, b := range []Backing{Stage, Map} {
			rate, err := run(b)
			if err != nil {
				rate = 0
			}
			rates[b] = append(rates[b], rate)
		}
	}
	for b := range rates {
		slices.Sort(rates[b])
	}
	return rates[Stage][rounds/2], rates[Map][rounds/2]
}

func timeRead(files Files, first, last, fileBytes int64, b Backing) (float64, error) {
	r, err := NewReader(files, fileBytes, 1, b)
	if err != nil {
		return 0, err
	}
	var sum byte
	var bytes int64
	begin := time.Now()
	err = Guard(func() error {
		for n, found := first, 0; n < last && found < sample; n++ {
			_, size, ok := files.File(n)
			if !ok || size < fileBytes {
				continue
			}
			view, err := r.Bytes(n*fileBytes, int(fileBytes))
			if err != nil {
				return err
			}
			for at := 0; at < len(view); at += 512 {
				sum ^= view[at] // a map is not read before it is touched
			}
			found++
			bytes += fileBytes
		}
		return nil
	})
	took := time.Since(begin)
	sink = sum
	return rate(bytes, took), errors.Join(err, r.Close())
}

// sink keeps the compiler from leaving out what is only timed.
var sink byte

func timeWrite(dir string, fileBytes int64, perm Perm, b Backing) (float64, error) {
	w, err := NewWriter(fileBytes, sample, b, perm, false)
	if err != nil {
		return 0, err
	}
	var list []NewFile
	for i := range sample {
		list = append(list, NewFile{filepath.Join(dir, fmt.Sprint(i)), fileBytes})
	}
	begin := time.Now()
	err = Guard(func() error {
		window, err := w.Begin(list)
		if err != nil {
			return err
		}
		for at := range window {
			window[at] = byte(at)
		}
		return w.Commit()
	})
	took := time.Since(begin)
	err = errors.Join(err, w.Close())
	for _, f := range list {
		err = errors.Join(err, os.Remove(f.Path))
	}
	return rate(sample*fileBytes, took), err
}

func rate(bytes int64, took time.Duration) float64 {
	return float64(bytes) / float64(max(took, 1)) // bytes a nanosecond are GB/s
}
