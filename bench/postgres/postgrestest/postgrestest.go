// Package postgrestest lends tests real PostgreSQL clusters.
package postgrestest

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
)

// Require is the installation of a major version. Without it the test is skipped; it fails where MXWIDEN_REQUIRE_PG is 1.
func Require(t testing.TB, major string) postgres.Install {
	t.Helper()
	i, err := postgres.Find(major)
	switch {
	case err == nil:
	case os.Getenv("MXWIDEN_REQUIRE_PG") == "1":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	return i
}

// TempDir is a folder that goes when the test ends, and belongs to the user that servers run as. (The folders of
// testing.T are closed to it when root runs the test.)
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mxwiden")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := postgres.Own(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Init is a new cluster of a major version, stopped, and under the conditions of Require. It goes when the test ends, and is
// killed if it still runs.
func Init(t testing.TB, major string, args ...string) *postgres.Cluster {
	t.Helper()
	i := Require(t, major)
	c, err := i.Init(filepath.Join(TempDir(t), "data"), args...)
	if err != nil {
		t.Fatal(err)
	}
	Cleanup(t, c)
	return c
}

// Copy is a copy of a stopped cluster, made faster than a new one. It goes as that of Init does.
func Copy(t testing.TB, c *postgres.Cluster) *postgres.Cluster {
	t.Helper()
	dir := filepath.Join(TempDir(t), "data")
	if out, err := exec.Command("cp", "-a", c.Dir, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	copied := c.Open(dir)
	Cleanup(t, copied)
	return copied
}

// Control is what pg_control says of a cluster.
func Control(t testing.TB, c *postgres.Cluster) pgdata.Control {
	t.Helper()
	dir, err := pgdata.Open(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir.Control
}

// Cleanup kills a cluster at the end of the test if it runs then.
func Cleanup(t testing.TB, c *postgres.Cluster) {
	t.Cleanup(func() {
		if c.Running() {
			if err := c.Kill(); err != nil {
				t.Error(err)
			}
		}
	})
}

// Start starts a cluster.
func Start(t testing.TB, c *postgres.Cluster, options ...string) {
	t.Helper()
	if err := c.Start(options...); err != nil {
		t.Fatal(err)
	}
}

// Stop stops a cluster.
func Stop(t testing.TB, c *postgres.Cluster) {
	t.Helper()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
}

// Hash is over the name, mode, length, time and content of every file below dir.
func Hash(t testing.TB, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(sum, path, info.Mode())
		if !info.Mode().IsRegular() {
			return nil
		}
		fmt.Fprintln(sum, info.Size(), info.ModTime())
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(sum, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(sum.Sum(nil))
}
