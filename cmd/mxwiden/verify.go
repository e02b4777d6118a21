package main

import (
	"encoding/json"
	"fmt"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/mxwiden/mxwiden/cmd/internal/audit"
	"github.com/mxwiden/mxwiden/cmd/internal/convert"
)

func newVerifyCommand() *cobra.Command {
	var o audit.VerifyOptions
	var mode string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify -d OLD -D NEW",
		Short: "Compare every multi of an old cluster with its conversion",
		Long: `Compare every multi of the stopped cluster in OLD with NEW: a stopped cluster of version 19, or what convert -o wrote.
Both are read again, by the plain reference reader. Exit status 3 where anything differs.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.OldDir, o.NewDir = orEnv(o.OldDir, "PGDATAOLD"), orEnv(o.NewDir, "PGDATANEW")
			if o.OldDir == "" || o.NewDir == "" {
				return usageError{fmt.Errorf("name both sides: -d OLD and -D NEW")}
			}
			if o.Mode = convert.Mode(mode); mode != "" && o.Mode != convert.Widen && o.Mode != convert.Rewrite {
				return usageError{fmt.Errorf("--mode is %q, and has to be widen or rewrite", mode)}
			}
			c, err := audit.Verify(cmd.Context(), o)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				if err := json.NewEncoder(out).Encode(c); err != nil {
					return err
				}
			} else {
				for _, d := range c.First {
					fmt.Fprintln(out, d)
				}
				fmt.Fprintf(out, "compared %s multis by %s (%s holes, %s members on the old side): %s differences\n", humanize.Comma(int64(c.Multis)),
					c.Mode, humanize.Comma(int64(c.Holes)), humanize.Comma(int64(c.Members)), humanize.Comma(int64(c.Differences)))
			}
			if c.Differences > 0 {
				return errFindings
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.OldDir, "old-datadir", "d", "", "data directory of the old cluster (PGDATAOLD)")
	f.StringVarP(&o.NewDir, "new-datadir", "D", "", "data directory of the new cluster, or an output folder of convert (PGDATANEW)")
	f.StringVar(&mode, "mode", "", "widen or rewrite (default: found out)")
	f.IntVar(&o.Limit, "limit", 20, "differences to print")
	f.BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}
