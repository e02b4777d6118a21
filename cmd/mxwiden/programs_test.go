package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mxwiden/mxwiden/bench/synth"
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
)

// program runs f and exits: what it fails of goes to stderr.
func program(usage string, f func(args []string) error) {
	if err := f(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%v\nusage: %s\n", err, usage)
		os.Exit(1)
	}
}

// synthMain makes an old data directory. Without a list of multis it draws as many as it is told to.
func synthMain() {
	program(`synth DIR [multis=N members=N-N holes=SHARE updaters=SHARE | list=FILE] [version=V first=MULTI offset=OFFSET block=BYTES]
FILE has a multi in each line, as XID:STATUS pairs, or "lost" for a hole; a line may begin with @OFFSET`, makeSynth)
}

func makeSynth(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no folder")
	}
	s := synth.Shape{Count: 1000, MinMembers: 1, MaxMembers: 5, Updaters: 0.3, Holes: 0.01, HoleRun: 2, Seed: 1}
	list := ""
	for _, arg := range args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		var err error
		switch key {
		case "multis":
			_, err = fmt.Sscan(value, &s.Count)
		case "members":
			_, err = fmt.Sscanf(value, "%d-%d", &s.MinMembers, &s.MaxMembers)
		case "holes":
			_, err = fmt.Sscan(value, &s.Holes)
		case "updaters":
			_, err = fmt.Sscan(value, &s.Updaters)
		case "version":
			s.Version = value
		case "first":
			_, err = fmt.Sscan(value, &s.First)
		case "offset":
			_, err = fmt.Sscan(value, &s.FirstOffset)
		case "block":
			_, err = fmt.Sscan(value, &s.BlockSize)
		case "list":
			list = value
		default:
			err = fmt.Errorf("unknown")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
	}
	if list == "" {
		_, err := s.Write(args[0])
		return err
	}
	multis, err := readMultis(list)
	if err != nil {
		return err
	}
	_, err = synth.WriteMultis(args[0], synth.Spec{Header: s.Header, Multis: multis})
	return err
}

func readMultis(path string) (multis []synth.Multi, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var m synth.Multi
		for _, word := range strings.Fields(lines.Text()) {
			xid, status, pair := strings.Cut(word, ":")
			var member multixact.Member
			switch {
			case word == "lost":
				m.Lost = true
				continue
			case word[0] == '@':
				_, err = fmt.Sscan(word[1:], &m.Offset)
			case pair:
				member.Status, err = parseStatus(status)
				if err == nil {
					_, err = fmt.Sscan(xid, &member.XID)
				}
				m.Members = append(m.Members, member)
			default:
				err = fmt.Errorf("neither XID:STATUS nor lost nor @OFFSET")
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", path, word, err)
			}
		}
		multis = append(multis, m)
	}
	return multis, lines.Err()
}

// parseStatus is a status by PostgreSQL's word or by its number.
func parseStatus(word string) (multixact.Status, error) {
	for s := range multixact.Update + 1 {
		if s.String() == word {
			return s, nil
		}
	}
	n, err := strconv.ParseUint(word, 10, 8)
	return multixact.Status(n), err
}

// controlMain makes a global/pg_control where there is none, and changes what it says.
func controlMain() {
	program("control DIR [version=V] [state=STATE next=MULTI oldest=MULTI offset=OFFSET]", changeControl)
}

func changeControl(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no folder")
	}
	var c pgdata.Control
	file := filepath.Join(args[0], "global", "pg_control")
	b, err := os.ReadFile(file)
	if err == nil {
		c, err = pgdata.ParseControl(b)
	}
	for _, arg := range args[1:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "version":
			c, err = newCluster(args[0], value)
		case "state":
			for c.State = 0; c.State.String() != value && c.State < 10; c.State++ {
			}
		case "next":
			_, err = fmt.Sscan(value, &c.NextMulti)
		case "oldest":
			_, err = fmt.Sscan(value, &c.OldestMulti)
		case "offset":
			_, err = fmt.Sscan(value, &c.NextOffset)
		default:
			err = fmt.Errorf("%s: unknown", arg)
		}
		if err != nil {
			return err
		}
	}
	return os.WriteFile(file, c.Encode(), 0o600)
}

// newCluster makes what a data directory of any version is known by, and an empty pg_multixact.
func newCluster(dir, version string) (pgdata.Control, error) {
	for _, name := range []string{"global", "pg_multixact/offsets", "pg_multixact/members"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return pgdata.Control{}, err
		}
	}
	c, err := pgdata.NewControl(version)
	if err != nil {
		return c, err
	}
	return c, os.WriteFile(filepath.Join(dir, "PG_VERSION"), []byte(version+"\n"), 0o600)
}

// pokeMain writes bytes into a file, or turns the order of its first bytes round.
func pokeMain() {
	program("poke FILE {OFFSET HEX | swap}", func(args []string) error {
		if len(args) < 2 {
			return fmt.Errorf("too few arguments")
		}
		f, err := os.OpenFile(args[0], os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		if args[1] == "swap" { // what a machine of the other order reads of 4-byte integers
			b := make([]byte, 512)
			if _, err := io.ReadFull(f, b); err != nil {
				return err
			}
			for i := 0; i < len(b); i += 4 {
				slices.Reverse(b[i : i+4])
			}
			_, err = f.WriteAt(b, 0)
			return err
		}
		off, err := strconv.ParseInt(args[1], 0, 64)
		if err != nil {
			return err
		}
		b, err := hex.DecodeString(strings.Join(args[2:], ""))
		if err != nil {
			return err
		}
		_, err = f.WriteAt(b, off)
		return err
	})
}
