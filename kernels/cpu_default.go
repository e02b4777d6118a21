//go:build purego || !amd64

package kernels

func best() level { return generic }
