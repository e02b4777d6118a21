package postgres_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/bench/postgres/postgrestest"
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

func TestServer(t *testing.T) {
	for _, major := range majors {
		t.Run(major, func(t *testing.T) {
			c := postgrestest.Init(t, major)
			postgrestest.Start(t, c)
			rows, err := c.Query("SELECT current_setting('server_version_num')::int / 10000, NULL; SELECT 1 + 1, NULL")
			if err != nil || !slices.Equal(rows[0], []string{"2", ""}) {
				t.Errorf("got %v, %v", rows, err)
			}
			oldest, next, nextOffset, err := c.Counters()
			if err != nil || oldest != 1 || next != 1 || nextOffset > 1 {
				t.Errorf("got oldest %d, next %d, offset %d, %v", oldest, next, nextOffset, err)
			}
			_, err = c.Multis(t.Context(), slices.Values([]uint32{1, 2}))
			if err != nil {
				t.Error(err)
			}
			postgrestest.Stop(t, c)
		})
	}
}
