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
	a := &arena{memory, slot, prot, make([]string, slots)}
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
	at := unsafe.Pointer(&a.memory[int64(i)*a.slot])
	if _, err := unix.MmapPtr(f.fd, 0, at, uintptr(size), a.prot, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
		return f.failed("mmap", err)
	}
	maps.name(a, i, f.path)
	return nil
}

// clear unmaps every file. It does so in one call, and other processors drop the translations of a window at once.
func (a *arena) clear() error {
	maps.forget(a)
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(&a.memory[0]), uintptr(len(a.memory)), a.prot, anonymous|unix.MAP_FIXED)
	if err != nil {
		return fmt.Errorf("unmapping %d bytes: %w", len(a.memory), err)
	}
	return nil
}

func (a *arena) close() error {
	maps.remove(a)
	return unix.Munmap(a.memory)
}
