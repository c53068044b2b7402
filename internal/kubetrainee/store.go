//go:build linux

package kubetrainee

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// store is what jobs have done, up to their last checkpoints: a file.
type store struct {
	path     string
	progress map[string]float64
	changed  bool
}

func openStore(path string) (store, error) {
	s := store{path: path, progress: make(map[string]float64)}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &s.progress)
	}
	if err != nil {
		return s, fmt.Errorf("progress of trainings: %w", err)
	}
	return s, nil
}

func (s *store) of(job string) float64 { return s.progress[job] }

func (s *store) set(job string, progress float64) {
	s.changed = s.changed || s.progress[job] != progress
	s.progress[job] = progress
}

// forget lets another job have the name of one that did all of its work. Jobs that are objects have UIDs, which never come again.
func (s *store) forget(job string, work float64) {
	if strings.Contains(job, "/") && s.progress[job] >= work {
		delete(s.progress, job)
		s.changed = true
	}
}

// write keeps what has changed.
func (s *store) write() error {
	if !s.changed {
		return nil
	}
	content, err := json.Marshal(s.progress)
	if err != nil {
		return err
	}
	if err := replace(s.path, content); err != nil {
		return err
	}
	s.changed = false
	return nil
}
