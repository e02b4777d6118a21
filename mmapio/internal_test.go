package mmapio

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A file that is cut while it is copied ends before the size it began with.
func TestCopyingAFileThatIsCutIsAnError(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	if err := os.WriteFile(src, make([]byte, 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	from, err := open(src)
	if err != nil {
		t.Fatal(err)
	}
	defer from.close()
	for name, copy := range map[string]func(f, from file, size int64) error{"bytes": file.copyBytes, "range": file.copyWhole} {
		to, err := create(filepath.Join(dir, name), Perm{File: 0o600, UID: -1, GID: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer to.close()
		if err := copy(to, from, 10_000); err != nil && !unsupported(err) {
			t.Errorf("%s: %v", name, err)
		}
		if err := copy(to, from, 10_001); !errors.Is(err, io.ErrUnexpectedEOF) && !unsupported(err) {
			t.Errorf("%s of a byte more than there is: %v", name, err)
		}
	}
}

func TestFilesAreReadByDescriptorsThatCannotWrite(t *testing.T) {
	f, err := open(filepath.Join(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if flags, err := unix.FcntlInt(uintptr(f.fd), unix.F_GETFL, 0); err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY {
		t.Errorf("flags are %#x, %v", flags, err)
	}
	if flags, err := unix.FcntlInt(uintptr(f.fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("descriptor flags are %#x, %v", flags, err)
	}
}

// fake is a trial that always takes the same.
type fake struct {
	took time.Duration
	err  error
	runs *int
}

func (f fake) run() (int64, time.Duration, error) { *f.runs++; return 1000, f.took, f.err }
func (f fake) Close() error                       { return nil }

func TestCompareChoosesWhatIsClearlyFaster(t *testing.T) {
	failure := errors.New("failure")
	for _, c := range []struct {
		what          string
		stage, mapped fake
		want          Backing
		rates         [2]float64
		opened        error
	}{
		{"map", fake{took: 1000}, fake{took: 500}, Map, [2]float64{1, 2}, nil},
		{"stage", fake{took: 500}, fake{took: 1000}, Stage, [2]float64{2, 1}, nil},
		{"about the same", fake{took: 1000}, fake{took: 950}, Stage, [2]float64{1, 1000. / 950}, nil},
		{"map fails", fake{took: 1000}, fake{err: failure}, Stage, [2]float64{1, 0}, nil},
		{"stage fails", fake{err: failure}, fake{took: 1000}, Map, [2]float64{0, 1}, nil},
		{"both fail", fake{err: failure}, fake{err: failure}, Stage, [2]float64{0, 0}, nil},
		{"neither opens", fake{}, fake{}, Stage, [2]float64{0, 0}, failure},
	} {
		t.Run(c.what, func(t *testing.T) {
			runs := 0
			got, stage, mapped := compare(time.Hour, func(b Backing) (trial, error) {
				f := []fake{c.stage, c.mapped}[b]
				f.runs = &runs
				return f, c.opened
			})
			if got != c.want || [2]float64{stage, mapped} != c.rates {
				t.Errorf("got %s, %v and %v GB/s", got, stage, mapped)
			}
			if runs > 12 {
				t.Errorf("%d runs", runs)
			}
		})
	}
	runs := 0
	compare(0, func(Backing) (trial, error) { return fake{took: 1, runs: &runs}, nil })
	if runs != 4 {
		t.Errorf("%d runs where there is no time, want one of each to warm up and one to measure", runs)
	}
}

// disturbed is a trial that takes longer in its last two of six rounds.
type disturbed struct {
	took, last time.Duration
	runs       int
}

func (d *disturbed) run() (int64, time.Duration, error) {
	if d.runs++; d.runs > 4 {
		return 1000, d.last, nil
	}
	return 1000, d.took, nil
}

func (d *disturbed) Close() error { return nil }

func TestCompareIsNotMisledByDisturbedRounds(t *testing.T) {
	for _, c := range []struct {
		stage, mapped disturbed
		want          Backing
	}{
		{disturbed{took: 1000, last: 9000}, disturbed{took: 1000, last: 1000}, Stage},
		{disturbed{took: 1000, last: 1000}, disturbed{took: 500, last: 9000}, Map},
		{disturbed{took: 1000, last: 9000}, disturbed{took: 500, last: 8900}, Map},
	} {
		got, _, _ := compare(time.Hour, func(b Backing) (trial, error) { return []trial{&c.stage, &c.mapped}[b], nil })
		if got != c.want {
			t.Errorf("stage takes %d, then %d, map %d, then %d: got %s", c.stage.took, c.stage.last, c.mapped.took, c.mapped.last, got)
		}
	}
}

// Callers remove by this name what a run that died has left.
func TestWriteFileAtomicWritesBesideItsPlace(t *testing.T) {
	dir := t.TempDir()
	beside, err := createBeside(filepath.Join(dir, "journal.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	if found, err := filepath.Glob(filepath.Join(dir, ".journal.json.*")); err != nil || len(found) != 1 || found[0] != beside.Name() {
		t.Errorf("%s is not found by its name: %v, %v", beside.Name(), found, err)
	}
}
