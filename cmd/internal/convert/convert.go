// Package convert orders the work of a conversion: it opens the old cluster, plans, has workers build the new pg_multixact beside
// its place, and puts it there. Files are read and written by mmapio, pages computed by kernels/multixact; none of either's
// details are here.
package convert

import (
	"context"
	"sync"
	"time"

	"github.com/mxwiden/mxwiden/kernels"
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

// newMajor is the version whose format is written.
const newMajor = "19"

// A Mode is what is kept of each multi.
type Mode string

// The modes: Widen keeps every member, Rewrite the one that PostgreSQL 19's pg_upgrade keeps.
const (
	Widen   Mode = "widen"
	Rewrite Mode = "rewrite"
)

// Options is what the user asks for. Either Output or NewDir and NewBin are set.
type Options struct {
	OldDir         string
	Output         string
	NewDir, NewBin string
	Mode           Mode
	IO             string // auto, map or stage
	Copy           mmapio.CopyMethod
	Sync           mmapio.SyncMethod
	Jobs           int
	Check          bool // read and compute everything, and write nothing
	Retain         bool // keep the pg_multixact that NewDir had
	Force          bool // convert into a cluster that is neither fresh nor pg_upgrade's
	Version        string

	Start    func(bytes int64)             // told how many bytes are to be written, before the first is
	Progress func(bytes int64)             // told of bytes written, from any goroutine
	Verbose  func(format string, a ...any) // told what is being done and why
}

// Result is what was done, and what --json prints.
type Result struct {
	Mode      Mode         `json:"mode"`
	Check     bool         `json:"check"` // nothing was written: Written and Carried are what would be, or what the run that Recovered is about wrote
	Old       Side         `json:"old"`
	New       Side         `json:"new"`
	Multis    uint64       `json:"multis"`
	Valid     uint64       `json:"valid_multis"`
	Members   uint64       `json:"members"`
	Written   Amount       `json:"written"`
	Carried   Amount       `json:"carried"`
	CarriedBy string       `json:"carried_by"`
	Read      string       `json:"read_backing"`
	Write     string       `json:"write_backing"`
	Kernels   string       `json:"kernels"`
	Jobs      int          `json:"jobs"`
	Findings  []Finding    `json:"findings"`
	Count     map[Kind]int `json:"finding_counts"`
	Seconds   Seconds      `json:"seconds"`
	Recovered string       `json:"recovered,omitempty"`
}

// Side is one side of the conversion: a folder that holds pg_multixact, and its counters.
type Side struct {
	Directory  string `json:"directory"`
	Version    string `json:"version"`
	BlockSize  int    `json:"block_size"`
	Oldest     uint32 `json:"oldest_multi"`
	Next       uint32 `json:"next_multi"`
	NextOffset uint64 `json:"next_offset"`
}

// Amount is how much was written or carried.
type Amount struct {
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Seconds is how long the phases took.
type Seconds struct {
	Plan   float64 `json:"plan"`
	Write  float64 `json:"write"`
	Sync   float64 `json:"sync"`
	Commit float64 `json:"commit"`
	Total  float64 `json:"total"`
}

// A conversion is one run: what it was asked for, what it found, and where it is.
type conversion struct {
	Options
	src    *source
	place  *place
	choice mmapio.Choice
	findings

	widening       multixact.Widening // of mode widen
	carry, rebuild []int64            // segments of the new members
	numbers        numbering          // of mode rewrite
	next           uint64             // the new nextOffset

	recovered string          // what became of an earlier run that died
	stands    pgdata.Counters // of NewDir, if that run was on the same old cluster and has been finished

	mutex            sync.Mutex
	written, carried Amount
}

// Run converts. A *RefusedError says that the old cluster can't be converted in this mode, any other error what could not be
// done; in both cases, whatever was in the place of the result is as it was.
func Run(ctx context.Context, o Options) (*Result, error) {
	begin := time.Now()
	c := &conversion{Options: o}
	c.Start = orIgnore(c.Start)
	c.Progress = orIgnore(c.Progress)
	if c.Verbose == nil {
		c.Verbose = func(string, ...any) {}
	}
	src, err := openSource(o.OldDir)
	if err != nil {
		return nil, err
	}
	c.src = src
	if c.place, err = c.openPlace(); err != nil {
		return nil, err
	}
	defer c.place.Close()
	r, err := c.run(ctx)
	if r != nil {
		r.Seconds.Total = time.Since(begin).Seconds()
	}
	return r, err
}

func orIgnore(f func(int64)) func(int64) {
	if f == nil {
		return func(int64) {}
	}
	return f
}

func (c *conversion) run(ctx context.Context) (*Result, error) {
	var took Seconds
	phase := func(seconds *float64, work func() error) error {
		begin := time.Now()
		defer func() { *seconds = time.Since(begin).Seconds() }()
		return work()
	}
	if err := phase(&took.Plan, func() error { return c.plan(ctx) }); err != nil {
		return nil, err
	}
	if c.Check {
		if err := c.checkSpace(); err != nil {
			return nil, err
		}
	}
	if c.Check || c.stands == c.after() { // then the result is there already, and only what it is has to be told
		c.Check = true
		if err := phase(&took.Write, func() error { return c.build(ctx) }); err != nil {
			return nil, err
		}
		return c.result(took), nil
	}
	if err := c.place.begin(); err != nil {
		return nil, err
	}
	err := c.settle()
	if err == nil {
		err = phase(&took.Write, func() error { return c.build(ctx) })
	}
	if err == nil {
		c.Verbose("syncing %s by %s", c.place.build, c.Sync)
		err = phase(&took.Sync, func() error { return mmapio.SyncTree(c.place.build, c.Sync, c.Jobs) })
	}
	if err == nil && ctx.Err() != nil {
		err = stopped(ctx)
	}
	if err == nil {
		err = phase(&took.Commit, func() error { return c.place.put(c) })
	}
	if err != nil {
		return nil, c.place.undo(err)
	}
	return c.result(took), nil
}

// plan finds out what is live and where it goes, and refuses what can't be converted before anything is written.
func (c *conversion) plan(ctx context.Context) error {
	s := c.src
	if c.IO == "map" {
		c.choice = mmapio.Choice{Read: mmapio.Map, Write: mmapio.Map}
	}
	in, err := s.input(mmapio.Stage)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := mmapio.Guard(func() error { return s.find(in) }); err != nil {
		return err
	}
	if c.widening, err = s.widening(in); err != nil {
		return err
	}
	c.add(s.shortSegments()...)
	if c.Mode == Rewrite {
		if err := c.number(ctx); err != nil {
			return err
		}
		c.next = c.numbers.next()
	} else {
		c.next = c.widening.NextOffset()
	}
	c.splitMembers()
	if s.live.NextOffset == multixact.OffsetSpace && !s.live.Empty() {
		last := s.live.Last()
		c.add(Finding{Kind: KeptAtBoundary, Multi: last, Page: s.layout.OffsetPage(last), Text: "its members end exactly at 2^32 (nextOffset 0)"})
	}
	return nil
}

// settle finds out by trying, in the place where the result is built, how it is best written, and whether there is room. What
// a run that dies leaves of a trial goes with all else that is there.
func (c *conversion) settle() error {
	if c.IO == "auto" {
		c.choose()
	}
	c.Verbose("reading by %s, writing by %s", c.choice.Read, c.choice.Write)
	if err := c.checkCopy(); err != nil {
		return err
	}
	return c.checkSpace()
}

// choose measures the backings and takes the faster one for each side.
func (c *conversion) choose() {
	s := c.src
	first := s.layout.OffsetPage(s.live.Oldest) / slru.PagesPerSegment
	choice, err := mmapio.Choose(s.offsets, first, first+int64(c.batch()), s.offsets.SegmentBytes(), c.place.build, c.place.perm)
	if err != nil {
		c.Verbose("could not measure the backings, staging: %v", err)
	}
	c.choice = choice
}

// build writes the whole result into its building place.
func (c *conversion) build(ctx context.Context) error {
	c.Start(c.bytes())
	if c.Mode == Rewrite {
		if err := c.rewriteOffsets(ctx); err != nil {
			return err
		}
		if err := c.rewriteMembers(ctx); err != nil {
			return err
		}
	} else {
		if err := c.widenOffsets(ctx); err != nil {
			return err
		}
		if err := c.refusal(); err != nil {
			return err
		}
		if err := c.widenMembers(ctx); err != nil {
			return err
		}
	}
	return c.refusal()
}

// record counts a finished file of the result.
func (c *conversion) record(to *Amount, bytes int64) {
	c.mutex.Lock()
	to.Files++
	to.Bytes += bytes
	c.mutex.Unlock()
	c.Progress(bytes)
}

func (c *conversion) result(took Seconds) *Result {
	s := c.src
	old := s.dir.Control
	r := &Result{
		Mode:      c.Mode,
		Check:     c.Check,
		Old:       Side{s.dir.Path, old.Major(), s.layout.BlockSize(), s.live.Oldest, s.live.Next, old.NextOffset},
		New:       Side{c.place.path, newMajor, s.layout.BlockSize(), s.live.Oldest, s.live.Next, c.next},
		Multis:    s.live.Len(),
		Valid:     c.numbers.valid.Load(),
		Members:   c.next - c.firstMember(),
		Written:   c.written,
		Carried:   c.carried,
		CarriedBy: c.Copy.String(),
		Read:      c.choice.Read.String(),
		Write:     c.choice.Write.String(),
		Kernels:   kernels.Active(),
		Jobs:      c.Jobs,
		Findings:  c.sorted(),
		Count:     c.counts(),
		Seconds:   took,
		Recovered: c.recovered,
	}
	return r
}

func (c *conversion) firstMember() uint64 {
	if c.Mode == Rewrite {
		return 1
	}
	return c.widening.First()
}
