package allocation

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/elastic"
)

// AFSConfig configures NewAFS.
type AFSConfig struct {
	elastic.StepsConfig
}

// NewAFS gives devices, one at a time, to the job that wins a comparison with every other.
//
// Source: the AFS-L rule of elastic resource sharing (Hwang et al., NSDI'21). Of two jobs without devices, the one with
// less time left wins. Otherwise let s be the one that ends sooner with what it has, l the other, and S the speed with n
// devices: the device goes to l if (S_l(n+1)−S_l(n))/S_l(n+1) > (S_s(n+1)−S_s(n))/S_s(n), for then l with the device
// makes up for more than s loses, and to s if not. A job without devices never ends, so that everyone gets one before
// speeds decide, as long as two devices are less than twice as fast as one. The rule is no order: the winner is that of
// one walk over the jobs in JobID order. Grants come in ascending order of replicas, ties in JobID order.
//
// Deviations: a job that one more device does not speed up, say because it would spill over to another node, is offered
// the next number that does, and its gain counts by the device; with steps one it is offered nothing more, as the
// publication has it. Least numbers of replicas above one are offered whole. O(devices × candidates).
func NewAFS() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "afs",
		Summary: "greedy sharing that weighs a job's gain against the delay of shorter ones, one device at a time",
		Description: "Hands out one device at a time, by a rule for two jobs that weighs the time left of the shorter against the efficiency of the longer. " +
			"Needs an elasticity that gives rate curves and the work left; a job without a curve gets its least number only.",
		Source:       "AFS-L, Hwang et al., NSDI'21",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, AFSConfig{elastic.StepsConfig{Steps: elastic.NextLevel}}, func(c AFSConfig, _ core.Settings) (core.Allocator, error) {
		return &afs{Claims: elastic.NewClaims(), steps: c.StepsConfig}, nil
	})
}

type afs struct {
	elastic.Claims

	steps elastic.StepsConfig
	bids  []bid // by index among the candidates
}

// bid is what a candidate has got so far, and what it asks for next.
type bid struct {
	work     float64 // left, in the unit of the curve; +Inf when unknown
	most     int
	replicas int
	next     int     // number of replicas it asks for; 0 when it wants no more
	seconds  float64 // until it ends with what it has
	lengthen float64 // (S(next)-S(n))/S(next), by the device: its claim against a job that ends sooner
	shorten  float64 // (S(next)-S(n))/S(n), by the device: its claim against one that ends later
}

func (p *afs) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	perNode := v.Cluster.LargestNode()
	for left := p.open(v, candidates, perNode); ; {
		winner := p.winner(left)
		if winner < 0 {
			break
		}
		b := &p.bids[winner]
		left -= b.next - b.replicas
		b.replicas = b.next
		b.ask(candidates[winner].Response, perNode, p.steps)
	}
	for i := range p.bids {
		p.Of[i].Replicas = p.bids[i].replicas
	}
	return p.Grants(candidates), nil
}

// open lets every candidate ask for its least number of replicas, except pinned ones, which have what they hold. It returns how many
// devices are left.
func (p *afs) open(v *core.View, candidates []core.Candidate, perNode int) int {
	left := p.Open(v, candidates, func(c *core.Candidate) (work float64, stands bool) {
		if c.TotalWork > 0 {
			return c.RemainingWork(v.NowSeconds), false
		}
		return math.Inf(1), false
	})
	p.bids = p.bids[:0]
	for i := range candidates {
		claim := &p.Of[i]
		b := bid{work: claim.Work, most: claim.Most, replicas: claim.Replicas}
		if !claim.Pinned {
			b.ask(candidates[i].Response, perNode, p.steps)
		}
		p.bids = append(p.bids, b)
	}
	return left
}

// ask works out what the job asks for on top of its replicas.
func (b *bid) ask(r *core.Response, perNode int, steps elastic.StepsConfig) {
	if b.replicas == 0 {
		b.next = r.MinReplicas
		b.seconds = b.work
		if rate := r.Rate(core.AnyAccelerator, b.next, perNode); rate > 0 {
			b.seconds = b.work / rate
		}
		b.lengthen = 1 / float64(b.next)
		return
	}
	rate := r.Rate(core.AnyAccelerator, b.replicas, perNode)
	b.seconds = b.work / rate
	var next float64
	if b.next, next = steps.Next(r, b.replicas, b.most, perNode); b.next > 0 {
		devices := float64(b.next - b.replicas)
		b.lengthen, b.shorten = (next-rate)/next/devices, (next-rate)/rate/devices
	}
}

// winner is the candidate that the devices left go to; -1 when nobody wants them.
func (p *afs) winner(left int) int {
	winner := -1
	for i := range p.bids {
		b := &p.bids[i]
		if b.next > 0 && b.next-b.replicas <= left && (winner < 0 || b.beats(&p.bids[winner])) {
			winner = i
		}
	}
	return winner
}

// beats compares a job with one that was submitted before.
func (b *bid) beats(earlier *bid) bool {
	switch {
	case b.replicas == 0 && earlier.replicas == 0:
		return b.seconds < earlier.seconds
	case earlier.replicas == 0 || b.replicas > 0 && b.seconds < earlier.seconds:
		return !(earlier.lengthen > b.shorten)
	default:
		return b.lengthen > earlier.shorten
	}
}
