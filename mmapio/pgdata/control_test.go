package pgdata

import (
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The places are worked out by hand from each version's pg_control.h. Those from 10 on are also what real servers write
// (TestControlOfRealServers), and the order of 9.3's was checked against a published dump of a 9.3 server's file.
func TestLayoutsAgainstTheHeaders(t *testing.T) {
	names := []string{"nextXid", "nextMulti", "nextMultiOffset", "oldestMulti", "MaxConnections", "max_locks_per_xact", "blcksz"}
	for v, want := range map[int][]int{ // the last is the CRC
		v93: {72, 80, 84, 96, 168, 176, 192, 228},
		v94: {72, 80, 84, 96, 172, 184, 200, 240},
		v95: {72, 80, 84, 96, 180, 192, 216, 256},
		v96: {72, 80, 84, 96, 180, 192, 216, 256},
		v10: {72, 80, 84, 96, 180, 192, 216, 288},
		v11: {64, 72, 76, 88, 172, 184, 208, 280},
		v12: {64, 76, 80, 92, 180, 196, 216, 288},
		v19: {72, 84, 88, 104, 188, 204, 224, 308},
	} {
		at := map[string]int{}
		crc := each(v, func(fd *field, place int) { at[fd.name] = place })
		var got []int
		for _, name := range names {
			got = append(got, at[name])
		}
		if got = append(got, crc); !slices.Equal(got, want) {
			t.Errorf("%s: %q and the CRC at %v, want %v", releases[v].major, names, got, want)
		}
	}
}

// The sums are what a real server 18 stores for the words of a tsquery, the one place left that has this CRC.
func TestLegacyCRC(t *testing.T) {
	for word, want := range map[string]uint32{"a": 0x17b7bebc, "123456789": 0xc40ed0b0, "multixact": 0x507e41a7} {
		if got := legacyCRC([]byte(word)); got != want {
			t.Errorf("%q: %#x, want %#x", word, got, want)
		}
	}
}

// filled is a Control of release v with a value of its own in every field that the release has.
func filled(t *testing.T, v int) Control {
	t.Helper()
	c := Control{}
	value := uint64(0x0102030405060708)
	each(v, func(fd *field, _ int) {
		if fd.in == nil {
			return
		}
		value += 0x1111
		place := reflect.ValueOf(fd.in(&c)).Elem()
		if fd.size == 4 && fd.shift == 0 {
			place.SetUint(place.Uint()>>32<<32 | value&0xFFFFFFFF)
		} else {
			place.SetUint(value)
		}
	})
	c.ControlVersion, c.CatalogVersion = releases[v].control, releases[v].catalog
	return c
}

func TestEncodeThenParse(t *testing.T) {
	for v, r := range releases {
		want := filled(t, v)
		b := want.Encode()
		if len(b) != controlBytes {
			t.Errorf("%s: %d bytes", r.major, len(b))
		}
		if got, err := ParseControl(b); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", r.major, got, err, want)
		}
		if want.Major() != r.major {
			t.Errorf("%s: taken for %s", r.major, want.Major())
		}
	}
}

func TestNewControlIsOfItsVersion(t *testing.T) {
	for _, r := range releases {
		c, err := NewControl(r.major)
		if err != nil || c.Major() != r.major || c.State != ShutDown || c.BlockSize != 8192 {
			t.Errorf("%s: %+v, %v", r.major, c, err)
		}
	}
	if c, err := NewControl("9.2"); !errors.Is(err, ErrControlVersion) || (c != Control{}) {
		t.Errorf("9.2: %+v, %v", c, err)
	}
}

func TestCatalogVersionTellsReleasesApart(t *testing.T) {
	for _, c := range []struct {
		control, catalog uint32
		major            string
	}{
		{942, 201409291, "9.4"}, {942, 201510050, "9.4"}, {942, 201510051, "9.5"}, {942, 0, "9.4"},
		{1300, 202007201, "13"}, {1300, 202107180, "13"}, {1300, 202107181, "14"}, {1300, 202209061, "15"}, {1300, 999999999, "16"},
		{1234, 202209061, ""},
	} {
		if got := (Control{ControlVersion: c.control, CatalogVersion: c.catalog}).Major(); got != c.major {
			t.Errorf("control version %d, catalog version %d: %q, want %q", c.control, c.catalog, got, c.major)
		}
	}
}

func TestEveryUsedByteIsUnderTheCRC(t *testing.T) {
	for v, r := range releases {
		b := filled(t, v).Encode()
		end := each(v, func(*field, int) {})
		for at := 16; at < end+4; at++ { // before it, the version numbers, whose damage is found otherwise
			b[at] ^= 0x10
			if _, err := ParseControl(b); !errors.Is(err, ErrCRC) {
				t.Fatalf("%s: byte %d is wrong: %v", r.major, at, err)
			}
			b[at] ^= 0x10
		}
	}
}

func TestParseControlRefuses(t *testing.T) {
	good := filled(t, v18).Encode()
	change := func(f func(b []byte)) []byte {
		b := slices.Clone(good)
		f(b)
		return b
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
		says string
	}{
		"empty":             {nil, io.ErrUnexpectedEOF, "0 bytes"},
		"truncated":         {good[:controlBytes-1], io.ErrUnexpectedEOF, "8191 bytes"},
		"the other order":   {change(func(b []byte) { slices.Reverse(b[8:12]) }), ErrByteOrder, "1800 there"},
		"8.4":               {change(func(b []byte) { binary.NativeEndian.PutUint32(b[8:], 843) }), ErrControlVersion, "version 843, catalog version 202506291"},
		"a version to come": {change(func(b []byte) { binary.NativeEndian.PutUint32(b[8:], 2000) }), ErrControlVersion, "version 2000"},
		"damaged":           {change(func(b []byte) { b[100]++ }), ErrCRC, "1800"},
	} {
		got, err := ParseControl(c.b)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || (got != Control{}) {
			t.Errorf("%s: %+v, %v; want %v that says %q", name, got, err, c.want, c.says)
		}
	}
	if b := (Control{ControlVersion: 843}).Encode(); b != nil {
		t.Errorf("an unknown version is encoded to %d bytes", len(b))
	}
}

func FuzzParseControl(f *testing.F) {
	for _, r := range releases {
		c, _ := NewControl(r.major)
		f.Add(c.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseControl(b)
		if err != nil {
			return
		}
		if again, err := ParseControl(c.Encode()); err != nil || again != c {
			t.Errorf("%+v is %+v, %v, after it was encoded and parsed", c, again, err)
		}
	})
}

func TestCountersHaveNoMultiZero(t *testing.T) {
	c := Control{NextMulti: 0, OldestMulti: 0, NextOffset: 0}
	if got, want := c.Counters(), (Counters{1, 1, 0}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestStatesInTheWordsOfPgControldata(t *testing.T) {
	for state, want := range map[State]string{ShutDown: "shut down", ShutDownInRecovery: "shut down in recovery", InProduction: "in production", 7: "unrecognized state 7"} {
		if state.String() != want {
			t.Errorf("%d: %q, want %q", uint32(state), state, want)
		}
	}
}
