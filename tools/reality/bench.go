package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

type bench struct {
	seed    uint64
	speedup float64
	jobs    int
	span    time.Duration
	dir     string

	onEvents bool
	beside   int // busy processes that compete with a run
}

// outcome is what a run came to.
type outcome struct {
	Jobs struct{ Submitted, Completed int }
	JCT  struct {
		Mean, P90 float64
	} `json:"jct_seconds"`
	Makespan float64 `json:"makespan_seconds"`
	Restarts struct{ Total int }
	Wall     float64 `json:"wall_seconds"`

	busy float64 // part of the machine's processors that the run took
	load string  // of the machine, by all that ran on it, in its last minute
}

func (b *bench) build() error {
	if err := os.WriteFile(filepath.Join(b.dir, "reality.yaml"), config, 0o600); err != nil {
		return err
	}
	for program, path := range map[string]string{"quartet": "./cmd/quartet", "trainer": "./examples/trainer"} {
		c := exec.Command("go", "build", "-o", filepath.Join(b.dir, program), path)
		if text, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", program, err, text)
		}
	}
	return nil
}

// standIn is a training that is paced by the profile of its job. It takes several steps of the profile at once where they
// are short, and trains on few samples, so that two processors will do for 16 devices.
func (b *bench) standIn() string {
	words := []string{
		filepath.Join(b.dir, "trainer"), "-profile", "{profile}", "-speedup", "{speedup}", "-stand-in", "1000", "-least-step", "40ms",
		"-start-up", "30s", "-samples", "64", "-report-every", "100ms", "-checkpoint-every", "0",
	}
	text, _ := json.Marshal(words) // strings
	return string(text)
}

func (b *bench) simulate(name string, sets []string) (*outcome, error) {
	return b.quartet("simulate", name+"-simulated", sets)
}

func (b *bench) run(name string, sets []string) (o *outcome, err error) {
	stop, err := b.compete()
	defer stop()
	if err != nil {
		return nil, err
	}
	return b.quartet("run", name+"-run", append([]string{
		"backend=null",
		fmt.Sprintf("backend={type: local, config: {declared: true, speedup: %v, stand_in: %s}}", b.speedup, b.standIn()),
	}, sets...))
}

// compete starts busy neighbours, which stop ends.
func (b *bench) compete() (stop func(), err error) {
	var busy []*exec.Cmd
	stop = func() {
		for _, c := range busy {
			_ = c.Process.Kill() // one that has ended needs none
			_ = c.Wait()         // it was killed
		}
	}
	for range b.beside {
		c := exec.Command("sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			return stop, fmt.Errorf("start a busy neighbour: %w", err)
		}
		busy = append(busy, c)
	}
	return stop, nil
}

// quartet runs a command on the config, and reads what it came to.
func (b *bench) quartet(command, name string, sets []string) (*outcome, error) {
	args := []string{command, "-q", "--strict", "-o", "json", "-f", filepath.Join(b.dir, "reality.yaml"), "--out", b.dir}
	sets = append([]string{"name=" + name, fmt.Sprintf("seed=%d", b.seed), fmt.Sprintf("workload.config.jobs=%d", b.jobs)}, sets...)
	if b.onEvents {
		sets = append(sets, "round.on_events=true")
	}
	if b.span > 0 {
		sets = append(sets, fmt.Sprintf("workload.config.span=%v", b.span))
	}
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	if command == "run" {
		args = append(args, "--fresh")
	}
	c := exec.Command(filepath.Join(b.dir, "quartet"), args...)
	var problems strings.Builder
	c.Stderr = &problems
	text, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", command, name, err, &problems)
	}
	o := &outcome{}
	if err := json.Unmarshal(text, o); err != nil {
		return nil, fmt.Errorf("read the summary of %s: %w", name, err)
	}
	cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	o.busy = cpu.Seconds() / o.Wall / float64(runtime.NumCPU())
	load, err := os.ReadFile("/proc/loadavg")
	o.load, _, _ = strings.Cut(string(load), " ")
	return o, err
}
