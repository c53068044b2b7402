// Package pollux allocates devices so that the fitness of the whole cluster is highest.
package pollux

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
)

// Config configures New.
type Config struct {
	// Search is the search for a plan: exact or genetic.
	Search string `config:"search" doc:"exact: counts by dynamic programming and several packings, with a certified gap; genetic: the published search" enum:"exact|genetic"`
	// FairnessP is the power of the mean over jobs: 1 is the sum, 0 the product, -1 the harmonic mean.
	FairnessP float64 `config:"fairness_p" doc:"power of the mean over jobs: 1 is the sum, 0 the product, -1 the published harmonic mean, the lower the more even" min:"-20" max:"1"`
	// Reference is the speed that a job's is divided by: fair_share, best or one.
	Reference string `config:"reference" doc:"speed that a job's is measured against: fair_share of the devices as published, best it could have, or one replica" enum:"fair_share|best|one"`
	// Restart is how a restart is charged: by age, or over a horizon.
	Restart string `config:"restart" doc:"how a restart is charged: age as published, by the part of its life that a job lost to restarts; horizon, by the part of a span ahead" enum:"age|horizon"`

	restart.Cost

	// Resize is what a change of devices costs a job that keeps one of them.
	Resize Resize `config:"resize" doc:"what a change of devices costs a job that keeps one"`
	// Horizon is the time over which a restart of up to 30 s is spread with restart horizon.
	Horizon time.Duration `config:"horizon" doc:"span over which restart horizon spreads a restart of up to 30 s; beyond that it grows with restart_overhead to the power of 2/3" min:"1s"`
	// AdaptiveHorizon lengthens the horizon to the mean time between changes of the job list.
	AdaptiveHorizon bool `config:"adaptive_horizon" doc:"lengthen the horizon to the mean time between changes of the job list"`
	// Weights is how jobs are weighed: none, remaining or attained.
	Weights string `config:"weights" doc:"none as published; remaining: jobs with less declared work left count more, by rank; attained: jobs that received less service count more" enum:"none|remaining|attained"`
	// RankPower is the power of the rank with weights remaining.
	RankPower float64 `config:"rank_power" doc:"power of the rank with weights remaining" min:"0"`
	// RankOffset is added to the rank before its power with weights remaining.
	RankOffset float64 `config:"rank_offset" doc:"added to the rank, from 0, before its power with weights remaining: the more, the less the longest jobs are put off while there are few" min:"0"`
	// WeightFloor is the least weight of a job, as a ratio of the heaviest.
	WeightFloor float64 `config:"weight_floor" doc:"least weight of a job, as a part of the heaviest: the longest jobs are not put off for ever, which shortens the makespan" min:"0" max:"1"`
	// AttainedScale is added to a job's service with weights attained, in device-seconds.
	AttainedScale float64 `config:"attained_scale" doc:"device-seconds added to a job's service with weights attained" min:"1"`
	// EfficiencyWeight is what devices are worth to the jobs that do not get them; 0 as published.
	EfficiencyWeight float64 `config:"efficiency_weight" doc:"what the devices of the cluster are worth to the jobs that do not get them: the more, the less a job may spread at a falling gain; 0 as published" min:"0"`
	// WaitingFloor is how long a job waits before it counts as much as the heaviest; 0 for never.
	WaitingFloor time.Duration `config:"waiting_floor" doc:"a job that waited so long counts as much as the heaviest; 0 for never" min:"0s"`
	// InterferenceAvoiding seats at most one job that spans nodes on a node.
	InterferenceAvoiding bool `config:"avoid_interference" doc:"seat at most one job that spans nodes on a node"`
	// Types is how accelerator types are optimised: each after another, or blind to them.
	Types string `config:"types" doc:"each: one accelerator type after another, the commonest first, each for the jobs that hold devices of it and those that got none; blind: all types are taken for one, and a job that gets several keeps the one it gets most of" enum:"each|blind"`
	// Generations is the number of generations of the genetic search.
	Generations int `config:"generations" doc:"of the genetic search" min:"2"`
	// Population is the number of plans that the genetic search keeps.
	Population int `config:"population" doc:"of the genetic search" min:"2"`
}

// Default is the published objective with the exact search.
var Default = Config{
	Search: "exact", FairnessP: -1, Reference: "fair_share", Restart: string(restart.Age), Cost: restart.Cost{RestartOverhead: 30 * time.Second},
	Horizon: 200 * time.Second, Weights: "none", RankPower: 1.3, RankOffset: 0.5, AttainedScale: 20000, InterferenceAvoiding: true, Types: "each",
	Generations: 100, Population: 100,
}

// Capabilities are those that the weights need.
func (c Config) Capabilities() []core.Capability {
	if c.Weights == "remaining" {
		return []core.Capability{core.CapabilityRemainingWork}
	}
	return nil
}

// Validate reports options that contradict each other.
func (c Config) Validate() error {
	problems := []error{c.Cost.Validate()}
	if c.Resize.Overhead > 0 && !c.Resize.InPlace {
		problems = append(problems, errors.New("resize.overhead: needs resize.in_place"))
	}
	longest, _ := c.LongestPause()
	if span := c.span(); c.Restart == string(restart.Horizon) && span <= longest.Seconds() {
		problems = append(problems, fmt.Errorf("horizon: spans %.0f s at this restart_overhead, and must be longer than it, or nothing is worth a start", span))
	}
	if c.EfficiencyWeight > 0 && c.Search != "exact" {
		problems = append(problems, errors.New("efficiency_weight: needs search exact, for the genetic search compares fitness alone"))
	}
	return errors.Join(problems...)
}

// New maximises the power mean of the jobs' speeds, each measured against a reference and charged for a restart.
//
// The objective is separable, so that the best counts follow from dynamic programming over devices (or, on a large
// cluster, from a price per device). Counts are then seated in several ways, leftovers handed out, and the best true
// objective wins. The relaxation bounds what any seating could reach, which certifies the gap.
//
// Source: Pollux (OSDI'21), section 4.2. Deviations: the published search is genetic (search genetic repeats it); accelerator types, which the paper does not have,
// are optimised one after another; pinned jobs stay where they sit, and so do jobs on a device that another is on, and the search shares out the other devices, whole
// ones; with rounds on events a start is worth something at any age, or a job would wait because its submission is what made the round.
// O(jobs × devices × replicas) a round, O(jobs × replicas) on more than a few hundred devices.
func New() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "pollux",
		OneType: true,
		Summary: "maximises the fitness of the cluster: a power mean of the jobs' goodput against a reference",
		Description: "Weighs how much each job gains from devices, by curves that elasticity reports, and proposes seats: use placement proposed. " +
			"Searches exactly with a certified gap, or genetically as published. Accelerator types are optimised one after another.",
		Source: "Pollux, OSDI'21, section 4.2",
	}, Default, func(c Config, s core.Settings) (core.Allocator, error) {
		return newAllocator(c, s.Rand), nil
	})
}

func newAllocator(c Config, r *rand.Rand) *allocator {
	return &allocator{config: c, rand: r, gap: math.NaN(), evolution: map[core.AcceleratorID]*geneticSearch{}, granted: map[core.JobID]bool{}}
}

// job is a candidate as the search sees it.
type job struct {
	id        core.JobID
	index     int // among the jobs that are searched for
	rank      int // in the published order: less service first
	attained  float64
	weight    float64
	devices   float64 // at full efficiency, that a unit of value stands for
	keep      float64 // restart factor when its seats stay
	move      float64 // when they change
	resize    float64 // when they change and one of them stays, if that is easy
	easy      bool    // it resizes in place
	most      int
	least     int
	held      int
	one, many []float64 // value of k replicas on one node, on many, by k; index 0 is none
	seats     []core.Seat
	row       []share      // the seats held, nodes ascending
	costs     [2][]float64 // of k replicas on one node, on many, when the seats change
	resized   [2][]float64 // the same on a row that shares a node with the one held
	stays     float64      // cost of keeping the seats; +Inf if it cannot
	candidate *core.Candidate
}

func (p *allocator) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.begin(v, candidates)
	gap := 0.0
	for _, t := range p.types {
		p.accelerator = t
		p.prepare(v, p.contenders(v.Cluster, t))
		if p.config.Search == "genetic" {
			p.genetic()
		} else {
			p.exact()
		}
		p.grant(v)
		gap = max(gap, p.gap)
	}
	p.gap = gap
	p.grantBound(v.Cluster)
	return p.grants, nil
}

type allocator struct {
	config Config
	rand   *rand.Rand

	jobs        []job
	order       []int          // scratch
	numbers     arena[float64] // of this round's jobs
	shares      arena[share]
	perNode     int // devices of the largest ready node
	devices     int // that are not pinned
	nodes       int
	types       []core.AcceleratorID // in the order in which they are optimised
	byType      []int                // ready devices by type
	left        []*core.Candidate    // those without a grant in this round
	contending  []*core.Candidate
	granted     map[core.JobID]bool // in the search for a type
	unallocated []core.JobID        // that got too few replicas of each type
	accelerator core.AcceleratorID  // the type that is optimised, AnyAccelerator for all of them
	usable      []int               // devices by node, of that type
	pinned      []*core.Candidate   // jobs that must stay, and those that share devices
	claimed     []bool              // by node: a pinned job that spans nodes sits there
	sharing     sharing
	weight      float64 // of all jobs
	efficiency  float64 // worth of a device at full efficiency
	groups      []group // scratch
	horizon     horizon
	search      exactSearch
	evolution   map[core.AcceleratorID]*geneticSearch
	plan        seating // the outcome: replicas by job and node
	grants      []core.Grant
	seats       []core.Seat
	ledger      core.Ledger
	gap         float64 // that the last plan is certified to have at most; NaN for unknown
}

// prepare turns the candidates into the terms of the objective.
func (p *allocator) prepare(v *core.View, candidates []*core.Candidate) {
	c := v.Cluster
	p.usable = p.usable[:0]
	p.devices, p.perNode, p.nodes = 0, 0, 0
	for i := range c.Nodes {
		n := p.ledger.Free(c.Nodes[i].ID)
		if !p.optimises(c.Nodes[i].Accelerator) {
			n = 0
		}
		p.usable = append(p.usable, n)
		p.devices += n
		p.perNode = max(p.perNode, n)
		if n > 0 {
			p.nodes++
		}
	}
	p.jobs = slices.Grow(p.jobs[:0], len(candidates))
	p.numbers, p.shares = p.numbers[:0], p.shares[:0]
	fair := 1
	if len(candidates) > 0 {
		fair = max(int(math.Ceil(float64(p.devices)/float64(len(candidates)))), 1)
	}
	stays := func(c *core.Candidate) bool { return p.mustStay(v.Cluster, c) }
	if p.sharing.possible() {
		p.sharing.begin(stays, candidates)
	}
	for i := range candidates {
		if c := candidates[i]; !stays(c) {
			p.jobs = append(p.jobs, p.term(v, c, len(p.jobs), fair))
		}
	}
	p.pin(stays, candidates)
	p.rankJobs()
	p.weigh(v)
	p.efficiency = p.config.EfficiencyWeight * float64(len(p.jobs)) / float64(max(p.devices, 1))
	for i := range p.jobs {
		j := &p.jobs[i]
		j.row = p.rowOf(j)
		p.price(j)
	}
}

// pin takes the devices of the jobs that must stay out of the search.
func (p *allocator) pin(stays func(*core.Candidate) bool, candidates []*core.Candidate) {
	p.pinned = p.pinned[:0]
	p.claimed = append(p.claimed[:0], make([]bool, len(p.usable))...)
	for _, c := range candidates {
		if !stays(c) {
			continue
		}
		p.pinned = append(p.pinned, c)
		for _, s := range c.Seats {
			devices := s.Devices & p.ledger.FreeDevices(s.Node)
			if p.sharing.possible() { // those of whoever shares them are taken once
				devices &= p.sharing.stayed[s.Node]
				p.sharing.stayed[s.Node] &^= devices
			}
			if k := devices.Count(); p.usable[s.Node] > 0 {
				p.usable[s.Node] -= k
				p.devices -= k
				p.claimed[s.Node] = p.claimed[s.Node] || len(c.Seats) > 1
			}
		}
	}
	for i := range p.jobs {
		p.jobs[i].most = min(p.jobs[i].most, p.devices)
	}
}

// holds reports whether all nodes of a row are usable, and none that it spans is a pinned job's to span.
func (p *allocator) holds(row []share) bool {
	for _, at := range row {
		if p.usable[at.node] < int(at.replicas) || p.config.InterferenceAvoiding && len(row) > 1 && p.claimed[at.node] {
			return false
		}
	}
	return true
}

// term is a candidate's part of the objective, but for its weight and rank.
func (p *allocator) term(v *core.View, c *core.Candidate, index, fair int) job {
	j := job{
		id: c.ID, index: index, attained: c.AttainedService(v.NowSeconds), weight: 1, keep: 1, candidate: c,
		least: c.Response.MinReplicas, most: min(c.Response.MaxReplicas, p.devices), held: c.Held, seats: c.Seats,
	}
	if p.devices < j.least {
		j.most = 0
	}
	overhead := p.config.PauseOf(c.Application, c.Requested)
	j.move = p.restartFactor(v, c, overhead)
	if !p.sound(v.Cluster, c.Seats) {
		j.seats = p.soundOf(v.Cluster, c.Seats)
		j.held = core.Replicas(j.seats)
	}
	if p.sharing.possible() {
		if own := p.sharing.own(j.seats); core.Replicas(own) < j.held {
			j.seats, j.held = own, core.Replicas(own)
		}
	}
	j.easy = p.config.Resize.InPlace && p.config.Resize.Overhead < overhead && j.held > 0
	if j.easy {
		j.resize = p.restartFactor(v, c, p.config.Resize.Overhead)
	}
	if j.held < c.Held { // what is left of its seats is a change, too
		j.keep = j.move
		if j.easy {
			j.keep = j.resize
		}
	}
	reference := p.reference(c.Response, &j, fair)
	j.devices = reference / p.bestRate(c.Response)
	j.one, j.many = p.numbers.cut(min(j.most, p.perNode)+1), p.numbers.cut(j.most+1)
	for k := 1; k <= j.most; k++ {
		if k < len(j.one) {
			j.one[k] = rate(c.Response, p.accelerator, k, false) / reference
		}
		j.many[k] = rate(c.Response, p.accelerator, k, true) / reference
	}
	return j
}

// rate is the work per second of k replicas on one node or across nodes. More replicas than are reported are as good as
// the last reported.
func rate(r *core.Response, t core.AcceleratorID, k int, many bool) float64 {
	if len(r.Curves) == 0 {
		return float64(k)
	}
	curve := &r.Curves[min(max(int(t), 0), len(r.Curves)-1)]
	rates := curve.OneNode
	if many {
		rates = curve.ManyNodes
	}
	if len(rates) == 0 {
		return 0
	}
	return rates[min(k, len(rates))-1]
}

// reference is the rate that a job's is divided by.
func (p *allocator) reference(r *core.Response, j *job, fair int) float64 {
	reference := 0.0
	switch p.config.Reference {
	case "fair_share": // on one node whatever the share, as published
		reference = rate(r, p.accelerator, fair, false) / (float64(p.nodes) / float64(max(p.devices, 1)))
	case "one":
		reference = rate(r, p.accelerator, 1, false)
	default:
		for k := 1; k <= j.most; k++ {
			reference = max(reference, rate(r, p.accelerator, k, false), rate(r, p.accelerator, k, true))
		}
	}
	if !(reference > 0) {
		return 1
	}
	return reference
}

// bestRate is the most that a device does for a job, on any number of them on one node.
func (p *allocator) bestRate(r *core.Response) float64 {
	best := 0.0
	for k := 1; k <= p.perNode; k++ {
		best = max(best, rate(r, p.accelerator, k, false)/float64(k))
	}
	for k := r.MinReplicas; k <= r.MaxReplicas && best == 0; k++ { // it never fits on one node
		best = rate(r, p.accelerator, k, true) / float64(k)
	}
	if !(best > 0) {
		return 1
	}
	return best
}

// restartFactor is the part of a job's speed that is left by a change that costs so much.
func (p *allocator) restartFactor(v *core.View, c *core.Candidate, overhead time.Duration) float64 {
	charge := restart.Charge(p.config.Restart)
	if charge == restart.Horizon {
		return charge.SpeedLeft(restart.Weighing{Pause: overhead.Seconds(), Span: p.horizon.seconds(p.config)})
	}
	left := charge.SpeedLeft(restart.Weighing{
		Pause: overhead.Seconds(), Past: p.config.PauseOf(c.Application, c.Requested).Seconds(), Restarts: c.Restarts, Age: v.NowSeconds - c.SubmitSeconds,
	})
	if v.OnEvents { // the submission of a job of no age may be what made the round
		left = max(left, epsilon)
	}
	return left
}

// epsilon keeps the power of nothing finite, as published.
const epsilon = 1e-3

// cost is what the search minimises, summed over jobs: minus the weighed power of a job's value, and minus the worth of
// the devices at full efficiency that the value stands for.
func (p *allocator) cost(j *job, value float64) float64 {
	cost := p.meanCost(j, value)
	if p.efficiency > 0 {
		cost -= p.efficiency * j.devices * value
	}
	return cost
}

// meanCost is a job's part of the power mean.
func (p *allocator) meanCost(j *job, value float64) float64 {
	switch power := p.config.FairnessP; power {
	case 0:
		return -j.weight * math.Log(value+epsilon)
	case -1:
		return j.weight / (value + epsilon)
	case 1:
		return -j.weight * value
	case 0.5:
		return -2 * j.weight * math.Sqrt(value+epsilon)
	default:
		return -j.weight / power * math.Pow(value+epsilon, power)
	}
}

// AskedOnce is true with the genetic search, which goes on from the plans of the question before.
func (p *allocator) AskedOnce() bool { return p.config.Search == "genetic" }
