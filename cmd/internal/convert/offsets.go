package convert

import (
	"context"
	"sort"
	"sync/atomic"

	"github.com/mxwiden/mxwiden/kernels"
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

// A numbering says how rewrite numbers the valid multis: base[i] is the new offset of the first one of unit i, and base[units]
// the new nextOffset; ends[i] says whether the last multi of unit i is valid. Of a straight unit (multixact.Run.Straight), whose
// entries need not be read again, straight[i] is the first entry; of others it is 0.
type numbering struct {
	base     []uint64
	ends     []bool
	straight []uint32
	valid    atomic.Uint64 // multis with members, counted in both modes
}

func (n *numbering) next() uint64 { return n.base[len(n.base)-1] }

// unitOf is the unit whose valid multis include the one with the given new offset.
func (n *numbering) unitOf(offset uint64) int {
	return sort.Search(len(n.base), func(i int) bool { return n.base[i] > offset }) - 1
}

// number counts the valid multis of every unit, in parallel, and places them. It refuses a cluster whose offsets pg_upgrade
// would stop at, and looks at its members too then.
func (c *conversion) number(ctx context.Context) error {
	units := c.src.units()
	c.numbers.base = make([]uint64, units+1)
	c.numbers.ends = make([]bool, units)
	c.numbers.straight = make([]uint32, units)
	c.Verbose("counting the multis of %d segments", units)
	err := c.parallel(ctx, units, func(w *worker, i int) error {
		r, err := w.run(c.src.unit(i))
		if err != nil {
			return err
		}
		steps := c.inspected(r)
		c.numbers.base[i+1] = uint64(steps.Rising)
		c.numbers.ends[i] = r.Len() > 0 && r.Valid(r.Len()-1)
		if r.Straight(steps) {
			c.numbers.straight[i] = r.Entries[0]
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.numbers.base[0] = 1
	for i := range units {
		c.numbers.base[i+1] += c.numbers.base[i]
	}
	if c.refusal() == nil {
		return nil
	}
	if err := c.findUpdaters(ctx); err != nil {
		return err
	}
	return c.refusal()
}

// inspected counts the steps of a run and keeps what is found wrong in it.
func (c *conversion) inspected(r multixact.Run) kernels.Steps {
	steps, list := c.src.inspect(r)
	c.numbers.valid.Add(uint64(steps.Rising))
	c.add(list...)
	return steps
}

// rewriteOffsets writes the new offsets of mode rewrite.
func (c *conversion) rewriteOffsets(ctx context.Context) error {
	return c.writeOffsets(ctx, func(w *worker, i int, dst []uint64) error {
		if c.numbers.straight[i] != 0 {
			kernels.Sequence(dst, c.numbers.base[i])
			return nil
		}
		r, err := w.run(c.src.unit(i))
		if err != nil {
			return err
		}
		r.Number(dst, i > 0 && c.numbers.ends[i-1], c.numbers.base[i])
		return nil
	})
}

// widenOffsets writes the new offsets of mode widen, and looks for what is wrong with the old ones on the way.
func (c *conversion) widenOffsets(ctx context.Context) error {
	return c.writeOffsets(ctx, func(w *worker, i int, dst []uint64) error {
		r, err := w.run(c.src.unit(i))
		if err != nil {
			return err
		}
		c.widening.Entries(dst, r.Entries[:r.Len()])
		c.inspected(r)
		return nil
	})
}

// writeOffsets writes every segment of the new offsets: entries sets the new entries of the i-th unit. What is not live is 0,
// and the entry of nextMulti is nextOffset.
func (c *conversion) writeOffsets(ctx context.Context, entries func(w *worker, i int, dst []uint64) error) error {
	units := c.src.units()
	perUnit := c.src.perUnit()
	return c.batches(ctx, units, func(w *worker, first, end int) error {
		var segments []segment
		for i := first; i < end; i++ {
			u := c.src.unit(i)
			segments = append(segments, segment{u.segment, u.pages})
		}
		return c.write(w, "offsets", slru.Short, segments, func(i int, window []byte) error {
			u := c.src.unit(first + i)
			dst := multixact.NewEntries(window)
			lo := u.lo - uint64(u.segment)*perUnit
			hi := lo + uint64(u.multis())
			clear(dst[:lo])
			if err := entries(w, first+i, dst[lo:hi]); err != nil {
				return err
			}
			clear(dst[hi:])
			if first+i == units-1 {
				dst[uint64(c.src.live.Next)-uint64(u.segment)*perUnit] = c.next
			}
			return nil
		})
	})
}
