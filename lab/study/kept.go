package study

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// Kept is what the folder of a study holds: the runs of its table, each with what is kept of it.
type Kept struct {
	*Study
	Runs []KeptRun // its runs, in the order of the tables

	store *store
}

// KeptRun is a row of runs.csv.
type KeptRun struct {
	ID        string   // id of the run, the name of its file
	Items     []string // names, of each axis
	Replicate int      // number of the replicate, from 1
	Seed      uint64   // seed of the run
	Outcome   string   // Completed, Unfinished, Failed or missing
	*Record            // nil when the run is missing
}

// ReadKept reads the folder of a study. It refuses one whose tables and records do not belong together.
func ReadKept(dir string) (*Kept, error) {
	text, err := inputfile.Read(filepath.Join(dir, StudyFile), inputfile.Document)
	if err != nil {
		return nil, err
	}
	s, err := Parse(filepath.Join(dir, StudyFile), filepath.Base(dir), text)
	if err != nil {
		return nil, err
	}
	k := &Kept{Study: s, store: &store{dir: dir}}
	table, err := inputfile.Read(filepath.Join(dir, RunsFile), inputfile.Table)
	if err != nil {
		return nil, err
	}
	rows, err := csv.NewReader(bytes.NewReader(table)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read whole: %w", RunsFile, err)
	}
	names, err := k.store.names()
	if err != nil {
		return nil, err
	}
	axes := len(s.Axes)
	header := append(append([]string{"run"}, s.axisNames()...), "replicate", "seed", "offered_load", "outcome")
	if len(rows) == 0 || len(rows[0]) < len(header) || !slices.Equal(rows[0][:len(header)], header) {
		return nil, fmt.Errorf("%s is not the table of %s: it should begin with the columns %q", RunsFile, StudyFile, header)
	}
	for i, row := range rows[1:] {
		r := KeptRun{ID: row[0], Items: row[1 : 1+axes], Outcome: row[axes+4]}
		var errs [2]error
		r.Replicate, errs[0] = strconv.Atoi(row[axes+1])
		r.Seed, errs[1] = strconv.ParseUint(row[axes+2], 10, 64)
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("%s, row %d: %w", RunsFile, i+2, err)
		}
		if r.Outcome != Missing {
			if r.Record, err = k.store.find(names, r.ID); err != nil {
				return nil, err
			}
		}
		k.Runs = append(k.Runs, r)
	}
	return k, nil
}

// find reads what is kept of a run by the beginning of its hash.
func (s *store) find(names []string, id string) (*Record, error) {
	at, _ := slices.BinarySearch(names, id)
	for ; at < len(names) && strings.HasPrefix(names[at], id); at++ {
		if hash, ok := strings.CutSuffix(names[at], ".json"); ok {
			if r := s.read(hash); r != nil {
				return r, nil
			}
		}
	}
	return nil, fmt.Errorf("what is kept of run %.12q cannot be read; run the study again", id)
}

// names lists the files of what is kept, sorted.
func (s *store) names() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, storeFolder))
	if err != nil {
		return nil, fmt.Errorf("what is kept of the runs is not there, and belongs to the tables: %w", err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list, nil
}

// Jobs are the rows of the jobs.csv of a run.
func (k *Kept) Jobs(r *KeptRun) ([]metrics.Job, error) {
	jobs, err := k.store.jobs(r.Hash)
	if err != nil {
		return nil, fmt.Errorf("the jobs of run %s cannot be read: %w", r.ID, err)
	}
	return jobs, nil
}

// jobs are the kept rows of a run.
func (s *store) jobs(hash string) ([]metrics.Job, error) {
	f, err := inputfile.Open(s.tablePath(hash, jobsTable))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return metrics.ReadJobs(io.MultiReader(strings.NewReader(jobsHeader), z))
}
