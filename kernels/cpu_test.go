package kernels

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// With childEnv set the test binary says what it uses, and does nothing else.
const childEnv = "KERNELS_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		fmt.Printf("%s\n%v\n", Active(), Override())
		return
	}
	os.Exit(m.Run())
}

// atEveryLevel runs test once with each implementation that this CPU can run.
func atEveryLevel(t *testing.T, test func(t *testing.T)) {
	for l, name := range levels {
		t.Run(name, func(t *testing.T) {
			if level(l) > best() {
				t.Skipf("this machine can't run %s: its best is %s", name, levels[best()])
			}
			useLevel(t, level(l))
			test(t)
		})
	}
}

func useLevel(tb testing.TB, l level) {
	was := active
	active = l
	tb.Cleanup(func() { active = was })
}

func child(t *testing.T, name string) (active, override string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1", EnvCPU+"="+name, "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	active, override, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return active, override
}

func TestEnvironmentPicksEachAvailableImplementation(t *testing.T) {
	names := Available()
	if names[0] != "generic" || len(names) != int(best())+1 {
		t.Fatalf("available: %v", names)
	}
	for _, name := range names {
		if active, override := child(t, name); active != name || override != "<nil>" {
			t.Errorf("%s=%s: %s is active, and override says %s", EnvCPU, name, active, override)
		}
	}
}

func TestEnvironmentThatNamesNothingUsableLeavesTheBest(t *testing.T) {
	names := Available()
	bestName := names[len(names)-1]
	unusable := append([]string{"sse9", "AVX2", "generic "}, levels[best()+1:]...)
	for _, name := range unusable {
		active, override := child(t, name)
		if active != bestName || !strings.Contains(override, fmt.Sprintf("%q", name)) || !strings.Contains(override, bestName) {
			t.Errorf("%s=%s: %s is active, and override says %s", EnvCPU, name, active, override)
		}
	}
	if active, override := child(t, ""); active != bestName || override != "<nil>" {
		t.Errorf("%s empty: %s is active, and override says %s", EnvCPU, active, override)
	}
}
