package twin

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
)

// Future simulates from the still on, for so many seconds; +Inf for until all jobs have ended. Same arguments, same answer. A policy that panics fails.
func (s *RunSnapshot) Future(ctx context.Context, p Policies, w *World, seconds float64) (f *Future, err error) {
	err = Caught(func() error {
		f, err = s.future(ctx, p, w, seconds)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (s *RunSnapshot) future(ctx context.Context, p Policies, w *World, seconds float64) (f *Future, err error) {
	stages, err := p.NewInstances()
	if err != nil {
		return nil, fmt.Errorf("second instances of the policies: %w", err)
	}
	if p.End != nil {
		defer func() {
			if ending := p.End(&stages); err == nil && ending != nil {
				f, err = nil, ending
			}
		}()
	}
	pipeline := s.pipeline.Fork()
	from := pipeline.View().NowSeconds
	world, err := w.resume(ctx, pipeline)
	if err != nil {
		return nil, err
	}
	fates := newJobOutcomes(pipeline)
	options := core.PipelineOptions{Rounds: p.Options, Observers: []core.Observer{fates}, Scaling: world, KeepDevices: world.KeepsDevices()}
	if err := pipeline.Decide(ctx, stages, p.Same, options); err != nil {
		return nil, err
	}
	to := from + seconds
	if err := pipeline.Run(ctx, until{world, to, func() bool { return w.Present && fates.present == 0 }}); err != nil {
		return nil, err
	}
	if math.IsInf(to, 1) {
		to = pipeline.NowSeconds()
	}
	return fates.future(pipeline, from, to), nil
}

// resume is a simulation of the world for a pipeline.
func (w *World) resume(ctx context.Context, p *core.Pipeline) (*sim.Simulator, error) {
	v := p.View()
	standing := sim.Standing{
		NowSeconds: v.NowSeconds, Cluster: v.Cluster, Submitted: len(v.Jobs), Arrivals: w.Arrivals, Nodes: w.Nodes,
	}
	for i := range w.Jobs {
		j := v.Job(w.Jobs[i].ID)
		if j == nil {
			return nil, fmt.Errorf("something is believed of job %d, which has ended or never was", w.Jobs[i].ID)
		}
		standing.Jobs = append(standing.Jobs, sim.StandingJob{Job: j, Model: w.Jobs[i].Model})
	}
	if unfinished := p.Unfinished(); len(unfinished) != len(w.Jobs) {
		return nil, fmt.Errorf("something is believed of %d jobs, and %d have not ended", len(w.Jobs), len(unfinished))
	}
	return sim.Resume(ctx, w.Config, core.Settings{ID: "twin", Seed: w.Seed}, standing)
}

// until is a world that ends at a moment.
type until struct {
	*sim.Simulator
	seconds float64
	over    func() bool
}

// Next returns nothing of what is after the end.
func (u until) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if u.over() {
		return core.Observation{}, io.EOF
	}
	o, err := u.Simulator.Next(ctx, w)
	if err == nil && o.NowSeconds > u.seconds {
		return core.Observation{}, io.EOF
	}
	return o, err
}

// jobOutcomes notes what becomes of jobs.
type jobOutcomes struct {
	list     []JobOutcome
	restarts []int // of each, before
	attained float64
	rounds   int
	present  int        // those of the beginning that have not ended
	first    core.JobID // of those that arrive
	at       []int      // by JobID: index in list, -1 for a job that had ended
}

func newJobOutcomes(p *core.Pipeline) *jobOutcomes {
	v := p.View()
	f := &jobOutcomes{first: core.JobID(len(v.Jobs)), at: make([]int, len(v.Jobs))}
	for i, j := range v.Jobs {
		if f.at[i] = -1; j == nil {
			continue
		}
		f.at[i] = len(f.list)
		f.list, f.restarts = append(f.list, newJobOutcome(j)), append(f.restarts, j.Restarts)
		if j.State == core.Running {
			f.list[f.at[i]].StartSeconds = j.LastChange
		}
		f.attained -= j.AttainedService(v.NowSeconds)
	}
	f.present = len(f.list)
	return f
}

func newJobOutcome(j *core.Job) JobOutcome {
	return JobOutcome{ID: j.ID, SubmitSeconds: j.SubmitSeconds, StartSeconds: math.NaN(), EndSeconds: math.NaN(), Outcome: j.State}
}

// ObserveRound notes starts and ends.
func (f *jobOutcomes) ObserveRound(r *core.Report) error {
	f.rounds++
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == core.JobSubmitted {
			f.at = append(f.at, make([]int, int(e.Job)+1-len(f.at))...)
			f.at[e.Job] = len(f.list)
			f.list, f.restarts = append(f.list, newJobOutcome(core.NewJob(e.Spec))), append(f.restarts, 0)
		}
	}
	for i := range r.Changes {
		if c := &r.Changes[i]; c.Action == core.Start {
			if fate := &f.list[f.at[c.Job]]; math.IsNaN(fate.StartSeconds) {
				fate.StartSeconds = r.View.NowSeconds
			}
		}
	}
	for _, j := range r.Ended {
		at := f.at[j.ID]
		if j.ID < f.first {
			f.present--
		}
		fate := &f.list[at]
		fate.EndSeconds, fate.Outcome, fate.Restarts, fate.Progress = j.FinishSeconds, j.State, j.Restarts-f.restarts[at], j.Progress
		f.attained += j.Attained
	}
	return nil
}

// future is what became of the jobs up to a moment.
func (f *jobOutcomes) future(p *core.Pipeline, from, to float64) *Future {
	for _, j := range p.Unfinished() {
		at := f.at[j.ID]
		fate := &f.list[at]
		fate.Outcome, fate.Restarts, fate.Progress = j.State, j.Restarts-f.restarts[at], j.WorkDone(to)
		f.attained += j.AttainedService(to)
	}
	return &Future{FromSeconds: from, ToSeconds: to, Jobs: slices.Clip(f.list), Rounds: f.rounds, DeviceSeconds: f.attained}
}
