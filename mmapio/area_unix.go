//go:build unix

package mmapio

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reserve takes a range of addresses for n files of size bytes each. Nothing is mapped in it yet: it reads as zeros.
// mmap-go can't place a map at an address, so this is done by hand.
func reserve(n int, size int64) (*area, error) {
	length := uintptr(n) * uintptr(size)
	p, err := unix.MmapPtr(-1, 0, nil, length, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("reserving %d bytes of addresses: %w", length, err)
	}
	a := &area{base: uintptr(p), bytes: unsafe.Slice((*byte)(p), length), size: size}
	maps.add(a)
	return a, nil
}

// show maps the first n bytes of a file in the i-th place, over what is there. n may end within a memory page: the rest of it
// reads as zeros.
func (a *area) show(i int, f *os.File, n int64, write bool) error {
	prot, flags := unix.PROT_READ, unix.MAP_SHARED|unix.MAP_FIXED
	if write {
		prot |= unix.PROT_WRITE
	}
	if _, err := unix.MmapPtr(int(f.Fd()), 0, a.at(i), uintptr(n), prot, flags); err != nil {
		return fmt.Errorf("mapping %s: %w", f.Name(), err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.paths) <= i {
		a.paths = append(a.paths, "")
	}
	a.paths[i] = f.Name()
	return nil
}

// clear takes all files out of the area, in one call.
func (a *area) clear() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(a.paths)
	if n == 0 {
		return nil
	}
	a.paths = a.paths[:0]
	_, err := unix.MmapPtr(-1, 0, a.at(0), uintptr(n)*uintptr(a.size), unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED)
	return err
}

// populate has the kernel bring in all the pages of files [0, n) in one call. Where it can't, they come in one at a time, as
// they are touched: a file that is cut meanwhile is met then, under a Guard.
func (a *area) populate(n int, write bool) {
	advice := populateRead
	if write {
		advice = populateWrite
	}
	if advice != 0 {
		_ = unix.Madvise(a.bytes[:int64(n)*a.size], advice)
	}
}

func (a *area) Close() error {
	if a == nil || a.bytes == nil {
		return nil
	}
	maps.remove(a)
	err := unix.MunmapPtr(a.at(0), uintptr(len(a.bytes)))
	a.bytes = nil
	return err
}

func (a *area) at(i int) unsafe.Pointer { return unsafe.Pointer(&a.bytes[int64(i)*a.size]) }
