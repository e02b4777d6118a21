// Package multixact knows the pages of PostgreSQL's pg_multixact: their layout in both formats, the slow and obvious
// Reader that everything else is tested against, and the conversions of runs of pages, built on the primitives of
// package kernels. It does no I/O: callers hand it bytes, or a function that finds a page.
package multixact
