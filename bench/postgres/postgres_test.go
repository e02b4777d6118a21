package postgres_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/bench/postgres/postgrestest"
	"github.com/mxwiden/mxwiden/kernels/multixact"
)

// majors are the versions that the project converts from a running server, and the one it converts to.
var majors = []string{"10", "11", "12", "13", "14", "15", "16", "17", "18", "19"}

func TestAbsent(t *testing.T) {
	t.Setenv(postgres.Env, t.TempDir())
	_, err := postgres.Find("18")
	if !errors.Is(err, postgres.ErrAbsent) || !strings.Contains(err.Error(), postgres.Env) {
		t.Errorf("got %v, want ErrAbsent and what to set", err)
	}
}

func TestErrorsTellWhatTheServerSaid(t *testing.T) {
	c := postgrestest.Init(t, "18")
	if err := c.Start("shared_buffers=none"); err == nil || !strings.Contains(err.Error(), "shared_buffers") {
		t.Errorf("starting with a wrong setting: got %v", err)
	}
	if c.Running() {
		t.Error("a server that did not start is said to run")
	}
	if err := c.Single("postgres", "SELECT 1/0"); err == nil || !strings.Contains(err.Error(), "division by zero") {
		t.Errorf("a failing statement in single-user mode: got %v", err)
	}
}

// A workload leaves what it is for on every version: multis of several members, with every mode of the server and with
// updaters of both outcomes, and rows that refer to them. It is there after a crash and after a shutdown.
func TestConsume(t *testing.T) {
	for _, major := range majors {
		t.Run(major, func(t *testing.T) {
			c := postgrestest.Init(t, major)
			postgrestest.Start(t, c)
			if err := postgres.Consume(t.Context(), c, 60); err != nil {
				t.Fatal(err)
			}
			if err := c.Kill(); err != nil {
				t.Fatal(err)
			}
			postgrestest.Start(t, c)
			before, rows := read(t, c)
			postgrestest.Stop(t, c)
			postgrestest.Start(t, c)
			after, again := read(t, c)
			if !reflect.DeepEqual(before, after) || !reflect.DeepEqual(rows, again) {
				t.Error("multis or rows differ after a restart")
			}
			if len(before) < 60 {
				t.Errorf("made %d multis, want 60 at least", len(before))
			}
			modes := map[string]int{}
			for multi, m := range before {
				if m.Err != nil {
					t.Errorf("multi %d: %v", multi, m.Err)
				}
				for _, member := range m.Members {
					modes[member.Mode]++
				}
			}
			for status := range multixact.Status(6) {
				if status != multixact.ForNoKeyUpdate && modes[status.String()] == 0 {
					t.Errorf("no member of mode %v", status)
				}
			}
			if n := referring(t, rows, before); n < 30 {
				t.Errorf("%d of %d rows refer to a multi, want 30 at least", n, len(rows))
			}
			if err := postgres.Consume(t.Context(), c, 1); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

func TestMultisKeepsErrors(t *testing.T) {
	c := postgrestest.Init(t, "18")
	postgrestest.Start(t, c)
	multis, err := c.Multis(t.Context(), slices.Values([]uint32{7}))
	if err != nil || multis[7].Err == nil || !strings.Contains(multis[7].Err.Error(), "7") {
		t.Errorf("got %v, %v for a multi that was never made", multis, err)
	}
}

// read is every multi of the live range and the rows of the workload.
func read(t *testing.T, c *postgres.Cluster) (map[uint32]postgres.Multi, [][]string) {
	t.Helper()
	oldest, next, _, err := c.Counters()
	if err != nil {
		t.Fatal(err)
	}
	multis, err := c.Multis(context.Background(), multixact.OldRange(oldest, next, 1).All())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := postgres.Rows(c)
	if err != nil {
		t.Fatal(err)
	}
	return multis, rows
}

// referring is the number of rows whose xmax is one of the multis.
func referring(t *testing.T, rows [][]string, multis map[uint32]postgres.Multi) (n int) {
	t.Helper()
	for _, row := range rows {
		xmax, err := strconv.ParseUint(row[3], 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := multis[uint32(xmax)]; ok {
			n++
		}
	}
	return n
}
