//go:build unix

package convert

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// asOwner has a command run as the owner of dir, out of reach of a Ctrl-C on the terminal. Root can do that for anybody, others
// only for themselves.
func asOwner(cmd *exec.Cmd, dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	switch uid := os.Geteuid(); {
	case uid == 0 && owner.Uid != 0:
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	case uint32(uid) != owner.Uid:
		return fmt.Errorf("%s belongs to user %d, and this is user %d: run as its owner, or as root", dir, owner.Uid, uid)
	case uid == 0:
		return fmt.Errorf("%s belongs to root, whom PostgreSQL refuses: give it to the user who runs the server", dir)
	}
	return nil
}
