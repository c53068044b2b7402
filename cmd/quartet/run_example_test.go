package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core/metrics"
)

// TestTheExampleOfTheReadme runs the commands that the README gives for real trainings: all three finish, and the elastic one
// is resized at least twice while its loss falls.
func TestTheExampleOfTheReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: trains for half a minute")
	}
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	commands := readmeCommands(t, filepath.Join(root, "README.md"))
	if len(commands) != 3 {
		t.Fatalf("the README gives %d commands, want those that build, run and submit", len(commands))
	}
	dir := t.TempDir()
	for _, name := range []string{"cmd", "core", "configs", "examples", "go.mod", "go.sum"} { // the folder of the example
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "bin")+"/", "./cmd/quartet", "./examples/trainer")
	build.Dir = root
	if want := []string{"go", "build", "-o", "bin/", "./cmd/quartet", "./examples/trainer"}; strings.Join(commands[0], " ") != strings.Join(want, " ") {
		t.Errorf("the README builds with %q, the test with %q", commands[0], want)
	}
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	quartet := func(args ...string) *exec.Cmd {
		c := exec.Command(filepath.Join(dir, args[0]), args[1:]...)
		c.Dir = dir
		return c
	}

	var said bytes.Buffer
	scheduler := quartet(append(strings.Fields(strings.Join(commands[1], " ")), "--metrics", "off", "-o", "json")...)
	var summary bytes.Buffer
	scheduler.Stdout, scheduler.Stderr = &summary, &said
	if err := scheduler.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- scheduler.Wait() }()
	defer scheduler.Process.Kill() //nolint:errcheck // it has ended, unless the test failed
	limit := time.Now().Add(5 * time.Minute)
	wait := func(what string, done func() bool) {
		t.Helper()
		for !done() {
			if time.Now().After(limit) {
				t.Fatalf("waited for %s in vain: %s", what, said.String())
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	wait("the socket", func() bool {
		_, err := os.Stat(filepath.Join(dir, "runs/local/live/quartet.sock"))
		return err == nil
	})
	if out, err := quartet(commands[2]...).Output(); err != nil || string(out) != "elastic\nsoftmax\nmlp\n" {
		t.Fatalf("submit: %v: %q", err, out)
	}
	wait("the trainings", func() bool {
		out, err := quartet("bin/quartet", "jobs", "--all", "-o", "csv").Output()
		return err == nil && bytes.Count(out, []byte(",completed,")) == 3
	})
	if err := scheduler.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatalf("run ended with %v: %s", err, said.String())
	}

	var s metrics.Summary
	if err := json.Unmarshal(summary.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if s.Jobs.Completed != 3 {
		t.Errorf("%d completed, want 3", s.Jobs.Completed)
	}
	log, err := os.ReadFile(filepath.Join(dir, "runs/local/live/jobs/elastic/logs/0.out"))
	if err != nil {
		t.Fatal(err)
	}
	replicas, losses := column(t, log, "replicas"), column(t, log, "loss")
	resizes := 0
	for i := 1; i < len(replicas); i++ {
		if replicas[i] != replicas[i-1] {
			resizes++
		}
	}
	t.Logf("resized %d times, loss from %v to %v", resizes, losses[0], losses[len(losses)-1])
	if resizes < 2 {
		t.Errorf("resized %d times, want at least twice: %v", resizes, replicas)
	}
	if first, last := losses[0], losses[len(losses)-1]; last >= first {
		t.Errorf("the loss went from %v to %v", first, last)
	}
}

// readmeCommands are the lines of the block of the README that begins with a build into bin/: without a trailing &, and up
// to the one that submits.
func readmeCommands(t *testing.T, path string) (commands [][]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\ngo build -o bin/")
	block, _, closed := strings.Cut("go build -o bin/"+rest, "```")
	if !found || !closed {
		t.Fatal("the README has no such block")
	}
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(strings.TrimSuffix(strings.TrimSpace(line), "&"))
		commands = append(commands, words)
		if len(words) > 1 && words[1] == "submit" {
			break
		}
	}
	return commands
}

// column lists the numbers that a log gives a name, as in name=1.5, in its order.
func column(t *testing.T, log []byte, name string) (list []float64) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^replicas.*\bloss=.*$`).FindAll(log, -1) {
		for field := range strings.FieldsSeq(string(m)) {
			if value, ok := strings.CutPrefix(field, name+"="); ok {
				x, err := strconv.ParseFloat(value, 64)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, x)
			}
		}
	}
	if len(list) < 2 {
		t.Fatalf("the log tells %s %d times", name, len(list))
	}
	return list
}
