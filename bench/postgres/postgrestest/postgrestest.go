// Package postgrestest lends tests real PostgreSQL clusters.
package postgrestest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mxwiden/mxwiden/bench/postgres"
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
