package pgdata

import "encoding/binary"

// A release is a major version, by what its pg_control says of itself.
type release struct {
	major            string
	control, catalog uint32 // PG_CONTROL_VERSION and CATALOG_VERSION_NO
}

// Positions in releases, for the bounds of fields.
const (
	v93 = iota
	v94
	v95
	v96
	v10
	v11
	v12
	v13
	v14
	v15
	v16
	v17
	v18
	v19
	always
)

// releases is every major version that has the multixacts of 9.3, in order. Where several have one control version, the catalog
// version tells them apart: that of 19 is its release candidate's.
var releases = [...]release{
	v93: {"9.3", 937, 201306121},
	v94: {"9.4", 942, 201409291},
	v95: {"9.5", 942, 201510051},
	v96: {"9.6", 960, 201608131},
	v10: {"10", 1002, 201707211},
	v11: {"11", 1100, 201809051},
	v12: {"12", 1201, 201909212},
	v13: {"13", 1300, 202007201},
	v14: {"14", 1300, 202107181},
	v15: {"15", 1300, 202209061},
	v16: {"16", 1300, 202307071},
	v17: {"17", 1700, 202406281},
	v18: {"18", 1800, 202506291},
	v19: {"19", 1905, 202610061},
}

// releaseOf is the position in releases of a pg_control with these version numbers: of several with the control version, the
// latest whose catalog is not later. (A fork may have moved the catalog version up.)
func releaseOf(control, catalog uint32) (v int, ok bool) {
	for i, r := range releases {
		if r.control == control && (!ok || catalog >= r.catalog) {
			v, ok = i, true
		}
	}
	return v, ok
}

// A field is one member of ControlFileData or of the CheckPoint in it. It lies at the next multiple of its size, as a 64-bit
// compiler puts it; a field of no natural size is bytes.
type field struct {
	name        string
	size        int
	from, until int                // the releases that have it, until excluded
	in          func(*Control) any // where it stands in a Control: *uint32, *uint64 or *State; nil if nowhere
	shift       int                // the bits of that value below this field's
	value       uint64             // what Encode writes if it stands nowhere
}

// fields is ControlFileData of all releases, in order, without the CRC that ends it (src/include/catalog/pg_control.h of
// each). CheckPoint begins and ends at a multiple of 8, as do its neighbours, so it needs no mark.
var fields = [...]field{
	{name: "system_identifier", size: 8, until: always, in: func(c *Control) any { return &c.SystemID }},
	{name: "pg_control_version", size: 4, until: always, in: func(c *Control) any { return &c.ControlVersion }},
	{name: "catalog_version_no", size: 4, until: always, in: func(c *Control) any { return &c.CatalogVersion }},
	{name: "state", size: 4, until: always, in: func(c *Control) any { return &c.State }},
	{name: "time", size: 8, until: always},
	{name: "checkPoint", size: 8, until: always, in: func(c *Control) any { return &c.Checkpoint }},
	{name: "prevCheckPoint", size: 8, until: v11},

	{name: "redo", size: 8, until: always, in: func(c *Control) any { return &c.Redo }},
	{name: "ThisTimeLineID", size: 4, until: always, in: func(c *Control) any { return &c.TimeLine }},
	{name: "PrevTimeLineID", size: 4, until: always, value: 1},
	{name: "fullPageWrites", size: 1, until: always, value: 1},
	{name: "wal_level", size: 4, from: v17, until: always, value: 1},
	{name: "logicalDecodingEnabled", size: 1, from: v19, until: always},
	{name: "nextXidEpoch", size: 4, until: v12, in: func(c *Control) any { return &c.NextXID }, shift: 32},
	{name: "nextXid", size: 4, until: v12, in: func(c *Control) any { return &c.NextXID }},
	{name: "nextXid", size: 8, from: v12, until: always, in: func(c *Control) any { return &c.NextXID }},
	{name: "nextOid", size: 4, until: always, in: func(c *Control) any { return &c.NextOID }},
	{name: "nextMulti", size: 4, until: always, in: func(c *Control) any { return &c.NextMulti }},
	{name: "nextMultiOffset", size: 4, until: v19, in: func(c *Control) any { return &c.NextOffset }},
	{name: "nextMultiOffset", size: 8, from: v19, until: always, in: func(c *Control) any { return &c.NextOffset }},
	{name: "oldestXid", size: 4, until: always, in: func(c *Control) any { return &c.OldestXID }},
	{name: "oldestXidDB", size: 4, until: always, in: func(c *Control) any { return &c.OldestXIDDB }},
	{name: "oldestMulti", size: 4, until: always, in: func(c *Control) any { return &c.OldestMulti }},
	{name: "oldestMultiDB", size: 4, until: always, in: func(c *Control) any { return &c.OldestMultiDB }},
	{name: "time", size: 8, until: always},
	{name: "oldestCommitTsXid", size: 4, from: v95, until: always},
	{name: "newestCommitTsXid", size: 4, from: v95, until: always},
	{name: "oldestActiveXid", size: 4, until: always},
	{name: "dataChecksumState", size: 4, from: v19, until: always},

	{name: "unloggedLSN", size: 8, until: always, value: 1000},
	{name: "minRecoveryPoint", size: 8, until: always},
	{name: "minRecoveryPointTLI", size: 4, until: always},
	{name: "backupStartPoint", size: 8, until: always},
	{name: "backupEndPoint", size: 8, until: always},
	{name: "backupEndRequired", size: 1, until: always},
	{name: "backupLabelRequired", size: 1, from: v19, until: always},
	{name: "wal_level", size: 4, until: always, value: 1},
	{name: "wal_log_hints", size: 1, from: v94, until: always},
	{name: "MaxConnections", size: 4, until: always, in: func(c *Control) any { return &c.MaxConnections }},
	{name: "max_worker_processes", size: 4, from: v94, until: always, in: func(c *Control) any { return &c.MaxWorkerProcesses }},
	{name: "max_wal_senders", size: 4, from: v12, until: always, in: func(c *Control) any { return &c.MaxWALSenders }},
	{name: "max_prepared_xacts", size: 4, until: always, in: func(c *Control) any { return &c.MaxPreparedXacts }},
	{name: "max_locks_per_xact", size: 4, until: always, in: func(c *Control) any { return &c.MaxLocksPerXact }},
	{name: "track_commit_timestamp", size: 1, from: v95, until: always},
	{name: "maxAlign", size: 4, until: always, value: 8},
	{name: "floatFormat", size: 8, until: always, value: 0x4132D68700000000}, // 1234567.0
	{name: "blcksz", size: 4, until: always, in: func(c *Control) any { return &c.BlockSize }},
	{name: "relseg_size", size: 4, until: always, value: 131072},
	{name: "slru_pages_per_segment", size: 4, from: v19, until: always, in: func(c *Control) any { return &c.SLRUPagesPerSegment }},
	{name: "xlog_blcksz", size: 4, until: always, value: 8192},
	{name: "xlog_seg_size", size: 4, until: always, value: 16 << 20},
	{name: "nameDataLen", size: 4, until: always, value: 64},
	{name: "indexMaxKeys", size: 4, until: always, value: 32},
	{name: "toast_max_chunk_size", size: 4, until: always, value: 1996},
	{name: "loblksize", size: 4, from: v94, until: always, value: 2048},
	{name: "enableIntTimes", size: 1, until: v10, value: 1},
	{name: "float4ByVal", size: 1, until: v13, value: 1},
	{name: "float8ByVal", size: 1, until: always, value: 1},
	{name: "data_checksum_version_init", size: 4, from: v19, until: always},
	{name: "data_checksum_version", size: 4, until: always},
	{name: "default_char_signedness", size: 1, from: v18, until: always, value: 1},
	{name: "mock_authentication_nonce", size: 32, from: v10, until: always},
}

// each calls f with every field of release v and its place in bytes, and returns the place of the CRC.
func each(v int, f func(fd *field, at int)) (crc int) {
	at := 0
	for i := range fields {
		fd := &fields[i]
		if v < fd.from || v >= fd.until {
			continue
		}
		if fd.size <= 8 {
			at = align(at, fd.size)
		}
		f(fd, at)
		at += fd.size
	}
	return align(at, 4)
}

func align(at, size int) int { return (at + size - 1) / size * size }

// load adds the field's bytes to its place in c.
func (fd *field) load(c *Control, b []byte) {
	if fd.in == nil {
		return
	}
	switch p := fd.in(c).(type) {
	case *State:
		*p = State(binary.NativeEndian.Uint32(b))
	case *uint32:
		*p = binary.NativeEndian.Uint32(b)
	case *uint64:
		if fd.size == 4 {
			*p |= uint64(binary.NativeEndian.Uint32(b)) << fd.shift
		} else {
			*p = binary.NativeEndian.Uint64(b)
		}
	}
}

// store writes the field's bytes from its place in c, or its value if it has none.
func (fd *field) store(c *Control, b []byte) {
	value := fd.value
	if fd.in != nil {
		switch p := fd.in(c).(type) {
		case *State:
			value = uint64(*p)
		case *uint32:
			value = uint64(*p)
		case *uint64:
			value = *p >> fd.shift
		}
	}
	switch fd.size {
	case 1:
		b[0] = byte(value)
	case 4:
		binary.NativeEndian.PutUint32(b, uint32(value))
	case 8:
		binary.NativeEndian.PutUint64(b, value)
	}
}
