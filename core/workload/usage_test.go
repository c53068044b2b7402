package workload

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// Amounts lie evenly between their bounds, are the same whatever else is drawn, and those that jobs tell stay.
func TestSampleDrawsUsage(t *testing.T) {
	const n = 4000
	w := &Workload{}
	for i := range n {
		job := newDurationJob(fmt.Sprintf("j%d", i), float64(i), 60, 1)
		if job.Spec.ID = core.JobID(i); i == 7 {
			job.Spec.Utilisation, job.Spec.DeviceMemoryGB, job.Spec.SlowdownTolerance = 0.875, 80, 0.5
		}
		w.Jobs = append(w.Jobs, job)
	}
	draw := func(u Usage, jobs int) []Job {
		sample := DefaultSample()
		sample.Usage, sample.Window.Jobs = u, jobs
		if !sample.Draws() || sample.Whole() || len(sample.Check()) > 0 {
			t.Fatalf("a sample that draws %+v is none, or wrong: %v", u, sample.Check())
		}
		got, err := sample.Apply(w, 1)
		if err != nil {
			t.Fatal(err)
		}
		return got.Jobs
	}
	all := draw(Usage{0.25, 0.75, 2, 10, 0.125, 0.375}, 0)
	for name, of := range map[string]struct {
		least, most, told float64
		get               func(*core.JobSpec) float64
	}{
		"utilisation": {0.25, 0.75, 0.875, func(s *core.JobSpec) float64 { return s.Utilisation }},
		"memory":      {2, 10, 80, func(s *core.JobSpec) float64 { return s.DeviceMemoryGB }},
		"tolerance":   {0.125, 0.375, 0.5, func(s *core.JobSpec) float64 { return s.SlowdownTolerance }},
	} {
		low, high, sum := math.Inf(1), 0.0, 0.0
		for i := range all {
			x := of.get(&all[i].Spec)
			if i == 7 {
				if x != of.told {
					t.Errorf("%s that was told as %v is %v", name, of.told, x)
				}
				continue
			}
			low, high, sum = min(low, x), max(high, x), sum+x
		}
		width := of.most - of.least
		if low < of.least || high > of.most || low > of.least+width/100 || high < of.most-width/100 || math.Abs(sum/(n-1)-(of.least+of.most)/2) > width/30 {
			t.Errorf("%s from %v to %v, mean %v", name, low, high, sum/(n-1))
		}
	}
	if w.Jobs[0].Spec.Utilisation != 0 {
		t.Error("the workload was changed")
	}
	alone := draw(Usage{MostTolerance: 0.375, LeastTolerance: 0.125}, 10)
	for i := range alone {
		if got, want := alone[i].Spec, all[i].Spec; got.SlowdownTolerance != want.SlowdownTolerance || i != 7 && (got.Utilisation != 0 || got.DeviceMemoryGB != 0) {
			t.Errorf("job %d tells %v, %v and %v", i, got.Utilisation, got.DeviceMemoryGB, got.SlowdownTolerance)
		}
	}
	fixed := draw(Usage{LeastUtilisation: 1, MostUtilisation: 1}, 0)
	if got := fixed[3].Spec.Utilisation; got != 1 {
		t.Errorf("between 1 and 1 it is %v", got)
	}
}

func TestUsageBounds(t *testing.T) {
	sample := DefaultSample()
	sample.Usage = Usage{LeastUtilisation: 0.5, LeastDeviceMemoryGB: 3, MostDeviceMemoryGB: 2, LeastTolerance: 0.1, MostTolerance: 0.1}
	want := core.Diagnostics{
		{Path: "usage.least_utilisation", Summary: "must be at most most_utilisation, got 0.5 and 0"},
		{Path: "usage.least_device_memory_gb", Summary: "must be at most most_device_memory_gb, got 3 and 2"},
	}
	if diff := cmp.Diff(want, sample.Check()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
