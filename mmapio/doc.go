// Package mmapio is all file access of the project, without a word of PostgreSQL: a [Reader] shows a numbered run of files as
// one range of bytes, a [Writer] fills files through one window, and both do it in one of two ways, by mapping the files or by
// staging them in an anonymous map. [Choose] measures which is faster where the files are. [Guard] turns a fault under a map
// into an error. [CarryFile] brings a file elsewhere unread, [SyncTree] waits until a folder is on disk.
package mmapio
