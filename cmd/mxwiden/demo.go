package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/mxwiden/mxwiden/bench/synth"
	"github.com/mxwiden/mxwiden/cmd/internal/audit"
	"github.com/mxwiden/mxwiden/cmd/internal/convert"
	"github.com/mxwiden/mxwiden/kernels"
	"github.com/mxwiden/mxwiden/mmapio"
)

func newDemoCommand() *cobra.Command {
	var keep bool
	var multis uint32
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Make a cluster in a temporary folder, convert it both ways, and verify the results",
		Long: `Make a data directory of PostgreSQL 18 in a temporary folder, with holes, updaters and both wraps in its multixacts,
convert it in both modes, compare every multi with the results, and say what happened. It needs no PostgreSQL.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo(cmd.Context(), cmd.OutOrStdout(), multis, keep)
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the files")
	cmd.Flags().Uint32Var(&multis, "multis", 1_000_000, "multixacts to make")
	return cmd
}

func demo(ctx context.Context, out io.Writer, multis uint32, keep bool) (err error) {
	dir, err := os.MkdirTemp("", "mxwiden-demo-")
	if err != nil {
		return err
	}
	if !keep {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	old := filepath.Join(dir, "old")
	begin := time.Now()
	made, err := synth.Shape{
		// it begins so that multis and members pass their wraps, at different places, on the way
		Header:     synth.Header{First: -(multis / 2), FirstOffset: -multis},
		Count:      multis,
		MinMembers: 1, MaxMembers: 8,
		Updaters: 1.0 / 3, Holes: 0.001, HoleRun: 5,
		Seed: 19,
	}.Write(old)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "made     %s multixacts of PostgreSQL 18, %s members, %s in %d files, in %.2f s: oldest %d, next %d, next offset %d\n",
		humanize.Comma(int64(multis)), humanize.Comma(int64(made.Members)), humanize.IBytes(uint64(made.Bytes)), made.Files, time.Since(begin).Seconds(), made.Oldest, made.Next, made.NextOffset)
	for _, mode := range []convert.Mode{convert.Widen, convert.Rewrite} {
		if err := demoMode(ctx, out, old, filepath.Join(dir, string(mode)), mode); err != nil {
			return err
		}
	}
	if keep {
		fmt.Fprintf(out, "kept     %s\n", dir)
		return nil
	}
	fmt.Fprintf(out, "removed  %s (--keep leaves the files)\n", dir)
	return nil
}

// demoMode converts in one mode, verifies, and prints a line for each.
func demoMode(ctx context.Context, out io.Writer, old, output string, mode convert.Mode) error {
	r, err := convert.Run(ctx, convert.Options{OldDir: old, Output: output, Mode: mode, IO: "auto", Jobs: runtime.GOMAXPROCS(0), Sync: mmapio.Fsync, Version: version})
	if err != nil {
		return err
	}
	bytes := r.Written.Bytes + r.Carried.Bytes
	fmt.Fprintf(out, "%-8s %s multixacts with members and %s holes became %s members, %s in %d files, in %.2f s (%s/s while writing; %s read, %s write, %s kernels)\n",
		mode, humanize.Comma(int64(r.Valid)), humanize.Comma(int64(r.Multis-r.Valid)), humanize.Comma(int64(r.Members)), humanize.IBytes(uint64(bytes)),
		r.Written.Files+r.Carried.Files, r.Seconds.Total, humanize.IBytes(uint64(float64(bytes)/r.Seconds.Write)), r.Read, r.Write, kernels.Active())
	begin := time.Now()
	c, err := audit.Verify(ctx, audit.VerifyOptions{OldDir: old, NewDir: output, Limit: 10})
	if err != nil {
		return err
	}
	for _, d := range c.First {
		fmt.Fprintln(out, d)
	}
	fmt.Fprintf(out, "verify   %s multis by %s: %s differences, in %.2f s\n", humanize.Comma(int64(c.Multis)), c.Mode, humanize.Comma(int64(c.Differences)), time.Since(begin).Seconds())
	if c.Differences > 0 {
		return errFindings
	}
	return nil
}
