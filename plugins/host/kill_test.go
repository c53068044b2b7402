package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/faulty"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// A process that is killed is gone at once, and so is all that was made for it.
func TestKill(t *testing.T) {
	temporary := shortDir(t)
	t.Setenv("TMPDIR", temporary)
	p, err := faultyBinary(serveFaulty).Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if p.Exited() || !alive(p.PID()) {
		t.Errorf("process %d has ended", p.PID())
	}
	for range 2 {
		p.Kill()
	}
	if !p.Exited() || p.End() != "signal: killed" {
		t.Errorf("exited: %v, %s", p.Exited(), p.End())
	}
	if left := faulty.Left("TMPDIR=" + temporary + "\x00"); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if left := faulty.Sockets(temporary); len(left) > 0 {
		t.Errorf("folders left: %v", left)
	}
}

// A process that is asked to end does so by itself.
func TestCloseAsksFirst(t *testing.T) {
	p, err := faultyBinary(serveFaulty).Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if p.End() != "exit status 0" {
		t.Errorf("it ended with %s", p.End())
	}
}

// Nothing is left of a program that does not start, or that refuses its settings.
func TestNothingIsLeftOfAFailedStart(t *testing.T) {
	settings := host.Component{
		Stage: stagev1.Stage_STAGE_ALLOCATION, Type: "faulty", ID: "allocation/faulty", Config: map[string]any{"fautl": "exit"},
	}
	for name, b := range map[string]host.Binary{
		"no program":      {Name: "faulty", Path: noProgram(t)},
		"no plugin":       {Name: "faulty", Path: program(t, 0o700, "exit 3")},
		"refuses to work": faultyBinary(serveFaulty),
	} {
		t.Run(name, func(t *testing.T) {
			temporary := shortDir(t)
			t.Setenv("TMPDIR", temporary)
			if session, err := b.Session(t.Context(), settings); err == nil {
				session.Close()
				t.Fatal("it started")
			}
			if left := faulty.Left("TMPDIR=" + temporary + "\x00"); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
			if left := faulty.Sockets(temporary); len(left) > 0 {
				t.Errorf("folders left: %v", left)
			}
		})
	}
}

// A start that is given up fails with the error of its context.
func TestAStartThatIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	b := host.Binary{Name: "faulty", Path: program(t, 0o700, "exec sleep 60")}
	if _, err := b.Start(ctx); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "faulty") {
		t.Errorf("error %v", err)
	}
}

// A pool serves its components in turn, the last ones at a time, and tells what is wrong with settings.
func TestAPoolTakesTurns(t *testing.T) {
	temporary := shortDir(t)
	t.Setenv("TMPDIR", temporary)
	starts := filepath.Join(t.TempDir(), "starts")
	path := program(t, 0o700, "echo start >> '"+starts+"'", "exec '"+os.Args[0]+"' "+serveFaulty)
	pool, err := host.NewPool(t.Context(), host.Binary{Name: "faulty", Path: path, StartTimeout: patience}, 2)
	if err != nil {
		t.Fatal(err)
	}
	told, err := pool.Describe()
	if err != nil {
		t.Fatal(err)
	}
	info, _ := told.Component(stagev1.Stage_STAGE_ALLOCATION, "faulty")
	f := host.PoolFactory[core.Allocator](pool, info)
	if len(f.Fields()) != 2 || len(f.Schema()) == 0 {
		t.Errorf("fields %v, schema %v", f.Fields(), f.Schema())
	}
	if _, problems := f.Decode(map[string]any{"fautl": ""}); len(problems) != 1 || !strings.Contains(problems.Error(), "fautl") {
		t.Errorf("problems %v", problems)
	}
	config, problems := f.Decode(map[string]any{"fault": ""})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	unknown := info
	unknown.Type = "unknown"
	if policy, err := host.PoolFactory[core.Allocator](pool, unknown).New(config, settings("allocation/unknown")); err == nil {
		t.Errorf("made %v of a type that there is not", policy)
	}
	if text := started(t, starts); text != "start\nstart\n" {
		t.Errorf("starts: %q", text)
	}
	var last core.Allocator
	for range 5 {
		policy, err := f.New(config, settings("allocation/faulty"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []core.Allocator{policy, last} {
			if p == nil {
				continue
			}
			if grants, err := decided(t, p); err != nil || len(grants) != 1 {
				t.Errorf("%v, error %v", grants, err)
			}
		}
		last = policy
	}
	pool.Close()
	if text := started(t, starts); text != "start\nstart\nstart\n" { // one more in place of that of the unknown type
		t.Errorf("starts: %q", text)
	}
	if left := faulty.Left("TMPDIR=" + temporary + "\x00"); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	if _, problems := f.Decode(nil); len(problems) > 0 { // a process that ended is started again
		t.Errorf("problems %v", problems)
	}
	pool.Close()
	if left := faulty.Left("TMPDIR=" + temporary + "\x00"); len(left) > 0 {
		t.Errorf("processes left after another start: %v", left)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, problems := f.Decode(nil); len(problems) != 1 || !strings.Contains(problems[0].Summary, "start it again: ") {
		t.Errorf("problems %v", problems)
	}
	if policy, err := f.New(config, settings("allocation/faulty")); err == nil || !strings.Contains(err.Error(), "start it again: ") {
		t.Errorf("%v, error %v", policy, err)
	}
}

// Of a pool that does not start, nothing is left.
func TestAPoolThatDoesNotStart(t *testing.T) {
	temporary := shortDir(t)
	t.Setenv("TMPDIR", temporary)
	marker := filepath.Join(t.TempDir(), "started")
	path := program(t, 0o700, "test -e '"+marker+"' && exit 3", "touch '"+marker+"'", "exec '"+os.Args[0]+"' "+serveFaulty)
	if _, err := host.NewPool(t.Context(), host.Binary{Name: "faulty", Path: path, StartTimeout: patience}, 3); err == nil {
		t.Error("it started")
	}
	if left := faulty.Left("TMPDIR=" + temporary + "\x00"); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}

// descriptors counts the open files of this process; -1 where the system does not tell.
func descriptors() int {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(files)
}

// Neither a process that ended nor one that did not start keeps files open.
func TestNoFileIsLeftOpen(t *testing.T) {
	for name, start := range map[string]func() (*host.Process, error){
		"ended":       func() (*host.Process, error) { return faultyBinary(serveFaulty).Start(t.Context()) },
		"not started": func() (*host.Process, error) { return host.Binary{Path: noProgram(t)}.Start(t.Context()) },
		"no plugin": func() (*host.Process, error) {
			return host.Binary{Path: program(t, 0o700, "exit 3")}.Start(t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			once := func() {
				if p, err := start(); err == nil {
					p.Close()
				}
			}
			once() // opens what stays open for all of them
			before := descriptors()
			once()
			eventually(t, func() error { // connections close by and by
				if now := descriptors(); now > before {
					return fmt.Errorf("%d files are open, %d before", now, before)
				}
				return nil
			})
		})
	}
}
