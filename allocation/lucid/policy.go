package lucid

import (
	"context"
	"log/slog"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/interference"
	"github.com/quartet-sched/quartet/policykit/pace"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// When a job is packed.
const (
	packFirst = "first"
	packFull  = "full"
)

// Config configures New.
type Config struct {
	// Sharing packs jobs on the devices of others.
	Sharing bool `config:"sharing" doc:"pack jobs on the devices of others; without it shortest job first, each with devices of its own"`
	// Pack says when a job is packed: first, wherever it has a partner; full, only when it finds no devices of its own.
	Pack string `config:"pack" doc:"first: a job is packed where it has a partner, even if devices are free, as Lucid's; full: only one that finds no devices of its own" enum:"first|full"`
	// Tolerance is the part of its speed that a job gives up where it does not declare its slowdown tolerance.
	Tolerance float64 `config:"tolerance" doc:"part of its speed alone that a job gives up if it declares no slowdown tolerance, or 0" min:"0" max:"1"`
	// LabelsAlone lets the labels decide, whatever jobs tolerate.
	LabelsAlone bool `config:"labels_alone" doc:"whatever jobs tolerate, their labels decide, as with Lucid"`
	// LabelSum is the largest sum of the labels of two jobs on a device: 0 tiny, 1 medium, 2 jumbo.
	LabelSum int `config:"label_sum" doc:"most that the labels of two jobs on a device add up to: 0 for a tiny job, 1 for a medium and 2 for a jumbo one" min:"0" max:"4"`
	// MediumAbove is the utilisation (0 to 1) above which a job is medium.
	MediumAbove float64 `config:"medium_above" doc:"utilisation alone above which a job is medium" min:"0" max:"1"`
	// JumboAbove is the utilisation (0 to 1) above which a job is jumbo.
	JumboAbove float64 `config:"jumbo_above" doc:"utilisation alone above which it is jumbo" min:"0" max:"1"`
	// LongerFactor is how many times as long as its partner a packed job may take.
	LongerFactor float64 `config:"longer_factor" doc:"how many times as long as its partner a job may take" min:"0"`
	// LargestPacked is the most replicas of jobs that are packed.
	LargestPacked int `config:"largest_packed" doc:"most replicas of jobs that are packed" min:"0"`
	// OffBelow turns packing off while fewer jobs than this are submitted in ten minutes; 0 for always on.
	OffBelow float64 `config:"off_below" doc:"no job is packed while fewer jobs than this were submitted in ten minutes, on average over the last hour; 0 for always, Lucid's is 2" min:"0"`
	// Queue says what happens to the jobs behind one that does not fit; see package queue.
	Queue string `config:"queue" doc:"what happens to the jobs behind one that does not fit while no job is packed: backfill lets them pass, blocking makes them wait; otherwise they pass" enum:"backfill|blocking"`
	// StepTimes reads the true step times and steps left of a profiled job where elasticity gives no curve.
	StepTimes bool `config:"step_times" doc:"read the true step times and steps left of a profiled job without a curve from elasticity"`
}

// Capabilities are those that reading step times needs, besides the work left.
func (c Config) Capabilities() []core.Capability {
	return queue.StepTimeCapabilities(c.StepTimes)
}

// New serves the shortest job first and packs pairs of jobs that hardly slow each other down on the same devices.
//
// Jobs are in order of their estimated seconds times replicas, and keep their devices until they end. A job is packed beside the first running job,
// in the order in which they started, that has as many devices to itself, as long as the labels of both add up to at most label_sum, the memory
// of the device suffices, the job takes at most longer_factor times as long as its partner when both were new, and neither is slowed down by more
// than it tolerates. That is predicted by the interference fitted to measured pairs (interference.UsualHinge), or known: jobs of
// the same two applications were seen together, and one of them alone before. A job that declares no utilisation is never packed.
//
// Source: Hu et al., Lucid, ASPLOS'23: indolent packing. There labels come from a decision tree over profiles; here they come from the utilisation:
// the bounds are those at which the mean speed beside partners of every utilisation falls below 0.95 and 0.85, by the fit. Tolerances are not
// Lucid's. It forecasts the load, and here that of the last hour counts. There is no profiler: utilisations are declared. O(candidates + waiting × running) a round.
func New() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "lucid",
		Sharing: []core.Sharing{core.TimeSlice},
		Summary: "shortest job first, with pairs packed on devices that hardly slow each other down",
		Description: "Orders jobs by estimated seconds times replicas; none is preempted. A job may share the devices of one that runs alone on as many, if their utilisations, memory and length suit, and neither is slowed down by more than it tolerates. " +
			"A job that declares no utilisation, or has no tolerance here or of its own, is not slowed down: the first is never packed, the second only where the fit predicts no loss. " +
			"Jobs of unknown length come last. O(candidates + waiting × running) a round.",
		Source:       "Hu et al., Lucid, ASPLOS'23",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, Config{
		Sharing: true, Pack: packFull, LabelSum: 2, MediumAbove: 0.42, JumboAbove: 0.84, LongerFactor: 2, LargestPacked: 8, Queue: queue.Blocking, StepTimes: true,
	}, func(c Config, s core.Settings) (core.Allocator, error) {
		return &lucid{Config: c, model: interference.UsualHinge(), order: queue.Order{Drifts: true}, log: s.Log, id: s.ID, until: math.Inf(1)}, nil
	})
}

type lucid struct {
	Config
	model interference.Hinge
	log   *slog.Logger
	id    string

	order    queue.Order
	started  []queue.Rank // running jobs by their start
	sizes    []float64    // by JobID: seconds times replicas when it was first seen; 0 before
	present  []core.JobID // candidates of the last round
	capacity queue.Capacity
	left     int
	packs    bool // in this round

	on      map[pace.Device]int32 // scratch: the unit on a device, of running jobs
	units   []lucidUnit
	running int                 // units of running jobs, the first ones
	hosts   int                 // of them, those that may take a partner
	tried   map[core.JobID]bool // jobs that were granted devices of their own in the last round
	fresh   int                 // units up to the last one that was not tried before
	grants  []core.Grant
	seated  int     // grants on which the standing rests
	until   float64 // when more is learned of those that run, or they can take partners

	paces  pace.Paces
	beside map[[2]string]float64 // least part of its rate alone that the first application had beside the second
	recent []float64             // when jobs were first seen, in the last hour
	silent bool                  // a job did not tell its utilisation, which was told
}

// lucidUnit is a job with devices of its own, and one that is packed beside it.
type lucidUnit struct {
	first, second int32 // among the candidates; the second -1 for none
	replicas      int
	blocking      bool
}

func (p *lucid) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.begin(v)
	p.paces.Forget(v, len(candidates))
	p.present = p.present[:0]
	for i := range candidates {
		p.present = append(p.present, candidates[i].ID)
	}
	perNode := v.Cluster.LargestNode()
	ranks := p.order.ArrangeChanged(v, candidates, func(c *core.Candidate) float64 { return p.size(v, c, perNode) })
	p.turnOnOrOff(v)
	p.keep(v, candidates)
	for _, r := range ranks {
		if candidates[r.Index].State != core.Running && !p.offer(v, candidates, r.Index) {
			break
		}
	}
	p.grant(v, candidates)
	if p.packs && len(p.units) > p.running && len(p.grants) < len(candidates) {
		p.until = v.NowSeconds // in the next round those that start now may take partners
	}
	return p.grants, nil
}

func (p *lucid) begin(v *core.View) {
	p.capacity.CountIn(v)
	p.left, p.hosts, p.fresh, p.until = v.Devices, 0, 0, math.Inf(1)
	p.started, p.units, p.grants = p.started[:0], p.units[:0], p.grants[:0]
	for _, id := range v.Changed {
		if v.Job(id) == nil { // it left devices: those who found none may now
			clear(p.tried)
		}
	}
}

// size is what jobs are served by: that of a running one is what it was before.
func (p *lucid) size(v *core.View, c *core.Candidate, perNode int) float64 {
	p.sizes = queue.Grown(p.sizes, c.ID)
	if c.State == core.Running && p.sizes[c.ID] > 0 {
		return p.sizes[c.ID]
	}
	n := p.replicas(v, c)
	seconds, _ := queue.RemainingSeconds(c, v.NowSeconds, n, perNode, p.StepTimes)
	size := max(seconds*float64(n), math.SmallestNonzeroFloat64)
	if math.IsNaN(size) {
		size = math.Inf(1)
	}
	if p.sizes[c.ID] == 0 {
		p.sizes[c.ID] = size
		p.recent = append(p.recent, v.NowSeconds)
		p.warn(c)
	}
	return size
}

// warn says once that some jobs cannot be packed.
func (p *lucid) warn(c *core.Candidate) {
	if p.Sharing && c.Utilisation == 0 && !p.silent && p.log != nil {
		p.silent = true
		p.log.Warn("a job declares no utilisation: it is never packed, and neither are others like it", "component", p.id, "job", c.Name)
	}
}

// replicas is what a job asks for, within what it can use and what ready nodes could give it.
func (p *lucid) replicas(v *core.View, c *core.Candidate) int {
	return p.capacity.Limit(c, v.Cluster, queue.Requested(c))
}

// turnOnOrOff decides whether jobs are packed in this round.
func (p *lucid) turnOnOrOff(v *core.View) {
	p.packs = p.Sharing && v.Cluster.Sharing == core.TimeSlice && v.Cluster.MaxOwners > 1
	const hour, tenMinutes = 3600, 600
	old := 0
	for old < len(p.recent) && p.recent[old] < v.NowSeconds-hour {
		old++
	}
	p.recent = append(p.recent[:0], p.recent[old:]...)
	watched := min(max(v.NowSeconds, tenMinutes), hour)
	p.packs = p.packs && float64(len(p.recent)) >= p.OffBelow*watched/tenMinutes
}

// keep leaves those that run what they have, and learns how fast they are.
func (p *lucid) keep(v *core.View, candidates []core.Candidate) {
	for i := range candidates {
		if c := &candidates[i]; c.State == core.Running {
			if c.ProgressRate > 0 && c.ProgressAsOf >= v.NowSeconds {
				p.until = min(p.until, c.ProgressAsOf)
			}
			p.started = append(p.started, queue.Rank{Key: c.FirstStart, Job: c.ID, Index: int32(i)})
		}
	}
	queue.SortRanks(p.started)
	clear(p.on)
	for _, r := range p.started {
		c := &candidates[r.Index]
		n := p.replicas(v, c)
		if c.Held >= c.Response.MinReplicas && c.Held <= c.Response.MaxReplicas {
			if n = c.Held; !queue.Stays(v, c) {
				n = p.capacity.Limit(c, v.Cluster, n)
			}
		}
		if v.Cluster.Sharing == core.TimeSlice {
			at := pace.FirstDevice(c.Job)
			if k, shared := p.on[at]; shared && p.units[k].second < 0 && p.units[k].replicas == n {
				p.units[k].second = r.Index
				continue
			}
			if p.on == nil {
				p.on = make(map[pace.Device]int32)
			}
			p.on[at] = int32(len(p.units))
		}
		p.left -= n
		p.units = append(p.units, lucidUnit{first: r.Index, second: -1, replicas: n})
	}
	p.running = len(p.units)
	for k := range p.units {
		a := candidates[p.units[k].first].Job
		if p.units[k].second < 0 {
			p.hosts++
			p.paces.Note(v, a)
			continue
		}
		b := candidates[p.units[k].second].Job
		p.learn(v, a, b)
		p.learn(v, b, a)
	}
}

// learn takes in how fast a job is beside another.
func (p *lucid) learn(v *core.View, self, other *core.Job) {
	part, measured := p.paces.Part(v, self)
	if !measured || self.Application == "" || other.Application == "" {
		return
	}
	at := [2]string{self.Application, other.Application}
	if least, seen := p.beside[at]; seen && least <= part {
		return
	}
	if p.beside == nil {
		p.beside = make(map[[2]string]float64)
	}
	p.beside[at] = part
}

// offer finds devices for a job that waits, and reports whether others may find some, too.
func (p *lucid) offer(v *core.View, candidates []core.Candidate, i int32) bool {
	c := &candidates[i]
	n := p.replicas(v, c)
	fits, tried := n <= p.left, p.tried[c.ID]
	if p.packs && (p.Pack == packFirst || !fits || tried) {
		if k := p.host(v, candidates, c, n); k >= 0 {
			p.units[k].second = i
			p.hosts--
			return true
		}
	}
	blocks := !p.packs && p.Queue == queue.Blocking
	everyone := blocks && len(v.Cluster.Accelerators) > 1 // who waits behind whom is for the placer to say
	if fits || blocks {
		p.left -= n
		p.units = append(p.units, lucidUnit{first: i, second: -1, replicas: n, blocking: blocks})
		if fits && !tried {
			p.fresh = len(p.units)
		}
	}
	return everyone || p.left > 0 && (fits || !blocks) || p.packs && p.hosts > 0
}

// host is the unit beside which a job can be; -1 for none.
func (p *lucid) host(v *core.View, candidates []core.Candidate, c *core.Candidate, n int) int {
	if n > p.LargestPacked || c.Utilisation == 0 || p.hosts == 0 {
		return -1
	}
	for k := range p.units[:p.running] {
		u := &p.units[k]
		if host := &candidates[u.first]; u.second < 0 && u.replicas == n && host.Held == n && p.suit(c, host) && together(v, c, host) {
			return k
		}
	}
	return -1
}

// suit reports whether a job can be beside another as far as their speed goes.
func (p *lucid) suit(c, host *core.Candidate) bool {
	return host.Utilisation > 0 && p.label(c)+p.label(host) <= p.LabelSum &&
		p.sizes[c.ID] <= p.LongerFactor*p.sizes[host.ID] &&
		p.tolerates(c, host) && p.tolerates(host, c)
}

func (p *lucid) label(c *core.Candidate) int {
	switch {
	case c.Utilisation > p.JumboAbove:
		return 2
	case c.Utilisation > p.MediumAbove:
		return 1
	}
	return 0
}

// tolerates reports whether a job is fast enough beside another.
func (p *lucid) tolerates(self, other *core.Candidate) bool {
	if p.LabelsAlone {
		return true
	}
	part, seen := p.beside[[2]string{self.Application, other.Application}]
	if !seen {
		part = p.model.Rate(self.JobSpec, []*core.JobSpec{other.JobSpec}, "")
	}
	const rounding = 1e-9
	return 1-part <= toleranceOf(self.JobSpec, p.Tolerance)+rounding
}

// toleranceOf is the part of its speed that a job lets go, otherwise the one given.
func toleranceOf(j *core.JobSpec, otherwise float64) float64 {
	if j.SlowdownTolerance > 0 {
		return j.SlowdownTolerance
	}
	return otherwise
}

// together reports whether a job can run on the devices of another, and the memory of a device suffices for both.
func together(v *core.View, c, host *core.Candidate) bool {
	first := v.Cluster.Nodes[host.Seats[0].Node].Accelerator
	for _, s := range host.Seats {
		if t := v.Cluster.Nodes[s.Node].Accelerator; !c.CanRunOn(v.Cluster, t) || t != first && !c.MixesTypes {
			return false
		}
	}
	return v.Cluster.FitOn(host.Seats, host.JobSpec, c.JobSpec)
}

// grant answers with the units.
func (p *lucid) grant(v *core.View, candidates []core.Candidate) {
	clear(p.tried)
	group := 0
	p.seated = 0
	for k := range p.units {
		u := &p.units[k]
		g := core.Grant{Job: candidates[u.first].ID, Accelerator: core.AnyAccelerator, Replicas: u.replicas, Blocking: u.blocking}
		if u.second >= 0 {
			group++
			g.Group = group
		}
		p.grants = append(p.grants, g)
		if u.second >= 0 {
			g.Job = candidates[u.second].ID
			p.grants = append(p.grants, g)
		}
		if k < p.running || p.packs && k < p.fresh {
			p.seated = len(p.grants)
		}
		if k >= p.running && p.packs {
			if p.tried == nil {
				p.tried = make(map[core.JobID]bool)
			}
			p.tried[candidates[u.first].ID] = true
		}
	}
}

// Standing is for ever once those that run stay, and those that found devices of their own are seated: who is not is packed in the
// next round, if he can be. What could be packed becomes less while time passes, for fewer jobs are submitted and nobody leaves, until the
// pause of a running job is over: then its speed is measured. Those that start are partners from the next round on.
func (p *lucid) Standing() core.Standing {
	return core.Standing{UntilSeconds: p.until, IfSeated: p.seated}
}

// AskedOnce is true: who is shared with whom is remembered.
func (p *lucid) AskedOnce() bool { return true }
