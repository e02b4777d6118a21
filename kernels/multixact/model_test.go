package multixact

import (
	"errors"
	"math/rand/v2"
)

var errNoPage = errors.New("no such page")

// pages is an SLRU in memory.
type pages map[int64][]byte

func (p pages) get(n int64) ([]byte, error) {
	if page := p[n]; page != nil {
		return page, nil
	}
	return nil, errNoPage
}

func (p pages) at(n int64, block int) []byte {
	if p[n] == nil {
		p[n] = make([]byte, block)
	}
	return p[n]
}

// A model is an old pg_multixact in memory, made multi by multi as a server does it.
type model struct {
	layout           Layout
	r                Range
	offsets, members pages
}

// newModel makes count multis from oldest and firstOffset on, of 1 to most members with a share of updaters and of holes.
func newModel(rng *rand.Rand, block int, oldest, firstOffset uint32, count, most int, holes float64) *model {
	m := &model{layout: Old(block), offsets: pages{}, members: pages{}}
	multi, offset := max(oldest, FirstMulti), firstOffset
	for range count {
		n := uint32(1 + rng.IntN(most))
		if most > 1 && rng.IntN(3) == 0 {
			n = 1
		}
		if offset == 0 {
			m.setMember(0, Member{}) // skipped
			offset = 1
		}
		lost := rng.Float64() < holes
		if lost {
			m.setEntry(multi, 0)
		} else {
			m.setEntry(multi, offset)
		}
		updater := rng.Uint32N(2 * n)
		for i := range n {
			status := Status(rng.IntN(4))
			if i == updater {
				status = NoKeyUpdate + Status(rng.IntN(4)) // above Update is none of PostgreSQL's, and counts as one
			}
			xid := 3 + rng.Uint32N(1<<32-4)
			if rng.IntN(10) == 0 && offset+i != 0 {
				xid = 0
			}
			m.setMember(offset+i, Member{xid, status})
		}
		offset += n
		multi = After(multi)
	}
	m.setEntry(multi, 0)
	m.r = OldRange(oldest, multi, offset)
	first, err := m.reader().FindFirst()
	if err != nil {
		panic(err)
	}
	m.r.First = first
	return m
}

func (m *model) setEntry(multi, offset uint32) {
	page := m.offsets.at(m.layout.OffsetPage(multi), m.layout.BlockSize())
	m.layout.SetEntry(page, m.layout.OffsetEntry(multi), uint64(offset))
}

func (m *model) setMember(slot uint32, member Member) {
	SetMember(m.members.at(m.layout.MemberPage(uint64(slot)), m.layout.BlockSize()), m.layout.MemberSlot(uint64(slot)), member)
}

func (m *model) reader() *Reader {
	return &Reader{Layout: m.layout, Range: m.r, Offsets: m.offsets.get, Members: m.members.get}
}

// runs are the multis of the model in runs that do not wrap, none longer than most.
func (m *model) runs(most int) (list []Run) {
	for multi := m.r.Oldest; multi != m.r.Next; {
		first := multi
		var entries []uint32
		for len(entries) < most && multi != m.r.Next && multi >= first {
			entry, _ := m.reader().Entry(multi)
			entries = append(entries, uint32(entry))
			multi = After(multi)
		}
		if multi == m.r.Next {
			list = append(list, CloseRun(first, append(entries, 0), m.r.NextOffset))
			continue
		}
		entry, _ := m.reader().Entry(multi)
		list = append(list, Run{First: first, Entries: append(entries, uint32(entry))})
	}
	return list
}
