package themis

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// Config configures New.
type Config struct {
	// Lease is how long a job keeps devices before they are auctioned again.
	Lease time.Duration `config:"lease" doc:"how long a job keeps devices before they are auctioned again" min:"1s"`
	// OfferedTo is the part (0 to 1) of the jobs without a lease that free devices are offered to, those furthest behind first.
	OfferedTo float64 `config:"offered_to" doc:"part of the jobs without a lease, those furthest behind their fair finish, that free devices are auctioned among; 1 is for efficiency, near 0 for fairness" min:"0" max:"1"`
	// AuctionEffort is the most steps of the search for the best outcome of an auction.
	AuctionEffort int `config:"auction_effort" doc:"most steps of the search for the best outcome of an auction; the search says no more than that it is near" min:"1"`
}

// New leases devices to the jobs that are furthest behind their fair finish.
//
// Devices whose lease has ended are offered to a part of the jobs, those with the largest finish-time ratio rho: the time from
// submission to end over that of the job alone on its share of the cluster, contention averaged over its life. The auction
// makes the product of their ratios least, as they would be after a lease on what they won and the best type from then on.
// What it leaves goes to the other jobs, worst first.
//
// Source: Mahajan et al., Themis (NSDI'20), sections 3 and 4. Deviations: nobody lies here, so that nobody pays for what
// others lose to him; jobs bid for the replicas they asked for, all or none; leftovers go to the worst off, not at random.
// O(jobs log jobs) a round, and a search of at most auction_effort steps when a lease has ended.
func New() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "themis",
		OneType: true,
		Summary: "leases devices by auction to the jobs furthest behind their fair finish",
		Description: "Devices whose lease has ended are auctioned among the jobs with the largest finish-time ratio, so that the product of the ratios becomes least; " +
			"what is left goes to the others, worst first. Jobs must know their remaining work. O(jobs log jobs) a round and a bounded search for each auction.",
		Source:       "Themis, NSDI 2020, sections 3 and 4",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, Config{Lease: 20 * time.Minute, OfferedTo: 0.2, AuctionEffort: 100_000}, func(c Config, _ core.Settings) (core.Allocator, error) {
		return &themis{lease: c.Lease.Seconds(), offeredTo: c.OfferedTo, auction: optim.Knapsack{Effort: c.AuctionEffort, Gap: 1e-6}}, nil
	})
}

type themis struct {
	lease, offeredTo float64
	auction          optim.Knapsack

	demand   demand
	accounts []account    // by JobID
	present  []core.JobID // in the last round
	capacity queue.Capacity
	left     []int // devices by type
	pinned   core.Once
	bidders  []bidder
	rates    []float64 // of all bidders
	menus    []optim.Menu
	choices  []optim.Choice // of all menus
	grants   []core.Grant
}

// account is what is kept of a job.
type account struct {
	known  bool
	before float64 // integral of the demand when the job came
	until  float64 // end of its lease
}

// demand integrates the devices that all jobs ask for over time.
type demand struct{ devices, integral, asOf float64 }

func (d *demand) pass(now float64) {
	d.integral += d.devices * (now - d.asOf)
	d.asOf = now
}

// bidder is a job without a lease.
type bidder struct {
	*core.Candidate
	replicas int
	rho      float64
	rates    []float64 // by type, 0 where it cannot run now
	left     float64   // seconds to its end on its best type
	age      float64
}

func (p *themis) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.begin(v, candidates)
	for i := range candidates {
		if !p.keep(v, &candidates[i]) {
			p.bidders = append(p.bidders, p.bid(v, &candidates[i]))
		}
	}
	slices.SortFunc(p.bidders, func(a, b bidder) int {
		if c := cmp.Compare(b.rho, a.rho); c != 0 {
			return c // without looking at the jobs
		}
		return cmp.Compare(a.ID, b.ID)
	})
	offered := min(int(math.Ceil(p.offeredTo*float64(len(p.bidders)))), len(p.bidders))
	if err := p.auctionAmong(ctx, v, p.bidders[:offered]); err != nil {
		return nil, err
	}
	for i := range p.bidders {
		if b := &p.bidders[i]; b.replicas > 0 {
			p.serve(v, b)
		}
	}
	return p.grants, nil
}

func (p *themis) begin(v *core.View, candidates []core.Candidate) {
	p.capacity.CountIn(v)
	p.pinned.Reset(v.Cluster)
	p.left, p.bidders, p.grants = append(p.left[:0], p.capacity.ByType...), p.bidders[:0], p.grants[:0]
	p.rates = slices.Grow(p.rates[:0], len(candidates)*len(p.left))
	p.demand.pass(v.NowSeconds)
	p.demand.devices, p.present = 0, p.present[:0]
	for i := range candidates {
		c := &candidates[i]
		p.present = append(p.present, c.ID)
		p.accounts = queue.Grown(p.accounts, c.ID)
		if a := &p.accounts[c.ID]; !a.known {
			*a = account{known: true, before: p.demand.integral, until: v.NowSeconds}
		}
		p.demand.devices += float64(c.Requested)
	}
}

// keep grants a job the devices that it is pinned to, or has a lease on.
func (p *themis) keep(v *core.View, c *core.Candidate) bool {
	if queue.Stays(v, c) {
		for _, seat := range c.Seats {
			left := &p.left[v.Cluster.Nodes[seat.Node].Accelerator]
			*left = max(*left-p.pinned.Count(seat), 0) // a job with a lease may be on the same device
		}
		p.grants = append(p.grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Held})
		return true
	}
	if c.State != core.Running || p.accounts[c.ID].until <= v.NowSeconds {
		return false
	}
	t := v.Cluster.Nodes[c.Seats[0].Node].Accelerator
	for _, seat := range c.Seats {
		if n := &v.Cluster.Nodes[seat.Node]; seat.Devices&^n.Usable() != 0 || n.Accelerator != t {
			return false
		}
	}
	if c.Held > p.left[t] || c.Held < c.Response.MinReplicas || c.Held > c.Response.MaxReplicas {
		return false
	}
	p.grant(c, t, c.Held)
	return true
}

func (p *themis) grant(c *core.Candidate, t core.AcceleratorID, replicas int) {
	p.left[t] -= replicas
	p.grants = append(p.grants, core.Grant{Job: c.ID, Accelerator: t, Replicas: replicas})
}

// bid estimates how far behind its fair finish a job is.
func (p *themis) bid(v *core.View, c *core.Candidate) bidder {
	first := len(p.rates)
	p.rates = p.rates[:first+len(p.left)]
	b := bidder{Candidate: c, age: max(v.NowSeconds-c.SubmitSeconds, 0), rates: p.rates[first:]}
	clear(b.rates)
	b.replicas = p.capacity.Limit(c, v.Cluster, queue.Requested(c))
	best := 0.0
	for t := range b.rates {
		accelerator := core.AcceleratorID(t)
		if b.replicas > p.capacity.ByType[t] || !c.CanRunOn(v.Cluster, accelerator) {
			continue
		}
		if b.rates[t] = 1; c.Response.Curves != nil {
			b.rates[t] = c.Response.Rate(accelerator, b.replicas, p.capacity.Largest[t])
		}
		best = max(best, b.rates[t])
	}
	if best == 0 {
		b.replicas = 0 // nowhere to run now
		return b
	}
	for t := range b.rates {
		b.rates[t] /= best
	}
	left, part := p.remaining(v, c)
	b.left = left / best
	contention := 1.0
	if devices := float64(v.Devices) * b.age; devices > 0 {
		contention = max(1, (p.demand.integral-p.accounts[c.ID].before)/devices)
	}
	b.rho = (b.age + b.left) / (max(b.left/part, 1) * contention)
	return b
}

// remaining is the work left in the unit of the curves, and what part of all its work that is. A job of unknown length is
// taken to be half done.
func (p *themis) remaining(v *core.View, c *core.Candidate) (left, part float64) {
	left, part = c.Response.RemainingWork, 0.5
	if c.TotalWork > 0 {
		declared := c.RemainingWork(v.NowSeconds)
		part = max(declared/c.TotalWork, 1e-9)
		if !(left <= declared) { // also where it is not told
			left = declared
		}
	}
	if math.IsNaN(left) {
		left = c.ExecutedSeconds(v.NowSeconds)
	}
	return max(left, 0), part
}

// auctionAmong gives free devices to those bidders that make the product of the ratios least.
func (p *themis) auctionAmong(ctx context.Context, v *core.View, bidders []bidder) error {
	p.menus, p.choices = p.menus[:0], slices.Grow(p.choices[:0], len(bidders)*len(p.left))
	for i := range bidders {
		b, first := &bidders[i], len(p.choices)
		for t, rate := range b.rates {
			if b.replicas > 0 && b.replicas <= p.left[t] && rate > 0 {
				p.choices = append(p.choices, optim.Choice{Type: t, Devices: b.replicas, Value: p.gain(b, rate)})
			}
		}
		p.menus = append(p.menus, optim.Menu{Choices: p.choices[first:]})
	}
	won, err := p.auction.Solve(ctx, p.left, p.menus)
	if err != nil {
		return err
	}
	for i, pick := range won.Picks {
		if pick >= 0 {
			p.leaseTo(v, &bidders[i], core.AcceleratorID(p.menus[i].Choices[pick].Type))
		}
	}
	return nil
}

// gain is by what power of e a lease lowers a job's ratio, at a part of its best rate.
func (p *themis) gain(b *bidder, rate float64) float64 {
	without := b.age + p.lease + b.left
	return math.Log(without / (without - min(rate*p.lease, b.left)))
}

// serve gives a bidder the fastest of the types that have enough devices left.
func (p *themis) serve(v *core.View, b *bidder) {
	best := -1
	for t, rate := range b.rates {
		if rate > 0 && b.replicas <= p.left[t] && (best < 0 || rate > b.rates[best]) {
			best = t
		}
	}
	if best >= 0 {
		p.leaseTo(v, b, core.AcceleratorID(best))
	}
}

func (p *themis) leaseTo(v *core.View, b *bidder, t core.AcceleratorID) {
	p.accounts[b.ID].until = v.NowSeconds + p.lease
	p.grant(b.Candidate, t, b.replicas)
	b.replicas = 0
}

// AskedOnce is true: an auction hands out leases.
func (p *themis) AskedOnce() bool { return true }
