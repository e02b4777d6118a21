package convert

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mxwiden/mxwiden/kernels"
	"github.com/mxwiden/mxwiden/kernels/multixact"
	"github.com/mxwiden/mxwiden/mmapio/slru"
)

// A Kind is what is wrong: a name that stays, for JSON. Its String is for people.
type Kind string

// The kinds of findings. Of the first four, rewrite refuses all and widen only a missing segment: the others it carries as
// they are.
const (
	MissingSegment Kind = "missing_segment"
	NegativeLength Kind = "negative_length"
	PastRange      Kind = "past_range"
	TwoUpdaters    Kind = "two_updaters"
	ShortSegment   Kind = "short_segment"
	NotLinked      Kind = "not_linked"
	KeptAtBoundary Kind = "kept_at_boundary"
	FreshCluster   Kind = "fresh_cluster"
	Forced         Kind = "forced"
)

var kindWords = map[Kind]string{
	MissingSegment: "members segment is missing",
	NegativeLength: "length is below zero",
	PastRange:      "members run past the live range",
	TwoUpdaters:    "more than one updating member",
	ShortSegment:   "segment is short",
	NotLinked:      "segment is copied, not linked",
	KeptAtBoundary: "multi is kept, where pg_upgrade loses it",
	FreshCluster:   "new cluster knows nothing of the old multis",
	Forced:         "refusal is overridden by --force",
}

func (k Kind) String() string { return kindWords[k] }

// A Finding is something that whoever runs the conversion should know: of a multi, of a segment, or of a cluster.
type Finding struct {
	Kind    Kind   `json:"kind"`
	Multi   uint32 `json:"multi,omitempty"`
	Segment string `json:"segment,omitempty"` // under pg_multixact, as "members/0A01"
	Page    int64  `json:"page,omitempty"`    // of the offsets SLRU, where Multi is given
	Text    string `json:"text"`
}

// String is the finding in a line.
func (f Finding) String() string {
	switch {
	case f.Multi != 0:
		return fmt.Sprintf("multi %d (offsets page %d): %s: %s", f.Multi, f.Page, f.Kind, f.Text)
	case f.Segment != "":
		return fmt.Sprintf("pg_multixact/%s: %s: %s", f.Segment, f.Kind, f.Text)
	}
	return fmt.Sprintf("%s: %s", f.Kind, f.Text)
}

// kept is how many findings of a kind are kept; beyond it they are only counted. shown is how many of them an error lists.
const (
	kept  = 1000
	shown = 20
)

// findings gathers what the workers find.
type findings struct {
	mu      sync.Mutex
	list    map[Kind][]Finding
	count   map[Kind]int
	missing map[string]missing // segments, by their names
}

// A missing segment is one finding, however many multis have members in it.
type missing struct {
	first  Finding
	multis int
}

func (f *findings) add(list ...Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil {
		f.list, f.count, f.missing = map[Kind][]Finding{}, map[Kind]int{}, map[string]missing{}
	}
	for _, found := range list {
		if found.Kind == MissingSegment {
			m, again := f.missing[found.Segment]
			if !again || found.Multi < m.first.Multi {
				m.first = found
			}
			m.multis++
			f.missing[found.Segment] = m
			f.count[found.Kind] = len(f.missing)
			continue
		}
		f.count[found.Kind]++
		same := append(f.list[found.Kind], found)
		if len(same) == 2*kept {
			same = lowest(same)
		}
		f.list[found.Kind] = same
	}
}

// lowest sorts findings of a kind and cuts them to those that are kept: which those are does not depend on who found what first.
func lowest(list []Finding) []Finding {
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Multi, b.Multi), cmp.Compare(a.Segment, b.Segment))
	})
	return list[:min(len(list), kept)]
}

// counts is how many there are of each kind; an empty object in JSON where there are none.
func (f *findings) counts() map[Kind]int {
	if f.count == nil {
		return map[Kind]int{}
	}
	return f.count
}

// sorted is the findings kept of some kinds, or of all, in the order of multis or segments within each kind.
func (f *findings) sorted(kinds ...Kind) []Finding {
	if len(kinds) == 0 {
		kinds = slices.Sorted(maps.Keys(f.count))
	}
	sorted := []Finding{} // a list in JSON, also when empty
	for _, kind := range kinds {
		list := slices.Clone(f.list[kind])
		if kind == MissingSegment {
			for _, m := range f.missing {
				list = append(list, Finding{Kind: kind, Segment: m.first.Segment,
					Text: fmt.Sprintf("multi %d (offsets page %d) has members in it, the first of %d that do", m.first.Multi, m.first.Page, m.multis)})
			}
		}
		sorted = append(sorted, lowest(list)...)
	}
	return sorted
}

// A RefusedError says why a cluster can't be converted: everything that is wrong, up to a limit.
type RefusedError struct {
	Path     string       `json:"refused"` // the old pg_multixact
	Mode     Mode         `json:"mode"`
	Findings []Finding    `json:"findings"`
	Count    map[Kind]int `json:"finding_counts"`
}

// Error lists the first findings and says how many there are of each kind.
func (e *RefusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "mode %s can't convert %s:", e.Mode, e.Path)
	for i, f := range e.Findings {
		if i == shown {
			break
		}
		fmt.Fprintf(&b, "\n  %s", f)
	}
	kinds := make([]string, 0, len(e.Count))
	missing := false
	for kind, n := range e.Count {
		kinds = append(kinds, fmt.Sprintf("%d: %s", n, kind))
		missing = missing || kind == MissingSegment
	}
	slices.Sort(kinds)
	fmt.Fprintf(&b, "\n  in all: %s", strings.Join(kinds, "; "))
	if missing {
		b.WriteString("\n  restore the missing segments from a backup of the old cluster")
	} else {
		b.WriteString("\n  --mode=widen carries such multis as they are; or find the rows that refer to them in the old cluster and rewrite these")
	}
	return b.String()
}

// refusal is an error if anything found keeps the mode from converting.
func (c *conversion) refusal() error {
	kinds := []Kind{MissingSegment}
	if c.Mode == Rewrite {
		kinds = append(kinds, NegativeLength, PastRange, TwoUpdaters)
	}
	e := &RefusedError{Path: filepath.Join(c.src.dir.Path, "pg_multixact"), Mode: c.Mode, Findings: c.sorted(kinds...), Count: map[Kind]int{}}
	if len(e.Findings) == 0 {
		return nil
	}
	for _, kind := range kinds {
		if c.count[kind] > 0 {
			e.Count[kind] = c.count[kind]
		}
	}
	return e
}

// inspect counts the steps of a run, of which the rising are its valid multis, and lists what is wrong with its offsets. It looks closely only where the counts or
// the bounds of the entries say that there is something to see.
func (s *source) inspect(r multixact.Run) (steps kernels.Steps, list []Finding) {
	steps = r.Steps()
	if steps.Falling > 0 || s.suspicious(r) {
		for i := range r.Len() {
			list = append(list, s.inspectMulti(r, i)...)
		}
	}
	return steps, list
}

// suspicious reports whether an entry of the run may be past the live range, or a member that it points to in a missing segment.
func (s *source) suspicious(r multixact.Run) bool {
	lowest, highest := r.Bounds()
	if highest == 0 {
		return false
	}
	wraps := s.live.MembersWrap() && lowest < s.live.First && highest >= s.live.First
	if wraps || s.live.Unwrap(uint64(highest)) > s.live.Unwrap(s.live.NextOffset) {
		return true
	}
	return len(s.members.Missing(s.memberSegment(uint64(lowest)), s.memberSegment(uint64(highest))+1)) > 0
}

func (s *source) memberSegment(offset uint64) int64 {
	return s.layout.MemberPage(offset) / slru.PagesPerSegment
}

// inspectMulti lists what is wrong with the i-th multi of a run.
func (s *source) inspectMulti(r multixact.Run, i int) (list []Finding) {
	multi := r.First + uint32(i)
	found := func(kind Kind, format string, args ...any) {
		list = append(list, Finding{Kind: kind, Multi: multi, Page: s.layout.OffsetPage(multi), Text: fmt.Sprintf(format, args...)})
	}
	offset, length := r.Extent(i)
	end := r.Entries[i+1]
	switch {
	case offset == 0 || end == 0 || end == offset:
		return nil // a hole
	case length == 0:
		found(NegativeLength, "offset %d, next offset %d, length %d", offset, end, int32(end-offset))
		return list
	case s.live.Unwrap(uint64(offset))+uint64(length) > s.live.Unwrap(s.live.NextOffset):
		found(PastRange, "offset %d, %d members, nextOffset %d", offset, length, s.live.NextOffset)
		return list
	}
	for lo, hi := range multixact.Slots(offset, length) {
		for _, gap := range s.members.Missing(s.memberSegment(lo), s.memberSegment(hi-1)+1) {
			for no := gap.Lo; no < min(gap.Hi, gap.Lo+kept); no++ { // a nonsensical length spans any number
				list = append(list, Finding{Kind: MissingSegment, Multi: multi, Page: s.layout.OffsetPage(multi), Segment: "members/" + slru.Short.Name(no)})
			}
		}
	}
	return list
}
