//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// kubeConfig is a config that only quartet-kubernetes can run.
const kubeConfig = "version: 1\nbackend: {type: kubernetes, config: {namespace: here}}\n"

// installed puts the program and, where it has a text, a script in the place of quartet-kubernetes into a folder each, and returns the command
// that starts the program with the latter on PATH.
func installed(t *testing.T, beside, onPath string) func(args ...string) *exec.Cmd {
	t.Helper()
	home, path := t.TempDir(), t.TempDir()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	place := func(folder, text string) {
		if text == "" {
			return
		}
		if err := os.WriteFile(filepath.Join(folder, "quartet-kubernetes"), []byte("#!/bin/sh\n"+text), 0o755); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	place(home, beside)
	place(path, onPath)
	if err := os.Link(own, filepath.Join(home, "quartet")); err != nil {
		text, err := os.ReadFile(own)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, "quartet"), text, 0o755); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "q") // the folder of a program is that of the file, not of the link
	if err := os.Symlink(filepath.Join(home, "quartet"), link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "kube.yaml"), []byte(kubeConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), link, args...)
		c.Dir, c.Env = home, append(os.Environ(), actAsQuartet+"=1", "PATH="+path+":/usr/bin:/bin")
		return c
	}
}

// What needs Kubernetes is handed over with its arguments, environment and standard input; everything else is not.
func TestHandOver(t *testing.T) {
	const tells = `printf '%s|' "$@"; echo "$MARK"; cat; exit 7` + "\n"
	for name, tc := range map[string]struct {
		beside, onPath string
		args           []string
		stdin          string
		want           string
	}{
		"a command":             {tells, "", []string{"kube", "manifests", "--image", "a b", "--help"}, "", "kube|manifests|--image|a b|--help|mark\n"},
		"a flag":                {tells, "", []string{"jobs", "--context", "prod"}, "", "jobs|--context|prod|mark\n"},
		"a job file":            {tells, "", []string{"submit", "--kubeconfig", "k", "-"}, "jobs: []\n", "submit|--kubeconfig|k|-|mark\njobs: []\n"},
		"a what-if":             {tells, "", []string{"plan", "--context", "c", "--submit", "-"}, "jobs: []\n", "plan|--context|c|--submit|-|mark\njobs: []\n"},
		"a config":              {tells, "", []string{"config", "validate", "-f", "kube.yaml"}, "", "config|validate|-f|kube.yaml|mark\n"},
		"a setting":             {tells, "", []string{"plan", "--set", "backend={type: kubernetes}", "-f", "default.yaml"}, "", "plan|--set|backend={type: kubernetes}|-f|default.yaml|mark\n"},
		"a config on stdin":     {tells, "", []string{"run", "-f", "-"}, kubeConfig, "run|-f|-|mark\n" + kubeConfig},
		"the settings":          {tells, "", []string{"policy", "describe", "kubernetes"}, "", "policy|describe|kubernetes|mark\n"},
		"on PATH":               {"", tells, []string{"kube", "crd"}, "", "kube|crd|mark\n"},
		"beside goes first":     {tells, "echo on PATH\n", []string{"kube", "crd"}, "", "kube|crd|mark\n"},
		"a completion":          {tells, "", []string{"__complete", "jobs", "--context", ""}, "", "__complete|jobs|--context||mark\n"},
		"the shards of a study": {tells, "", []string{"bench", "two.yaml", "--on", "kubernetes", "--image", "i", "--claim", "c", "--context", "x"}, "", "bench|two.yaml|--on|kubernetes|--image|i|--claim|c|--context|x|mark\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := installed(t, tc.beside, tc.onPath)(tc.args...)
			const two = "version: 1\naxes:\n  scheduler:\n    - {name: fifo, set: {pipeline.allocation.type: fifo}}\n    - {name: las, set: {pipeline.allocation.type: las}}\nseeds: {count: 1}\n"
			if err := os.WriteFile(filepath.Join(c.Dir, "two.yaml"), []byte(two), 0o600); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			c.Env = append(c.Env, "MARK=mark")
			c.Stdin, c.Stdout, c.Stderr = strings.NewReader(tc.stdin), &stdout, &stderr
			err := c.Run()
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.ExitCode() != 7 || stdout.String() != tc.want {
				t.Errorf("%v, %q, want exit code 7, %q; %s", err, &stdout, tc.want, &stderr)
			}
		})
	}
}

func TestNothingToHandOverTo(t *testing.T) {
	for name, tc := range map[string]struct{ onPath, want string }{
		"absent":   {"", "this program does not include Kubernetes, and quartet-kubernetes is neither beside it nor on PATH; build it with"},
		"a circle": {`exec "$SELF" "$@"` + "\n", "this quartet-kubernetes does not include Kubernetes; build it with"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, args := range [][]string{{"kube", "crd"}, {"jobs", "--context", "prod"}, {"simulate", "-f", "kube.yaml"}} {
				c := installed(t, "", tc.onPath)(args...)
				c.Env = append(c.Env, "SELF="+filepath.Join(c.Dir, "quartet"))
				text, err := c.CombinedOutput()
				exit, ok := errors.AsType[*exec.ExitError](err)
				if !ok || exit.ExitCode() != 2 || !strings.HasPrefix(string(text), tc.want) {
					t.Errorf("%s: %v, %q, want exit code 2, %q", args, err, text, tc.want)
				}
			}
		})
	}
	t.Run("a completion without it", func(t *testing.T) {
		t.Parallel()
		text, err := installed(t, "", "")("__complete", "jobs", "--context", "").CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, text)
		}
	})
}

// A signal reaches the program that was handed the command, in this process or, where standard input was read, in one of its own.
func TestSignalsAreHandedOver(t *testing.T) {
	const waits = `trap 'echo term; exit 9' TERM; echo ready; while :; do sleep 0.05; done` + "\n"
	for name, args := range map[string][]string{"in its place": {"kube", "crd"}, "in a process of its own": {"run", "-f", "-"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := installed(t, waits, "")(args...)
			c.Stdin = strings.NewReader(kubeConfig)
			stdout, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			var first [len("ready\n")]byte
			if _, err := stdout.Read(first[:]); err != nil {
				t.Fatal(err)
			}
			if err := c.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			var rest bytes.Buffer
			if _, err := rest.ReadFrom(stdout); err != nil {
				t.Fatal(err)
			}
			exit, ok := errors.AsType[*exec.ExitError](c.Wait())
			if !ok || exit.ExitCode() != 9 || rest.String() != "term\n" {
				t.Errorf("%v, %q", exit, &rest)
			}
		})
	}
}
