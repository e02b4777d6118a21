// Command mkcluster makes a data directory of an old version with as many multixacts as one likes, for benchmarks and trials:
//
//	go run ./bench/mkcluster -count 100000000 -max-members 5 -updaters 0.3 -holes 0.01 /dev/shm/old
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/mxwiden/mxwiden/bench/synth"
)

func main() {
	var s synth.Shape
	flag.StringVar(&s.Version, "version", "18", "PostgreSQL version, 9.3 to 18")
	flag.IntVar(&s.BlockSize, "block-size", 8192, "bytes a page, 1024 to 32768")
	number(&s.First, "first", 1, "the oldest multi")
	number(&s.FirstOffset, "first-offset", 1, "the slot of its first member")
	number(&s.Count, "count", 1000000, "multis; their numbers wrap at 2^32")
	flag.IntVar(&s.MinMembers, "min-members", 1, "members a multi, at least")
	flag.IntVar(&s.MaxMembers, "max-members", 0, "members a multi, at most; min-members if that is more")
	flag.Float64Var(&s.Updaters, "updaters", 0, "share of multis with an updater, 0 to 1")
	flag.Float64Var(&s.Holes, "holes", 0, "share of multis lost in crashes, 0 to 1")
	flag.IntVar(&s.HoleRun, "hole-run", 1, "multis lost in a crash, one after the other")
	flag.BoolVar(&s.Ahead, "ahead", false, "write the entry of the next multi too, as recent minor releases do")
	flag.Uint64Var(&s.Seed, "seed", 0, "the same seed gives the same bytes")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: mkcluster [flags] DIR")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	begin := time.Now()
	made, err := s.Write(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "mkcluster:", err)
		os.Exit(1)
	}
	fmt.Printf("%s: %d multis from %d, next %d, with %d members, next offset %d: %d bytes in %d segments, in %v\n",
		flag.Arg(0), made.Len(), made.Oldest, made.Next, made.Members, made.NextOffset, made.Bytes, made.Files,
		time.Since(begin).Round(time.Millisecond))
}

// number is a flag for a number of 32 bits.
func number(p *uint32, name string, value uint32, usage string) {
	*p = value
	flag.Func(name, fmt.Sprintf("%s (default %d)", usage, value), func(text string) error {
		n, err := strconv.ParseUint(text, 0, 32)
		*p = uint32(n)
		return err
	})
}
