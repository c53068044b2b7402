package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quartet-sched/quartet/core/goodput"
)

// state is a training at a moment: all that a checkpoint keeps. It is the same for all replicas, and does not depend on
// how many there are.
type state struct {
	Task       task            `json:"task"`
	Step       uint64          `json:"step"`
	Samples    uint64          `json:"samples"`  // seen
	Progress   float64         `json:"progress"` // in iterations at the initial batch
	Parameters []float64       `json:"parameters"`
	Statistics goodput.Tracker `json:"statistics"` // of the gradient
}

const checkpointFile = "checkpoint.json"

// load reads the state from a folder; false when there is none.
func load(folder string, want *task, parameters int) (*state, bool, error) {
	if folder == "" {
		return nil, false, nil
	}
	path := filepath.Join(folder, checkpointFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("resume: %w", err)
	}
	s := &state{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, false, fmt.Errorf("resume: %q is damaged: %w", path, err)
	}
	if s.Task != *want || len(s.Parameters) != parameters {
		return nil, false, fmt.Errorf("resume: %q is of another training: %+v with %d parameters, want %+v with %d", path, s.Task, len(s.Parameters), *want, parameters)
	}
	return s, true, nil
}

// save writes the state whole or not at all.
func (s *state) save(folder string) (err error) {
	if folder == "" {
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("make a checkpoint: %w", err)
		}
	}()
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	path := filepath.Join(folder, checkpointFile)
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
