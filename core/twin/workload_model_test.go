package twin_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/twin"
	"github.com/quartet-sched/quartet/core/workload"
)

// describe is all that a model says of a job on some devices.
func describe(m workload.Model, c workload.Running) string {
	var b strings.Builder
	for p := range m.Phases() {
		fmt.Fprintf(&b, "%v at %v, %v steps; ", m.PhaseEnd(p), m.Rate(p, c), m.StepsLeft(p))
	}
	return b.String()
}

// shown is a world as text.
func shown(w *twin.World) string {
	var b strings.Builder
	one := workload.Running{Shape: []int{1}, Accelerators: []string{"v100"}, Replicas: 1}
	two := workload.Running{Shape: []int{1, 1}, Accelerators: []string{"v100", "v100"}, Replicas: 2}
	for _, j := range w.Jobs {
		fmt.Fprintln(&b, j.ID, describe(j.Model, one), describe(j.Model, two))
	}
	for _, j := range w.Arrivals {
		fmt.Fprintln(&b, j.Spec.Name, j.Spec.SubmitSeconds, j.Spec.Requested, describe(j.Model, one), describe(j.Model, two))
	}
	fmt.Fprintln(&b, w.Nodes, w.Seed, w.Config)
	return b.String()
}

// checkWorld finds what no world may be.
func checkWorld(v *core.View, w *twin.World) error {
	at := 0
	for id, j := range v.Jobs {
		if j == nil {
			continue
		}
		if at >= len(w.Jobs) || w.Jobs[at].ID != core.JobID(id) {
			return fmt.Errorf("nothing is believed of job %d", id)
		}
		m := w.Jobs[at].Model
		at++
		last := j.WorkDone(v.NowSeconds)
		if total := m.PhaseEnd(m.Phases() - 1); !(total > last) || math.IsInf(total, 1) {
			return fmt.Errorf("job %d did %v of %v", id, last, total)
		}
		for p := 1; p < m.Phases(); p++ {
			if !(m.PhaseEnd(p) > m.PhaseEnd(p-1)) {
				return fmt.Errorf("phases of job %d end at %v and %v", id, m.PhaseEnd(p-1), m.PhaseEnd(p))
			}
		}
	}
	if at != len(w.Jobs) {
		return fmt.Errorf("%d jobs have not ended, and something is believed of %d", at, len(w.Jobs))
	}
	last := v.NowSeconds
	for i := range w.Arrivals {
		if s := w.Arrivals[i].Spec.SubmitSeconds; !(s > v.NowSeconds && s >= last) {
			return fmt.Errorf("arrival %d at %v after %v", i, s, last)
		} else {
			last = s
		}
		if m := w.Arrivals[i].Model; !(m.PhaseEnd(m.Phases()-1) > 0) {
			return fmt.Errorf("arrival %d has nothing to do", i)
		}
	}
	last = v.NowSeconds
	for _, c := range w.Nodes {
		if c.AtSeconds < last {
			return fmt.Errorf("node %d changes at %v after %v", c.Node, c.AtSeconds, last)
		}
		last = c.AtSeconds
	}
	return nil
}

var ofView = cmp.Options{cmpopts.IgnoreUnexported(core.View{}), cmpopts.EquateNaNs()}

// copied is a view of which nothing is shared that changes.
func copied(v *core.View) *core.View {
	c := *v
	c.Jobs = nil
	for _, j := range v.Jobs {
		if j == nil {
			c.Jobs = append(c.Jobs, nil)
			continue
		}
		of := *j
		of.Measured = append([]core.Measurement(nil), j.Measured...)
		of.Seats = append([]core.Seat(nil), j.Seats...)
		spec := *j.JobSpec
		of.JobSpec = &spec
		c.Jobs = append(c.Jobs, &of)
	}
	return &c
}

// Whatever is believed of whichever run: the same arguments give the same world, of a clone as well, the view stays as it is, and what is believed can be.
func TestWorldsOfAnyRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := fmt.Sprintf("version: 1\nname: twin\nseed: %d\ncluster: {nodes: [{name: n, count: 3, accelerator: v100, devices: 4}]}\n"+
			"workload: {type: generated, config: {jobs: 25, span: 2h}}\nround: {interval: 60s}\n"+
			"estimate: {source: %s}\nbackend: {type: simulator, config: {restart_overhead: 30s, failures: {mtbf: %s, repair: 10m}, locality_penalty: %v}}\n"+
			"pipeline: {allocation: {type: %s}}",
			rapid.IntRange(1, 1000).Draw(t, "seed"),
			rapid.SampledFrom([]string{"declared", "none", "noisy, sigma: 1"}).Draw(t, "estimate"),
			rapid.SampledFrom([]string{"0s", "5h"}).Draw(t, "mtbf"), rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "penalty"),
			rapid.SampledFrom([]string{"fifo", "las"}).Draw(t, "allocation"))
		c, err := quartet.Parse(quartet.Builtins(), "twin.yaml", config, quartet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := twin.WorkloadModelOptions{
			Work:     rapid.SampledFrom([]string{"", twin.WorkHistory, twin.WorkDrawn}).Draw(t, "work"),
			Arrivals: rapid.SampledFrom([]string{"", twin.ArrivalsRecent}).Draw(t, "arrivals"),
		}
		from := rapid.IntRange(1, 40).Draw(t, "from")
		every := rapid.IntRange(20, 60).Draw(t, "every")
		horizon := rapid.SampledFrom([]float64{0, 3600, math.Inf(1)}).Draw(t, "horizon")
		b := twin.NewWorkloadModel(o)
		c.Observers = append(c.Observers, observer(func(r *core.Report) error {
			if r.View.Round < from {
				return nil
			}
			if err := b.ObserveRound(r); err != nil || r.View.Round%every != 0 {
				return err
			}
			before, clone := copied(r.View), b.Clone()
			first := shown(b.Draw(r.View, 7, 3, horizon))
			b.Draw(r.View, 7, 0, horizon)
			if err := checkWorld(r.View, b.Draw(r.View, 7, 0, horizon)); err != nil {
				return err
			}
			if err := checkWorld(r.View, b.Draw(r.View, 7, 3, horizon)); err != nil {
				return err
			}
			if again := shown(b.Draw(r.View, 7, 3, horizon)); again != first {
				return fmt.Errorf("another world (-first +again):\n%s", cmp.Diff(first, again))
			}
			if other := shown(clone.Draw(r.View, 7, 3, horizon)); other != first {
				return fmt.Errorf("a clone has another world (-first +clone):\n%s", cmp.Diff(first, other))
			}
			if other := shown(b.Draw(r.View, 7, 4, horizon)); other == first && len(before.Active) > 0 {
				return fmt.Errorf("draws 3 and 4 are the same")
			}
			if diff := cmp.Diff(before, copied(r.View), ofView); diff != "" {
				return fmt.Errorf("the view changed (-before +after):\n%s", diff)
			}
			return nil
		}))
		if _, err := c.Simulate(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// view is a report of a round in which something happened.
func reportOf(v *core.View, events ...core.Event) *core.Report {
	return &core.Report{View: v, Events: events}
}

// The rate that a job was seen to have where it runs is what is believed of it, whatever was believed before.
func TestTheRateThatWasSeenIsBelieved(t *testing.T) {
	batch := core.BatchSpec{Requested: 128, Initial: 128, Max: 4096, MinPerDevice: 16, MaxPerDevice: 512}
	times := &core.StepTimes{OneNode: []float64{1, 0.6, 0.4, 0.3}}
	cases := map[string]*coretest.JobBuilder{
		"of known length":        coretest.MakeJob("a").Replicas(2).Work(1000),
		"that trains":            coretest.MakeJob("a").Application("x").Elastic(1, 2, 4).Batch(batch).Work(1000),
		"with known step times":  coretest.MakeJob("a").Elastic(1, 2, 4).Batch(batch).StepTimes(times, 1000).Work(1000),
		"rigid, with step times": coretest.MakeJob("a").Elastic(2, 2, 2).StepTimes(times, 1000).Work(1000),
	}
	for name, job := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "v100", 4).Obj()).Now(60).Round(2).
				Jobs(job.ID(0).Running(0, coretest.Seat(0, 0, 1)).Progress(10, 3)).Obj()
			b := twin.NewWorkloadModel(twin.WorkloadModelOptions{})
			m := core.Measurement{Nodes: 1, Replicas: 2, PerDevice: 64, PassSeconds: 0.1, StepSeconds: 0.2}
			report := reportOf(v, core.Event{Kind: core.JobProgressed, Progress: 10, Rate: 3, FromSeconds: 60, AtSeconds: 60},
				core.Event{Kind: core.JobMeasured, Measurement: m, Gradients: core.Gradients{SquaredNorm: 1, Variance: 2}, AtSeconds: 60})
			if err := b.ObserveRound(reportOf(v)); err != nil {
				t.Fatal(err)
			}
			if err := b.ObserveRound(report); err != nil {
				t.Fatal(err)
			}
			for draw := range 3 {
				w := b.Draw(v, 1, draw, 0)
				here := workload.Running{Shape: []int{2}, Accelerators: []string{"v100"}, Replicas: 2}
				if got := w.Jobs[0].Model.Rate(0, here); math.Abs(got-3) > 1e-9 {
					t.Errorf("draw %d: the rate is %v, want 3", draw, got)
				}
			}
		})
	}
}

// A job goes on reporting of itself what is believed of it.
func TestJobsMeasureWhatIsBelieved(t *testing.T) {
	batch := core.BatchSpec{Requested: 128, Initial: 128, Max: 4096, MinPerDevice: 16, MaxPerDevice: 512}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "v100", 4).Obj()).Now(60).Round(1).
		Jobs(coretest.MakeJob("a").ID(0).Application("x").Elastic(1, 2, 4).Batch(batch).Work(1000).Waiting(),
			coretest.MakeJob("b").ID(1).Application("y").Elastic(1, 2, 4).Batch(batch).Work(1000).Waiting()).Obj()
	b := twin.NewWorkloadModel(twin.WorkloadModelOptions{})
	seen := core.Measurement{Nodes: 1, Replicas: 2, PerDevice: 64, PassSeconds: 0.1, StepSeconds: 0.2}
	if err := b.ObserveRound(reportOf(v, core.Event{Kind: core.JobMeasured, Measurement: seen, Gradients: core.Gradients{SquaredNorm: 2, Variance: 4}})); err != nil {
		t.Fatal(err)
	}
	w := b.Draw(v, 1, 0, 0)
	here := workload.Running{Shape: []int{2}, Accelerators: []string{"v100"}, Replicas: 2}
	measurer, measures := w.Jobs[0].Model.(workload.Measurer)
	if !measures {
		t.Fatal("a job of an application that was measured does not measure")
	}
	m, g, ok := measurer.Measure(0, here)
	if !ok || m.PerDevice != 64 || math.Abs(m.StepSeconds/0.2-1) > 0.05 || math.Abs(m.PassSeconds/0.1-1) > 0.05 || math.Abs(g.Variance/g.SquaredNorm/2-1) > 1e-9 {
		t.Errorf("it measures %+v and %+v, %v", m, g, ok)
	}
	if _, measures := w.Jobs[1].Model.(workload.Measurer); measures {
		t.Error("a job of an application of which nothing is known measures something")
	}
}
