// Mxwiden converts the pg_multixact of a PostgreSQL cluster of version 9.3 to 18 to the format of version 19, offline.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mxwiden/mxwiden/kernels"
)

// version is set when a release is built: -ldflags "-X main.version=…".
var version = "devel"

// Exit statuses.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitFindings = 3
)

// errFindings ends a command that did its work and found something: it has been printed.
var errFindings = errors.New("findings")

// A usageError is a command line that can't be carried out as it is.
type usageError struct{ error }

func main() { os.Exit(run()) }

// run is main without the exit, for the tests of the command line.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := newCommand().ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errFindings):
		return exitFindings
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "mxwiden: %v\nTry \"mxwiden --help\".\n", err)
		return exitUsage
	}
	fmt.Fprintf(os.Stderr, "mxwiden: %v%s\n", err, advice(err))
	return exitFailed
}

// advice is what to do about errors of the system, which do not say so themselves.
func advice(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "; make room there, or choose another place"
	case errors.Is(err, fs.ErrPermission):
		return "; run as the user that the folder belongs to, or as root"
	}
	return ""
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "mxwiden",
		Short: "Convert pg_multixact to the 64-bit offsets of PostgreSQL 19, offline",
		Long: `mxwiden converts the pg_multixact of a stopped PostgreSQL cluster of version 9.3 to 18
to the format of version 19. The old cluster is only ever read.

Exit status: 0 done (warnings are on stderr); 1 failed; 2 usage; 3 findings.`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q", args[0])}
			}
			return nil
		},
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if err := kernels.Override(); err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newConvertCommand(), newVerifyCommand(), newDemoCommand())
	for _, c := range root.Commands() {
		c.Args = func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unexpected argument %q", args[0])}
			}
			return nil
		}
	}
	return root
}

// orEnv is the value of a flag, or of an environment variable where the flag is not given.
func orEnv(value, name string) string {
	if value == "" {
		return os.Getenv(name)
	}
	return value
}
