package pgdata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
)

// controlBytes is the size of the file (PG_CONTROL_FILE_SIZE), of which the first 300 bytes or so are used.
const controlBytes = 8192

// What an error of ParseControl wraps, besides io.ErrUnexpectedEOF for a file that is too short.
var (
	ErrCRC            = errors.New("the checksum of pg_control is wrong")
	ErrByteOrder      = errors.New("pg_control is of a machine with the other byte order")
	ErrControlVersion = errors.New("unknown pg_control version")
)

// A State is what pg_control says a cluster is doing (DBState).
type State uint32

// The states.
const (
	StartingUp State = iota
	ShutDown
	ShutDownInRecovery
	ShuttingDown
	InCrashRecovery
	InArchiveRecovery
	InProduction
)

// String is the state in the words of pg_controldata.
func (s State) String() string {
	words := [...]string{"starting up", "shut down", "shut down in recovery", "shutting down", "in crash recovery",
		"in archive recovery", "in production"}
	if int(s) < len(words) {
		return words[s]
	}
	return fmt.Sprintf("unrecognized state %d", uint32(s))
}

// A Control is what pg_control says of a cluster, as far as a conversion needs it. A field that a version does not have is 0.
type Control struct {
	ControlVersion, CatalogVersion uint32

	SystemID uint64 // made up by initdb, kept by pg_resetwal
	State    State

	// The last checkpoint: where it is in the WAL (as are all LSNs, in bytes) and what it says.
	Checkpoint, Redo           uint64
	TimeLine                   uint32
	NextXID                    uint64 // epoch << 32 | xid
	NextOID                    uint32
	NextMulti                  uint32 // as it stands in the file, so 0 may stand for 1: see Counters
	NextOffset                 uint64 // 32 bits wide up to 18
	OldestXID, OldestXIDDB     uint32
	OldestMulti, OldestMultiDB uint32

	// Settings as of the last start.
	MaxConnections, MaxWorkerProcesses, MaxWALSenders, MaxPreparedXacts, MaxLocksPerXact uint32

	BlockSize           uint32 // bytes
	SLRUPagesPerSegment uint32 // from 19 on
}

// NewControl is what initdb of a major version ("9.3" to "19") leaves, without a system identifier and with no WAL.
func NewControl(major string) (Control, error) {
	for v, r := range releases {
		if r.major != major {
			continue
		}
		c := Control{
			ControlVersion: r.control, CatalogVersion: r.catalog, State: ShutDown, TimeLine: 1,
			NextXID: 3, NextOID: 16384, NextMulti: 1, OldestXID: 3, OldestXIDDB: 1, OldestMulti: 1, OldestMultiDB: 1,
			MaxConnections: 100, MaxWorkerProcesses: 8, MaxWALSenders: 10, MaxLocksPerXact: 64, BlockSize: 8192,
		}
		if v >= v19 {
			c.NextOffset, c.MaxLocksPerXact, c.SLRUPagesPerSegment = 1, 128, 32
		}
		return c, nil
	}
	return Control{}, fmt.Errorf("pg_control of version %q: %w", major, ErrControlVersion)
}

// ParseControl reads the bytes of a pg_control written on a 64-bit machine of this byte order. Errors wrap ErrControlVersion,
// ErrByteOrder, ErrCRC or io.ErrUnexpectedEOF and give the numbers found; they do not name the file.
func ParseControl(b []byte) (Control, error) {
	var c Control
	if len(b) < controlBytes {
		return c, fmt.Errorf("pg_control has %d bytes, not %d: %w", len(b), controlBytes, io.ErrUnexpectedEOF)
	}
	control, catalog := binary.NativeEndian.Uint32(b[8:]), binary.NativeEndian.Uint32(b[12:])
	v, ok := releaseOf(control, catalog)
	if !ok {
		if _, swapped := releaseOf(bits.ReverseBytes32(control), 0); swapped {
			return c, fmt.Errorf("%w: its version is %d (%#x) read here, %d there; convert it on such a machine", ErrByteOrder, control, control, bits.ReverseBytes32(control))
		}
		return c, fmt.Errorf("%w %d, catalog version %d: known are those of PostgreSQL %s to %s; another major version or a development release needs another mxwiden", ErrControlVersion, control, catalog,
			releases[0].major, releases[len(releases)-1].major)
	}
	end := each(v, func(fd *field, at int) { fd.load(&c, b[at:]) })
	if found, want := binary.NativeEndian.Uint32(b[end:]), checksum(v, b[:end]); found != want {
		return Control{}, fmt.Errorf("%w: it is %#08x, the contents make %#08x (pg_control version %d): the file is damaged, and to be restored from a backup, or of a 32-bit server, which is not supported",
			ErrCRC, found, want, control)
	}
	return c, nil
}

// Encode is the bytes of a whole pg_control file of c's version, with a valid CRC. What a Control does not hold is as initdb
// leaves it, or zero. It is nil if the version is unknown.
func (c Control) Encode() []byte {
	v, ok := releaseOf(c.ControlVersion, c.CatalogVersion)
	if !ok {
		return nil
	}
	b := make([]byte, controlBytes)
	end := each(v, func(fd *field, at int) { fd.store(&c, b[at:]) })
	binary.NativeEndian.PutUint32(b[end:], checksum(v, b[:end]))
	return b
}

// Major is the major version that writes such a pg_control, "9.3" to "19", and "" if its control version is unknown.
func (c Control) Major() string {
	v, ok := releaseOf(c.ControlVersion, c.CatalogVersion)
	if !ok {
		return ""
	}
	return releases[v].major
}

// Counters are where the multixacts of a cluster begin and end.
type Counters struct {
	NextMulti   uint32 `json:"nextMulti"`
	OldestMulti uint32 `json:"oldestMulti"`
	NextOffset  uint64 `json:"nextOffset"`
}

// Counters is the counters of the last checkpoint, with 1 for a multi of 0: there is no multi 0, and PostgreSQL takes it for 1.
func (c Control) Counters() Counters {
	return Counters{max(c.NextMulti, 1), max(c.OldestMulti, 1), c.NextOffset}
}

// String is the counters in the words of pg_resetwal's options.
func (c Counters) String() string {
	return fmt.Sprintf("next multi %d, oldest multi %d, next offset %d", c.NextMulti, c.OldestMulti, c.NextOffset)
}

// checksum is the CRC of a pg_control of release v: CRC-32C from 9.5 on.
func checksum(v int, b []byte) uint32 {
	if v >= v95 {
		return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	}
	return legacyCRC(b)
}

// legacyCRC is PostgreSQL's own CRC of before 9.5 (COMP_LEGACY_CRC32 in pg_crc.h): the table is that of zlib's CRC-32, for bits
// taken from the low end, but it is driven from the high end. It is the CRC of no polynomial.
func legacyCRC(b []byte) uint32 {
	crc := ^uint32(0)
	for _, x := range b {
		crc = crc32.IEEETable[byte(crc>>24)^x] ^ crc<<8
	}
	return ^crc
}
