package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/goodput"
)

// fullStatistics are those of the gradient over the whole data set.
func fullStatistics(m *model, d *data, parameters []float64, batch int) core.Gradients {
	n := float64(len(d.labels))
	g, mean := make([]float64, len(parameters)), make([]float64, len(parameters))
	squares := 0.0
	for i, x := range d.features {
		m.gradient(parameters, x, d.labels[i], g)
		floats.AddScaled(mean, 1/n, g)
		squares += floats.Dot(g, g) / n
	}
	square := floats.Dot(mean, mean)
	return core.Gradients{SquaredNorm: square, Variance: (squares - square) * n / (n - 1) / float64(batch)}
}

func noiseScale(g core.Gradients, batch int) float64 {
	return g.Variance / g.SquaredNorm * float64(batch)
}

// The noise scale that a job reports is that of the whole data set within 15 %, early and late in a training, from
// several replicas and from one. The training stands still meanwhile, for an estimate is an average of the past: see
// the next test for one that moves. Late, some 7 % are due to a data set so small that its batches are no random draws.
func TestNoiseScale(t *testing.T) {
	for _, model := range []string{modelSoftmax, modelMLP} {
		for _, done := range []int{0, 150, 600} {
			folder := t.TempDir()
			args := []string{"-model", model, "-samples", "2000"}
			if done > 0 {
				trained(t, testOptions(t, append(args, "-rate", "0.001", "-iterations", fmt.Sprint(done))...), 1, folder)
			}
			for _, replicas := range []int{1, 4} {
				o := testOptions(t, append(args, "-rate", "1e-9", "-iterations", fmt.Sprint(done+1000))...)
				s := &state{Task: o.task, Parameters: newModel(&o.task).start(o.Seed)}
				if done > 0 {
					s = loaded(t, o, folder)
					s.Statistics = goodput.Tracker{}
				}
				still := t.TempDir()
				if err := s.save(still); err != nil {
					t.Fatal(err)
				}
				s = trained(t, o, replicas, still)
				got := noiseScale(goodput.Report(&s.Statistics), o.Batch)
				want := noiseScale(fullStatistics(newModel(&o.task), makeData(&o.task), s.Parameters, o.Batch), o.Batch)
				t.Logf("%s after %d steps, %d replicas: noise scale %.4g, of the whole data set %.4g (%+.1f %%)", model, done, replicas, got, want, 100*(got/want-1))
				if math.Abs(got/want-1) > 0.15 {
					t.Errorf("%s after %d steps, %d replicas: noise scale %v, of the whole data set %v", model, done, replicas, got, want)
				}
			}
		}
	}
}

// In a training that learns, estimates keep up with those of the whole data set, as long as the noise scale is some
// batches: when the gradient is all noise, nothing tells how small it is.
func TestNoiseScaleOnTheWay(t *testing.T) {
	rates := []string{"0.001"}
	if *figures {
		rates = append(rates, "0.003") // too quick to be followed later than at first
	}
	for _, model := range []string{modelSoftmax, modelMLP} {
		for _, rate := range rates {
			bands := noiseErrors(t, testOptions(t, "-model", model, "-rate", rate, "-iterations", "1e9"))
			for _, band := range slices.Sorted(maps.Keys(bands)) {
				typical := median(bands[band])
				t.Logf("%s at rate %s, noise scale of %d batches and more: %.1f %% off at the median of %d", model, rate, band, 100*typical, len(bands[band]))
				if rate == rates[0] && band <= 4 && !(typical <= 0.15) {
					t.Errorf("%s at rate %s, noise scale of %d batches and more: %.1f %% off", model, rate, band, 100*typical)
				}
			}
		}
	}
}

// noiseErrors trains, and compares the noise scale with that of the whole data set, by how many batches that is.
func noiseErrors(t *testing.T, o *options) map[int][]float64 {
	r, _, err := newTrainer(o, agent.Environment{Replicas: 1, Nodes: 1}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if r.ring, err = joinRing(t.Context(), "", 0, 1); err != nil {
		t.Fatal(err)
	}
	r.setting.shares[0], r.setting.passes = 16, 4
	bands := make(map[int][]float64)
	for step := range 3000 {
		if _, err := r.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if step >= 50 && step%40 == 0 {
			want := noiseScale(fullStatistics(r.model, r.data, r.state.Parameters, o.Batch), 1)
			got := noiseScale(goodput.Report(&r.state.Statistics), 1)
			band := int(math.Exp2(math.Floor(math.Log2(want))))
			bands[band] = append(bands[band], math.Abs(got/want-1))
		}
	}
	return bands
}
