package twin_test

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/twin"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/engine"
)

// policies are second instances of those of a composition.
func policies(c *quartet.Composition, same bool) twin.Policies {
	return twin.Policies{
		NewInstances: func() (core.Stages, error) { return engine.BuildStages(c.Config, nil) },
		End:          engine.CloseStages, Options: c.Round.Options(), Same: same,
	}
}

// stills takes a run as it stands after some of its rounds, and notes what became of its jobs.
type stills struct {
	pipeline *core.Pipeline
	every    int
	list     []*twin.RunSnapshot
	starts   map[core.JobID][]float64
	ends     map[core.JobID]float64
}

func (s *stills) ObserveRound(r *core.Report) error {
	for _, c := range r.Changes {
		if c.Action == core.Start {
			s.starts[c.Job] = append(s.starts[c.Job], r.View.NowSeconds)
		}
	}
	for _, j := range r.Ended {
		s.ends[j.ID] = j.FinishSeconds
	}
	if r.View.Round%s.every == 0 {
		s.list = append(s.list, twin.Take(s.pipeline))
	}
	return nil
}

// run simulates a composition and keeps stills of it.
func run(t *testing.T, config string, every int) (*quartet.Composition, *stills) {
	t.Helper()
	c, err := quartet.Parse(quartet.Builtins(), "twin.yaml", config, quartet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Jobs, err = quartet.LoadWorkload(t.Context(), c.Config, nil); err != nil {
		t.Fatal(err)
	}
	s := &stills{every: every, starts: map[core.JobID][]float64{}, ends: map[core.JobID]float64{}}
	c.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
		s.pipeline = p
		return s
	}
	if _, err := c.Simulate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, s
}

// truth is the world as it is.
func truth(c *quartet.Composition, s *twin.RunSnapshot, all *workload.Workload) *twin.World {
	w := &twin.World{Config: *c.Backend.Config.(*sim.Config)}
	v := s.View()
	for i := range all.Jobs {
		j := &all.Jobs[i]
		switch {
		case i >= len(v.Jobs):
			w.Arrivals = append(w.Arrivals, *j)
		case v.Jobs[i] != nil:
			w.Jobs = append(w.Jobs, twin.Job{ID: j.Spec.ID, Model: j.Model})
		}
	}
	return w
}

// Of a world as it is comes the future as it became: what is lost of a run in a still is nothing that matters.
func TestAFutureOfTheTruth(t *testing.T) {
	const head = "version: 1\nname: twin\nseed: 3\ncluster: {nodes: [{name: n, count: 4, accelerator: v100, devices: 4}]}\n" +
		"workload: {type: generated, config: {jobs: 60, span: 4h}}\nround: {interval: 60s}\nbackend: {type: simulator, config: {restart_overhead: 30s}}\n"
	for name, pipeline := range map[string]string{
		"fifo":     "pipeline: {allocation: {type: fifo}}",
		"las":      "pipeline: {allocation: {type: las}}",
		"srtf":     "pipeline: {allocation: {type: srtf}}",
		"tiresias": "pipeline: {allocation: {type: tiresias}}",
		"quota":    "pipeline: {allocation: {type: las}, admission: [{type: load_threshold}]}",
		"elastic":  "pipeline: {allocation: {type: elastic_dp}, elasticity: {job: {type: fixed, config: {replicas: elastic}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			c, s := run(t, head+pipeline, 29)
			for _, still := range s.list {
				f, err := still.Future(t.Context(), policies(c, true), truth(c, still, c.Jobs), math.Inf(1))
				if err != nil {
					t.Fatal(err)
				}
				for _, fate := range f.Jobs {
					if want := s.ends[fate.ID]; math.Abs(fate.EndSeconds-want) > 1e-6 {
						t.Errorf("at %v s: job %d ends at %v s, want %v s", f.FromSeconds, fate.ID, fate.EndSeconds, want)
					}
				}
			}
			if len(s.list) < 3 {
				t.Errorf("%d stills", len(s.list))
			}
		})
	}
}
