package matching

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim/market"
	"github.com/quartet-sched/quartet/core/restart"
)

// demand is the candidates in the terms of the market: a unit of work is an iteration with a batch of one.
type demand struct {
	workers    market.Workers
	candidates []*core.Candidate // that take part
	jobs       []market.Job
	sizes      []int // that jobs must have on one type; 0 for those that mix types
	pinned     core.Once
	perNode    []int // devices of the largest node, by type
	ranks      []int
}

// gather takes in the candidates; apart is the mean time between two arrivals.
func (d *demand) gather(v *core.View, candidates []core.Candidate, config *Config, apart float64) {
	d.count(v)
	d.pinned.Reset(v.Cluster)
	d.candidates, d.jobs, d.sizes = d.candidates[:0], d.jobs[:0], d.sizes[:0]
	for i := range candidates {
		c := &candidates[i]
		if c.MustStay(v.Cluster, c.Response) {
			for _, s := range c.Seats {
				d.workers.Count[v.Cluster.Nodes[s.Node].Accelerator] -= d.pinned.Count(s)
			}
			continue
		}
		size := c.Response.MinReplicas
		if c.MixesTypes {
			size = 0
		}
		d.candidates, d.jobs, d.sizes = append(d.candidates, c), append(d.jobs, d.job(v, c)), append(d.sizes, size)
	}
	d.assumeLengths()
	for i := range d.jobs {
		job := &d.jobs[i]
		c := d.candidates[i]
		pause := config.PauseOf(c.Application, c.Requested).Seconds()
		job.MoveSeconds = restart.Charge(config.MovesPay).Seconds(pause, secondsAsIs(job), apart)
		if config.Values == "blind" {
			d.blind(job)
		}
	}
	d.weigh(config.Urgency)
}

// count counts the usable devices by type.
func (d *demand) count(v *core.View) {
	d.workers.Count, d.perNode = make([]int, len(v.Cluster.Accelerators)), make([]int, len(v.Cluster.Accelerators))
	for i := range v.Cluster.Nodes {
		t, n := v.Cluster.Nodes[i].Accelerator, v.Cluster.Nodes[i].Usable().Count()
		d.workers.Count[t] += n
		d.perNode[t] = max(d.perNode[t], n)
	}
}

// job translates a candidate. Its length is NaN when unknown.
func (d *demand) job(v *core.View, c *core.Candidate) market.Job {
	r := c.Response
	job := market.Job{
		Iterations: r.RemainingWork, Batch: 1, Weight: 1, Rates: make([]float64, len(d.workers.Count)),
		Least: r.MinReplicas, Most: r.MaxReplicas,
	}
	if math.IsNaN(job.Iterations) && c.TotalWork > 0 {
		job.Iterations = c.RemainingWork(v.NowSeconds)
	}
	if !sane(job.Iterations) {
		job.Iterations = math.NaN()
	}
	for t := range job.Rates {
		if rate := d.alone(r, c.Requested, t); sane(rate) && c.CanRunOn(v.Cluster, core.AcceleratorID(t)) {
			job.Rates[t] = rate
		}
	}
	if r.MixedTypes != nil {
		job.SyncSeconds = r.MixedTypes.SyncSeconds
	} else {
		d.follow(&job, r)
	}
	if c.State == core.Running {
		job.Held = make([]int, len(job.Rates))
		for _, s := range c.Seats {
			job.Held[v.Cluster.Nodes[s.Node].Accelerator] += (s.Devices & v.Cluster.Nodes[s.Node].Usable()).Count()
		}
	}
	return job
}

// sane is a number that the market takes.
func sane(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

// alone is the rate of one device of a type: at the number of replicas where each does most, if one alone does nothing.
func (d *demand) alone(r *core.Response, requested, t int) float64 {
	if r.MixedTypes != nil {
		if t < len(r.MixedTypes.SingleDeviceRates) {
			return r.MixedTypes.SingleDeviceRates[t]
		}
		return 0
	}
	if len(r.Curves) == 0 { // of known duration: the requested replicas do a second of work in a second
		return 1 / float64(max(requested, 1))
	}
	rate := r.Rate(core.AcceleratorID(t), 1, d.perNode[t])
	for k := 2; rate == 0 && k <= r.MaxReplicas; k++ {
		rate = r.Rate(core.AcceleratorID(t), k, d.perNode[t]) / float64(k)
	}
	return rate
}

// secondsAsIs is how long a job lasts on the workers it holds; 0 when it holds none that it runs on.
func secondsAsIs(job *market.Job) float64 {
	speed, size := 0.0, 0
	for t, n := range job.Held {
		speed += float64(n) * job.Rates[t]
		size += n
	}
	if !(speed > 0) {
		return 0
	}
	unit := job.Batch / speed
	if size <= len(job.SyncSeconds) {
		unit += job.SyncSeconds[size-1]
	}
	return job.Iterations * unit
}

// cannotRun stands for the seconds that a unit of work takes where the job cannot run, over those on one device.
const cannotRun = 1e6

// follow makes the market's job as fast on its fastest type as the curve of that type says.
func (d *demand) follow(job *market.Job, r *core.Response) {
	if len(r.Curves) == 0 || len(job.Rates) == 0 {
		return
	}
	best := 0
	for t, rate := range job.Rates {
		if rate > job.Rates[best] {
			best = t
		}
	}
	alone := job.Rates[best]
	if alone == 0 {
		return
	}
	job.SyncSeconds = make([]float64, r.MaxReplicas)
	for k := range job.SyncSeconds {
		job.SyncSeconds[k] = cannotRun / alone
		if rate := r.Rate(core.AcceleratorID(best), k+1, d.perNode[best]); rate > 0 {
			job.SyncSeconds[k] = max(1/rate-1/(alone*float64(k+1)), 0)
		}
	}
}

// assumeLengths gives jobs of unknown length as much work as the others have on average, an hour if nothing is known.
func (d *demand) assumeLengths() {
	total, known := 0.0, 0
	for i := range d.jobs {
		if s := d.seconds(i); !math.IsNaN(s) {
			total += s
			known++
		}
	}
	seconds := 3600.0
	if known > 0 {
		seconds = total / float64(known)
	}
	for i := range d.jobs {
		if math.IsNaN(d.jobs[i].Iterations) {
			d.jobs[i].Iterations = seconds * fastest(&d.jobs[i])
		}
	}
}

// seconds is what a job's work takes on one device of its fastest type; NaN when unknown.
func (d *demand) seconds(i int) float64 {
	if rate := fastest(&d.jobs[i]); rate > 0 {
		return d.jobs[i].Iterations / rate
	}
	return math.NaN()
}

func fastest(job *market.Job) float64 {
	rate := 0.0
	for _, r := range job.Rates {
		rate = max(rate, r)
	}
	return rate
}

// blind makes all types alike on which a job can run.
func (d *demand) blind(job *market.Job) {
	sum, devices := 0.0, 0
	for t, rate := range job.Rates {
		if rate > 0 {
			sum += rate * float64(d.workers.Count[t])
			devices += d.workers.Count[t]
		}
	}
	for t, rate := range job.Rates {
		if rate > 0 && devices > 0 {
			job.Rates[t] = sum / float64(devices)
		}
	}
}

// weigh makes jobs count more the less work they have left: in proportion to a power of it.
func (d *demand) weigh(urgency float64) {
	if urgency == 0 {
		return
	}
	const least, most = 1e-6, 1e6
	mean, known := 0.0, 0
	for i := range d.jobs {
		if s := d.seconds(i); s > 0 {
			mean += s
			known++
		}
	}
	for i := range d.jobs {
		d.jobs[i].Weight = most
		if s := d.seconds(i); s > 0 {
			d.jobs[i].Weight = min(max(math.Pow(mean/float64(known)/s, urgency), least), most)
		}
	}
}

// queue is the jobs in the order of the work left.
func (d *demand) queue() []int {
	d.ranks = d.ranks[:0]
	for i := range d.jobs {
		d.ranks = append(d.ranks, i)
	}
	slices.SortStableFunc(d.ranks, func(a, b int) int { return cmp.Compare(d.seconds(a), d.seconds(b)) })
	return d.ranks
}

// stays reports whether a job keeps its seats: it has what it won, be it of other types where these do not count.
func (d *demand) stays(i int, won []int, blind bool) bool {
	c, held := d.candidates[i], d.jobs[i].Held
	if held == nil || sum(held) != c.Held || c.Held == 0 {
		return false
	}
	return slices.Equal(held, won) || blind && sum(won) == c.Held
}
