package pollux

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// A job that holds a device which broke keeps the others, and is proposed one that works where there is one.
func TestABrokenDeviceIsReplaced(t *testing.T) {
	configs := map[string]map[string]any{
		"exact": {}, "genetic": {"search": "genetic"}, "in place": {"resize": inPlace(10), "restart": "horizon"}, "blind": {"types": "blind"},
	}
	cases := map[string]struct {
		least, most int
		unusable    core.DeviceSet
		want        []core.Seat
	}{
		"another one is free": {2, 2, 0b0010, []core.Seat{coretest.Seat(0, 0, 2)}},
		"it can do with less": {1, 2, 0b1110, []core.Seat{coretest.Seat(0, 0)}},
		"all that it had":     {2, 2, 0b0011, []core.Seat{coretest.Seat(0, 2, 3)}},
	}
	for search, config := range configs {
		for name, tc := range cases {
			t.Run(search+"/"+name, func(t *testing.T) {
				c := coretest.MakeCluster().Nodes(1, "t4", 4).Obj()
				c.Nodes[0].Unusable = tc.unusable
				v := coretest.MakeView(c).Now(1000).
					Jobs(coretest.MakeJob("a").Elastic(tc.least, tc.least, tc.most).Running(100, coretest.Seat(0, 0, 1))).Obj()
				respond := func(j *core.Job) core.Response {
					return core.Response{Job: j.ID, MinReplicas: tc.least, MaxReplicas: tc.most, Curves: []core.Curve{{OneNode: []float64{1, 2}, ManyNodes: []float64{1, 2}}}}
				}
				grants, err := component(t, New(), config).Allocate(t.Context(), v, coretest.Candidates(v, respond))
				if err != nil {
					t.Fatal(err)
				}
				if len(grants) != 1 {
					t.Fatalf("grants %+v, want one", grants)
				}
				if diff := cmp.Diff(tc.want, grants[0].Proposed); diff != "" {
					t.Errorf("seats (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// What is left of a job's seats is charged as a change.
func TestWhatIsLeftIsAChange(t *testing.T) {
	for name, tc := range map[string]struct {
		config map[string]any
		keep   func(*job) float64
	}{
		"restarted": {nil, func(j *job) float64 { return j.move }},
		"in place":  {map[string]any{"resize": inPlace(10), "restart": "horizon"}, func(j *job) float64 { return j.resize }},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := pair(t, tc.config)
			v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Now(1000).
				Jobs(coretest.MakeJob("pair").Elastic(1, 2, 8).Running(100, coretest.Seat(0, 1, 2))).Obj()
			v.Cluster.Nodes[0].Unusable = 0b0100
			candidates := coretest.Candidates(v, coretest.Rigid)
			candidates[0].Response.MinReplicas, candidates[0].Response.MaxReplicas = 1, 8
			p.begin(v, candidates)
			p.prepare(v, p.contenders(v.Cluster, 0))
			if j := &p.jobs[0]; j.held != 1 || j.keep != tc.keep(j) || j.keep >= 1 {
				t.Errorf("holds %d, and keeps %v of its speed on them, want 1 and %v", j.held, j.keep, tc.keep(j))
			}
		})
	}
}
