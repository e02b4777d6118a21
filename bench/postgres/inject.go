package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Inject makes a pg_multixact that was made elsewhere the one of a stopped cluster: offsets and members are copied from
// multixactDir, the live range becomes [oldest, next) with its members ending at nextOffset, and the server is started and
// stopped once, which fills entries as it does. What is on disk then is what both pg_upgrade and this project convert.
//
// The installation must have pg_resetwal. It refuses an oldest of 0, and leaves a next or nextOffset of 0 as that in
// pg_control: the end at 2^32 is to be given as 0. The server reads the pages of next's entry and of the slot at nextOffset
// when it starts, unless that is the first of its page: they must be there. The datminmxid of every database becomes oldest,
// because pg_upgrade 19 refuses one that is older; the relminmxid of tables stay as they are, which only VACUUM looks at.
func (c *Cluster) Inject(multixactDir string, oldest, next, nextOffset uint32) error {
	ctx := context.Background()
	if err := c.Single("postgres", fmt.Sprintf("UPDATE pg_database SET datminmxid = '%d'", oldest)); err != nil {
		return err
	}
	reset := c.Command(ctx, "pg_resetwal", "-f", "-m", fmt.Sprintf("%d,%d", next, oldest), "-O", fmt.Sprint(nextOffset), c.Dir)
	if err := run(reset); err != nil {
		return err
	}
	for _, name := range []string{"offsets", "members"} {
		to := filepath.Join(c.Dir, "pg_multixact", name)
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		if err := os.CopyFS(to, os.DirFS(filepath.Join(multixactDir, name))); err != nil {
			return fmt.Errorf("putting a pg_multixact into %s: %w", c.Dir, err)
		}
		if err := os.Chmod(to, 0o700); err != nil {
			return err
		}
		if err := Own(to); err != nil {
			return err
		}
	}
	if err := c.Start(); err != nil {
		return err
	}
	return c.Stop()
}
