package convert

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

// lastMembersPage is the page that the new members end with: the one of nextOffset where the new server expects it, in mode
// rewrite only as far as there are members, which is what pg_upgrade leaves.
func (c *conversion) lastMembersPage() int64 {
	if c.Mode == Rewrite {
		return c.src.layout.MemberPage(max(c.next-1, 1))
	}
	return c.src.layout.MemberPage(c.next)
}

// membersSegment is a segment of the new members, as long as it has to be.
func (c *conversion) membersSegment(no int64) segment {
	return segment{no, min(slru.PagesPerSegment, c.lastMembersPage()+1-no*slru.PagesPerSegment)}
}

// rebuildMembers writes the new members segments that are not carried: fill sets every byte of one.
func (c *conversion) rebuildMembers(ctx context.Context, fill func(w *worker, no int64, window []byte) error) error {
	return c.batches(ctx, len(c.rebuild), func(w *worker, lo, hi int) error {
		var segments []segment
		for _, no := range c.rebuild[lo:hi] {
			segments = append(segments, c.membersSegment(no))
		}
		return c.write(w, "members", slru.Long, segments, func(i int, window []byte) error {
			return fill(w, segments[i].no, window)
		})
	})
}

// rewriteMembers writes the one member that is kept of each valid multi.
func (c *conversion) rewriteMembers(ctx context.Context) error {
	layout := c.src.layout
	perSegment := uint64(layout.MembersPerPage()) * slru.PagesPerSegment
	return c.rebuildMembers(ctx, func(w *worker, no int64, window []byte) error {
		slot, end := max(uint64(no)*perSegment, 1), min(uint64(no+1)*perSegment, c.next)
		if end-slot == perSegment {
			layout.ClearUnused(window)
		} else {
			clear(window)
		}
		selection := c.selection(w)
		for u := c.numbers.unitOf(slot); slot < end; u++ {
			if first := c.numbers.straight[u]; first != 0 {
				n := min(end, c.numbers.base[u+1]) - slot
				if err := selection.Copy(window, no*slru.PagesPerSegment, slot, uint64(first)+slot-c.numbers.base[u], n); err != nil {
					return err
				}
				slot += n
				continue
			}
			r, err := w.run(c.src.unit(u))
			if err != nil {
				return err
			}
			at := multixact.Cursor{Multi: r.Skip(int(slot - c.numbers.base[u])), Slot: slot}
			if at, err = selection.Fill(window, no*slru.PagesPerSegment, r, at, end); err != nil {
				return err
			}
			slot = at.Slot
		}
		return nil
	})
}

// selection selects from the old members that w reads.
func (c *conversion) selection(w *worker) multixact.Selection {
	layout := c.src.layout
	return multixact.Selection{Layout: layout, Old: w.memberPage, TwoUpdaters: func(multi uint32) {
		c.add(Finding{Kind: TwoUpdaters, Multi: multi, Page: layout.OffsetPage(multi), Text: "pg_upgrade stops at it"})
	}}
}

// findUpdaters looks for multis with two updaters where the members are not going to be written, since offsets are wrong. Out of
// order, those could make multis of any length: no unit is read for longer than the live range is.
func (c *conversion) findUpdaters(ctx context.Context) error {
	s := c.src
	return c.parallel(ctx, s.units(), func(w *worker, i int) error {
		r, err := w.run(s.unit(i))
		if err != nil {
			return err
		}
		selection := c.selection(w)
		left := s.live.Unwrap(s.live.NextOffset) - uint64(s.live.First)
		for i := range r.Len() {
			_, length := r.Extent(i)
			if length == 0 || uint64(length) > left || len(s.inspectMulti(r, i)) > 0 {
				continue
			}
			left -= uint64(length)
			if err := selection.Check(r, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// splitMembers lists the new members segments. Mode rewrite rebuilds all. Mode widen carries those that keep their place, and
// rebuilds what is past the wrap, the one that the new server will write to, and those that are not of full size.
func (c *conversion) splitMembers() {
	s := c.src
	first, last := s.memberSegment(c.widening.First()), c.lastMembersPage()/slru.PagesPerSegment
	rebuilt := max(first, min(s.memberSegment(multixact.OffsetSpace), last))
	if c.Mode == Rewrite {
		first, rebuilt = 0, 0
	}
	for _, segment := range s.members.Segments(first, rebuilt) {
		if segment.Size == s.members.SegmentBytes() {
			c.carry = append(c.carry, segment.No)
		} else {
			c.rebuild = append(c.rebuild, segment.No)
		}
	}
	for no := rebuilt; no <= last; no++ {
		c.rebuild = append(c.rebuild, no)
	}
}

// widenMembers carries and rebuilds the members segments of mode widen.
func (c *conversion) widenMembers(ctx context.Context) error {
	s := c.src
	if err := c.carryMembers(ctx); err != nil {
		return err
	}
	return c.rebuildMembers(ctx, func(w *worker, no int64, window []byte) error {
		return c.widening.Members(s.layout, window, no*slru.PagesPerSegment, w.memberPage)
	})
}

// carryMembers brings old members segments to their new names without looking into them.
func (c *conversion) carryMembers(ctx context.Context) error {
	c.Verbose("carrying %d members segments by %s", len(c.carry), c.Copy)
	return c.batches(ctx, len(c.carry), func(_ *worker, lo, hi int) error {
		for _, no := range c.carry[lo:hi] {
			if err := c.carrySegment(no); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *conversion) carrySegment(no int64) error {
	from, size, _ := c.src.members.File(no)
	name := filepath.Join("members", slru.Long.Name(no))
	if c.Check {
		c.record(&c.carried, size)
		return nil
	}
	to := filepath.Join(c.place.build, name)
	err := mmapio.CarryFile(to, from, c.Copy, c.place.perm)
	if errors.Is(err, mmapio.ErrNotLinkable) {
		c.add(Finding{Kind: NotLinked, Segment: "members/" + slru.Short.Name(no), Text: err.Error()})
		err = mmapio.CarryFile(to, from, mmapio.AutoCopy, c.place.perm)
	}
	if err != nil {
		return err
	}
	// a segment that was cut while it was carried would be lost silently
	info, err := os.Stat(to)
	if err != nil {
		return err
	}
	if info.Size() != size {
		return fmt.Errorf("%s has changed: it had %d bytes, and %d when it was carried to %s; see who writes to the old cluster, and run again", from, size, info.Size(), to)
	}
	c.record(&c.carried, size)
	return nil
}
