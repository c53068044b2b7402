package main

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
)

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
