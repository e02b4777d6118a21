package mmapio

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/edsrzf/mmap-go"
	"golang.org/x/sys/unix"
)

// A Backing is what the memory of a Reader or Writer is.
type Backing uint8

const (
	Stage Backing = iota // anonymous memory, filled by pread and drained by pwrite
	Map                  // the files themselves, mapped
)

// String is "stage" or "map".
func (b Backing) String() string {
	if b == Map {
		return "map"
	}
	return "stage"
}

// newStage is anonymous memory of size bytes. The system gives it pages as they are touched.
func newStage(size int64) (mmap.MMap, error) {
	memory, err := mmap.MapRegion(nil, int(size), mmap.RDWR, mmap.ANON, 0)
	if err != nil {
		return nil, fmt.Errorf("taking %d bytes of memory: %w", size, err)
	}
	return memory, nil
}

// An arena is one range of addresses with a slot for each file of a window, into which files are mapped in turn. Where
// no file is mapped it is anonymous memory. Its addresses are registered for Guard.
type arena struct {
	memory []byte
	slot   int64    // bytes
	prot   int      // of everything in it
	paths  []string // of the files mapped, by slot, empty where there is none. Guarded by maps.
	lost   error    // of the call after which it is not known what stands in memory
}

func newArena(slots int, slot int64, prot int) (*arena, error) {
	if page := int64(os.Getpagesize()); slot%page != 0 {
		return nil, fmt.Errorf("mapping files of %d bytes: not a multiple of the page size, %d", slot, page)
	}
	size := int64(slots) * slot
	memory, err := unix.Mmap(-1, 0, int(size), prot, anonymous)
	if err != nil {
		return nil, fmt.Errorf("reserving %d bytes of address space: %w", size, err)
	}
	a := &arena{memory: memory, slot: slot, prot: prot, paths: make([]string, slots)}
	maps.add(a)
	return a, nil
}

// Shared anonymous memory would take a page for each that is read; private memory reads as the one page of zeros.
const anonymous = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE

// place maps the first size bytes of f, at most a slot, into slot i, which must be clear.
func (a *arena) place(i int, f file, size int64) error {
	if size == 0 {
		return nil
	}
	if err := a.over(int64(i)*a.slot, size, f.fd, unix.MAP_SHARED); err != nil {
		return f.failed("mmap", err)
	}
	maps.name(a, i, f.path)
	return nil
}

// clear unmaps every file. It does so in one call, and other processors drop the translations of a window at once.
func (a *arena) clear() error {
	maps.forget(a)
	if err := a.over(0, int64(len(a.memory)), -1, anonymous); err != nil {
		return fmt.Errorf("unmapping %d bytes: %w", len(a.memory), err)
	}
	return nil
}

// over maps size bytes over what is at off. Where that fails, older kernels have unmapped what was there, and by now
// another map may be in the gap: from then on the arena is neither used nor unmapped.
func (a *arena) over(off, size int64, fd, flags int) error {
	if a.lost == nil {
		_, a.lost = unix.MmapPtr(fd, 0, unsafe.Pointer(&a.memory[off]), uintptr(size), a.prot, flags|unix.MAP_FIXED)
	}
	return a.lost
}

func (a *arena) close() error {
	maps.remove(a)
	if a.lost != nil {
		return nil
	}
	return unix.Munmap(a.memory)
}
