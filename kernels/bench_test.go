package kernels

import (
	"fmt"
	"testing"
)

// pageEntries is the number of uint32 entries in a page of 8 kB; pageGroups is the number of groups in one.
const (
	pageEntries = 2048
	pageGroups  = 409
)

// Entries as they are in practice: most set and rising, by one or a few, with holes.
func benchEntries() []uint32 {
	src := make([]uint32, pageEntries+1)
	next := uint32(1)
	for i := range src {
		src[i] = next
		next += 1 + uint32(i*i)%3
		if i%61 == 0 {
			src[i] = 0
		}
	}
	return src
}

// What a page costs at least: copying what comes of it.
func BenchmarkCopy(b *testing.B) {
	src, dst := make([]uint64, pageEntries), make([]uint64, pageEntries)
	b.SetBytes(8 * pageEntries)
	for b.Loop() {
		copy(dst, src)
	}
}

func BenchmarkWiden(b *testing.B) {
	src, dst := benchEntries()[:pageEntries], make([]uint64, pageEntries)
	for l, name := range levels[:best()+1] {
		b.Run(name, func(b *testing.B) {
			useLevel(b, level(l))
			b.SetBytes(8 * pageEntries)
			for b.Loop() {
				Widen(dst, src, 1000, 1<<32)
			}
			perEntry(b)
		})
	}
}

func BenchmarkCountSteps(b *testing.B) {
	src := benchEntries()
	b.SetBytes(4 * pageEntries)
	for b.Loop() {
		CountSteps(src)
	}
	perEntry(b)
}

func BenchmarkSequence(b *testing.B) {
	dst := make([]uint64, pageEntries)
	b.SetBytes(8 * pageEntries)
	for b.Loop() {
		Sequence(dst, 1)
	}
	perEntry(b)
}

func BenchmarkMaskedSequence(b *testing.B) {
	src, dst := benchEntries(), make([]uint64, pageEntries)
	b.SetBytes(8 * pageEntries)
	for b.Loop() {
		MaskedSequence(dst, src, false, 1)
	}
	perEntry(b)
}

func BenchmarkIndexSet(b *testing.B) {
	src := make([]uint32, pageEntries)
	b.SetBytes(4 * pageEntries)
	for b.Loop() {
		IndexSet(src)
	}
	perEntry(b)
}

func BenchmarkCopyElements(b *testing.B) {
	src, dst := make([]byte, pageGroups*GroupBytes), make([]byte, pageGroups*GroupBytes)
	for shift := range GroupElements {
		b.Run(fmt.Sprintf("shift%d", shift), func(b *testing.B) {
			b.SetBytes(pageGroups * GroupBytes)
			for b.Loop() {
				CopyElements(dst, 0, src, shift, pageGroups*GroupElements-shift)
			}
		})
	}
}

func BenchmarkSelectTagged(b *testing.B) {
	page := make([]byte, pageGroups*GroupBytes)
	for _, n := range []int{2, 5, pageGroups * GroupElements} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				SelectTagged(Held{}, page, 0, n, 3)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gelements/s")
		})
	}
}

func perEntry(b *testing.B) {
	b.ReportMetric(pageEntries*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gentries/s")
}
