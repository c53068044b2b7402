package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// A start tells who is on the devices where they are shared, and nothing where each is one job's.
func TestBoardTellsWhoSharesDevices(t *testing.T) {
	for name, tc := range map[string]struct {
		sharing core.Sharing
		want    [][]string
	}{
		"parts":     {core.Fractional, [][]string{{"b"}, {"a"}, nil, nil}},
		"turns":     {core.TimeSlice, [][]string{{"b"}, {"a"}, nil, nil}},
		"exclusive": {core.Exclusive, [][]string{nil, nil, nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			c := coretest.MakeCluster().Nodes(2, "t4", 4).Obj()
			c.Sharing = tc.sharing
			b := NewBoard(c)
			v := coretest.MakeView(c).Jobs(
				coretest.MakeJob("a").Running(0, coretest.Seat(0, 0, 1)), coretest.MakeJob("b").Running(0, coretest.Seat(0, 1)),
				coretest.MakeJob("on CPUs").Share(0).Running(0, coretest.Seat(0, 1)), coretest.MakeJob("elsewhere").Running(0, coretest.Seat(1, 1)),
			).Obj()
			r := &core.Report{View: v}
			for _, j := range v.Jobs {
				b.take(j)
				r.Changes = append(r.Changes, core.Change{Action: core.Start, Job: j.ID, Seats: j.Seats})
			}
			r.Changes = append(r.Changes, core.Change{Action: core.Stop, Job: 3})
			if err := b.ObserveRound(r); err != nil {
				t.Fatal(err)
			}
			for id, want := range tc.want {
				told := b.renderDecisions(b.jobs[id].decisions)
				if diff := cmp.Diff(want, told[0].GetWith()); diff != "" {
					t.Errorf("job %d (-want +got):\n%s", id, diff)
				}
			}
		})
	}
}
