package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// A Cluster is a data directory and the installation that serves it. Its methods are for one goroutine at a time, but
// connections are independent.
type Cluster struct {
	Install
	Dir string // the data directory, absolute

	sockets string // while it runs: a folder with a short name, since a socket's path is limited to some 100 bytes
}

// Command is a program of the installation, to be run as the server's user in the data directory. LC_ALL is C, and no PG*
// variable of the caller's reaches it.
func (c *Cluster) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Bin, program), args...)
	cmd.Dir = c.Dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PG") }), "LC_ALL=C")
	cred, err := credential()
	if err != nil {
		cmd.Err = err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	return cmd
}

// Log is the server's log file, beside the data directory.
func (c *Cluster) Log() string { return c.Dir + ".log" }

// Start starts the server and waits until it serves. Options are settings ("max_prepared_transactions=5") that go before the
// defaults of this package: no autovacuum, which would freeze multis away, no fsync, and one private socket, no port. The
// error ends with the end of the log.
func (c *Cluster) Start(options ...string) error {
	sockets, err := os.MkdirTemp("/tmp", "mxpg")
	if err != nil {
		return fmt.Errorf("making a folder for sockets: %w", err)
	}
	c.sockets = sockets
	log, err := os.OpenFile(c.Log(), os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("making a log file: %w", err)
	}
	log.Close()
	if err := errors.Join(Own(sockets), Own(c.Log())); err != nil {
		return err
	}
	var quoted strings.Builder // pg_ctl hands it to a shell
	settings := []string{"autovacuum=off", "fsync=off", "listen_addresses=", "unix_socket_directories=" + sockets, "port=5432"}
	for _, o := range append(settings, options...) {
		fmt.Fprintf(&quoted, " -c '%s'", strings.ReplaceAll(o, "'", `'\''`))
	}
	start := c.Command(context.Background(), "pg_ctl", "start", "-w", "-D", c.Dir, "-l", c.Log(), "-o", quoted.String())
	if err := run(start); err != nil {
		text, _ := os.ReadFile(c.Log())
		return errors.Join(fmt.Errorf("starting version %s in %s: %w\n%s", c.Major, c.Dir, err, tail(text)), c.forget())
	}
	return nil
}

// Running reports whether Start has started the server and nothing has stopped it since.
func (c *Cluster) Running() bool { return c.sockets != "" }

// Stop ends sessions, writes a checkpoint, and ends the server: afterwards the state in pg_control is "shut down".
func (c *Cluster) Stop() error { return c.stop("fast") }

// Kill ends the server at once, as a crash would: it will recover when it starts again.
func (c *Cluster) Kill() error { return c.stop("immediate") }

func (c *Cluster) stop(mode string) error {
	if err := run(c.Command(context.Background(), "pg_ctl", "stop", "-w", "-m", mode, "-D", c.Dir)); err != nil {
		return fmt.Errorf("stopping version %s in %s: %w", c.Major, c.Dir, err)
	}
	return c.forget()
}

func (c *Cluster) forget() error {
	sockets := c.sockets
	c.sockets = ""
	return os.RemoveAll(sockets)
}

// Connect opens a session as the superuser. The server must run.
func (c *Cluster) Connect(ctx context.Context, db string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, fmt.Sprintf("host=%s port=5432 user=postgres dbname=%s sslmode=disable", c.sockets, db))
}

// Exec runs statements, separated by semicolons, in the database postgres: one transaction unless they say otherwise.
func (c *Cluster) Exec(sql string) error {
	_, err := c.Query(sql)
	return err
}

// Query is Exec with the rows of the last statement, as PostgreSQL writes them; a null is "".
func (c *Cluster) Query(sql string) ([][]string, error) {
	ctx := context.Background()
	conn, err := c.Connect(ctx, "postgres")
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil || len(results) == 0 {
		return nil, err
	}
	var rows [][]string
	for _, values := range results[len(results)-1].Rows {
		row := make([]string, len(values))
		for i, v := range values {
			row[i] = string(v)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Single runs one statement in the single-user mode of a server that does not run: no connection is refused there, whatever
// the databases say.
func (c *Cluster) Single(db, sql string) error {
	cmd := c.Command(context.Background(), "postgres", "--single", "-D", c.Dir, db)
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(sql, "\n", " ") + "\n")
	out, err := cmd.CombinedOutput()
	if err == nil && (strings.Contains(string(out), "ERROR:") || strings.Contains(string(out), "FATAL:")) {
		err = errors.New("it reported an error") // and still exits with 0
	}
	if err != nil {
		return fmt.Errorf("running %q in single-user mode: %w\n%s", sql, err, tail(out))
	}
	return nil
}
