// Package scripttest holds what the scripts of several packages of commands have in common: commands to wait and to compare exit
// codes, and a job to run.
package scripttest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quartet-sched/quartet/core/agent"
)

// Patience is how long a script waits for what must come, on a busy machine too.
const Patience = 2 * time.Minute

// Exits runs a program that must end with the given exit code: exits 2 quartet …
func Exits(ts *testscript.TestScript, neg bool, args []string) {
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

// WaitFor waits until a file holds a text: waitfor FILE TEXT
func WaitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor FILE TEXT")
	}
	var text []byte
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var err error
		if text, err = os.ReadFile(ts.MkAbs(args[0])); err == nil && strings.Contains(string(text), args[1]) {
			return
		}
	}
	ts.Fatalf("%s does not hold %q after %v, but:\n%s", args[0], args[1], Patience, text)
}

// Await runs a program again and again until it exits with 0 and prints what matches: await PATTERN PROGRAM [ARGUMENT ...]
func Await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await PATTERN PROGRAM [ARGUMENT ...]")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ts.Exec(args[1], args[2:]...) == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
	}
	ts.Fatalf("%s does not print %q after %v, but:\n%s%s", strings.Join(args[1:], " "), args[0], Patience, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
}

// Job is a program to run as a job: job fail-once FILE fails unless the file is there, which it makes; job wait FILE says
// that it has begun and waits for the file; job says FILE LINE ... writes lines to its scheduler as they are, and waits for the file before it is done.
func Job() {
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

// PassMutants passes on which change of the code tools/mutants has chosen: a script has no other variables of the environment.
func PassMutants(env *testscript.Env) error {
	for _, name := range []string{"QUARTET_MUTANT", "QUARTET_MUTANT_TRACE"} {
		if value, set := os.LookupEnv(name); set {
			env.Setenv(name, value)
		}
	}
	return nil
}
