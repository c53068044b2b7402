package placement

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

func TestProposed(t *testing.T) {
	const cannot = " (the proposed seating cannot be followed)"
	grant := func(id core.JobID, n int, seats ...core.Seat) core.Grant {
		return core.Grant{Job: id, Accelerator: core.AnyAccelerator, Replicas: n, Proposed: seats}
	}
	blocking := func(g core.Grant) core.Grant { g.Blocking = true; return g }
	cases := map[string]struct {
		jobs   []*coretest.JobBuilder
		grants []core.Grant
		want   string
	}{
		"follows in the order of the seats":  {[]*coretest.JobBuilder{policytest.Waits(3)}, []core.Grant{grant(0, 3, coretest.Seat(1, 1, 2), coretest.Seat(0, 3))}, "0: 1[1,2] 0[3]"},
		"moves a running job":                {[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0))}, []core.Grant{grant(0, 1, coretest.Seat(1, 2))}, "0: 1[2]"},
		"keeps one that is where it belongs": {[]*coretest.JobBuilder{policytest.Waits(1), policytest.Holds(coretest.Seat(0, 0))}, []core.Grant{grant(0, 1, coretest.Seat(0, 0)), grant(1, 1, coretest.Seat(0, 0))}, policytest.Lines("1: 0[0]", "0: 0[1]")},
		"two can swap": {
			[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(1, 0))},
			[]core.Grant{grant(0, 1, coretest.Seat(1, 0)), grant(1, 1, coretest.Seat(0, 0))},
			policytest.Lines("0: 1[0]", "1: 0[0]"),
		},
		"without a proposal a job stays":        {[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(1, 3))}, []core.Grant{grant(0, 1)}, "0: 1[3]"},
		"without a proposal a job consolidates": {[]*coretest.JobBuilder{policytest.Waits(2)}, []core.Grant{grant(0, 2)}, "0: 0[0,1]"},
		"the wrong number":                      {[]*coretest.JobBuilder{policytest.Waits(2)}, []core.Grant{grant(0, 2, coretest.Seat(1, 0))}, "0: 0[0,1]"},
		"a device twice":                        {[]*coretest.JobBuilder{policytest.Waits(2)}, []core.Grant{grant(0, 2, coretest.Seat(1, 0), coretest.Seat(1, 0))}, "0: 0[0,1]"},
		"a node in two seats":                   {[]*coretest.JobBuilder{policytest.Waits(2)}, []core.Grant{grant(0, 2, coretest.Seat(1, 0), coretest.Seat(1, 1))}, "0: 0[0,1]"},
		"a node in two seats, one between":      {[]*coretest.JobBuilder{policytest.Waits(3)}, []core.Grant{grant(0, 3, coretest.Seat(1, 0), coretest.Seat(0, 0), coretest.Seat(1, 1))}, "0: 0[0,1,2]"},
		"the node after the last":               {[]*coretest.JobBuilder{policytest.Waits(1)}, []core.Grant{grant(0, 1, coretest.Seat(3, 0))}, "0: 0[0]"},
		"a node below the first":                {[]*coretest.JobBuilder{policytest.Waits(1)}, []core.Grant{grant(0, 1, coretest.Seat(-1, 0))}, "0: 0[0]"},
		"a node that does not exist":            {[]*coretest.JobBuilder{policytest.Waits(1)}, []core.Grant{grant(0, 1, coretest.Seat(9, 0))}, "0: 0[0]"},
		"a seat without devices":                {[]*coretest.JobBuilder{policytest.Waits(1)}, []core.Grant{grant(0, 1, coretest.Seat(0), coretest.Seat(1, 0))}, "0: 0[0]"},
		"two types":                             {[]*coretest.JobBuilder{policytest.Waits(2)}, []core.Grant{grant(0, 2, coretest.Seat(1, 0), coretest.Seat(2, 0))}, "0: 0[0,1]"},
		"a type that the job cannot run on":     {[]*coretest.JobBuilder{policytest.Waits(1).Accelerators("t4")}, []core.Grant{grant(0, 1, coretest.Seat(2, 0))}, "0: 0[0]"},
		"if it cannot be followed a job stays":  {[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(1, 1)), policytest.Holds(coretest.Seat(0, 0))}, []core.Grant{grant(0, 1, coretest.Seat(0, 0)), grant(1, 1)}, policytest.Lines("1: 0[0]", "0: 1[1]")},
		// Job 0 waits for more t4 than are free and keeps its turn there.
		"a job is not moved to where another waits": {
			[]*coretest.JobBuilder{policytest.Waits(9).Accelerators("t4"), policytest.Holds(coretest.Seat(2, 0))},
			[]core.Grant{blocking(grant(0, 9)), grant(1, 1, coretest.Seat(0, 0))},
			policytest.Lines("1: 2[0]", "0: waiting_for_devices 9/8"),
		},
		"nor on the type that it has": {
			[]*coretest.JobBuilder{policytest.Waits(9).Accelerators("t4"), policytest.Holds(coretest.Seat(1, 0))},
			[]core.Grant{blocking(grant(0, 9)), grant(1, 1, coretest.Seat(0, 0))},
			policytest.Lines("1: 1[0]", "0: waiting_for_devices 9/8"),
		},
		"the verdict tells":                 {[]*coretest.JobBuilder{policytest.Waits(5), policytest.Waits(4)}, []core.Grant{grant(0, 5, coretest.Seat(0, 0)), grant(1, 4)}, policytest.Lines("0: 0[0,1,2,3] 1[0]", "1: waiting_for_devices 4/3")},
		"the verdict tells of the proposal": {[]*coretest.JobBuilder{policytest.Waits(8), policytest.Waits(1)}, []core.Grant{grant(0, 8), grant(1, 1, coretest.Seat(0, 0), coretest.Seat(2, 0))}, policytest.Lines("0: 0[0,1,2,3] 1[0,1,2,3]", "1: waiting_for_devices 1/0"+cannot)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := coretest.MakeCluster().Nodes(2, "t4", 4).Nodes(1, "v100", 4).Health(2, core.Draining)
			if name == "a job is not moved to where another waits" || name == "two types" || name == "a type that the job cannot run on" {
				cluster.Health(2, core.Ready)
			}
			v := coretest.MakeView(cluster.Obj()).Jobs(tc.jobs...).Obj()
			if got := policytest.Place(t, policytest.New(t, NewProposed(), nil), v, tc.grants); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
