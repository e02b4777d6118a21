package pgdata_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/bench/postgres/postgrestest"
	"github.com/mxwiden/mxwiden/mmapio"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
)

// consume makes a few hundred multis, so that the counters differ from each other and from those of a fresh cluster.
const consume = `CREATE TABLE t (i int PRIMARY KEY);
INSERT INTO t SELECT generate_series(1, 300);
DO $$ BEGIN
	FOR n IN 1..300 LOOP
		PERFORM FROM t WHERE i = n FOR KEY SHARE;
		BEGIN
			PERFORM FROM t WHERE i = n FOR SHARE;
		EXCEPTION WHEN division_by_zero THEN
		END;
	END LOOP;
END $$`

// says is what a running server says of its pg_control, in the order of values.
const says = `SELECT pg_control_version, catalog_version_no, system_identifier, checkpoint_%[1]s, redo_%[1]s, timeline_id, next_xid, next_oid,
	next_multixact_id, next_multi_offset, oldest_xid, oldest_xid_dbid, oldest_multi_xid, oldest_multi_dbid, database_block_size,
	current_setting('max_connections'), current_setting('max_worker_processes'), %[2]s,
	current_setting('max_prepared_transactions'), current_setting('max_locks_per_transaction')
FROM pg_control_system(), pg_control_checkpoint(), pg_control_init()`

func values(c pgdata.Control) string {
	lsn := func(p uint64) string { return fmt.Sprintf("%X/%X", p>>32, uint32(p)) }
	return fmt.Sprint([]string{fmt.Sprint(c.ControlVersion, c.CatalogVersion, c.SystemID), lsn(c.Checkpoint), lsn(c.Redo),
		fmt.Sprint(c.TimeLine), fmt.Sprintf("%d:%d", c.NextXID>>32, uint32(c.NextXID)),
		fmt.Sprint(c.NextOID, c.NextMulti, c.NextOffset, c.OldestXID, c.OldestXIDDB, c.OldestMulti, c.OldestMultiDB, c.BlockSize,
			c.MaxConnections, c.MaxWorkerProcesses, c.MaxWALSenders, c.MaxPreparedXacts, c.MaxLocksPerXact)})
}

func TestControlOfRealServers(t *testing.T) {
	for major := 10; major <= 19; major++ {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			c := postgrestest.Init(t, fmt.Sprint(major))
			postgrestest.Start(t, c, "max_connections=23", "max_worker_processes=3", "max_wal_senders=4", "max_prepared_transactions=7", "max_locks_per_transaction=77")
			if err := c.Exec(consume); err != nil {
				t.Fatal(err)
			}
			if err := c.Exec("CHECKPOINT"); err != nil {
				t.Fatal(err)
			}
			senders := "current_setting('max_wal_senders')"
			if major < 12 {
				senders = "0" // not in pg_control then
			}
			rows, err := c.Query(fmt.Sprintf(says, "lsn", senders))
			if err != nil {
				t.Fatal(err)
			}
			d, err := pgdata.Open(c.Dir)
			if err != nil {
				t.Fatal(err)
			}
			row := slices.Clone(rows[0])
			for _, i := range []int{3, 4} { // 19 pads the low half of an LSN
				high, low, _ := strings.Cut(row[i], "/")
				row[i] = high + "/" + strings.TrimLeft(low, "0")
			}
			if got, want := values(d.Control), fmt.Sprint(row); got != want {
				t.Errorf("pg_control: %s\nserver:     %s", got, want)
			}
			if d.Version != c.Major || d.Control.Counters().NextMulti < 300 {
				t.Errorf("version %s, %v", d.Version, d.Control.Counters())
			}
			if err := d.CheckStopped(); !errors.Is(err, pgdata.ErrRunning) {
				t.Errorf("a running server: %v", err)
			}
			if slices.Contains([]string{"13", "19"}, c.Major) { // it costs a second each
				if err := c.Kill(); err != nil {
					t.Fatal(err)
				}
				if err := d.CheckStopped(); !errors.Is(err, pgdata.ErrNotShutDown) || !strings.Contains(err.Error(), "in production") {
					t.Errorf("a crashed server: %v", err)
				}
				return
			}
			postgrestest.Stop(t, c)
			if err := d.CheckStopped(pgdata.ShutDown); err != nil {
				t.Errorf("a stopped server: %v", err)
			}
			if c.Has("pg_controldata") {
				compareWithControldata(t, c, d.Control)
			}
		})
	}
}

// compareWithControldata compares with the program that ought to know, on a real file and on one by Encode.
func compareWithControldata(t *testing.T, c *postgres.Cluster, control pgdata.Control) {
	t.Helper()
	synthetic := filepath.Join(postgrestest.TempDir(t), "synthetic")
	if err := os.MkdirAll(filepath.Join(synthetic, "global"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(synthetic, "global", "pg_control"), control.Encode(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{c.Dir, synthetic} {
		out, err := c.Command(context.Background(), "pg_controldata", dir).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		said := map[string]string{}
		for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ":")
			said[name] = strings.TrimSpace(value)
		}
		for name, want := range map[string]any{
			"pg_control version number":            control.ControlVersion,
			"Catalog version number":               control.CatalogVersion,
			"Database system identifier":           control.SystemID,
			"Database cluster state":               control.State,
			"Latest checkpoint's NextMultiXactId":  control.NextMulti,
			"Latest checkpoint's NextMultiOffset":  control.NextOffset,
			"Latest checkpoint's oldestMultiXid":   control.OldestMulti,
			"Latest checkpoint's oldestMulti's DB": control.OldestMultiDB,
			"Latest checkpoint's NextXID":          fmt.Sprintf("%d:%d", control.NextXID>>32, uint32(control.NextXID)),
			"max_connections setting":              control.MaxConnections,
			"max_locks_per_xact setting":           control.MaxLocksPerXact,
			"Database block size":                  control.BlockSize,
			"Size of a large-object chunk":         2048,
			"Maximum size of a TOAST chunk":        1996,
		} {
			if said[name] != fmt.Sprint(want) {
				t.Errorf("%s: pg_controldata says %s %q, want %q", dir, name, said[name], fmt.Sprint(want))
			}
		}
		if strings.Contains(string(out), "WARNING") {
			t.Errorf("%s: pg_controldata warns:\n%s", dir, out)
		}
	}
}

func TestLogicalSlotsAndGroupAccess(t *testing.T) {
	for _, major := range []string{"12", "19"} {
		c := postgrestest.Init(t, major, "--allow-group-access")
		postgrestest.Start(t, c, "wal_level=logical")
		d, err := pgdata.Open(c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if d.Perm.File != 0o640 || d.Perm.Dir != 0o750 {
			t.Errorf("%s: %+v", major, d.Perm)
		}
		if slots, err := d.LogicalSlots(); err != nil || len(slots) != 0 {
			t.Errorf("%s, without slots: %q, %v", major, slots, err)
		}
		for _, sql := range []string{
			"SELECT pg_create_physical_replication_slot('standby', true)",
			"SELECT pg_create_logical_replication_slot('subscriber', 'pgoutput')",
			"SELECT pg_create_logical_replication_slot('archive', 'pgoutput')",
		} {
			if err := c.Exec(sql); err != nil {
				t.Fatal(err)
			}
		}
		if slots, err := d.LogicalSlots(); err != nil || !slices.Equal(slots, []string{"archive", "subscriber"}) {
			t.Errorf("%s: %q, %v", major, slots, err)
		}
		if err := os.WriteFile(filepath.Join(c.Dir, "pg_replslot", "archive", "state"), []byte("short"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := d.LogicalSlots(); err == nil || !strings.Contains(err.Error(), filepath.Join("archive", "state")) {
			t.Errorf("%s, a damaged slot: %v", major, err)
		}
	}
}

// What Swap and Recover rely on: a server that comes up while pg_multixact is aside, as 19 does on a fresh cluster, moves no
// counters and takes no harm.
func TestServerWithoutMultixact(t *testing.T) {
	c := postgrestest.Init(t, "19")
	folder := filepath.Join(c.Dir, "pg_multixact")
	if err := os.Rename(folder, folder+".aside"); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err == nil {
		if err := c.Exec("CHECKPOINT"); err == nil {
			t.Error("it writes a checkpoint")
		}
		if err := c.Exec(consume); err == nil {
			t.Error("it makes multis")
		}
		if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	d, err := pgdata.Open(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := d.Control.Counters(), (pgdata.Counters{NextMulti: 1, OldestMulti: 1, NextOffset: 1}); got != want {
		t.Errorf("afterwards pg_control says %v, want %v", got, want)
	}
	if err := os.Rename(folder+".aside", folder); err != nil {
		t.Fatal(err)
	}
	postgrestest.Start(t, c)
	if err := c.Exec(consume); err != nil {
		t.Error(err)
	}
	postgrestest.Stop(t, c)
}

// The same swap as in TestSwap, but by the real pg_resetwal, and with a server that has to like what it finds.
func TestSwapWithPgResetwal(t *testing.T) {
	c := postgrestest.Init(t, "19")
	if !c.Has("pg_resetwal") {
		t.Skip("no pg_resetwal in " + c.Bin)
	}
	d, err := pgdata.Open(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	// An empty range that ends at the begin of an offsets segment needs no more than that page and its members' page.
	after := pgdata.Counters{NextMulti: 32768, OldestMulti: 32768, NextOffset: 1636 * 32}
	for _, name := range []string{"offsets/0001", "members/000000000000001"} {
		file := filepath.Join(d.BuildPath(), name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, make([]byte, 8192), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := postgres.Own(c.Dir); err != nil {
		t.Fatal(err)
	}
	if err := d.ProbeSwap(); err != nil {
		t.Fatal(err)
	}
	err = d.Swap(pgdata.Journal{After: after}, func() error {
		out, err := c.Command(context.Background(), "pg_resetwal", "-D", c.Dir, "-O", fmt.Sprint(after.NextOffset),
			"-m", fmt.Sprintf("%d,%d", after.NextMulti, after.OldestMulti)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}, mmapio.Fsync)
	if err != nil {
		t.Fatal(err)
	}
	postgrestest.Start(t, c)
	if err := c.Exec(consume); err != nil {
		t.Fatal(err)
	}
	if _, next, offset, err := c.Counters(); err != nil || next < after.NextMulti+300 || offset < after.NextOffset+600 {
		t.Errorf("after 300 multis: next multi %d, next offset %d, %v", next, offset, err)
	}
	postgrestest.Stop(t, c)
}
