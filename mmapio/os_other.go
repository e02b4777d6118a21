//go:build unix && !linux

package mmapio

import (
	"os"

	"golang.org/x/sys/unix"
)

// No such advice here.
const populateRead, populateWrite = 0, 0

func allocate(f *os.File, size int64) error { return f.Truncate(size) }

func writeBehind(*os.File) {}

func syncfs(*os.File) error { return unix.ENOTSUP }

func reflink(_, _ *os.File) error { return unix.ENOTSUP }

func copyRange(_, _ *os.File, _ int) (int, error) { return 0, unix.ENOTSUP }
