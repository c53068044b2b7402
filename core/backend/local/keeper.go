package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/quartet-sched/quartet/core"
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
	LogBytes     int64 // that a file of output has room for; 0: for all
	LogFiles     int   // older files of output that are kept
	Limits       string
	CPUs         float64 // of a replica; 0: no limit
	MemoryBytes  int64   // of a replica; 0: no limit
}

// What is done about the limits of replicas.
const (
	limitsOff      = "off"
	limitsTry      = "try"      // the run goes on without those that cannot be set
	limitsRequired = "required" // the run fails then
)

const (
	bytesInMB = 1 << 20
	bytesInGB = 1 << 30
)

// bound puts bounds on what the replicas of a job write and use.
func (o *orders) bound(c *Config, j *core.JobSpec) {
	o.LogBytes, o.LogFiles = int64(c.LogMB)*bytesInMB, c.LogFiles
	if c.Limits != limitsOff {
		o.Limits, o.CPUs, o.MemoryBytes = c.Limits, j.CPUs, int64(j.MemoryGB*bytesInGB)
	}
}

func (o *orders) limited() bool { return o.CPUs > 0 || o.MemoryBytes > 0 }

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
	Outcome  outcome
	Reason   string   `json:",omitempty"`
	Codes    []int    // by rank; 128 + the signal for a replica that one ended, -1 for one that did not run
	Warnings []string `json:",omitempty"` // what else is worth knowing
}

// reserve is room on disk for the last word of a keeper, which a full disk would silence otherwise. The word is written over
// it in place, and gets its name when it is complete, so that half a word is none. File systems that never write in place,
// such as btrfs, do not keep the promise; a run without a last word is lost.
type reserve struct{ path string }

// The room for a last word without its codes, of which each takes up to longestCode characters. The texts in it are cut to
// longestText characters, which JSON may make longer.
const (
	roomForTexts = 16 << 10
	longestCode  = 5
	mostWarnings = 4
	longestText  = 500
)

func newReserve(path string, replicas int) (reserve, error) {
	r := reserve{path + ".reserve"}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return r, err
	}
	_, err = f.Write(make([]byte, roomForTexts+longestCode*replicas))
	return r, errors.Join(err, f.Close())
}

// become writes the last word.
func (r reserve) become(path string, e exit) error {
	e.Reason, e.Warnings = cut(e.Reason), e.Warnings[:min(len(e.Warnings), mostWarnings)]
	for i := range e.Warnings {
		e.Warnings[i] = cut(e.Warnings[i])
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Truncate(int64(len(text)) + 1)
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(r.path, path)
}

func cut(text string) string {
	if len(text) <= longestText {
		return text
	}
	return strings.ToValidUTF8(text[:longestText], "") + "..."
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

// longestFile is what a file of a run has at most, by far.
const longestFile = 64 << 20

func readFile(path string, into any) error {
	f, err := openPlain(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, longestFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %q: %w", path, err)
	}
	return nil
}

// openPlain opens a file in a folder that jobs can write to. It refuses what is no plain file: a pipe, for one, would hold up
// whoever opens it.
func openPlain(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is no plain file", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// environment is what a replica sees: what is handed down, what its job asks for, and what the scheduler tells it.
func environment(handedDown []string, own []workload.Variable, told ...string) []string {
	list := append([]string{}, handedDown...)
	for _, v := range own {
		list = append(list, v.Name+"="+v.Value)
	}
	return append(list, told...)
}
