package mmapio

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
)

// A FaultError is a memory fault under a map: the file was cut short while it was mapped, or its disk failed.
type FaultError struct {
	Path string // "" where no file is mapped at the address any more
	Err  error
}

func (e *FaultError) Error() string {
	return fmt.Sprintf("%s: fault under its map: the file has become shorter, or its disk failed: %v", e.Path, e.Err)
}

func (e *FaultError) Unwrap() error { return e.Err }

// Guard calls f. A fault at an address within a map of a Reader or a Writer, in Go or in assembly, ends f and is a *FaultError
// that names the file. Any other fault, and any other panic, goes on its way.
func Guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		fault, ok := r.(interface {
			runtime.Error
			Addr() uintptr
		})
		if ok {
			if path, mapped := maps.path(fault.Addr()); mapped {
				err = &FaultError{path, fault}
				return
			}
		}
		panic(r)
	}()
	return f()
}

// maps is every range of addresses at which files are mapped. Ranges come and go with Readers and Writers; what is mapped
// within one changes without a word to the others.
var maps registry

type registry struct {
	mu    sync.Mutex
	areas []*area
}

// An area is a reserved range of addresses with files mapped side by side, each in size bytes.
type area struct {
	base  uintptr
	bytes []byte
	size  int64
	mu    sync.Mutex
	paths []string
}

func (r *registry) add(a *area) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.areas = append(r.areas, a)
}

func (r *registry) remove(a *area) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.areas = slices.DeleteFunc(r.areas, func(b *area) bool { return a == b })
}

// path is the file that is mapped at an address.
func (r *registry) path(addr uintptr) (path string, mapped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.areas {
		if addr-a.base < uintptr(len(a.bytes)) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if i := int(int64(addr-a.base) / a.size); i < len(a.paths) {
				path = a.paths[i]
			}
			return path, true
		}
	}
	return "", false
}
