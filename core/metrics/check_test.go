package metrics

import (
	"math"
	"strings"
	"testing"
)

// A summary that was changed is refused where the jobs tell another.
func TestAChangedSummaryIsRefused(t *testing.T) {
	cases := map[string]struct {
		change func(s *Summary)
		want   string // "" where it is taken
	}{
		"as it was":           {func(*Summary) {}, ""},
		"another mean":        {func(s *Summary) { s.JCTSeconds.Mean = 1 }, "jct_seconds.mean is 1, and the jobs come to "},
		"no mean":             {func(s *Summary) { s.JCTSeconds.Mean = Number(math.NaN()) }, ""},
		"another tail":        {func(s *Summary) { s.JCTSeconds.P99++ }, "jct_seconds.p99 is "},
		"another wait":        {func(s *Summary) { s.QueueingSeconds.Mean++ }, "queueing_seconds.mean is "},
		"one job more":        {func(s *Summary) { s.Jobs.Completed++ }, "jobs.completed is "},
		"a restart more":      {func(s *Summary) { s.Restarts.Total++ }, "restarts.total is "},
		"twice the GPU time":  {func(s *Summary) { s.GPUHours *= 2 }, "gpu_hours is "},
		"of some of the jobs": {func(s *Summary) { s.JCTSeconds.Mean, s.Measured = 1, &Window{First: 1} }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			jobs := []Job{
				{JCTSeconds: 100, QueueingSeconds: 10, GPUSeconds: 90, Restarts: 1},
				{JCTSeconds: 300, QueueingSeconds: 20, GPUSeconds: 280},
				{JCTSeconds: Number(math.NaN()), QueueingSeconds: Number(math.NaN())},
			}
			s := &Summary{
				Jobs: JobCounts{Completed: 2}, JCTSeconds: Describe([]float64{100, 300}), QueueingSeconds: Describe([]float64{10, 20}),
				GPUHours: 370. / 3600,
			}
			s.Restarts.Total = 1
			tc.change(s)
			got := s.Contradiction(jobs)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
