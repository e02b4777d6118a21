package kernels

import (
	"fmt"
	"os"
	"strings"
)

// EnvCPU is the environment variable that names the implementation to use instead of the best one.
const EnvCPU = "MXWIDEN_CPU"

// A level is a set of CPU features that kernels are written for. Each has the features of those before it, so that a
// kernel without a form of its own for a level uses the one below.
type level int

const (
	generic level = iota // plain Go
	avx2
	avx512 // AVX512F
)

var levels = [...]string{"generic", "avx2", "avx512"}

// active is what every kernel with vector forms switches on.
var active, override = choose(os.Getenv(EnvCPU))

// choose is the level of the given name. Without a name it is the best one, and also where the name is none that can be
// used here, which err then says.
func choose(name string) (chosen level, err error) {
	usable := levels[:best()+1]
	for l, n := range usable {
		if n == name {
			return level(l), nil
		}
	}
	if name != "" {
		err = fmt.Errorf("%s is %q, but what this machine can use is %s", EnvCPU, name, strings.Join(usable, ", "))
	}
	return best(), err
}

// Active is the name of the implementation in use.
func Active() string { return levels[active] }

// Available is the names that EnvCPU may have on this machine, the best one last.
func Available() []string { return append([]string(nil), levels[:best()+1]...) }

// Override says why the implementation that EnvCPU names is not in use. It is nil where it is, or where EnvCPU is empty.
func Override() error { return override }
