package pgdata

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Places in a slot's state file (ReplicationSlotOnDisk in slot.c, the same in every version), in bytes.
const (
	slotMagic    = 0x1051CA1
	slotName     = 16 // after magic, checksum, version and length
	slotDatabase = slotName + 64
	slotBytes    = slotDatabase + 4
)

// LogicalSlots is the names of the logical replication slots, which a pg_resetwal would break, in ascending order.
func (d *Dir) LogicalSlots() ([]string, error) {
	slots := filepath.Join(d.Path, "pg_replslot")
	entries, err := os.ReadDir(slots)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // 9.3 has none
	}
	if err != nil {
		return nil, fmt.Errorf("looking for replication slots: %w", err)
	}
	var logical []string
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasSuffix(entry.Name(), ".tmp") { // a slot half made or half dropped
			continue
		}
		name, database, err := readSlot(filepath.Join(slots, entry.Name(), "state"))
		if err != nil {
			return nil, fmt.Errorf("reading a replication slot: %w", err)
		}
		if database != 0 {
			logical = append(logical, name)
		}
	}
	return logical, nil
}

// readSlot gives the name of a slot and its database's OID, which is 0 for a physical one.
func readSlot(file string) (name string, database uint32, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	b := make([]byte, slotBytes)
	if _, err := io.ReadFull(f, b); err != nil {
		return "", 0, fmt.Errorf("%s: %w", file, err)
	}
	if magic := binary.NativeEndian.Uint32(b); magic != slotMagic {
		return "", 0, fmt.Errorf("%s begins with %#x, not with %#x", file, magic, slotMagic)
	}
	text, _, _ := bytes.Cut(b[slotName:slotDatabase], []byte{0})
	return string(text), binary.NativeEndian.Uint32(b[slotDatabase:]), nil
}
