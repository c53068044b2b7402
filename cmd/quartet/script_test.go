package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/local"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata/script")

func TestMain(m *testing.M) {
	local.KeepIfAsked()
	local.StandInIfAsked(cli.WallClock{})
	actAsQuartetIfAsked()
	serveIfAsked()
	serveFaultyIfAsked()
	testscript.Main(m, map[string]func(){"quartet": main, "job": job, "trial": trial, "seeker": seeker})
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
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "follow": follow, "waitfor": waitFor, "await": await, "unfinished": unfinished},
		Setup:               followTools,
		Condition:           followable,
	})
}

// exits runs a program that must end with the given code: exits 2 quartet …
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT ...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// job is a program to run as a job: job fail-once FILE fails unless the file is there, which it makes; job wait FILE says
// that it has begun and waits for the file; job says FILE LINE ... writes lines to its scheduler as they are, and waits for the file before it is done.
func job() {
	switch _, err := os.Stat(os.Args[2]); {
	case os.Args[1] == "says":
		conn, failed := net.Dial("unix", os.Getenv(agent.SocketVariable))
		if failed != nil {
			os.Exit(9)
		}
		for _, line := range os.Args[3:] {
			fmt.Fprintln(conn, line)
		}
		for ; err != nil; _, err = os.Stat(os.Args[2]) {
			time.Sleep(5 * time.Millisecond)
		}
		fmt.Fprintln(conn, `{"done": {}}`)
		_ = conn.(*net.UnixConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn) // until the scheduler has read it all
	case os.Args[1] == "wait":
		fmt.Println("begun")
		for ; err != nil; _, err = os.Stat(os.Args[2]) {
			time.Sleep(5 * time.Millisecond)
		}
	case err != nil:
		_ = os.WriteFile(os.Args[2], nil, 0o600)
		os.Exit(1)
	}
}

// unfinished waits until a folder holds a file that a run has not finished, or is given that none is there: unfinished DIR
func unfinished(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: unfinished DIR")
	}
	for end := time.Now().Add(scriptPatience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		left, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), ".*-*"))
		ts.Check(err)
		if len(left) > 0 != neg {
			return
		}
		if neg {
			ts.Fatalf("%s holds %s", args[0], left)
		}
	}
	ts.Fatalf("%s holds no file that is not finished after %v", args[0], scriptPatience)
}

// scriptPatience is how long a script waits for what must come, on a busy machine too.
const scriptPatience = 2 * time.Minute

// waitFor waits until a file holds a text: waitfor FILE TEXT
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor FILE TEXT")
	}
	var text []byte
	for end := time.Now().Add(scriptPatience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var err error
		if text, err = os.ReadFile(ts.MkAbs(args[0])); err == nil && strings.Contains(string(text), args[1]) {
			return
		}
	}
	ts.Fatalf("%s does not hold %q after %v, but:\n%s", args[0], args[1], scriptPatience, text)
}

// await runs a program again and again until it exits with 0 and prints what matches: await PATTERN PROGRAM [ARGUMENT ...]
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await PATTERN PROGRAM [ARGUMENT ...]")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(scriptPatience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ts.Exec(args[1], args[2:]...) == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("%s does not print %q after %v, but:\n%s%s", strings.Join(args[1:], " "), args[0], scriptPatience, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
}
