package elasticflow

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/promise"
)

// halved tells that a second device adds half a device's work, and further ones a quarter.
func halved(j *core.Job) core.Response {
	rates := []float64{1, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3}
	return core.Response{
		Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas, RemainingWork: j.TotalWork,
		Curves: []core.Curve{{OneNode: rates, ManyNodes: rates}},
	}
}

// due is a waiting job of so much work until its deadline, 0 for whenever.
func due(work, deadline float64) *coretest.JobBuilder {
	return coretest.MakeJob("due").Elastic(1, 1, 8).Work(work).Deadline(deadline).Waiting()
}

func TestElasticFlowGrants(t *testing.T) {
	t.Parallel()
	on := func(job *coretest.JobBuilder, devices ...int) *coretest.JobBuilder {
		return job.Running(0, coretest.Seat(0, devices...)).Progress(0, 1)
	}
	for name, tc := range map[string]struct {
		config  Config
		devices int
		jobs    []*coretest.JobBuilder
		want    map[core.JobID]int
		until   float64 // when a plan changes; 0 for never
	}{
		"what the deadline needs":             {Config{}, 2, []*coretest.JobBuilder{due(100, 100), due(100, 100)}, map[core.JobID]int{0: 1, 1: 1}, 0},
		"more devices where one is too slow":  {Config{}, 3, []*coretest.JobBuilder{due(150, 100), due(100, 100)}, map[core.JobID]int{0: 2, 1: 1}, 0},
		"nobody idle for want of a deadline":  {Config{}, 2, []*coretest.JobBuilder{due(10, 1000), due(10, 2000)}, map[core.JobID]int{0: 1, 1: 1}, 990},
		"what is left grows who has nothing":  {Config{}, 2, []*coretest.JobBuilder{due(100, 100), due(50, 0)}, map[core.JobID]int{0: 1, 1: 1}, 0},
		"best effort behind deadlines":        {Config{}, 2, []*coretest.JobBuilder{due(50, 0).BestEffort(), due(150, 100)}, map[core.JobID]int{1: 2}, 0},
		"a late job has what is left":         {Config{}, 3, []*coretest.JobBuilder{due(900, 100), due(150, 100)}, map[core.JobID]int{0: 1, 1: 2}, 0},
		"least growth to the shorter job":     {Config{}, 3, []*coretest.JobBuilder{due(60, 0), due(600, 0)}, map[core.JobID]int{0: 2, 1: 1}, 0},
		"most growth to the longer job":       {Config{Expand: mostGrowth}, 3, []*coretest.JobBuilder{due(60, 0), due(600, 0)}, map[core.JobID]int{0: 1, 1: 2}, 0},
		"all levels":                          {Config{Levels: promise.AllLevels}, 3, []*coretest.JobBuilder{due(60, 0)}, map[core.JobID]int{0: 3}, 0},
		"powers of two":                       {Config{}, 3, []*coretest.JobBuilder{due(60, 0)}, map[core.JobID]int{0: 2}, 0},
		"what it holds costs nothing":         {Config{Overhead: 50 * time.Second}, 2, []*coretest.JobBuilder{on(due(100, 0), 0), due(100, 0)}, map[core.JobID]int{0: 1, 1: 1}, 0},
		"its deadline does not bear a change": {Config{Overhead: 40 * time.Second}, 2, []*coretest.JobBuilder{on(due(99, 100), 0)}, map[core.JobID]int{0: 1}, 0},
		"its deadline bears a change":         {Config{Overhead: time.Second}, 2, []*coretest.JobBuilder{on(due(50, 100), 0)}, map[core.JobID]int{0: 2}, 40},
		"nor that a change is put off":        {Config{Overhead: 20 * time.Second}, 2, []*coretest.JobBuilder{due(78, 100).Running(50, coretest.Seat(0, 0, 1))}, map[core.JobID]int{0: 1}, 0},
		"but for nothing if nothing is lost":  {Config{Overhead: 20 * time.Second}, 2, []*coretest.JobBuilder{due(78, 100).Running(0, coretest.Seat(0, 0, 1))}, map[core.JobID]int{0: 2}, 0},
		"pinned jobs keep what they hold":     {Config{}, 2, []*coretest.JobBuilder{on(due(500, 0).Pinned(), 0, 1), due(10, 100)}, map[core.JobID]int{0: 2}, 0},
		"nobody knows how long it takes":      {Config{}, 2, []*coretest.JobBuilder{due(0, 100), due(10, 100)}, map[core.JobID]int{0: 1, 1: 1}, 90},
		"others have what is needed later":    {Config{}, 4, []*coretest.JobBuilder{due(100, 150), due(195, 100)}, map[core.JobID]int{0: 2, 1: 2}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.config.Levels == "" {
				tc.config.Levels = promise.PowersOfTwo
			}
			if tc.config.Expand == "" {
				tc.config.Expand = leastGrowth
			}
			p, err := New().New(&tc.config, core.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", tc.devices).Obj()).Jobs(tc.jobs...).Obj()
			v.IntervalSeconds = 10
			grants, err := p.Allocate(t.Context(), v, coretest.Candidates(v, halved))
			if err != nil {
				t.Fatal(err)
			}
			if until := p.(core.Steady).Standing().UntilSeconds; until != tc.until && (tc.until != 0 || !math.IsInf(until, 1)) {
				t.Errorf("stands until %v, want %v", until, tc.until)
			}
			got := map[core.JobID]int{}
			for _, g := range grants {
				got[g.Job] = g.Replicas
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Where devices are of several types every job gets those of one, with which its plan is made or of which the most is left.
func TestElasticFlowByType(t *testing.T) {
	t.Parallel()
	const t4, v100 = core.AcceleratorID(0), core.AcceleratorID(1)
	on := func(j *coretest.JobBuilder, types ...string) *coretest.JobBuilder { return j.Accelerators(types...) }
	holds := func(j *coretest.JobBuilder, node core.NodeID, devices int) *coretest.JobBuilder {
		return j.Running(0, core.Seat{Node: node, Devices: core.FirstDevices(devices)})
	}
	get := func(id core.JobID, on core.AcceleratorID, replicas int) core.Grant {
		return core.Grant{Job: id, Accelerator: on, Replicas: replicas}
	}
	flat := func(j *core.Job) core.Response { // alike on both, and no faster on more
		r := halved(j)
		r.MinReplicas, r.MaxReplicas = 1, 1
		return r
	}
	gang := func(j *core.Job) core.Response {
		r := flat(j)
		r.MinReplicas, r.MaxReplicas = 2, 2
		return r
	}
	faster := func(j *core.Job) core.Response { // on the v100
		r := flat(j)
		r.Curves = append(r.Curves[:1:1], core.Curve{OneNode: []float64{4, 6}, ManyNodes: []float64{4, 6}})
		return r
	}
	for name, tc := range map[string]struct {
		jobs  []*coretest.JobBuilder
		rates func(*core.Job) core.Response
		down  bool // the v100
		want  []core.Grant
	}{
		"each on its own":             {jobs: []*coretest.JobBuilder{on(due(60, 100), "v100"), on(due(60, 100), "t4")}, want: []core.Grant{get(0, v100, 1), get(1, t4, 1)}},
		"planned beside each other":   {jobs: []*coretest.JobBuilder{due(60, 100), due(60, 100), due(60, 100), due(60, 100)}, want: []core.Grant{get(0, t4, 1), get(1, t4, 1), get(2, v100, 1), get(3, v100, 1)}},
		"where it needs least":        {rates: faster, jobs: []*coretest.JobBuilder{due(60, 100)}, want: []core.Grant{get(0, v100, 1)}},
		"or where it can run":         {rates: faster, jobs: []*coretest.JobBuilder{on(due(60, 100), "t4")}, want: []core.Grant{get(0, t4, 1)}},
		"or where there are devices":  {rates: faster, down: true, jobs: []*coretest.JobBuilder{due(60, 100)}, want: []core.Grant{get(0, t4, 1)}},
		"on what it holds":            {jobs: []*coretest.JobBuilder{holds(due(60, 100), 1, 1)}, want: []core.Grant{get(0, v100, 1)}},
		"no deadline: the most left":  {rates: gang, jobs: []*coretest.JobBuilder{on(due(60, 100), "t4"), due(60, 0)}, want: []core.Grant{get(0, t4, 2), get(1, v100, 2)}},
		"no deadline: what it holds":  {jobs: []*coretest.JobBuilder{on(due(60, 100), "t4"), holds(due(60, 0), 0, 1)}, want: []core.Grant{get(0, t4, 1), get(1, t4, 1)}},
		"no deadline: makes way":      {rates: gang, jobs: []*coretest.JobBuilder{on(due(60, 100), "t4"), holds(due(60, 0), 0, 2)}, want: []core.Grant{get(0, t4, 2), get(1, v100, 2)}},
		"no deadline: only its types": {rates: gang, jobs: []*coretest.JobBuilder{on(due(60, 100), "t4"), on(due(60, 0), "t4")}, want: []core.Grant{get(0, t4, 2)}},
		"too late: best effort":       {rates: gang, jobs: []*coretest.JobBuilder{on(due(9000, 100), "v100")}, want: []core.Grant{get(0, v100, 2)}},
		"pinned: gets all at once":    {jobs: []*coretest.JobBuilder{due(60, 0).Pinned()}, rates: gang, want: []core.Grant{get(0, t4, 2)}},
		"pinned: keeps what it has":   {jobs: []*coretest.JobBuilder{holds(due(60, 0).Pinned(), 1, 2), on(due(60, 100), "v100"), due(60, 100)}, rates: gang, want: []core.Grant{get(0, core.AnyAccelerator, 2), get(2, t4, 2)}},
		"pinned: not what is planned": {jobs: []*coretest.JobBuilder{on(due(60, 100), "t4"), on(due(60, 100), "t4"), on(due(60, 0).Pinned(), "t4")}, rates: gang, want: []core.Grant{get(0, t4, 2)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := New().New(&Config{Levels: promise.PowersOfTwo, Expand: leastGrowth}, core.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			c := coretest.MakeCluster().Nodes(1, "t4", 2).Nodes(1, "v100", 2).Obj()
			if tc.down {
				c.Nodes[1].Health = core.Down
			}
			if tc.rates == nil {
				tc.rates = flat
			}
			v := coretest.MakeView(c).Jobs(tc.jobs...).Obj()
			v.IntervalSeconds = 10
			got, err := p.Allocate(t.Context(), v, coretest.Candidates(v, tc.rates))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// An answer stands only for the jobs that were asked about, and as long as it is asked in each round.
func TestElasticFlowAnswersAnew(t *testing.T) {
	t.Parallel()
	config := Config{Levels: promise.PowersOfTwo, Expand: leastGrowth}
	p, err := New().New(&config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(due(60, 0), due(60, 0)).Obj()
	v.IntervalSeconds = 10
	ask := func(round int, jobs []core.Candidate) (got []core.Grant) {
		t.Helper()
		v.Round = round
		if got, err = p.Allocate(t.Context(), v, jobs); err != nil {
			t.Fatal(err)
		}
		return got
	}
	both := coretest.Candidates(v, halved)
	ask(1, both[:1])
	if got := ask(2, both[1:]); len(got) != 1 || got[0].Job != 1 {
		t.Errorf("asked about another job: %v", got)
	}
	narrow := coretest.Candidates(v, func(j *core.Job) core.Response {
		r := halved(j)
		r.MinReplicas, r.MaxReplicas = 3, 3
		return r
	})
	late := coretest.Candidates(coretest.MakeView(v.Cluster).Jobs(due(60, 1000)).Obj(), halved)
	if ask(3, late); p.(core.Steady).Standing().UntilSeconds != 940 {
		t.Errorf("a plan changes at 940 s, and the answer stands until %v", p.(core.Steady).Standing().UntilSeconds)
	}
	if ask(4, both); !math.IsInf(p.(core.Steady).Standing().UntilSeconds, 1) {
		t.Errorf("there are no plans any more, and the answer stands until %v", p.(core.Steady).Standing().UntilSeconds)
	}
	if got := ask(6, narrow[1:]); len(got) != 1 || got[0].Replicas != 3 {
		t.Errorf("after a round without it, in which its range changed: %v", got)
	}
	v.Changed = nil
	for round, most := range []int{2, 4, 1} { // without any event, as when an elasticity learns
		got := ask(7+round, coretest.Candidates(v, func(j *core.Job) core.Response {
			r := halved(j)
			r.MinReplicas, r.MaxReplicas = min(most, 2), most
			return r
		})[1:])
		if len(got) != 1 || got[0].Replicas != most {
			t.Errorf("a round later, with a range up to %d: %v", most, got)
		}
	}
}

// In between an answer stands, whatever else the curves would say by now: until a plan changes, a job or a node does, or a round passes without a question.
func TestElasticFlowRepeatsItself(t *testing.T) {
	t.Parallel()
	flat := func(j *core.Job) core.Response { // no faster on two, so that one is enough
		r := halved(j)
		r.Curves = []core.Curve{{OneNode: []float64{1, 1, 1, 1, 1, 1, 1, 1}, ManyNodes: []float64{1, 1, 1, 1, 1, 1, 1, 1}}}
		return r
	}
	for name, tc := range map[string]struct {
		then func(v *core.View, until float64)
		want int
	}{
		"the next round":           {func(*core.View, float64) {}, 2},
		"just before a change":     {func(v *core.View, until float64) { v.NowSeconds = until - 1e-3 }, 2},
		"a plan changes":           {func(v *core.View, until float64) { v.NowSeconds = until }, 1},
		"a round without it":       {func(v *core.View, _ float64) { v.Round++ }, 1},
		"a node changed":           {func(v *core.View, _ float64) { v.HealthChanges++ }, 1},
		"a job changed":            {func(v *core.View, _ float64) { v.Changed = []core.JobID{0} }, 1},
		"another answer, at first": {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := New().New(&Config{Levels: promise.PowersOfTwo, Expand: leastGrowth}, core.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 2).Obj()).Jobs(due(10, 1000)).Obj()
			v.Round, v.Changed, v.IntervalSeconds = 7, nil, 10
			ask := func(rates func(*core.Job) core.Response) int {
				t.Helper()
				grants, err := p.Allocate(t.Context(), v, coretest.Candidates(v, rates))
				if err != nil || len(grants) != 1 {
					t.Fatal(grants, err)
				}
				return grants[0].Replicas
			}
			if tc.then == nil {
				if got := ask(flat); got != tc.want {
					t.Errorf("%d devices, want %d", got, tc.want)
				}
				return
			}
			for range 3 {
				if got := ask(halved); got != 2 {
					t.Fatalf("%d devices at first, want 2", got)
				}
				v.Round++
			}
			until := p.(core.Steady).Standing().UntilSeconds
			if math.IsInf(until, 1) {
				t.Fatal("no plan changes: the test shows nothing")
			}
			tc.then(v, until)
			if got := ask(flat); got != tc.want {
				t.Fatalf("%d devices, want %d", got, tc.want)
			}
			v.Round, v.Changed = v.Round+1, nil
			if got := ask(halved); tc.want == 1 && name != "a plan changes" && got != 1 {
				t.Errorf("%d devices a round later, want those of the new answer", got)
			}
		})
	}
}

// A job that nobody promised anything to, and that takes all, does not undo the plans of two others, by which both are in time.
func TestElasticFlowGoesBackToItsPlans(t *testing.T) {
	t.Parallel()
	p, err := New().New(&Config{Levels: promise.PowersOfTwo, Expand: leastGrowth}, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 1).Obj()).Jobs(due(10, 10), due(6, 12), due(5, 12)).Obj()
	v.IntervalSeconds = 0
	all := coretest.Candidates(v, halved)
	for round, tc := range []struct {
		jobs  []core.Candidate
		until float64
	}{{all[1:], 1}, {all, 1}, {all[1:], 1}} {
		v.Round = 10 + round
		if _, err := p.Allocate(t.Context(), v, tc.jobs); err != nil {
			t.Fatal(err)
		}
		if until := p.(core.Steady).Standing().UntilSeconds; until != tc.until {
			t.Errorf("round %d: the first plan changes at %v s, want %v", round, until, tc.until)
		}
	}
}
