package mmapio

import (
	"fmt"

	"github.com/edsrzf/mmap-go"
)

// A Backing is where the bytes of a window are.
type Backing uint8

// The backings: Stage is an anonymous map that files are read into or written from, Map is the files themselves.
const (
	Stage Backing = iota
	Map
)

func (b Backing) String() string {
	if b == Map {
		return "map"
	}
	return "stage"
}

// newArena is an anonymous map, for a stage. It is not of Go's heap, and not touched before it is used.
func newArena(n int64) (mmap.MMap, error) {
	arena, err := mmap.MapRegion(nil, int(n), mmap.RDWR, mmap.ANON, 0)
	if err != nil {
		return nil, fmt.Errorf("mapping a stage of %d bytes: %w", n, err)
	}
	return arena, nil
}
