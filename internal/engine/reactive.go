package engine

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/workload"
)

// react begins the reactive workload of the run, if it has one: that of a live run here, that of a simulation began with the simulator.
func (e *execution) react(ctx context.Context) (workload.Reacting, error) {
	if e.jobs.React == nil {
		return nil, nil
	}
	if e.can.Reactive != nil {
		if r := e.can.Reactive.Reacting(); r != nil {
			return r, nil
		}
	}
	if e.can.Driven == nil {
		return nil, problem("workload.type", fmt.Sprintf("%q submits jobs by what becomes of earlier ones, which backend %q does not know", e.Workload.ID, e.Backend.ID), "")
	}
	for i := range e.jobs.Kinds {
		if k := &e.jobs.Kinds[i]; len(k.Spec.Command) == 0 && k.Spec.TotalWork <= 0 {
			return nil, problem("workload.config.job.command", "required but missing", "name the program that a trial runs")
		}
	}
	record, err := openRecord(e.state, e.can.Driven)
	if err != nil {
		return nil, fmt.Errorf("keep what the workload answers: %w", err)
	}
	if e.can.Memory != nil && e.can.Memory.Replaying() {
		if info, err := os.Stat(record); err != nil || info.Size() == 0 {
			return nil, core.Diagnostics{{
				Position: core.Position{File: record}, Summary: "is missing or empty, and the run to resume has asked its search before: what it answered is unknown",
				Hint: "put it back from a copy, or begin another run with --name",
			}}
		}
	}
	return e.jobs.React(ctx, record)
}

// closeUnused closes the backend of a run that does not begin. Its jobs run on where they can.
func closeUnused(can backend.Abilities) error {
	switch {
	case can.Leaving != nil:
		_, err := can.Leaving.Leave()
		return err
	case can.Closer != nil:
		return can.Closer.Close()
	}
	return nil
}

// closeReactive ends the workload of a run that was only looked at.
func closeReactive(can backend.Abilities) {
	if can.Reactive == nil {
		return
	}
	if r := can.Reactive.Reacting(); r != nil {
		_ = r.Close() // nothing was to come of it
	}
}

// jobsOf looks up the jobs of the run, those submitted in its course as well.
func (e *execution) jobsOf() workload.JobsOf {
	if e.can.Jobs != nil && e.reactive != nil {
		return e.can.Jobs
	}
	return e.jobs
}

// tuningOf says what a search has come to; nil for a workload that is none.
func tuningOf(w workload.Reacting) func() *metrics.Tuning {
	if t, ok := w.(interface{ Summary() *metrics.Tuning }); ok {
		return t.Summary
	}
	return nil
}

// summarizeReactive adds what the reactive workload came to, and writes its table.
func (e *execution) summarizeReactive(s *metrics.Summary, unfinished []*core.Job, endSeconds float64) error {
	if f, ok := e.reactive.(interface {
		Finish(unfinished []*core.Job, endSeconds float64)
	}); ok {
		f.Finish(unfinished, endSeconds)
	}
	if tuning := tuningOf(e.reactive); tuning != nil {
		s.Tuning = tuning()
		if text := s.Tuning.Unheard(); text != "" {
			e.note(text)
		}
	}
	t, ok := e.reactive.(workload.Tabled)
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
