package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/workload"
)

// LoadWorkload reads or generates the jobs of a config, takes its sample of them, and sets what policies know of
// their work. A nil log discards.
func LoadWorkload(ctx context.Context, c *configs.Config, log *slog.Logger) (*workload.Workload, error) {
	source, err := c.Workload.New(c.Seed, log)
	if err != nil {
		return nil, err
	}
	w, err := source.Load(ctx)
	if err != nil {
		return nil, c.Locate(err)
	}
	return SelectJobs(c, w)
}

// SelectJobs takes the sample of a config out of the jobs of its source, which it leaves as they are, with what policies know
// of their work.
func SelectJobs(c *configs.Config, source *workload.Workload) (*workload.Workload, error) {
	w, err := c.Sample.Apply(source, c.Seed)
	if err == nil {
		w, err = c.Estimate.Apply(w, c.Seed)
	}
	return w, c.Locate(err)
}

// BuildStages creates the components of every stage. CloseStages ends them. A nil log discards.
func BuildStages(c *configs.Config, log *slog.Logger) (core.Stages, error) {
	var s core.Stages
	errs := make([]error, 4, 4+len(c.Admission))
	for _, selected := range c.Admission {
		admission, err := build(selected, c.Seed, log)
		errs = append(errs, err)
		s.Admission = append(s.Admission, admission)
	}
	s.Allocation, errs[0] = build(c.Allocation, c.Seed, log)
	s.Placement, errs[1] = build(c.Placement, c.Seed, log)
	s.Elasticity, errs[2] = build(c.Elasticity, c.Seed, log)
	s.Scaler, errs[3] = build(c.Scaler, c.Seed, log)
	if err := errors.Join(errs...); err != nil {
		return core.Stages{}, errors.Join(err, discardStages(&s)) // those that could be created
	}
	return s, nil
}

func build[S any](selected configs.Selected[S], seed uint64, log *slog.Logger) (core.Component[S], error) {
	component, err := selected.Build(seed, log)
	if err != nil {
		return core.Component[S]{}, fmt.Errorf("create %q: %w", selected.ID, err)
	}
	return component, nil
}

// CloseStages ends the policies that have something to end: a process, or a file to write.
func CloseStages(s *core.Stages) error { return endStages(s, closePolicy) }

// discardStages ends the policies of a run that goes on later, or was only looked at: they keep nothing of what they learned
// for other runs.
func discardStages(s *core.Stages) error { return endStages(s, discardPolicy) }

func endStages(s *core.Stages, end func(policy any) error) error {
	var errs []error
	for _, policy := range componentsIn(s) {
		errs = append(errs, end(policy))
	}
	return errors.Join(errs...)
}

// componentsIn walks through the policies with their ids.
func componentsIn(s *core.Stages) iter.Seq2[string, any] {
	return func(yield func(id string, policy any) bool) {
		if !(yield(s.Allocation.ID, s.Allocation.Policy) && yield(s.Placement.ID, s.Placement.Policy) &&
			yield(s.Elasticity.ID, s.Elasticity.Policy) && yield(s.Scaler.ID, s.Scaler.Policy)) {
			return
		}
		for _, admission := range s.Admission {
			if !yield(admission.ID, admission.Policy) {
				return
			}
		}
	}
}

// filesOf lists the files that policies read when they were made.
func filesOf(s *core.Stages) []core.FileRead {
	var list []core.FileRead
	for _, policy := range componentsIn(s) {
		if reader := core.AbilitiesOf(policy).Files; reader != nil {
			list = append(list, reader.FilesRead()...)
		}
	}
	return list
}

// filesRead are the digests of those files.
func filesRead(s *core.Stages) []Digest { return digestsOfFiles(filesOf(s)) }

func digestsOfFiles(files []core.FileRead) (list []Digest) {
	for _, f := range files {
		list = append(list, Digest{File: f.Path, SHA256: f.SHA256})
	}
	return list
}

func componentsOf(c *configs.Config) metrics.Components {
	parts := metrics.Components{
		Workload: c.Workload.ID, Allocation: c.Allocation.ID, Placement: c.Placement.ID,
		Elasticity: c.Elasticity.ID, Scaler: c.Scaler.ID, Backend: c.Backend.ID,
	}
	for _, admission := range c.Admission {
		parts.Admission = append(parts.Admission, admission.ID)
	}
	return parts
}
