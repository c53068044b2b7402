package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// A run outlives its policies. A backend that records its rounds replays them to the next scheduler, with what
// was decided: a round is then taken in one of two ways. The same composition is asked again and must decide alike, which
// brings its stages to where they were. Any other is not asked: what was decided stands, and gives the facts from which new
// stages go on. Stages that are Snapshotters also get back what the last stages of their id had learned.

// Snapshotter is implemented by a stage that learns what no fact of a job shows, such as the order of its queues. One that
// does not is created anew and goes on from the facts.
type Snapshotter interface {
	// Snapshot is what the stage has learned. It is called between rounds and changes nothing.
	Snapshot() ([]byte, error)
	// Restore takes up what a stage of the same id had learned, perhaps with other settings or by another version. It is
	// called before the stage is asked anything. After an error the stage is as if it was not called.
	Restore(learned []byte) error
}

// Learned is what a component had learned.
type Learned struct {
	Component string // id of the component that learned
	Data      []byte // snapshot, in the form that the component chose
}

// Decided is what an earlier scheduler decided in a round.
type Decided struct {
	Changes []Change // of the round
	// Same says that a composition of the same identity decided: it is asked again, and its answer compared.
	Same bool
	// Learned is what that composition began with, if it did in this round or the first one before it that is not Same.
	Learned []Learned
	// Files are those that its components had read when it began, where they are known.
	Files []FileRead
	// Sharing is how devices were shared then; nil for as they are now, or where nobody recorded it.
	Sharing *Sharing
}

// Composition is stages and when they are asked.
type Composition struct {
	Stages   Stages       // policies that decide
	Options  RoundOptions // of its rounds
	Identity string       // text that is equal for compositions that decide alike
	Config   string       // resolved config, in YAML
	Files    []FileRead   // that its components read when they were made
	Why      string       // it takes over, in one sentence; empty for that the config was changed

	// Begun is called when the stages have taken over from those before them after that many rounds, before they are asked
	// anything: the moment to end those before. nil for nothing to do. It is called between two rounds.
	Begun func(rounds int, taken *Resumed)
}

// Memory keeps for later schedulers which composition decided, and what it had learned. A backend that records its rounds
// has one.
type Memory interface {
	// Replaying reports whether the next round is one that an earlier scheduler held.
	Replaying() bool
	// Learned is what was last kept.
	Learned() []Learned
	// Keep replaces what is kept.
	Keep(l []Learned) error
	// Begin records that a composition decides from a round on, and what it began with. A composition without an identity is
	// that for which the memory was opened.
	Begin(round int, c *Composition, from []Learned) error
}

// Resumed says, in the report of the first round that a composition decides, how it took over.
type Resumed struct {
	Why      string   // in one sentence
	Restored []string // ids of the components that took up what those before them had learned
	Lost     []string // why others that could, did not
	// Now is the components that decide from here on, when they took over by Pipeline.Replace; otherwise nil.
	Now *StageIDs
}

// StageIDs are the ids of the components of a composition.
type StageIDs struct {
	Admission                                 []string // in the order of the composition
	Allocation, Placement, Elasticity, Scaler string   // one each; Scaler is empty for none
}

// keepEvery is after how many rounds what the stages learned is kept again.
const keepEvery = 32

// resumption is how a pipeline takes over from another, or its stages from others.
type resumption struct {
	memory    Memory
	newStages func(context.Context) (Stages, error)

	behind    bool // rounds were taken in that the stages were not asked about
	diverged  bool // the stages decided otherwise than recorded
	asked     bool // the stages were asked something
	chose     bool // the chooser was asked
	why       string
	taken     *Resumed // by the round to come
	unkept    int      // rounds since what was learned was kept
	immediate bool     // the next round is due at once

	mutex   sync.Mutex
	pending *replacement
	cancel  context.CancelFunc // ends the last wait for a round
	ended   bool               // no further round is held
}

type replacement struct {
	with *Composition
	done chan error
}

// Replace lets another composition decide from the next round on, which is held at once. It may be called from any goroutine
// while the pipeline runs, and returns when the new stages have taken over, or with an error when the run has ended before. The
// stages before are not closed: see Composition.Begun.
func (p *Pipeline) Replace(ctx context.Context, c *Composition) error {
	r := &p.resumption
	if r.memory == nil {
		return errors.New("this pipeline remembers nothing")
	}
	wanted := &replacement{c, make(chan error, 1)}
	r.mutex.Lock()
	if r.ended {
		r.mutex.Unlock()
		return errRunEnded
	}
	if r.pending != nil {
		r.mutex.Unlock()
		return errors.New("another composition is about to take over")
	}
	if r.pending = wanted; r.cancel != nil {
		r.cancel()
	}
	r.mutex.Unlock()
	select {
	case err := <-wanted.done:
		return err
	case <-ctx.Done():
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if r.pending == wanted {
			r.pending = nil
			return ctx.Err()
		}
		return <-wanted.done // it is being carried out
	}
}

// errRunEnded is the answer to a takeover that comes too late.
var errRunEnded = errors.New("the run has ended")

// open lets others take over.
func (r *resumption) open() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.ended = false
}

// end lets nobody take over any more.
func (r *resumption) end() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.ended = true; r.pending != nil {
		r.pending.done <- errRunEnded
		r.pending = nil
	}
}

// next waits for a round, and for other compositions to take over before it.
func (p *Pipeline) next(ctx context.Context, b Backend) (Observation, error) {
	r := &p.resumption
	if err := p.choose(ctx); err != nil {
		return Observation{}, err
	}
	if r.memory == nil {
		w := p.wake()
		if r.immediate {
			w.BySeconds = p.state.view.NowSeconds
		}
		return p.wait(ctx, b, w)
	}
	for {
		replaying := r.memory.Replaying()
		waiting, cancel := context.WithCancel(ctx)
		r.mutex.Lock()
		wanted := r.pending
		if replaying {
			wanted = nil
		} else if wanted != nil {
			r.pending = nil
		} else {
			r.cancel = cancel
		}
		r.mutex.Unlock()
		if wanted != nil {
			cancel()
			p.carryOut(wanted)
			continue
		}
		w := p.wake()
		if r.immediate {
			w.BySeconds = p.state.view.NowSeconds
		}
		seen, err := p.wait(waiting, b, w)
		cancel()
		if err != nil && errors.Is(err, context.Canceled) && ctx.Err() == nil {
			continue // Replace asks for it
		}
		return seen, err
	}
}

// carryOut answers whoever wants to take over, whatever comes of it.
func (p *Pipeline) carryOut(wanted *replacement) {
	err := errRunEnded
	defer func() { wanted.done <- err }()
	err = p.replace(wanted.with)
}

// replace puts a composition in the place of the one that decided so far.
func (p *Pipeline) replace(c *Composition) error {
	r := &p.resumption
	learned := p.learned()
	if r.memory != nil && r.chose && (r.behind || !r.asked) { // what the stages there learned was not of this run's last ones
		learned, r.behind, r.asked = r.memory.Learned(), false, true
	}
	stages := c.Stages.withAbilities()
	taken := restore(&stages, learned)
	if r.memory != nil {
		if err := errors.Join(r.memory.Keep(learned), r.memory.Begin(p.state.view.Round+1, c, learned)); err != nil {
			return fmt.Errorf("record the new composition: %w", err)
		}
	}
	taken.Why, taken.Now = cmp.Or(c.Why, "the config was changed"), c.Stages.ids()
	p.stages, p.rounds = stages, c.Options
	p.state.decideBy(&stages)
	p.state.view.IntervalSeconds, p.state.view.OnEvents = c.Options.IntervalSeconds, c.Options.OnEvents
	r.taken, r.immediate = taken, p.state.view.Round > 0
	if c.Begun != nil {
		c.Begun(p.state.view.Round, taken)
	}
	return nil
}

// decide finds the changes of a round: those of the stages, or those that were recorded.
func (p *Pipeline) decide(ctx context.Context, seen *Decided) ([]Change, error) {
	s, r := &p.state, &p.resumption
	s.recorded = false
	s.report.Resumed, r.immediate = nil, false
	if seen != nil && (r.diverged || !seen.Same) {
		r.behind, r.immediate = true, true
		if err := s.carryOut(seen.Changes); err != nil {
			return nil, err
		}
		return p.repeat(seen.Changes)
	}
	if seen == nil && s.view.Round == 1 && r.learnedBefore() {
		r.behind, r.why = true, "another scheduler led before" // and recorded no rounds
	}
	if err := p.takeOver(ctx, seen); err != nil {
		return nil, err
	}
	r.asked = true
	err := p.review(ctx)
	reviewed := s.reviewed
	if seen != nil {
		reviewed = seen.Changes // stands, whatever the admitters answer now
	}
	if wrong := s.carryOut(reviewed); wrong != nil {
		return nil, wrong
	}
	if err == nil {
		err = p.askStages(ctx)
	}
	if seen != nil {
		return p.confirm(ctx, seen, err)
	}
	if err != nil {
		return nil, err
	}
	return s.diff(&p.plan, &p.stages), nil
}

// learnedBefore reports whether another scheduler learned something before the stages were asked anything.
func (r *resumption) learnedBefore() bool {
	return !r.asked && r.memory != nil && len(r.memory.Learned()) > 0
}

// confirm compares what the stages decided, or the error that they ended with, with what was recorded. Where they differ the record
// stands, and the stages are made anew.
func (p *Pipeline) confirm(ctx context.Context, seen *Decided, err error) ([]Change, error) {
	s, r := &p.state, &p.resumption
	if ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	if err == nil {
		decided := s.diff(&p.plan, &p.stages)
		if r.why = differs(decided, seen.Changes); r.why == "" {
			return decided, nil
		}
	} else {
		r.why = err.Error()
	}
	r.why = fmt.Sprintf("round %d was decided otherwise before: %s", s.view.Round, r.why)
	if changed := p.changedFile(seen.Files); changed != "" {
		r.why = fmt.Sprintf("%s was changed since the run read it: %s", changed, r.why)
	}
	if r.newStages == nil {
		return nil, errors.New(r.why)
	}
	r.behind, r.diverged, r.immediate = true, true, true
	s.revive()
	return p.repeat(seen.Changes)
}

// changedFile is the first file that components had read otherwise than those of now; empty for none.
func (p *Pipeline) changedFile(before []FileRead) string {
	for _, can := range p.stages.all {
		if can.Files == nil {
			continue
		}
		for _, now := range can.Files.FilesRead() {
			if slices.ContainsFunc(before, func(f FileRead) bool { return f.Path == now.Path && f.SHA256 != now.SHA256 }) {
				return now.Path
			}
		}
	}
	return ""
}

// repeat takes in what was decided without asking the stages.
func (p *Pipeline) repeat(changes []Change) ([]Change, error) {
	p.standing.IfSeated = 0          // which stages said that decided otherwise
	p.plan.Cluster = ClusterTarget{} // a backend knows what it was given
	return p.state.repeat(changes)
}

// takeOver makes the stages those that decide from this round on, when they were not asked about the rounds before.
func (p *Pipeline) takeOver(ctx context.Context, seen *Decided) error {
	s, r := &p.state, &p.resumption
	if r.behind {
		r.behind = false
		if r.asked {
			stages, err := r.newStages(ctx)
			if err != nil {
				return fmt.Errorf("round %d: create the stages again: %w", s.view.Round, err)
			}
			p.stages = stages.withAbilities()
		}
		var learned []Learned
		switch {
		case seen != nil:
			learned = seen.Learned
		case r.memory != nil:
			learned = r.memory.Learned()
		}
		taken := restore(&p.stages, learned)
		if taken.Why = r.why; taken.Why == "" {
			taken.Why = "the run was begun by another composition"
		}
		if seen == nil && r.memory != nil {
			if err := r.memory.Begin(s.view.Round, &Composition{}, learned); err != nil {
				return fmt.Errorf("round %d: record the new composition: %w", s.view.Round, err)
			}
		}
		r.taken = taken
	}
	if r.taken != nil {
		s.report.Resumed, r.taken = r.taken, nil
		s.touchAll()
	}
	return nil
}

// remember keeps what the stages learned, every so many new rounds.
func (p *Pipeline) remember(seen *Decided) error {
	r := &p.resumption
	if r.memory == nil || seen != nil {
		return nil
	}
	if r.unkept++; r.unkept < keepEvery {
		return nil
	}
	return p.keep()
}

// keep keeps what the stages learned, if they decided new rounds since.
func (p *Pipeline) keep() error {
	r := &p.resumption
	if r.unkept == 0 {
		return nil
	}
	r.unkept = 0
	learned := p.learned()
	if len(learned) == 0 {
		return nil
	}
	if err := r.memory.Keep(learned); err != nil {
		return fmt.Errorf("round %d: keep what was learned: %w", p.state.view.Round, err)
	}
	return nil
}

// learned is what the stages learned. One that cannot tell is left out: it goes on from the facts.
func (p *Pipeline) learned() (list []Learned) {
	for id, can := range p.stages.all {
		list = append(list, snapshotOf(id, can.Snapshotter)...)
	}
	return append(list, p.chooserLearned()...)
}

// snapshotOf is what a policy learned; none for one that cannot tell, and for nil.
func snapshotOf(id string, s Snapshotter) []Learned {
	if s != nil {
		if data, err := s.Snapshot(); err == nil {
			return []Learned{{id, data}}
		}
	}
	return nil
}

// restore gives stages what those of their id had learned.
func restore(to *Stages, learned []Learned) *Resumed {
	taken := new(Resumed)
	for id, can := range to.all {
		s := can.Snapshotter
		at := slices.IndexFunc(learned, func(l Learned) bool { return l.Component == id })
		if s == nil || at < 0 {
			continue
		}
		if err := s.Restore(learned[at].Data); err != nil {
			taken.Lost = append(taken.Lost, fmt.Sprintf("%s: %v", id, err))
			continue
		}
		taken.Restored = append(taken.Restored, id)
	}
	return taken
}

// all walks through what the components of every slot can do.
func (s *Stages) all(yield func(id string, can *Abilities) bool) {
	for i := range s.Admission {
		if !yield(s.Admission[i].ID, &s.Admission[i].can) {
			return
		}
	}
	_ = yield(s.Allocation.ID, &s.Allocation.can) && yield(s.Placement.ID, &s.Placement.can) &&
		yield(s.Elasticity.ID, &s.Elasticity.can) && yield(s.Scaler.ID, &s.Scaler.can)
}

// ids are those of the components of every slot.
func (s *Stages) ids() *StageIDs {
	ids := &StageIDs{Allocation: s.Allocation.ID, Placement: s.Placement.ID, Elasticity: s.Elasticity.ID, Scaler: s.Scaler.ID}
	for i := range s.Admission {
		ids.Admission = append(ids.Admission, s.Admission[i].ID)
	}
	return ids
}

// differs says in what first; empty for the same changes.
func differs(is, was []Change) string {
	for i := range max(len(is), len(was)) {
		switch {
		case i >= len(is):
			return fmt.Sprintf("%v job %d is missing", was[i].Action, was[i].Job)
		case i >= len(was):
			return fmt.Sprintf("%v job %d is new", is[i].Action, is[i].Job)
		case !is[i].same(&was[i]):
			return fmt.Sprintf("%v is now %v", was[i], is[i])
		}
	}
	return ""
}

// same reports whether two changes of a round are the same decision, by the same component.
func (c *Change) same(o *Change) bool {
	return c.Round == o.Round && c.Action == o.Action && c.Job == o.Job && c.Reason == o.Reason && c.By == o.By &&
		SameSeats(c.Seats, o.Seats) && c.Tuning.Equal(o.Tuning) && SameResources(c.Resources, o.Resources)
}

// repeat makes recorded changes those of the round: who was started was admitted, who was discarded was rejected.
func (s *state) repeat(changes []Change) ([]Change, error) {
	s.occupancy.begin() // what the stages placed does not count
	s.recorded, s.evicted, s.changes = true, s.evicted[:0], s.changes[:0]
	s.report.Verdicts, s.report.StageTime = s.report.Verdicts[:0], [len(StageNames)]time.Duration{}
	s.report.GapRatio = math.NaN()
	for i := range changes {
		c := changes[i]
		c.Seats = slices.Clone(c.Seats)
		if c.Action == Finish || c.Action == Pause { // carried out already
			s.changes = append(s.changes, c)
			continue
		}
		j := s.view.Job(c.Job)
		if j == nil {
			return nil, fmt.Errorf("round %d: a record has %v of job %d, which is not there", s.view.Round, c.Action, c.Job)
		}
		for _, seat := range c.Seats {
			if seat.Node < 0 || int(seat.Node) >= len(s.view.Cluster.Nodes) {
				return nil, fmt.Errorf("round %d: a record has job %q on node %d, which is not there", s.view.Round, j.Name, seat.Node)
			}
		}
		if j.State == Pending && c.Action != Discard && c.Action != Stop {
			s.admit(j)
		}
		if c.Action == Discard {
			s.reject(j, Verdict{Job: c.Job, Code: Reject, Reason: c.Reason, By: c.By})
		}
		s.changes = append(s.changes, c)
	}
	s.pending = slices.DeleteFunc(s.pending, func(j *Job) bool { return j.State != Pending })
	s.forgetEnded()
	return s.changes, nil
}

// revive takes back that jobs were rejected in this round: what is recorded stands.
func (s *state) revive() {
	s.report.Ended = slices.DeleteFunc(s.report.Ended, func(j *Job) bool {
		if j.State != Rejected {
			return false
		}
		j.State, j.FinishSeconds, j.WaitingReason = Pending, math.NaN(), NoReason
		s.view.Jobs[j.ID], s.marks[j.ID] = j, new(mark)
		s.pending = insertJob(s.pending, j)
		return true
	})
}

// touchAll has every job and every node looked at anew.
func (s *state) touchAll() {
	for _, j := range s.view.Jobs {
		if j != nil {
			s.touch(j.ID)
		}
	}
	s.view.HealthChanges++
	s.restale()
}
