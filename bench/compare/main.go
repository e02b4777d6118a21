// Command compare measures a conversion beside its floor and its peer, round by round, in each in another order, on the file system of a folder:
//
//	go run ./bench/compare -count 100000000 /dev/shm
//
// The floor is the time in which as many workers write files of the same number and sizes from a buffer. The peer is the step
// "Converting pg_multixact files" of PostgreSQL 19's pg_upgrade, where a 19 and an 18 are installed (MXWIDEN_PG). Of mxwiden it is
// the whole process, from start to end. Nobody syncs, unless -sync is given: then mxwiden and the floor do, and the peer, which
// syncs everything at its very end, is left out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"

	"github.com/mxwiden/mxwiden/bench/synth"
)

type options struct {
	shape       synth.Shape
	dir         string
	rounds      int
	jobs        int
	modes, io   []string
	sync, cold  bool
	csv, asJSON string
}

func main() {
	o := options{modes: []string{"rewrite", "widen"}, io: []string{"auto", "stage", "map"}}
	o.shape.Flags(flag.CommandLine)
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; the table shows medians over them")
	flag.IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "workers of mxwiden and of the floor")
	list("modes", &o.modes, "modes of mxwiden")
	list("io", &o.io, "backings of mxwiden")
	flag.BoolVar(&o.sync, "sync", false, "wait for the disk")
	flag.BoolVar(&o.cold, "cold", false, "drop the page cache before each (as root)")
	flag.StringVar(&o.csv, "csv", "", "file for every single time, as CSV")
	flag.StringVar(&o.asJSON, "json", "", "file for the table, as JSON")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: compare [flags] DIR")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || o.rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	o.dir = flag.Arg(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := compare(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func list(name string, p *[]string, usage string) {
	flag.Func(name, fmt.Sprintf("%s (default %s)", usage, strings.Join(*p, ",")), func(text string) error {
		*p = strings.Split(text, ",")
		return nil
	})
}

// compare makes the input, has every contestant run once a round, and prints what it took them.
func compare(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp(o.dir, "mxwiden-compare-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := newBench(dir, o)
	if err != nil {
		return err
	}
	for round := range o.rounds {
		turn := slices.Clone(b.contestants)
		if round > 0 { // what ran before leaves its mark on the memory; in the first round the peer has to come before mxwiden
			rand.Shuffle(len(turn), func(i, j int) { turn[i], turn[j] = turn[j], turn[i] })
		}
		for _, c := range turn {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if o.cold {
				if err := dropCaches(); err != nil {
					return err
				}
			}
			took, err := c.run()
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", round+1, c.name, err)
			}
			c.times = append(c.times, took)
			fmt.Fprintf(os.Stderr, "round %d  %-24s %8.3f s\n", round+1, c.name, took.Seconds())
		}
	}
	return b.report(os.Stdout)
}

// dropCaches has the next reader read from the disk.
func dropCaches() error { return os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0) }
