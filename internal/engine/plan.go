package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// Plan is what the next round of a run would do.
type Plan struct {
	Round      int                         // number of the round, from 1
	NowSeconds float64                     // moment of the round
	Cluster    *core.Cluster               // as it is before the round
	Changes    []core.Change               // that the round decides
	Names      map[core.JobID]string       // of the jobs that were submitted until then
	Verdicts   map[core.JobID]core.Verdict // of each job, the last one
	Unfinished []*core.Job                 // jobs that were submitted and have not ended
}

// Plan holds the next round of a run whose scheduler wrote a snapshot, or the first round when the name of the snapshot is
// empty, and changes nothing. That of a simulation is its first round that knows of a job, at its own time.
func (c *Composition) Plan(ctx context.Context, snapshot string) (*Plan, error) {
	return c.planNext(ctx, snapshot, planHooks{})
}

// planHooks are called while a plan is made; each may be nil.
type planHooks struct {
	opened func(backend.Abilities)                // when the backend is open, before the first round
	watch  func(*core.Pipeline) core.Observer     // makes one more observer of the rounds
	next   func(*core.Pipeline, core.Observation) // before the next round, with what the backend reports
	done   func(*Plan, *core.Pipeline)            // after it
}

// planNext is Plan with hooks.
func (c *Composition) planNext(ctx context.Context, snapshot string, by planHooks) (*Plan, error) {
	cluster := c.BuildCluster()
	stages, preview, simulated, err := c.openPlan(ctx, snapshot, cluster)
	if err != nil {
		return nil, err
	}
	can := backend.AbilitiesOf(preview)
	defer closeReactive(can)
	if by.opened != nil {
		by.opened(can)
	}
	p := &Plan{Cluster: cluster, Verdicts: map[core.JobID]core.Verdict{}, Names: map[core.JobID]string{}}
	o := core.PipelineOptions{
		Rounds: c.Round.Options(), Observers: []core.Observer{planObserver{p}}, KeepDevices: can.KeepsDevices, Reseat: can.Reseat(), Memory: can.Memory,
	}
	if by.watch != nil {
		o.Watchers = []func(*core.Pipeline) core.Observer{by.watch}
	}
	pipeline := core.NewPipeline(cluster, stages, o)
	var asked core.Backend = preview
	if can.Memory == nil && snapshot == "" && !simulated { // it is no run that is resumed
		asked = Late(preview, FirstRoundSeconds)
	}
	if by.next != nil {
		asked = overheard{Backend: asked, seen: func(o core.Observation) {
			if o.Decided == nil {
				by.next(pipeline, o)
			}
		}}
	}
	err = pipeline.Run(ctx, asked)
	if err == nil && by.done != nil {
		by.done(p, pipeline)
	}
	if err := errors.Join(err, discardStages(&stages)); err != nil {
		return nil, err
	}
	p.NowSeconds, p.Changes, p.Unfinished = pipeline.NowSeconds(), preview.Changes(), pipeline.Unfinished()
	return p, nil
}

// openPlan makes the policies, and opens the backend without starting anything.
func (c *Composition) openPlan(ctx context.Context, snapshot string, cluster *core.Cluster) (s core.Stages, preview backend.Preview, simulated bool, err error) {
	jobs, err := LoadWorkload(ctx, c.Config, c.logger())
	if err != nil {
		return s, nil, false, err
	}
	if snapshot == "" {
		if err := c.checkFit(ctx, cluster, jobs.Foreseen()); err != nil {
			return s, nil, false, err
		}
	}
	if s, err = BuildStages(c.Config, c.logger()); err != nil {
		return s, nil, false, err
	}
	if preview, simulated, err = c.preview(ctx, snapshot, cluster, jobs); err != nil {
		return s, nil, false, errors.Join(err, discardStages(&s))
	}
	return s, preview, simulated, nil
}

// preview opens the backend without starting anything. That of a simulation knows of submissions at their own time.
func (c *Composition) preview(
	ctx context.Context, snapshot string, cluster *core.Cluster, jobs *workload.Workload,
) (preview backend.Preview, simulated bool, err error) {
	opener, err := c.Backend.New(c.Seed, c.logger())
	if err != nil {
		return nil, false, err
	}
	can := backend.OpenerAbilitiesOf(opener)
	if can.Durable != nil {
		if err := settle(can.Durable, c.Config, jobs, "", nil, false); err != nil {
			return nil, false, err
		}
	}
	if can.Planner != nil {
		preview, err = can.Planner.Preview(ctx, snapshot, cluster, jobs)
		return preview, can.Durable == nil, err
	}
	return nil, false, problem("backend.type", fmt.Sprintf("%q has no state to plan on", c.Backend.ID), "")
}

// planObserver notes what a plan needs of the rounds.
type planObserver struct{ *Plan }

// ObserveRound notes what a plan needs.
func (s planObserver) ObserveRound(r *core.Report) error {
	s.Round = r.View.Round
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == core.JobSubmitted {
			s.Names[e.Job] = e.Spec.Name
		}
	}
	for _, v := range r.Verdicts {
		s.Verdicts[v.Job] = v
	}
	return nil
}

// FirstRoundSeconds is about when the first round of a live run is: a job is reported a little after its submission.
const FirstRoundSeconds = 0.01

// Late is a backend whose rounds come so many seconds after the events that it reports in them.
func Late(b core.Backend, seconds float64) core.Backend { return late{b, seconds} }

type late struct {
	core.Backend
	seconds float64
}

func (l late) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	o, err := l.Backend.Next(ctx, w)
	o.NowSeconds += l.seconds
	return o, err
}
