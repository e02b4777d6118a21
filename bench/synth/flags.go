package synth

import (
	"flag"
	"fmt"
	"strconv"
)

// Flags has a command line set the shape; what is not given there is a million multis of one member on 18.
func (s *Shape) Flags(f *flag.FlagSet) {
	f.StringVar(&s.Version, "version", "18", "PostgreSQL version, 9.3 to 18")
	f.IntVar(&s.BlockSize, "block-size", 8192, "bytes a page, 1024 to 32768")
	number(f, &s.First, "first", 1, "the oldest multi")
	number(f, &s.FirstOffset, "first-offset", 1, "the slot of its first member")
	number(f, &s.Count, "count", 1000000, "multis; their numbers wrap at 2^32")
	f.IntVar(&s.MinMembers, "min-members", 1, "members a multi, at least")
	f.IntVar(&s.MaxMembers, "max-members", 0, "members a multi, at most; min-members if that is more")
	f.Float64Var(&s.Updaters, "updaters", 0, "share of multis with an updater, 0 to 1")
	f.Float64Var(&s.Holes, "holes", 0, "share of multis lost in crashes, 0 to 1")
	f.IntVar(&s.HoleRun, "hole-run", 1, "multis lost in a crash, one after the other")
	f.BoolVar(&s.Ahead, "ahead", false, "write the entry of the next multi too, as recent minor releases do")
	f.Uint64Var(&s.Seed, "seed", 0, "the same seed gives the same bytes")
}

// number is a flag for a number of 32 bits.
func number(f *flag.FlagSet, p *uint32, name string, value uint32, usage string) {
	*p = value
	f.Func(name, fmt.Sprintf("%s (default %d)", usage, value), func(text string) error {
		n, err := strconv.ParseUint(text, 0, 32)
		*p = uint32(n)
		return err
	})
}
