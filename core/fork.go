package core

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

// Forker is implemented by a stage whose answers rest on more than the state of a run and what a Snapshotter holds, such as on when it was asked about a job last.
type Forker interface {
	// Fork is a second instance for the same slot, which answers as this one would from here on and draws its numbers from r; r is nil for one that is only forked
	// again. Neither sees what becomes of the other, though both may be asked at the same time. Nobody closes it: it holds nothing that needs that, logs nothing and
	// leaves nothing behind. The stage is not asked, and not forked by anyone else, meanwhile. A live run forks every minute: it costs little.
	Fork(r *rand.Rand) any
}

// inheritance is what second instances of stages take up to decide as the first ones would. Several pipelines may take it up at the same time.
type inheritance struct {
	learned []Learned           // by those that are no Forker
	streams map[string]rand.PCG // by id of the component

	mutex sync.Mutex
	forks map[string]Forker // by id of the component; none of them is ever asked
}

// Fork is the pipeline as it stands between two rounds, with nobody to decide: see Decide. Nothing that becomes of one of the two is seen by the other.
// It has no observers and no memory, and scales nothing until Decide completes it. O(jobs submitted so far + what the unfinished ones hold).
func (p *Pipeline) Fork() *Pipeline {
	f := &Pipeline{
		rounds: p.rounds, stopwatch: p.stopwatch, keepsDevices: p.keepsDevices, wakeOnReports: p.wakeOnReports, standing: p.standing,
		inherited: p.inheritance(),
	}
	f.resumption.asked, f.resumption.taken = p.resumption.asked, p.resumption.taken
	if learned, behind := p.resumption.behindOf(p.state.view.Round); behind { // the stages are yet to take over from others
		f.inherited = &inheritance{learned: learned}
		f.resumption.taken = &Resumed{Why: "another scheduler decided before"}
	}
	f.state.forkFrom(&p.state)
	return f
}

// ViewAfter is the state of the run after an observation, and before anything is decided. The run stays as it is, and the events are not changed. O(Fork + events).
func (p *Pipeline) ViewAfter(seen Observation) (*View, error) {
	var after state
	after.forkFrom(&p.state)
	seen.Events = slices.Clone(seen.Events)
	if err := after.observe(seen); err != nil {
		return nil, err
	}
	return &after.view, nil
}

// behindOf is what the stages of the next round take up that others learned, where these decided so far.
func (r *resumption) behindOf(round int) ([]Learned, bool) {
	if r.memory == nil || r.memory.Replaying() {
		return nil, false
	}
	learned := r.memory.Learned()
	return learned, r.behind || round == 0 && !r.asked && len(learned) > 0
}

// Decide makes stages those that decide in a fork, and completes it with the rounds, the observers and watchers, the scaling and the KeepDevices of
// options; the others are for pipelines that are no forks. Same says that they are second instances of those that decided in the first pipeline: they go on where those
// are: in the place of one that is a Forker comes a fork of the first one. Any others take over from the facts, with what those of their ids had learned, in a round that
// is held at once. Whoever made the stages ends them; s is not changed.
func (p *Pipeline) Decide(ctx context.Context, s Stages, same bool, o PipelineOptions) error {
	s = s.withAbilities() // the caller keeps his own, which he closes
	forked := false       // the elasticity
	if same {
		var err error
		if forked, err = p.inherited.goOn(&s); err != nil {
			return err
		}
	}
	p.stages, p.rounds, p.observers, p.scaling, p.keepsDevices = s, o.Rounds, o.Observers, o.Scaling, p.keepsDevices || o.KeepDevices
	p.watchBy(o.Watchers)
	p.state.decideBy(&s)
	if !same {
		taken := restore(&s, p.inherited.all())
		p.state.view.IntervalSeconds, p.state.view.OnEvents = o.Rounds.IntervalSeconds, o.Rounds.OnEvents
		taken.Why, taken.Now = "the config was changed", s.ids()
		p.resumption.taken, p.resumption.immediate = taken, p.state.view.Round > 0
		return nil
	}
	if forked { // it knows the jobs
		return nil
	}
	return p.state.introduce(ctx, &s)
}

// View is the state after the last round. It is not to be changed, and valid until the next one.
func (p *Pipeline) View() *View { return &p.state.view }

// Pending lists the jobs that wait for admission, by JobID. They are not to be changed.
func (p *Pipeline) Pending() []*Job { return p.state.pending }

// inheritance is what the stages learned, and where their random streams are.
func (p *Pipeline) inheritance() *inheritance {
	if p.inherited != nil && p.stages.Allocation.Policy == nil {
		return p.inherited // nobody decided since
	}
	i := &inheritance{streams: map[string]rand.PCG{}, forks: map[string]Forker{}}
	for id, can := range p.stages.all {
		if can.Forker != nil {
			if fork := AbilitiesOf(can.Forker.Fork(nil)).Forker; fork != nil {
				i.forks[id] = fork
				continue
			}
		}
		i.learned = append(i.learned, snapshotOf(id, can.Snapshotter)...)
	}
	for id, stream := range p.stages.streams {
		if stream != nil {
			i.streams[id] = *stream
		}
	}
	return i
}

// all is what all stages learned.
func (i *inheritance) all() []Learned {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	list := slices.Clone(i.learned)
	for _, id := range slices.Sorted(maps.Keys(i.forks)) {
		list = append(list, snapshotOf(id, AbilitiesOf(i.forks[id]).Snapshotter)...)
	}
	return list
}

// goOn has second instances go on where the first ones were, and reports whether the elasticity is a fork of the first one.
func (i *inheritance) goOn(s *Stages) (forked bool, err error) {
	for id, stream := range s.streams {
		if at, known := i.streams[id]; known && stream != nil {
			*stream = at
		}
	}
	if lost := restore(s, i.learned).Lost; len(lost) > 0 {
		return false, fmt.Errorf("second instances do not take up what the first ones learned: %s", strings.Join(lost, "; "))
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	var problems [4]error
	for k := range s.Admission {
		if _, err := takeFork(i, &s.Admission[k]); err != nil {
			return false, err
		}
	}
	_, problems[0] = takeFork(i, &s.Allocation)
	_, problems[1] = takeFork(i, &s.Placement)
	forked, problems[2] = takeFork(i, &s.Elasticity)
	_, problems[3] = takeFork(i, &s.Scaler)
	return forked, errors.Join(problems[:]...)
}

// takeFork puts a fork of the first instance in the place of the second one, if there is one, and reports whether.
func takeFork[S any](i *inheritance, c *Component[S]) (forked bool, err error) {
	kept := i.forks[c.ID]
	if kept == nil {
		return false, nil
	}
	var r *rand.Rand
	if c.Stream != nil {
		stream := *c.Stream
		c.Stream = &stream
		r = rand.New(&stream)
	}
	policy, fits := kept.Fork(r).(S)
	if !fits {
		return false, fmt.Errorf("component %q: its fork is for another slot", c.ID)
	}
	c.Policy = policy
	c.findAbilities()
	return true, nil
}

// introduce shows an elasticity that never saw them the jobs whose responses stand.
func (s *state) introduce(ctx context.Context, stages *Stages) error {
	var jobs []*Job
	for _, j := range s.view.Jobs {
		if j != nil && s.responses[j.ID] != nil {
			jobs = append(jobs, j)
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	if _, err := stages.Elasticity.Policy.Respond(ctx, &s.view, jobs); err != nil {
		return fmt.Errorf("component %q: respond: %w", stages.Elasticity.ID, err)
	}
	return nil
}

// streams walks through the random streams of the components of every slot.
func (s *Stages) streams(yield func(id string, stream *rand.PCG) bool) {
	for i := range s.Admission {
		if !yield(s.Admission[i].ID, s.Admission[i].Stream) {
			return
		}
	}
	_ = yield(s.Allocation.ID, s.Allocation.Stream) && yield(s.Placement.ID, s.Placement.Stream) &&
		yield(s.Elasticity.ID, s.Elasticity.Stream) && yield(s.Scaler.ID, s.Scaler.Stream)
}

// forkFrom makes the state a copy of another. What a round begins with anew is left out.
func (s *state) forkFrom(o *state) {
	jobs := make(map[*Job]*Job)
	copied := func(j *Job) *Job {
		if j == nil {
			return nil
		}
		c, known := jobs[j]
		if !known {
			c = j.fork()
			jobs[j] = c
		}
		return c
	}
	list := func(from []*Job) []*Job {
		to := make([]*Job, len(from))
		for i, j := range from {
			to[i] = copied(j)
		}
		return to
	}
	s.view = o.view
	v := &s.view
	v.Cluster, v.Jobs, v.Active, v.Changed = o.view.Cluster.Fork(), list(o.view.Jobs), slices.Clone(o.view.Active), slices.Clone(o.view.Changed)
	_, next, _ := o.view.ChangesSince(0)
	v.journal = journal{dropped: next} // whoever keeps a copy of the view begins anew
	s.pending, s.running, s.held = list(o.pending), list(o.running), list(o.held)
	s.responses = make([]*Response, len(o.responses))
	for i, r := range o.responses {
		s.responses[i] = r.fork()
	}
	s.candidates = make([]Candidate, len(o.candidates))
	for i := range o.candidates {
		j := copied(o.candidates[i].Job)
		s.candidates[i] = Candidate{Job: j, Response: s.responses[j.ID]}
	}
	s.reports = make([][]Reports, len(o.reports))
	for i, of := range o.reports {
		s.reports[i] = slices.Clone(of)
		for k := range of {
			s.reports[i][k].passes, s.reports[i][k].steps = slices.Clone(of[k].passes), slices.Clone(of[k].steps)
		}
	}
	s.marks = make([]*mark, len(o.marks))
	for i, m := range o.marks {
		switch {
		case m == &o.over:
			s.marks[i] = &s.over
		case m != nil:
			c := *m
			s.marks[i] = &c
		}
	}
	s.over = o.over
	s.reviseAt, s.reviewAt, s.lastID, s.devices, s.sharing, s.oneType = o.reviseAt, o.reviewAt, o.lastID, o.devices, o.sharing, o.oneType
	s.blocked, s.shrunken, s.paused, s.outgrown = o.blocked, o.shrunken, o.paused, o.outgrown
	s.unseated, s.shares = slices.Clone(o.unseated), maps.Clone(o.shares)
	s.retries = o.retries.fork()
	s.capacity.OneType = o.capacity.OneType
	s.holders = holders{devices: o.holders.devices, jobs: maps.Clone(o.holders.jobs), layouts: maps.Clone(o.holders.layouts)}
	s.pools = pools{changed: slices.Clone(o.pools.changed), grown: slices.Clone(o.pools.grown), again: o.pools.again}
	s.report = Report{View: v, GapRatio: o.report.GapRatio, Promises: o.report.Promises, Guarantees: o.report.Guarantees}
}

// fork is a copy of the job of which nothing is shared that changes.
func (j *Job) fork() *Job {
	c := *j
	c.Seats, c.Measured, c.Reported = slices.Clone(j.Seats), slices.Clone(j.Measured), slices.Clone(j.Reported)
	for i := range c.Reported {
		c.Reported[i].Points = slices.Clone(c.Reported[i].Points)
	}
	return &c
}

// fork is a copy of the response, whose curves belong to the stage that made them.
func (r *Response) fork() *Response {
	if r == nil {
		return nil
	}
	c := *r
	c.Curves = slices.Clone(r.Curves)
	for i := range c.Curves {
		c.Curves[i].OneNode, c.Curves[i].ManyNodes = slices.Clone(r.Curves[i].OneNode), slices.Clone(r.Curves[i].ManyNodes)
	}
	if r.MixedTypes != nil {
		c.MixedTypes = &MixedTypeRates{SingleDeviceRates: slices.Clone(r.MixedTypes.SingleDeviceRates), SyncSeconds: slices.Clone(r.MixedTypes.SyncSeconds)}
	}
	return &c
}

// Fork is a copy of the cluster, to which nodes may join.
func (c *Cluster) Fork() *Cluster {
	f := *c
	f.Accelerators, f.Nodes, f.Pools = slices.Clone(c.Accelerators), slices.Clone(c.Nodes), slices.Clone(c.Pools)
	return &f
}
