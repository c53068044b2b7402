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
			"search is told what it reported, and the next is submitted at once. A policy that ends trials early, or holds them back, makes room for others. " +
			"In a simulation a trial goes as its application was measured to, its steps longer by its width and its metric worse by its quality.",
		Source: "the experiment is that of Pollux, OSDI 2021, Table 3; the trials are a model of our own",
	}, Config{
		Experiment: "trial", Trials: 100, Parallel: 4,
	}, func(c Config, s core.Settings) (workload.Source, error) {
		p, found := c.check()
		if err := found.Err(); err != nil {
			return nil, err
		}
		return &source{experiment{plan: p, begin: with, seed: s.Seed, log: s.Log}}, nil
	})
}

type source struct{ experiment }

// UsesSeed tells whether trials are drawn, here or by the search.
func (s *source) UsesSeed() bool { return true }

// Load reads the profiles. Whatever is wrong with them and with the job is told at once.
func (s *source) Load(ctx context.Context) (*workload.Workload, error) {
	e := s.experiment
	job, _ := s.template.Job(s.name(0), func(string) (string, bool) { return "", true })
	if s.Simulated.Application == "" {
		return &workload.Workload{React: e.react, Identity: e.identity(), Kinds: []workload.Job{job}}, nil
	}
	trials, err := workload.NewTrials(ctx, workload.TrialsConfig{
		Profiles: s.Simulated.Profiles, Application: s.Simulated.Application, Batch: s.Simulated.Batch, CurveBatch: s.Simulated.CurveBatch, Adapts: s.Simulated.Adapts,
	})
	if err != nil {
		return nil, within("workload.config.simulated", err)
	}
	e.simulated = trials
	var found core.Diagnostics
	if n := job.Spec.Requested; !trials.Runs(n) {
		found = append(found, core.Diagnostic{
			Path: "workload.config.job.replicas", Summary: fmt.Sprintf("%s was not measured on %d replicas at the batch of a trial", s.Simulated.Application, n), Hint: fmt.Sprintf("at most %d", trials.MostReplicas),
		})
	}
	if n := job.Spec.MaxReplicas; n > trials.MostReplicas {
		found = append(found, core.Diagnostic{Path: "workload.config.job.max_replicas", Summary: fmt.Sprintf("must be at most %d, the most that %s runs on, got %d", trials.MostReplicas, s.Simulated.Application, n)})
	}
	if trials.Metric() != s.Metric {
		found = append(found, core.Diagnostic{
			Path: "workload.config.metric", Summary: fmt.Sprintf("trials of %s report no %q", s.Simulated.Application, s.Metric), Hint: core.SuggestHint(s.Metric, "metrics", []string{trials.Metric()}),
		})
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	trials.Fill(&job, workload.TrialShape{Width: 1})
	return &workload.Workload{React: e.react, Identity: e.identity(), Kinds: []workload.Job{job}, Inputs: trials.Inputs}, nil
}

// within gives the problems with settings their place in the config.
func within(path string, err error) error {
	found, ok := errors.AsType[core.Diagnostics](err)
	if !ok {
		return err
	}
	for i := range found {
		if found[i].Path != "" {
			found[i].Path = core.JoinPath(path, found[i].Path)
		}
	}
	return found
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
	return fmt.Sprintf("%d %x", e.seed, sha256.Sum256(text))
}

// react begins the search of a run, or goes on with that of a record.
func (e *experiment) react(_ context.Context, record string) (workload.Reacting, error) {
	s, err := e.begin(e.plan, e.seed, e.log, record)
	if err != nil {
		return nil, fmt.Errorf("begin the search %q: %w", e.chosen.Type(), err)
	}
	return &Run{experiment: e, search: s, byJob: map[string]*trial{}, used: map[string]usage{}}, nil
}
