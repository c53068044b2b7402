package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
)

// A run of real processes is recorded as a simulation is: when it is interrupted, and from its beginning when it goes on.
func TestTimelineOfRealProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the local backend is for Linux; run the tests there")
	}
	dir := t.TempDir()
	jobs := filepath.Join(dir, "jobs.yaml")
	if err := os.WriteFile(jobs, []byte(`version: 1
jobs:
  - {name: quick, command: [sleep, "0.2"], replicas: 2}
  - {name: long, command: [sh, -c, "until [ -e `+dir+`/go ]; do sleep 0.05; done"]}
  - {name: fails, command: ["false"]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"run", "-q", "--jobs", jobs, "--out", dir, "--name", "real", "--metrics", "off",
		"--set", "cluster.nodes=[{name: here, accelerator: gpu, devices: 3}]", "--set", "output.write=[jobs,timeline,usage,training]",
	}
	check := func(code int, ends ...string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if code == cli.ExitInterrupted {
			go func() {
				defer cancel()
				awaitStates(ctx, t, dir, "completed", "running", "failed")
			}()
		}
		if got := run(ctx, args, &stdout, &stderr); got != code {
			t.Fatalf("exit code %d, want %d: %s", got, code, &stderr)
		}
		files := map[string]string{}
		for _, name := range []string{"jobs.csv", "timeline.csv", "nodes.csv", "usage.csv", "training.csv"} {
			text, err := os.ReadFile(filepath.Join(dir, "real", name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(text)
		}
		checkTimeline(t, files["jobs.csv"], [4]string{files["timeline.csv"], files["nodes.csv"], files["usage.csv"], files["training.csv"]}, 0)
		for _, end := range ends {
			if !strings.Contains(files["timeline.csv"], ","+end+"\n") {
				t.Errorf("no stay ended so: %s\n%s", end, files["timeline.csv"])
			}
		}
	}
	check(cli.ExitInterrupted, "finished", "failed", "unfinished")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	check(cli.ExitOK, "finished", "failed", "interrupted")
}

// awaitStates waits until the jobs of the run "real" are in these states, in the order of the jobs, or the context ends.
func awaitStates(ctx context.Context, t *testing.T, dir string, want ...string) {
	const patience = 2 * time.Minute // on a busy machine too
	for end := time.Now().Add(patience); ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		var stdout, stderr bytes.Buffer
		var got []string
		if run(ctx, []string{"jobs", "--all", "--run", "real", "--out", dir, "-o", "csv"}, &stdout, &stderr) == cli.ExitOK {
			const state = 4 // column
			for line := range strings.Lines(stdout.String()) {
				got = append(got, strings.Split(line, ",")[state])
			}
		}
		if len(got) > 0 && slices.Equal(got[1:], want) {
			return
		}
		if time.Now().After(end) {
			t.Errorf("jobs are %q after %v, want %q; %s", got, patience, want, &stderr)
			return
		}
	}
}
