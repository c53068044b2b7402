package elasticity

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// Rates are the inverse of times; what has no time is not possible.
func TestRatesOfTimes(t *testing.T) {
	accelerators := []string{"t4", "v100"}
	plain := &core.StepTimes{OneNode: []float64{4, 0, -1}, ManyNodes: []float64{2}}
	typed := &core.StepTimes{OneNode: []float64{4}, Types: []core.TypeTimes{{Accelerator: "v100", OneNode: []float64{0.5}, ManyNodes: []float64{1}}}}
	cases := map[string]struct {
		times *core.StepTimes
		want  []core.Curve
	}{
		"the same on all types": {plain, []core.Curve{{OneNode: []float64{0.25, 0, 0}, ManyNodes: []float64{0.5}}}},
		"by type":               {typed, []core.Curve{{OneNode: []float64{0.25}, ManyNodes: []float64{}}, {OneNode: []float64{2}, ManyNodes: []float64{1}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, stepCurves(tc.times, accelerators)); diff != "" {
				t.Errorf("curves (-want +got):\n%s", diff)
			}
		})
	}
	times := &core.MixedTypeTimes{SingleDeviceTimes: []core.SingleDeviceTime{{Accelerator: "v100", Seconds: 4}, {Accelerator: "a100", Seconds: 1}, {Accelerator: "t4"}}, SyncSeconds: []float64{0, 1}}
	if diff := cmp.Diff(&core.MixedTypeRates{SingleDeviceRates: []float64{0, 0.25}, SyncSeconds: []float64{0, 1}}, unlikeRates(times, accelerators)); diff != "" {
		t.Errorf("rates alone (-want +got):\n%s", diff)
	}
	first := &core.MixedTypeTimes{SingleDeviceTimes: []core.SingleDeviceTime{{Accelerator: "t4", Seconds: 2}}}
	if got := unlikeRates(first, accelerators).SingleDeviceRates; got[0] != 0.5 || got[1] != 0 {
		t.Errorf("rates alone %v, want 0.5 and none", got)
	}
	if got := unlikeRates(nil, accelerators); got != nil {
		t.Errorf("rates %v of no times", got)
	}
}

// A later measurement of a configuration counts by its reports, against four of the earlier ones at most.
func TestBlend(t *testing.T) {
	m := func(x float64, count int) core.Measurement {
		return core.Measurement{PassSeconds: x, StepSeconds: 2 * x, Spread: x / 10, Count: count}
	}
	cases := map[string]struct {
		old, later, want core.Measurement
	}{
		"as often":        {m(1, 1), m(3, 1), m(2, 2)},
		"of one report":   {m(1, 0), m(3, 0), m(2, 2)},
		"more often":      {m(1, 1), m(5, 3), m(4, 4)},
		"less often":      {m(1, 3), m(5, 1), m(2, 4)},
		"long ago":        {m(1, 100), m(5, 4), m(3, 104)},
		"beyond counting": {m(1, mostJobs), m(5, 4), m(3, mostJobs)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, blend(tc.old, tc.later), cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Errorf("blend (-want +got):\n%s", diff)
			}
		})
	}
}

// Gradients are averaged over jobs, of which four count at most; measurements are kept up to a bound.
func TestJoin(t *testing.T) {
	past := func(jobs int, square, variance float64) *pastApplication {
		return &pastApplication{jobs: jobs, gradients: core.Gradients{SquaredNorm: square, Variance: variance}}
	}
	cases := map[string]struct {
		a, o, want *pastApplication
	}{
		"the first":       {past(0, 0, 0), past(1, 4, 8), past(1, 4, 8)},
		"as many":         {past(1, 2, 10), past(1, 4, 20), past(2, 3, 15)},
		"many before":     {past(100, 2, 10), past(4, 4, 20), past(104, 3, 15)},
		"none":            {past(3, 2, 10), past(0, 4, 20), past(3, 2, 10)},
		"nobody":          {past(0, 2, 10), past(0, 4, 20), past(0, 2, 10)},
		"beyond counting": {past(mostJobs, 2, 10), past(4, 4, 20), past(mostJobs, 3, 15)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.a.join(tc.o)
			if tc.a.jobs != tc.want.jobs || !(math.Abs(tc.a.gradients.SquaredNorm-tc.want.gradients.SquaredNorm) <= 1e-12) || !(math.Abs(tc.a.gradients.Variance-tc.want.gradients.Variance) <= 1e-12) {
				t.Errorf("%+v, want %+v", tc.a, tc.want)
			}
		})
	}
	full, more := past(1, 1, 1), past(1, 1, 1)
	for i := range mostKept + 5 {
		more.seen = append(more.seen, core.Measurement{Nodes: 1, Replicas: i + 1, PerDevice: 1, PassSeconds: 1, StepSeconds: 1})
	}
	full.join(more)
	more.seen[0].PassSeconds = 3
	full.join(more)
	if len(full.seen) != mostKept || full.seen[0].PassSeconds != 2 || full.seen[mostKept-1].Replicas != mostKept {
		t.Errorf("%d measurements, the first of %v s", len(full.seen), full.seen[0].PassSeconds)
	}
}

func TestDistance(t *testing.T) {
	a := core.BatchSpec{Initial: 128, Max: 4096, MinPerDevice: 32, MaxPerDevice: 256}
	cases := map[string]struct {
		change func(*core.BatchSpec)
		want   float64 // a factor
	}{
		"alike":            {func(*core.BatchSpec) {}, 1},
		"initial":          {func(b *core.BatchSpec) { b.Initial *= 2 }, 2},
		"smaller":          {func(b *core.BatchSpec) { b.Max /= 4 }, 4},
		"of a device":      {func(b *core.BatchSpec) { b.MinPerDevice *= 2; b.MaxPerDevice /= 2 }, 4},
		"none counts as 1": {func(b *core.BatchSpec) { b.MinPerDevice = 0 }, 32},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := a
			tc.change(&b)
			if got, back := distance(a, b), distance(b, a); math.Abs(got-math.Log(tc.want)) > 1e-12 || math.Abs(got-back) > 1e-12 {
				t.Errorf("%v, and %v back; want %v", got, back, math.Log(tc.want))
			}
		})
	}
}

func TestSane(t *testing.T) {
	m := func(pass, step float64) []core.Measurement {
		return []core.Measurement{{PassSeconds: 1, StepSeconds: 1}, {PassSeconds: pass, StepSeconds: step}}
	}
	g := func(square, variance float64) core.Gradients {
		return core.Gradients{SquaredNorm: square, Variance: variance}
	}
	cases := map[string]struct {
		seen      []core.Measurement
		gradients core.Gradients
		want      bool
	}{
		"ordinary":           {m(1, 2), g(1, 2), true},
		"least":              {m(1e-9, 1e-9), g(0, 0), true},
		"most":               {m(1, mostSeconds), g(mostGradient, mostGradient), true},
		"square too large":   {m(1, 2), g(1.1*mostGradient, 0), false},
		"variance too large": {m(1, 2), g(0, 1.1*mostGradient), false},
		"square below 0":     {m(1, 2), g(-1, 0), false},
		"no number":          {m(1, 2), g(0, math.NaN()), false},
		"no time":            {m(0, 2), g(1, 1), false},
		"step within a pass": {m(2, 1), g(1, 1), false},
		"too slow":           {m(1, 1.1*mostSeconds), g(1, 1), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sane(tc.seen, tc.gradients); got != tc.want {
				t.Errorf("sane: %v", got)
			}
		})
	}
}

// A job proves earlier runs wrong beyond twice the most or half the least that finished jobs did.
func TestWhatAJobProves(t *testing.T) {
	before := append(finished(100, 300), ending{work: 5000, seconds: 1}, ending{work: 1, seconds: 1})
	cases := map[float64]bool{49: false, 50: true, 200: true, 600: true, 601: false}
	for work, confirmed := range cases {
		var p workPool
		p.read("app", before)
		p.add("app", ending{work: work, seconds: 1, finished: true})
		w := p.of("app")
		if w.confirmed+w.refuted != 1 || (w.confirmed == 1) != confirmed || p.believed("app") != confirmed {
			t.Errorf("work of %v: confirmed %d, refuted %d", work, w.confirmed, w.refuted)
		}
	}
	var p workPool
	p.read("app", before)
	p.add("app", ending{work: 9000, seconds: 1}) // was stopped
	p.add("new", ending{work: 9000, seconds: 1, finished: true})
	for _, name := range []string{"app", "new"} {
		if w := p.of(name); w.confirmed+w.refuted != 0 || len(w.now) != 1 {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

// What a job that has not begun needs is in seconds on one device, of this application where any ended.
func TestWholeWork(t *testing.T) {
	in := func(works, seconds float64) ending { return ending{work: works, seconds: seconds, finished: true} }
	p := workPool{unmeasured: 600}
	if got := p.whole("app"); got != 600 {
		t.Errorf("%v s before anything is known, want 600", got)
	}
	p.read("app", []ending{in(100, 10), in(100, 30)})
	p.add("app", in(100, 20))
	p.add("wrong", in(1, 5))
	if got := p.whole("app"); math.Abs(got-20) > 1e-9 {
		t.Errorf("%v s, want the mean, 20", got)
	}
	if got := p.whole("unseen"); math.Abs(got-65.0/4) > 1e-9 {
		t.Errorf("%v s of an unseen application, want the mean over all, 16.25", got)
	}
	p.add("app", in(1000, 700))
	p.add("app", in(1000, 900)) // most prove earlier runs wrong
	if got := p.whole("app"); math.Abs(got-540) > 1e-9 {
		t.Errorf("%v s, want the mean of this run, 540", got)
	}
	if got := p.left("unseen", false, 0, 2); math.Abs(got-2*1665.0/6) > 1e-9 {
		t.Errorf("%v left of an unseen application, want 555", got)
	}
}

// Of two jobs that did as much, the one that finished comes first in the order of endings.
func TestOrderOfEndings(t *testing.T) {
	a, b := ending{finished: true}, ending{}
	got := fmt.Sprint(compareFinished(a, b), compareFinished(b, a), compareFinished(a, a), compareFinished(b, b))
	if got != "-1 1 0 0" {
		t.Errorf("order %s", got)
	}
}

// Bounds of the blind hold on every type; those who see take those of the type.
func TestBoundsOfTypes(t *testing.T) {
	j := trainingJob()
	j.BatchByType = []core.TypeBatch{
		{Accelerator: "t4", MinPerDevice: 16, MaxPerDevice: 128}, {Accelerator: "v100", MinPerDevice: 24, MaxPerDevice: 512}, {Accelerator: "a100", MinPerDevice: 8, MaxPerDevice: 96},
	}
	blind, seeing := newGoodput(t, map[string]any{"types": blindType}), newGoodput(t, nil)
	if got := blind.bounds(j, "v100"); got.MinPerDevice != 24 || got.MaxPerDevice != 96 || got.Max != j.Batch.Max {
		t.Errorf("to the blind %+v, want 24..96", got)
	}
	if got := seeing.bounds(j, "v100"); got.MinPerDevice != 24 || got.MaxPerDevice != 512 {
		t.Errorf("on a v100 %+v, want 24..512", got)
	}
	j.BatchByType = nil
	if diff := cmp.Diff(j.Batch, blind.bounds(j, "v100")); diff != "" {
		t.Errorf("without types (-want +got):\n%s", diff)
	}
}

// Once reports differ, what was reported once waits for a second report, unless nothing else is known.
func TestConfirmed(t *testing.T) {
	m := func(replicas, count int, spread float64) core.Measurement {
		return core.Measurement{Nodes: 1, Replicas: replicas, Count: count, Spread: spread}
	}
	cases := map[string]struct {
		seen        []core.Measurement
		nothingElse bool
		want        []int // replicas
	}{
		"alike":                    {[]core.Measurement{m(1, 1, 0), m(2, 2, 0)}, false, []int{1, 2}},
		"all twice":                {[]core.Measurement{m(1, 2, 0.1), m(2, 3, 0)}, false, []int{1, 2}},
		"one of them once":         {[]core.Measurement{m(1, 2, 0.1), m(2, 1, 0)}, false, []int{1}},
		"nothing else, one twice":  {[]core.Measurement{m(1, 1, 0), m(2, 2, 0.1)}, true, []int{2}},
		"nothing else, each once":  {[]core.Measurement{m(1, 1, 0.1), m(2, 1, 0)}, true, []int{1, 2}},
		"something else, all once": {[]core.Measurement{m(1, 1, 0.1), m(2, 1, 0)}, false, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []int
			for _, m := range newGoodput(t, nil).confirmed(tc.seen, tc.nothingElse) {
				got = append(got, m.Replicas)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
	p := newGoodput(t, nil)
	p.confirmed([]core.Measurement{m(1, 2, 0.1)}, false)
	if got := p.confirmed([]core.Measurement{m(1, 1, 0), m(2, 2, 0)}, false); len(got) != 1 {
		t.Errorf("forgets that reports differ: %v", got)
	}
}

// The blind takes the first of measurements that differ in their type alone.
func TestBlindCollects(t *testing.T) {
	all := []core.Measurement{
		{Accelerator: "t4", Nodes: 1, Replicas: 1, PerDevice: 8, PassSeconds: 1},
		{Accelerator: "v100", Nodes: 1, Replicas: 1, PerDevice: 8, PassSeconds: 2},
		{Accelerator: "v100", Nodes: 1, Replicas: 2, PerDevice: 8, PassSeconds: 3},
	}
	got := newGoodput(t, map[string]any{"types": blindType}).collect(nil, all)
	if len(got) != 2 || got[0].PassSeconds != 1 || got[1].PassSeconds != 3 || got[0].Accelerator != "" {
		t.Errorf("the blind keeps %+v", got)
	}
	if got := newGoodput(t, nil).collect(nil, all); len(got) != 3 || got[1].Accelerator != "v100" {
		t.Errorf("who sees keeps %+v", got)
	}
}

func TestAlone(t *testing.T) {
	known := &core.Truth{Measurements: []core.Measurement{
		{Accelerator: "t4", Replicas: 1, PerDevice: 32, StepSeconds: 1},
		{Accelerator: "t4", Replicas: 1, PerDevice: 64, StepSeconds: 4},
		{Accelerator: "t4", Replicas: 1, PerDevice: 64, StepSeconds: 1},
		{Accelerator: "t4", Replicas: 2, PerDevice: 128, StepSeconds: 1},
		{Accelerator: "v100", Replicas: 1, PerDevice: 256, StepSeconds: 1},
	}}
	if a, b, c := alone(known, "t4"), alone(known, "v100"), alone(known, "a100"); a != 16 || b != 256 || c != 0 {
		t.Errorf("%v, %v, %v samples a second; want 16, 256, 0", a, b, c)
	}
}

// A capability is needed only for what reads step times; a range ends where the job and its times do.
func TestFixedRanges(t *testing.T) {
	times := &core.StepTimes{OneNode: []float64{4, 2, 1}}
	cases := map[string]struct {
		config    FixedConfig
		job       *coretest.JobBuilder
		min, max  int
		remaining float64
		curves    int
	}{
		"an oracle of a rigid job beyond its times": {FixedConfig{Replicas: requested, Oracle: true}, coretest.MakeJob("a").Elastic(5, 5, 5).StepTimes(times, 7), 5, 5, 7, 1},
		"elastic with times beyond its range":       {FixedConfig{Replicas: elastic}, coretest.MakeJob("a").Elastic(1, 2, 2).StepTimes(times, 7), 1, 2, 7, 1},
		"a batch without a least":                   {FixedConfig{Replicas: elastic}, coretest.MakeJob("a").Elastic(1, 2, 4).Batch(core.BatchSpec{Requested: 2}), 1, 4, math.NaN(), 1},
		"no batch but a least":                      {FixedConfig{Replicas: elastic}, coretest.MakeJob("a").Elastic(1, 2, 4).Batch(core.BatchSpec{MinPerDevice: 1}), 1, 4, math.NaN(), 1},
		"one replica":                               {FixedConfig{Replicas: elastic}, coretest.MakeJob("a").Elastic(1, 1, 1), 1, 1, math.NaN(), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newFixed(t, tc.config).Respond(t.Context(), &core.View{Cluster: &core.Cluster{}}, []*core.Job{tc.job.Obj()})
			if err != nil {
				t.Fatal(err)
			}
			r := got[0]
			if r.MinReplicas != tc.min || r.MaxReplicas != tc.max || len(r.Curves) != tc.curves || !cmp.Equal(r.RemainingWork, tc.remaining, cmpopts.EquateNaNs()) {
				t.Errorf("%+v, want %d..%d, %v left, %d curves", r, tc.min, tc.max, tc.remaining, tc.curves)
			}
		})
	}
	if got := NewFixed().Needs(&FixedConfig{Replicas: requested, Split: proportional}); len(got) != 1 {
		t.Errorf("a proportional split needs %v", got)
	}
	if got := newFixed(t, FixedConfig{Replicas: elastic}).(interface{ Standing() core.Standing }).Standing(); !math.IsInf(got.UntilSeconds, 1) {
		t.Errorf("stands until %v", got.UntilSeconds)
	}
}
