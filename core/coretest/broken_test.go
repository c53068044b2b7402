package coretest

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// The policies below are plain but for one fault each.

type admit func(ctx context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error)

func (f admit) Admit(ctx context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	return f(ctx, v, waiting)
}

func verdicts(of func(*core.Job) core.Verdict) func() core.Admitter {
	return func() core.Admitter {
		return admit(func(_ context.Context, _ *core.View, waiting []*core.Job) ([]core.Verdict, error) {
			var all []core.Verdict
			for _, j := range waiting {
				all = append(all, of(j))
			}
			return all, nil
		})
	}
}

func TestRunAdmitterCatches(t *testing.T) {
	wantFaultsCaught(t, admitterSlot("fake"), nil, map[string]fault[core.Admitter]{
		"a verdict nobody asked for": {"rounds", core.RuleAnswerForAsked, verdicts(func(j *core.Job) core.Verdict {
			return core.Verdict{Job: j.ID + 1000, Code: core.Admit}
		})},
		"a refusal without a reason": {"rounds", "defer without a reason", verdicts(func(j *core.Job) core.Verdict {
			return core.Verdict{Job: j.ID, Code: core.Defer}
		})},
		"a reason outside the list": {"rounds", "reason unknown", verdicts(func(j *core.Job) core.Verdict {
			return core.Verdict{Job: j.ID, Code: core.Defer, Reason: 200}
		})},
		"a code outside the list": {"rounds", "code unknown", verdicts(func(j *core.Job) core.Verdict {
			return core.Verdict{Job: j.ID, Code: 7, Reason: core.LoadLimit}
		})},
		"evidence that is NaN": {"rounds", "negative or NaN", verdicts(func(j *core.Job) core.Verdict {
			return core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.LoadLimit, Wanted: math.NaN(), Unit: "devices"}
		})},
		"evidence without a unit": {"rounds", "without a unit", verdicts(func(j *core.Job) core.Verdict {
			return core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.LoadLimit, Wanted: 1}
		})},
		"a changed job": {"rounds", "changed what it was given", func() core.Admitter {
			return admit(func(_ context.Context, _ *core.View, waiting []*core.Job) ([]core.Verdict, error) {
				waiting[0].Weight++
				return nil, nil
			})
		}},
		"an error": {"rounds", "returned an error", func() core.Admitter {
			return admit(func(context.Context, *core.View, []*core.Job) ([]core.Verdict, error) {
				return nil, errors.New("no")
			})
		}},
		"a panic on an empty cluster": {"nothing to decide", "panic", func() core.Admitter {
			return admit(func(_ context.Context, v *core.View, _ []*core.Job) ([]core.Verdict, error) {
				_ = v.Cluster.Nodes[0]
				return nil, nil
			})
		}},
	})
}

type allocate func(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error)

func (f allocate) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	return f(ctx, v, candidates)
}

// grantsOf spoils the grants of plain. Each policy gets a memory of its own.
func grantsOf[M any](spoil func(memory *M, v *core.View, candidates []core.Candidate, grants []core.Grant) []core.Grant) func() core.Allocator {
	return func() core.Allocator {
		memory := new(M)
		return allocate(func(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
			grants, err := plain{}.Allocate(ctx, v, candidates)
			if len(candidates) == 0 {
				return grants, err
			}
			return spoil(memory, v, candidates, grants), err
		})
	}
}

// rushed allocates nothing before half an hour has passed, and says something else.
type rushed struct {
	plain
	standing core.Standing
}

func (r rushed) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	if v.NowSeconds < 1800 {
		return nil, nil
	}
	return r.plain.Allocate(ctx, v, candidates)
}

func (r rushed) Standing() core.Standing { return r.standing }

func stands(untilSeconds float64, ifSeated int) func() core.Allocator {
	return func() core.Allocator {
		return rushed{standing: core.Standing{UntilSeconds: untilSeconds, IfSeated: ifSeated}}
	}
}

// lateReader looks at the View again after it has answered.
type lateReader struct {
	plain
	view *core.View
}

func (r *lateReader) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	r.view = v
	return r.plain.Allocate(ctx, v, candidates)
}

func (r *lateReader) Standing() core.Standing {
	if r.view == nil {
		return core.Standing{UntilSeconds: math.Inf(1)}
	}
	return core.Standing{UntilSeconds: r.view.NowSeconds}
}

// lateCertifier looks at the View again when it certifies its answer.
type lateCertifier struct {
	plain
	view *core.View
}

func (c *lateCertifier) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	c.view = v
	return c.plain.Allocate(ctx, v, candidates)
}

func (c *lateCertifier) GapRatio() float64 { return c.view.NowSeconds / (1 + c.view.NowSeconds) }

var shared int

func TestRunAllocatorCatches(t *testing.T) {
	type job = core.Job
	wantFaultsCaught(t, allocatorSlot("fake"), nil, map[string]fault[core.Allocator]{
		"a grant for no candidate": {"rounds", core.RuleAnswerForAsked, grantsOf(func(_ *int, _ *core.View, _ []core.Candidate, grants []core.Grant) []core.Grant {
			grants[0].Job += 1000
			return grants
		})},
		"two grants for one job": {"rounds", core.RuleAnswerOnce, grantsOf(func(_ *int, _ *core.View, _ []core.Candidate, grants []core.Grant) []core.Grant {
			return append(grants, grants[0])
		})},
		"more replicas than the job can use": {"rounds", core.RuleReplicasInRange, grantsOf(func(_ *int, _ *core.View, c []core.Candidate, grants []core.Grant) []core.Grant {
			grants[0].Replicas = c[0].Response.MaxReplicas + 1
			return grants
		})},
		"an accelerator type that does not exist": {"rounds", core.RuleOneAccelerator, grantsOf(func(_ *int, v *core.View, _ []core.Candidate, grants []core.Grant) []core.Grant {
			grants[0].Accelerator = core.AcceleratorID(len(v.Cluster.Accelerators))
			return grants
		})},
		"an accelerator type that the job cannot run on": {"rounds", "cannot run on", grantsOf(func(_ *int, _ *core.View, _ []core.Candidate, grants []core.Grant) []core.Grant {
			for i := range grants {
				grants[i].Accelerator = 0
			}
			return grants
		})},
		"a proposal for another number of replicas": {"rounds", "proposes seats", grantsOf(func(_ *int, _ *core.View, _ []core.Candidate, grants []core.Grant) []core.Grant {
			grants[0].Proposed = []core.Seat{{Devices: core.FirstDevices(grants[0].Replicas + 1)}}
			return grants
		})},
		"a proposal on a node that does not exist": {"rounds", "there is no node", grantsOf(func(_ *int, _ *core.View, _ []core.Candidate, grants []core.Grant) []core.Grant {
			grants[0].Proposed = []core.Seat{{Node: -1, Devices: core.FirstDevices(grants[0].Replicas)}}
			return grants
		})},
		"a changed response": {"rounds", "changed what it was given", grantsOf(func(_ *int, _ *core.View, c []core.Candidate, grants []core.Grant) []core.Grant {
			c[0].Response.MaxReplicas++
			return grants
		})},
		"a changed node": {"rounds", "changed what it was given", grantsOf(func(_ *int, v *core.View, _ []core.Candidate, grants []core.Grant) []core.Grant {
			v.Cluster.Nodes[0].Devices++
			return grants
		})},
		"state that instances share": {"rounds", "not deterministic", grantsOf(func(_ *int, _ *core.View, _ []core.Candidate, grants []core.Grant) []core.Grant {
			shared++
			return grants[:shared%(len(grants)+1)]
		})},
		"a job kept from the round before": {"rounds", "kept a reference", grantsOf(func(first **job, _ *core.View, c []core.Candidate, grants []core.Grant) []core.Grant {
			if *first == nil {
				*first = c[0].Job
			}
			if (*first).Requested > 0 {
				return grants
			}
			return nil
		})},
		"work that it does not declare": {"rounds", "without declaring the capability", grantsOf(func(_ *int, _ *core.View, c []core.Candidate, grants []core.Grant) []core.Grant {
			if c[0].TotalWork >= 0 {
				return grants
			}
			return nil
		})},
		"steps that it does not declare": {"rounds", "without declaring the capability", grantsOf(func(_ *int, _ *core.View, c []core.Candidate, grants []core.Grant) []core.Grant {
			if c[0].StepsLeft < 0 {
				return nil
			}
			return grants
		})},
		"an answer that does not stand":              {"rounds", "changed its answer", stands(math.Inf(1), 0)},
		"an answer that stands until NaN":            {"rounds", "stands until NaN", stands(math.NaN(), 0)},
		"a condition on more grants than there are":  {"rounds", "of its 0 grants are seated", stands(math.Inf(1), 1)},
		"a condition on less than no grants":         {"rounds", "first -1 of", stands(math.Inf(1), -1)},
		"a finite standing before the first answer":  {"nothing to decide", "before the first answer", stands(60, 0)},
		"a standing read from the View of the round": {"rounds", "stand differently", func() core.Allocator { return &lateReader{} }},
		"a gap read from the View of the round":      {"rounds", "certified differently", func() core.Allocator { return &lateCertifier{} }},
		"every ended job remembered": {"ended jobs are forgotten", "of each ended job", grantsOf(func(all *map[core.JobID]*job, _ *core.View, c []core.Candidate, grants []core.Grant) []core.Grant {
			if *all == nil {
				*all = make(map[core.JobID]*job)
			}
			for i := range c {
				(*all)[c[i].ID] = c[i].Job
			}
			return grants
		})},
		"a goroutine left behind": {"no goroutine is left", "unexpected goroutines", func() core.Allocator {
			return allocate(func(context.Context, *core.View, []core.Candidate) ([]core.Grant, error) {
				go func() { time.Sleep(time.Minute) }() // far longer than the suite waits for it
				return nil, nil
			})
		}},
		"an error of its own when cancelled": {"cancelled context", "want an answer or context.Canceled", func() core.Allocator {
			return allocate(func(ctx context.Context, _ *core.View, _ []core.Candidate) ([]core.Grant, error) {
				if ctx.Err() != nil {
					return nil, errors.New("gave up")
				}
				return nil, nil
			})
		}},
	})
}

type place func(v *core.View, grants []core.Grant, s core.Seating) core.Seating

// Place spoils the seating of plain.
func (f place) Place(ctx context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	s, err := plain{}.Place(ctx, v, grants)
	return f(v, grants, s), err
}

func seatings(f place) func() core.Placer { return func() core.Placer { return f } }

// placed applies a fault to the first placement, if there is one.
func placed(spoil func(v *core.View, p *core.Placement)) func() core.Placer {
	return seatings(func(v *core.View, _ []core.Grant, s core.Seating) core.Seating {
		if len(s.Placed) > 0 {
			s.Placed[0].Seats = append([]core.Seat(nil), s.Placed[0].Seats...)
			spoil(v, &s.Placed[0])
		}
		return s
	})
}

// followed seats what was placed on its proposal instead, where that looks good.
func followed(grants []core.Grant, s core.Seating, good func(*core.Grant) bool) core.Seating {
	for i := range s.Placed {
		for k := range grants {
			if g := &grants[k]; g.Job == s.Placed[i].Job && good(g) {
				s.Placed[i].Seats = g.Proposed
			}
		}
	}
	return s
}

func TestRunPlacerCatches(t *testing.T) {
	single := func(f core.Factory[core.Placer]) []check { return []check{placeOne(placerSlot("fake"), f, nil)} }
	wantFaultsCaught(t, placerSlot("fake"), single, map[string]fault[core.Placer]{
		"a grant without an answer": {"rounds", core.RuleAnswerEveryGrant, seatings(func(_ *core.View, _ []core.Grant, s core.Seating) core.Seating {
			return core.Seating{Placed: s.Placed}
		})},
		"a grant answered twice": {"rounds", core.RuleAnswerOnce, seatings(func(_ *core.View, _ []core.Grant, s core.Seating) core.Seating {
			for _, p := range s.Placed {
				s.Unseated = append(s.Unseated, core.Verdict{Job: p.Job, Code: core.Defer, Reason: core.Fragmented})
			}
			return s
		})},
		"a job without a grant": {"rounds", core.RuleAnswerForAsked, seatings(func(_ *core.View, _ []core.Grant, s core.Seating) core.Seating {
			s.Unseated = append(s.Unseated, core.Verdict{Job: -1, Code: core.Defer, Reason: core.Fragmented})
			return s
		})},
		"a part of a gang": {"rounds", core.RuleGangComplete, placed(func(v *core.View, p *core.Placement) {
			if v.Job(p.Job).State == core.Running {
				return // it would be moved, which is another fault
			}
			p.Seats[0].Devices = p.Seats[0].Devices.Lowest(p.Seats[0].Devices.Count() - 1)
			if p.Seats[0].Devices == 0 {
				p.Seats = p.Seats[1:]
			}
		})},
		"a device that is not there": {"rounds", "devices", placed(func(_ *core.View, p *core.Placement) {
			for i := range p.Seats {
				p.Seats[i].Devices <<= 32
			}
		})},
		"a device twice": {"rounds", core.RuleDeviceOnce, seatings(func(v *core.View, grants []core.Grant, whole core.Seating) core.Seating {
			var s core.Seating
			for i := range grants {
				alone, _ := plain{}.Place(context.Background(), v, grants[i:i+1])
				if len(alone.Unseated) > 0 && grants[i].Blocking {
					return whole
				}
				s.Placed, s.Unseated = append(s.Placed, alone.Placed...), append(s.Unseated, alone.Unseated...)
			}
			return s
		})},
		"an empty seat": {"rounds", "no device on node", placed(func(v *core.View, p *core.Placement) {
			for i := range v.Cluster.Nodes {
				p.Seats = append(p.Seats, core.Seat{Node: core.NodeID(i)})
			}
		})},
		"a node seated twice": {"rounds", "has two seats", placed(func(_ *core.View, p *core.Placement) {
			if first := p.Seats[0].Devices; first.Count() > 1 {
				p.Seats[0].Devices = first.Lowest(1)
				p.Seats = append(p.Seats, core.Seat{Node: p.Seats[0].Node, Devices: first &^ first.Lowest(1)})
			}
		})},
		"a node that is not ready": {"rounds", "draining node", placed(func(v *core.View, p *core.Placement) {
			for i := range v.Cluster.Nodes {
				if n := &v.Cluster.Nodes[i]; n.Health == core.Draining && n.Accelerator == v.Cluster.Nodes[p.Seats[0].Node].Accelerator && n.Devices >= core.Replicas(p.Seats) {
					p.Seats = []core.Seat{{Node: n.ID, Devices: core.FirstDevices(core.Replicas(p.Seats))}}
					return
				}
			}
		})},
		"a type that the grant excludes": {"rounds", "has type", seatings(func(v *core.View, grants []core.Grant, _ core.Seating) core.Seating {
			loose := append([]core.Grant(nil), grants...)
			for i := range loose {
				loose[i].Accelerator = core.AnyAccelerator
			}
			s, _ := plain{}.Place(context.Background(), v, loose)
			return s
		})},
		"a refusal that rejects": {"rounds", "code reject from a placer", seatings(func(_ *core.View, _ []core.Grant, s core.Seating) core.Seating {
			for i := range s.Unseated {
				s.Unseated[i].Code = core.Reject
			}
			return s
		})},
		"a job moved for nothing": {"rounds", "moved job", placed(func(_ *core.View, p *core.Placement) {
			for i, k := 0, len(p.Seats)-1; i < k; i, k = i+1, k-1 {
				p.Seats[i], p.Seats[k] = p.Seats[k], p.Seats[i]
			}
		})},
		"a running job evicted": {"rounds", "took the devices", seatings(func(v *core.View, grants []core.Grant, s core.Seating) core.Seating {
			if last := len(s.Placed) - 1; last >= 0 {
				s.Unseated = append(s.Unseated, core.Verdict{Job: s.Placed[last].Job, Code: core.Defer, Reason: core.Fragmented})
				s.Placed = s.Placed[:last]
			}
			return s
		})},
		"a blocking grant that does not block": {"rounds", "after a blocking grant", seatings(func(v *core.View, grants []core.Grant, _ core.Seating) core.Seating {
			loose := append([]core.Grant(nil), grants...)
			for i := range loose {
				loose[i].Blocking = false
			}
			s, _ := plain{}.Place(context.Background(), v, loose)
			return s
		})},
		"nonsense followed": {"rounds", "", seatings(func(_ *core.View, grants []core.Grant, s core.Seating) core.Seating {
			return followed(grants, s, func(g *core.Grant) bool { return len(g.Proposed) > 0 })
		})},
		"a proposal followed although taken": {"rounds", core.RuleDeviceOnce, seatings(func(v *core.View, grants []core.Grant, s core.Seating) core.Seating {
			return followed(grants, s, func(g *core.Grant) bool { return proposalFault(v.Cluster, v.Job(g.Job), g) == "" })
		})},
		"nothing ever seated": {"a single replica is seated", "one replica on an empty cluster", seatings(func(_ *core.View, grants []core.Grant, _ core.Seating) core.Seating {
			var s core.Seating
			for _, g := range grants {
				s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices})
			}
			return s
		})},
	})
}

// respond spoils the responses of plain.
type respond struct {
	plain
	spoil func([]*core.Job, []core.Response) []core.Response
}

func (r respond) Respond(ctx context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	responses, err := r.plain.Respond(ctx, v, jobs)
	if len(jobs) == 0 {
		return responses, err
	}
	return r.spoil(jobs, responses), err
}

func responses(spoil func([]*core.Job, []core.Response) []core.Response) func() core.Elasticity {
	return func() core.Elasticity { return respond{spoil: spoil} }
}

// recycling writes every curve into the same memory.
type recycling struct {
	plain
	rates [1]float64
}

func (r *recycling) Respond(ctx context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	responses, err := r.plain.Respond(ctx, v, jobs)
	r.rates[0] = float64(v.Round)
	for i := range responses {
		responses[i].Curves = []core.Curve{{OneNode: r.rates[:]}}
	}
	return responses, err
}

// retuning answers with tunings of its own.
type retuning struct {
	plain
	tuning core.Tuning
	until  float64
}

func (r retuning) Tune(_ context.Context, v *core.View, placements []core.Placement) ([]core.Tuning, error) {
	var all []core.Tuning
	for _, p := range placements {
		tuning := r.tuning
		tuning.Job += p.Job
		if r.until > 0 {
			tuning.BatchPerDevice = v.Round
		}
		all = append(all, tuning)
	}
	return all, nil
}

func (r retuning) Standing() core.Standing { return core.Standing{UntilSeconds: r.until} }

func TestRunElasticityCatches(t *testing.T) {
	wantFaultsCaught(t, elasticitySlot("fake"), nil, map[string]fault[core.Elasticity]{
		"a missing response": {"rounds", core.RuleAnswerForAsked, responses(func(_ []*core.Job, r []core.Response) []core.Response {
			return r[1:]
		})},
		"a response for another job": {"rounds", core.RuleAnswerForAsked, responses(func(_ []*core.Job, r []core.Response) []core.Response {
			r[0].Job++
			return r
		})},
		"no replicas": {"rounds", "exceeds the job's", responses(func(_ []*core.Job, r []core.Response) []core.Response {
			r[0].MinReplicas = 0
			return r
		})},
		"an empty range": {"rounds", core.RuleReplicasInRange, responses(func(_ []*core.Job, r []core.Response) []core.Response {
			r[0].MaxReplicas = r[0].MinReplicas - 1
			return r
		})},
		"more than the job can use": {"rounds", "exceeds the job's", responses(func(j []*core.Job, r []core.Response) []core.Response {
			r[0].MaxReplicas = j[0].MaxReplicas + 1
			return r
		})},
		"a rate that is infinite": {"rounds", "rate +Inf with 1 replicas", responses(func(_ []*core.Job, r []core.Response) []core.Response {
			r[0].Curves = []core.Curve{{OneNode: []float64{math.Inf(1)}}}
			return r
		})},
		"negative work": {"rounds", "negative remaining work", responses(func(_ []*core.Job, r []core.Response) []core.Response {
			r[0].RemainingWork = -1
			return r
		})},
		"curves in memory used again": {"rounds", "changed the curves", func() core.Elasticity { return &recycling{} }},
		"a tuning for a job without devices": {"rounds", core.RuleAnswerForAsked, func() core.Elasticity {
			return retuning{tuning: core.Tuning{Job: 1000}}
		}},
		"a negative batch": {"rounds", core.RuleTuningSane, func() core.Elasticity {
			return retuning{tuning: core.Tuning{BatchPerDevice: -1}}
		}},
		"another batch although steady": {"rounds", "changed its answer", func() core.Elasticity {
			return retuning{until: math.Inf(1)}
		}},
	})
}

type scale func(v *core.View, plan *core.Plan) core.ClusterTarget

func (f scale) Scale(_ context.Context, v *core.View, plan *core.Plan) (core.ClusterTarget, error) {
	return f(v, plan), nil
}

func TestRunScalerCatches(t *testing.T) {
	wantFaultsCaught(t, scalerSlot("fake"), nil, map[string]fault[core.ClusterScaler]{
		"less than no nodes": {"rounds", "wants -1 nodes", func() core.ClusterScaler {
			return scale(func(*core.View, *core.Plan) core.ClusterTarget { return core.ClusterTarget{Nodes: -1} })
		}},
		"a changed plan": {"rounds", "changed what it was given", func() core.ClusterScaler {
			return scale(func(_ *core.View, plan *core.Plan) core.ClusterTarget {
				plan.Cluster.Nodes++
				return core.ClusterTarget{}
			})
		}},
	})
}
