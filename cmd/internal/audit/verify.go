// Package audit reads clusters without changing them: verify compares the two sides of a conversion.
package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/mxwiden/mxwiden/cmd/internal/convert"
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio/pgdata"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

// VerifyOptions is what is to be compared: the data directory of the old cluster, and a data directory of version 19 or an
// output folder of convert.
type VerifyOptions struct {
	OldDir, NewDir string
	Mode           convert.Mode // "" is found out
	Limit          int          // how many differences are kept
}

// A Difference is a multi, or a counter, that is not on the new side what the old side says it should be.
type Difference struct {
	Multi uint32 `json:"multi,omitempty"`
	Text  string `json:"text"`
}

func (d Difference) String() string {
	if d.Multi == 0 {
		return d.Text
	}
	return fmt.Sprintf("multi %d: %s", d.Multi, d.Text)
}

// Comparison is what verify found, and what --json prints.
type Comparison struct {
	Mode        convert.Mode `json:"mode"`
	Multis      uint64       `json:"multis"`
	Holes       uint64       `json:"holes"`
	Odd         uint64       `json:"odd_multis"` // carried by widen though no server can read them
	Members     uint64       `json:"old_members"`
	Differences uint64       `json:"differences"`
	First       []Difference `json:"first_differences"`
	limit       int
}

func (c *Comparison) differ(multi uint32, format string, args ...any) {
	c.Differences++
	if len(c.First) < c.limit {
		c.First = append(c.First, Difference{multi, fmt.Sprintf(format, args...)})
	}
}

// Verify compares every multi of the old live range with the new side, by the reference reader on both. The error says why it
// could not look; what it saw is in the Comparison.
func Verify(ctx context.Context, o VerifyOptions) (*Comparison, error) {
	old, err := openOld(o.OldDir)
	if err != nil {
		return nil, err
	}
	new, mode, err := openNew(o.NewDir, old.Layout.BlockSize())
	if err != nil {
		return nil, err
	}
	c := &Comparison{Mode: o.Mode, limit: o.Limit}
	if c.Mode == "" {
		c.Mode = mode
	}
	if c.Mode == "" {
		if c.Mode, err = guessMode(old, new); err != nil {
			return nil, err
		}
	}
	return c, c.compare(ctx, old, new)
}

func (c *Comparison) compare(ctx context.Context, old, new *multixact.Reader) error {
	if old.Range.Oldest != new.Range.Oldest || old.Range.Next != new.Range.Next {
		c.differ(0, "old live range is [%d, %d), new is [%d, %d)", old.Range.Oldest, old.Range.Next, new.Range.Oldest, new.Range.Next)
		return nil
	}
	w, err := widening(old)
	if err != nil {
		return err
	}
	expected, follows := uint64(1), false // where rewrite places the next valid multi, and whether it follows a valid one
	for multi := range old.Range.All() {
		if ctx.Err() != nil {
			return fmt.Errorf("stopped at multi %d: %w", multi, context.Cause(ctx))
		}
		c.Multis++
		members, oldErr := old.Multi(multi)
		switch {
		case oldErr == nil:
			c.Members += uint64(len(members))
		case multixact.Hole(oldErr):
			c.Holes++
		case errors.Is(oldErr, multixact.ErrLength), errors.Is(oldErr, multixact.ErrPast):
			c.Odd++
		default:
			return oldErr
		}
		if c.Mode == convert.Widen {
			err = c.widened(old, new, w, multi)
		} else {
			err = c.rewritten(new, multi, expected, follows || oldErr == nil)
		}
		if err != nil {
			return err
		}
		if follows = oldErr == nil; follows {
			expected++
			if err := c.members(new, multi, members); err != nil {
				return err
			}
		}
	}
	next := expected
	if c.Mode == convert.Widen {
		next = w.NextOffset()
	}
	if new.Range.NextOffset != next {
		c.differ(0, "new nextOffset is %d, expected %d", new.Range.NextOffset, next)
	}
	if entry, err := new.Entry(new.Range.Next); err != nil {
		return err
	} else if entry != next {
		c.differ(0, "the entry of nextMulti %d is %d, expected nextOffset %d", new.Range.Next, entry, next)
	}
	return nil
}

// widened compares the new offset of a multi with its place after widening.
func (c *Comparison) widened(old, new *multixact.Reader, w multixact.Widening, multi uint32) error {
	before, err := old.Entry(multi)
	if err != nil {
		return err
	}
	after, err := new.Entry(multi)
	if err != nil {
		return err
	}
	if want := w.Offset(before); after != want {
		c.differ(multi, "new offset is %d, expected %d (old offset %d)", after, want, before)
	}
	return nil
}

// rewritten compares the new offset of a multi with its place in the count of valid ones; a hole that follows a hole has none.
func (c *Comparison) rewritten(new *multixact.Reader, multi uint32, want uint64, set bool) error {
	after, err := new.Entry(multi)
	if err != nil {
		return err
	}
	if !set {
		want = 0
	}
	if after != want {
		c.differ(multi, "new offset is %d, expected %d", after, want)
	}
	return nil
}

// members compares the members of a multi with those that the new side has.
func (c *Comparison) members(new *multixact.Reader, multi uint32, want []multixact.Member) error {
	if c.Mode == convert.Rewrite {
		kept, ok := multixact.Select(want)
		if !ok {
			c.differ(multi, "has more than one updating member: no conversion of this mode is true")
			return nil
		}
		want = []multixact.Member{kept}
	}
	got, err := new.Multi(multi)
	if errors.Is(err, multixact.ErrXID) {
		err = nil // wanted or not, the comparison tells
	}
	switch {
	case errors.Is(err, slru.ErrMissing), errors.Is(err, multixact.ErrUnset), errors.Is(err, multixact.ErrLength), errors.Is(err, multixact.ErrPast):
		c.differ(multi, "can't be read on the new side: %v", err)
	case err != nil:
		return err
	case !slices.Equal(got, want):
		c.differ(multi, "new members are %v, expected %v", got, want)
	}
	return nil
}

// guessMode finds out from the nextOffset of the new side which conversion it is: rewrite counts the valid multis.
func guessMode(old, new *multixact.Reader) (convert.Mode, error) {
	w, err := widening(old)
	if err != nil {
		return "", err
	}
	if new.Range.NextOffset == w.NextOffset() {
		return convert.Widen, nil
	}
	return convert.Rewrite, nil
}

func widening(old *multixact.Reader) (multixact.Widening, error) {
	var slotZero uint32
	if old.Range.MembersWrap() {
		page, err := old.Members(0)
		if err != nil && !errors.Is(err, slru.ErrMissing) {
			return multixact.Widening{}, err
		}
		if err == nil {
			slotZero = multixact.MemberAt(page, 0).XID
		}
	}
	return multixact.NewWidening(old.Range, slotZero), nil
}

// openOld opens the old side for reading. The cluster has to be stopped.
func openOld(path string) (*multixact.Reader, error) {
	dir, err := pgdata.Open(path)
	if err != nil {
		return nil, err
	}
	if err := dir.CheckStopped(); err != nil {
		return nil, err
	}
	c := dir.Control
	if c.Major() == "19" {
		return nil, fmt.Errorf("old cluster %s is of version 19", path)
	}
	r := &multixact.Reader{Layout: multixact.Old(int(c.BlockSize)), Range: multixact.OldRange(c.OldestMulti, c.NextMulti, uint32(c.NextOffset))}
	if err := openPages(r, dir.OffsetsDir(), dir.MembersDir(), slru.Short); err != nil {
		return nil, err
	}
	r.Range.First, err = r.FindFirst()
	return r, err
}

// openNew opens the new side: a stopped cluster of version 19, or an output folder, whose manifest tells its counters and mode.
func openNew(path string, blockSize int) (*multixact.Reader, convert.Mode, error) {
	r := &multixact.Reader{Layout: multixact.New(blockSize)}
	offsets, members := filepath.Join(path, "pg_multixact", "offsets"), filepath.Join(path, "pg_multixact", "members")
	m, err := convert.ReadManifest(path)
	if err == nil {
		r.Range = multixact.NewRange(m.New.Oldest, m.New.Next, m.New.NextOffset)
		return r, m.Mode, openPages(r, offsets, members, slru.Long)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	dir, err := pgdata.Open(path)
	if errors.Is(err, pgdata.ErrNotDataDir) {
		return nil, "", fmt.Errorf("%w, or an output folder of convert, which holds a manifest", err)
	}
	if err != nil {
		return nil, "", err
	}
	if err := dir.CheckStopped(); err != nil {
		return nil, "", err
	}
	c := dir.Control
	if c.Major() != "19" {
		return nil, "", fmt.Errorf("new cluster %s is of version %s, not 19", path, c.Major())
	}
	if int(c.BlockSize) != blockSize {
		return nil, "", fmt.Errorf("new cluster %s has blocks of %d bytes, the old one of %d", path, c.BlockSize, blockSize)
	}
	r.Range = multixact.NewRange(c.OldestMulti, c.NextMulti, c.NextOffset)
	return r, "", openPages(r, offsets, members, slru.Long)
}

// openPages gives a reader the pages of its two SLRUs, one at a time.
func openPages(r *multixact.Reader, offsets, members string, naming slru.Naming) error {
	for _, side := range []struct {
		path   string
		naming slru.Naming
		pages  *multixact.Pages
	}{{offsets, slru.Short, &r.Offsets}, {members, naming, &r.Members}} {
		dir, err := slru.Open(side.path, side.naming, r.Layout.BlockSize())
		if err != nil {
			return err
		}
		page, held := make([]byte, r.Layout.BlockSize()), int64(-1)
		*side.pages = func(n int64) ([]byte, error) {
			if n == held {
				return page, nil
			}
			held = -1
			if err := dir.ReadPage(n, page); err != nil {
				return nil, err
			}
			held = n
			return page, nil
		}
	}
	return nil
}
