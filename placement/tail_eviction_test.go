package placement

import (
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// Two nodes of four devices; grants in order of the jobs.
func TestTailEviction(t *testing.T) {
	node0, node1 := coretest.Seat(0, 0, 1, 2, 3), coretest.Seat(1, 0, 1, 2, 3)
	cases := map[string]struct {
		fit  string
		jobs []*coretest.JobBuilder
		want string
	}{
		"evicts the last first, and only as many as it takes": {
			scattered,
			[]*coretest.JobBuilder{policytest.Waits(2), policytest.Holds(node0), policytest.Holds(coretest.Seat(1, 0, 1)), policytest.Holds(coretest.Seat(1, 2, 3))},
			policytest.Lines("0: 1[2,3]", "1: 0[0,1,2,3]", "2: 1[0,1]", "3: waiting_for_devices 2/0"),
		},
		"never evicts one ahead": {
			scattered,
			[]*coretest.JobBuilder{policytest.Holds(node0), policytest.Holds(coretest.Seat(1, 0)), policytest.Waits(4), policytest.Holds(coretest.Seat(1, 1))},
			policytest.Lines("0: 0[0,1,2,3]", "1: 1[0]", "2: waiting_for_devices 4/3", "3: blocked_by_earlier 1/3"),
		},
		"stops at the first that does not fit, keeping the evictions": {
			scattered,
			[]*coretest.JobBuilder{policytest.Holds(node0), policytest.Waits(5), policytest.Waits(1), policytest.Holds(node1)},
			policytest.Lines("0: 0[0,1,2,3]", "1: waiting_for_devices 5/4", "2: blocked_by_earlier 1/4", "3: blocked_by_earlier 4/4"),
		},
		"seats an evicted job again where there is room": {
			scattered,
			[]*coretest.JobBuilder{policytest.Waits(4), policytest.Holds(coretest.Seat(0, 0, 1)), policytest.Holds(coretest.Seat(0, 2, 3), coretest.Seat(1, 0))},
			policytest.Lines("0: 0[2,3] 1[0,1]", "1: 0[0,1]", "2: waiting_for_devices 3/2"),
		},
		// Free are 1 and 3: no prefix adds up to 3. Without job 3 it is 3 and 3, and job 3 moves.
		"as released, evicts until the sum is exact": {
			prefixSum,
			[]*coretest.JobBuilder{policytest.Waits(3), policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(1, 0)), policytest.Holds(coretest.Seat(0, 1, 2))},
			policytest.Lines("0: 0[1,2,3]", "1: 0[0]", "2: 1[0]", "3: 1[1,2] evicted"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "v100", 4).Obj()).Jobs(tc.jobs...).Obj()
			policy := policytest.New(t, NewTailEviction(), map[string]any{"fit": tc.fit})
			if got := policytest.Place(t, policy, v, policytest.InOrder(v)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
