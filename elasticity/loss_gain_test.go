package elasticity

import (
	"context"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

func newLossGain(t rapid.TB, settings map[string]any) core.Elasticity {
	t.Helper()
	config, problems := NewLossGain().Decode(settings)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	made, err := NewLossGain().New(config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// reporting is a job that has run on two devices since the start, of up to four, and reported a value of a metric every 60 s.
func reporting(metric string, values ...float64) *core.Job {
	j := coretest.MakeJob("job").Elastic(1, 2, 4).Running(0, coretest.Seat(0, 0, 1)).Obj()
	if len(values) > 0 {
		j.Reported = []core.Series{{Metric: metric}}
	}
	for i, value := range values {
		j.Reported[0].Points = append(j.Reported[0].Points, core.Point{Step: float64(i + 1), Value: value, AtSeconds: 60 * float64(i+1)})
	}
	j.AsOfSeconds = 60 * float64(len(values))
	j.Executed, j.Attained = j.AsOfSeconds, 2*j.AsOfSeconds
	return j
}

// gains are what a job gains in the horizon on one replica and more.
func gains(t rapid.TB, settings map[string]any, j *core.Job) []float64 {
	t.Helper()
	return gainsAt(t, settings, j, j.AsOfSeconds)
}

// gainsAt is gains at a moment.
func gainsAt(t rapid.TB, settings map[string]any, j *core.Job, now float64) []float64 {
	t.Helper()
	horizon := 60.0
	if h, set := settings["horizon"]; set {
		horizon = map[any]float64{"120s": 120, "60s": 60}[h]
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 8).Obj()).Now(now).Obj()
	v.Jobs = []*core.Job{j}
	got, err := newLossGain(t, settings).Respond(context.Background(), v, v.Jobs)
	if err != nil || len(got) != 1 {
		t.Fatalf("%d responses, error %v", len(got), err)
	}
	if r := got[0]; r.MinReplicas != 1 || r.MaxReplicas != 4 || r.SingleDeviceRate != 1 || !math.IsNaN(r.RemainingWork) || len(r.Curves) != 1 {
		t.Fatalf("response %+v", r)
	}
	var rates []float64
	for n := 1; n <= 4; n++ {
		rates = append(rates, horizon*got[0].Rate(0, n, 8))
	}
	return rates
}

// By hand. It does a step of the training in 60 s on two devices, and scales perfectly as far as is known: half a step on one device, one and a half on three, two on four.
func TestLossGain(t *testing.T) {
	twice := map[string]any{"horizon": "120s"}
	restart := map[string]any{"restart": "30s"}
	for name, tc := range map[string]struct {
		settings map[string]any
		job      *core.Job
		want     []float64
	}{
		// 2k/(1+k) for k steps
		"nothing reported":  {nil, reporting("loss"), []float64{2. / 3, 1, 1, 1}}, // it was submitted for two devices: more are no faster yet
		"one report":        {nil, reporting("loss", 8), []float64{2. / 3, 1, 1, 1}},
		"nobody looks at":   {nil, reporting("perplexity", 8, 4, 2, 1), []float64{0.25 / 1.125, 0.5 / 1.25, 0.5 / 1.25, 0.5 / 1.25}}, // a quarter of a step, for none came in 240 s
		"two reports":       {nil, reporting("loss", 8, 4), []float64{0.5, 1, 1, 1}},                                                 // on the line through them
		"it halves":         {nil, reporting("loss", 8, 4, 2, 1), []float64{(1 - math.Sqrt(0.5)) / 4, 0.5 / 4, 0.5 / 4, 0.5 / 4}},
		"twice as far":      {twice, reporting("loss", 8, 4, 2, 1), []float64{0.5 / 4, 0.75 / 4, 0.75 / 4, 0.75 / 4}},
		"an accuracy":       {nil, reporting("accuracy", 0, 0.5, 0.75, 0.875), []float64{(0.125 - 0.125*math.Sqrt(0.5)) / 0.5, 0.0625 / 0.5, 0.0625 / 0.5, 0.0625 / 0.5}},
		"an accuracy falls": {nil, reporting("accuracy", 0.9, 0.8, 0.4, 0.1), []float64{0, 0, 0, 0}},
		"a loss rises":      {nil, reporting("loss", 1, 2, 4, 8), []float64{0, 0, 0, 0}},
		"equal losses":      {nil, reporting("loss", 3, 3, 3, 3), []float64{0, 0, 0, 0}},
		"it diverges":       {nil, reporting("loss", 8, 4, 2, math.NaN()), []float64{0, 0, 0, 0}},
		"at once":           {nil, reporting("loss", math.NaN()), []float64{0, 0, 0, 0}},
		"an accuracy too":   {nil, reporting("accuracy", 0, 0.5, math.NaN()), []float64{0, 0, 0, 0}},
		"finite again":      {nil, reporting("loss", 8, math.NaN(), 2), []float64{1. / 3, 2. / 3, 2. / 3, 2. / 3}}, // it did two steps to the first report, as to the second that is finite
		"a change costs":    {restart, reporting("loss", 8, 4), []float64{0.25, 1, 0.5, 0.5}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, got := range gains(t, tc.settings, tc.job) {
				if math.Abs(got-tc.want[i]) > 1e-5 {
					t.Errorf("%v on %d replicas, want %v", got, i+1, tc.want[i])
				}
				if !(got > 0) {
					t.Errorf("%v on %d replicas: it could not run", got, i+1)
				}
			}
		})
	}
}

// Of a job that measured twice as long a step on one device as on two, four are twice as fast again; of one whose steps take as long on both, nobody gains by more.
func TestLossGainScales(t *testing.T) {
	measure := func(one, two float64) *core.Job {
		j := reporting("loss", 8, 4)
		j.Batch = core.BatchSpec{Requested: 8, Initial: 8, Max: 8, MinPerDevice: 1, MaxPerDevice: 8}
		j.Measured = []core.Measurement{{Nodes: 1, Replicas: 1, PerDevice: 8, StepSeconds: one}, {Nodes: 1, Replicas: 2, PerDevice: 4, StepSeconds: two}}
		return j
	}
	for name, tc := range map[string]struct {
		job  *core.Job
		want []float64
	}{
		"perfectly":       {measure(2, 1), []float64{0.5, 1, 1.5, 2}},
		"half of it":      {measure(2, 1.5), []float64{0.75, 1, 1.5 / (1./3 + 1), 1.5 / 1.25}}, // 1/a + 1
		"not at all":      {measure(2, 2), []float64{1, 1, 1, 1}},
		"more are slower": {measure(2, 3), []float64{1, 1, 1, 1}},
		"beyond perfect":  {measure(4, 1), []float64{0.5, 1, 1.5, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, got := range gains(t, nil, tc.job) {
				if math.Abs(got-tc.want[i]) > 1e-5 {
					t.Errorf("%v on %d replicas, want %v", got, i+1, tc.want[i])
				}
			}
		})
	}
}

// A job is judged by the first metric of the list that it reports, weighs as it weighs, and what it told before it was thrown back to a checkpoint is gone, as the pipeline has it.
func TestLossGainNeighbours(t *testing.T) {
	both := reporting("accuracy", 0.1, 0.5, 0.5, 0.5)
	both.Reported = append(both.Reported, reporting("loss", 8, 4, 2, 1).Reported...)
	alone := gains(t, nil, reporting("loss", 8, 4, 2, 1))
	for i, got := range gains(t, nil, both) {
		if got != alone[i] {
			t.Errorf("%v of both metrics on %d replicas, %v of the loss alone", got, i+1, alone[i])
		}
	}
	for i, got := range gains(t, map[string]any{"metrics": []any{"accuracy"}}, both) {
		if got > 0.01 {
			t.Errorf("%v by an accuracy that stands still, on %d replicas", got, i+1)
		}
	}
	heavy := reporting("loss", 8, 4, 2, 1)
	heavy.Weight = 10
	for i, got := range gains(t, nil, heavy) {
		if math.Abs(got-10*alone[i]) > 1e-9 {
			t.Errorf("%v at ten times the weight on %d replicas, %v at one", got, i+1, alone[i])
		}
	}
	stalled := reporting("loss", 8, 4, 2, 1)
	stalled.AsOfSeconds, stalled.Executed, stalled.Attained = 480, 480, 960 // it told the last one 240 s ago
	for i, got := range gains(t, nil, stalled) {
		if got >= alone[i] {
			t.Errorf("%v on %d replicas of a job that has not reported for long, %v of one that just did", got, i+1, alone[i])
		}
	}
}

// The unit of a loss, an offset and the unit of its steps make no difference. A loss that changes ten times as much does not either.
func TestLossGainHasNoUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 20).Draw(t, "reports")
		var values, other []float64
		scale := rapid.SampledFrom([]float64{0.1, 1, 10, 1000}).Draw(t, "scale")
		offset := rapid.SampledFrom([]float64{0, 5, -3}).Draw(t, "offset")
		for i := range n {
			x := 1/float64(i+1) + 0.1*rapid.Float64Range(0, 1).Draw(t, "noise")
			values, other = append(values, x), append(other, scale*x+offset)
		}
		a, b := reporting("loss", values...), reporting("loss", other...)
		for i := range b.Reported[0].Points {
			b.Reported[0].Points[i].Step *= 100
		}
		want := gains(t, nil, a)
		for i, got := range gains(t, nil, b) {
			if math.Abs(got-want[i]) > 1e-3*math.Max(want[i], 0.01) {
				t.Errorf("%v on %d replicas, in another unit %v", want[i], i+1, got)
			}
		}
	})
}

// Whatever is reported, gains are amounts that do not fall as replicas are added to a job that keeps its batch and scales by the model.
func TestLossGainsGrow(t *testing.T) {
	value := rapid.OneOf(rapid.Float64Range(0, 3), rapid.SampledFrom([]float64{0, 1e300, -1e300, 1e-300}))
	rapid.Check(t, func(t *rapid.T) {
		j := reporting(rapid.SampledFrom([]string{"loss", "accuracy"}).Draw(t, "metric"), rapid.SliceOfN(value, 0, 30).Draw(t, "values")...)
		before := 0.0
		for i, got := range gains(t, nil, j) {
			if !(got >= before) || math.IsInf(got, 1) || got == 0 {
				t.Fatalf("%v on %d replicas, after %v", got, i+1, before)
			}
			before = got
		}
	})
}

// What a job ran and attained since it last changed counts up to its last report, by the devices that it holds.
func TestLossGainCountsUpToTheLastReport(t *testing.T) {
	for _, share := range []int{0, 500} {
		build := func(asOf float64) *core.Job {
			b := coretest.MakeJob("job").Elastic(1, 2, 4).Running(0, coretest.Seat(0, 0, 1))
			if share > 0 {
				b = b.Share(share)
			}
			j := b.Obj()
			j.Reported = reporting("loss", 4, 3, 2.5, 2.25).Reported
			held := 2 * j.Part()
			j.AsOfSeconds, j.Executed, j.Attained = asOf, asOf, 50*j.Part()+held*(asOf-50) // on one device for the first 50 s
			return j
		}
		want := gainsAt(t, nil, build(240), 240)
		for _, asOf := range []float64{60, 100, 200} {
			for i, got := range gainsAt(t, nil, build(asOf), 240) {
				if math.Abs(got-want[i]) > 1e-9*want[i] {
					t.Errorf("share %d, changed last at %v s: %v on %d replicas, want %v", share, asOf, got, i+1, want[i])
				}
			}
		}
	}
}

// Only how far reports are apart counts, not at which step a job began to report; and a change over twice as many steps is half as large.
func TestLossGainMeasuresChangesByTheirSteps(t *testing.T) {
	at := func(steps []float64, values ...float64) []float64 {
		j := reporting("loss", values...)
		for i := range steps {
			j.Reported[0].Points[i].Step = steps[i]
		}
		return gains(t, nil, j)
	}
	early, late := at([]float64{1, 2}, 4, 3), at([]float64{101, 102}, 4, 3)
	for i := range early {
		if math.Abs(early[i]-late[i]) > 1e-9*early[i] {
			t.Errorf("%v on %d replicas, of one that reported later %v", early[i], i+1, late[i])
		}
	}
}

func TestLossGainRefusesSettings(t *testing.T) {
	for name, tc := range map[string]struct {
		settings map[string]any
		want     string
	}{
		"no metrics":         {map[string]any{"metrics": []any{}}, "metrics: is empty"},
		"no time to gain in": {map[string]any{"restart": "60s"}, "restart: leaves nothing of the horizon"},
		"no horizon":         {map[string]any{"horizon": "0s"}, "horizon"},
		"a batch":            {map[string]any{"batch": "largest"}, "batch"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := NewLossGain().Decode(tc.settings)
			if err := problems.Err(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}
