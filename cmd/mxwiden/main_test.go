package main

import (
	"os"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The programs that scripts run: mxwiden itself, and what makes and breaks clusters for it.
func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0") // under the race detector every program would end a second late
	testscript.Main(m, map[string]func(){
		"mxwiden": main,
		"synth":   synthMain,
		"control": controlMain,
		"poke":    pokeMain,
	})
}

// TestScripts runs every testdata/*.txt. Beside the commands of testscript they have
//
//	exits N program args...   runs a program that must end with exit status N
//	remember path             keeps the names, modes and contents of all there is at a path
//	unchanged path            fails if any of that has changed since
//
// and the programs synth, control and poke, which say themselves how they are used.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Values[remembered{}] = map[string]string{}
			env.Setenv("GORACE", os.Getenv("GORACE"))
			for _, name := range []string{"PGDATAOLD", "PGDATANEW", "PGBINNEW", "MXWIDEN_CPU"} {
				env.Setenv(name, "")
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":     exits,
			"remember":  remember,
			"unchanged": unchanged,
		},
		Condition: func(name string) (bool, error) { return name == "root" && os.Geteuid() == 0, nil },
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N program args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := exitStatus(ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// remembered is the key of a script's trees, by path.
type remembered struct{}

func remember(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: remember path")
	}
	tree, err := readTree(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Value(remembered{}).(map[string]string)[args[0]] = tree
}

func unchanged(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: unchanged path")
	}
	was, ok := ts.Value(remembered{}).(map[string]string)[args[0]]
	if !ok {
		ts.Fatalf("%s has not been remembered", args[0])
	}
	tree, err := readTree(ts.MkAbs(args[0]))
	ts.Check(err)
	if tree != was {
		ts.Fatalf("%s has changed: it was\n%sand is\n%s", args[0], was, tree)
	}
}
