package core_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// byCount grants candidates, in an order, as many devices as a count of all that there are allows, and at least what they need; it passes
// over those for whom the count is not enough. Running jobs that are passed over are preempted.
type byCount struct {
	newestFirst bool
	precedes    bool
	blocks      bool      // every grant is blocking
	blocksFrom  float64   // from this moment on every grant is blocking; 0 for never
	once        bool      // it must not be asked again in a round
	more        int       // devices that it counts beyond those that there are
	asked       *[]string // the candidates of each question, with their ranges
	granted     *int      // how many grants its last answer has, if that stands only while they run
}

func (a byCount) Standing() core.Standing {
	if a.granted == nil {
		return forEver
	}
	return core.Standing{UntilSeconds: math.Inf(1), IfSeated: *a.granted}
}

func (a byCount) Precedes() bool  { return a.precedes }
func (a byCount) AskedOnce() bool { return a.once }

func (a byCount) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) (grants []core.Grant, err error) {
	if a.asked != nil {
		var names []string
		for _, c := range candidates {
			names = append(names, fmt.Sprintf("%d:%d-%d", c.ID, c.Response.MinReplicas, c.Response.MaxReplicas))
		}
		*a.asked = append(*a.asked, strings.Join(names, " "))
	}
	candidates = slices.Clone(candidates)
	if a.newestFirst {
		slices.Reverse(candidates)
	}
	left := v.Devices + a.more
	for _, c := range candidates {
		if n := min(left, c.Response.MaxReplicas); n >= c.Response.MinReplicas {
			grants = append(grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: n, Blocking: a.blocks || a.blocksFrom > 0 && v.NowSeconds >= a.blocksFrom})
			left -= n
		}
	}
	if a.granted != nil {
		*a.granted = len(grants)
	}
	return grants, nil
}

// oneNode leaves running jobs where they are, and seats others on the first node with room for all of their replicas.
type oneNode struct {
	forEverSteady
	counts   bool // it says how many devices the best node has left
	careless bool // it does not look at what is reserved
}

func (p oneNode) KeepsReserved() bool { return !p.careless }

func (p oneNode) Place(_ context.Context, v *core.View, grants []core.Grant) (s core.Seating, err error) {
	var ledger core.Ledger
	ledger.ResetTo(v)
	stays := func(g core.Grant) bool {
		j := v.Jobs[g.Job]
		return j.State == core.Running && j.Held == g.Replicas
	}
	for _, g := range grants {
		if stays(g) {
			ledger.Occupy(v.Jobs[g.Job].Seats)
		}
	}
	blocked := false
	for _, g := range grants {
		if stays(g) {
			s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: v.Jobs[g.Job].Seats})
			continue
		}
		free := func(n core.NodeID) core.DeviceSet { return ledger.FreeDevices(n) &^ v.ReservedOn(n) }
		node := slices.IndexFunc(v.Cluster.Nodes, func(n core.Node) bool { return free(n.ID).Count() >= g.Replicas })
		switch {
		case blocked:
			s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.BlockedByEarlier})
		case node < 0:
			v := core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices}
			if p.counts {
				v.Wanted, v.Available, v.Unit = float64(g.Replicas), float64(max(free(0).Count(), free(1).Count())), "devices"
			}
			s.Unseated = append(s.Unseated, v)
			blocked = g.Blocking
		default:
			seat := core.Seat{Node: core.NodeID(node)}
			for _, device := range free(seat.Node).List()[:g.Replicas] {
				seat.Devices |= 1 << device
			}
			ledger.Occupy([]core.Seat{seat})
			s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: []core.Seat{seat}})
		}
	}
	return s, nil
}

// forEverSteady makes a stage whose answers stand as long as nothing happens.
type forEverSteady struct{}

func (forEverSteady) Standing() core.Standing { return forEver }

// ranges gives each job the range that it asks for.
type ranges struct {
	forEverSteady
	rigid
}

func (ranges) Respond(_ context.Context, _ *core.View, jobs []*core.Job) (list []core.Response, err error) {
	for _, j := range jobs {
		list = append(list, core.Response{Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas})
	}
	return list, nil
}

// settling is the composition of these policies.
func settling(policy byCount, placer oneNode) core.Stages {
	stages := fakes{}.stages()
	stages.Admission[0].Policy = steadyAdmit{told: forEver}
	stages.Allocation.Policy, stages.Placement.Policy, stages.Elasticity.Policy = policy, placer, ranges{}
	return stages
}

// oneType is two nodes of four devices of one type.
func oneType() *core.Cluster {
	return &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{ID: 0, Name: "a", Devices: 4}, {ID: 1, Name: "b", Devices: 4}}}
}

// seen writes down, for each round, on how many devices of which node each job runs, or that it waits (! behind another), and for whom devices are reserved.
type seen struct{ rounds []string }

func (o *seen) ObserveRound(r *core.Report) error {
	var words []string
	for _, j := range r.View.Jobs {
		switch {
		case j == nil:
		case j.State == core.Running:
			word := fmt.Sprint(j.ID, "@")
			for _, seat := range j.Seats {
				word += fmt.Sprintf("%d×%d", seat.Node, seat.Devices.Count())
			}
			words = append(words, word)
		case j.WaitingReason == core.BlockedByEarlier:
			words = append(words, fmt.Sprint(j.ID, "!"))
		default:
			words = append(words, fmt.Sprint(j.ID, "?"))
		}
	}
	for _, of := range r.View.Reserved {
		words = append(words, fmt.Sprintf("%d×%d for %d", of.Node, of.Devices.Count(), of.Job))
	}
	o.rounds = append(o.rounds, strings.Join(words, " "))
	return nil
}

func elastic(id core.JobID, at float64, from, to int) core.Event {
	e := submit(id, at, to)
	e.Spec.MinReplicas = from
	return e
}

func pinned(e core.Event) core.Event {
	e.Spec.Pinned = true
	return e
}

func end(id core.JobID, at float64) core.Event {
	return core.Event{Kind: core.JobFinished, Job: id, AtSeconds: at}
}

// at is a moment at which rounds are held, with what happens then.
func at(seconds float64, events ...core.Event) core.Observation {
	return core.Observation{NowSeconds: seconds, Events: events}
}

// What a round makes of grants that cannot be placed, on two nodes of four devices of one type, and when the next one is due at the latest.
func TestSettling(t *testing.T) {
	all := core.Settling{Passes: 3, MakeRoom: true, ReserveAfterSeconds: 3600}
	noRoom, once, never := all, all, all
	noRoom.MakeRoom, once.Passes, never.ReserveAfterSeconds = false, 1, 0
	// Two jobs leave one device idle on each node; a gang of two fits the count only, and uses it up before a single one.
	gaps := []core.Event{submit(0, 0, 3), submit(1, 0, 3), submit(2, 0, 2), submit(3, 0, 1)}
	for name, tc := range map[string]struct {
		settle core.Settling
		policy byCount
		moment []core.Observation
		want   []string
	}{
		"one pass leaves it":  {once, byCount{}, []core.Observation{at(0, gaps...)}, []string{"0@0×3 1@1×3 2? 3?"}},
		"no pass is one":      {core.Settling{}, byCount{}, []core.Observation{at(0, gaps...)}, []string{"0@0×3 1@1×3 2? 3?"}},
		"it is asked again":   {all, byCount{}, []core.Observation{at(0, gaps...)}, []string{"0@0×3 1@1×3 2? 3@0×1"}},
		"but not twice":       {all, byCount{once: true}, []core.Observation{at(0, gaps...)}, []string{"0@0×3 1@1×3 2? 3?"}},
		"nor past a blocking": {all, byCount{blocks: true}, []core.Observation{at(0, gaps...)}, []string{"0@0×3 1@1×3 2? 3!"}},
		"all like it are left out": {all, byCount{}, []core.Observation{
			at(0, submit(0, 0, 3), submit(1, 0, 3), submit(2, 0, 2), submit(3, 0, 2), submit(4, 0, 2), submit(5, 0, 2), submit(6, 0, 1)),
		}, []string{"0@0×3 1@1×3 2? 3? 4? 5? 6@0×1"}},
		"an elastic one gets less": {all, byCount{}, []core.Observation{
			at(0, submit(0, 0, 3), submit(1, 0, 3), elastic(2, 0, 1, 2)),
		}, []string{"0@0×3 1@1×3 2@0×1"}},
		"nobody stops for one that starts not": {all, byCount{newestFirst: true}, []core.Observation{
			at(0, submit(0, 0, 2), submit(1, 0, 3)), at(60, submit(2, 60, 6)),
		}, []string{"0@1×2 1@0×3", "0@1×2 1@0×3 2?"}},
		"with one pass they do": {once, byCount{newestFirst: true}, []core.Observation{
			at(0, submit(0, 0, 2), submit(1, 0, 3)), at(60, submit(2, 60, 6)),
		}, []string{"0@1×2 1@0×3", "0@1×2 1? 2?"}},
		"one that cannot grow keeps what it has": {all, byCount{}, []core.Observation{
			at(0, elastic(0, 0, 3, 4), submit(1, 0, 3)), at(60, end(1, 50), elastic(2, 60, 1, 4)),
		}, []string{"0@0×4 1@1×3", "0@0×4 2@1×4"}},
		"room after three intervals": {all, byCount{newestFirst: true, precedes: true}, []core.Observation{
			at(0, submit(0, 0, 3), submit(1, 0, 3)), at(60, submit(2, 60, 2)), at(180), at(239), at(240), at(300),
		}, []string{"0@1×3 1@0×3", "0@1×3 1@0×3 2?", "0@1×3 1@0×3 2?", "0@1×3 1@0×3 2?", "0? 1@0×3 2@1×2", "0? 1@0×3 2@1×2"}},
		"room for which two give way, after twice as long": {all, byCount{newestFirst: true, precedes: true}, []core.Observation{
			at(0, submit(0, 0, 1), submit(1, 0, 1), submit(2, 0, 2), submit(3, 0, 2)), at(60, end(2, 50), submit(4, 60, 4)), at(240), at(360), at(419), at(420),
		}, []string{
			"0@1×1 1@1×1 2@0×2 3@0×2", "0@1×1 1@1×1 3@0×2 4?", "0@1×1 1@1×1 3@0×2 4?", "0@1×1 1@1×1 3@0×2 4?", "0@1×1 1@1×1 3@0×2 4?", "0? 1? 3@0×2 4@1×4",
		}},
		"room for which three give way": {all, byCount{newestFirst: true, precedes: true}, []core.Observation{
			at(0, submit(0, 0, 1), submit(1, 0, 1), submit(2, 0, 1), submit(3, 0, 1)), at(30, submit(4, 30, 1)), at(60, end(3, 50), submit(5, 60, 4)), at(599), at(600),
		}, []string{
			"0@0×1 1@0×1 2@0×1 3@0×1", "0@0×1 1@0×1 2@0×1 3@0×1 4@1×1", "0@0×1 1@0×1 2@0×1 4@1×1 5?", "0@0×1 1@0×1 2@0×1 4@1×1 5?", "0? 1? 2? 4@1×1 5@0×4",
		}},
		"no room": {noRoom, byCount{newestFirst: true, precedes: true}, []core.Observation{
			at(0, submit(0, 0, 3), submit(1, 0, 3)), at(60, submit(2, 60, 2)), at(600),
		}, []string{"0@1×3 1@0×3", "0@1×3 1@0×3 2?", "0@1×3 1@0×3 2?"}},
		"those before give no room": {all, byCount{precedes: true}, []core.Observation{
			at(0, submit(0, 0, 2), submit(1, 0, 3)), at(60, submit(2, 60, 3)), at(600),
		}, []string{"0@0×2 1@1×3", "0@0×2 1@1×3 2?", "0@0×2 1@1×3 2?"}},
		"reserved after an hour, once others pass": {all, byCount{}, []core.Observation{
			at(0, submit(0, 0, 3), submit(1, 0, 3), submit(2, 0, 2)), at(3540), at(3660), at(3720, submit(3, 3700, 1), submit(4, 3700, 1)),
			at(3780, end(0, 3770)), at(3840),
		}, []string{
			"0@0×3 1@1×3 2?", "0@0×3 1@1×3 2?", "0@0×3 1@1×3 2?", "0@0×3 1@1×3 2? 3@1×1 4? 0×2 for 2", "1@1×3 2@0×2 3@1×1 4@0×1", "1@1×3 2@0×2 3@1×1 4@0×1",
		}},
		"reserved for the next one where the first fits no node": {all, byCount{}, []core.Observation{
			at(0, submit(0, 0, 3), submit(1, 0, 3), submit(5, 0, 5), submit(2, 10, 5), submit(3, 20, 2)), at(3720, submit(4, 3700, 1)), at(3780, submit(6, 3770, 1), end(0, 3770)),
		}, []string{"0@0×3 1@1×3 2? 3? 5?", "0@0×3 1@1×3 2? 3? 4@0×1 5? 0×2 for 3", "1@1×3 2? 3@0×2 4@0×1 5? 6@0×1"}},
		"for none that fits no node": {all, byCount{}, []core.Observation{
			at(0, submit(0, 0, 3), submit(1, 0, 3), submit(2, 0, 5)), at(3720, submit(3, 3700, 1)), at(3780),
		}, []string{"0@0×3 1@1×3 2?", "0@0×3 1@1×3 2? 3@0×1", "0@0×3 1@1×3 2? 3@0×1"}},
		"nothing reserved beside a placer that does not look at it": {all, byCount{}, []core.Observation{
			at(0, submit(0, 0, 3), submit(1, 0, 3), submit(2, 0, 2)), at(3720, submit(3, 3700, 1), submit(4, 3700, 1)),
		}, []string{"0@0×3 1@1×3 2?", "0@0×3 1@1×3 2? 3@0×1 4@1×1"}},
		"never reserved": {never, byCount{}, []core.Observation{
			at(0, submit(0, 0, 3), submit(1, 0, 3), submit(2, 0, 2)), at(3660), at(3720, submit(3, 3700, 1), submit(4, 3700, 1)),
		}, []string{"0@0×3 1@1×3 2?", "0@0×3 1@1×3 2?", "0@0×3 1@1×3 2? 3@0×1 4@1×1"}},
		"reserved beside a pinned job": {all, byCount{}, []core.Observation{
			at(0, pinned(submit(0, 0, 3)), submit(1, 0, 3), submit(2, 0, 2)), at(3720, submit(3, 3700, 1), submit(4, 3700, 1)), at(3780, end(1, 3770)), at(3840),
		}, []string{"0@0×3 1@1×3 2?", "0@0×3 1@1×3 2? 3@0×1 4@1×1 1×2 for 2", "0@0×3 2@1×2 3@0×1 4@1×1", "0@0×3 2@1×2 3@0×1 4@1×1"}},
		"nobody keeps idle nodes from others": {all, byCount{}, []core.Observation{
			at(0, submit(0, 0, 4), submit(1, 0, 4), submit(2, 0, 5), submit(3, 0, 3)), at(3660, end(0, 3600), end(1, 3600)), at(3720),
		}, []string{"0@0×4 1@1×4 2? 3?", "2? 3@0×3", "2? 3@0×3"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got seen
			p := core.NewPipeline(oneType(), settling(tc.policy, oneNode{careless: strings.Contains(name, "does not look")}), core.PipelineOptions{
				Rounds: core.RoundOptions{IntervalSeconds: 60, Settle: tc.settle}, Observers: []core.Observer{&got},
			})
			if err := p.Run(t.Context(), &script{observations: tc.moment}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.rounds); diff != "" {
				t.Errorf("rounds (-want +got):\n%s", diff)
			}
		})
	}
}

// Who is asked about again, and with which ranges.
func TestQuestionsOfASettledRound(t *testing.T) {
	for name, tc := range map[string]struct {
		passes int
		events []core.Event
		want   []string
	}{
		"all are seated":      {3, []core.Event{submit(0, 0, 3), submit(1, 0, 3)}, []string{"0:3-3 1:3-3"}},
		"nobody else is left": {3, []core.Event{submit(0, 0, 3), submit(1, 0, 3), submit(2, 0, 2)}, []string{"0:3-3 1:3-3 2:2-2"}},
		"those like it are left out": {3, []core.Event{submit(0, 0, 3), submit(1, 0, 3), submit(2, 0, 2), submit(3, 0, 2), submit(4, 0, 1)}, []string{
			"0:3-3 1:3-3 2:2-2 3:2-2 4:1-1", "0:3-3 1:3-3 4:1-1",
		}},
		"an elastic one has half": {3, []core.Event{submit(0, 0, 1), submit(1, 0, 3), elastic(2, 0, 1, 4)}, []string{
			"0:1-1 1:3-3 2:1-4",
		}},
		"an elastic one has what a node has left": {3, []core.Event{submit(0, 0, 2), submit(1, 0, 3), elastic(2, 0, 1, 3)}, []string{
			"0:2-2 1:3-3 2:1-3", "0:2-2 1:3-3 2:1-2",
		}},
		"an elastic one has half until it fits": {5, []core.Event{submit(0, 0, 3), submit(1, 0, 2), elastic(2, 0, 1, 3)}, []string{
			"0:3-3 1:2-2 2:1-3", "0:3-3 1:2-2 2:1-1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			stages := settling(byCount{asked: &asked}, oneNode{counts: strings.Contains(name, "has left")})
			p := core.NewPipeline(oneType(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60, Settle: core.Settling{Passes: tc.passes}}})
			if err := p.Run(t.Context(), &script{observations: []core.Observation{at(0, tc.events...)}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, asked); diff != "" {
				t.Errorf("questions (-want +got):\n%s", diff)
			}
		})
	}
}

// A settled round stands if it changed nothing, until a job has waited for long enough to be given room or to have devices reserved.
func TestASettledRoundStands(t *testing.T) {
	gaps := at(0, submit(0, 0, 3), submit(1, 0, 3), submit(2, 0, 2), submit(3, 0, 1)) // 3 passes 2, which fits no node
	wide := at(60, submit(2, 60, 6))                                                  // it fits no node, and takes up the count of the job before
	for name, tc := range map[string]struct {
		settle core.Settling
		policy byCount
		moment []core.Observation
		want   []float64 // by when the next round is due, before the first and after each
	}{
		"it changed something, then nothing": {core.Settling{Passes: 3}, byCount{}, []core.Observation{gaps, at(60)}, []float64{math.Inf(1), 60, math.Inf(1)}},
		"asked once":                         {core.Settling{Passes: 1}, byCount{}, []core.Observation{gaps, at(60)}, []float64{math.Inf(1), math.Inf(1), math.Inf(1)}},
		"an answer that rests on what it granted": {core.Settling{Passes: 3}, byCount{granted: new(int)}, []core.Observation{gaps, at(60)}, []float64{
			math.Inf(1), 60, 120,
		}},
		"until devices are reserved": {core.Settling{Passes: 3, ReserveAfterSeconds: 3600}, byCount{}, []core.Observation{gaps, at(60)}, []float64{math.Inf(1), 60, 3600}},
		"until room may be made":     {core.Settling{Passes: 3, MakeRoom: true}, byCount{precedes: true}, []core.Observation{gaps, at(60)}, []float64{math.Inf(1), 60, 180}},
		"until room may be made, and again later": {core.Settling{Passes: 3, MakeRoom: true}, byCount{newestFirst: true, precedes: true}, []core.Observation{
			at(0, submit(0, 0, 1), submit(1, 0, 1)), at(60, submit(2, 60, 5)), at(240), at(300),
		}, []float64{math.Inf(1), math.Inf(1), 240, 300, 420}},
		"a running job went on without a grant": {core.Settling{Passes: 3}, byCount{newestFirst: true, once: true}, []core.Observation{
			at(0, submit(0, 0, 2), submit(1, 0, 3)), wide,
		}, []float64{math.Inf(1), math.Inf(1), 120}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: tc.moment}
			p := core.NewPipeline(oneType(), settling(tc.policy, oneNode{}), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60, Settle: tc.settle}})
			if err := p.Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, b.dueBy()); diff != "" {
				t.Errorf("wake-ups (-want +got):\n%s", diff)
			}
		})
	}
}
