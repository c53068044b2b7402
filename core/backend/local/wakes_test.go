package local

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// A report is told within seconds even where no policy follows reports, on the grid of rounds if there is one.
func TestWakes(t *testing.T) {
	reported := core.Event{Kind: core.JobReported, AtSeconds: 12}
	cases := map[string]struct {
		event core.Event
		wake  core.Wake
		want  float64
	}{
		"an end, on events":                {core.Event{Kind: core.JobFinished, AtSeconds: 12}, core.Wake{OnEvents: true, IntervalSeconds: 10}, 12},
		"an end, on the grid":              {core.Event{Kind: core.JobFinished, AtSeconds: 12}, core.Wake{IntervalSeconds: 10}, 20},
		"progress":                         {core.Event{Kind: core.JobProgressed, AtSeconds: 12}, core.Wake{OnEvents: true}, math.Inf(1)},
		"a report that is followed":        {reported, core.Wake{OnEvents: true, OnReports: true}, 12},
		"the same on the grid":             {reported, core.Wake{OnEvents: true, OnReports: true, IntervalSeconds: 10}, 20},
		"a report that nobody follows":     {reported, core.Wake{OnEvents: true}, 52},
		"the same on the grid of rounds":   {reported, core.Wake{OnEvents: true, IntervalSeconds: 30}, 60},
		"the same with nothing waited for": {reported, core.Wake{}, 52},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := wakes(&tc.event, tc.wake, 40); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
