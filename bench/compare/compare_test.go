package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mxwiden/mxwiden/bench/postgres/postgrestest"
	"github.com/mxwiden/mxwiden/bench/synth"
)

// Everybody runs once a round, the results of rewrite and of pg_upgrade are the same, and nothing is left.
func TestCompare(t *testing.T) {
	postgrestest.Require(t, "18")
	postgrestest.Require(t, "19")
	dir := postgrestest.TempDir(t)
	o := options{
		shape: synth.Shape{Header: synth.Header{Version: "18"}, Count: 50_000, MinMembers: 1, MaxMembers: 3, Updaters: 0.3, Holes: 0.01},
		dir:   dir, rounds: 2, jobs: 2, modes: []string{"rewrite", "widen"}, io: []string{"stage", "map"},
		csv: filepath.Join(t.TempDir(), "times.csv"), asJSON: filepath.Join(t.TempDir(), "table.json"),
	}
	if err := compare(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var rows []row
	if text, err := os.ReadFile(o.asJSON); err != nil {
		t.Fatal(err)
	} else if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	const contestants = 2*(2+2) + 1
	if len(rows) != contestants {
		t.Errorf("%d rows, want %d: %+v", len(rows), contestants, rows)
	}
	for _, r := range rows {
		if r.Bytes == 0 || r.Median <= 0 || r.Min > r.Median || r.Median > r.Max {
			t.Errorf("a row that can't be: %+v", r)
		}
	}
	f, err := os.Open(o.csv)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if records, err := csv.NewReader(f).ReadAll(); err != nil || len(records) != 1+o.rounds*contestants {
		t.Errorf("%d records of CSV, want a head and %d: %v", len(records), o.rounds*contestants, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestMediansAndRatios(t *testing.T) {
	a, b := []time.Duration{4 * time.Second, 9 * time.Second, 2 * time.Second}, []time.Duration{2 * time.Second, 3 * time.Second, time.Second}
	if got := median(ratios(a, nil)); got != 4 {
		t.Errorf("median %v, want 4", got)
	}
	if got := median(ratios(a, b)); got != 2 {
		t.Errorf("median of the ratios by pairs %v, want 2", got)
	}
	if got := median([]float64{1, 2, 4, 8}); got != 3 {
		t.Errorf("median of four %v, want 3", got)
	}
}
