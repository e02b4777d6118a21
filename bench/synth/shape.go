package synth

import (
	"fmt"
	"iter"

	"github.com/mxwiden/mxwiden/kernels/multixact"
)

// A Shape is a cluster of any size, drawn from a seed: the same shape is always the same bytes.
type Shape struct {
	Header
	Count                  uint32  // multis
	MinMembers, MaxMembers int     // members a multi, evenly spread; at least 1
	Updaters               float64 // the share of multis that have an updater, at any place among the lockers
	Holes                  float64 // the share of multis whose entry is unset, though they took their slots
	HoleRun                int     // holes come in runs of so many; at least 1
	Seed                   uint64
}

// Write makes the cluster in dir, which must be absent or empty.
func (s Shape) Write(dir string) (Result, error) {
	s.MinMembers = max(s.MinMembers, 1)
	s.MaxMembers = max(s.MaxMembers, s.MinMembers)
	s.HoleRun = max(s.HoleRun, 1)
	if s.Holes < 0 || s.Holes >= 1 || s.Updaters < 0 || s.Updaters > 1 {
		return Result{}, fmt.Errorf("making a cluster: shares are from 0 to 1, of holes below 1: not %v of updaters, %v of holes",
			s.Updaters, s.Holes)
	}
	return write(dir, s.Header, s.multis())
}

// multis draws the multis one after the other. Members are valid until the next.
func (s Shape) multis() iter.Seq[Multi] {
	return func(yield func(Multi) bool) {
		members := make([]multixact.Member, s.MaxMembers)
		d := dice(s.Seed)
		updaters := chance(s.Updaters)
		holes := chance(s.Holes / (1 - s.Holes) / float64(s.HoleRun)) // that a run begins after a multi that is none
		run := 0
		xid := uint32(firstNormalXID)
		for range s.Count {
			m := Multi{Members: members[:s.MinMembers+d.below(s.MaxMembers-s.MinMembers+1)]}
			if run == 0 && d.falls(holes) {
				run = s.HoleRun
			}
			if run > 0 {
				run--
				m.Lost = true
				clear(m.Members)
			} else {
				xid = max(xid+1, firstNormalXID)
				d.fill(m.Members, xid)
				if d.falls(updaters) {
					m.Members[d.below(len(m.Members))].Status = multixact.NoKeyUpdate + multixact.Status(d.below(2))
				}
			}
			if !yield(m) {
				return
			}
		}
	}
}

// firstNormalXID is the lowest xid of a transaction (FirstNormalTransactionId).
const firstNormalXID = 3

// A dice is Knuth's linear congruential generator for MMIX. A hundred million multis take a thousand million draws, at which
// math/rand/v2 takes half of the whole time.
type dice uint64

func (d *dice) draw() uint64 {
	*d = *d*6364136223846793005 + 1442695040888963407
	return uint64(*d >> 32) // the low bits repeat soon
}

// below draws from [0, n).
func (d *dice) below(n int) int { return int(d.draw() * uint64(n) >> 32) }

// chance is a probability as falls takes it.
func chance(p float64) uint64 { return uint64(p * (1 << 32)) }

func (d *dice) falls(chance uint64) bool { return d.draw() < chance }

// fill draws lockers: transactions from xid on, in the order of their xids, as PostgreSQL sorts them.
func (d *dice) fill(members []multixact.Member, xid uint32) {
	for i := range members {
		bits := d.draw() >> 24
		members[i] = multixact.Member{XID: xid, Status: multixact.Status(bits % 4)}
		xid = max(xid+1+uint32(bits>>2%8), firstNormalXID)
	}
}
