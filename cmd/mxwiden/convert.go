package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mxwiden/mxwiden/cmd/internal/convert"
	"github.com/mxwiden/mxwiden/mmapio"
)

// convertOptions is the command line of convert.
type convertOptions struct {
	convert.Options
	mode, syncMethod, progress       string
	noSync, verbose, json            bool
	copy, clone, copyFileRange, link bool
}

func newConvertCommand() *cobra.Command {
	o := &convertOptions{}
	cmd := &cobra.Command{
		Use:   "convert -d OLD {-o OUT | -D NEW -B BIN}",
		Short: "Convert the pg_multixact of a stopped old cluster",
		Long: `Convert the pg_multixact of the stopped cluster in OLD, of version 9.3 to 18.

With -o, OUT/pg_multixact and a manifest are written; OUT is a folder that does not exist or is empty.
With -D and -B, the result is put into NEW, a stopped cluster of version 19 that is fresh or has just been made
from OLD by pg_upgrade, and its counters are set with BIN/pg_resetwal.

--mode=widen keeps every member. --mode=rewrite keeps one member of each multi and writes the same bytes as
PostgreSQL 19's pg_upgrade.`,
		Example: `  mxwiden convert -d /srv/pg/18 -o /srv/out
  mxwiden convert -d /srv/pg/18 -D /srv/pg/19 -B /usr/lib/postgresql/19/bin --link`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return usageError{err}
			}
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.OldDir, "old-datadir", "d", "", "data directory of the old cluster (PGDATAOLD)")
	f.StringVarP(&o.NewDir, "new-datadir", "D", "", "data directory of the new cluster (PGDATANEW)")
	f.StringVarP(&o.NewBin, "new-bindir", "B", "", "bin folder of PostgreSQL 19 (PGBINNEW)")
	f.StringVarP(&o.Output, "output", "o", "", "folder to write pg_multixact and a manifest to, in place of -D")
	f.StringVar(&o.mode, "mode", string(convert.Widen), "widen: keep every member; rewrite: what pg_upgrade keeps, byte for byte")
	f.IntVarP(&o.Jobs, "jobs", "j", runtime.GOMAXPROCS(0), "workers")
	f.BoolVarP(&o.Check, "check", "c", false, "read and compute everything, write nothing, and say what would be done")
	f.StringVar(&o.IO, "io", "auto", "auto, map or stage: how files are read and written; auto measures both")
	f.BoolVar(&o.copy, "copy", false, "copy members segments that keep their place, by read and write")
	f.BoolVar(&o.clone, "clone", false, "clone them (reflink)")
	f.BoolVar(&o.copyFileRange, "copy-file-range", false, "copy them by copy_file_range")
	f.BoolVar(&o.link, "link", false, "hard-link them; the old cluster stays whole (default: clone where that works, else copy_file_range)")
	f.BoolVarP(&o.noSync, "no-sync", "N", false, "do not wait for the result to be on disk")
	f.StringVar(&o.syncMethod, "sync-method", "fsync", "fsync or syncfs")
	f.BoolVarP(&o.Retain, "retain", "r", false, "keep the pg_multixact that NEW had, as pg_multixact.mxwiden-old")
	f.BoolVar(&o.Force, "force", false, "convert into a NEW that is neither fresh nor just made from OLD, or that has logical slots")
	f.BoolVar(&o.json, "json", false, "print the result as JSON")
	f.StringVar(&o.progress, "progress", "auto", "auto or never: a progress bar on a terminal")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say what is being done and why")
	return cmd
}

// complete fills in what stands in the environment and refuses what does not go together.
func (o *convertOptions) complete() error {
	o.OldDir = orEnv(o.OldDir, "PGDATAOLD")
	if o.Output == "" {
		o.NewDir, o.NewBin = orEnv(o.NewDir, "PGDATANEW"), orEnv(o.NewBin, "PGBINNEW")
	}
	switch {
	case o.OldDir == "":
		return fmt.Errorf("name the old cluster's data directory with -d or PGDATAOLD")
	case o.Output == "" && o.NewDir == "":
		return fmt.Errorf("say where the result goes: -o OUT, or -D NEW with -B BIN")
	case o.Output != "" && (o.NewDir != "" || o.NewBin != ""):
		return fmt.Errorf("-o goes without -D and -B")
	case o.NewDir != "" && o.NewBin == "":
		return fmt.Errorf("-D needs the bin folder of PostgreSQL 19, for its pg_resetwal: -B or PGBINNEW")
	case o.Jobs < 1:
		return fmt.Errorf("--jobs is %d, and has to be at least 1", o.Jobs)
	}
	if o.Mode = convert.Mode(o.mode); o.Mode != convert.Widen && o.Mode != convert.Rewrite {
		return fmt.Errorf("--mode is %q, and has to be widen or rewrite", o.mode)
	}
	if o.IO != "auto" && o.IO != "map" && o.IO != "stage" {
		return fmt.Errorf("--io is %q, and has to be auto, map or stage", o.IO)
	}
	if o.progress != "auto" && o.progress != "never" {
		return fmt.Errorf("--progress is %q, and has to be auto or never", o.progress)
	}
	var err error
	if o.Sync, err = mmapio.ParseSyncMethod(o.syncMethod); err != nil {
		return err
	}
	if o.noSync {
		o.Sync = mmapio.NoSync
	}
	return o.completeCopy()
}

func (o *convertOptions) completeCopy() error {
	given := 0
	for _, c := range []struct {
		set    bool
		method mmapio.CopyMethod
	}{{o.copy, mmapio.Copy}, {o.clone, mmapio.Clone}, {o.copyFileRange, mmapio.CopyFileRange}, {o.link, mmapio.Link}} {
		if c.set {
			o.Copy = c.method
			given++
		}
	}
	if given > 1 {
		return fmt.Errorf("of --copy, --clone, --copy-file-range and --link, give one")
	}
	return nil
}

func (o *convertOptions) run(cmd *cobra.Command) error {
	stderr := cmd.ErrOrStderr()
	o.Version = version
	o.Verbose = func(format string, a ...any) {
		if o.verbose {
			fmt.Fprintf(stderr, "mxwiden: "+format+"\n", a...)
		}
	}
	bar := o.bar(stderr)
	begin := time.Now()
	r, err := convert.Run(cmd.Context(), o.Options)
	if bar != nil {
		bar.Exit()
	}
	var refused *convert.RefusedError
	if o.json && errors.As(err, &refused) {
		err = errors.Join(err, json.NewEncoder(cmd.OutOrStdout()).Encode(refused))
	}
	if err != nil {
		return err
	}
	printFindings(stderr, r)
	if o.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(r)
	}
	printResult(cmd.OutOrStdout(), r, o, time.Since(begin))
	return nil
}

// bar has a progress bar follow the conversion, on a terminal.
func (o *convertOptions) bar(stderr io.Writer) *progressbar.ProgressBar {
	if f, ok := stderr.(*os.File); o.progress == "never" || !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	bar := progressbar.NewOptions64(1, progressbar.OptionSetWriter(stderr), progressbar.OptionShowBytes(true), progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetDescription("converting"))
	o.Start = bar.ChangeMax64
	o.Progress = func(n int64) { bar.Add64(n) }
	return bar
}

func printFindings(w io.Writer, r *convert.Result) {
	const shown = 20
	for i, f := range r.Findings {
		if i == shown {
			break
		}
		fmt.Fprintf(w, "mxwiden: warning: %s\n", f)
	}
	total := 0
	for _, n := range r.Count {
		total += n
	}
	if total > shown {
		fmt.Fprintf(w, "mxwiden: warning: %d findings in all; the JSON output holds the first thousand of each kind\n", total)
	}
}

func printResult(w io.Writer, r *convert.Result, o *convertOptions, took time.Duration) {
	done, wrote, carried := "converted", "wrote", "carried"
	if o.Check {
		done, wrote, carried = "would convert", "would write", "carry"
	}
	fmt.Fprintf(w, "%s %s multis (%s with members) of PostgreSQL %s by %s: oldest %d, next %d, next offset %d\n",
		done, humanize.Comma(int64(r.Multis)), humanize.Comma(int64(r.Valid)), r.Old.Version, r.Mode, r.New.Oldest, r.New.Next, r.New.NextOffset)
	fmt.Fprintf(w, "%s %s in %s files", wrote, humanize.IBytes(uint64(r.Written.Bytes)), humanize.Comma(r.Written.Files))
	if r.Carried.Files > 0 {
		fmt.Fprintf(w, ", %s %s in %s files by %s", carried, humanize.IBytes(uint64(r.Carried.Bytes)), humanize.Comma(r.Carried.Files), r.CarriedBy)
	}
	if o.Check {
		fmt.Fprintf(w, " to %s; nothing is written\n", r.New.Directory)
		return
	}
	rate := float64(r.Written.Bytes+r.Carried.Bytes) / took.Seconds()
	fmt.Fprintf(w, " to %s in %.2f s (%s/s)\n", r.New.Directory, took.Seconds(), humanize.IBytes(uint64(rate)))
	if o.Output != "" {
		fmt.Fprintf(w, "for the new cluster: pg_resetwal -O %d -m %d,%d NEW\n", r.New.NextOffset, r.New.Next, r.New.Oldest)
	}
}
