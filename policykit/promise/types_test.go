package promise

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// onTypes is a view of two t4 on a node and four v100 on two, of which one is down.
func onTypes(pools ...core.Pool) *core.View {
	return &core.View{Devices: 4, Cluster: &core.Cluster{
		Accelerators: []string{"t4", "v100", "a100"}, Pools: pools,
		Nodes: []core.Node{{Devices: 2}, {ID: 1, Accelerator: 1, Devices: 2}, {ID: 2, Accelerator: 1, Devices: 2, Health: core.Down}, {ID: 3, Accelerator: 2, Devices: 9, Health: core.Gone}},
	}}
}

// typed is a job of 12 units of work with rates of 1 and 1.5 on one and two t4 and twice as many on v100, due at 20 s.
func typed(id core.JobID, on []string, seats ...core.Seat) core.Candidate {
	j := core.NewJob(&core.JobSpec{ID: id, DeadlineSeconds: 20, Accelerators: on})
	j.Seats, j.Held = seats, core.Replicas(seats)
	if j.Held > 0 {
		j.State = core.Running
	}
	curve := func(rates ...float64) core.Curve { return core.Curve{OneNode: rates, ManyNodes: rates} }
	return core.Candidate{Job: j, Response: &core.Response{
		MinReplicas: 1, MaxReplicas: 4, Curves: []core.Curve{curve(1, 1.5, 1.5, 1.75), curve(2, 3, 3, 3.5), curve(4, 4, 4, 4)}, RemainingWork: 12,
	}}
}

func seat(node core.NodeID, devices int) core.Seat {
	return core.Seat{Node: node, Devices: core.FirstDevices(devices)}
}

func TestTypesOfAJob(t *testing.T) {
	t.Parallel()
	t4, v100 := []Level{{1, 1}, {2, 1.5}}, []Level{{1, 2}, {2, 3}}
	grown := []Level{{1, 2}, {2, 3}, {4, 3.5}}
	a100 := core.Pool{Name: "p", Accelerator: 2, Devices: 4, Max: 1}
	v100s := core.Pool{Name: "p", Accelerator: 1, Devices: 4, Max: 1}
	type on struct {
		Bin, Held int
		Levels    []Level
	}
	for name, tc := range map[string]struct {
		pools []core.Pool
		job   core.Candidate
		want  []on
		hoped []on
	}{
		"all":               {job: typed(0, nil), want: []on{{0, 0, t4}, {1, 0, v100}, {2, 0, []Level{{1, 4}}}}, hoped: []on{{0, 0, append(slices.Clone(t4), Level{4, 1.75})}, {1, 0, grown}, {2, 0, []Level{{1, 4}}}}},
		"one":               {job: typed(0, []string{"v100"}), want: []on{{1, 0, v100}}, hoped: []on{{1, 0, grown}}},
		"what it holds":     {job: typed(0, []string{"t4", "v100"}, seat(1, 2)), want: []on{{1, 2, v100}, {0, 0, t4}}, hoped: []on{{1, 2, grown}, {0, 0, append(slices.Clone(t4), Level{4, 1.75})}}},
		"the first":         {job: typed(0, []string{"t4", "v100"}, seat(0, 1)), want: []on{{0, 1, t4}, {1, 0, v100}}, hoped: []on{{0, 1, append(slices.Clone(t4), Level{4, 1.75})}, {1, 0, grown}}},
		"two types":         {job: typed(0, []string{"t4", "v100"}, seat(0, 1), seat(1, 1)), want: []on{{0, 0, t4}, {1, 0, v100}}, hoped: []on{{0, 0, append(slices.Clone(t4), Level{4, 1.75})}, {1, 0, grown}}},
		"none":              {job: typed(0, []string{"k80"}), want: []on{{0, 0, []Level{{1, math.NaN()}}}}, hoped: []on{{0, 0, []Level{{1, math.NaN()}}}}},
		"a pool of another": {pools: []core.Pool{a100}, job: typed(0, []string{"t4"}), want: []on{{0, 0, t4}}, hoped: []on{{0, 0, t4}}},
		"a pool of its own": {pools: []core.Pool{v100s}, job: typed(0, []string{"v100"}), want: []on{{1, 0, v100}}, hoped: []on{{1, 0, grown}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := Ledger{Levels: PowersOfTwo}
			v := onTypes(tc.pools...)
			l.Collect(v, nil)
			for what, got := range map[string][]Job{"types": l.Types(v, &tc.job, nil), "hoped": l.Hoped(v, &tc.job, make([]Job, 1))[1:]} {
				var is []on
				for _, j := range got {
					is = append(is, on{j.Bin, j.Held, j.Levels})
				}
				want := tc.want
				if what == "hoped" {
					want = tc.hoped
				}
				if diff := cmp.Diff(want, is, asStates...); diff != "" {
					t.Errorf("%s, -want +got:\n%s", what, diff)
				}
			}
			if got, want := fmt.Sprint(l.Bins(), l.On(1), l.Devices(0), l.Devices(1), l.Devices(2)), "3 1 2 2 0"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// Types that no node is of, nor any pool, make no difference.
func TestBinsOfOneType(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		nodes []core.Node
		pools []core.Pool
		want  int
	}{
		"one":              {nodes: []core.Node{{Devices: 2}, {ID: 1, Devices: 1}}, want: 1},
		"another is gone":  {nodes: []core.Node{{Devices: 2}, {ID: 1, Accelerator: 1, Health: core.Gone}}, want: 1},
		"another is down":  {nodes: []core.Node{{Devices: 2}, {ID: 1, Accelerator: 1, Health: core.Down}}, want: 2},
		"a pool of it":     {nodes: []core.Node{{Devices: 2}}, pools: []core.Pool{{}}, want: 1},
		"of another":       {nodes: []core.Node{{Devices: 2}}, pools: []core.Pool{{Accelerator: 1}}, want: 2},
		"pools of two":     {pools: []core.Pool{{Accelerator: 1}, {}}, want: 2},
		"the second alone": {nodes: []core.Node{{Accelerator: 1, Devices: 2}}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := Ledger{Levels: PowersOfTwo}
			l.Collect(&core.View{Cluster: &core.Cluster{Accelerators: []string{"t4", "v100"}, Nodes: tc.nodes, Pools: tc.pools}}, nil)
			if got := l.Bins(); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

// A job is planned where it needs the fewest device-seconds, beside those who are pinned there, and goes back to an earlier plan with its type.
func TestPlansOnTypes(t *testing.T) {
	t.Parallel()
	pinned := func(seats ...core.Seat) core.Candidate {
		c := typed(0, nil, seats...)
		c.JobSpec = &core.JobSpec{Pinned: true}
		c.Response.RemainingWork = math.NaN()
		return c
	}
	for name, tc := range map[string]struct {
		jobs []core.Candidate
		want []string // of those with a deadline, the type and the plan
	}{
		"where it needs least":  {[]core.Candidate{typed(0, nil)}, []string{"1 [{14 20 1}]"}},
		"where it can run":      {[]core.Candidate{typed(0, []string{"t4"})}, []string{"0 [{8 20 1}]"}},
		"beside a pinned one":   {[]core.Candidate{pinned(seat(1, 2)), typed(1, nil)}, []string{"0 [{8 20 1}]"}},
		"of both types":         {[]core.Candidate{pinned(seat(0, 1), seat(1, 2)), typed(1, nil), typed(2, nil)}, []string{"0 [{8 20 1}]", "0 []"}},
		"as many of each":       {[]core.Candidate{typed(0, []string{"v100"}), typed(1, []string{"v100"}), typed(2, nil)}, []string{"1 [{14 20 1}]", "1 [{14 20 1}]", "1 [{8 14 1}]"}},
		"nowhere":               {[]core.Candidate{typed(0, []string{"k80"})}, []string{"0 []"}},
		"what it holds is kept": {[]core.Candidate{typed(0, []string{"v100"}, seat(1, 1))}, []string{"1 [{14 20 1}]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := Ledger{Levels: PowersOfTwo}
			l.Collect(onTypes(), tc.jobs)
			for range 2 { // nothing is left of what was planned before
				l.Plan()
				var got []string
				for _, e := range l.Jobs() {
					got = append(got, fmt.Sprint(e.Bin, e.Plan))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

func TestAlikeOnTwoTypes(t *testing.T) {
	t.Parallel()
	c := typed(0, nil)
	c.Response.Curves = c.Response.Curves[:1]
	l := Ledger{Levels: PowersOfTwo}
	l.Collect(onTypes(), []core.Candidate{c})
	l.Plan()
	if e := l.Jobs()[0]; e.Bin != 0 || !l.Hopes(e) || l.Earliest(&e.Types()[1]) != 8 || l.FreeFor(&e.Types()[1]) != 40 || l.FreeFor(&e.Job) != 40-12 {
		t.Errorf("%+v: earliest %v, free %v and %v", e, l.Earliest(&e.Types()[1]), l.FreeFor(&e.Types()[1]), l.FreeFor(&e.Job))
	}
}

// The first, due at 20 s, is planned on v100, and then there is no room for the second, that is due at 21 s. With its earlier plan on t4 there is.
func TestRecallOnTypes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		on     core.AcceleratorID
		plan   Plan
		pinned bool
		want   []string
	}{
		"on its type":           {on: 0, plan: Plan{{8, 20, 1}}, want: []string{"0 [{8 20 1}]", "1 [{1 21 2}]"}},
		"on another type":       {on: 2, plan: Plan{{8, 20, 1}}, want: []string{"1 [{14 20 1}]", "0 []"}},
		"in two pieces":         {on: 0, plan: Plan{{6, 7, 1}, {8, 20, 1}}, want: []string{"0 [{6 7 1} {8 20 1}]", "1 [{1 21 2}]"}},
		"pinned: in two pieces": {on: 0, plan: Plan{{6, 7, 1}, {8, 20, 1}}, pinned: true, want: []string{"1 [{14 20 1}]", "0 []"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := typed(0, []string{"t4", "v100"}), typed(1, []string{"v100"})
			first.Pinned, second.DeadlineSeconds = tc.pinned, 21
			second.Response.MinReplicas, second.Response.RemainingWork = 2, 60
			l := Ledger{Levels: PowersOfTwo}
			l.Collect(onTypes(), []core.Candidate{first, second})
			for range 2 {
				l.Plan()
				l.Recall(func(id core.JobID) (Plan, core.AcceleratorID) { return [2]Plan{tc.plan}[id], tc.on })
				var got []string
				for _, e := range l.Jobs() {
					got = append(got, fmt.Sprint(e.Bin, e.Plan))
				}
				if second := l.Jobs()[1]; len(second.Plan) == 0 {
					got[1] = "0 []"
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

// A pinned job without a plan keeps what is free until it is done, instead of what it was to keep before.
func TestKeep(t *testing.T) {
	t.Parallel()
	l := Ledger{Levels: PowersOfTwo}
	l.Collect(onTypes(), []core.Candidate{typed(0, []string{"v100"})}) // one from 14 s on
	l.Plan()
	c := typed(1, []string{"v100"})
	c.Response.RemainingWork = 30
	j := l.Types(onTypes(), &c, nil)[0]
	one, kept := l.Keep(&j, nil, 1)
	if want := (Plan{{0, 15, 1}}); !kept || !slices.Equal(one, want) {
		t.Errorf("%v, %v, want %v", one, kept, want)
	}
	if free := l.FreeFor(&j); free != 40-6-15 {
		t.Errorf("%v device-seconds are free, want 19", free)
	}
	c.Response.RemainingWork = 45
	slow := l.Types(onTypes(), &c, nil)[0]
	if two, kept := l.Keep(&slow, one, 2); kept || !slices.Equal(two, one) {
		t.Errorf("two until 15 s: %v, %v, and there is one from 14 s on", two, kept)
	}
	if free := l.FreeFor(&j); free != 40-6-15 {
		t.Errorf("%v device-seconds are free, want 19 as before", free)
	}
	two, kept := l.Keep(&j, one, 2)
	if want := (Plan{{0, 10, 2}}); !kept || !slices.Equal(two, want) {
		t.Errorf("%v, %v, want %v", two, kept, want)
	}
	if free := l.FreeFor(&j); free != 40-6-20 {
		t.Errorf("%v device-seconds are free, want 14", free)
	}
}

// Changes cost as much, and fall on the same grid, on each type; whether a job fits one node goes by the nodes of the type.
func TestPlansOfFurtherTypes(t *testing.T) {
	t.Parallel()
	v := onTypes()
	v.NowSeconds, v.IntervalSeconds = 2, 5
	c := typed(0, []string{"v100"})
	c.Response.MinReplicas = 2
	c.Response.Curves[1].ManyNodes = []float64{0, 1, 1, 1}
	l := Ledger{Planner: Planner{Overhead: 1}, Levels: PowersOfTwo}
	for range 2 {
		l.Collect(v, []core.Candidate{c})
		l.Plan()
		e := l.Jobs()[0]
		if want := (Plan{{15, 20, 2}}); !slices.Equal(e.Plan, want) { // four seconds of work after one of the change
			t.Errorf("%v, want %v", e.Plan, want)
		}
		if got, want := l.Earliest(&e.Types()[0]), 2.0+1+4; got != want {
			t.Errorf("done at %v beside itself, want %v", got, want)
		}
	}
}

func TestSteady(t *testing.T) {
	t.Parallel()
	levels := []Level{{1, 1}, {2, 1.5}}
	for name, tc := range map[string]struct {
		job      Job
		replicas int
		want     Plan // nil when there is none, on two devices of which one is taken from 20 s on
	}{
		"after a change":        {Job{Left: 12, Levels: levels}, 2, Plan{{0, 11, 2}}},
		"what it holds":         {Job{Left: 12, Levels: levels, Held: 2, Ready: 5}, 2, Plan{{0, 13, 2}}},
		"as long as they last":  {Job{Left: 25.5, Levels: levels}, 2, Plan{{0, 20, 2}}},
		"too long":              {Job{Left: 28, Levels: levels}, 2, nil},
		"one all the while":     {Job{Left: 90, Levels: levels}, 1, Plan{{0, 93, 1}}},
		"nobody knows how long": {Job{Left: math.NaN(), Levels: levels}, 1, Plan{{0, math.Inf(1), 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Planner{Overhead: 3}
			p.Begin(0, 2)
			p.Take(Plan{{20, math.Inf(1), 1}})
			if got, free := p.Steady(&tc.job, tc.replicas); free != (tc.want != nil) || !slices.Equal(got, tc.want) {
				t.Errorf("%v, %v, want %v", got, free, tc.want)
			}
		})
	}
}

// More devices of a type are there when a node of it is ready that is on its way, or that a pool of it may ask for.
func TestMore(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	t4, v100 := core.Node{Devices: 2}, core.Node{ID: 1, Accelerator: 1, Devices: 2}
	coming := func(t core.AcceleratorID, at float64) core.Node {
		return core.Node{ID: 2, Accelerator: t, Devices: 2, Health: core.Provisioning, ExpectedSeconds: at}
	}
	down := core.Node{ID: 2, Accelerator: 1, Devices: 2, Health: core.Down, ExpectedSeconds: 130}
	pool := func(t core.AcceleratorID, most int) []core.Pool {
		return []core.Pool{{Name: "p", Accelerator: t, Devices: 2, Max: most, ProvisioningSeconds: 50}}
	}
	pooled := v100
	pooled.Pool = "p"
	for name, tc := range map[string]struct {
		nodes   []core.Node
		pools   []core.Pool
		mayGrow bool
		want    []float64 // of each type, at 100 s
	}{
		"none":                                {nodes: []core.Node{t4, v100}, want: []float64{inf, inf}},
		"from whoever adds nodes":             {nodes: []core.Node{t4, v100}, mayGrow: true, want: []float64{100, 100}},
		"a node on its way":                   {nodes: []core.Node{t4, v100, coming(1, 130)}, want: []float64{inf, 130}},
		"a node that is late":                 {nodes: []core.Node{t4, v100, coming(0, 70)}, want: []float64{100, inf}},
		"a node that is down":                 {nodes: []core.Node{t4, v100, down}, want: []float64{inf, inf}},
		"a pool":                              {nodes: []core.Node{t4, v100}, pools: pool(1, 1), mayGrow: true, want: []float64{inf, 150}},
		"a pool that is full":                 {nodes: []core.Node{t4, pooled}, pools: pool(1, 1), mayGrow: true, want: []float64{inf, inf}},
		"a pool that nobody sizes":            {nodes: []core.Node{t4, v100}, pools: pool(1, 1), want: []float64{inf, inf}},
		"a pool, and a node before that":      {nodes: []core.Node{t4, v100, coming(1, 130)}, pools: pool(1, 2), mayGrow: true, want: []float64{inf, 130}},
		"a pool, and a node after that":       {nodes: []core.Node{t4, v100, coming(1, 170)}, pools: pool(1, 2), mayGrow: true, want: []float64{inf, 150}},
		"all of one type, a node on its way":  {nodes: []core.Node{t4, coming(0, 130)}, want: []float64{130}},
		"all of one type, a pool":             {nodes: []core.Node{t4}, pools: pool(0, 1), mayGrow: true, want: []float64{150}},
		"all of the second type, and a pool":  {nodes: []core.Node{v100}, pools: pool(1, 1), mayGrow: true, want: []float64{150}},
		"all of the second, a node is coming": {nodes: []core.Node{v100, coming(1, 130)}, want: []float64{130}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &core.View{NowSeconds: 100, Cluster: &core.Cluster{Accelerators: []string{"t4", "v100"}, Nodes: tc.nodes, Pools: tc.pools, MayGrow: tc.mayGrow}}
			l := Ledger{Levels: PowersOfTwo}
			l.Collect(v, nil)
			var got []float64
			for bin := range l.Bins() {
				got = append(got, l.More(v, bin))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("at %v, want %v", got, tc.want)
			}
		})
	}
}
