package control

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// A description tells the latest, the lowest and the highest of what a job reported, also once it has ended. A step that is told again takes back what
// was told from it on.
func TestDescribeTellsWhatAJobReported(t *testing.T) {
	b := NewBoard(cluster())
	w := newWorld(t, b)
	id := w.submit("trial", 2)
	w.round()
	told := func(metric string, step, value float64) {
		w.report(core.Event{Kind: core.JobReported, Job: id, Metric: metric, Step: step, Value: value})
	}
	want := func(state string, metrics ...*controlv1.Metric) {
		t.Helper()
		_, path := serve(t, &fake{}, b, discard)
		d, err := dial(t, path).Describe(t.Context(), "trial")
		must(t, err)
		if d.GetJob().GetState() != state {
			t.Errorf("it is %s, want %s", d.GetJob().GetState(), state)
		}
		if diff := cmp.Diff(metrics, d.GetJob().GetMetrics(), protocmp.Transform(), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	want("running")
	told("loss", 1, 3)
	told("accuracy", 1, 0.5)
	told("loss", 2, 1)
	told("loss", 3, 2)
	w.round()
	loss := &controlv1.Metric{Name: "loss", Step: 3, Value: 2, AtSeconds: 10, Lowest: 1, LowestStep: 2, Highest: 3, HighestStep: 1, Reports: 3}
	accuracy := &controlv1.Metric{Name: "accuracy", Step: 1, Value: 0.5, AtSeconds: 10, Lowest: 0.5, LowestStep: 1, Highest: 0.5, HighestStep: 1, Reports: 1}
	want("running", loss, accuracy)
	w.report(core.Event{Kind: core.JobProgressed, Job: id, Progress: 1, FromSeconds: w.now})
	w.round()
	want("running", loss, accuracy)
	told("loss", 2, 2.5)
	w.round()
	loss = &controlv1.Metric{Name: "loss", Step: 2, Value: 2.5, AtSeconds: 30, Lowest: 2.5, LowestStep: 2, Highest: 3, HighestStep: 1, Reports: 2}
	want("running", loss, accuracy)
	told("loss", 3, math.NaN())
	told("diverged", 1, math.NaN())
	w.round()
	loss.Step, loss.Value, loss.AtSeconds, loss.Reports = 3, math.NaN(), 40, 3 // it is neither the lowest nor the highest
	diverged := &controlv1.Metric{Name: "diverged", Step: 1, Value: math.NaN(), AtSeconds: 40, Lowest: math.NaN(), LowestStep: 1, Highest: math.NaN(), HighestStep: 1, Reports: 1}
	want("running", loss, accuracy, diverged)
	w.report(core.Event{Kind: core.JobFinished, Job: id})
	w.round()
	want("completed", loss, accuracy, diverged)
}

// What is taken over from before is what would be summed up anew.
func TestMetricsAreSummedUpAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := core.NewJob(&core.JobSpec{})
		var kept []metric
		for at := range rapid.IntRange(1, 20).Draw(t, "times") {
			for range rapid.IntRange(0, 3).Draw(t, "reports") {
				j.Reported = reportedBy(j.Reported, rapid.SampledFrom([]string{"loss", "accuracy"}).Draw(t, "metric"), core.Point{
					Step: float64(rapid.IntRange(0, 9).Draw(t, "step")), Value: rapid.SampledFrom([]float64{-2, -1, 0, 1, 2, math.NaN()}).Draw(t, "value"), AtSeconds: float64(at),
				})
			}
			kept = metricsOf(j, kept)
			if diff := cmp.Diff(metricsOf(j, nil), kept, cmp.AllowUnexported(metric{}), cmp.Transformer("list", func(l []metric) []metric { return append([]metric{}, l...) })); diff != "" {
				t.Fatalf("-anew +kept:\n%s", diff)
			}
		}
	})
}

// reportedBy adds a point as a pipeline does.
func reportedBy(list []core.Series, name string, p core.Point) []core.Series {
	for i := range list {
		if s := &list[i]; s.Metric == name {
			n := len(s.Points)
			for n > 0 && s.Points[n-1].Step >= p.Step {
				n--
			}
			s.Points = append(s.Points[:n], p)
			return list
		}
	}
	return append(list, core.Series{Metric: name, Points: []core.Point{p}})
}
