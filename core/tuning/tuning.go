package tuning

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/search"
	"github.com/quartet-sched/quartet/core/workload"
)

// New makes the factory of the source `tuning`.
func New() core.Factory[workload.Source] {
	return newSource(func(p *plan, seed uint64, log *slog.Logger, record string) (search.Search, error) {
		if record != "" {
			return p.chosen.Record(record, seed, log)
		}
		return p.chosen.New(seed, log)
	})
}

// begin makes the search of a run, with its record if there is to be one.
type begin func(p *plan, seed uint64, log *slog.Logger, record string) (search.Search, error)

func newSource(with begin) core.Factory[workload.Source] {
	return core.NewFactory(core.Info{
		Type:    "tuning",
		Summary: "trials of hyper-parameters, each a job, submitted as those before them end",
		Description: "A search proposes hyper-parameters, and each trial of them is a job called by the experiment and its number. So many run at a time; when one has ended, the " +
			"search gets what it reported, and the next is submitted at once. A policy that ends trials early, or holds them back, makes room for others. " +
			"In a simulation a trial goes as its application was measured to, its steps longer by its width and its metric worse by its quality.",
		Source: "the experiment is that of Pollux, OSDI 2021, Table 3; the trials are a model of our own",
	}, Config{
		Experiment: "trial", Parallel: 4,
	}, func(c Config, s core.Settings) (workload.Source, error) {
		p, found := c.check()
		if err := found.Err(); err != nil {
			return nil, err
		}
		return &source{experiment{plan: p, begin: with, seed: s.Seed, log: s.Log}}, nil
	})
}

type source struct{ experiment }

// UsesSeed reports whether trials are drawn, here or by the search.
func (s *source) UsesSeed() bool { return true }

// Load reads the profiles and what the search is made from. All problems with them, and with the job of a trial, are reported together.
func (s *source) Load(ctx context.Context) (*workload.Workload, error) {
	e := s.experiment
	w := &workload.Workload{React: e.react, Identity: e.identity()}
	found, err := s.look(w)
	if err != nil {
		return nil, err
	}
	job, _ := s.template.Job(s.name(0), func(string) (string, bool) { return "", true })
	if c := &s.Simulated; c.Application != "" {
		trials, problems, err := workload.NewTrials(ctx, workload.TrialsConfig{
			Profiles: c.Profiles, Application: c.Application, Batch: c.Batch, CurveBatch: c.CurveBatch, Adapts: c.Adapts,
			Replicas: job.Spec.Requested, MaxReplicas: job.Spec.MaxReplicas, Metric: s.Metric,
		})
		if err != nil {
			return nil, errors.Join(err, found.Err())
		}
		for _, d := range problems {
			if d.Path != "" {
				d.Path = core.JoinPath("workload.config", d.Path)
			}
			found = append(found, d)
		}
		if len(problems) == 0 {
			e.simulated = trials
			trials.Fill(&job, workload.TrialShape{Width: 1})
			w.Inputs = append(w.Inputs, trials.Inputs...)
		}
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	w.Kinds = []workload.Job{job}
	return w, nil
}

// look makes the search once to see what it is made from. One that is a process of its own is not begun for that.
func (s *source) look(w *workload.Workload) (core.Diagnostics, error) {
	if s.chosen.Type() == "external" {
		return nil, nil
	}
	looked, err := s.chosen.New(s.seed, s.log)
	if found, ok := errors.AsType[core.Diagnostics](err); ok {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	if reader, reads := looked.(search.Reader); reads {
		for _, in := range reader.Inputs() {
			w.Inputs = append(w.Inputs, workload.Input{Path: in.Path, SHA256: in.SHA256})
		}
	}
	return nil, looked.Close()
}

// name is that of the job of a trial, of which the first is 1.
func (p *plan) name(trial int) string {
	return fmt.Sprintf("%s-%0*d", p.Experiment, trialDigits, trial+1)
}

// experiment is what runs of one workload have in common.
type experiment struct {
	*plan
	begin     begin
	seed      uint64
	log       *slog.Logger
	simulated *workload.Trials // nil where trials do not follow a profile
}

// identity is the same for experiments that submit the same trials when they hear the same of them.
func (e *experiment) identity() string {
	text, _ := json.Marshal(&e.plan.Config) // what was decoded from a config can be
	var settings any
	_ = json.Unmarshal(text, &settings)
	text, _ = json.Marshal(given(settings)) // a config that is written out and read again has empty lists where there were none
	return fmt.Sprintf("%d %x", e.seed, sha256.Sum256(text))
}

// given leaves out of settings what says nothing.
func given(settings any) any {
	switch of := settings.(type) {
	case map[string]any:
		for key, value := range of {
			if of[key] = given(value); of[key] == nil {
				delete(of, key)
			}
		}
		if len(of) == 0 {
			return nil
		}
	case []any:
		for i := range of {
			of[i] = given(of[i])
		}
		if len(of) == 0 {
			return nil
		}
	}
	return settings
}

// react begins the search of a run, or goes on with that of a record.
func (e *experiment) react(_ context.Context, record string) (workload.Reacting, error) {
	s, err := e.begin(e.plan, e.seed, e.log, record)
	if err != nil {
		return nil, fmt.Errorf("begin the search %q: %w", e.chosen.Type(), err)
	}
	return &Run{experiment: e, search: s, byJob: map[string]*trial{}, used: map[string]usage{}}, nil
}
