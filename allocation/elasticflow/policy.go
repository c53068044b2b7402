package elasticflow

import (
	"container/heap"
	"context"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/promise"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// The orders in which elasticflow gives away what no deadline needs.
const (
	leastGrowth = "least_growth"
	mostGrowth  = "most_growth"
)

// Config configures New.
type Config struct {
	// Expand says who gets devices that no deadline needs: the job whose device-time grows least, or most.
	Expand string `config:"expand" doc:"who gets devices that no deadline needs: the job whose device-time grows least by it for each device, as the publication reasons, or most, as its released code does" enum:"least_growth|most_growth"`
	// Overhead is how long a job stands still after each change of its devices.
	Overhead time.Duration `config:"overhead" doc:"how long a job stands still after each change of its devices; less than it is in truth breaks promises" min:"0s"`
	// Levels says which numbers of devices are planned with: the least times powers of two, or all.
	Levels string `config:"levels" doc:"numbers of devices that jobs get: the least that a job can run with times powers of two, or all" enum:"powers_of_two|all"`
}

// PlannedOverhead is the overhead.
func (c Config) PlannedOverhead() (overhead time.Duration, setting string) {
	return c.Overhead, "overhead"
}

// New gives jobs the devices that their deadlines need, and the rest to whoever makes the best of it.
//
// Source: Gu et al., ElasticFlow (ASPLOS'23). The jobs are planned in the order of their deadlines, each on as few devices as its deadline
// allows and as late as possible. What the plans leave at present is given away level by level, jobs that have none first, by
// how much the device-time of a job grows with its next level.
//
// Deviations: those of the admission deadline. A job that runs may keep what it holds without the cost of a change, and is raised only
// where its deadline bears the cost of going back. Where a new plan breaks a promise and the plan of the round before does not, that
// one stays. Jobs without a deadline, best effort ones and those whose deadline cannot be met share what the plans leave. Where devices are of
// several types, each job is planned on one and gets devices of it; what is left of the types is given away alike, to jobs without a plan on the
// type that they hold or else on that of which the most is left; one that needs more devices than any type has is rejected. O(jobs × types × levels × changes of plans) a round.
func New() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "elasticflow",
		OneType: true,
		Summary: "the devices that deadlines need, and the rest where it costs least device-time",
		Description: "Plans all jobs with a deadline in the order of their deadlines, each as late and on as few devices as possible, and gives what the plans leave level by level to those whose device-time grows least, or most, by it; jobs with nothing come first. " +
			"Jobs without a deadline, and best effort ones, share what is left. With the admission deadline no promise is broken while devices do not fail and overhead is true. " +
			"Needs an elasticity that lets jobs run on several numbers of devices. Rounds need an interval, for plans change at its multiples. O(jobs × levels × changes of plans) a round.",
		Source:       "ElasticFlow, ASPLOS'23",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, Config{Expand: leastGrowth, Levels: promise.PowersOfTwo}, func(c Config, _ core.Settings) (core.Allocator, error) {
		return &elasticFlow{
			config: c, ledger: promise.Ledger{Planner: promise.Planner{Overhead: c.Overhead.Seconds()}, Levels: c.Levels},
			standing: core.Standing{UntilSeconds: math.Inf(1)},
		}, nil
	})
}

type elasticFlow struct {
	config   Config
	ledger   promise.Ledger
	kept     []keptPlan  // by JobID: of the last round
	shares   []flowShare // by index among the candidates
	types    []promise.Job
	growing  []int32 // a heap of indices of shares
	left     []int   // devices that nobody got, by bin of the ledger
	grants   []core.Grant
	asked    []flowAsked // of the last round
	health   int
	round    int // of the last answer; 0 before the first
	standing core.Standing
}

// flowAsked is a candidate of the last round, and the range that it had then.
type flowAsked struct {
	id          core.JobID
	least, most int
}

func askedOf(c *core.Candidate) flowAsked {
	return flowAsked{c.ID, c.Response.MinReplicas, c.Response.MaxReplicas}
}

// keptPlan is a plan on devices of a type.
type keptPlan struct {
	plan promise.Plan
	on   core.AcceleratorID
}

// flowShare is what a candidate gets.
type flowShare struct {
	job      promise.Job
	types    []promise.Job  // of one without a plan: the job on each type that it can run on
	entry    *promise.Entry // nil for one without a plan
	replicas int
	seconds  float64      // device-seconds until it is done
	next     int          // the level that it is offered
	growth   float64      // of the seconds by it, a device
	stays    bool         // pinned to what it holds
	keeps    promise.Plan // of one that is pinned to what it gets, and has no plan
}

func (p *elasticFlow) Standing() core.Standing { return p.standing }

func (p *elasticFlow) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	if p.stands(v, candidates) {
		return p.grants, nil // in between, others would be raised only because time has passed
	}
	p.standing.UntilSeconds = math.Inf(1)
	p.plan(v, candidates)
	p.share(v, candidates)
	p.expand(v)
	return p.settle(v, candidates), nil
}

// stands reports whether the answer of the round before is still one: to the same candidates with the same ranges, which may change without an event, on
// the same devices, before any plan changes. It remembers what was asked.
func (p *elasticFlow) stands(v *core.View, candidates []core.Candidate) bool {
	same := slices.EqualFunc(candidates, p.asked, func(c core.Candidate, asked flowAsked) bool { return askedOf(&c) == asked })
	stands := same && v.Round == p.round+1 && v.HealthChanges == p.health && len(v.Changed) == 0 && v.NowSeconds < p.standing.UntilSeconds
	p.round, p.health = v.Round, v.HealthChanges
	if !same {
		p.asked = p.asked[:0]
		for i := range candidates {
			p.asked = append(p.asked, askedOf(&candidates[i]))
		}
	}
	return stands
}

// plan plans the jobs with deadlines. It goes back to the plans of the round before where those keep more deadlines.
func (p *elasticFlow) plan(v *core.View, candidates []core.Candidate) {
	l := &p.ledger
	l.Collect(v, candidates)
	l.Plan()
	if slices.ContainsFunc(l.Jobs(), func(e *promise.Entry) bool { return len(e.Plan) == 0 && p.planned(e.ID) }) {
		l.Recall(p.before)
	}
}

// before is the plan of a job in the round before.
func (p *elasticFlow) before(id core.JobID) (promise.Plan, core.AcceleratorID) {
	if int(id) >= len(p.kept) {
		return nil, core.AnyAccelerator
	}
	return p.kept[id].plan, p.kept[id].on
}

// planned reports whether a job had a plan in the round before.
func (p *elasticFlow) planned(id core.JobID) bool {
	plan, _ := p.before(id)
	return len(plan) > 0
}

// share gives everyone what his plan has at present, and pinned ones what they hold.
func (p *elasticFlow) share(v *core.View, candidates []core.Candidate) {
	l := &p.ledger
	p.shares, p.types, p.left = p.shares[:0], p.types[:0], p.left[:0]
	for bin := range l.Bins() {
		p.left = append(p.left, l.Devices(bin))
	}
	for i := range candidates {
		c := &candidates[i]
		s := flowShare{stays: queue.Stays(v, c)}
		if s.stays {
			s.replicas = c.Held
			for bin := range p.left {
				p.left[bin] -= l.Held(v, c, bin)
			}
		} else if !promise.Promised(c.JobSpec) {
			from := len(p.types)
			p.types = l.Types(v, c, p.types)
			s.types = p.types[from:len(p.types):len(p.types)]
		}
		p.shares = append(p.shares, s)
	}
	for _, e := range l.Jobs() {
		s := &p.shares[e.Index]
		if s.types = e.Types(); len(e.Plan) > 0 {
			s.job, s.entry, s.replicas, s.seconds = e.Job, e, e.Plan.Now(v.NowSeconds), e.Plan.DeviceSeconds()
			p.left[s.job.Bin] -= s.replicas
		}
	}
	for i := range p.shares {
		if s := &p.shares[i]; s.entry == nil && !s.stays {
			p.turn(s, s.types[0])
		}
	}
}

// turn has a job without a plan get devices of another type.
func (p *elasticFlow) turn(s *flowShare, to promise.Job) {
	s.job, s.seconds = to, 0
	if to.Plannable() {
		s.seconds = to.Cheapest()
	}
}

// choose finds the type of a job that has nothing, and no plan: the first, which is that it holds, if enough of it is left, and else that of which the
// most is left.
func (p *elasticFlow) choose(s *flowShare) {
	best := s.types[0]
	for _, j := range s.types[1:] {
		if short := p.left[best.Bin] < best.Levels[0].Replicas || best.Held == 0; short && p.left[j.Bin] > p.left[best.Bin] {
			best = j
		}
	}
	if best.Bin != s.job.Bin {
		p.turn(s, best)
	}
}

// expand gives away what is left.
func (p *elasticFlow) expand(v *core.View) {
	p.growing = p.growing[:0]
	for i := range p.shares {
		if p.offer(&p.shares[i]) {
			p.growing = append(p.growing, int32(i))
		}
	}
	heap.Init(p)
	for slices.Max(p.left) > 0 && len(p.growing) > 0 {
		s := &p.shares[p.growing[0]]
		left := &p.left[s.job.Bin]
		more := s.job.Levels[s.next].Replicas - s.replicas
		if fits := more <= *left; fits && p.bears(v, s) {
			*left -= more
			s.replicas += more
			s.seconds += s.growth * float64(more)
		} else if fits {
			s.next = -1
		}
		if s.next < 0 || !p.offer(s) {
			last := len(p.growing) - 1
			p.growing[0] = p.growing[last]
			p.growing = p.growing[:last]
		}
		if len(p.growing) > 0 {
			heap.Fix(p, 0)
		}
	}
}

// offer finds what a job may get next: the next level, or what it holds, which costs no change. It reports false when there is
// nothing, or not so much is left.
func (p *elasticFlow) offer(s *flowShare) bool {
	found := false
	if s.stays || s.job.NoTypeFits {
		return false
	}
	if s.entry == nil && s.replicas == 0 {
		p.choose(s)
	}
	for k := range s.job.Levels {
		l := &s.job.Levels[k]
		more := l.Replicas - s.replicas
		switch {
		case more > p.left[s.job.Bin]:
			return found
		case more <= 0 || found && l.Replicas != s.job.Held:
			continue
		}
		growth := (p.seconds(&s.job, l) - s.seconds) / float64(more)
		if math.IsNaN(growth) {
			growth = 0 // nobody knows how long it takes
		}
		if !found || growth < s.growth {
			s.next, s.growth = k, growth
		}
		found = true
	}
	return found
}

// seconds is the device-seconds of a job that runs on a level until it is done.
func (p *elasticFlow) seconds(j *promise.Job, l *promise.Level) float64 {
	seconds := j.Left / l.Rate
	if l.Replicas != j.Held {
		seconds += p.ledger.Overhead
	}
	return seconds * float64(l.Replicas)
}

// bears reports whether a job meets its deadline also if the change is for nothing and is undone at once. Who is pinned does not undo it, and
// must find the devices free until it is done.
func (p *elasticFlow) bears(v *core.View, s *flowShare) bool {
	replicas := s.job.Levels[s.next].Replicas
	ready := v.NowSeconds + p.ledger.Overhead
	if replicas == s.job.Held {
		ready = s.job.Ready
	}
	switch {
	case s.entry == nil && s.job.Pinned:
		var keeps bool
		s.keeps, keeps = p.ledger.Keep(&s.job, s.keeps, replicas)
		return keeps
	case s.entry == nil || ready <= v.NowSeconds && !s.job.Pinned:
		return true
	}
	return p.ledger.Change(s.entry, replicas, ready)
}

// settle grants pinned jobs what they hold, then the others by deadline, and those without one in JobID order.
func (p *elasticFlow) settle(v *core.View, candidates []core.Candidate) []core.Grant {
	p.grants = p.grants[:0]
	for i := range p.shares {
		if p.shares[i].stays {
			p.grant(candidates[i].ID, i)
		}
	}
	for _, e := range p.ledger.Jobs() {
		p.kept = queue.Grown(p.kept, e.ID)
		kept := &p.kept[e.ID]
		kept.plan, kept.on = append(kept.plan[:0], e.Plan...), p.ledger.On(e.Bin)
		p.standing.UntilSeconds = min(p.standing.UntilSeconds, e.Plan.NextChange(v.NowSeconds))
		p.grant(e.ID, e.Index)
	}
	for i := range p.shares {
		if !p.shares[i].stays && !promise.Promised(candidates[i].JobSpec) {
			p.grant(candidates[i].ID, i)
		}
	}
	return p.grants
}

func (p *elasticFlow) grant(id core.JobID, index int) {
	s := &p.shares[index]
	on := core.AnyAccelerator
	if !s.stays {
		on = p.ledger.On(s.job.Bin)
	}
	if s.replicas > 0 {
		p.grants = append(p.grants, core.Grant{Job: id, Accelerator: on, Replicas: s.replicas})
	}
}

// Len, Less, Swap, Push and Pop make the growing jobs a heap: those that have nothing first, then by growth, ties in JobID order.
func (p *elasticFlow) Len() int { return len(p.growing) }

func (p *elasticFlow) Less(i, k int) bool {
	a, b := &p.shares[p.growing[i]], &p.shares[p.growing[k]]
	switch {
	case (a.replicas == 0) != (b.replicas == 0):
		return a.replicas == 0
	case a.growth != b.growth:
		return (a.growth < b.growth) == (p.config.Expand == leastGrowth)
	default:
		return p.growing[i] < p.growing[k]
	}
}

func (p *elasticFlow) Swap(i, k int) { p.growing[i], p.growing[k] = p.growing[k], p.growing[i] }

// Push is never called: the heap only shrinks.
func (p *elasticFlow) Push(any) {}

// Pop is never called.
func (p *elasticFlow) Pop() any { return nil }

// AskedOnce is true: an answer stands until a plan changes, and plans of the round before are gone back to.
func (p *elasticFlow) AskedOnce() bool { return true }
