package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/timeline"
	"github.com/quartet-sched/quartet/core/workload"
)

// open loads the workload, makes the policies, opens the backend, and claims the folder for the files of the run.
func (e *execution) open(ctx context.Context) error {
	for _, n := range e.Notes {
		e.note(n.String())
	}
	if err := e.load(ctx); err != nil {
		return err
	}
	if err := e.checkFits(ctx); err != nil {
		return err
	}
	var err error
	if e.stages, err = BuildStages(e.Config, e.log); err != nil {
		return err
	}
	e.atEnd(func(*Result, error) error { e.release(); return nil })
	e.atEnd(func(*Result, error) error {
		if e.opened {
			return nil // they were closed by what they came to
		}
		return discardStages(&e.stages)
	})
	e.inputs = append(digestsOf(e.jobs.Inputs), filesRead(&e.stages)...)
	if err := e.openBackend(ctx); err != nil {
		return err
	}
	e.notePromises(&e.stages)
	e.notePairs()
	if err := e.openFiles(ctx); err != nil {
		return err
	}
	e.opened = true
	return nil
}

// load loads the workload and finds the jobs that are measured.
func (e *execution) load(ctx context.Context) (err error) {
	if e.jobs = e.Jobs; e.jobs == nil {
		if e.jobs, err = LoadWorkload(ctx, e.Config, e.log); err != nil {
			return err
		}
	}
	e.window, err = measured(e.Config, e.jobs)
	return err
}

// checkFits refuses a workload of which no job fits, and notes what comes of its jobs that nobody may expect.
func (e *execution) checkFits(ctx context.Context) error {
	known := e.jobs.Foreseen()
	if err := e.checkFit(ctx, e.cluster, known); err != nil {
		return err
	}
	if err := e.checkAlternatives(ctx, e.cluster, e); err != nil {
		return err
	}
	e.noteShares(e.cluster, known)
	e.noteTrials(e.jobs)
	return nil
}

// openBackend opens the backend and the reactive workload, and readies the folder of a backend that writes into it.
func (e *execution) openBackend(ctx context.Context) (err error) {
	if e.backend, err = e.callOpener(ctx); err != nil {
		return e.Locate(err)
	}
	e.can = backend.AbilitiesOf(e.backend)
	if e.reactive, err = e.react(ctx); err != nil {
		return errors.Join(err, closeUnused(e.can))
	}
	if e.reactive != nil {
		e.atEnd(func(*Result, error) error { return e.reactive.Close() })
	}
	if e.can.Files != nil {
		e.inputs = append(e.inputs, digestsOfFiles(e.can.Files.FilesRead())...)
	}
	if e.can.Closer == nil {
		return nil
	}
	e.atEnd(e.closeBackend)
	if e.dir != "" {
		if err := removeLeftovers(e.dir); err != nil { // nobody else writes into it
			return err
		}
	}
	return e.setAside()
}

// openFiles claims the folder of the run and begins its files.
func (e *execution) openFiles(ctx context.Context) (err error) {
	if e.live {
		e.noteRounds()
	} else if err := e.claim(ctx); err != nil {
		return err
	}
	if e.files, err = newOutputs(e.dir, e.Keep); err != nil {
		return err
	}
	e.atEnd(func(*Result, error) error { e.files.Close(); return nil })
	return e.newCollector()
}

// callOpener opens the backend. Only a live run may have a backend of real machines.
func (e *execution) callOpener(ctx context.Context) (opened core.Backend, err error) {
	opener, err := e.Backend.New(e.Seed, e.log)
	if err != nil {
		return nil, err
	}
	can := backend.OpenerAbilitiesOf(opener)
	if can.Growing != nil {
		e.cluster = &core.Cluster{MayGrow: true}
	}
	switch {
	case can.Durable != nil && !e.live:
		return nil, problem("backend.type", fmt.Sprintf("%q runs real processes", e.Backend.ID), `use "quartet run"`)
	case can.Durable == nil && e.live:
		return nil, problem("backend.type", fmt.Sprintf("%q does not run real processes", e.Backend.ID), `use "quartet simulate"`)
	case e.live:
		if err := e.occupy(ctx); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				e.vacate()
			}
		}()
		if err := settle(can.Durable, e.Config, e.jobs, e.dir, filesOf(&e.stages), e.Fresh); err != nil {
			return nil, err
		}
		e.state = can.Durable.Dir()
	}
	return opener.Open(ctx, e.cluster, e.jobs)
}

// newCollector measures the run into those files that the config asks for.
func (e *execution) newCollector() error {
	var to metrics.Outputs
	if e.Output.Writes("fairness") {
		to.ExclusiveTime = workload.NewExclusiveTimes(e.cluster, e.jobsOf()).Seconds
		if e.can.StartPauses != nil {
			to.StartPause = e.can.StartPauses.StartPause
		}
	}
	if !e.Estimate.True() {
		to.True = e.jobs.True
	}
	for i, slot := range []*io.Writer{&to.Jobs, &to.Rounds, &to.Decisions, &to.Accelerators, &to.Fairness, &to.Tenants} {
		name := repeatableFiles[i]
		if !e.Output.Writes(strings.TrimSuffix(name, filepath.Ext(name))) {
			continue
		}
		w, err := e.files.create(name)
		if err != nil {
			return err
		}
		*slot = w
	}
	e.collector = metrics.NewCollector(componentsOf(e.Config), to)
	e.collector.Measure(e.window)
	e.collector.Expect(len(e.jobs.Jobs))
	e.collector.Bill(e.cluster)
	return e.newRecorder()
}

// newRecorder records the timeline of the run into those files that the config asks for.
func (e *execution) newRecorder() error {
	to := timeline.Outputs{Truth: workload.NewTrainings(e.cluster, e.jobsOf()).At}
	wanted := false
	for _, slot := range [...]struct {
		file, output string
		to           *io.Writer
	}{
		{"timeline.csv", "timeline", &to.Timeline},
		{"nodes.csv", "timeline", &to.Nodes},
		{"usage.csv", "usage", &to.Usage},
		{"training.csv", "training", &to.Training},
		{"efficiency.csv", "efficiency", &to.Efficiency},
		{"reports.csv", "reports", &to.Reports},
	} {
		if !e.Output.Writes(slot.output) {
			continue
		}
		w, err := e.files.create(slot.file)
		if err != nil {
			return err
		}
		*slot.to, wanted = w, true
	}
	if wanted {
		e.recorder = timeline.NewRecorder(e.cluster, to)
		e.recorder.Expect(len(e.jobs.Jobs))
	}
	return nil
}
