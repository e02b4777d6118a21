//go:build unix

package mmapio

import (
	"os"
	"syscall"
)

func owner(info os.FileInfo) (uid, gid int) {
	s := info.Sys().(*syscall.Stat_t)
	return int(s.Uid), int(s.Gid)
}
