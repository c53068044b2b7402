package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/operate"
)

// needsProcesses skips a test that runs processes on this machine for seconds where it cannot, or is not to.
func needsProcesses(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: runs processes")
	}
	if runtime.GOOS != "linux" {
		t.Skip("the local backend is for Linux; run the tests there")
	}
}

// liveRun is a run on this machine that goes on beside a test.
type liveRun struct {
	*testing.T
	dir  string
	ends chan struct{}
}

// goLive runs a config named live until the test ends.
func goLive(t *testing.T, config string) *liveRun {
	t.Helper()
	dir, err := os.MkdirTemp("", "live") // the folder of a test may be too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "live.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &liveRun{t, dir, make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(l.ends)
		var stdout, stderr bytes.Buffer
		if code := run(ctx, []string{"run", "-q", "-f", file, "--out", dir, "--metrics", "off"}, &stdout, &stderr); code != cli.ExitOK && code != cli.ExitInterrupted {
			t.Errorf("run: exit code %d: %s", code, &stderr)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-l.ends
		_ = os.RemoveAll(dir)
	})
	l.tell("nodes", "--wait", "1m")
	return l
}

// ask is what a command says of the run; an error where there is none, or no more.
func (l *liveRun) ask(args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	if code := run(l.Context(), append(args, "-q", "--out", l.dir, "--run", "live"), &stdout, &stderr); code != cli.ExitOK {
		return nil, fmt.Errorf("%q: exit code %d: %s", args, code, &stderr)
	}
	return stdout.Bytes(), nil
}

// tell is ask of a run that goes on.
func (l *liveRun) tell(args ...string) []byte {
	l.Helper()
	text, err := l.ask(args...)
	if err != nil {
		l.Fatal(err)
	}
	return text
}

// read reads the JSON of a command.
func (l *liveRun) read(into any, args ...string) {
	l.Helper()
	if err := json.Unmarshal(l.tell(append(args, "-o", "json")...), into); err != nil {
		l.Fatal(err)
	}
}

// await asks again and again until something is so.
func (l *liveRun) await(what string, so func() bool) {
	l.Helper()
	for range 1200 {
		if so() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	l.Fatalf("it does not come to be that %s: %s", what, l.tell("jobs"))
}

// seats are those that jobs hold, by name.
func (l *liveRun) seats() map[string]string {
	l.Helper()
	var jobs []struct{ Job, Seats string }
	l.read(&jobs, "jobs")
	seats := map[string]string{}
	for _, j := range jobs {
		seats[j.Job] = j.Seats
	}
	return seats
}

// running awaits that so many jobs run.
func (l *liveRun) running(n int) {
	l.Helper()
	l.await(fmt.Sprintf("%d jobs run", n), func() bool {
		running := 0
		for _, seats := range l.seats() {
			if seats != "" {
				running++
			}
		}
		return running == n
	})
}

// health awaits that the rounds know a node to be in a state.
func (l *liveRun) health(node, state string) {
	l.Helper()
	l.await(node+" is "+state, func() bool {
		var nodes []struct{ Node, Health string }
		l.read(&nodes, "nodes")
		for _, n := range nodes {
			if n.Node == node {
				return n.Health == state
			}
		}
		return false
	})
}

// submit submits sleeping jobs, one after another, and waits until so many jobs run.
func (l *liveRun) submit(running int, sizes map[string]int, names ...string) {
	l.Helper()
	file := filepath.Join(l.dir, "jobs.yaml")
	for _, name := range names {
		text := fmt.Sprintf("version: 1\njobs: [{name: %s, command: [sleep, \"3600\"], replicas: %d}]\n", name, sizes[name])
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			l.Fatal(err)
		}
		l.tell("submit", file)
	}
	l.running(running)
}

// drainAsPlanned plans the drain of a node, drains it, and holds what became of the jobs against the plan. It returns how many were named.
func (l *liveRun) drainAsPlanned(node string) int {
	l.Helper()
	before := l.seats()
	var plan operate.WhatIfFile
	l.read(&plan, "plan", "--drain", node, "--draws", "2", "--horizon", "1m")
	named := map[string]string{}
	for _, m := range plan.NextRound {
		if m.With != nil && m.With.On != m.Holds {
			named[m.Job] = m.With.On
		}
	}
	l.tell("drain", node)
	l.health(node, "draining")
	moved := map[string]string{}
	for job, seats := range l.seats() {
		if before[job] != seats {
			moved[job] = seats
		}
	}
	if diff := cmp.Diff(named, moved); diff != "" {
		l.Errorf("drain of %s: named (-) and moved or stopped (+):\n%s", node, diff)
	}
	return len(named)
}

func (l *liveRun) undrain(node string, running int) {
	l.Helper()
	l.tell("undrain", node)
	l.health(node, "ready")
	if running > 0 {
		l.running(running)
	}
}

// A drain moves or stops the jobs that a plan of it named, and puts them where it said, and touches no others.
func TestDrainIsAsPlanned(t *testing.T) {
	needsProcesses(t)
	const config = `
version: 1
name: live
cluster: {nodes: [{name: n, count: 4, accelerator: gpu, devices: 4}]}
round: {interval: 1h, on_events: true}
`
	for name, pipeline := range map[string]string{
		"fifo":     "{allocation: {type: fifo}}",
		"las":      "{allocation: {type: las}}",
		"tiresias": "{allocation: {type: tiresias, config: {thresholds: [0.001]}}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := goLive(t, config+"workload: {type: submitted}\nbackend: {type: local}\npipeline: "+pipeline+"\n")
			// Those on two devices come first: nobody overtakes another in what he attained while all run.
			sizes := map[string]int{"wide-1": 2, "wide-2": 2, "wide-3": 2, "one-1": 1, "one-2": 1, "one-3": 1, "one-4": 1, "one-5": 1, "one-6": 1, "late-1": 1, "late-2": 1, "late-3": 1, "late-4": 1}
			l.submit(9, sizes, "wide-1", "wide-2", "wide-3", "one-1", "one-2", "one-3", "one-4", "one-5", "one-6")
			named := l.drainAsPlanned("n-0") // there is room elsewhere
			l.undrain("n-0", 9)
			l.submit(12, sizes, "late-1", "late-2", "late-3")
			named += l.drainAsPlanned("n-1") // there is not
			l.undrain("n-1", 12)
			l.submit(12+1, sizes, "late-4")
			named += l.drainAsPlanned("n-2")
			named += l.drainAsPlanned("n-3") // while another is drained
			if named < 8 {
				t.Errorf("%d moves and stops were named: the drains ask too little", named)
			}
		})
	}
	t.Run("elastic", func(t *testing.T) {
		t.Parallel()
		l := goLive(t, config+`workload: {type: generated, config: {jobs: 12, span: 1s, applications: true}}
backend: {type: local, config: {declared: true, speedup: 1}}
pipeline: {allocation: {type: pollux}, placement: {type: proposed}, elasticity: {job: {type: goodput}}}
`)
		l.running(12)
		named := l.drainAsPlanned("n-0")
		l.undrain("n-0", 0)
		named += l.drainAsPlanned("n-1")
		named += l.drainAsPlanned("n-2")
		if named < 3 {
			t.Errorf("%d moves and stops were named: the drains ask too little", named)
		}
	})
}
