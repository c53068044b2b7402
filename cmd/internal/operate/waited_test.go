package operate

import (
	"testing"

	"github.com/quartet-sched/quartet/core/control/controlv1"
)

func TestHowLongAJobWaited(t *testing.T) {
	d := func(at float64, what, reason string) *controlv1.Decision {
		return &controlv1.Decision{AtSeconds: at, What: what, Reason: reason}
	}
	for name, tc := range map[string]struct {
		decisions []*controlv1.Decision
		now       float64
		want      string
	}{
		"nothing is known": {nil, 100, ""},
		"it was started at once": {
			[]*controlv1.Decision{d(5, "job_submitted", ""), d(5, "start", "")}, 100, "",
		},
		"each reason, the longest first, before and after it ran": {
			[]*controlv1.Decision{
				d(0, "job_submitted", ""), d(10, "defer", "waiting_for_devices"), d(40, "defer", "blocked_by_earlier"), d(100, "start", ""),
				d(150, "tune", ""), d(200, "stop", "preempted_by_priority"), d(220, "defer", "waiting_for_devices"),
			},
			260,
			"Pending for 2m 40s: 1m 10s for GPUs, 1m 00s behind an earlier job, 20.0 s after preemption, 10.0 s for the next round.",
		},
		"it has ended": {
			[]*controlv1.Decision{d(10, "defer", "load_limit"), d(40, "reject", "exceeds_cluster")}, 1000, "Pending for 30.0 s: 30.0 s for the load to fall.",
		},
		"an interruption that is told late counts once": {
			[]*controlv1.Decision{d(0, "start", ""), d(20, "job_interrupted", "node_unavailable"), d(30, "defer", "node_unavailable")},
			50,
			"Pending for 30.0 s: 30.0 s for nodes that are down or draining.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wordWaits(waits(tc.decisions, tc.now)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
