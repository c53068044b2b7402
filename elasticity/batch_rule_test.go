package elasticity

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/goodput"
)

func TestBatchRuleConformance(t *testing.T) {
	for name, config := range map[string]map[string]any{
		"noise":                nil,
		"schedule":             {"rule": ruleSchedule},
		"doubling":             {"rule": ruleNoiseDoubling},
		"averaged":             {"rule": ruleAveragedNoise},
		"critical regime":      {"rule": ruleCriticalRegime},
		"schedule of an epoch": {"rule": ruleSchedule, "epochs": 1},
		"oracle":               {"knowledge": "oracle"},
		"history":              {"knowledge": "history"},
		"profiled":             {"profiled": true},
		"blind to types":       {"types": "blind"},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunElasticity(t, NewBatchRule(), coretest.Pinning(), coretest.WithConfig(config))
		})
	}
}

func newBatchRule(t testing.TB, settings map[string]any) *goodputAgent {
	t.Helper()
	config, problems := NewBatchRule().Decode(settings)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	made, err := NewBatchRule().New(config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return made.(*goodputAgent)
}

func TestBatchRuleProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		settings map[string]any
		want     []string
	}{
		"no such rule":     {map[string]any{"rule": "cabs"}, []string{"schedule", "noise_doubling", "critical_regime"}},
		"out of range":     {map[string]any{"parts": 0, "factor": 0.5, "keep": 2.0, "epochs": 0}, []string{"parts", "factor", "keep", "epochs"}},
		"epochs of nobody": {map[string]any{"epochs_of": []any{map[string]any{"epochs": 3}}}, []string{"application"}},
		"epochs twice": {
			map[string]any{"epochs_of": []any{map[string]any{"application": "a", "epochs": 3}, map[string]any{"application": "a", "epochs": 3}}},
			[]string{`epochs_of[1].application: "a"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := NewBatchRule().Decode(tc.settings)
			err := problems.Err()
			if err == nil {
				t.Fatal("no problem")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("problems %v, want %q among them", err, want)
				}
			}
		})
	}
}

// halves is a job of two epochs that doubles its batch for the second, on the devices of a node.
func halves(t testing.TB) (*goodputAgent, *core.Job, []core.Seat) {
	p := newBatchRule(t, map[string]any{"rule": ruleSchedule, "parts": 2, "epochs": 7, "epochs_of": []any{map[string]any{"application": "app", "epochs": 2}}})
	j, seats := measured(noisy), []core.Seat{coretest.Seat(0, 0, 1, 2, 3)}
	j.State, j.Seats, j.Held = core.Running, seats, 4
	return p, j, seats
}

// The response is the curve of the goodput at the batch of the rule, for all replicas that the largest batch suffices for.
func TestBatchRuleTellsTheCurveOfItsBatch(t *testing.T) {
	p, j, _ := halves(t)
	model := goodput.Model{Performance: goodput.Fit(j.Measured), Gradients: goodput.Gradients(noisy), Limits: limits}
	for progress, batch := range map[float64]int{0: 128, 490: 128} {
		j.Progress = progress
		compareCurves(t, respond(t, p, j), &model, batch)
	}
	j.Progress = 500
	compareCurves(t, respond(t, p, j), &model, 256)
}

func compareCurves(t *testing.T, r core.Response, m *goodput.Model, batch int) {
	t.Helper()
	for shape, rates := range [][]float64{r.Curves[0].OneNode, r.Curves[0].ManyNodes} {
		for i, got := range rates {
			replicas := i + 1
			b, s := goodput.SplitBatch(max(batch, replicas*m.Limits.MinPerDevice), replicas, m.Limits)
			total := float64(replicas * b * (s + 1))
			want := m.Performance.Throughput(1+shape, replicas, float64(b), s) * m.Gradients.Efficiency(total/float64(m.Limits.Initial)) / float64(m.Limits.Initial)
			if math.Abs(got-want) > 1e-9*want {
				t.Errorf("a batch of %d on %d replicas, shape %d: rate %v, want %v", batch, replicas, shape, got, want)
			}
		}
	}
}

// A job whose gradients nobody knows counts each sample the same.
func TestBatchRuleWithoutGradients(t *testing.T) {
	p, j, _ := halves(t)
	j.Gradients = core.Gradients{}
	j.Progress = 500
	model := goodput.Model{Performance: goodput.Fit(j.Measured), Gradients: goodput.Gradients(everySample), Limits: limits}
	compareCurves(t, respond(t, p, j), &model, 256)
}

func TestBatchRuleTunes(t *testing.T) {
	cases := map[string]struct {
		settings map[string]any
		change   func(j *core.Job)
		seats    []core.Seat
		want     core.Tuning
	}{
		"first epoch": {nil, nil, []core.Seat{coretest.Seat(0, 0, 1)}, core.Tuning{BatchPerDevice: 64}},
		"second epoch": {
			nil, func(j *core.Job) { j.Progress = 500 },
			[]core.Seat{coretest.Seat(0, 0, 1)},
			core.Tuning{BatchPerDevice: 128},
		},
		"more than the devices take at once": {
			map[string]any{"factor": 32.0},
			func(j *core.Job) { j.Progress = 500 },
			[]core.Seat{coretest.Seat(0, 0, 1)},
			core.Tuning{BatchPerDevice: 256, AccumulationSteps: 7},
		},
		"less than the devices take at least": {
			nil, nil, []core.Seat{coretest.Seat(0, 0, 1, 2, 3), coretest.Seat(1, 0, 1)}, core.Tuning{BatchPerDevice: 32},
		},
		"not known how long it trains": {
			nil, func(j *core.Job) { j.Progress, j.TotalWork = 500, 0 },
			[]core.Seat{coretest.Seat(0, 0, 1)},
			core.Tuning{BatchPerDevice: 64},
		},
		"keeps its batch": {
			map[string]any{"fixed_batch": []any{"app"}},
			func(j *core.Job) { j.Progress = 500 },
			[]core.Seat{coretest.Seat(0, 0, 1)},
			core.Tuning{BatchPerDevice: 256},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			settings := map[string]any{"rule": ruleSchedule, "parts": 2, "epochs": 2, "scaling_rule": "linear"}
			maps.Copy(settings, tc.settings)
			p, j := newBatchRule(t, settings), measured(noisy)
			if tc.change != nil {
				tc.change(j)
			}
			respond(t, p, j)
			got := tune(t, p, j, tc.seats...)
			tc.want.Job = j.ID
			tc.want.LearningRateFactor = float64(core.Replicas(tc.seats)*tc.want.BatchPerDevice*(tc.want.AccumulationSteps+1)) / float64(limits.Initial)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("tuning (-want +got):\n%s", diff)
			}
		})
	}
}

// The noise that counts is that of the epoch before, not that which the first report of the next one tells.
func TestBatchRuleLooksAtTheEpochBefore(t *testing.T) {
	p := newBatchRule(t, map[string]any{"rule": ruleNoise, "epochs": 4})
	j, seats := measured(core.Gradients{SquaredNorm: 1, Variance: 2}), coretest.Seat(0, 0, 1, 2, 3)
	total := func() int {
		respond(t, p, j)
		j.Tuning = tune(t, p, j, seats)
		return 4 * j.Tuning.BatchPerDevice * (j.Tuning.AccumulationSteps + 1)
	}
	for i, step := range []struct {
		progress, variance float64
		want               int
	}{
		{0, 2, 256},     // known when it is first seen
		{100, 4, 256},   // in the epoch nothing changes
		{250, 8, 512},   // noise 4·128, as told before
		{300, 16, 512},  // again
		{501, 1, 2048},  // the latest that was told in the second epoch
		{750, 2, 128},   // noise of 1·128
		{999, 100, 128}, // and no more
	} {
		j.Progress, j.Gradients.Variance = step.progress, step.variance
		if got := total(); got != step.want {
			t.Errorf("step %d: a batch of %d, want %d", i, got, step.want)
		}
	}
}

// Epochs that nobody looked at have their effect all the same.
func TestBatchRuleCatchesUp(t *testing.T) {
	p := newBatchRule(t, map[string]any{"rule": ruleNoiseDoubling, "epochs": 10})
	j := measured(core.Gradients{})
	respond(t, p, j)
	j.Gradients = noisy
	respond(t, p, j)
	j.Progress = 350
	respond(t, p, j)
	if got := tune(t, p, j, coretest.Seat(0, 0, 1, 2, 3)); 4*got.BatchPerDevice != 8*limits.Initial {
		t.Errorf("tuned to %+v after three epochs of noise", got)
	}
}

// Whatever a job reports, and however far it comes between two looks, its batch changes when an epoch has ended and not else, and
// stays within its bounds.
func TestBatchRuleChangesAtEpochEnds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(ruleNames).Draw(rt, "rule")
		epochs := rapid.IntRange(1, 12).Draw(rt, "epochs")
		p := newBatchRule(t, map[string]any{"rule": name, "epochs": epochs, "checks": rapid.IntRange(1, 12).Draw(rt, "checks")})
		j := measured(core.Gradients{})
		before, in := 0, 0
		for range rapid.IntRange(1, 30).Draw(rt, "looks") {
			j.Progress = min(j.Progress+rapid.Float64Range(0, 150).Draw(rt, "work"), j.TotalWork)
			j.Gradients = drawGradients(rt)
			respond(t, p, j)
			batch := p.agents[j.ID].batch.Batch
			now := min(int(j.Progress/j.TotalWork*float64(epochs)+early), epochs-1)
			if batch != before && before > 0 && now == in {
				rt.Fatalf("at %v of %v, in epoch %d of %d, the batch changes from %d to %d", j.Progress, j.TotalWork, in, epochs, before, batch)
			}
			if batch < limits.Initial || batch > limits.Max {
				rt.Fatalf("a batch of %d", batch)
			}
			got := tune(t, p, j, coretest.Seat(0, 0, 1, 2))
			total := 3 * got.BatchPerDevice * (got.AccumulationSteps + 1)
			if total < batch && total <= limits.Max-3*(got.AccumulationSteps+1) || total > limits.Max || got.BatchPerDevice < limits.MinPerDevice || got.BatchPerDevice > limits.MaxPerDevice {
				rt.Fatalf("a batch of %d is tuned to %+v", batch, got)
			}
			before, in = batch, now
		}
	})
}

// The policy asks to be asked again when the epoch ends; and soon, where it is not known how fast the job is.
func TestBatchRuleStands(t *testing.T) {
	rate := func(p *goodputAgent, j *core.Job) float64 { return p.agents[j.ID].curves[0].OneNode[3] }
	for name, tc := range map[string]struct {
		change func(j *core.Job)
		want   func(p *goodputAgent, j *core.Job) float64
	}{
		"as fast as before": {
			func(j *core.Job) { j.ProgressRate, j.Progress, j.ProgressAsOf = 2, 100, 10 },
			func(*goodputAgent, *core.Job) float64 { return 10 + 400/2 },
		},
		"early in an epoch": {
			func(j *core.Job) { j.ProgressRate, j.Progress, j.ProgressAsOf = 2, 1, 10 },
			func(*goodputAgent, *core.Job) float64 { return 10 + (early*500-1)/2 },
		},
		"just started": {
			func(*core.Job) {},
			func(p *goodputAgent, j *core.Job) float64 { return early * 500 / rate(p, j) },
		},
		"tuned": {
			func(j *core.Job) { j.ProgressRate, j.Tuning.BatchPerDevice = 2, 999 },
			func(p *goodputAgent, j *core.Job) float64 { return early * 500 / rate(p, j) },
		},
		"moved": {
			func(j *core.Job) { j.ProgressRate, j.Seats = 2, []core.Seat{coretest.Seat(1, 0, 1, 2, 3)} },
			func(p *goodputAgent, j *core.Job) float64 { return early * 500 / rate(p, j) },
		},
		"in the last epoch": {
			func(j *core.Job) { j.ProgressRate, j.Progress = 2, 600 },
			func(*goodputAgent, *core.Job) float64 { return math.Inf(1) },
		},
		"of unknown length": {
			func(j *core.Job) { j.ProgressRate, j.TotalWork = 2, 0 },
			func(*goodputAgent, *core.Job) float64 { return math.Inf(1) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, j, seats := halves(t)
			respond(t, p, j)
			j.Tuning = tune(t, p, j, seats...)
			tc.change(j)
			respond(t, p, j)
			if j.Tuning.BatchPerDevice != 999 {
				j.Tuning = tune(t, p, j, seats...) // of the second epoch
			}
			tune(t, p, j, seats...)
			if got, want := p.Standing().UntilSeconds, tc.want(p, j); got != want && math.Abs(got-want) > 1e-9*want {
				t.Errorf("stands until %v, want %v", got, want)
			}
		})
	}
}

// A policy that takes over goes on with the batches, and with what the rule noted.
func TestBatchesAreHandedOn(t *testing.T) {
	settings := map[string]any{"rule": ruleAveragedNoise, "epochs": 10}
	p, j := newBatchRule(t, settings), measured(core.Gradients{SquaredNorm: 1, Variance: 3})
	look := func(p *goodputAgent, progress, variance float64) BatchState {
		j.Progress, j.Gradients.Variance = progress, variance
		respond(t, p, j)
		return p.agents[j.ID].batch
	}
	look(p, 0, 4)
	look(p, 120, 5)
	look(p, 280, 9)
	kept, err := p.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	next := newBatchRule(t, settings)
	if err := next.Restore(kept); err != nil {
		t.Fatal(err)
	}
	for step, progress := range []float64{300, 320, 410, 650} {
		want := look(p, progress, float64(10+step))
		if diff := cmp.Diff(want, look(next, progress, float64(10+step))); diff != "" {
			t.Errorf("at %v (-went on +took over):\n%s", progress, diff)
		}
	}
	other := newThroughput(t, nil).(*goodputAgent)
	if err := other.Restore(kept); err != nil {
		t.Fatal(err)
	}
	if got := look(other, 700, 20); got != (BatchState{}) {
		t.Errorf("under no rule any more: %+v", got)
	}
	fresh := newBatchRule(t, settings)
	if kept, err = newThroughput(t, nil).(*goodputAgent).Snapshot(); err != nil || fresh.Restore(kept) != nil {
		t.Fatalf("from another elasticity: %v", err)
	}
	if got := look(fresh, 700, 20); got.Epoch != 7 || got.Batch < limits.Initial {
		t.Errorf("a job that was under no rule: %+v", got)
	}
}

// A round in which no job told anything costs nothing.
func TestBatchRuleAllocatesNothing(t *testing.T) {
	p, j, seats := halves(t)
	v, placements := viewOf(j), []core.Placement{{Job: j.ID, Seats: seats}}
	round := func() {
		if _, err := p.Respond(t.Context(), v, v.Jobs); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Tune(t.Context(), v, placements); err != nil {
			t.Fatal(err)
		}
	}
	round()
	if allocations := testing.AllocsPerRun(100, round); allocations != 0 {
		t.Errorf("%v allocations a round", allocations)
	}
}

// A job that reports no gradients keeps its batch under a rule that looks at them, which is said once.
func TestBatchRuleNotesJobsWithoutGradients(t *testing.T) {
	for rule, noted := range map[string]int{ruleNoise: 1, ruleSchedule: 0} {
		p := newBatchRule(t, map[string]any{"rule": rule, "epochs": 4})
		j := measured(core.Gradients{})
		for _, progress := range []float64{0, 300, 600} {
			j.Progress = progress
			respond(t, p, j)
		}
		if p.ungraded != noted {
			t.Errorf("%s: noted %d times, want %d", rule, p.ungraded, noted)
		}
	}
}

func BenchmarkBatchRuleNewBatch(b *testing.B) {
	p, j := newBatchRule(b, map[string]any{"rule": ruleNoise, "epochs": 100_000}), measured(noisy)
	j.TotalWork = 1e9
	i := 0
	for b.Loop() {
		i++
		j.Progress, j.Gradients = float64(i%90_000)*1e4, core.Gradients{SquaredNorm: 1, Variance: float64(1 + i%20)}
		if i%90_000 == 0 {
			p.agents[j.ID] = nil
		}
		respond(b, p, j)
	}
}
