package postgres

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
)

// Upgrade runs the pg_upgrade of new's installation over two stopped clusters; the old one's installation must be complete.
// Args are pg_upgrade's own ("--link", "-j2"). The output is what it printed, in the error's case too.
func Upgrade(old, new *Cluster, args ...string) (output string, err error) {
	var out bytes.Buffer
	err = UpgradeTo(&out, old, new, args...)
	return out.String(), err
}

// UpgradeTo is Upgrade with the output to a writer, as it comes.
func UpgradeTo(w io.Writer, old, new *Cluster, args ...string) error {
	dir, err := os.MkdirTemp("/tmp", "mxup") // short: it is for sockets as well
	if err != nil {
		return fmt.Errorf("making a folder for pg_upgrade: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := Own(dir); err != nil {
		return err
	}
	cmd := new.Command(context.Background(), "pg_upgrade", append([]string{
		"-b", old.Bin, "-B", new.Bin, "-d", old.Dir, "-D", new.Dir, "-U", "postgres", "-s", dir, "--no-sync"}, args...)...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout = io.MultiWriter(&out, w)
	cmd.Stderr = cmd.Stdout
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("upgrading %s from version %s to %s: %w\n%s", old.Dir, old.Major, new.Major, err, tail(out.Bytes()))
	}
	return nil
}
