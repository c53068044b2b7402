package core_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// A run that goes on with another way of sharing devices keeps what jobs had of them: rounds are told again as they were, and what is decided since is
// served as the cluster serves it.
func TestEarlierRoundsKeepTheirSharing(t *testing.T) {
	whole, fractional, turns := core.Exclusive, core.Fractional, core.TimeSlice
	type seen struct {
		Used     int
		Attained [3]float64 // of each job; 0 of one that has ended
	}
	for name, tc := range map[string]struct {
		was *core.Sharing // when the first two rounds were held
		is  core.Sharing
		// At 0 s jobs with a quarter and a half start on one device, and one with nothing of it. At 100 s, and at 200 s, which is not
		// recorded and seats each on a device of its own:
		want [3]seen
	}{
		"the same":            {&fractional, core.Fractional, [3]seen{{1, [3]float64{}}, {1, [3]float64{25, 50, 0}}, {2, [3]float64{50, 100, 0}}}},
		"parts before":        {&fractional, core.Exclusive, [3]seen{{1, [3]float64{}}, {1, [3]float64{25, 50, 0}}, {3, [3]float64{50, 100, 0}}}},
		"parts, turns since":  {&fractional, core.TimeSlice, [3]seen{{1, [3]float64{}}, {1, [3]float64{25, 50, 0}}, {3, [3]float64{50, 100, 0}}}},
		"turns before":        {&turns, core.Fractional, [3]seen{{1, [3]float64{}}, {1, [3]float64{100, 100, 100}}, {2, [3]float64{200, 200, 200}}}},
		"whole ones before":   {&whole, core.Fractional, [3]seen{{3, [3]float64{}}, {3, [3]float64{100, 100, 100}}, {2, [3]float64{200, 200, 200}}}},
		"nobody recorded how": {nil, core.Fractional, [3]seen{{1, [3]float64{}}, {1, [3]float64{25, 50, 0}}, {2, [3]float64{50, 100, 0}}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := twoNodes()
			c.Sharing, c.MaxOwners = tc.is, 3
			var events []core.Event
			var starts []core.Change
			for id, milli := range []int{250, 500, 0} {
				e := submit(core.JobID(id), 0, 1)
				e.Spec.Share = &core.Share{Milli: milli}
				events = append(events, e)
				starts = append(starts, core.Change{Round: 1, Action: core.Start, Job: core.JobID(id), Seats: []core.Seat{{Node: 0, Devices: 1}}, By: "placement/old"})
			}
			var got [3]seen
			p := core.NewPipeline(c, fakes{}.stages(), core.PipelineOptions{
				Rounds: core.RoundOptions{IntervalSeconds: 60},
				Observers: []core.Observer{observe(func(r *core.Report) {
					if r.View.Round > len(got) {
						return
					}
					is := &got[r.View.Round-1]
					is.Used = r.DevicesUsed
					for id := range is.Attained {
						if r.View.Round == len(got) { // before anybody is moved
							is.Attained[id] = r.View.Jobs[id].AttainedService(200)
						} else {
							is.Attained[id] = r.View.Jobs[id].AttainedService(r.View.NowSeconds)
						}
					}
				})},
			})
			b := &script{observations: []core.Observation{
				{Events: events, Decided: &core.Decided{Changes: starts, Sharing: tc.was}}, {NowSeconds: 100, Decided: &core.Decided{Sharing: tc.was}},
			}}
			for _, o := range b.observations {
				if err := p.Round(t.Context(), o, b); err != nil {
					t.Fatal(err)
				}
			}
			_ = p.Round(t.Context(), core.Observation{NowSeconds: 200}, b)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// An owner who edits the part of a device that his running job asks for changes nothing of what it had.
func TestAnEditKeepsWhatAJobHad(t *testing.T) {
	c := twoNodes()
	c.Sharing = core.Fractional
	e := submit(0, 0, 1)
	e.Spec.Share = &core.Share{Milli: 500}
	edited := *e.Spec
	edited.Share = nil
	var got []float64
	p := core.NewPipeline(c, fakes{}.stages(), core.PipelineOptions{
		Rounds: core.RoundOptions{IntervalSeconds: 60},
		Observers: []core.Observer{observe(func(r *core.Report) {
			got = append(got, r.View.Jobs[0].AttainedService(r.View.NowSeconds))
		})},
	})
	b := &script{}
	for _, o := range []core.Observation{
		{Events: []core.Event{e}}, {NowSeconds: 100, Events: []core.Event{{Kind: core.JobChanged, AtSeconds: 100, Job: 0, Spec: &edited}}}, {NowSeconds: 200},
	} {
		if err := p.Round(t.Context(), o, b); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]float64{0, 50, 150}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
