package metrics

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// held is what a job of a run has from a moment on.
type held struct {
	at      float64
	devices int
}

// Whole hours count from the submission of each job, at 100 s, and shorter lives. They are met with the guaranteed part of what it requested.
func TestTiers(t *testing.T) {
	t.Parallel()
	type job struct {
		tier      string
		requested int
		held      []held
		end       float64 // 0 for one that goes on
		rejected  bool
	}
	whole := []held{{100, 1}}
	for name, tc := range map[string]struct {
		jobs []job
		want *Tiers
	}{
		"none":            {[]job{{"", 1, whole, 5000, false}}, nil},
		"one hour":        {[]job{{core.Premium, 1, whole, 3700, false}}, &Tiers{Premium: &TierUse{0.95, 1, 1, 1, 1, 1}, GuaranteedDevicesMax: 0.95}},
		"nearly two":      {[]job{{core.Premium, 1, whole, 7299, false}}, &Tiers{Premium: &TierUse{0.95, 1, 1, 1, 1, 1}, GuaranteedDevicesMax: 0.95}},
		"just enough":     {[]job{{core.Premium, 1, []held{{280, 1}}, 3700, false}}, &Tiers{Premium: &TierUse{0.95, 1, 1, 1, 1, 1}, GuaranteedDevicesMax: 0.95}},
		"just too little": {[]job{{core.Premium, 1, []held{{281, 1}}, 3700, false}}, &Tiers{Premium: &TierUse{0.95, 1, 0, 1, 0, 0}, GuaranteedDevicesMax: 0.95}},
		"a short life": {
			[]job{{core.Standard, 1, []held{{131, 1}}, 200, false}}, &Tiers{Standard: &TierUse{0.7, 1, 0, 1, 0, 0}, GuaranteedDevicesMax: 0.7},
		},
		"the second hour was missed": {
			[]job{{core.Standard, 2, []held{{100, 2}, {3700, 1}}, 7300, false}}, &Tiers{Standard: &TierUse{0.7, 1, 0, 2, 1, 0.5}, GuaranteedDevicesMax: 1.4},
		},
		"more than requested makes up for nothing": {
			[]job{{core.Standard, 2, []held{{100, 4}, {1900, 0}}, 3700, false}}, &Tiers{Standard: &TierUse{0.7, 1, 0, 1, 0, 0}, GuaranteedDevicesMax: 1.4},
		},
		"basic is guaranteed nothing": {[]job{{core.Basic, 1, nil, 0, false}}, &Tiers{Basic: &TierUse{0, 1, 1, 2, 2, 1}}},
		"one that goes on is judged until now": {
			[]job{{core.Premium, 1, []held{{3700, 1}}, 0, false}}, &Tiers{Premium: &TierUse{0.95, 1, 0, 2, 1, 0.5}, GuaranteedDevicesMax: 0.95},
		},
		"a rejected one is not judged": {[]job{{core.Premium, 1, nil, 100, true}}, &Tiers{GuaranteedDevicesMax: 0.95}},
		"more than there is": {
			[]job{{core.Premium, 8, []held{{100, 8}}, 1000, false}, {core.Standard, 2, nil, 2000, false}},
			&Tiers{Premium: &TierUse{0.95, 1, 1, 1, 1, 1}, Standard: &TierUse{0.7, 1, 0, 1, 0, 0}, GuaranteedDevicesMax: 9, OversoldSeconds: 900},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NewCollector(Components{}, Outputs{})
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 8).Obj()).Obj()
			round := func(now float64, events []core.Event, changes []core.Change, ended []*core.Job) {
				v.NowSeconds = now
				r := &core.Report{View: v, Events: events, Changes: changes, Ended: ended, Guarantees: core.UsualGuarantees(), GapRatio: math.NaN()}
				if err := c.ObserveRound(r); err != nil {
					t.Fatal(err)
				}
			}
			var submitted []core.Event
			for i, j := range tc.jobs {
				spec := &core.JobSpec{ID: core.JobID(i), Tier: j.tier, Requested: j.requested, SubmitSeconds: 100}
				submitted = append(submitted, core.Event{Kind: core.JobSubmitted, AtSeconds: 100, Job: spec.ID, Spec: spec})
			}
			round(100, submitted, nil, nil)
			unfinished := []*core.Job{}
			for now := 101.0; now <= 8000; now++ { // all moments are whole
				var events []core.Event
				var changes []core.Change
				var ended []*core.Job
				for i, j := range tc.jobs {
					at := coretest.MakeJob("j").ID(core.JobID(i)).Submit(100).Obj()
					at.JobSpec = submitted[i].Spec
					if now == max(j.end, 101) && j.end > 0 {
						at.State, at.FinishSeconds = core.Completed, j.end
						if j.rejected {
							at.State = core.Rejected
						} else {
							events = append(events, core.Event{Kind: core.JobFinished, AtSeconds: j.end, Job: at.ID})
						}
						ended = append(ended, at)
					}
					for _, h := range j.held {
						if max(h.at, 101) == now {
							changes = append(changes, core.Change{Job: at.ID, Action: core.Start, Seats: seatsOf(h.devices)})
						}
					}
					if now == 8000 && j.end == 0 {
						unfinished = append(unfinished, at)
					}
				}
				if len(events)+len(changes)+len(ended) > 0 || now == 8000 {
					round(now, events, changes, ended)
				}
			}
			s, err := c.Finish(unfinished, 8000)
			if err != nil {
				t.Fatal(err)
			}
			alike := cmp.Comparer(func(a, b Number) bool { return a == b || math.Abs(float64(a-b)) < 1e-9 })
			if diff := cmp.Diff(tc.want, s.Tiers, alike); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func seatsOf(devices int) []core.Seat {
	if devices == 0 {
		return nil
	}
	return []core.Seat{{Devices: core.FirstDevices(devices)}}
}

// What a job holds changes by events and by rounds, and what it is guaranteed by its owner's edits; sums so far change no account.
func TestTiersFollowARun(t *testing.T) {
	t.Parallel()
	spec := func(tier string, requested int) *core.JobSpec { return &core.JobSpec{Tier: tier, Requested: requested} }
	at := func(kind core.EventKind, at float64, devices int) core.Event {
		return core.Event{Kind: kind, AtSeconds: at, Seats: seatsOf(devices)}
	}
	edit := func(s *core.JobSpec, at float64) core.Event {
		return core.Event{Kind: core.JobChanged, AtSeconds: at, Spec: s}
	}
	change := func(action core.Action, devices int) []core.Change {
		return []core.Change{{Action: action, Seats: seatsOf(devices)}}
	}
	type round struct {
		at      float64
		events  []core.Event
		changes []core.Change
	}
	for name, tc := range map[string]struct {
		rounds []round // after one at 0 s, in which a standard job of four replicas begins
		want   *Tiers  // at 3600 s
	}{
		"enough until it was interrupted": {
			[]round{{3000, []core.Event{at(core.JobInterrupted, 2520, 0)}, nil}}, &Tiers{Standard: &TierUse{0.7, 1, 1, 1, 1, 1}, GuaranteedDevicesMax: 2.8},
		},
		"interrupted too early": {
			[]round{{3000, []core.Event{at(core.JobInterrupted, 2519, 0)}, nil}}, &Tiers{Standard: &TierUse{0.7, 1, 0, 1, 0, 0}, GuaranteedDevicesMax: 2.8},
		},
		"stopped too early": {[]round{{2519, nil, change(core.Stop, 0)}}, &Tiers{Standard: &TierUse{0.7, 1, 0, 1, 0, 0}, GuaranteedDevicesMax: 2.8}},
		"shrunk":            {[]round{{1500, []core.Event{at(core.JobShrunk, 1440, 2)}, nil}}, &Tiers{Standard: &TierUse{0.7, 1, 1, 1, 1, 1}, GuaranteedDevicesMax: 2.8}},
		"shrunk too early":  {[]round{{1500, []core.Event{at(core.JobShrunk, 1439, 2)}, nil}}, &Tiers{Standard: &TierUse{0.7, 1, 0, 1, 0, 0}, GuaranteedDevicesMax: 2.8}},
		"paid for more":     {[]round{{60, []core.Event{edit(spec(core.Premium, 4), 60)}, nil}, {3300, nil, change(core.Stop, 0)}}, &Tiers{Premium: &TierUse{0.95, 1, 0, 1, 0, 0}, GuaranteedDevicesMax: 3.8}},
		"requested more":    {[]round{{1440, []core.Event{edit(spec(core.Standard, 8), 1440)}, nil}}, &Tiers{Standard: &TierUse{0.7, 1, 1, 1, 1, 1}, GuaranteedDevicesMax: 5.6}},
		"too much":          {[]round{{600, []core.Event{edit(spec(core.Premium, 9), 600)}, nil}}, &Tiers{Premium: &TierUse{0.95, 1, 0, 1, 0, 0}, GuaranteedDevicesMax: 8.55, OversoldSeconds: 3000}},
		"less again":        {[]round{{600, []core.Event{edit(spec(core.Premium, 9), 600)}, nil}, {900, []core.Event{edit(spec(core.Standard, 4), 900)}, nil}}, &Tiers{Standard: &TierUse{0.7, 1, 1, 1, 1, 1}, GuaranteedDevicesMax: 8.55, OversoldSeconds: 300}},
		"too much, and over": {
			[]round{{900, []core.Event{edit(spec(core.Premium, 9), 600), at(core.JobFinished, 700, 0)}, nil}},
			&Tiers{Premium: &TierUse{0.95, 1, 0, 1, 0, 0}, GuaranteedDevicesMax: 8.55, OversoldSeconds: 100},
		},
		"too much since between rounds": {
			[]round{{900, []core.Event{edit(spec(core.Premium, 9), 600)}, nil}},
			&Tiers{Premium: &TierUse{0.95, 1, 0, 1, 0, 0}, GuaranteedDevicesMax: 8.55, OversoldSeconds: 3000},
		},
		"no tier any more":    {[]round{{600, []core.Event{edit(spec("", 4), 600)}, nil}}, &Tiers{GuaranteedDevicesMax: 2.8}},
		"ended, and released": {[]round{{700, []core.Event{at(core.JobFinished, 600, 0)}, nil}, {1000, []core.Event{edit(spec(core.Premium, 99), 1000)}, nil}}, &Tiers{Standard: &TierUse{0.7, 1, 1, 1, 1, 1}, GuaranteedDevicesMax: 2.8}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NewCollector(Components{}, Outputs{})
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 8).Obj()).Obj()
			first := []core.Event{{Kind: core.JobSubmitted, Spec: spec(core.Standard, 4)}}
			for _, r := range append([]round{{0, first, change(core.Start, 4)}}, tc.rounds...) {
				v.NowSeconds = r.at
				if err := c.ObserveRound(&core.Report{View: v, Events: r.events, Changes: r.changes, Guarantees: core.UsualGuarantees(), GapRatio: math.NaN()}); err != nil {
					t.Fatal(err)
				}
				_ = c.SoFar(nil, r.at+30)
			}
			s, err := c.Finish(nil, 3600)
			if err != nil {
				t.Fatal(err)
			}
			alike := cmp.Comparer(func(a, b Number) bool { return a == b || math.Abs(float64(a-b)) < 1e-9 })
			if diff := cmp.Diff(tc.want, s.Tiers, alike); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Guarantees begin with the submission of a job, also between rounds; one that is rejected in its first round has none.
func TestTiersFromTheSubmission(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		devices  int
		rejected bool
		want     *Tiers // at 100 s of a job of ten replicas that was submitted at 40 s, and first seen at 60 s
	}{
		"too much":         {devices: 8, want: &Tiers{Premium: &TierUse{0.95, 1, 0, 1, 0, 0}, GuaranteedDevicesMax: 9.5, OversoldSeconds: 60}},
		"not too much":     {devices: 10, want: &Tiers{Premium: &TierUse{0.95, 1, 0, 1, 0, 0}, GuaranteedDevicesMax: 9.5}},
		"rejected at once": {devices: 8, rejected: true, want: &Tiers{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NewCollector(Components{}, Outputs{})
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", tc.devices).Obj()).Obj()
			j := coretest.MakeJob("j").Tier(core.Premium).Replicas(10).Submit(40).Obj()
			v.NowSeconds = 60
			r := &core.Report{
				View: v, Events: []core.Event{{Kind: core.JobSubmitted, AtSeconds: 40, Spec: j.JobSpec}}, Guarantees: core.UsualGuarantees(), GapRatio: math.NaN(),
			}
			if tc.rejected {
				j.State, j.FinishSeconds = core.Rejected, 60
				r.Ended = []*core.Job{j}
			}
			if err := c.ObserveRound(r); err != nil {
				t.Fatal(err)
			}
			s, err := c.Finish(nil, 100)
			if err != nil {
				t.Fatal(err)
			}
			alike := cmp.Comparer(func(a, b Number) bool { return a == b || math.Abs(float64(a-b)) < 1e-9 })
			if diff := cmp.Diff(tc.want, s.Tiers, alike); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
