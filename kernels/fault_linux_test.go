package kernels

import (
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"
)

// fenced is size bytes of memory that end where a page begins that can be neither read nor written.
func fenced(t *testing.T, size int) []byte {
	t.Helper()
	page := syscall.Getpagesize()
	room := (size + page - 1) / page * page
	memory, err := syscall.Mmap(-1, 0, room+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(memory) })
	if err := syscall.Mprotect(memory[room:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return memory[room-size : room+page]
}

func TestWidenTouchesNothingPastItsSlices(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		for n := 1; n < 70; n++ {
			src := unsafe.Slice((*uint32)(unsafe.Pointer(&fenced(t, 4*n)[0])), n)
			dst := unsafe.Slice((*uint64)(unsafe.Pointer(&fenced(t, 8*n)[0])), n)
			Widen(dst, src, 1, 1<<32)
		}
	})
}

// A caller that maps files relies on this: a fault inside a kernel unwinds like one in Go, and tells the address.
func TestFaultInsideAKernelIsAPanicWithItsAddress(t *testing.T) {
	atEveryLevel(t, func(t *testing.T) {
		const n = 64
		memory := fenced(t, 4*n)
		src := unsafe.Slice((*uint32)(unsafe.Pointer(&memory[0])), 2*n) // half of them beyond the fence
		dst := unsafe.Slice((*uint64)(unsafe.Pointer(&fenced(t, 16*n)[0])), 2*n)
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			fault, ok := recover().(interface{ Addr() uintptr })
			if fence := uintptr(unsafe.Pointer(&memory[4*n])); !ok || fault.Addr() < fence || fault.Addr() >= fence+4*n {
				t.Errorf("recovered %v, want a fault from %#x on", fault, fence)
			}
		}()
		Widen(dst, src, 1, 1<<32)
	})
}
