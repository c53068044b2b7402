package sim

import (
	"context"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// Standing is a run at a moment between two rounds, for a simulation that begins there.
type Standing struct {
	// NowSeconds: moment of the run, in seconds since its start.
	NowSeconds float64
	Cluster    *core.Cluster  // as the pipeline knows it, which learns of changes here
	Submitted  int            // how many ids jobs had so far
	Jobs       []StandingJob  // those that have not ended, by JobID
	Arrivals   []workload.Job // to come, in order of their submissions; they are given the ids that follow
	Nodes      []NodeChange   // to come
}

// StandingJob is a job as it stands, and how it goes on. The last PhaseEnd of its model is all of its work; one that has done that much ends at once.
type StandingJob struct {
	*core.Job
	// Model: how the job goes on.
	Model workload.Model
}

// NodeChange is a node of the cluster that changes its health at a moment.
type NodeChange struct {
	// AtSeconds: moment of the change, in seconds since the start of the run.
	AtSeconds float64
	// Node: id of the node.
	Node core.NodeID
	// To: health from then on.
	To core.Health
}

// Resume begins a simulation in the middle of a run. Of the config it leaves out what lies ahead of a run by moments: node events, joining nodes, outages, and failures, which
// the standing shows.
func Resume(ctx context.Context, c Config, settings core.Settings, from Standing) (*Simulator, error) {
	c.NodeEvents, c.JoiningNodes, c.Outages, c.Failures = nil, nil, nil, Failures{}
	w := &workload.Workload{Jobs: slices.Clone(from.Arrivals)}
	for i := range w.Jobs {
		w.Jobs[i].Spec.ID = core.JobID(from.Submitted + i)
	}
	grows := from.Cluster.MayGrow && len(from.Cluster.Pools) == 0 // nobody knows by which nodes, and nobody is rejected for that
	opened, err := (&opener{c, settings}).Open(ctx, from.Cluster, w)
	if err != nil {
		return nil, err
	}
	s := opened.(*Simulator)
	s.devices.grows = grows
	from.Cluster.MayGrow = s.mayGrow()
	s.jobs.base, s.jobs.arrived = from.Submitted, from.Submitted
	s.jobs.byID = append(make([]*simJob, from.Submitted), s.jobs.byID...)
	s.clock.now, s.clock.begun = from.NowSeconds, from.NowSeconds > 0
	s.came(from.NowSeconds)
	s.awaitNodes(from.Nodes)
	for i := range from.Jobs {
		s.stand(&from.Jobs[i])
	}
	s.disturb(s.clock.now, &s.clock.notes)
	for _, j := range s.jobs.running {
		s.clock.notes = append(s.clock.notes, j.progressed(s.clock.now))
	}
	return s, nil
}

// awaitNodes schedules what becomes of the nodes, and that those which are on their way come when they are expected.
func (s *Simulator) awaitNodes(changes []NodeChange) {
	e := &s.devices.nodes
	for i := range e.schedule { // evictions, which know no past
		e.schedule[i].at += s.clock.now
	}
	for _, c := range changes {
		if int(c.Node) < len(s.devices.cluster.Nodes) {
			e.schedule = append(e.schedule, nodeEvent{at: max(c.AtSeconds, s.clock.now), node: c.Node, to: c.To})
		}
	}
	e.asked = len(e.schedule)
	for i := range s.devices.cluster.Nodes {
		if n := &s.devices.cluster.Nodes[i]; n.Health == core.Provisioning {
			e.schedule = append(e.schedule, nodeEvent{at: max(n.ExpectedSeconds, s.clock.now), node: n.ID, to: core.Ready, ofPool: n.Pool != ""})
		}
	}
	slices.SortStableFunc(e.schedule, compareNodeEvents)
}

// stand takes in a job as it stands.
func (s *Simulator) stand(from *StandingJob) {
	j := s.newJob(&workload.Job{Spec: *from.JobSpec, Model: from.Model})
	s.jobs.byID[j.Spec.ID] = j
	s.jobs.active++
	_, measures := from.Model.(workload.Measurer)
	s.reports.any = s.reports.any || measures
	last := from.Model.Phases() - 1
	j.progress = max(min(from.WorkDone(s.clock.now), from.Model.PhaseEnd(last)), 0)
	if told := j.progress; from.LastChange >= s.clock.now { // it was stopped or moved just now, and nobody was told yet what that cost
		if j.lose(); j.progress < told && from.State != core.Running {
			s.clock.notes = append(s.clock.notes, j.progressed(s.clock.now))
		}
	}
	for j.phase < last && from.Model.PhaseEnd(j.phase) <= j.progress {
		j.phase++
	}
	j.asOf, j.furthest, j.progressAtStart, j.started = s.clock.now, j.progress, j.progress, !math.IsNaN(from.FirstStart)
	if from.State != core.Running {
		return
	}
	j.seats, j.running.Tuning, j.running.Replicas = slices.Clone(from.Seats), from.Tuning, from.Held
	j.holdsFrom, j.runsFrom, j.pausedUntil = s.clock.now, s.clock.now, from.ProgressAsOf
	if from.ProgressRate == 0 {
		j.pausedUntil = max(j.pausedUntil, from.LastChange+j.overhead)
	}
	for _, seat := range j.seats {
		j.running.Shape = append(j.running.Shape, seat.Devices.Count())
		j.running.Accelerators = append(j.running.Accelerators, s.devices.cluster.Accelerators[s.devices.cluster.Nodes[seat.Node].Accelerator])
	}
	j.unmeasured = len(from.Measured) == 0
	at, _ := slices.BinarySearchFunc(s.jobs.running, j, compareJobs)
	s.jobs.running = slices.Insert(s.jobs.running, at, j)
	if from.Starting {
		j.runsFrom = max(s.clock.now, from.LastChange+s.config.StartDelay.Seconds())
		j.pausedUntil = max(j.pausedUntil, j.runsFrom)
		s.starts.starting = append(s.starts.starting, j)
	}
	s.give(j, from.Resources)
	s.span(j, +1)
	if s.devices.sharing != nil {
		s.devices.sharing.join(j)
	}
	if s.devices.slicing != nil {
		s.devices.slicing.divide(j.Spec.Slice(), j.seats, from.Slices())
	}
	s.schedule(j)
}
