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
	stage := mmapio.Choice{Read: mmapio.Stage, Write: mmapio.Stage}
	const fileBytes = 32 << 10
	dir := t.TempDir()
	c, err := mmapio.Choose(folder{}, 0, 10, fileBytes, dir, private)
	if err != nil || c.Read != mmapio.Stage || c.ReadStage != 0 || c.ReadMap != 0 {
		t.Errorf("without files: %+v, %v", c, err)
	}
	if c, err = mmapio.Choose(folder{}, 0, 0, fileBytes, filepath.Join(dir, "none"), private); !errors.Is(err, fs.ErrNotExist) || c != stage {
		t.Errorf("without a folder: %+v, %v", c, err)
	}
	listed := folder{dir, map[int64]int64{0: fileBytes}}
	if c, err = mmapio.Choose(listed, 0, 1, fileBytes, dir, private); !names(err, listed.path(0)) || c.Read != mmapio.Stage || c.WriteStage <= 0 {
		t.Errorf("with a file that is not there: %+v, %v", c, err)
	}
	files, _ := fill(t, 5000, 5000)
	if c, err = mmapio.Choose(files, 0, 1, 5000, dir, private); err == nil || c.ReadStage <= 0 || c.ReadMap != 0 || c.Read != mmapio.Stage {
		t.Errorf("with files that cannot be mapped: %+v, %v", c, err)
	}
}
