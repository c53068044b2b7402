package gandiva

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/pace"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// Which jobs are tried on the same devices.
const (
	pairsLeastUsed = "least_used"
	pairsRandom    = "random"
	pairsNone      = "none"
)

// Config configures New.
type Config struct {
	// Slice is how long jobs keep their devices at least while others wait.
	Slice time.Duration `config:"slice" doc:"how long jobs have their devices, at least, while others wait for them: turns end at its multiples, in the first round not before" min:"1s"`
	// Pairs says which jobs are tried together on devices: least_used, random or none.
	Pairs string `config:"pairs" doc:"which jobs are tried together on devices while some wait: least_used, those that use least of their devices, until all have some; random, as many as a draw of pairs yields, as in the imitation of Gavel's; or none" enum:"least_used|random|none"`
	// GrowShrink gives idle devices of their node to elastic jobs while nobody waits.
	GrowShrink bool `config:"grow_shrink" doc:"while no job waits, jobs on one node that can run with more replicas than they request take its idle devices; they give them back when a job waits"`
}

// LeastTurn is the slice.
func (c Config) LeastTurn() (seconds float64, setting string, turns bool) {
	return c.Slice.Seconds(), "slice", true
}

// LongestInterval is the slice.
func (c Config) LongestInterval() (longest time.Duration, setting string) {
	return c.Slice, "slice"
}

// New lets jobs take turns on devices, and tries which of them are faster together than in turns.
//
// Turns: while there are more jobs than devices, those that had their devices for the shortest time by their weight, since there were, have them for
// the next slice: weighted round robin, in which a job with many replicas has as much time as one with few. A new job begins where the one is that had least.
// Jobs that do not fit are passed over. Packing: at the begin of a slice, jobs whose rate alone was measured are tried in pairs of as many replicas, those of lowest
// utilisation first, until all have devices, or no pair is left; they count as one, and each as having the devices for half the time. After a slice, their rates are compared with
// those alone: a pair stays while the parts add up to more than 1, which is what turns would give, and is parted otherwise, and not tried again. No length of a job
// and no model of interference is read. A pair of which it cannot be measured what it gives is parted, too. When devices suffice, pairs are parted, the
// worst ones first.
//
// Source: Xiao et al., Gandiva, OSDI'18, from descriptions: its weights, its order of trials and its bounds are not published. Which node a job goes to, and
// migration, are the matter of the placement gandiva_affinity. Pinned jobs take no turns and are not packed. O(jobs² in the worst case) at the begin of a slice with trials, O(jobs log jobs) otherwise.
func New() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "gandiva",
		Sharing: []core.Sharing{core.TimeSlice},
		OneType: true,
		Summary: "turns of time slices, and pairs on the same devices that are measured to be worth it",
		Description: "While jobs wait, devices go round: who had his for the shortest time, by weight, is next. Pairs are tried on the same devices, and kept while their rates, as parts of those alone, add up to more than 1. " +
			"It needs rounds at an interval of at most the slice, and jobs that report their progress; others are not packed. O(jobs log jobs) a round, and up to O(jobs²) where pairs are tried.",
		Source: "Xiao et al., Gandiva, OSDI'18",
	}, Config{Slice: time.Minute, Pairs: pairsLeastUsed}, func(c Config, s core.Settings) (core.Allocator, error) {
		return &gandiva{Config: c, slice: c.Slice.Seconds(), random: s.Rand, until: math.Inf(1), jobs: map[core.JobID]*gandivaJob{}}, nil
	})
}

type gandiva struct {
	Config
	slice  float64 // seconds
	random *rand.Rand

	jobs      map[core.JobID]*gandivaJob
	paces     pace.Paces
	floor     float64 // least turn of a job when there was one last
	last      float64 // moment of the round before
	asked     bool
	contended bool // somebody waited after the round before

	capacity queue.Capacity
	left     []int // devices by accelerator type
	pinned   core.Once
	order    []queue.Rank
	units    []gandivaUnit
	state    []*gandivaJob // of the candidates
	on       map[pace.Device]int32
	beside   []int32 // by candidate: another on its devices; -1 for nobody
	singles  []int32
	idle     core.Ledger
	grants   []core.Grant
	groups   int
	until    float64
}

// gandivaJob is what is known of a job.
type gandivaJob struct {
	turn    float64      // seconds that it had devices while others waited, by its weight
	mate    core.JobID   // that it is packed with whenever it runs; none
	sum     float64      // of their rates, as parts of those alone; NaN before it is measured
	with    core.JobID   // that is on its devices; none for nobody
	since   float64      // when they came together, or it became alone
	silent  float64      // seconds that it ran beside mate, or beside with, in as many turns as it took, and came forward by nothing
	apart   []core.JobID // beside whom it is not packed again
	granted bool         // in the round before

	at int32 // scratch: its index among the candidates
}

const none core.JobID = -1

// gandivaUnit is jobs that run together.
type gandivaUnit struct {
	first, second int32 // among the candidates; the second -1 for none
	replicas      int
}

func (p *gandiva) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	turnsOver := !p.asked || p.slicesUntil(v.NowSeconds) > p.slicesUntil(p.before(v))
	p.begin(v, candidates)
	p.look(v, candidates)
	p.charge(v, candidates)
	if p.packs(v) {
		p.measure(v, candidates)
	}
	demand := p.unite(v, candidates)
	if p.packs(v) && turnsOver {
		switch {
		case demand <= v.Devices:
			p.separateUnneeded(v.Devices-demand, candidates)
		case p.Pairs == pairsRandom:
			p.tryRandom(v, candidates)
		default:
			p.try(v, candidates, demand-v.Devices)
		}
		p.unite(v, candidates)
	}
	p.give(v, candidates, turnsOver)
	if p.GrowShrink && !p.contended {
		p.grow(v, candidates)
	}
	p.stand(v, candidates)
	p.last, p.asked = v.NowSeconds, true
	return p.grants, nil
}

func (p *gandiva) packs(v *core.View) bool {
	return p.Pairs != pairsNone && v.Cluster.Sharing == core.TimeSlice && v.Cluster.MaxOwners > 1
}

// slicesUntil is how many slices are over at a moment.
func (p *gandiva) slicesUntil(seconds float64) float64 { return math.Floor(seconds / p.slice) }

// before is the moment of the round before, or where jobs may share devices of a later one that was not held because nothing would have changed: whether turns
// are over at an event is not to depend on that.
func (p *gandiva) before(v *core.View) float64 {
	if v.Cluster.Sharing != core.TimeSlice || v.IntervalSeconds == 0 {
		return p.last
	}
	return max(p.last, (math.Ceil(v.NowSeconds/v.IntervalSeconds)-1)*v.IntervalSeconds)
}

// begin takes in who came and who left.
func (p *gandiva) begin(v *core.View, candidates []core.Candidate) {
	p.capacity.CountIn(v)
	p.left = append(p.left[:0], p.capacity.ByType...)
	p.pinned.Reset(v.Cluster)
	p.grants, p.groups, p.state, p.until = p.grants[:0], 0, p.state[:0], math.Inf(1)
	least := math.Inf(1)
	for i := range candidates {
		if j := p.jobs[candidates[i].ID]; j != nil {
			least = min(least, j.turn)
		}
	}
	if !math.IsInf(least, 1) {
		p.floor = max(p.floor, least)
	}
	for i := range candidates {
		id := candidates[i].ID
		j := p.jobs[id]
		if j == nil {
			j = &gandivaJob{turn: p.floor, mate: none, with: none, sum: math.NaN()}
			p.jobs[id] = j
		}
		j.at = int32(i)
		p.state = append(p.state, j)
	}
	p.paces.Forget(v, len(candidates))
	if len(p.jobs) > len(candidates) {
		for id := range p.jobs {
			if v.Job(id) == nil {
				delete(p.jobs, id)
			}
		}
	}
}

// index is that of a job among the candidates; -1 for one that is none.
func (p *gandiva) index(id core.JobID, candidates []core.Candidate) int32 {
	if j := p.jobs[id]; j != nil && int(j.at) < len(candidates) && candidates[j.at].ID == id {
		return j.at
	}
	return -1
}

// charge counts the turns since the round before.
func (p *gandiva) charge(v *core.View, candidates []core.Candidate) {
	if !p.contended || !p.asked {
		return
	}
	for i := range candidates {
		c, j := &candidates[i], p.state[i]
		if c.State != core.Running {
			continue
		}
		seconds := max(v.NowSeconds-p.last, 0)
		if j.with != none {
			seconds /= 2
		}
		const leastWeight = 1e-6
		j.turn += seconds / max(c.Weight, leastWeight)
	}
}

// look finds out who is on whose devices.
func (p *gandiva) look(v *core.View, candidates []core.Candidate) {
	p.beside = p.beside[:0]
	clear(p.on)
	for i := range candidates {
		p.beside = append(p.beside, -1)
		if candidates[i].State != core.Running || v.Cluster.Sharing != core.TimeSlice {
			continue
		}
		at := pace.FirstDevice(candidates[i].Job)
		if k, shared := p.on[at]; shared {
			p.beside[i], p.beside[k] = k, int32(i)
			continue
		}
		if p.on == nil {
			p.on = make(map[pace.Device]int32)
		}
		p.on[at] = int32(i)
	}
	for i := range candidates {
		c, j := &candidates[i], p.state[i]
		with, since := none, c.LastChange
		switch k := p.beside[i]; {
		case c.State != core.Running:
		case k >= 0:
			with, since = candidates[k].ID, max(since, candidates[k].LastChange)
		case j.with != none && since < p.last:
			since = v.NowSeconds // it was left at some moment since the round before
		}
		if with != j.with {
			j.with, j.since = with, since
			if with != none && with != j.mate {
				j.silent = 0
			}
		}
		j.since = max(j.since, c.LastChange)
		p.listen(v, c, j)
	}
}

// listen counts for how long a job beside another comes forward by nothing.
func (p *gandiva) listen(v *core.View, c *core.Candidate, j *gandivaJob) {
	switch {
	case j.with == none && j.mate != none: // between two turns
	case j.with == none || pace.Reports(v, c.Job):
		j.silent = 0
	case !c.Starting:
		j.silent += max(v.NowSeconds-max(p.last, j.since, c.ProgressAsOf), 0)
	}
}

// measure compares the rates of pairs with those alone once a slice has passed, and parts those that are not worth it.
func (p *gandiva) measure(v *core.View, candidates []core.Candidate) {
	const rounding = 1e-9
	ripe := func(j *gandivaJob) bool { return v.NowSeconds >= j.since+p.slice*(1-rounding) }
	for i := range candidates {
		c, j := &candidates[i], p.state[i]
		if c.State != core.Running || !ripe(j) {
			continue
		}
		k := p.beside[i]
		if k < 0 {
			p.paces.Note(v, c.Job)
			continue
		}
		if m := p.state[k]; int(k) > i && p.beside[k] == int32(i) && ripe(m) {
			p.judge(v, c, &candidates[k], j, m)
		}
	}
}

// judge measures a pair.
func (p *gandiva) judge(v *core.View, a, b *core.Candidate, j, m *gandivaJob) {
	first, known := p.part(v, a, j)
	second, too := p.part(v, b, m)
	if !known || !too {
		return // they pause
	}
	switch sum := first + second; {
	case sum > 1 && j.mate == b.ID:
		j.sum, m.sum = sum, sum
	case sum > 1 && j.mate == none && m.mate == none && !a.Pinned && !b.Pinned: // those that another scheduler packed
		j.mate, m.mate, j.sum, m.sum = b.ID, a.ID, sum, sum
	case !(sum > 1):
		if j.mate == b.ID {
			p.separate(j)
		}
		j.avoid(b.ID, p.jobs)
		m.avoid(a.ID, p.jobs)
	}
}

// part is the rate of a job as a part of that alone: NaN if it cannot be compared with that, and false while it pauses. One that does not
// come forward for a slice, be it in several turns, has none.
func (p *gandiva) part(v *core.View, c *core.Candidate, j *gandivaJob) (float64, bool) {
	const rounding = 1e-9
	if part, known := p.paces.Part(v, c.Job); known {
		return part, true
	}
	if pace.Reports(v, c.Job) {
		return math.NaN(), true
	}
	return 0, j.silent >= p.slice*(1-rounding)
}

// unite makes units of the candidates, and returns how many devices they need.
func (p *gandiva) unite(v *core.View, candidates []core.Candidate) (demand int) {
	p.units = p.units[:0]
	for i := range candidates {
		c, j := &candidates[i], p.state[i]
		u := gandivaUnit{first: int32(i), second: -1, replicas: p.replicas(v, c)}
		if j.mate != none {
			k := p.index(j.mate, candidates)
			switch {
			case k < 0 && p.jobs[j.mate] == nil, k >= 0 && p.replicas(v, &candidates[k]) != u.replicas, !p.packs(v):
				p.separate(j)
			case k >= 0 && int(k) < i:
				continue // it is the second of its unit
			case k >= 0:
				u.second = k
			}
		}
		demand += u.replicas
		p.units = append(p.units, u)
	}
	return demand
}

// replicas is what a job has its turns with.
func (p *gandiva) replicas(v *core.View, c *core.Candidate) int {
	if queue.Stays(v, c) {
		return c.Held
	}
	return p.capacity.Limit(c, v.Cluster, queue.Requested(c))
}

// separate takes a pair apart.
func (p *gandiva) separate(j *gandivaJob) {
	if m := p.jobs[j.mate]; j.mate != none && m != nil {
		m.mate, m.sum, m.silent = none, math.NaN(), 0
	}
	j.mate, j.sum, j.silent = none, math.NaN(), 0
}

// avoid notes that a job is not to be packed beside another, and forgets those that ended.
func (j *gandivaJob) avoid(other core.JobID, jobs map[core.JobID]*gandivaJob) {
	if !slices.Contains(j.apart, other) {
		j.apart = append(slices.DeleteFunc(j.apart, func(id core.JobID) bool { return jobs[id] == nil }), other)
	}
}

// separateUnneeded takes pairs apart as long as there are devices for both, those that gain least first.
func (p *gandiva) separateUnneeded(spare int, candidates []core.Candidate) {
	p.order = p.order[:0]
	for k := range p.units {
		if u := &p.units[k]; u.second >= 0 {
			gain := p.state[u.first].sum
			if math.IsNaN(gain) {
				gain = 0 // a trial that is not needed any more
			}
			p.order = append(p.order, queue.Rank{Key: gain, Job: candidates[u.first].ID, Index: int32(k)})
		}
	}
	queue.SortRanks(p.order)
	for _, r := range p.order {
		if n := p.units[r.Index].replicas; n <= spare {
			spare -= n
			p.separate(p.state[p.units[r.Index].first])
		}
	}
}

// try packs jobs in pairs until so many devices less are needed: those of lowest utilisation first, and of unknown utilisation last.
func (p *gandiva) try(v *core.View, candidates []core.Candidate, excess int) {
	p.listSingles(v, candidates)
	used := func(i int32) float64 {
		if u := candidates[i].Utilisation; u > 0 {
			return u
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(p.singles, func(a, b int32) int { return cmp.Compare(used(a), used(b)) })
	for i, a := range p.singles {
		if excess <= 0 {
			return
		}
		if p.state[a].mate != none {
			continue
		}
		for _, b := range p.singles[i+1:] {
			if p.state[b].mate == none && p.suit(v, candidates, a, b) {
				p.state[a].mate, p.state[b].mate = candidates[b].ID, candidates[a].ID
				excess -= p.replicas(v, &candidates[a])
				break
			}
		}
	}
}

// tryRandom packs the pairs that are drawn.
func (p *gandiva) tryRandom(v *core.View, candidates []core.Candidate) {
	p.listSingles(v, candidates)
	if p.random == nil {
		p.random = core.NewRand(0, "allocation/gandiva")
	}
	for range len(p.singles) {
		a, b := p.singles[p.random.IntN(len(p.singles))], p.singles[p.random.IntN(len(p.singles))]
		if a != b && p.state[a].mate == none && p.state[b].mate == none && p.suit(v, candidates, a, b) {
			p.state[a].mate, p.state[b].mate = candidates[b].ID, candidates[a].ID
		}
	}
}

// listSingles lists the jobs that may be packed.
func (p *gandiva) listSingles(v *core.View, candidates []core.Candidate) {
	p.singles = p.singles[:0]
	for i := range candidates {
		c := &candidates[i]
		if p.state[i].mate == none && !c.Pinned && p.paces.Known(c.Job, p.replicas(v, c)) {
			p.singles = append(p.singles, int32(i))
		}
	}
}

// suit reports whether two jobs may be tried on the same devices, whichever the placement takes.
func (p *gandiva) suit(v *core.View, candidates []core.Candidate, a, b int32) bool {
	x, y := &candidates[a], &candidates[b]
	if p.replicas(v, x) != p.replicas(v, y) || slices.Contains(p.state[a].apart, y.ID) {
		return false
	}
	for t := range v.Cluster.Accelerators {
		first, second := x.CanRunOn(v.Cluster, core.AcceleratorID(t)), y.CanRunOn(v.Cluster, core.AcceleratorID(t))
		if first != second || first && !v.Cluster.FitTogether(core.AcceleratorID(t), x.JobSpec, y.JobSpec) {
			return false
		}
	}
	return true
}

// give grants units devices: those that stay first, then, unless turns are over, those that run, and the others by their turns.
func (p *gandiva) give(v *core.View, candidates []core.Candidate, turnsOver bool) {
	const resolution = 1e-6 // seconds: turns are summed in as many steps as there were rounds
	waited := false
	p.order = p.order[:0]
	for k := range p.units {
		u := &p.units[k]
		first := p.state[u.first]
		key, runs := first.turn, candidates[u.first].State == core.Running
		if u.second >= 0 {
			key, runs = min(key, p.state[u.second].turn), runs || candidates[u.second].State == core.Running
		}
		switch {
		case queue.Stays(v, &candidates[u.first]) || u.second >= 0 && queue.Stays(v, &candidates[u.second]):
			key = math.Inf(-1)
		case runs && !turnsOver:
			key = -1
		default:
			key = math.Round(key / resolution)
		}
		p.order = append(p.order, queue.Rank{Key: key, Job: candidates[u.first].ID, Index: int32(k)})
	}
	queue.SortRanks(p.order)
	for i, j := range p.state {
		if j.granted && candidates[i].State != core.Running { // it was not seated, or lost its devices
			waited, p.until = true, v.NowSeconds
		}
		j.granted = false
	}
	for _, r := range p.order {
		u := &p.units[r.Index]
		if t, fits := p.room(v, candidates, u); fits {
			p.grant(candidates, u, t)
		} else {
			waited = true
		}
	}
	p.contended = waited
}

// room takes devices of a type for a unit: of that where it runs, or else of the first with enough.
func (p *gandiva) room(v *core.View, candidates []core.Candidate, u *gandivaUnit) (core.AcceleratorID, bool) {
	c := &candidates[u.first]
	if c.State != core.Running && u.second >= 0 {
		c = &candidates[u.second]
	}
	if queue.Stays(v, c) {
		for _, s := range c.Seats {
			p.left[v.Cluster.Nodes[s.Node].Accelerator] -= p.pinned.Count(s)
		}
		return core.AnyAccelerator, true
	}
	if c.State == core.Running {
		if t := v.Cluster.Nodes[c.Seats[0].Node].Accelerator; p.left[t] >= u.replicas {
			p.left[t] -= u.replicas
			return t, true
		}
	}
	for t := range p.left {
		if p.left[t] >= u.replicas && c.CanRunOn(v.Cluster, core.AcceleratorID(t)) {
			p.left[t] -= u.replicas
			return core.AcceleratorID(t), true
		}
	}
	return core.AnyAccelerator, false
}

func (p *gandiva) grant(candidates []core.Candidate, u *gandivaUnit, t core.AcceleratorID) {
	if len(p.left) == 1 {
		t = core.AnyAccelerator
	}
	g := core.Grant{Job: candidates[u.first].ID, Accelerator: t, Replicas: u.replicas}
	if u.second >= 0 {
		p.groups++
		g.Group = p.groups
	}
	p.grants = append(p.grants, g)
	p.state[u.first].granted = true
	if u.second >= 0 {
		g.Job = candidates[u.second].ID
		p.grants = append(p.grants, g)
		p.state[u.second].granted = true
	}
}

// stand works out how long the answer stands: while jobs share devices they are looked at in every round, and while some wait, turns end.
func (p *gandiva) stand(v *core.View, candidates []core.Candidate) {
	for k := range p.units {
		if p.units[k].second >= 0 && p.state[p.units[k].first].granted {
			p.until = v.NowSeconds
		}
	}
	for i := range candidates {
		if p.beside[i] >= 0 {
			p.until = v.NowSeconds
		}
	}
	if p.contended {
		p.until = min(p.until, (p.slicesUntil(v.NowSeconds)+1)*p.slice-queue.EarlySeconds)
	}
}

// Standing is for ever while everybody has devices of his own.
func (p *gandiva) Standing() core.Standing {
	return core.Standing{UntilSeconds: p.until, IfSeated: len(p.grants)}
}

// AskedOnce is true: turns go on by being asked.
func (p *gandiva) AskedOnce() bool { return true }
