//go:build linux

package kubetrainee

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// store is what jobs have done, up to their last checkpoints: a file. It remembers so many jobs as mostJobs says, and twice as many
// before it forgets.
type store struct {
	path     string
	progress map[string]float64
	changed  bool

	latest map[string]uint64 // of which change a job was the last to be; none for those that were read
	count  uint64            // of changes
}

const mostJobs = 2048

func openStore(path string) (store, error) {
	s := store{path: path, progress: make(map[string]float64), latest: make(map[string]uint64)}
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
	s.count++
	s.latest[job] = s.count
}

// full reports whether there is more than is to be remembered.
func (s *store) full() bool { return len(s.progress) > 2*mostJobs }

// trim forgets the jobs that trained longest ago, but for those that are there.
func (s *store) trim(there map[string]bool) {
	var others []string
	for job := range s.progress {
		if !there[job] {
			others = append(others, job)
		}
	}
	slices.SortFunc(others, func(a, b string) int { return cmp.Or(cmp.Compare(s.latest[a], s.latest[b]), cmp.Compare(a, b)) })
	for _, job := range others[:min(len(others), max(len(s.progress)-mostJobs, 0))] {
		delete(s.progress, job)
		delete(s.latest, job)
		s.changed = true
	}
}

// forget lets another job have the name of one that did all of its work. Jobs that are objects have UIDs, which never come again.
func (s *store) forget(job string, work float64) {
	if strings.Contains(job, "/") && s.progress[job] >= work {
		delete(s.progress, job)
		delete(s.latest, job)
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
