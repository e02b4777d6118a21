// Package mmapio does all access to files: it reads and writes long runs of small files of one size as contiguous
// ranges of memory, carries files unread, and makes what was written last.
//
// A [Reader] shows a numbered run of files as one range of bytes, a [Writer] fills new files through one window, so
// that no caller meets a border between files. Both have two [Backing]s that differ in speed alone: Map maps the files
// themselves, Stage copies them through anonymous memory. [Choose] measures which is faster on the file systems at
// hand. Whoever touches the memory of a map does so within [Guard], which makes an error of a memory fault.
//
// [CarryFile] brings a file to a new place without looking into it; [SyncTree], [WriteFileAtomic] and [MkdirPerm] make
// a result durable and give it its owner and mode. What is read is only ever opened read-only. Temporary folders are
// called .probe-*, in case a process dies before it removes one.
//
// What the bytes mean, and how files are named, is for the packages that use this one.
package mmapio
