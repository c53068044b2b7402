package muri

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/interference"
	"github.com/quartet-sched/quartet/core/optim"
)

// Job is what grouping knows of a job.
type Job struct {
	// Devices is how many devices it is granted.
	Devices int
	// Stages are the stages of an iteration.
	Stages  core.Iteration
	Seconds float64 // of one iteration alone
	Group   int32   // number above 0 that jobs share which run together now; 0 for none. Only Steady asks

	Class            int32   // jobs of different classes are in no group
	ExclusiveSeconds bool    // it is in no group
	MemoryGB         float64 // that it needs of each device; jobs that differ in it are not alike
}

// Group is jobs that run on the same devices.
type Group struct {
	Jobs   []int32 // by their places in the order, ascending
	Period float64 // seconds in which each makes an iteration
}

// Grouper forms groups of jobs of one size by repeated matching: each round pairs the groups for the largest sum of efficiencies.
//
// It holds the buffers of its calls, and the periods of the groups that it has met: it is reused, by one goroutine at a time. Once these
// are known, it does not allocate.
type Grouper struct {
	// Model says how long an iteration of a group takes.
	Model interference.PeriodModel
	// Largest is how many jobs a group may have; 0 for four.
	Largest int
	// Exchange goes on after the matching: two groups divide their jobs anew where they are more efficient then, until no two are. Ours.
	Exchange bool
	// Steady lets jobs of the same kind stand in for each other, so that groups that run stay as they are where that costs nothing. Ours.
	Steady bool
	// Fits reports whether jobs, by their places in the order, may be a group; nil for always. It answers alike for alike jobs, and the same until Forget.
	Fits func(jobs []int32) bool

	kinds    map[profile]uint16
	profiles []profile // by kind
	periods  map[kinds]float64
	kind     []uint16 // by job
	taken    []bool
	bins     []bin // the first ones are used, in the order of their first jobs
	used     int
	classes  []kinds
	class    []int32 // of a bin's groups
	first    []int32 // group of a class
	pairing  optim.Pairing
	members  []int32
	groups   []Group

	asked  []int32            // scratch
	splits map[[2]kinds]uint8 // how two groups divide their jobs, by kind, for the most; 0 where they are best as they are
	seat   []int32            // by job: its group in the bin
	runs   []int32            // jobs of groups that run, these together
	fixed  []bool             // by group
}

// profile is what makes jobs alike.
type profile struct {
	core.Iteration
	alone  float64
	class  int32
	memory float64
}

// kinds are those of the jobs of a group, each plus one, ascending.
type kinds [interference.MaxInterleaved]uint16

// bin is the groups of jobs of one size.
type bin struct {
	devices int
	class   int32
	alone   bool // of jobs of any size, of which none is in a group
	groups  []team
}

// team is a group in the making.
type team struct {
	jobs [interference.MaxInterleaved]int32
	n    int
}

func (t *team) list() []int32 { return t.jobs[:t.n] }

// Forget is to be called when Fits answers something else for the same jobs than before.
func (g *Grouper) Forget() { clear(g.splits) }

// Solve groups jobs, which come in the order of their keys, for so many devices, and returns the groups to run, those with
// the first jobs first. They belong to the Grouper and last until its next call.
//
// O(m³) for m candidates of a size at worst; where many are of a kind, near O(m²). Exchanges end, as each raises the sum.
func (g *Grouper) Solve(jobs []Job, devices int) []Group {
	g.learn(jobs)
	need := g.candidates(jobs, devices)
	for range interference.MaxInterleaved {
		for i := range g.bins[:g.used] {
			if need > devices && !g.bins[i].alone {
				need -= g.merge(&g.bins[i], need-devices)
			}
		}
	}
	for i := range g.bins[:g.used] {
		if g.Exchange && !g.bins[i].alone {
			g.exchange(&g.bins[i])
		}
		if g.Steady && !g.bins[i].alone {
			g.settle(&g.bins[i], jobs)
		}
	}
	return g.run(jobs, devices)
}

// learn gives each job the number of its kind.
func (g *Grouper) learn(jobs []Job) {
	const mostKinds, mostPeriods = math.MaxUint16, 1 << 20
	if len(g.periods)+len(g.splits) > mostPeriods {
		clear(g.periods)
		clear(g.splits)
	}
	if g.kinds == nil || len(g.profiles)+len(jobs) > mostKinds {
		g.kinds, g.periods, g.profiles = map[profile]uint16{}, map[kinds]float64{}, g.profiles[:0]
		g.splits = map[[2]kinds]uint8{}
	}
	g.kind = g.kind[:0]
	for i := range jobs {
		of := profile{jobs[i].Stages, jobs[i].Seconds, jobs[i].Class, jobs[i].MemoryGB}
		k, known := g.kinds[of]
		if !known {
			k = uint16(len(g.profiles))
			g.kinds[of] = k
			g.profiles = append(g.profiles, of)
		}
		g.kind = append(g.kind, k)
	}
}

func (g *Grouper) largest() int {
	if g.Largest == 0 {
		return interference.MaxInterleaved
	}
	return g.Largest
}

// candidates walks the jobs: one that can be seated takes the next ones of its size with it, up to a group. It returns the
// devices that they need, each alone.
func (g *Grouper) candidates(jobs []Job, devices int) (need int) {
	g.taken = append(g.taken[:0], make([]bool, len(jobs))...)
	g.used = 0
	for i := range jobs {
		size := jobs[i].Devices
		if g.taken[i] || size > devices {
			continue
		}
		devices -= size
		b, most := g.bin(&jobs[i]), g.largest()
		if b.alone {
			most = 1
		}
		for k, n := i, 0; k < len(jobs) && n < most; k++ {
			if !g.taken[k] && (k == i || jobs[k].Devices == size && jobs[k].Class == b.class && !jobs[k].ExclusiveSeconds) {
				g.taken[k] = true
				b.groups = append(b.groups, team{jobs: [interference.MaxInterleaved]int32{int32(k)}, n: 1})
				need += size
				n++
			}
		}
	}
	return need
}

// bin is that of a job.
func (g *Grouper) bin(j *Job) *bin {
	for i := range g.bins[:g.used] {
		if b := &g.bins[i]; b.alone == j.ExclusiveSeconds && (b.alone || b.devices == j.Devices && b.class == j.Class) {
			return b
		}
	}
	if g.used == len(g.bins) {
		g.bins = append(g.bins, bin{})
	}
	b := &g.bins[g.used]
	g.used++
	b.devices, b.class, b.alone, b.groups = j.Devices, j.Class, j.ExclusiveSeconds, b.groups[:0]
	return b
}

func (g *Grouper) kindsOf(jobs []int32) (of kinds) {
	for i, job := range jobs {
		of[i] = g.kind[job] + 1
	}
	slices.Sort(of[:len(jobs)])
	return of
}

// period of a group of at least two jobs.
func (g *Grouper) period(jobs []int32) float64 {
	of := g.kindsOf(jobs)
	period, known := g.periods[of]
	if !known {
		var stages [interference.MaxInterleaved]core.Iteration
		for i := range jobs {
			stages[i] = g.profiles[of[i]-1].Iteration
		}
		period = g.Model.Period(stages[:len(jobs)])
		g.periods[of] = period
	}
	return period
}

// efficiency is the part of all resources that a group keeps busy. A job alone has that of its stages in its own iteration.
func (g *Grouper) efficiency(jobs []int32) float64 {
	if len(jobs) == 1 {
		of := g.profiles[g.kind[jobs[0]]]
		return of.Seconds() / (interference.MaxInterleaved * of.alone)
	}
	busy := 0.0
	for _, job := range jobs {
		busy += g.profiles[g.kind[job]].Seconds()
	}
	return busy / (interference.MaxInterleaved * g.period(jobs))
}

// resolution is how finely efficiencies are told apart.
const resolution = 1e12

// merge pairs the groups of a bin until so many devices less are needed. It returns how many are.
func (g *Grouper) merge(b *bin, excess int) (spared int) {
	g.classify(b)
	mates, _ := g.pairing.SolveAlike(g.class, len(g.classes), func(c, d int) int64 {
		t := b.groups[g.first[c]]
		if !t.join(&b.groups[g.first[d]], g.largest()) || !g.fits(t.list()) {
			return 0
		}
		return int64(g.efficiency(t.list()) * resolution)
	})
	for u, v := range mates {
		if int(v) > u && spared < excess {
			b.groups[u].join(&b.groups[v], g.largest())
			b.groups[v].n = 0
			spared += b.devices
		}
	}
	b.groups = slices.DeleteFunc(b.groups, func(t team) bool { return t.n == 0 })
	return spared
}

// join adds the jobs of another group, if they are not too many together.
func (t *team) join(other *team, most int) bool {
	if t.n+other.n > most {
		return false
	}
	copy(t.jobs[t.n:], other.list())
	t.n += other.n
	return true
}

func (g *Grouper) fits(jobs []int32) bool {
	if g.Fits == nil || len(jobs) == 1 {
		return true
	}
	g.asked = append(g.asked[:0], jobs...) // on the heap once
	return g.Fits(g.asked)
}

// classify numbers the groups of a bin by the kinds of their jobs.
func (g *Grouper) classify(b *bin) {
	g.classes, g.class, g.first = g.classes[:0], g.class[:0], g.first[:0]
	for u := range b.groups {
		of := g.kindsOf(b.groups[u].list())
		c := slices.Index(g.classes, of)
		if c < 0 {
			c = len(g.classes)
			g.classes = append(g.classes, of)
			g.first = append(g.first, int32(u))
		}
		g.class = append(g.class, int32(c))
	}
}

// run takes groups apart that are slower than their jobs one after the other, and seats the groups in the order of their first jobs.
func (g *Grouper) run(jobs []Job, devices int) []Group {
	g.groups, g.members = g.groups[:0], slices.Grow(g.members[:0], len(jobs)) // groups are parts of it
	for i := range g.bins[:g.used] {
		for _, t := range g.bins[i].groups {
			alone := 0.0
			for _, job := range t.list() {
				alone += jobs[job].Seconds
			}
			if t.n > 1 && g.period(t.list()) <= alone {
				slices.Sort(t.list())
				g.add(t.list(), g.period(t.list()))
				continue
			}
			for k, job := range t.list() {
				g.add(t.list()[k:k+1], jobs[job].Seconds)
			}
		}
	}
	slices.SortFunc(g.groups, func(x, y Group) int { return cmp.Compare(x.Jobs[0], y.Jobs[0]) })
	return slices.DeleteFunc(g.groups, func(x Group) bool {
		size := jobs[x.Jobs[0]].Devices
		if size > devices {
			return true
		}
		devices -= size
		return false
	})
}

func (g *Grouper) add(jobs []int32, period float64) {
	at := len(g.members)
	g.members = append(g.members, jobs...)
	g.groups = append(g.groups, Group{g.members[at:len(g.members):len(g.members)], period})
}
