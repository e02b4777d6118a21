package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
)

// A Member is a transaction of a multi as the server tells it. Mode is keysh, sh, fornokeyupd, forupd, nokeyupd or upd.
type Member struct {
	XID  uint32
	Mode string
}

// A Multi is what the server says about a multi: its members, or why it can't say.
type Multi struct {
	Members []Member
	Err     error
}

// multis asks for the members of many multis in one statement; a multi that fails gives a row with its error, one without
// members a row of nulls.
const multis = `CREATE OR REPLACE FUNCTION pg_temp.multis(wanted bigint[])
RETURNS TABLE (multi bigint, member bigint, how text, failure text)
LANGUAGE plpgsql AS $$
BEGIN
	FOREACH multi IN ARRAY wanted LOOP
		BEGIN
			RETURN QUERY SELECT multi, m.xid::text::bigint, m.mode, NULL FROM (SELECT) one
				LEFT JOIN pg_get_multixact_members(multi::text::xid) m ON true;
		EXCEPTION WHEN OTHERS THEN
			RETURN QUERY SELECT multi, NULL::bigint, NULL, SQLERRM;
		END;
	END LOOP;
END $$`

// Multis is what the running server says of each of the multis, by pg_get_multixact_members. Leave those out whose next
// entry is unset: servers up to 18 wait for it without end.
func (c *Cluster) Multis(ctx context.Context, wanted iter.Seq[uint32]) (map[uint32]Multi, error) {
	conn, err := c.Connect(ctx, "postgres")
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, multis); err != nil {
		return nil, fmt.Errorf("making a function that reads multis: %w", err)
	}
	list := []int64{}
	for multi := range wanted {
		list = append(list, int64(multi))
	}
	rows, err := conn.Query(ctx, "SELECT * FROM pg_temp.multis($1)", list)
	if err != nil {
		return nil, fmt.Errorf("reading multis: %w", err)
	}
	found := make(map[uint32]Multi, len(list))
	var multi int64
	var xid *int64
	var mode, failure *string
	_, err = pgx.ForEachRow(rows, []any{&multi, &xid, &mode, &failure}, func() error {
		m := found[uint32(multi)]
		switch {
		case failure != nil:
			m.Err = errors.New(*failure)
		case xid != nil:
			m.Members = append(m.Members, Member{uint32(*xid), *mode})
		}
		found[uint32(multi)] = m
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading multis: %w", err)
	}
	return found, nil
}

// Counters writes a checkpoint and is what the running server then has in pg_control: oldestMulti, nextMulti and nextOffset,
// as they stand there.
func (c *Cluster) Counters() (oldest, next uint32, nextOffset uint64, err error) {
	rows, err := c.Query("CHECKPOINT; SELECT oldest_multi_xid, next_multixact_id, next_multi_offset FROM pg_control_checkpoint()")
	if err != nil {
		return 0, 0, 0, err
	}
	_, err = fmt.Sscan(fmt.Sprint(rows[0][0], " ", rows[0][1], " ", rows[0][2]), &oldest, &next, &nextOffset)
	return oldest, next, nextOffset, err
}
