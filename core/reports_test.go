package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A configuration is as most of its reports say, whatever the first one said.
func TestReportsCorrectAMeasurement(t *testing.T) {
	cases := map[string]struct {
		steps []float64
		want  Measurement
	}{
		"one report":                       {[]float64{1}, Measurement{StepSeconds: 1}},
		"the same again":                   {[]float64{1, 1, 1}, Measurement{StepSeconds: 1, Count: 3}},
		"within what may differ":           {[]float64{1, 1.04, 1.04}, Measurement{StepSeconds: 1, Count: 3}},
		"the first was twice too slow":     {[]float64{2, 1}, Measurement{StepSeconds: 1, Count: 2, Spread: 0.5}},
		"one of many is too slow":          {[]float64{1, 1, 3, 1}, Measurement{StepSeconds: 1, Count: 4, Spread: 0.5}},
		"it is slower for good":            {[]float64{1, 2, 2, 2}, Measurement{StepSeconds: 2, Count: 4, Spread: 0.125}},
		"what is long past is not counted": {append([]float64{9, 9, 9}, make15(1)...), Measurement{StepSeconds: 1, Count: 18}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, j := &state{}, &Job{JobSpec: &JobSpec{ID: 2}}
			for _, step := range tc.steps {
				s.measure(j, Measurement{Nodes: 1, Replicas: 2, PerDevice: 3, PassSeconds: step / 2, StepSeconds: step})
			}
			tc.want.Nodes, tc.want.Replicas, tc.want.PerDevice, tc.want.PassSeconds = 1, 2, 3, tc.want.StepSeconds/2
			if diff := cmp.Diff([]Measurement{tc.want}, j.Measured); diff != "" {
				t.Errorf("measured (-want +got):\n%s", diff)
			}
		})
	}
}

// A pass that is a small part of a step may differ by more than a large one.
func TestReportsOfPasses(t *testing.T) {
	cases := map[string]struct{ pass, want float64 }{
		"by little of the step": {0.088, 0.1},
		"by much of it":         {0.04, 0.04},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, j := &state{}, &Job{JobSpec: &JobSpec{}}
			s.measure(j, Measurement{Replicas: 4, PassSeconds: 0.1, StepSeconds: 1})
			s.measure(j, Measurement{Replicas: 4, PassSeconds: tc.pass, StepSeconds: 1})
			want := []Measurement{{Replicas: 4, PassSeconds: tc.want, StepSeconds: 1, Count: 2}}
			if diff := cmp.Diff(want, j.Measured); diff != "" {
				t.Errorf("measured (-want +got):\n%s", diff)
			}
		})
	}
}

// A job that changes its batch all the time is measured on its first configurations, and goes on to be.
func TestReportsOfManyConfigurations(t *testing.T) {
	s, j := &state{}, &Job{JobSpec: &JobSpec{}}
	for i := range 1200 {
		s.measure(j, Measurement{Replicas: 1, PerDevice: i + 1, PassSeconds: 0.1, StepSeconds: 1})
	}
	for range 2 {
		s.measure(j, Measurement{Replicas: 1, PerDevice: 1000, PassSeconds: 0.1, StepSeconds: 2})
	}
	last := j.Measured[len(j.Measured)-1]
	if len(j.Measured) != 1000 || last.PerDevice != 1000 || last.StepSeconds != 2 || last.Count != 3 {
		t.Errorf("%d configurations, the last one %+v", len(j.Measured), last)
	}
}

func make15(x float64) []float64 {
	list := make([]float64, mostReports)
	for i := range list {
		list[i] = x
	}
	return list
}

// A measurement that rests on several reports counts as so many.
func TestReportsOfSeveral(t *testing.T) {
	s, j := &state{}, &Job{JobSpec: &JobSpec{}}
	s.measure(j, Measurement{Replicas: 1, PassSeconds: 1, StepSeconds: 1, Count: 5})
	s.measure(j, Measurement{Replicas: 1, PassSeconds: 4, StepSeconds: 4, Count: 3})
	s.measure(j, Measurement{Replicas: 2, PassSeconds: 4, StepSeconds: 4})
	want := []Measurement{
		{Replicas: 1, PassSeconds: 1, StepSeconds: 1, Count: 8, Spread: 9.0 / 8}, {Replicas: 2, PassSeconds: 4, StepSeconds: 4},
	}
	if diff := cmp.Diff(want, j.Measured); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
}

// What a job reported is dropped when it ends; a time that differs by exactly what may differ agrees.
func TestReportsOfAnEndedJobAreForgotten(t *testing.T) {
	var s state
	s.init(&Cluster{Nodes: []Node{{Devices: 4}}}, RoundOptions{})
	events := []Event{{Kind: JobSubmitted, Spec: &JobSpec{}}}
	for _, step := range []float64{20, 21, 21} {
		events = append(events, Event{Kind: JobMeasured, Measurement: Measurement{Accelerator: "t4", Nodes: 1, Replicas: 1, PassSeconds: 1, StepSeconds: step}})
	}
	if err := s.observe(Observation{Events: events}); err != nil {
		t.Fatal(err)
	}
	if got := s.view.Jobs[0].Measured; len(got) != 1 || got[0].StepSeconds != 20 || got[0].Spread != 0 || len(s.reports[0]) == 0 {
		t.Errorf("measured %+v, want 20 s without a spread", got)
	}
	if err := s.observe(Observation{Events: []Event{{Kind: JobFinished}}}); err != nil {
		t.Fatal(err)
	}
	if s.reports[0] != nil {
		t.Errorf("kept %+v of a job that ended", s.reports[0])
	}
}
