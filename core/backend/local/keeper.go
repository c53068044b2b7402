package local

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quartet-sched/quartet/core/workload"
)

// keeperVariable makes a program that calls KeepIfAsked the keeper of the run in the folder it names.
const keeperVariable = "QUARTET_KEEPER"

// The files of a run's folder.
const (
	ordersFile = "orders.json"
	exitFile   = "exit.json"
)

// orders say what a keeper is to start.
type orders struct {
	Command      []string
	Dir          string
	Replicas     []replica // by rank
	GraceSeconds float64
}

type replica struct {
	Environment []string
	Out, Err    string // files that its output is appended to
}

// outcome is how a run ended.
type outcome string

const (
	finished outcome = "finished" // every replica exited with 0
	failed   outcome = "failed"
	stopped  outcome = "stopped" // as it was told to
	lost     outcome = "lost"    // nobody knows: the keeper was killed, or never began
)

// exit is the last word of a keeper.
type exit struct {
	Outcome outcome
	Reason  string `json:",omitempty"`
	Codes   []int  // by rank; 128 + the signal for a replica that one ended, -1 for one that did not run
}

// writeFile replaces a file as a whole, and returns once it is on disk.
func writeFile(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(append(text, '\n')); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func readFile(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %q: %w", path, err)
	}
	return nil
}

// environment is what a replica sees: what is handed down, what its job asks for, and what the scheduler tells it.
func environment(handedDown []string, own []workload.Variable, told ...string) []string {
	list := append([]string{}, handedDown...)
	for _, v := range own {
		list = append(list, v.Name+"="+v.Value)
	}
	return append(list, told...)
}
