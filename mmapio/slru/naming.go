package slru

import (
	"fmt"
	"strconv"
)

// A Naming is how the segments of a directory are named after their numbers (SlruFileName in PostgreSQL's slru.c).
type Naming uint8

const (
	// Short names have four upper-case hexadecimal digits, more where the number needs them, and at most six: pg_multixact/offsets
	// of every version, pg_multixact/members up to PostgreSQL 18.
	Short Naming = iota
	// Long names have fifteen digits: pg_multixact/members of PostgreSQL 19.
	Long
)

// Name is the file name of segment segno, which must be at least 0 and have no more digits than the naming allows.
func (n Naming) Name(segno int64) string {
	if n == Long {
		return fmt.Sprintf("%015X", segno)
	}
	return fmt.Sprintf("%04X", segno)
}

// Parse is the inverse of Name: ok only for a name that Name gives.
func (n Naming) Parse(name string) (segno int64, ok bool) {
	if n == Long && len(name) != 15 || n == Short && (len(name) < 4 || len(name) > 6) {
		return 0, false
	}
	segno, err := strconv.ParseInt(name, 16, 64)
	return segno, err == nil && segno >= 0 && n.Name(segno) == name
}
