package outcome

import (
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

func TestOnlyRounds(t *testing.T) {
	unfair := metrics.Fairness{RhoMean: 6, RhoMax: 20, UnfairRatio: 1}
	waited := func(longest metrics.Number) metrics.Distribution { return metrics.Distribution{Max: longest} }
	cases := map[string]struct {
		summary  metrics.Summary
		interval time.Duration
		want     bool
	}{
		"jobs shorter than a round": {metrics.Summary{Fairness: unfair, QueueingSeconds: waited(59)}, time.Minute, true},
		"a whole round":             {metrics.Summary{Fairness: unfair, QueueingSeconds: waited(60)}, time.Minute, true},
		"longer than a round":       {metrics.Summary{Fairness: unfair, QueueingSeconds: waited(61)}, time.Minute, false},
		"interrupted jobs":          {metrics.Summary{Fairness: unfair, QueueingSeconds: waited(59), Preemptions: 1}, time.Minute, false},
		"nobody waited":             {metrics.Summary{Fairness: unfair}, time.Minute, false},
		"rounds at events only":     {metrics.Summary{Fairness: unfair, QueueingSeconds: waited(59)}, 0, false},
		"all within their share":    {metrics.Summary{Fairness: metrics.Fairness{RhoMax: 1}, QueueingSeconds: waited(59)}, time.Minute, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := onlyRounds(&tc.summary, tc.interval); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestLeftOver(t *testing.T) {
	waiting := func(reason core.Reason) *core.Job { return &core.Job{State: core.Waiting, WaitingReason: reason} }
	running := &core.Job{State: core.Running}
	cases := map[string]struct {
		jobs []*core.Job
		want string
	}{
		"one":           {[]*core.Job{waiting(core.LoadLimit)}, `1 job did not finish, for reason "load_limit"`},
		"all alike":     {[]*core.Job{waiting(core.Fragmented), waiting(core.Fragmented)}, `2 jobs did not finish, for reason "fragmented"`},
		"the commonest": {[]*core.Job{running, waiting(core.QuotaExceeded), waiting(core.Fragmented), waiting(core.Fragmented)}, `4 jobs did not finish, 2 of them for reason "fragmented"`},
		"a tie":         {[]*core.Job{waiting(core.Fragmented), waiting(core.QuotaExceeded)}, `2 jobs did not finish, 1 of them for reason "quota_exceeded"`},
		"stuck":         {[]*core.Job{running, running}, "2 jobs did not finish: they hold devices and make no progress"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := leftOver(tc.jobs); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
