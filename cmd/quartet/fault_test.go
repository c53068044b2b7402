package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
)

// runner is a `quartet run` in a process of its own.
type runner struct {
	*exec.Cmd
	said bytes.Buffer
}

func startRun(t *testing.T, dir string, args ...string) *runner {
	t.Helper()
	s := &runner{Cmd: exec.Command("quartet", append([]string{"run", "--set", "name=r"}, args...)...)}
	s.Dir, s.Stderr = dir, &s.said
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Process.Kill()
		_ = s.Wait()
	})
	return s
}

// exits waits for the end of a run.
func (s *runner) exits(t *testing.T, want int) {
	t.Helper()
	limit := time.AfterFunc(2*time.Minute, func() { _ = s.Process.Kill() })
	defer limit.Stop()
	_ = s.Wait() // its code tells
	if got := s.ProcessState.ExitCode(); got != want {
		t.Fatalf("exit code %d, want %d:\n%s", got, want, s.said.String())
	}
}

// until waits for a condition.
func until(t *testing.T, what string, reached func() bool) {
	t.Helper()
	for range 12_000 {
		if reached() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain: %s", what)
}

func holds(path, text string) bool {
	got, err := os.ReadFile(path)
	return err == nil && bytes.Contains(got, []byte(text))
}

// policyProcess is that of the policy of a run, 0 when it has none.
func policyProcess(s *runner) int {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		line, err := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if err != nil || len(fields) < 2 || fields[1] != strconv.Itoa(s.Process.Pid) || bytes.HasPrefix(line, []byte("quartet-keeper")) {
			continue
		}
		if pid, err := strconv.Atoi(entry.Name()); err == nil && len(line) > 0 {
			return pid
		}
	}
	return 0
}

// left counts the processes that belong to the runs in a folder.
func left(dir string) (n int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if text, err := os.ReadFile("/proc/" + entry.Name() + "/environ"); err == nil && bytes.Contains(text, []byte("="+dir)) {
			n++
		}
	}
	return n
}

// TestThePolicyIsKilled kills the process of a policy in the middle of a round.
func TestThePolicyIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the local backend is for Linux; run the tests there")
	}
	for onFailure, code := range map[string]int{"fail": cli.ExitFailed, "restart": 0} {
		t.Run(onFailure, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("jobs.yaml", `{version: 1, jobs: [
				{name: long, command: [job, wait, go]}, {name: short, command: [job, wait, go-short]}, {name: third, command: ["true"]}]}`)
			args := []string{
				"--jobs", "jobs.yaml", "--set", "cluster.nodes=[{name: here, accelerator: gpu, devices: 2}]",
				"--set", fmt.Sprintf("pipeline.placement={type: first_fit, isolate: true, plugin: {on_failure: %s}}", onFailure),
			}
			s := startRun(t, dir, args...)
			until(t, "the jobs begin", func() bool {
				return holds(filepath.Join(dir, "runs/r/live/jobs/long/logs/0.out"), "begun") && holds(filepath.Join(dir, "runs/r/live/jobs/short/logs/0.out"), "begun")
			})
			policy := policyProcess(s)
			if policy == 0 {
				t.Fatal("the policy has no process")
			}
			if err := syscall.Kill(policy, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			write("go-short", "") // calls for a round
			until(t, "the job ends", func() bool {
				found, _ := filepath.Glob(filepath.Join(dir, "runs/r/live/jobs/short/run-1/exit.json"))
				return len(found) > 0
			})
			time.Sleep(200 * time.Millisecond) // the policy is asked
			if err := syscall.Kill(policy, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if code == 0 { // the scheduler goes on, and so does the one after it, which repeats all rounds with one process
				until(t, "the third job ends", func() bool {
					found, _ := filepath.Glob(filepath.Join(dir, "runs/r/live/jobs/third/run-1/exit.json"))
					return len(found) > 0
				})
				if err := s.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				s.exits(t, -1)
				write("go", "")
				startRun(t, dir, args...).exits(t, code)
			} else {
				s.exits(t, code)
			}
			want := map[string]string{"fail": "the process died", "restart": "restarting a plugin"}[onFailure]
			if !strings.Contains(s.said.String(), want) {
				t.Errorf("said nothing of %q:\n%s", want, s.said.String())
			}
			if code != 0 { // its jobs run on, and the next one goes on with them
				if !strings.Contains(s.said.String(), "1 jobs run on") || left(dir) == 0 {
					t.Errorf("%d processes are left; said %s", left(dir), s.said.String())
				}
				write("go", "")
				startRun(t, dir, args...).exits(t, 0)
			}
			if n := left(dir); n > 0 {
				t.Errorf("%d processes are left", n)
			}
			if !holds(filepath.Join(dir, "runs/r/jobs.csv"), "third") || holds(filepath.Join(dir, "runs/r/jobs.csv"), "unfinished") {
				t.Error("not all jobs finished")
			}
		})
	}
}
