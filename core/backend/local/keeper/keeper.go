// Package keeper is the process that looks after one run of a job on this machine. It starts the replicas, all or none, holds
// them within their limits, takes their output to files, ends what they leave behind, and leaves a final report. It outlives
// whoever started it, who finds it again by its identity. A run has a folder, which holds all that the two exchange,
// but for signals.
package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/internal/inputfile"
)

// Variable makes a program that calls IfAsked the keeper of the run in the folder it names.
const Variable = "QUARTET_KEEPER"

// The files of a run's folder.
const (
	ordersFile = "orders.json"
	exitFile   = "exit.json"
	begunFile  = "begun" // is there when replicas may have been started
	stopFile   = "stop"  // is there when the agent was asked to stop
)

// Orders say what a keeper is to start.
type Orders struct {
	Command      []string  // program and arguments of every replica
	Dir          string    // working directory of the replicas
	Replicas     []Replica // replicas of the job, by rank
	GraceSeconds float64   // seconds between asking the agent, SIGTERM and SIGKILL
	LogBytes     int64     // that a file of output has room for; 0: for all
	LogFiles     int       // older files of output that are kept
	Limits       string    // what is done when those below cannot be set
	CPUs         float64   // of a replica; 0: no limit
	MemoryBytes  int64     // of a replica; 0: no limit
}

// What is done when limits of replicas cannot be set.
const (
	LimitsTry      = "try"      // the run goes on without them
	LimitsRequired = "required" // the run fails
)

// NoLimits is how a warning begins about limits that could not be set.
const NoLimits = "the replicas have no limits"

const bytesInMB = 1 << 20

func (o *Orders) limited() bool { return o.CPUs > 0 || o.MemoryBytes > 0 }

// Replica is a process that a keeper starts.
type Replica struct {
	Environment []string // as NAME=value; nothing else is inherited
	Out, Err    string   // files that its output is appended to
}

// Outcome is how a run ended.
type Outcome string

// The ways to end. A keeper never says Lost or NeverBegan: those are for whoever finds no final report.
const (
	Finished Outcome = "finished" // every replica exited with 0
	Failed   Outcome = "failed"
	Stopped  Outcome = "stopped" // as it was asked to
	Lost     Outcome = "lost"    // nobody knows: the keeper was killed
	// NeverBegan is a run whose keeper was not asked to begin, or was killed before: no replica was started.
	NeverBegan Outcome = "never_began"
)

// Exit is the final report of a keeper: how its run ended.
type Exit struct {
	Outcome  Outcome  // how the run ended
	Reason   string   `json:",omitempty"` // why it failed, in a sentence; empty otherwise
	Codes    []int    // by rank; 128 + the signal for a replica that one ended, -1 for one that did not run
	Warnings []string `json:",omitempty"` // what else is worth knowing
	// Failed are the ranks of the replicas that ended a run which failed: the first one, and those that were killed together with it. None from an older keeper.
	Failed []int `json:",omitempty"`
	// Killed says that these were ended by signals of others, and did not fail by themselves.
	Killed bool `json:",omitempty"`
}

// reserve is room on disk for the final report of a keeper, which a full disk would silence otherwise. The report is written over
// it in place, and gets its name when it is complete, so that half a report is none. File systems that never write in place,
// such as btrfs, do not keep the promise; a run without a final report is lost.
type reserve struct{ path string }

const reserved = ".reserve"

// The room for a final report without its codes and ranks, of which each takes up to longestCode characters. The texts in it are cut to
// longestText characters, which JSON may make longer.
const (
	roomForTexts = 16 << 10
	longestCode  = 5
	mostWarnings = 4
	longestText  = 500
)

func newReserve(path string, replicas int) (reserve, error) {
	r := reserve{path + reserved}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return r, err
	}
	_, err = f.Write(make([]byte, roomForTexts+2*longestCode*replicas))
	return r, errors.Join(err, f.Close())
}

// become writes the final report.
func (r reserve) become(path string, e Exit) error {
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

// FinalReport is what the keeper of the run in a folder left, and when. It is an error if it left nothing that can be read.
func FinalReport(dir string) (e Exit, at time.Time, err error) {
	path := filepath.Join(dir, exitFile)
	info, err := os.Stat(path)
	if err != nil {
		return Exit{}, time.Time{}, err
	}
	if err := ReadFile(path, &e); err != nil {
		return Exit{}, time.Time{}, err
	}
	return e, info.ModTime(), nil
}

// Began reports whether the keeper of the run in a folder began to start replicas.
func Began(dir string) bool {
	for _, file := range [...]string{begunFile, exitFile + reserved, exitFile} { // the last two are all that earlier versions made
		if _, err := os.Lstat(filepath.Join(dir, file)); err == nil {
			return true
		}
	}
	return false
}

// ReadFile reads a value as JSON from a file that jobs can write to, or put another one in the place of.
func ReadFile(path string, into any) error {
	text, err := inputfile.Read(path, inputfile.Document)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %q: %w", path, err)
	}
	return nil
}
