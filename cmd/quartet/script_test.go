package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/scripttest"
	"github.com/quartet-sched/quartet/core/backend/local"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata/script")

func TestMain(m *testing.M) {
	local.KeepIfAsked()
	local.StandInIfAsked(cli.WallClock{})
	actAsQuartetIfAsked()
	serveIfAsked()
	serveFaultyIfAsked()
	testscript.Main(m, map[string]func(){"quartet": main, "job": scripttest.Job, "trial": trial, "seeker": seeker})
}

// actAsQuartet is set in the environment of a process of the test binary that is to be the program.
const actAsQuartet = "TEST_AS_QUARTET"

// actAsQuartetIfAsked is the program where a test says so.
func actAsQuartetIfAsked() {
	if os.Getenv(actAsQuartet) != "" {
		main()
	}
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": scripttest.Exits, "follow": follow, "waitfor": scripttest.WaitFor, "await": scripttest.Await, "unfinished": unfinished},
		Setup:               followTools,
		Condition:           followable,
	})
}

// unfinished waits until a folder holds a file that a run has not finished, or is given that none is there: unfinished DIR
func unfinished(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: unfinished DIR")
	}
	for end := time.Now().Add(scripttest.Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		left, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), ".*-*"))
		ts.Check(err)
		if len(left) > 0 != neg {
			return
		}
		if neg {
			ts.Fatalf("%s holds %s", args[0], left)
		}
	}
	ts.Fatalf("%s holds no file that is not finished after %v", args[0], scripttest.Patience)
}
