package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// schema is the table whose rows refer to the multis of Consume. Only the key has an index: an update that leaves it alone
// is a NO KEY UPDATE.
const schema = `CREATE TABLE IF NOT EXISTS mxwiden (id bigint PRIMARY KEY, v int NOT NULL, note text)`

// alone makes multis in one session: every subtransaction that locks a row once more is one more member of the row's next
// multi. The rows end in six ways: held by two lockers; by three; by three and an updater that rolled back; updated with
// their key; updated without it, so that the new row keeps the lockers; and deleted.
const alone = `DO $$
DECLARE k bigint;
BEGIN
	FOR k IN %d .. %d LOOP
		PERFORM FROM mxwiden WHERE id = k FOR KEY SHARE;
		BEGIN PERFORM FROM mxwiden WHERE id = k FOR SHARE; EXCEPTION WHEN raise_exception THEN END;
		IF k %% 6 IN (1, 2) THEN
			BEGIN PERFORM FROM mxwiden WHERE id = k FOR UPDATE; EXCEPTION WHEN raise_exception THEN END;
		END IF;
		BEGIN
			CASE k %% 6
				WHEN 2 THEN UPDATE mxwiden SET v = v + 1 WHERE id = k; RAISE EXCEPTION 'rolled back';
				WHEN 3 THEN UPDATE mxwiden SET id = -id WHERE id = k;
				WHEN 4 THEN UPDATE mxwiden SET v = v + 1 WHERE id = k;
				WHEN 5 THEN DELETE FROM mxwiden WHERE id = k;
				ELSE NULL;
			END CASE;
		EXCEPTION WHEN raise_exception THEN END;
	END LOOP;
END $$`

// What the four sessions of together do to a row of either kind, in turn.
var sharing = [2][4]string{
	{"SELECT FROM mxwiden WHERE id = $1 FOR KEY SHARE", "SELECT FROM mxwiden WHERE id = $1 FOR SHARE",
		"SELECT FROM mxwiden WHERE id = $1 FOR KEY SHARE", "SELECT FROM mxwiden WHERE id = $1 FOR SHARE"},
	{"SELECT FROM mxwiden WHERE id = $1 FOR KEY SHARE", "SELECT FROM mxwiden WHERE id = $1 FOR KEY SHARE",
		"UPDATE mxwiden SET v = v + 1 WHERE id = $1", "SELECT FROM mxwiden WHERE id = $1 FOR KEY SHARE"},
}

const (
	batch = 2000 // rows a transaction of alone: the server keeps its subtransactions in memory
	crowd = 8    // rows that sessions hold together: half of them commit
)

// Consume makes n multis or more (some 2.5 in each of n rows) on a running server of any version from 10 on. The rows of the
// table mxwiden refer to them afterwards. Most are made by the subtransactions of one session, a few by four sessions that hold
// the same rows together. It can be called again for more.
func Consume(ctx context.Context, c *Cluster, n int) error {
	conn, err := c.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, schema); err != nil {
		return fmt.Errorf("making a table to lock: %w", err)
	}
	var first int64
	if err := conn.QueryRow(ctx, "SELECT coalesce(max(abs(id)), 0) + 1 FROM mxwiden").Scan(&first); err != nil {
		return fmt.Errorf("looking for rows to lock: %w", err)
	}
	last := first + int64(n) - 1
	_, err = conn.Exec(ctx, "INSERT INTO mxwiden SELECT id, 0, 'row ' || id FROM generate_series($1::bigint, $2::bigint) id",
		first, last+crowd)
	if err != nil {
		return fmt.Errorf("making rows to lock: %w", err)
	}
	for ; first <= last; first += batch {
		if _, err := conn.Exec(ctx, fmt.Sprintf(alone, first, min(first+batch-1, last))); err != nil {
			return fmt.Errorf("locking rows in subtransactions: %w", err)
		}
	}
	return errors.Join(c.together(ctx, last+1, last+crowd/2, "COMMIT"), c.together(ctx, last+crowd/2+1, last+crowd, "ROLLBACK"))
}

// together makes multis by four sessions that hold each row from first to last at the same time, and end as said.
func (c *Cluster) together(ctx context.Context, first, last int64, end string) error {
	var sessions [4]*pgx.Conn
	for i := range sessions {
		conn, err := c.Connect(ctx, "postgres")
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
			return err
		}
		sessions[i] = conn
	}
	for id := first; id <= last; id++ {
		for i, conn := range sessions {
			if _, err := conn.Exec(ctx, sharing[id%2][i], id); err != nil {
				return fmt.Errorf("locking row %d in session %d: %w", id, i, err)
			}
		}
	}
	for _, conn := range sessions {
		if _, err := conn.Exec(ctx, end); err != nil {
			return err
		}
	}
	return nil
}

// Rows is the table of Consume: key, value, note and xmax of every row that is seen, in the order of the key.
func Rows(c *Cluster) ([][]string, error) {
	return c.Query("SELECT id, v, note, xmax FROM mxwiden ORDER BY id")
}
