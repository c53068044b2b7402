package muri

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/interference"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// The values of Config.
const (
	knowsRemaining = "remaining"
	knowsAttained  = "attained"
	idealPeriod    = "ideal"
	measuredPeriod = "measured"
)

// Config configures New.
type Config struct {
	// Knowledge is what jobs are ordered by: remaining or attained service.
	Knowledge string `config:"knowledge" doc:"the order of the jobs: remaining, by the device-seconds that they still need alone, which must be known (Muri-S); attained, by those that they received, of a group their part (Muri-L)" enum:"remaining|attained"`
	// Largest is how many jobs may share devices.
	Largest int `config:"largest_group" doc:"how many jobs may share devices; cluster.max_owners bounds it as well" min:"1" max:"4"`
	// Exchange lets two groups divide their jobs anew where they use the resources better then.
	Exchange bool `config:"exchange" doc:"after the matchings, two groups divide their jobs anew where they use the resources better then, until no two do; ours"`
	// Steady lets jobs with the same stages stand in for each other, so that running groups stay as they are.
	Steady bool `config:"steady" doc:"jobs with the same stages stand in for each other, so that groups that run stay as they are; ours"`
	// Period says how long an iteration of a group is expected to be: as measured, or in closed form.
	Period string `config:"period" doc:"how long an iteration of a group is expected to be: measured, as on the cluster of Muri, 31 to 48 % longer than its stages need; ideal, as long as these" enum:"measured|ideal"`
}

// Capabilities are what the order needs to know.
func (c Config) Capabilities() []core.Capability {
	if c.Knowledge == knowsRemaining {
		return []core.Capability{core.CapabilityRemainingWork}
	}
	return nil
}

// LeastTurn is a round: the order of jobs by what they received moves while they run, even while they start. What they still need moves only as they
// get on.
func (c Config) LeastTurn() (seconds float64, setting string, turns bool) {
	return 0, "", c.Knowledge == knowsAttained
}

// New makes the factory of the policy muri: groups of jobs share devices and interleave the stages of their iterations.
//
// Source: Zhao et al., Muri (SIGCOMM 2022). The package's comment explains the idea and what is different. A job asks for what it requested, within what elasticity lets
// it have. Jobs are grouped that want as many devices of the same types, whose stages are known, and whose memory fits on a device together; all others
// run alone, as do pinned ones once they run. The cost is that of [Grouper.Solve].
func New() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "muri",
		Summary: "groups of up to four jobs that interleave their stages on the same devices",
		Description: "Where jobs need more devices than there are, those of the same size are matched so that together they keep storage, devices and network busy, up to four on the same devices. " +
			"Those that have the least to go, or received the least, come first. A group that would be slower than its jobs one after the other is not made. " +
			"Jobs ask for the replicas that they request, within what elasticity lets them have; those that do not declare the stages of an iteration run alone, and pinned jobs stay as they started. " +
			"At most cubic in the jobs of a size, near quadratic where many have the same stages.",
		Source:  "Muri, SIGCOMM'22; exchange and steady are ours",
		Sharing: []core.Sharing{core.TimeSlice},
	}, Config{Knowledge: knowsAttained, Largest: interference.MaxInterleaved, Exchange: true, Steady: true, Period: measuredPeriod}, func(c Config, _ core.Settings) (core.Allocator, error) {
		p := &policy{attained: c.Knowledge == knowsAttained, largest: c.Largest, order: queue.Order{Drifts: true}, standing: core.Standing{UntilSeconds: math.Inf(1)}}
		p.grouper.Exchange, p.grouper.Steady = c.Exchange, c.Steady
		if c.Period == measuredPeriod {
			p.grouper.Model = interference.MeasuredPeriods()
		}
		return p, nil
	})
}

type policy struct {
	attained bool // jobs are in the order of what they received
	largest  int
	grouper  Grouper

	order    queue.Order
	capacity queue.Capacity
	accounts []account // by JobID
	present  []core.JobID
	classes  []class         // never fewer: the grouper remembers them
	specs    []*core.JobSpec // by place in the order, of those to be grouped
	slots    []int32         // of these among the candidates
	jobs     []Job
	fixed    []int32 // pinned candidates that stay
	grants   []core.Grant
	groups   int // granted
	together []*core.JobSpec
	standing core.Standing

	cluster       *core.Cluster // whose nodes the grouper remembers
	healthChanges int
}

// account is what is kept of a job for the order by attained service.
type account struct {
	known    bool
	key      float64 // device-seconds, of a group the job's part
	attained float64 // device-seconds in full, as of the last round
	owners   int     // with how many jobs, itself included, it was granted its devices
}

// class is what jobs of a group have in common besides their size.
type class struct {
	accelerators []string
	mixes        bool
}

func (p *policy) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.capacity.CountIn(v)
	p.grants, p.groups = p.grants[:0], 0
	p.account(v.NowSeconds, candidates)
	left := v.Devices - p.keepPinned(v, candidates)
	ranks := p.order.ArrangeChanged(v, candidates, func(c *core.Candidate) float64 { return p.key(v, c) })
	p.list(v, candidates, ranks)
	p.grouper.Largest = min(p.largest, max(v.Cluster.MaxOwners, 1))
	p.grouper.Fits = p.fits(v.Cluster)
	if p.cluster != v.Cluster || p.healthChanges != v.HealthChanges {
		p.grouper.Forget()
		p.cluster, p.healthChanges = v.Cluster, v.HealthChanges
	}
	for _, group := range p.grouper.Solve(p.jobs, max(left, 0)) {
		p.grant(v, candidates, group.Jobs)
	}
	p.standing = core.Standing{UntilSeconds: v.NowSeconds}
	if p.groups == 0 && len(p.grants) == len(candidates) {
		p.standing = core.Standing{UntilSeconds: math.Inf(1), IfSeated: len(p.grants)}
	}
	return p.grants, nil
}

// account brings up to date what jobs received.
func (p *policy) account(now float64, candidates []core.Candidate) {
	p.present = p.present[:0]
	for i := range candidates {
		c := &candidates[i]
		p.present = append(p.present, c.ID)
		p.accounts = queue.Grown(p.accounts, c.ID)
		a, attained := &p.accounts[c.ID], c.AttainedService(now)
		if !a.known {
			*a = account{known: true, owners: 1}
		}
		a.key += (attained - a.attained) / float64(a.owners)
		a.attained = attained
	}
}

// key is the place of a job in the order, in device-seconds.
func (p *policy) key(v *core.View, c *core.Candidate) float64 {
	if p.attained {
		return p.accounts[c.ID].key
	}
	n := p.replicas(v, c)
	rate := c.Response.Rate(core.AnyAccelerator, n, v.Cluster.LargestNode())
	switch {
	case rate > 0 && !math.IsNaN(c.Response.RemainingWork):
		return Remaining(c.Response.RemainingWork, 1/rate, n)
	case c.TotalWork > 0:
		return Remaining(c.RemainingWork(v.NowSeconds), 1, c.Requested)
	}
	return math.Inf(1)
}

func (p *policy) replicas(v *core.View, c *core.Candidate) int {
	return p.capacity.Limit(c, v.Cluster, min(max(c.Requested, c.Response.MinReplicas), c.Response.MaxReplicas))
}

// keepPinned grants the pinned jobs that run what they hold, together those that hold the same, and returns how many devices that takes.
func (p *policy) keepPinned(v *core.View, candidates []core.Candidate) (devices int) {
	p.fixed = p.fixed[:0]
	if v.NonePinned() {
		return 0
	}
	for i := range candidates {
		if queue.Stays(v, &candidates[i]) {
			p.fixed = append(p.fixed, int32(i))
		}
	}
	slices.SortStableFunc(p.fixed, func(a, b int32) int { return cmp.Compare(runsAt(candidates[a].Job), runsAt(candidates[b].Job)) })
	for from, to := 0, 0; from < len(p.fixed); from = to {
		first := &candidates[p.fixed[from]]
		for to = from; to < len(p.fixed) && core.SameDevices(first.Seats, candidates[p.fixed[to]].Seats); to++ {
		}
		p.number(to - from)
		for _, i := range p.fixed[from:to] {
			p.add(&candidates[i], first.Held, to-from)
		}
		devices += first.Held
	}
	return devices
}

// runsAt is a number above 0 for the devices that a job holds, the same for those that hold the same; 0 for none.
func runsAt(j *core.Job) int32 {
	at := int32(0)
	for _, s := range j.Seats {
		if n := int32(s.Node)<<6 + int32(s.Devices.First()) + 1; at == 0 || n < at {
			at = n
		}
	}
	return at
}

// list tells the grouper of the candidates, but for those that stay, in their order.
func (p *policy) list(v *core.View, candidates []core.Candidate, ranks []queue.Rank) {
	p.jobs, p.specs, p.slots = p.jobs[:0], p.specs[:0], p.slots[:0]
	for _, r := range ranks {
		c := &candidates[r.Index]
		if len(p.fixed) > 0 && queue.Stays(v, c) {
			continue
		}
		p.jobs = append(p.jobs, Job{
			Devices: p.replicas(v, c), Stages: c.Iteration, Seconds: c.Iteration.ExclusiveSeconds(), Group: runsAt(c.Job),
			Class: p.classOf(c.JobSpec), MemoryGB: c.DeviceMemoryGB, ExclusiveSeconds: c.Iteration.Seconds() == 0,
		})
		p.specs, p.slots = append(p.specs, c.JobSpec), append(p.slots, r.Index)
	}
}

func (p *policy) classOf(j *core.JobSpec) int32 {
	for i := range p.classes {
		if of := &p.classes[i]; of.mixes == j.MixesTypes && slices.Equal(of.accelerators, j.Accelerators) {
			return int32(i)
		}
	}
	p.classes = append(p.classes, class{j.Accelerators, j.MixesTypes})
	return int32(len(p.classes) - 1)
}

// fits reports whether jobs of a class can be on a device of each type that they run on together, for the placement chooses the type; nil where memory is not counted.
func (p *policy) fits(c *core.Cluster) func(jobs []int32) bool {
	if !slices.ContainsFunc(p.jobs, func(j Job) bool { return j.MemoryGB > 0 }) {
		return nil
	}
	return func(jobs []int32) bool {
		p.together = p.together[:0]
		for _, i := range jobs {
			p.together = append(p.together, p.specs[i])
		}
		for t := range c.Accelerators {
			if p.together[0].CanRunOn(c, core.AcceleratorID(t)) && !c.FitTogether(core.AcceleratorID(t), p.together...) {
				return false
			}
		}
		return true
	}
}

// grant grants a group, first those that run where most of them do.
func (p *policy) grant(v *core.View, candidates []core.Candidate, group []int32) {
	p.number(len(group))
	sharing := func(i int32) (n int) {
		for _, k := range group {
			if p.jobs[i].Group > 0 && core.SameDevices(p.seats(candidates, i), p.seats(candidates, k)) {
				n++
			}
		}
		return n
	}
	best := 0
	for k := range group {
		if sharing(group[k]) > sharing(group[best]) {
			best = k
		}
	}
	if sharing(group[best]) > 0 {
		p.add(&candidates[p.slots[group[best]]], p.jobs[group[best]].Devices, len(group))
	}
	for k, i := range group {
		if k != best || sharing(i) == 0 {
			p.add(&candidates[p.slots[i]], p.jobs[i].Devices, len(group))
		}
	}
}

func (p *policy) seats(candidates []core.Candidate, i int32) []core.Seat {
	return candidates[p.slots[i]].Seats
}

// number begins a group of so many jobs.
func (p *policy) number(jobs int) {
	if jobs > 1 {
		p.groups++
	}
}

// add grants a job devices that it shares with others, or has alone.
func (p *policy) add(c *core.Candidate, devices, owners int) {
	g := core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: devices}
	if owners > 1 {
		g.Group = p.groups
	}
	p.grants = append(p.grants, g)
	p.accounts[c.ID].owners = owners
}

// Standing is for ever if everybody has devices alone: every order grants the same. Otherwise the order of the jobs moves as they run, and so may the groups.
func (p *policy) Standing() core.Standing { return p.standing }

// AskedOnce is true: groups go on from those of the question before.
func (p *policy) AskedOnce() bool { return true }
