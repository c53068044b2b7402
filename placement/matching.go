package placement

import (
	"context"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim/market"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// MatchingConfig configures NewMatching.
type MatchingConfig struct {
	// Values says what a job bids for a device: gradient, by how much it shortens the job, or raw_rate, its speed.
	Values string `config:"values" doc:"what a job bids for a device: gradient is by how much it shortens the job, raw_rate its speed, as in a public replication" enum:"gradient|raw_rate"`
	// Market is what clears a market: transport, or the slower price auction.
	Market string `config:"market" doc:"what clears the market: transport, or the slower price auction" enum:"transport|auction"`
}

// NewMatching seats any allocator's grants on the accelerator types where they end soonest on average.
//
// The sizes that were granted are a category: free devices go to the new grants in one market (package market), most to
// whom they shorten most. A job that mixes types may get some of each; another gets the type that the market gives it
// most of, and the market is held again for the rest. Within a type it is consolidated, on nodes where the job sits
// before others. Grants that fit beside those before them take part; a job that keeps its grant keeps its devices.
//
// Source: Liu et al., IEEE TPDS 35(6), 2024, the market inside a category. Deviations: those of package market; speeds
// and lengths are true step times and steps left, and a job without them counts as average and alike on all types.
// O(grants × types) a step of the market, and O(nodes) for each node taken.
func NewMatching() core.Factory[core.Placer] {
	return core.NewFactory(core.Info{
		Type:    "matching",
		Summary: "shares unlike accelerator types out among grants by a matching market",
		Description: "Seats the sizes that any allocator grants: types go to the jobs that they shorten most, several to one job if it mixes types. " +
			"A job without step times counts as average, and alike on all types. O(grants × types) a step of the market, and O(nodes) for each node taken.",
		Source:       "Liu et al., IEEE TPDS 35(6), 2024",
		Capabilities: []core.Capability{core.CapabilityStepTimes},
	}, MatchingConfig{Values: "gradient", Market: "transport"}, func(c MatchingConfig, _ core.Settings) (core.Placer, error) {
		options := market.Options{Matcher: market.Matcher(c.Market), Values: market.Values(c.Values)}
		return &matching{options: options}, nil
	})
}

type matching struct {
	seating.Seater
	options market.Options
	jobs    []market.Job // of the grants that need new seats
	sizes   []int
	single  []int // scratch
}

func (p *matching) Place(ctx context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	p.Begin(v)
	for i := range grants {
		if g := &grants[i]; p.Occupy(v, g) {
			p.Keep(v, g)
		} else {
			p.Rest = append(p.Rest, i)
		}
	}
	counts, err := p.match(ctx, v, grants)
	if err != nil {
		return core.Seating{}, err
	}
	blocked := false
	for k, i := range p.Rest {
		g := &grants[i]
		turn := !blocked || v.Jobs[g.Job].State == core.Running
		if turn && (p.seatCounts(v, g, counts[k]) || p.seatAnyhow(v, g)) {
			continue
		}
		p.Refuse(v, g, !turn)
		blocked = blocked || g.Blocking
	}
	return p.Seating(), nil
}

// seatAnyhow seats a grant that the market left without devices, or whose devices another such grant took, if it fits
// at all: one that is refused then stays refused, however the market goes the next time.
func (p *matching) seatAnyhow(v *core.View, g *core.Grant) bool {
	return p.OnFewestNodes(v, g, seating.Consolidated) || v.Jobs[g.Job].MixesTypes && p.Mix(v, g, seating.Consolidated)
}

// match is the devices by type of each grant that needs new seats, none for one that does not fit.
func (p *matching) match(ctx context.Context, v *core.View, grants []core.Grant) ([][]int, error) {
	p.gather(v, grants)
	if len(p.Rest) == 0 {
		return nil, nil
	}
	if err := p.fit(v, grants); err != nil {
		return nil, err
	}
	won, err := market.Match(ctx, p.jobs, p.workers(), p.sizes, p.options)
	if err != nil || !market.Bind(p.jobs, won.Counts, p.workers(), p.bound(v, grants), false) {
		return won.Counts, err
	}
	if err := p.fit(v, grants); err != nil {
		return nil, err
	}
	won, err = market.Match(ctx, p.jobs, p.workers(), p.sizes, p.options)
	return won.Counts, err
}

func (p *matching) workers() market.Workers { return market.Workers{Count: p.Free} }

// gather translates the grants that need new seats.
func (p *matching) gather(v *core.View, grants []core.Grant) {
	p.jobs, p.sizes = p.jobs[:0], p.sizes[:0]
	total, known := 0.0, 0
	for _, i := range p.Rest {
		g := &grants[i]
		j := v.Jobs[g.Job]
		job := market.Job{Iterations: math.NaN(), Batch: 1, Rates: p.rates(v, j, g)}
		if j.StepTimes != nil && !math.IsNaN(j.StepsLeft) {
			job.Iterations = j.StepsLeft
			if s := j.StepsLeft / slices.Max(job.Rates); s > 0 && !math.IsInf(s, 1) {
				total += s
				known++
			}
		}
		p.jobs, p.sizes = append(p.jobs, job), append(p.sizes, g.Replicas)
	}
	average := 1.0
	if known > 0 {
		average = total / float64(known)
	}
	for k := range p.jobs {
		if job := &p.jobs[k]; math.IsNaN(job.Iterations) {
			job.Iterations = average * slices.Max(job.Rates)
		}
	}
}

// hardly is the speed on a type of which nothing is known, over that on the fastest.
const hardly = 1e-3

// rates is the steps a second of one device of a job, by type; 0 where it may not be seated.
func (p *matching) rates(v *core.View, j *core.Job, g *core.Grant) []float64 {
	rates, best := make([]float64, len(p.Free)), 0.0
	for t := range rates {
		if seating.Eligible(v, j, g, core.AcceleratorID(t)) {
			rates[t] = aloneRate(j, v.Cluster.Accelerators[t], g.Replicas)
			best = max(best, rates[t])
		}
	}
	for t := range rates {
		if rates[t] == 0 && seating.Eligible(v, j, g, core.AcceleratorID(t)) {
			rates[t] = 1
			if best > 0 {
				rates[t] = hardly * best
			}
		}
	}
	return rates
}

// aloneRate is what one of so many devices of a type does; 0 when unknown.
func aloneRate(j *core.Job, accelerator string, replicas int) float64 {
	if j.StepTimes == nil {
		return 0
	}
	if u := j.StepTimes.MixedTypes; u != nil && j.MixesTypes {
		for _, alone := range u.SingleDeviceTimes {
			if alone.Accelerator == accelerator && alone.Seconds > 0 {
				return 1 / alone.Seconds
			}
		}
		return 0
	}
	oneNode, manyNodes := j.StepTimes.On(accelerator)
	for _, times := range [...][]float64{oneNode, manyNodes} {
		if replicas <= len(times) && times[replicas-1] > 0 {
			return 1 / (times[replicas-1] * float64(replicas))
		}
	}
	return 0
}

// fit leaves out the grants that do not fit beside those before them, and what a blocking one among these keeps from
// starting.
func (p *matching) fit(v *core.View, grants []core.Grant) error {
	fits, err := market.Fits(p.jobs, p.workers(), p.sizes)
	if err != nil {
		return err
	}
	blocked := false
	for k, i := range p.Rest {
		if blocked && v.Jobs[grants[i].Job].State != core.Running {
			p.sizes[k] = 0
		}
		blocked = blocked || grants[i].Blocking && !fits[k]
	}
	if blocked {
		if fits, err = market.Fits(p.jobs, p.workers(), p.sizes); err != nil {
			return err
		}
	}
	for k := range p.sizes {
		if !fits[k] {
			p.sizes[k] = 0
		}
	}
	return nil
}

// bound is the sizes of the grants whose jobs do not mix types, 0 for the others.
func (p *matching) bound(v *core.View, grants []core.Grant) []int {
	p.single = append(p.single[:0], p.sizes...)
	for k, i := range p.Rest {
		if v.Jobs[grants[i].Job].MixesTypes {
			p.single[k] = 0
		}
	}
	return p.single
}

// seatCounts seats a grant on so many devices of each type, if they are there.
func (p *matching) seatCounts(v *core.View, g *core.Grant, counts []int) bool {
	first, total := len(p.Seats), 0
	for t, n := range counts {
		if total += n; n > p.Free[t] {
			return false
		}
	}
	if total != g.Replicas {
		return false
	}
	for t, n := range counts {
		left := n
		for _, seat := range v.Jobs[g.Job].Seats {
			if int(v.Cluster.Nodes[seat.Node].Accelerator) == t {
				left -= p.Take(seat.Node, left)
			}
		}
		seating.Consolidated(&p.Seater, v, nil, core.AcceleratorID(t), left)
		p.Free[t] -= n
	}
	p.Placed = append(p.Placed, core.Placement{Job: g.Job, Seats: p.Seats[first:len(p.Seats):len(p.Seats)]})
	return true
}
