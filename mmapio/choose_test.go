package mmapio_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/mxwiden/mxwiden/mmapio"
)

func TestChooseMeasuresBothBackings(t *testing.T) {
	for _, fileBytes := range []int64{32 << 10, 256 << 10, 1 << 20} {
		files, _ := fill(t, fileBytes, fileBytes, -1, fileBytes, 5000, fileBytes)
		dir := t.TempDir()
		c, err := mmapio.Choose(files, 0, 5, fileBytes, dir, private)
		if err != nil {
			t.Fatal(err)
		}
		if c.ReadStage <= 0 || c.ReadMap <= 0 || c.WriteStage <= 0 || c.WriteMap <= 0 {
			t.Errorf("something was not measured: %+v", c)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%v are left, %v", left, err)
		}
	}
}

func TestChooseWithoutAnythingToMeasureIsStage(t *testing.T) {
	const fileBytes = 32 << 10
	dir := t.TempDir()
	one, _ := fill(t, 5000, 5000)
	for _, c := range []struct {
		what      string
		files     folder
		fileBytes int64
		stage     bool // is measured
	}{
		{"no files", folder{}, fileBytes, false},
		{"a file that is listed and not there", folder{dir, map[int64]int64{0: fileBytes}}, fileBytes, false},
		{"files that cannot be mapped", one, 5000, true},
	} {
		got, err := mmapio.Choose(c.files, 0, 1, c.fileBytes, dir, private)
		if err != nil || got.Read != mmapio.Stage || got.ReadMap != 0 || got.ReadStage > 0 != c.stage || got.WriteStage <= 0 {
			t.Errorf("%s: %+v, %v", c.what, got, err)
		}
	}
	got, err := mmapio.Choose(folder{}, 0, 0, fileBytes, filepath.Join(dir, "none"), private)
	if !errors.Is(err, fs.ErrNotExist) || got != (mmapio.Choice{}) {
		t.Errorf("no folder to write to: %+v, %v", got, err)
	}
}
