package market

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A problem is the jobs that compete and the workers there are, in tables.
type problem struct {
	jobs   []Job
	count  []int
	total  int
	link   float64
	agents []agent // in the order of the queue: least work first
}

// An agent is a job that competes.
type agent struct {
	job         int
	rate        []float64
	mean        float64   // rate over the workers it can use
	work        float64   // weight · iterations · batch
	wire        float64   // weighted seconds of communication, among many workers
	sync        []float64 // the same by the number of workers, where it is no ring
	least, most int
	from        []int   // what it holds now; nil when it may move freely
	move        float64 // weighted seconds of moving
}

// moves is what it costs the agent to hold so many workers of each type.
func (a *agent) moves(held []int) float64 {
	if a.from == nil || slices.Equal(a.from, held) {
		return 0
	}
	return a.move
}

// seconds is the agent's weighted time, its share of the mean, once it runs.
func (a *agent) seconds(speed float64, size int) float64 {
	return a.work/speed + a.wires(size)
}

// wires is the part of the communication.
func (a *agent) wires(size int) float64 {
	if a.sync != nil {
		return a.wire * a.sync[size-1]
	}
	return a.wire - a.wire/float64(size)
}

// maxCount keeps sums of workers within reason.
const maxCount = 1 << 24

func newProblem(jobs []Job, workers Workers) (*problem, error) {
	p := &problem{jobs: jobs, count: workers.Count, link: workers.SlowestLink}
	if err := checkInput(jobs, workers); err != nil {
		return nil, err
	}
	for _, count := range workers.Count {
		p.total += count
	}
	for i := range jobs {
		if a, runs := p.agent(i); runs {
			p.agents = append(p.agents, a)
		}
	}
	slices.SortStableFunc(p.agents, func(a, b agent) int {
		return cmp.Compare(p.remaining(&a), p.remaining(&b))
	})
	return p, nil
}

func negative(n int) bool { return n < 0 }

func checkInput(jobs []Job, workers Workers) error {
	var faults []error
	fault := func(format string, values ...any) { faults = append(faults, fmt.Errorf("market: "+format, values...)) }
	number := func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
	for t, count := range workers.Count {
		if count < 0 || count > maxCount {
			fault("%d workers of type %d, want 0 to %d", count, t, maxCount)
		}
	}
	if !number(workers.SlowestLink) {
		fault("slowest link of %v bytes/s, want a positive number, or 0 for free communication", workers.SlowestLink)
	}
	for i, job := range jobs {
		if len(job.Rates) != len(workers.Count) {
			fault("job %d has %d rates, want one for each of %d types", i, len(job.Rates), len(workers.Count))
		}
		for t, rate := range job.Rates {
			if !number(rate) {
				fault("job %d: rate %v on type %d, want a positive number, or 0 where it cannot run", i, rate, t)
			}
		}
		if !number(job.Iterations) || !number(job.Batch) || !number(job.ModelBytes) || !number(job.Weight) {
			fault("job %d: iterations %v, batch %v, model of %v bytes, weight %v: want numbers from 0 up",
				i, job.Iterations, job.Batch, job.ModelBytes, job.Weight)
		}
		for r, seconds := range job.SyncSeconds {
			if !number(seconds) {
				fault("job %d: %v s of communication among %d workers, want a number from 0 up", i, seconds, r+1)
			}
		}
		if job.Least < 0 || job.Most < 0 || job.Most > 0 && job.Most < job.Least {
			fault("job %d: from %d to %d workers, want a range, where 0 is no limit", i, job.Least, job.Most)
		}
		if !number(job.MoveSeconds) || job.Held != nil && len(job.Held) != len(workers.Count) || slices.ContainsFunc(job.Held, negative) {
			fault("job %d: holds %v, moves in %v s: want none or more workers of each of %d types, and a number from 0 up",
				i, job.Held, job.MoveSeconds, len(workers.Count))
		}
	}
	return errors.Join(faults...)
}

// agent prepares a job, and reports whether enough workers it can use exist at all.
func (p *problem) agent(i int) (agent, bool) {
	job := &p.jobs[i]
	a := agent{job: i, rate: job.Rates, least: max(job.Least, 1)}
	usable := 0
	for t, rate := range job.Rates {
		if rate > 0 {
			usable += p.count[t]
			a.mean += rate * float64(p.count[t])
		}
	}
	a.most = usable
	if job.Most > 0 {
		a.most = min(usable, job.Most)
	}
	if n := len(job.SyncSeconds); n > 0 {
		a.most = min(a.most, n)
	}
	if a.least > a.most {
		return agent{}, false
	}
	a.mean /= float64(usable)
	a.work = p.weight(i) * job.Iterations * job.Batch
	switch {
	case len(job.SyncSeconds) > 0:
		a.sync, a.wire = job.SyncSeconds, p.weight(i)*job.Iterations
	case p.link > 0:
		a.wire = p.weight(i) * job.Iterations * 2 * job.ModelBytes / p.link
	}
	if job.MoveSeconds > 0 && job.Held != nil {
		a.from, a.move = job.Held, p.weight(i)*job.MoveSeconds
	}
	return a, true
}

func (p *problem) weight(job int) float64 {
	if w := p.jobs[job].Weight; w > 0 {
		return w
	}
	return 1
}

// remaining is the time an agent's work takes on one of its best workers.
func (p *problem) remaining(a *agent) float64 {
	return p.jobs[a.job].Iterations * p.jobs[a.job].Batch / slices.Max(a.rate)
}

// admit keeps the agents that can hold their least at once, as many as the order of the queue allows.
func (p *problem) admit() {
	s := p.newSeats()
	var kept []agent
	for i := range p.agents {
		if s.add(i, p.agents[i].least) {
			kept = append(kept, p.agents[i])
		}
	}
	p.agents = kept
}

// keepSized keeps the agents with a size, and returns the sizes in their order.
func (p *problem) keepSized(sizes []int) ([]int, error) {
	var kept []agent
	var category []int
	var faults []error
	placed := 0
	for _, a := range p.agents {
		size := sizes[a.job]
		if size == 0 {
			continue
		}
		if size > a.most || size < a.least {
			faults = append(faults, fmt.Errorf("market: size %d of job %d, want 0 or %d to %d", size, a.job, a.least, a.most))
		}
		kept, category = append(kept, a), append(category, size)
	}
	p.agents = kept
	for _, size := range sizes {
		if size > 0 {
			placed++
		}
	}
	if placed > len(kept) {
		faults = append(faults, fmt.Errorf("market: %d of the jobs with a size can never run on these workers", placed-len(kept)))
	}
	return category, errors.Join(faults...)
}

// assignment says what the agents' counts mean for the jobs, and how they fare against equal sizes.
func (p *problem) assignment(held [][]int, bound float64, score scoring) Assignment {
	out := Assignment{Counts: table(len(p.jobs), len(p.count)), Seconds: make([]float64, len(p.jobs)), Bound: bound}
	for i := range out.Seconds {
		out.Seconds[i] = math.Inf(1)
	}
	seconds, smallest := make([]float64, len(p.agents)), math.Inf(1)
	for i := range p.agents {
		a := &p.agents[i]
		copy(out.Counts[a.job], held[i])
		seconds[i] = a.seconds(speedOf(a.rate, held[i])) + a.moves(held[i])
		out.Seconds[a.job] = seconds[i] / p.weight(a.job)
		out.Mean += seconds[i]
		ratio := share(seconds[i], score.equal[i])
		smallest, out.Worst = min(smallest, ratio), max(out.Worst, ratio)
	}
	out.Mean /= float64(max(len(p.agents), 1))
	out.Score = score.of(seconds)
	out.Jain = jain(score.ratios(seconds))
	out.Spread = share(out.Worst, smallest)
	return out
}

// speedOf is what workers make together, with their number.
func speedOf(rate []float64, held []int) (speed float64, size int) {
	for t, n := range held {
		speed += rate[t] * float64(n)
		size += n
	}
	return speed, size
}
