package pollux

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

func inPlace(seconds int) map[string]any {
	return map[string]any{"in_place": true, "overhead": fmt.Sprintf("%ds", seconds)}
}

// pair is a job with devices 1 and 2 of the first of two nodes of four. It is submitted at 0 s, and at 1000 s twice as
// fast on two devices as on one, on as many nodes as it likes. It was restarted twice.
func pair(t *testing.T, config map[string]any) (*allocator, *job) {
	t.Helper()
	v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).
		Jobs(coretest.MakeJob("pair").Elastic(1, 2, 8).Running(100, coretest.Seat(0, 1, 2))).Obj()
	v.NowSeconds, v.IntervalSeconds, v.Jobs[0].Restarts = 1000, 60, 2
	rates := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	p := component(t, New(), config).(*allocator)
	candidates := []core.Candidate{{Job: v.Jobs[0], Response: &core.Response{
		MinReplicas: 1, MaxReplicas: 8, RemainingWork: math.NaN(), Curves: []core.Curve{{OneNode: rates, ManyNodes: rates}},
	}}}
	p.begin(v, candidates)
	p.prepare(v, p.contenders(v.Cluster, 0))
	return p, &p.jobs[0]
}

func TestAChangeIsChargedWhatItCosts(t *testing.T) {
	row := func(replicas ...int32) (row []share) {
		for n, k := range replicas {
			if k > 0 {
				row = append(row, share{int32(n), k})
			}
		}
		return row
	}
	horizon := func(resize map[string]any) map[string]any {
		return map[string]any{"fairness_p": 1, "reference": "one", "restart": "horizon", "horizon": "100s", "resize": resize}
	}
	age := map[string]any{"fairness_p": 1, "reference": "one", "restart": "age", "resize": inPlace(10)}
	for name, tc := range map[string]struct {
		config map[string]any
		row    []share
		want   float64 // value, minus the cost
	}{
		"as it is":                          {horizon(inPlace(10)), row(2), 2},
		"one more":                          {horizon(inPlace(10)), row(3), 3 * 0.9},
		"one less":                          {horizon(inPlace(10)), row(1), 1 * 0.9},
		"one on either node":                {horizon(inPlace(10)), row(1, 1), 2 * 0.9},
		"the other node":                    {horizon(inPlace(10)), row(0, 2), 2 * 0.7},
		"none":                              {horizon(inPlace(10)), row(), 0},
		"one more for free":                 {horizon(inPlace(0)), row(3), 3},
		"one more, no cheaper":              {horizon(inPlace(40)), row(3), 3 * 0.7},
		"one more, not in place":            {horizon(map[string]any{}), row(3), 3 * 0.7},
		"one more, by age":                  {age, row(3), 3 * (1000. - 60) / 1010},
		"the other node, by age":            {age, row(0, 3), 3 * (1000. - 60) / 1030},
		"one more, by age and not in place": {map[string]any{"fairness_p": 1, "reference": "one"}, row(3), 3 * (1000. - 60) / 1030},
	} {
		t.Run(name, func(t *testing.T) {
			_, j := pair(t, tc.config)
			if got := -j.costOf(tc.row); math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("a value of %v, want %v", got, tc.want)
			}
		})
	}
}

// A job keeps as many devices of a node as it has before and after.
func TestSeatsKeepDevices(t *testing.T) {
	for name, tc := range map[string]struct {
		row  []share
		want []core.Seat
	}{
		"one more":           {[]share{{0, 3}}, []core.Seat{coretest.Seat(0, 0, 1, 2)}},
		"one less":           {[]share{{0, 1}}, []core.Seat{coretest.Seat(0, 1)}},
		"one on either node": {[]share{{0, 1}, {1, 1}}, []core.Seat{coretest.Seat(0, 1), coretest.Seat(1, 0)}},
		"the other node":     {[]share{{1, 2}}, []core.Seat{coretest.Seat(1, 0, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := pair(t, nil)
			p.plan.rows = [][]share{tc.row}
			v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Obj()
			p.grant(v)
			if diff := cmp.Diff(tc.want, p.grants[0].Proposed); diff != "" {
				t.Errorf("seats (-want +got):\n%s", diff)
			}
		})
	}
}

// TestResizesInPlace repeats decisions on changing gains: books and bound hold, every seat that can stay does, and what a
// small change would cost is told before it as after it.
func TestResizesInPlace(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			v, candidates := busy(t, 40, 14)
			r := rand.New(rand.NewPCG(seed, 0))
			p := component(t, New(), map[string]any{"resize": inPlace(5), "restart": "horizon"}).(*allocator)
			for range 10 {
				for i := range candidates {
					candidates[i].Response.Curves[0] = saturating(r, 64)
				}
				grants, err := p.Allocate(t.Context(), v, candidates)
				if err != nil {
					t.Fatal(err)
				}
				checkOccupancy(t, p)
				checkKept(t, v, grants)
				if bound := p.search.counts.find(p); p.plan.cost < bound-1e-9 {
					t.Errorf("plan costs %v, less than its bound %v", p.plan.cost, bound)
				}
				checkCostAfter(t, p)
				for i := range candidates {
					j := candidates[i].Job
					j.State, j.Seats, j.Held = core.Waiting, nil, 0
				}
				for _, g := range grants {
					j := v.Jobs[g.Job]
					j.State, j.Seats, j.Held = core.Running, slices.Clone(g.Proposed), g.Replicas
				}
			}
		})
	}
}

func checkKept(t *testing.T, v *core.View, grants []core.Grant) {
	t.Helper()
	for _, g := range grants {
		for _, held := range v.Jobs[g.Job].Seats {
			for _, seat := range g.Proposed {
				stay, both := (seat.Devices & held.Devices).Count(), min(seat.Devices.Count(), held.Devices.Count())
				if seat.Node == held.Node && stay < both {
					t.Errorf("job %d keeps %d devices of node %d, could keep %d", g.Job, stay, seat.Node, both)
				}
			}
		}
	}
}

// checkCostAfter compares costAfter with costOf on the row after the change, for every job that gives a replica up or
// gets one.
func checkCostAfter(t *testing.T, p *allocator) {
	t.Helper()
	f := &p.search.occupancy
	f.empty(p)
	for i, row := range p.plan.rows {
		f.seat(int32(i), row)
	}
	for i := range p.jobs {
		for n := range int32(len(p.usable)) {
			for _, k := range [...]int32{-1, +1} {
				id, j := int32(i), &p.jobs[i]
				if replicasOn(f.rows[id], n)+k < 0 || f.free[n] < k || int(f.has[id]+k) > j.most {
					continue
				}
				told := p.costAfter(id, n, k)
				f.log = f.log[:0]
				p.change(id, n, k)
				if is := j.costOf(f.rows[id]); is != told {
					t.Errorf("job %d costs %v on %v, was told to cost %v", id, is, f.rows[id], told)
				}
				f.undo()
			}
		}
	}
}

func TestACostOfWhatIsNotDoneIsRefused(t *testing.T) {
	_, got := New().Decode(map[string]any{"resize": map[string]any{"overhead": "5s"}})
	want := core.Diagnostics{{Path: "resize.overhead", Summary: "needs resize.in_place"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
