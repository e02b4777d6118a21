package mmapio

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrFault is what Guard makes of a memory fault under a map.
var ErrFault = errors.New("memory fault under its map: the file has become shorter, or the disk under it fails or is full")

// Guard runs f, and makes an error that names the file, and wraps ErrFault, of a fault within the map of a Reader or
// Writer: of a SIGBUS or SIGSEGV in f itself, in Go or in assembly, and of an EFAULT from a system call that f returns.
// Any other panic of f goes on. Goroutines that f starts are not guarded.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if p == nil {
			err = maps.explain(err)
			return
		}
		if fault, ok := p.(addressed); ok {
			if path, ok := maps.find(fault.Addr()); ok {
				err = fmt.Errorf("%s: %w", path, ErrFault)
				return
			}
		}
		panic(p)
	}()
	return f()
}

// addressed is the runtime's error of a memory fault.
type addressed interface {
	runtime.Error
	Addr() uintptr
}

// maps is every arena there is.
var maps registry

type registry struct {
	sync.Mutex
	arenas map[*arena]struct{}
}

func (r *registry) add(a *arena) {
	r.Lock()
	defer r.Unlock()
	if r.arenas == nil {
		r.arenas = map[*arena]struct{}{}
	}
	r.arenas[a] = struct{}{}
}

func (r *registry) remove(a *arena) {
	r.Lock()
	defer r.Unlock()
	delete(r.arenas, a)
}

func (r *registry) name(a *arena, slot int, path string) {
	r.Lock()
	defer r.Unlock()
	a.paths[slot] = path
}

func (r *registry) forget(a *arena) {
	r.Lock()
	defer r.Unlock()
	clear(a.paths)
}

// find is the file that is mapped at an address.
func (r *registry) find(address uintptr) (path string, ok bool) {
	r.Lock()
	defer r.Unlock()
	for a := range r.arenas {
		if at := address - uintptr(unsafe.Pointer(&a.memory[0])); at < uintptr(len(a.memory)) {
			path = a.paths[int64(at)/a.slot]
			return path, path != ""
		}
	}
	return "", false
}

// explain adds to an EFAULT, which does not tell the address, the file that cannot be read through its map.
func (r *registry) explain(err error) error {
	if !errors.Is(err, unix.EFAULT) || errors.Is(err, ErrFault) {
		return err
	}
	r.Lock() // so that no map goes away while it is touched
	defer r.Unlock()
	for a := range r.arenas {
		for i, path := range a.paths {
			if path != "" && faults(a.memory[int64(i)*a.slot:][:a.slot]) {
				return fmt.Errorf("%w: %s: %w", err, path, ErrFault)
			}
		}
	}
	return err
}

// faults touches every page of memory. It needs SetPanicOnFault.
func faults(memory []byte) (bad bool) {
	defer func() { bad = recover() != nil }()
	var sum byte
	for i := 0; i < len(memory); i += os.Getpagesize() {
		sum |= memory[i]
	}
	runtime.KeepAlive(sum)
	return false
}
