package mmapio_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mxwiden/mxwiden/mmapio"
	"golang.org/x/sys/unix"
)

// mount is an empty file system of the kind and size given, in memory or in a file on a loop device. The test is
// skipped where it cannot be made, and fails instead where MXWIDEN_REQUIRE_PG=1.
func mount(t *testing.T, kind string, size int64) string {
	t.Helper()
	missing := func(format string, args ...any) {
		t.Helper()
		if os.Getenv("MXWIDEN_REQUIRE_PG") == "1" {
			t.Fatalf(format, args...)
		}
		t.Skipf(format, args...)
	}
	if os.Getuid() != 0 {
		missing("run as root to mount a file system of kind %s", kind)
	}
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size)); err != nil {
		t.Fatal(err)
	}
	mkfs := map[string][]string{
		"tmpfs": {"true"},
		"ext2":  {"mkfs.ext2", "-q", "-F", image},
		"ext4":  {"mkfs.ext4", "-q", "-F", image},
		"xfs":   {"mkfs.xfs", "-q", "-m", "reflink=1", image},
		"btrfs": {"mkfs.btrfs", "-q", image},
	}[kind]
	if _, err := exec.LookPath(mkfs[0]); err != nil {
		missing("install %s (e2fsprogs, xfsprogs, btrfs-progs) to test on %s", mkfs[0], kind)
	}
	if out, err := exec.Command(mkfs[0], mkfs[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", mkfs, err, out)
	}
	var err error
	if kind == "tmpfs" {
		err = unix.Mount(kind, dir, kind, 0, "mode=0700,size="+itoa(size))
	} else if out, failed := exec.Command("mount", "-t", kind, "-o", "loop", image, dir).CombinedOutput(); failed != nil {
		err = errors.New(string(out))
	}
	if err != nil {
		missing("mounting a file system of kind %s: %v", kind, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmounting %s: %v", dir, err)
		}
	})
	return dir
}

func TestWriterOnAFullDisk(t *testing.T) {
	const fileBytes, count = 256 << 10, 8
	for _, c := range []struct {
		kind string
		size int64
	}{{"tmpfs", 1 << 20}, {"ext4", 1 << 20}} {
		t.Run(c.kind, func(t *testing.T) {
			onEach(t, func(t *testing.T, b mmapio.Backing) {
				dir := mount(t, c.kind, c.size)
				w := newWriter(t, fileBytes, count, b, private, true)
				sizes := make([]int64, count)
				for i := range sizes {
					sizes[i] = fileBytes
				}
				_, err := write(w, dir, fileBytes, rand.NewChaCha8([32]byte{}), sizes...)
				if !errors.Is(err, unix.ENOSPC) || !names(err, dir) {
					t.Errorf("a full disk is %v", err)
				}
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// On ext2 there is no fallocate, so that the room is missed only when a page is touched.
func TestWriterOnAFullDiskThatCannotPreallocate(t *testing.T) {
	const fileBytes, count = 256 << 10, 8
	dir := mount(t, "ext2", 1<<20)
	w := newWriter(t, fileBytes, count, mmapio.Map, private, false)
	sizes := make([]int64, count)
	for i := range sizes {
		sizes[i] = fileBytes
	}
	_, err := write(w, dir, fileBytes, rand.NewChaCha8([32]byte{}), sizes...)
	if !errors.Is(err, mmapio.ErrFault) || !names(err, dir) {
		t.Errorf("a full disk is %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestFreeBytesIsTheRoomLeft(t *testing.T) {
	dir := mount(t, "tmpfs", 1<<20)
	free := func() uint64 {
		n, err := mmapio.FreeBytes(dir)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := free()
	if before > 1<<20 || before < 1<<19 {
		t.Errorf("%d bytes are free of a mebibyte", before)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, 1<<18), 0o600); err != nil {
		t.Fatal(err)
	}
	if after := free(); before-after != 1<<18 {
		t.Errorf("of %d bytes %d are left after writing %d", before, after, 1<<18)
	}
}

func TestCloneSharesBlocks(t *testing.T) {
	const size = 32 << 20
	for kind, imageBytes := range map[string]int64{"xfs": 320 << 20, "btrfs": 256 << 20} {
		t.Run(kind, func(t *testing.T) {
			dir := mount(t, kind, imageBytes)
			contents := make([]byte, size)
			rand.NewChaCha8([32]byte{}).Read(contents)
			src := filepath.Join(dir, "src")
			if err := os.WriteFile(src, contents, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := mmapio.CheckCopy(src, dir, mmapio.Clone, private); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				m      mmapio.CopyMethod
				shares bool
			}{{mmapio.Clone, true}, {mmapio.AutoCopy, true}, {mmapio.Copy, false}} {
				before := freeAfterSync(t, dir)
				dst := filepath.Join(dir, c.m.String())
				if err := mmapio.CarryFile(dst, src, c.m, private); err != nil {
					t.Fatal(err)
				}
				holds(t, dst, contents)
				if taken := before - freeAfterSync(t, dir); (taken < size/2) != c.shares {
					t.Errorf("%s of %d bytes took %d", c.m, size, taken)
				}
			}
		})
	}
}

func freeAfterSync(t *testing.T, dir string) int64 {
	t.Helper()
	synced := mmapio.SyncTree(dir, mmapio.Syncfs, 1)
	free, err := mmapio.FreeBytes(dir)
	if err := errors.Join(synced, err); err != nil {
		t.Fatal(err)
	}
	return int64(free)
}

func TestCopyMethodsAreRefusedWithTheReason(t *testing.T) {
	onTmpfs, onExt4 := mount(t, "tmpfs", 4<<20), mount(t, "ext4", 4<<20)
	contents := make([]byte, 100_000)
	for _, dir := range []string{onTmpfs, onExt4} {
		if err := os.WriteFile(filepath.Join(dir, "src"), contents, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what, from, to string
		m              mmapio.CopyMethod
		reason         string // empty where it works
	}{
		{"clone on ext4", onExt4, onExt4, mmapio.Clone, "the file system cannot do it"},
		{"clone on tmpfs", onTmpfs, onTmpfs, mmapio.Clone, "the file system cannot do it"},
		{"clone across", onExt4, onTmpfs, mmapio.Clone, "not on the same file system"},
		{"copy_file_range on ext4", onExt4, onExt4, mmapio.CopyFileRange, ""},
		{"copy_file_range across", onExt4, onTmpfs, mmapio.CopyFileRange, "not on the same file system"},
		{"link on ext4", onExt4, onExt4, mmapio.Link, ""},
		{"link across", onExt4, onTmpfs, mmapio.Link, "not on the same file system"},
		{"copy across", onExt4, onTmpfs, mmapio.Copy, ""},
		{"auto across", onExt4, onTmpfs, mmapio.AutoCopy, ""},
		{"auto on ext4", onExt4, onExt4, mmapio.AutoCopy, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			src, dst := filepath.Join(c.from, "src"), filepath.Join(c.to, "dst")
			defer os.Remove(dst)
			checked := mmapio.CheckCopy(src, c.to, c.m, private)
			carried := mmapio.CarryFile(dst, src, c.m, private)
			if c.reason == "" {
				if err := errors.Join(checked, carried); err != nil {
					t.Fatal(err)
				}
				holds(t, dst, contents)
				return
			}
			if !names(checked, c.reason) || !names(checked, "use copy") || !names(checked, src) || !names(checked, c.to) {
				t.Errorf("the check says %v", checked)
			}
			if !names(carried, c.reason) || !names(carried, src) {
				t.Errorf("the carrying says %v", carried)
			}
			if errors.Is(carried, mmapio.ErrNotLinkable) != (c.m == mmapio.Link) {
				t.Errorf("%v is ErrNotLinkable or is not", carried)
			}
			if _, err := os.Lstat(dst); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is left: %v", dst, err)
			}
		})
	}
}

func TestNothingIsLeftOfWhatDidNotFit(t *testing.T) {
	const size = 1 << 20
	dir := mount(t, "tmpfs", size)
	src, dst := filepath.Join(t.TempDir(), "src"), filepath.Join(dir, "dst")
	if err := os.WriteFile(src, make([]byte, 2*size), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, run := range map[string]func() error{
		"AutoCopy":        func() error { return mmapio.CarryFile(dst, src, mmapio.AutoCopy, private) },
		"Copy":            func() error { return mmapio.CarryFile(dst, src, mmapio.Copy, private) },
		"CheckCopy":       func() error { return mmapio.CheckCopy(src, dir, mmapio.Copy, private) },
		"WriteFileAtomic": func() error { return mmapio.WriteFileAtomic(dst, private, mmapio.Fsync, writes(make([]byte, 2*size))) },
	} {
		if err := run(); !errors.Is(err, unix.ENOSPC) || !names(err, dir) {
			t.Errorf("%s to a full disk: %v", what, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s leaves %v, %v", what, left, err)
		}
	}
}

// Where there is no room to measure, nothing is chosen and nothing is left.
func TestChooseOnAFullDiskIsStage(t *testing.T) {
	const fileBytes = 256 << 10
	dir := mount(t, "tmpfs", fileBytes)
	c, err := mmapio.Choose(folder{}, 0, 0, fileBytes, dir, private)
	if err != nil || c != (mmapio.Choice{}) {
		t.Errorf("got %+v, %v", c, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}
