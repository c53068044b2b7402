package operate

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// An explanation begins with what the job needs, and ends with the reason for programs.
func TestExplain(t *testing.T) {
	const waiting = "waiting_for_devices"
	full, idle := capacity{free: 0, total: 4}, capacity{free: 4, total: 4}
	for name, tc := range map[string]struct {
		job      *controlv1.Job
		decision *controlv1.Decision
		c        capacity
		want     string
	}{
		"GPUs of the cluster": {
			&controlv1.Job{State: "waiting", Reason: waiting, Requested: 4}, &controlv1.Decision{Round: 1, Reason: waiting, By: "pipeline"}, full,
			"Job third is pending: needs 4 GPUs, 0 of 4 are free (round 1) [waiting_for_devices]",
		},
		"enough is free by now": {
			&controlv1.Job{State: "waiting", Reason: waiting, Requested: 4}, &controlv1.Decision{Round: 1, Reason: waiting, By: "pipeline"}, idle,
			"Job third is pending: other jobs come first and not enough GPUs are left (round 1) [waiting_for_devices]",
		},
		"evidence that the cluster confirms": {
			&controlv1.Job{State: "waiting", Reason: waiting, Requested: 1},
			&controlv1.Decision{Round: 2, Reason: waiting, Wanted: 1, Available: 0, Unit: "devices", By: "placement/packed"}, full,
			"Job third is pending: needs 1 GPU, 0 of 4 are free (round 2, placement/packed) [waiting_for_devices]",
		},
		"evidence of some of the GPUs": {
			&controlv1.Job{State: "waiting", Reason: waiting, Requested: 4},
			&controlv1.Decision{Round: 2, Reason: waiting, Wanted: 4, Available: 2, Unit: "devices"}, full,
			"Job third is pending: needs 4 GPUs, 2 available (round 2) [waiting_for_devices]",
		},
		"other units, and a message": {
			&controlv1.Job{State: "rejected", Reason: "exceeds_cluster", Requested: 4},
			&controlv1.Decision{Round: 1, Reason: "exceeds_cluster", Wanted: 32, Available: 16, Unit: "GB", Message: "no device has that"},
			capacity{},
			"Job third was rejected: needs 32 GB, 16 available; no device has that (round 1) [exceeds_cluster]",
		},
		"nodes that come": {
			&controlv1.Job{State: "waiting", Reason: "awaiting_nodes", Requested: 8},
			&controlv1.Decision{Round: 9, Reason: "awaiting_nodes", Wanted: 8, Available: 4, Unit: "devices", ExpectedSeconds: 750}, full,
			"Job third is pending: needs 8 GPUs, 4 available; nodes are being added, expected at 12m 30s (round 9) [awaiting_nodes]",
		},
		"a word of Kubernetes": {
			&controlv1.Job{State: "suspended", Reason: "ByOwner"}, &controlv1.Decision{Reason: "ByOwner", Message: "spec.suspend is set"},
			capacity{},
			"Job third is suspended by its owner: ByOwner: spec.suspend is set",
		},
		"no decision is known": {&controlv1.Job{State: "waiting", Reason: "load_limit"}, &controlv1.Decision{}, full, "Job third is pending: admission holds jobs back while the cluster is loaded [load_limit]"},
		"no reason":            {&controlv1.Job{State: "waiting"}, &controlv1.Decision{}, full, "Job third is pending."},
		"completed":            {&controlv1.Job{State: "completed"}, &controlv1.Decision{}, full, "Job third has completed."},
		"failed":               {&controlv1.Job{State: "failed", Message: "replica 0 exited with 1"}, &controlv1.Decision{}, full, "Job third has failed: replica 0 exited with 1"},
		"cancelled":            {&controlv1.Job{State: "cancelled"}, &controlv1.Decision{}, full, "Job third was cancelled."},
		"running": {
			&controlv1.Job{State: "running", Seats: []*controlv1.Seat{{Node: "n", Devices: []uint32{0, 1}}}}, &controlv1.Decision{}, full,
			"Job third is running on n:0,1.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.job.Name = "third"
			if got := explain(&controlv1.DescribeResponse{Job: tc.job, Decisions: []*controlv1.Decision{tc.decision}}, tc.c); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Every reason has words of its own for people.
func TestReasonsHaveWords(t *testing.T) {
	for _, name := range core.Reasons()[1:] {
		reason, _ := core.ParseReason(name)
		if w := reasonWords(reason); w.why == name || w.wait == "for "+name {
			t.Errorf("%s has no words", name)
		}
	}
}

// Only ready nodes count, and devices that are broken or that others hold are not free.
func TestCapacity(t *testing.T) {
	got := capacityOf([]*controlv1.Node{
		{Devices: 4, Used: 1, Unusable: 1, Health: "ready"}, {Devices: 4, Health: "draining"}, {Devices: 2, Used: 2, Unusable: 1, Health: "ready"},
	})
	if want := (capacity{free: 2, total: 6}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
