package goodput

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/refdata"
)

type golden struct {
	Apps map[string]struct {
		Init, Max          int
		MinLocal, MaxLocal int
	}
	Optimize []struct {
		App             string
		Params          vector
		Grad            [2]float64
		Nodes, Replicas int
		Goodput         float64
		Atomic, Accum   int
	}
	Fit []struct {
		App       string
		Profile   [][5]float64
		Objective float64 `json:"objective_after_prior"`
		Params    vector
	}
}

func readGolden(t testing.TB) golden {
	t.Helper()
	text, err := os.ReadFile(refdata.Path(t, "reference", "pollux-osdi21", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	var limits struct {
		Apps map[string]struct {
			MinLocal int `json:"min_local"`
			MaxLocal int `json:"max_local"`
		}
	}
	if err := json.Unmarshal(text, &limits); err != nil {
		t.Fatal(err)
	}
	for name, l := range limits.Apps {
		app := g.Apps[name]
		app.MinLocal, app.MaxLocal = l.MinLocal, l.MaxLocal
		g.Apps[name] = app
	}
	return g
}

func TestBestBatchesArePublished(t *testing.T) {
	g := readGolden(t)
	if len(g.Optimize) != 180 {
		t.Fatalf("%d optimisations, want 180", len(g.Optimize))
	}
	for i, o := range g.Optimize {
		app := g.Apps[o.App]
		m := Model{
			Performance: performanceOf(o.Params),
			Gradients:   Gradients{SquaredNorm: o.Grad[0], Variance: o.Grad[1]},
			Limits:      core.BatchSpec{Initial: app.Init, Max: app.Max, MinPerDevice: app.MinLocal, MaxPerDevice: app.MaxLocal},
		}
		got := m.Best(o.Nodes, o.Replicas)
		curves := NewCurves(NewGrid(m.Limits, o.Replicas), m.Performance, m.Gradients, o.Replicas)
		if kept := curves.Choices[min(o.Nodes, 2)-1][o.Replicas-1]; kept != got {
			t.Errorf("%d: curves choose %+v, want %+v", i, kept, got)
		}
		if got.PerDevice != o.Atomic || got.Accumulation != o.Accum || math.Abs(got.Goodput/o.Goodput-1) > 1e-9 {
			t.Errorf("%d: %s on %d nodes, %d replicas: %+v, want batch %d, %d accumulations, goodput %v",
				i, o.App, o.Nodes, o.Replicas, got, o.Atomic, o.Accum, o.Goodput)
		}
	}
}

func measurements(profile [][5]float64) []core.Measurement {
	var seen []core.Measurement
	for _, p := range profile {
		seen = append(seen, core.Measurement{Nodes: int(p[0]), Replicas: int(p[1]), PerDevice: int(p[2]), PassSeconds: p[3], StepSeconds: p[4]})
	}
	return seen
}

func TestFitsAreAsGoodAsPublished(t *testing.T) {
	g := readGolden(t)
	if len(g.Fit) != 30 {
		t.Fatalf("%d fits, want 30", len(g.Fit))
	}
	for i, o := range g.Fit {
		seen := measurements(o.Profile)
		theirs := objective(seen, performanceOf(o.Params))
		got := objective(seen, Fit(seen))
		t.Logf("%d: %s, %d measurements: %.6f, published %.6f (%.6f)", i, o.App, len(seen), got, o.Objective, theirs)
		if got > o.Objective+1e-3 {
			t.Errorf("%d: %s, %d measurements: objective %v, published %v", i, o.App, len(seen), got, o.Objective)
		}
	}
}

// BenchmarkFit fits each of the 30, and tells the median over single fits, for some take several times as long.
func BenchmarkFit(b *testing.B) {
	g := readGolden(b)
	problems := make([][]core.Measurement, len(g.Fit))
	for i, o := range g.Fit {
		problems[i] = measurements(o.Profile)
	}
	var times []float64
	for b.Loop() {
		for _, seen := range problems {
			before := b.Elapsed()
			Fit(seen)
			times = append(times, float64((b.Elapsed()-before).Nanoseconds())/1e3)
		}
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2], "median-µs/fit")
}
