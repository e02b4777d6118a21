package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mxwiden/mxwiden/bench/postgres/postgrestest"
	"github.com/mxwiden/mxwiden/bench/synth"
	"github.com/mxwiden/mxwiden/cmd/internal/convert"
	"github.com/mxwiden/mxwiden/mmapio"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

var modes = []convert.Mode{convert.Widen, convert.Rewrite}

// cluster makes an old data directory that is checked to be untouched at the end of the test.
func cluster(t *testing.T, multis uint32, members int) string {
	t.Helper()
	old := filepath.Join(t.TempDir(), "old")
	if _, err := (synth.Shape{Count: multis, MinMembers: members, MaxMembers: members, Updaters: 0.5, Seed: 1}).Write(old); err != nil {
		t.Fatal(err)
	}
	keepsTree(t, old)
	return old
}

// mxwiden is the program with arguments, not yet started.
func mxwiden(args ...string) *exec.Cmd { return exec.Command("mxwiden", args...) }

func wantAbsent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		tree, _ := readTree(path)
		t.Errorf("%s has been left: %v\n%s", path, err, tree)
	}
}

// options is a conversion by one worker. Hook is called when all is planned and nothing written, and after every file of the
// result, with their number.
func options(old, out string, mode convert.Mode, io string, hook func(files int)) convert.Options {
	files := 0
	return convert.Options{OldDir: old, Output: out, Mode: mode, IO: io, Jobs: 1, Copy: mmapio.Copy, Sync: mmapio.NoSync,
		Start: func(int64) { hook(0) }, Progress: func(int64) { files++; hook(files) }}
}

func TestCarriedSegmentCutUnderAConversionIsAnErrorThatNamesIt(t *testing.T) {
	old := filepath.Join(t.TempDir(), "old")
	if _, err := (synth.Shape{Count: 100_000, MinMembers: 3, MaxMembers: 3, Seed: 1}).Write(old); err != nil {
		t.Fatal(err)
	}
	path, out := filepath.Join(old, "pg_multixact/members/0003"), filepath.Join(t.TempDir(), "out")
	_, err := convert.Run(t.Context(), options(old, out, convert.Widen, "stage", func(files int) {
		if files == 0 {
			os.Truncate(path, 4096)
		}
	}))
	if err == nil || !strings.Contains(err.Error(), path+" has changed: it had 262144 bytes, and 4096 when it was carried") {
		t.Errorf("got %v", err)
	}
	wantAbsent(t, out)
}

func TestSegmentCutUnderAConversionIsAnErrorThatNamesIt(t *testing.T) {
	for _, mode := range modes {
		for _, backing := range []string{"map", "stage"} {
			t.Run(string(mode)+" "+backing, func(t *testing.T) {
				old := filepath.Join(t.TempDir(), "old")
				// 8 offsets segments, the members so many that they wrap: widen has to read some of them, too. Holes have rewrite
				// read the offsets twice.
				if _, err := (synth.Shape{Header: synth.Header{FirstOffset: 1<<32 - 100_000}, Count: 8 * 65536, MinMembers: 1, MaxMembers: 1, Holes: 0.001, Seed: 1}).Write(old); err != nil {
					t.Fatal(err)
				}
				for _, cut := range []struct {
					file  string
					after int // files of the result
				}{
					{"offsets/0005", 0},
					{"members/0003", 0},
					// the first window on the result is done, and the one on this segment still stands: a map of it faults
					{"offsets/0002", 4},
				} {
					path := filepath.Join(old, "pg_multixact", cut.file)
					whole, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					out := filepath.Join(t.TempDir(), "out")
					_, err = convert.Run(t.Context(), options(old, out, mode, backing, func(files int) {
						if files == cut.after {
							os.Truncate(path, 4096)
						}
					}))
					if err == nil || !strings.Contains(err.Error(), path) {
						t.Errorf("%s cut after %d files: got %v, want an error that names it", cut.file, cut.after, err)
					}
					if fault := errors.Is(err, mmapio.ErrFault); fault != (backing == "map" && cut.after > 0) {
						t.Errorf("%s cut after %d files: got %v; a memory fault: %t", cut.file, cut.after, err, fault)
					}
					wantAbsent(t, out)
					if err := os.WriteFile(path, whole, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// mount mounts a file system for the test. Only root can.
func mount(t *testing.T, source, fstype string, flags uintptr, data string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount(source, dir, fstype, flags, data); err != nil {
		if errors.Is(err, unix.EPERM) {
			t.Skip("mounting takes root, and a container that lets it")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func TestOldClusterOnAReadOnlyMount(t *testing.T) {
	old := cluster(t, 100_000, 3)
	dir := mount(t, filepath.Dir(old), "", unix.MS_BIND, "")
	if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	old = filepath.Join(dir, "old")
	if err := os.WriteFile(filepath.Join(old, "x"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Fatalf("the mount can be written to: %v", err)
	}
	for _, args := range [][]string{{"--io=map"}, {"--io=stage", "--mode=rewrite"}} {
		out := filepath.Join(t.TempDir(), "out")
		if text, err := mxwiden(append([]string{"convert", "-d", old, "-o", out}, args...)...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", args, err, text)
		}
		if text, err := mxwiden("verify", "-d", old, "-D", out).CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", args, err, text)
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	text, err := mxwiden("convert", "-d", old, "-o", out, "--link").CombinedOutput()
	if exitStatus(err) != exitFailed || !strings.Contains(string(text), "use copy-file-range or copy") {
		t.Errorf("--link from a read-only mount: %v: %s", err, text)
	}
	wantAbsent(t, out)
}

// A clone shares the bytes of the old cluster. Where the file system has none, the option is refused, and without it the files
// are copied.
func TestCloneWhereTheFileSystemCan(t *testing.T) {
	image := filepath.Join(t.TempDir(), "image")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 512<<20)); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("mkfs.xfs", "-q", "-m", "reflink=1", image).CombinedOutput(); err != nil {
		needed(t, "making an XFS takes xfsprogs: %v: %s", err, text)
	}
	xfs := t.TempDir()
	if text, err := exec.Command("mount", "-o", "loop", image, xfs).CombinedOutput(); err != nil {
		needed(t, "mounting takes root: %v: %s", err, text)
	}
	t.Cleanup(func() { unix.Unmount(xfs, unix.MNT_DETACH) })
	for dir, cloned := range map[string]bool{xfs: true, mount(t, "tmpfs", "tmpfs", 0, "size=100m"): false} {
		old, out := filepath.Join(dir, "old"), filepath.Join(dir, "out")
		if _, err := (synth.Shape{Count: 500_000, MinMembers: 2, Seed: 1}).Write(old); err != nil {
			t.Fatal(err)
		}
		text, err := mxwiden("convert", "-d", old, "-o", out, "--clone").CombinedOutput()
		if !cloned {
			if exitStatus(err) != exitFailed || !strings.Contains(string(text), "use copy-file-range or copy") {
				t.Errorf("--clone on tmpfs: %v: %s", err, text)
			}
			wantAbsent(t, out)
		} else if err != nil {
			t.Errorf("--clone on XFS: %v: %s", err, text)
		}
		by := map[bool]string{true: "by clone", false: "by copy-file-range"}[cloned]
		if text, err := mxwiden("convert", "-d", old, "-o", out+"2").CombinedOutput(); err != nil || !strings.Contains(string(text), by) {
			t.Errorf("by default, want %s: %v: %s", by, err, text)
		}
		if text, err := mxwiden("verify", "-d", old, "-D", out+"2").CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, text)
		}
	}
}

// needed skips a test for what is missing, or fails it where nothing may be.
func needed(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("MXWIDEN_REQUIRE_PG") == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

func TestFileSystemWithoutRoomIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	old := cluster(t, 500_000, 2)
	out := filepath.Join(mount(t, "tmpfs", "tmpfs", 0, "size=1m"), "out")
	for _, args := range [][]string{{"--mode=widen"}, {"--mode=rewrite"}, {"--mode=widen", "--check"}, {"--mode=rewrite", "--check"}} {
		text, err := mxwiden(append([]string{"convert", "-d", old, "-o", out}, args...)...).CombinedOutput()
		if exitStatus(err) != exitFailed || !strings.HasPrefix(string(text), "mxwiden: no room: the result takes ") ||
			!strings.Contains(string(text), "; free some or choose another") {
			t.Errorf("%v: %v: %s", args, err, text)
		}
		wantAbsent(t, out)
	}
}

// Links take no room, but what can't be linked is copied, and that is known before.
func TestRoomIsCountedForSegmentsThatCannotBeLinked(t *testing.T) {
	dir := mount(t, "tmpfs", "tmpfs", 0, "size=40m")
	old := filepath.Join(dir, "old")
	if _, err := (synth.Shape{Count: 2_000_000, Seed: 1}).Write(old); err != nil { // 18 MB, of which 10 are members; 16 MB are to be written
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(old, "pg_multixact", "members", "*"))
	if err != nil || len(segments) < 30 {
		t.Fatalf("%d segments, %v", len(segments), err)
	}
	for _, mode := range []os.FileMode{0o640, 0o600} {
		for _, path := range segments {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		out := filepath.Join(dir, "out")
		text, err := mxwiden("convert", "-d", old, "-o", out, "--link").CombinedOutput()
		if refused := mode == 0o640; refused != strings.Contains(string(text), "no room: the result takes ") || refused != (exitStatus(err) == exitFailed) {
			t.Errorf("members of mode %04o: %v: %s", mode, err, text)
		}
		if mode == 0o640 {
			wantAbsent(t, out)
		}
	}
}

// fill writes to a file beside out until the file system is full, but for some bytes.
func fill(t *testing.T, path string, leave int64) {
	f, err := os.Create(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(b)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		f.Truncate(max(size-leave, 0))
	}
}

func TestDiskThatFillsUpWhileItIsWrittenTo(t *testing.T) {
	old := cluster(t, 500_000, 3)
	dir := mount(t, "tmpfs", "tmpfs", 0, "size=32m")
	for _, mode := range modes {
		for _, backing := range []string{"map", "stage"} {
			for _, leave := range []int64{0, 100 << 10, 600 << 10, 5 << 20} {
				t.Run(fmt.Sprint(mode, " ", backing, " ", leave), func(t *testing.T) {
					out, big := filepath.Join(dir, "out"), filepath.Join(dir, "big")
					_, err := convert.Run(t.Context(), options(old, out, mode, backing, func(files int) {
						if files == 0 {
							fill(t, big, leave)
						}
					}))
					if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), out) {
						t.Errorf("got %v, want ENOSPC and the file", err)
					}
					if advice(err) == "" {
						t.Error("no word of what to do")
					}
					wantAbsent(t, out)
					if err := os.Remove(big); err != nil {
						t.Fatal(err)
					}
				})
			}
		}
	}
}

// asNobody has a command run as a user whom nothing belongs to.
func asNobody(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	if os.Geteuid() != 0 {
		t.Skip("only root can run a program as somebody else")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = "/"
	return cmd
}

func TestMissingPermissionIsSaid(t *testing.T) {
	dir := postgrestest.TempDir(t)
	old := filepath.Join(dir, "old")
	if _, err := (synth.Shape{Count: 1000, Seed: 1}).Write(old); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("mxwiden")
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "mxwiden") // the one in the path is root's alone
	binary, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	refused := func(name, out, want string) {
		t.Helper()
		cmd := asNobody(t, exec.Command(own, "convert", "-d", old, "-o", out))
		text, err := cmd.CombinedOutput()
		if exitStatus(err) != exitFailed || !strings.Contains(string(text), want) ||
			!strings.HasSuffix(string(text), "permission denied; run as the user that the folder belongs to, or as root\n") {
			t.Errorf("%s: %v: %s", name, err, text)
		}
	}
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o777), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	os.Chmod(old, 0o700)
	refused("old", filepath.Join(open, "out"), old+"/PG_VERSION: ")
	filepath.WalkDir(old, func(path string, entry os.DirEntry, err error) error { return errors.Join(err, os.Chmod(path, 0o755)) })
	segment := filepath.Join(old, "pg_multixact/offsets", slru.Short.Name(0))
	os.Chmod(segment, 0o600)
	refused("a segment", filepath.Join(open, "out"), segment+": ")
	wantAbsent(t, filepath.Join(open, "out"))
	os.Chmod(segment, 0o644)
	keepsTree(t, old)
	refused("out", filepath.Join(dir, "out"), "making the output folder: mkdir "+filepath.Join(dir, "out")+": ")
	wantAbsent(t, filepath.Join(dir, "out"))
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	keepsTree(t, empty)
	refused("an empty out", empty, "mkdir "+empty+"/pg_multixact.partial: ")
}

func TestRealServerIsRefusedWhileItRunsAndAfterItWasKilled(t *testing.T) {
	c := postgrestest.Init(t, "18")
	postgrestest.Start(t, c)
	out := filepath.Join(t.TempDir(), "out")
	refused := func(want string) {
		t.Helper()
		for _, mode := range modes {
			text, err := mxwiden("convert", "-d", c.Dir, "-o", out, "--mode", string(mode)).CombinedOutput()
			if exitStatus(err) != exitFailed || !strings.Contains(string(text), want) {
				t.Errorf("%v: %s, want %q", err, text, want)
			}
		}
		wantAbsent(t, out)
	}
	var postmaster int
	pid, err := os.ReadFile(filepath.Join(c.Dir, "postmaster.pid"))
	if _, scanErr := fmt.Sscan(string(pid), &postmaster); err != nil || scanErr != nil {
		t.Fatal(err, scanErr)
	}
	sockets, err := c.Query("SHOW unix_socket_directories")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(sockets[0][0])
	refused(fmt.Sprintf("process %d of %s/postmaster.pid lives: stop it first", postmaster, c.Dir))

	// kill -9, as the out-of-memory killer does it: postmaster.pid stays
	if err := unix.Kill(postmaster, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for unix.Kill(postmaster, 0) == nil {
		time.Sleep(10 * time.Millisecond)
	}
	before, err := readTree(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	refused(`cluster is not shut down cleanly: its state is "in production"; start the server and stop it again (pg_ctl stop -m fast)`)
	if after, err := readTree(c.Dir); err != nil || after != before {
		t.Errorf("the cluster has changed: %v: it was\n%sand is\n%s", err, before, after)
	}

	// what the message says to do helps
	postgrestest.Start(t, c)
	postgrestest.Stop(t, c)
	if text, err := mxwiden("convert", "-d", c.Dir, "-o", out).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}
