package pgdata

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// An overlayfs does not rename a folder of a lower layer: told before any work, with what to do.
func TestProbeSwapOnAnOverlay(t *testing.T) {
	lower, upper := swappable(t), t.TempDir()
	work, dir := filepath.Join(t.TempDir(), "work"), t.TempDir()
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("overlay", dir, "overlay", 0, "lowerdir="+lower.Path+",upperdir="+upper+",workdir="+work); err != nil {
		if os.Getenv("MXWIDEN_REQUIRE_PG") == "1" {
			t.Fatal(err)
		}
		t.Skipf("mounting an overlay takes root: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	if err := d.ProbeSwap(); err == nil || !strings.Contains(err.Error(), "lower layer of an overlayfs; copy it") {
		t.Errorf("got %v", err)
	}
	if after := listing(t, dir); !slices.Equal(after, before) {
		t.Errorf("after the probe there is %v, before it there was %v", after, before)
	}
}
