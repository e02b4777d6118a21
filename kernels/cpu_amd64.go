//go:build !purego

package kernels

import "github.com/klauspost/cpuid/v2"

// best is the highest level whose features the CPU has and whose registers the operating system saves (XGETBV).
func best() level {
	switch {
	case cpuid.CPU.Supports(cpuid.AVX2, cpuid.AVX512F):
		return avx512
	case cpuid.CPU.Supports(cpuid.AVX2):
		return avx2
	}
	return generic
}
