//go:build linux

// Emulate is the init of the small guest that emulate/run boots: it runs the tests of package kernels that stand beside it,
// says how they ended, and waits to be ended with its machine.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

func main() {
	for fs, folder := range map[string]string{"proc": "/proc", "devtmpfs": "/dev", "tmpfs": "/tmp"} {
		if err := errors.Join(os.MkdirAll(folder, 0o755), syscall.Mount(fs, folder, fs, 0, "")); err != nil {
			fmt.Printf("mounting %s: %v\n", folder, err)
		}
	}
	tests := exec.Command("/kernels.test", "-test.v", "-test.run=Widen|Fault|Environment")
	tests.Stdout, tests.Stderr = os.Stdout, os.Stdout
	err := tests.Run()
	fmt.Printf("\nended: %v\n", err)
	for { // the kernel would panic at the end of init, into the middle of what it printed
		time.Sleep(time.Hour)
	}
}
