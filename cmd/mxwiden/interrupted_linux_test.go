package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// caught starts a long conversion and stops it (SIGSTOP) while it builds the result.
func caught(t *testing.T, old, out string, args ...string) (cmd *exec.Cmd, stderr *bytes.Buffer) {
	t.Helper()
	for range 10 {
		cmd, stderr = mxwiden(append([]string{"convert", "-d", old, "-o", out, "-j", "1"}, args...)...), new(bytes.Buffer)
		cmd.Stderr = stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { // a wait that does not reap: WaitID with WNOWAIT
			ended <- unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		}()
		partial := filepath.Join(out, "pg_multixact.partial", "offsets", "0000")
		for done := false; !done; {
			if _, err := os.Stat(partial); err == nil {
				cmd.Process.Signal(unix.SIGSTOP)
				<-ended
				if _, err := os.Stat(partial); err == nil {
					return cmd, stderr
				}
				cmd.Process.Signal(unix.SIGCONT)
				done = true
				break
			}
			select {
			case <-ended:
				done = true
			default:
				time.Sleep(100 * time.Microsecond)
			}
		}
		cmd.Wait() // it was faster: again
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("no conversion could be caught while it builds its result")
	return nil, nil
}

func TestSignalsLeaveTheOutputAsItWas(t *testing.T) {
	old := cluster(t, 1_000_000, 2)
	for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGTERM} {
		for _, mode := range modes {
			t.Run(fmt.Sprint(unix.SignalName(sig), " ", mode), func(t *testing.T) {
				out := filepath.Join(t.TempDir(), "a", "out")
				cmd, stderr := caught(t, old, out, "--mode", string(mode))
				cmd.Process.Signal(sig)
				cmd.Process.Signal(unix.SIGCONT)
				if got := exitStatus(cmd.Wait()); got != exitFailed {
					t.Errorf("exit status %d, want %d", got, exitFailed)
				}
				if want := "stopped before the end, and what was written is removed: "; !strings.Contains(stderr.String(), want) {
					t.Errorf("stderr is %q, want %q in it", stderr, want)
				}
				wantAbsent(t, filepath.Dir(out))
			})
		}
	}
}

func TestKilledRunLeavesOnlyThePartialFolderAndTheNextSucceeds(t *testing.T) {
	old := cluster(t, 1_000_000, 2)
	out := filepath.Join(t.TempDir(), "out")
	cmd, _ := caught(t, old, out)
	cmd.Process.Kill()
	cmd.Wait()
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 1 || entries[0].Name() != "pg_multixact.partial" {
		t.Fatalf("left in the output folder: %v, %v", entries, err)
	}
	for _, command := range []*exec.Cmd{mxwiden("convert", "-d", old, "-o", out), mxwiden("verify", "-d", old, "-D", out)} {
		if text, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
}

func TestSecondRunOnTheSameOutputIsRefused(t *testing.T) {
	old := cluster(t, 1_000_000, 2)
	out := filepath.Join(t.TempDir(), "out")
	first, stderr := caught(t, old, out)
	text, err := mxwiden("convert", "-d", old, "-o", out).CombinedOutput()
	if exitStatus(err) != exitFailed || !strings.Contains(string(text), "locking "+out+": another mxwiden is working on it: wait until it ends") {
		t.Errorf("the second run: %v: %s", err, text)
	}
	first.Process.Signal(unix.SIGCONT)
	if err := first.Wait(); err != nil {
		t.Errorf("the first run: %v: %s", err, stderr)
	}
	if text, err := mxwiden("verify", "-d", old, "-D", out).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}

func TestVerifyEndsOnAnInterrupt(t *testing.T) {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT)
	defer stop()
	old := cluster(t, 1000, 2)
	out := filepath.Join(t.TempDir(), "out")
	if text, err := mxwiden("convert", "-d", old, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	unix.Kill(os.Getpid(), unix.SIGINT)
	<-ctx.Done()
	cmd := newCommand()
	cmd.SetArgs([]string{"verify", "-d", old, "-D", out})
	cmd.SetOut(io.Discard)
	if err := cmd.ExecuteContext(ctx); err == nil || !strings.Contains(err.Error(), "stopped at multi 1: interrupt") {
		t.Errorf("got %v", err)
	}
}
