// Command mkcluster makes a data directory of an old version with as many multixacts as one likes, for benchmarks and trials:
//
//	go run ./bench/mkcluster -count 100000000 -max-members 5 -updaters 0.3 -holes 0.01 /dev/shm/old
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/mxwiden/mxwiden/bench/synth"
)

func main() {
	var s synth.Shape
	s.Flags(flag.CommandLine)
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
