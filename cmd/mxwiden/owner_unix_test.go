//go:build unix

package main

import (
	"os"
	"syscall"
)

func owner(info os.FileInfo) (uid, gid uint32) {
	stat := info.Sys().(*syscall.Stat_t)
	return stat.Uid, stat.Gid
}
