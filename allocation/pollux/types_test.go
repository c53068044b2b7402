package pollux

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// The blind take all types for one; a job that gets several keeps the one it gets most of.
func TestBlindToTypes(t *testing.T) {
	linear := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	view := func(least, most int) (*core.View, []core.Candidate) {
		v := &core.View{NowSeconds: 600, IntervalSeconds: 60, Cluster: &core.Cluster{
			Accelerators: []string{"t4", "a100"},
			Nodes:        []core.Node{{Name: "a", Devices: 4}, {ID: 1, Name: "b", Accelerator: 1, Devices: 6}},
		}}
		j := core.NewJob(&core.JobSpec{Name: "j", Requested: least, MinReplicas: least, MaxReplicas: most})
		j.State, v.Jobs, v.Active = core.Waiting, []*core.Job{j}, []core.JobID{0}
		r := &core.Response{MinReplicas: least, MaxReplicas: most, Curves: []core.Curve{{OneNode: linear, ManyNodes: linear}}}
		return v, []core.Candidate{{Job: j, Response: r}}
	}
	cases := map[string]struct {
		types       string
		least, most int
		want        []core.Seat
	}{
		"single":                            {"single", 1, 10, []core.Seat{{Node: 1, Devices: 0x3f}}},
		"blind":                             {"blind", 1, 10, []core.Seat{{Node: 1, Devices: 0x3f}}},
		"too few of a type":                 {"blind", 7, 10, nil}, // granted, but without seats
		"blind on one, whichever it may be": {"blind", 1, 4, []core.Seat{{Node: 0, Devices: 0xf}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, candidates := view(tc.least, tc.most)
			grants, err := component(t, New(), map[string]any{"types": tc.types}).Allocate(t.Context(), v, candidates)
			if err != nil {
				t.Fatal(err)
			}
			if len(grants) != 1 {
				t.Fatalf("grants %+v, want one", grants)
			}
			got := grants[0].Proposed
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("seats (-want +got):\n%s", diff)
			}
		})
	}
}
