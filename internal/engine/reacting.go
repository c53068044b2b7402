package engine

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/workload"
)

// reactingOf is the workload of a backend that reacts; nil for a list of jobs.
func reactingOf(world any) workload.Reacting {
	if w, ok := world.(interface{ Reacting() workload.Reacting }); ok {
		return w.Reacting()
	}
	return nil
}

// react begins the workload of the run that reacts, if it does: on real machines here, on a simulator it was begun with that.
func (e *execution) react(ctx context.Context, world core.Backend, state string) (workload.Reacting, error) {
	if e.jobs.React == nil {
		return nil, nil
	}
	if r := reactingOf(world); r != nil {
		return r, nil
	}
	driven, is := world.(backend.Driven)
	if !is {
		return nil, problem("workload.type", fmt.Sprintf("%q submits jobs by what becomes of earlier ones, which backend %q does not know", e.Workload.ID, e.Backend.ID), "")
	}
	for i := range e.jobs.Kinds {
		if k := &e.jobs.Kinds[i]; len(k.Spec.Command) == 0 && k.Spec.TotalWork <= 0 {
			return nil, problem("workload.config.job.command", "required but missing", "name the program that a trial runs")
		}
	}
	record, err := openRecord(state, driven)
	if err != nil {
		return nil, fmt.Errorf("keep what the workload answers: %w", err)
	}
	if memory, remembers := world.(core.Memory); remembers && memory.Replaying() {
		if info, err := os.Stat(record); err != nil || info.Size() == 0 {
			return nil, core.Diagnostics{{
				Position: core.Position{File: record}, Summary: "is missing or empty, and the run that is to go on has asked its search before: nobody knows what it answered",
				Hint: "put it back from a copy, or begin anew with --fresh",
			}}
		}
	}
	return e.jobs.React(ctx, record)
}

// closeWorld closes the backend of a run that does not begin. Its jobs run on where they can.
func closeWorld(world core.Backend) error {
	if l, can := world.(leaving); can {
		_, err := l.Leave()
		return err
	}
	if c, can := world.(io.Closer); can {
		return c.Close()
	}
	return nil
}

// closeReacting ends the workload of a run that was only looked at.
func closeReacting(world any) {
	if r := reactingOf(world); r != nil {
		_ = r.Close() // nothing was to come of it
	}
}

// jobsOf looks up the jobs of the run, those submitted in its course as well.
func (e *execution) jobsOf(world core.Backend) workload.JobsOf {
	if jobs, ok := world.(workload.JobsOf); ok && e.reacting != nil {
		return jobs
	}
	return e.jobs
}

// tuningOf tells what a search has come to; nil for a workload that is none.
func tuningOf(w workload.Reacting) func() *metrics.Tuning {
	if t, ok := w.(interface{ Summary() *metrics.Tuning }); ok {
		return t.Summary
	}
	return nil
}

// tellReacting has a workload that reacts tell what it came to, and writes its table.
func (e *execution) tellReacting(s *metrics.Summary, unfinished []*core.Job, endSeconds float64) error {
	if f, ok := e.reacting.(interface {
		Finish(unfinished []*core.Job, endSeconds float64)
	}); ok {
		f.Finish(unfinished, endSeconds)
	}
	if tuning := tuningOf(e.reacting); tuning != nil {
		s.Tuning = tuning()
		if text := s.Tuning.Unheard(); text != "" {
			e.note(text)
		}
	}
	t, ok := e.reacting.(workload.Tabled)
	if !ok {
		return nil
	}
	file, err := e.files.create(trialsFile)
	if err != nil {
		return err
	}
	header, rows := t.Table()
	return csv.NewWriter(file).WriteAll(append([][]string{header}, rows...))
}

// trialsFile is the table of a search for hyper-parameters.
const trialsFile = "trials.csv"
