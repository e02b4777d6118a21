package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mxwiden/mxwiden/bench/postgres"
	"github.com/mxwiden/mxwiden/bench/synth"
)

const peerName = "pg_upgrade"

// A peer upgrades a real cluster that has the input for its pg_multixact.
type peer struct {
	old    *postgres.Cluster
	fresh  *postgres.Cluster // of version 19, to be copied for each run
	temp   string
	result string // the pg_multixact of the last run
}

// newPeer puts the input into a real cluster, which is what everybody converts from then on. The error wraps ErrAbsent where
// PostgreSQL is not installed.
func newPeer(b *bench, made synth.Result) (*peer, error) {
	from, err := postgres.Find(b.shape.Version)
	if err != nil {
		return nil, err
	}
	to, err := postgres.Find("19")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(b.temp, 0o755); err != nil { // for the servers' user
		return nil, err
	}
	if err := postgres.Own(b.temp); err != nil {
		return nil, err
	}
	p := &peer{temp: filepath.Join(b.temp, "peer")}
	if p.old, err = from.Init(filepath.Join(b.temp, "server")); err != nil {
		return nil, err
	}
	if p.fresh, err = to.Init(filepath.Join(b.temp, "fresh")); err != nil {
		return nil, err
	}
	if err := p.old.Inject(filepath.Join(b.old, "pg_multixact"), made.Oldest, made.Next, uint32(made.NextOffset)); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(b.old); err != nil {
		return nil, err
	}
	b.old = p.old.Dir
	return p, nil
}

// run upgrades, and gives the time of the one step that counts.
func (p *peer) run() (time.Duration, error) {
	if err := os.RemoveAll(p.temp); err != nil {
		return 0, err
	}
	if out, err := exec.Command("cp", "-a", p.fresh.Dir, p.temp).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("copying a fresh cluster: %w: %s", err, out)
	}
	var s step
	if err := postgres.UpgradeTo(&s, p.old, p.fresh.Open(p.temp)); err != nil {
		return 0, err
	}
	if s.end.IsZero() {
		return 0, fmt.Errorf("pg_upgrade did not say when it converted: %s", s.said.String())
	}
	p.result = filepath.Join(p.temp, "pg_multixact")
	return s.end.Sub(s.begin), nil
}

// A step takes the output of pg_upgrade and notes when the conversion begins and when it is "ok".
type step struct {
	said       bytes.Buffer
	begin, end time.Time
}

func (s *step) Write(b []byte) (int, error) {
	s.said.Write(b)
	_, after, begun := bytes.Cut(s.said.Bytes(), []byte("Converting pg_multixact files"))
	if begun && s.begin.IsZero() {
		s.begin = time.Now()
	}
	if begun && s.end.IsZero() && bytes.Contains(after, []byte("ok")) {
		s.end = time.Now()
	}
	return len(b), nil
}
