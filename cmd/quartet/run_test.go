package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
)

// countdown is a context that is cancelled when it was asked so many times: a Ctrl-C at a known round.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestInterruptKeepsPartialResults(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	ctx := &countdown{Context: t.Context(), left: 160 + 2*30} // one for each generated job, two for each round
	if code := run(ctx, []string{"simulate", "--out", dir, "-o", "json"}, &stdout, &stderr); code != cli.ExitInterrupted {
		t.Fatalf("exit code %d, want %d: %s", code, cli.ExitInterrupted, &stderr)
	}
	if !regexp.MustCompile(`(?m)^error: interrupted at \d+[hm] \d+[ms]; the results are those up to then$`).MatchString(stderr.String()) {
		t.Errorf("stderr does not tell of the interrupt: %s", &stderr)
	}
	runDir := filepath.Join(dir, "default")
	var summary struct {
		Jobs struct{ Submitted, Unfinished int }
	}
	if err := json.Unmarshal(stdout.Bytes(), &summary); err != nil {
		t.Fatal(err)
	}
	if summary.Jobs.Unfinished == 0 || summary.Jobs.Submitted == 160 {
		t.Errorf("jobs %+v, want some unfinished and some never submitted", summary.Jobs)
	}
	jobs, err := os.ReadFile(filepath.Join(runDir, "jobs.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bytes.Count(jobs, []byte("\n")), summary.Jobs.Submitted+1; got != want {
		t.Errorf("jobs.csv has %d lines, want %d", got, want)
	}
	if _, err := quartet.ReadManifest(filepath.Join(runDir, quartet.ManifestFile)); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("manifest of an interrupted run is taken for a whole one: %v", err)
	}
	wantNoTemporaryFiles(t, runDir)
}

func TestInterruptBeforeTheRunWritesNothing(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	if code := run(&countdown{Context: t.Context()}, []string{"simulate", "--out", dir}, &stdout, &stderr); code != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d: %s", code, cli.ExitInterrupted, &stderr)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the folder holds %v, %v; want nothing", entries, err)
	}
}

func wantNoTemporaryFiles(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("temporary file %q is left", e.Name())
		}
	}
}

func TestUnwritableOutputFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"simulate", "--out", file}, &stdout, &stderr); code != cli.ExitFailed {
		t.Errorf("exit code %d, want %d: %s", code, cli.ExitFailed, &stderr)
	}
	if !strings.HasPrefix(stderr.String(), "error: make the output folder: ") {
		t.Errorf("stderr = %q", &stderr)
	}
}

type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, errors.New("closed pipe") }

func TestUnwritableStdoutFails(t *testing.T) {
	commands := map[string][]string{
		"simulate": {"simulate", "--out", t.TempDir()}, "policy list": {"policy", "list"}, "describe": {"policy", "describe", "las"},
		"version": {"version"}, "print": {"config", "print"}, "generate": {"trace", "generate"}, "schema": {"config", "schema"},
	}
	for name, args := range commands {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			if code := run(t.Context(), args, closedPipe{}, &stderr); code != cli.ExitFailed {
				t.Errorf("exit code %d, want %d: %s", code, cli.ExitFailed, &stderr)
			}
		})
	}
}
