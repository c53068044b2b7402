package elasticity

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// A job may use twice the replicas it ran on, or its application did, within what its batch, it and the config allow.
func TestReach(t *testing.T) {
	on := func(replicas ...int) (list []core.Measurement) {
		for _, r := range replicas {
			list = append(list, core.Measurement{Replicas: r})
		}
		return list
	}
	cases := map[string]struct {
		reported []core.Measurement
		past     int // replicas
		limits   core.BatchSpec
		least    int
		most     int
		limit    int
		want     int
	}{
		"nothing":                     {nil, 0, core.BatchSpec{}, 1, 64, 64, 1},
		"twice what it ran on":        {on(3, 1), 0, core.BatchSpec{}, 1, 64, 64, 6},
		"twice what others ran on":    {on(1), 4, core.BatchSpec{}, 1, 64, 64, 8},
		"what itself did, if more":    {on(6), 4, core.BatchSpec{}, 1, 64, 64, 12},
		"shares of the batch":         {on(16), 0, core.BatchSpec{Max: 100, MinPerDevice: 30}, 1, 64, 64, 3},
		"as many as shares":           {on(2), 0, core.BatchSpec{Max: 100, MinPerDevice: 1}, 1, 64, 64, 4},
		"the job's most":              {on(16), 0, core.BatchSpec{}, 1, 20, 64, 20},
		"the most of the config":      {on(16), 0, core.BatchSpec{}, 1, 64, 24, 24},
		"never below the job's least": {on(1), 0, core.BatchSpec{Max: 100, MinPerDevice: 100}, 5, 64, 64, 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := &agent{reported: tc.reported, limits: tc.limits}
			if tc.past > 0 {
				a.past = &pastApplication{replicas: tc.past}
			}
			j := &core.Job{JobSpec: &core.JobSpec{MinReplicas: tc.least, MaxReplicas: tc.most}}
			if got := a.reach(j, tc.limit); got != tc.want {
				t.Errorf("%d replicas, want %d", got, tc.want)
			}
		})
	}
}

// A pinned job that ran before anything was learned of it, as on a cluster that is taken over, may keep what it holds.
func TestReachOfAPinnedJob(t *testing.T) {
	for name, tc := range map[string]struct {
		pinned bool
		limits core.BatchSpec
		most   int
		want   int
	}{
		"pinned":                        {true, core.BatchSpec{}, 64, 8},
		"not pinned":                    {false, core.BatchSpec{}, 64, 1},
		"its owner allows less":         {true, core.BatchSpec{}, 5, 5},
		"its batch cannot be shared so": {true, core.BatchSpec{Max: 100, MinPerDevice: 30}, 64, 3},
	} {
		t.Run(name, func(t *testing.T) {
			a := &agent{limits: tc.limits}
			j := &core.Job{JobSpec: &core.JobSpec{MinReplicas: 1, MaxReplicas: tc.most, Pinned: tc.pinned}, Held: 8}
			if got := a.reach(j, 4); got != tc.want {
				t.Errorf("%d replicas, want %d", got, tc.want)
			}
		})
	}
}

// A job is silent once it has worked for some time and told nothing, until it does.
func TestReportsNothing(t *testing.T) {
	cases := map[string]struct {
		change func(*core.Job)
		now    float64
		config map[string]any
		want   bool
	}{
		"worked":             {func(*core.Job) {}, 60, nil, true},
		"holds nothing":      {func(j *core.Job) { j.Held = 0 }, 60, nil, false},
		"no rate, for long":  {func(j *core.Job) { j.ProgressRate = 0 }, 60, nil, true},
		"no rate yet":        {func(j *core.Job) { j.ProgressRate = 0 }, 59, nil, false},
		"no rate, restarted": {func(j *core.Job) { j.ProgressRate, j.ProgressAsOf = 0, 55 }, 60, nil, false},
		"just began":         {func(*core.Job) {}, 0, nil, false},
		"measured":           {func(j *core.Job) { ran(j, truth, 1, 1, 64) }, 60, nil, false},
		"an oracle knows":    {func(j *core.Job) { j.Truth, j.Held = &core.Truth{}, 0 }, 60, map[string]any{"knowledge": oracle}, false},
		"no oracle knows":    {func(j *core.Job) { j.Held = 0 }, 60, map[string]any{"knowledge": oracle}, true},
		"worked, and known":  {func(j *core.Job) { j.Truth = &core.Truth{} }, 60, map[string]any{"knowledge": oracle}, true},
		"measured, unknown":  {func(j *core.Job) { ran(j, truth, 1, 1, 64) }, 60, map[string]any{"knowledge": oracle}, false},
		"known to the truth": {func(j *core.Job) { j.Truth, j.Held = &core.Truth{}, 0 }, 60, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newGoodput(t, tc.config)
			j := trainingJob()
			j.JobSpec.ID, j.Held, j.ProgressRate = 3, 1, 1
			tc.change(j)
			for range 2 {
				if got := p.reportsNothing(j, tc.now); got != tc.want {
					t.Fatalf("reports nothing: %v", got)
				}
			}
			if p.silences > 1 {
				t.Errorf("noted %d times", p.silences)
			}
			ran(j, truth, 1, 1, 64)
			if p.reportsNothing(j, tc.now) || len(p.silent) > 3 && p.silent[3] {
				t.Error("is silent after it reported")
			}
		})
	}
}

// Notes name the first job, and in the end the number where it is more than one.
func TestNotesAreCounted(t *testing.T) {
	for jobs, want := range map[int]string{0: "", 1: "first", 2: "first ungraded=2 silent=2"} {
		p, log := noting(t, nil)
		for range jobs {
			p.note(&p.ungraded, trainingJob(), "first")
		}
		p.silences = p.ungraded
		p.noteCounts()
		got := log.String()
		if strings.Contains(got, "first") != (jobs > 0) || strings.Contains(got, "jobs reported no measurements") != (jobs > 1) || strings.Contains(got, "jobs reported no gradient statistics") != (jobs > 1) {
			t.Errorf("of %d jobs, want %q:\n%s", jobs, want, got)
		}
	}
	quiet := newGoodput(t, nil)
	quiet.note(&quiet.ungraded, trainingJob(), "nowhere to go")
	quiet.silences, quiet.ungraded = 2, 2
	quiet.noteCounts()
}

// A job that runs on several nodes, or beyond what is known, is tuned within its bounds.
func TestTuneWithinBounds(t *testing.T) {
	batch := core.BatchSpec{Requested: 96, Initial: 64, Max: 100, MinPerDevice: 8, MaxPerDevice: 40}
	one, two := []core.Seat{coretest.Seat(0, 0)}, []core.Seat{coretest.Seat(0, 0, 1)}
	nodes := []core.Seat{coretest.Seat(0, 0), coretest.Seat(1, 0)}
	cases := map[string]struct {
		settings map[string]any
		seats    []core.Seat
		batch    core.BatchSpec
		want     core.Tuning
	}{
		"nothing known":             {nil, two, batch, core.Tuning{BatchPerDevice: 32, LearningRateFactor: 1}},
		"a share for each":          {nil, []core.Seat{coretest.Seat(0, 0, 1, 2, 3)}, core.BatchSpec{Initial: 16, Max: 100, MinPerDevice: 8, MaxPerDevice: 40}, core.Tuning{BatchPerDevice: 8, LearningRateFactor: 2}},
		"passes":                    {nil, one, batch, core.Tuning{BatchPerDevice: 32, AccumulationSteps: 1, LearningRateFactor: 1}},
		"a batch of another's name": {map[string]any{"fixed_batch": []any{"other"}}, two, batch, core.Tuning{BatchPerDevice: 32, LearningRateFactor: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newGoodput(t, tc.settings)
			j := trainingJob()
			j.Batch, j.Gradients = tc.batch, core.Gradients{Variance: 1} // the gain is the scale
			respond(t, p, j)
			got := tune(t, p, j, tc.seats...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("tuning (-want +got):\n%s", diff)
			}
			if total := core.Replicas(tc.seats) * got.BatchPerDevice * (got.AccumulationSteps + 1); total > tc.batch.Max {
				t.Errorf("a total of %d", total)
			}
		})
	}
	p := newGoodput(t, map[string]any{"fixed_batch": []any{"app"}})
	j := trainingJob()
	j.Batch, j.Gradients = batch, core.Gradients{Variance: 1}
	respond(t, p, j)
	if got := tune(t, p, j, nodes...); got.BatchPerDevice*(got.AccumulationSteps+1)*2 != 96 || math.Abs(got.LearningRateFactor-1.5) > 1e-12 {
		t.Errorf("a fixed batch is tuned to %+v", got)
	}
}

// The learned work is in iterations once a job has a rate, and in seconds before.
func TestWorkLeftAsItIsKnown(t *testing.T) {
	j := trainingJob()
	if got := respond(t, newGoodput(t, map[string]any{"unmeasured_seconds": 77.0}), j); got.RemainingWork != 77 {
		t.Errorf("%v left of a job that measured nothing, want 77", got.RemainingWork)
	}
	if got := respond(t, newGoodput(t, map[string]any{"declared_work": false}), j); !math.IsNaN(got.RemainingWork) {
		t.Errorf("%v left, and nobody knows", got.RemainingWork)
	}
}

// The rate on one device is the first that is known; 1 where none is.
func TestSingle(t *testing.T) {
	cases := map[string]struct {
		told []core.Curve
		want float64
	}{
		"nothing told":        {nil, 1},
		"the first":           {[]core.Curve{{OneNode: []float64{3}}, {OneNode: []float64{4}}}, 3},
		"the first that runs": {[]core.Curve{{}, {OneNode: []float64{0, 9}}, {OneNode: []float64{4}}}, 4},
	}
	for name, tc := range cases {
		if got := (&agent{curves: tc.told}).single(); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// What was known is given up at a typical error of e^0.3, and a first measurement that agrees speaks for it.
func TestDoubt(t *testing.T) {
	off := func(factors ...float64) (list []core.Measurement) {
		for i, factor := range factors {
			list = append(list, core.Measurement{Nodes: 1, Replicas: i + 1, PerDevice: 64, StepSeconds: factor * truth.StepTime(1, i+1, 64, 0)})
		}
		return list
	}
	cases := map[string]struct {
		seen               []core.Measurement
		confirmed, refuted int
	}{
		"agrees":              {off(1), 1, 0},
		"agrees again":        {off(1, 1), 0, 0},
		"nearly":              {off(math.Exp(0.29)), 1, 0},
		"too slow":            {off(math.Exp(0.31)), 0, 1},
		"too quick":           {off(math.Exp(-0.31)), 0, 1},
		"on average":          {off(1, math.Exp(0.59)), 0, 0},
		"too slow on average": {off(1, math.Exp(0.61)), 0, 1},
		"both ways":           {off(math.Exp(-0.4), math.Exp(0.4)), 0, 1},
		"no number":           {off(math.NaN()), 0, 1},
		"on an unknown type":  {[]core.Measurement{{Accelerator: "t4", Nodes: 1, Replicas: 1, PerDevice: 64, StepSeconds: 1e6}}, 1, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			past := &pastApplication{models: func() []pastModel { return []pastModel{{Performance: truth}} }}
			p, a := &goodputAgent{pool: newPool()}, &agent{past: past, seen: tc.seen}
			p.pool.proofs[past] = proof{}
			p.doubt(a)
			proved := p.pool.proofs[past]
			if proved != (proof{tc.confirmed, tc.refuted}) || a.changed != (tc.refuted > 0) || (a.past == nil) != a.changed {
				t.Errorf("confirmed %d, refuted %d, changed %v; want %d, %d", proved.confirmed, proved.refuted, a.changed, tc.confirmed, tc.refuted)
			}
		})
	}
	new(goodputAgent).doubt(&agent{seen: off(9)}) // nothing was known
}

// Only work that a pool can hold is kept, of jobs that have a rate.
func TestEndedKeeps(t *testing.T) {
	cases := map[string]struct {
		work   float64
		faster float64 // than the truth; 0 for a job that measured nothing
		state  core.JobState
		want   int
	}{
		"done":                     {100, 1, core.Completed, 1},
		"failed":                   {100, 1, core.Failed, 1},
		"none":                     {0, 1, core.Failed, 0},
		"the most":                 {mostGradient / 1e6, 1, core.Completed, 1},
		"too much":                 {1.1 * mostGradient, 1, core.Completed, 0},
		"just as much":             {mostGradient, 1000, core.Completed, 1},
		"too much in a short time": {1.1 * mostGradient, 1000, core.Completed, 0},
		"in too long a time":       {0.9 * mostGradient, 0.001, core.Completed, 0},
		"in no time":               {math.SmallestNonzeroFloat64, 1000, core.Completed, 0},
		"unmeasured":               {100, 0, core.Completed, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := remembering(t, t.TempDir()+"/pool.yaml", nil)
			j, other, next := trainingJob(), trainingJob(), trainingJob()
			other.JobSpec.ID, next.JobSpec.ID = 9, 1
			if tc.faster > 0 {
				ran(j, truth, 1, 1, 64)
				j.Measured[0].PassSeconds /= tc.faster
				j.Measured[0].StepSeconds /= tc.faster
			}
			respond(t, p, j)
			j.Progress, j.State = tc.work, tc.state
			if err := p.Ended(t.Context(), &core.View{}, []*core.Job{other, next, j}); err != nil {
				t.Fatal(err)
			}
			w := p.pool.work.of("app")
			if len(w.now) != tc.want {
				t.Fatalf("%d endings, want %d", len(w.now), tc.want)
			}
			if tc.want == 1 && (w.now[0].work != tc.work || w.now[0].finished != (tc.state == core.Completed) || w.now[0].seconds != tc.work/p.agents[0].single() || len(p.pool.fresh["app"].endings) != 1) {
				t.Errorf("keeps %+v", w.now[0])
			}
		})
	}
}

// Iterations are samples over the initial batch, in proportion to the speed of a type; optimism is linear.
func TestCurvesInIterations(t *testing.T) {
	if diff := cmp.Diff([]float64{1.5, 3}, perIteration([]float64{64, 128}, 128, 3)); diff != "" {
		t.Errorf("rates (-want +got):\n%s", diff)
	}
	got := newGoodput(t, map[string]any{"most_replicas": 3}).optimism()
	if diff := cmp.Diff([]core.Curve{{OneNode: []float64{1, 2, 3}, ManyNodes: []float64{1, 2, 3}}}, got); diff != "" {
		t.Errorf("optimism (-want +got):\n%s", diff)
	}
	if got := limitsOf(core.BatchSpec{Requested: 5, Max: 100}); got != (core.BatchSpec{Max: 100, MaxPerDevice: 100}) {
		t.Errorf("limits %+v", got)
	}
	if got := limitsOf(core.BatchSpec{Max: 100, MaxPerDevice: 10}); got.MaxPerDevice != 10 {
		t.Errorf("limits %+v", got)
	}
}
