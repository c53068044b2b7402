// Package matching allocates devices of unlike types by a matching market.
package matching

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim/market"
	"github.com/quartet-sched/quartet/core/restart"
)

// Config configures New.
type Config struct {
	// Values says what a job bids for a device: gradient, by how much it shortens the job, or raw_rate, its speed.
	Values string `config:"values" doc:"what a job bids for a device: gradient is by how much it shortens the job, raw_rate its speed, as in a public replication, blind the same for every type" enum:"gradient|raw_rate|blind"`
	// Search says how categories are chosen: sampled, or each_category.
	Search string `config:"search" doc:"sampled: categories drawn and improved; each_category: a market for each category drawn, and nothing else, as published; exact: dynamic programming, for a few devices of each type only" enum:"sampled|each_category|exact"`
	// Market is what clears a market: transport, or the slower price auction.
	Market string `config:"market" doc:"what clears a market: transport, or the slower price auction" enum:"transport|auction"`
	// Samples is how many categories are drawn in a round.
	Samples int `config:"samples" doc:"categories drawn in a round, half of them uniformly and half near the category of marginal gains; all uniformly with search each_category" min:"0" max:"100000"`
	// Kicks is how often in a round the best assignment is disturbed and improved again.
	Kicks int `config:"kicks" doc:"times in a round that the best assignment is disturbed and improved again" min:"0" max:"100000"`
	// Fairness is the weight of Jain's index of the completion times.
	Fairness float64 `config:"fairness" doc:"weight of Jain's index of the completion times, each over that of equal sizes, against their mean" min:"0" max:"1"`
	// Urgency is the power by which a job counts more the less work it has left; 0 weighs all alike.
	Urgency float64 `config:"urgency" doc:"power by which a job counts more the less work it has left; 0 weighs all alike, for the plain mean" min:"0" max:"8"`
	restart.Cost

	// MovesPay says in which time a change of devices must make up for its cost.
	MovesPay string `config:"moves_pay" doc:"time in which a change of devices must make up for its cost: until_arrival, the mean time until the next job comes and takes devices; for_life, all that the job has left" enum:"until_arrival|for_life"`
}

// Default is the market with the values of this package's own.
var Default = Config{
	Values: "gradient", Search: "sampled", Market: "transport", Samples: 16, Kicks: 16, Urgency: 0.5, Cost: restart.Cost{RestartOverhead: 30 * time.Second},
	MovesPay: string(restart.Arrival),
}

// New decides together how many devices each job gets and of which types, so that the mean completion time is least.
//
// Each round is a market: jobs in the order of the work they have left, as many as can hold their least number;
// categories of sizes, some of them drawn; inside a category devices go to those whom they help most; and the best
// assignment is improved by exchanges (package market). A job that changes its devices pays for the restart, so that it
// is not moved for less; and the change must pay until the next job comes and takes devices. Devices
// are proposed: use placement proposed.
//
// Source: Liu et al., IEEE TPDS 35(6), 2024, whose abstract was at hand. Deviations: those of package market; urgency;
// a job that does not mix types takes the type that the market gives it most of, and the market is held again; a job of
// unknown length counts as long as the others on average. O(jobs × types²) for each exchange.
func New() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "matching",
		Summary: "least mean completion time on devices of unlike types, by a matching market with sampled sizes",
		Description: "Decides sizes and types together, for jobs whose replicas may run on several types as well as for those that may not, and proposes seats: use placement proposed. " +
			"Values raw_rate and blind are there to compare. Needs an elasticity that gives rates: elastic, with a proportional split. " +
			"Search exact fails where the devices of all types can be used in more than 131,072 ways. Meant for rounds on events. O(jobs × types²) for each exchange.",
		Source:       "Liu et al., IEEE TPDS 35(6), 2024",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, Default, func(c Config, s core.Settings) (core.Allocator, error) {
		return &allocator{config: c, rand: s.Rand}, nil
	})
}

type allocator struct {
	config Config
	rand   *rand.Rand

	demand   demand
	arrivals arrivals
	seating  seating
	order    []int // of grants
	grants   []core.Grant
}

func (p *allocator) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.arrivals.observe(v.NowSeconds, candidates)
	p.demand.gather(v, candidates, &p.config, p.arrivals.apart())
	p.seating.begin(v)
	p.grants = p.grants[:0]
	for i := range candidates {
		if c := &candidates[i]; c.MustStay(v.Cluster, c.Response) {
			p.seating.keep(c.Seats)
			p.grants = append(p.grants, grant(c, c.Seats))
		}
	}
	won, err := p.hold(ctx)
	if errors.Is(err, market.ErrNoRoom) {
		return p.grants, nil
	}
	if err != nil {
		return nil, err
	}
	p.seat(v, won.Counts)
	return p.grants, nil
}

// hold holds the market, and holds it again when jobs must decide for a type.
func (p *allocator) hold(ctx context.Context) (market.Assignment, error) {
	d := &p.demand
	won, err := p.solve(ctx)
	if err == nil && market.Bind(d.jobs, won.Counts, d.workers, d.sizes, true) {
		won, err = p.solve(ctx)
	}
	return won, err
}

func (p *allocator) solve(ctx context.Context) (market.Assignment, error) {
	d := &p.demand
	if p.config.Search == "exact" {
		won, err := market.Optimum(ctx, d.jobs, d.workers)
		if err != nil {
			err = fmt.Errorf("search exact: %w", err)
		}
		return won, err
	}
	options := market.Options{
		EachCategory: p.config.Search == "each_category",
		Fairness:     p.config.Fairness, Matcher: market.Matcher(p.config.Market), Samples: atLeastNone(p.config.Samples), Kicks: atLeastNone(p.config.Kicks),
	}
	if p.config.Values == "raw_rate" {
		options.Values = market.RawRates
	}
	return market.Place(ctx, d.jobs, d.workers, options, p.rand)
}

// atLeastNone turns none into what the market takes for it.
func atLeastNone(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// seat proposes devices: jobs whose counts stay keep theirs, the others follow in the order of the work left.
func (p *allocator) seat(v *core.View, counts [][]int) {
	d := &p.demand
	p.order = p.order[:0]
	for _, i := range d.queue() {
		c := d.candidates[i]
		if d.stays(i, counts[i], p.config.Values == "blind") {
			p.seating.keep(c.Seats)
			p.grants = append(p.grants, grant(c, c.Seats))
		} else {
			p.order = append(p.order, i)
		}
	}
	for _, i := range p.order {
		c := d.candidates[i]
		var seats []core.Seat
		if p.config.Values == "blind" {
			seats = p.seating.anyType(v, c, sum(counts[i]))
		} else {
			seats = p.seating.byType(v, c, counts[i])
		}
		if core.Replicas(seats) > 0 {
			p.grants = append(p.grants, grant(c, seats))
		}
	}
}

func grant(c *core.Candidate, seats []core.Seat) core.Grant {
	return core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: core.Replicas(seats), Proposed: seats}
}

func sum(counts []int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}
