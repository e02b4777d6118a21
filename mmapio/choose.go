package mmapio

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// A Choice is the faster backing for reading and for writing, and what was measured of each, in GB in a second of
// processor time: medians, 0 where nothing could be measured.
type Choice struct {
	Read, Write                              Backing
	ReadStage, ReadMap, WriteStage, WriteMap float64
}

// What Choose may spend: on each side the bytes of a round, and the rounds for as long as there is time.
const (
	sampleBytes = 512 << 10
	readTime    = 3 * time.Millisecond
	writeTime   = 7 * time.Millisecond
)

// Choose measures both backings on the very file systems, for some milliseconds: it reads some of the files [first,
// last), and writes as large new ones to a temporary folder in dstDir, which it removes. A backing that cannot be
// measured is not chosen, and where neither can it is Stage: only that there can be no folder is an error.
func Choose(files Files, first, last, fileBytes int64, dstDir string, perm Perm) (c Choice, err error) {
	runtime.LockOSThread() // threadTime is of one thread
	defer runtime.UnlockOSThread()
	c.Read, c.ReadStage, c.ReadMap = compare(readTime, func(b Backing) (trial, error) {
		return newReadTrial(files, first, last, fileBytes, b)
	})
	dir, err := os.MkdirTemp(dstDir, ".probe-*")
	if err != nil {
		return c, err
	}
	c.Write, c.WriteStage, c.WriteMap = compare(writeTime, func(b Backing) (trial, error) {
		return newWriteTrial(dir, fileBytes, perm, b)
	})
	return c, os.RemoveAll(dir)
}

// A trial is one side on one backing. It is run again and again, so that what is only paid for once is not measured. It
// tells the time it took of the processor, since a busy machine stops any round for longer than a round is, and waiting
// for a disk is the same for both.
type trial interface {
	run() (bytes int64, took time.Duration, err error)
	Close() error
}

// compare runs trials of both backings in turn, so that they meet the same neighbours, and returns the medians. The first
// round only warms up. Map has to be clearly faster in most rounds to be chosen, or the only one that works.
func compare(limit time.Duration, open func(Backing) (trial, error)) (faster Backing, stage, mapped float64) {
	var trials [2]trial // nil where it fails
	var rates [2][]float64
	deadline := time.Now().Add(limit)
	for b := range trials {
		if t, err := open(Backing(b)); err == nil {
			trials[b] = t
			defer t.Close()
		}
	}
	for round := 0; round < 2 || round < 6 && time.Now().Before(deadline); round++ {
		for i := range trials {
			b := i ^ round&1 // each goes first in turn
			if trials[b] == nil {
				continue
			}
			bytes, took, err := trials[b].run()
			if err != nil {
				trials[b], rates[b] = nil, nil
			} else if round > 0 {
				rates[b] = append(rates[b], float64(bytes)/float64(max(took, 1))) // bytes a nanosecond are GB/s
			}
		}
	}
	rounds, won := len(rates[Stage]), 0 // by Map
	for i, rate := range rates[Map] {
		if rounds == 0 || rate > 1.1*rates[Stage][i] {
			won++
		}
	}
	if 2*won > rounds {
		faster = Map
	}
	return faster, median(rates[Stage]), median(rates[Map])
}

// median is 0 of nothing.
func median(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	slices.Sort(samples)
	return samples[len(samples)/2]
}

// sampleFiles is how many files are a round: creating and opening them takes time too.
func sampleFiles(fileBytes int64) int { return int(min(max(sampleBytes/fileBytes, 1), 4)) }

// A readTrial reads the same files in every round, and adds up what they hold: a map is not read before it is touched.
type readTrial struct {
	*Reader
	numbers []int64
	sum     uint64
}

func newReadTrial(files Files, first, last, fileBytes int64, b Backing) (*readTrial, error) {
	r, err := NewReader(files, fileBytes, 1, b)
	if err != nil {
		return nil, err
	}
	t := &readTrial{Reader: r}
	for n := first; n < last && len(t.numbers) < sampleFiles(fileBytes); n++ {
		if _, size, ok := files.File(n); ok && size >= fileBytes {
			t.numbers = append(t.numbers, n)
		}
	}
	return t, nil
}

func (t *readTrial) run() (bytes int64, took time.Duration, err error) {
	begin := threadTime()
	err = Guard(func() error {
		for _, n := range t.numbers {
			t.view = nil // what is in view would cost nothing
			b, err := t.Bytes(n*t.fileBytes, int(t.fileBytes))
			if err != nil {
				return err
			}
			for i := 0; i < len(b); i += 8 {
				t.sum += binary.NativeEndian.Uint64(b[i:])
			}
			bytes += t.fileBytes
		}
		return nil
	})
	return bytes, threadTime() - begin, err
}

// A writeTrial writes the same new files in every round.
type writeTrial struct {
	*Writer
	list []NewFile
}

func newWriteTrial(dir string, fileBytes int64, perm Perm, b Backing) (*writeTrial, error) {
	n := sampleFiles(fileBytes)
	w, err := NewWriter(fileBytes, n, b, perm, false)
	if err != nil {
		return nil, err
	}
	t := &writeTrial{Writer: w}
	for i := range n {
		t.list = append(t.list, NewFile{filepath.Join(dir, fmt.Sprint(i)), fileBytes})
	}
	return t, nil
}

func (t *writeTrial) run() (bytes int64, took time.Duration, err error) {
	begin := threadTime()
	err = Guard(func() error {
		window, err := t.Begin(t.list)
		if err != nil {
			return err
		}
		for i := 0; i < len(window); i += 8 {
			binary.NativeEndian.PutUint64(window[i:], uint64(i))
		}
		return t.Commit()
	})
	took = threadTime() - begin
	for _, f := range t.list {
		if failed := os.Remove(f.Path); err == nil {
			err = failed
		}
	}
	return int64(len(t.list)) * t.fileBytes, took, err
}
