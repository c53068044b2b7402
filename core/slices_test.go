package core_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/mig"
)

// profileOf draws what a job asks for of a device: a profile, thousandths, all of it, or nothing.
func profileOf(draw func(n int) int) (*core.Share, mig.Profile) {
	switch k := draw(8); {
	case k < 5:
		return &core.Share{Milli: core.WholeDevice, Profile: mig.Of(mig.Profile(k)).Name}, mig.Profile(k)
	case k == 5:
		return &core.Share{Milli: 286}, mig.ThreeG // 2g has 2/7 of the compute, which is less
	case k == 6:
		return nil, mig.SevenG
	default:
		return &core.Share{}, 0
	}
}

// illegal says what is wrong with the slices of jobs on a device; "" for nothing. It looks at each pair of them.
func illegal(device []slice) string {
	compute := 0
	for i, s := range device {
		if compute += mig.Of(s.profile).Compute; !slices.Contains(mig.Of(s.profile).Starts, s.start) {
			return fmt.Sprintf("job %d: %s at %d", s.job, mig.Of(s.profile).Name, s.start)
		}
		for _, o := range device[:i] {
			if s.start < o.start+mig.Of(o.profile).Memory && o.start < s.start+mig.Of(s.profile).Memory {
				return fmt.Sprintf("job %d has slices of job %d", s.job, o.job)
			}
		}
	}
	if compute > mig.ComputeSlices {
		return fmt.Sprintf("%d compute slices", compute)
	}
	return ""
}

// slice is what a job has of a device.
type slice struct {
	job     core.JobID
	profile mig.Profile
	start   int
}

// room reports whether there is a place for a profile beside slices.
func room(device []slice, p mig.Profile) bool {
	return slices.ContainsFunc(mig.Of(p).Starts, func(start int) bool {
		return illegal(append(slices.Clip(device), slice{profile: p, start: start})) == ""
	})
}

// Ten thousand streams of jobs that come and go through the ledger: each is seated just where all its devices have room, and never illegally.
func TestSlicesOfTheLedgerAreLegal(t *testing.T) {
	t.Parallel()
	c := &core.Cluster{Accelerators: []string{"a100"}, Sharing: core.Mig, Nodes: []core.Node{{Devices: 2, DeviceMemoryGB: 40}, {ID: 1, Devices: 1}}}
	type running struct {
		spec  *core.JobSpec
		seats []core.Seat
		takes bool
		p     mig.Profile
	}
	var ledger core.Shares
	refused, seated := 0, 0
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		ledger.Reset(c)
		var jobs []running
		for id := range core.JobID(24) {
			if len(jobs) > 0 && r.IntN(3) == 0 {
				i := r.IntN(len(jobs))
				ledger.Release(jobs[i].spec, jobs[i].seats)
				jobs = slices.Delete(jobs, i, i+1)
			}
			j := running{spec: &core.JobSpec{ID: id}}
			j.spec.Share, j.p = profileOf(r.IntN)
			j.takes = j.spec.Share == nil || j.spec.Share.Milli > 0
			for n := range core.NodeID(2) {
				if set := core.DeviceSet(1 + r.IntN(3)); r.IntN(2) == 0 && set < 1<<c.Nodes[n].Devices {
					j.seats = append(j.seats, core.Seat{Node: n, Devices: set})
				}
			}
			want := true
			at := func(n core.NodeID, device int) (on []slice) {
				for _, o := range jobs {
					if o.takes && slices.ContainsFunc(o.seats, func(s core.Seat) bool { return s.Node == n && s.Devices&(1<<device) != 0 }) {
						on = append(on, slice{o.spec.ID, o.p, int(ledger.SliceOf(o.spec, n, device))})
					}
				}
				return on
			}
			for _, s := range j.seats {
				for _, device := range s.Devices.List() {
					want = want && (!j.takes || room(at(s.Node, device), j.p))
				}
			}
			if got := ledger.Occupy(j.spec, j.seats); got != want {
				t.Fatalf("seed %d, job %d, %+v on %v: seated %t, want %t", seed, id, j.spec.Share, j.seats, got, want)
			}
			if !want {
				refused++
				continue
			}
			seated++
			jobs = append(jobs, j)
			for i := range c.Nodes {
				for device := range c.Nodes[i].Devices {
					on := at(core.NodeID(i), device)
					free := mig.Slices
					for _, s := range on {
						free -= mig.Of(s.profile).Memory
					}
					if fault := illegal(on); fault != "" || ledger.Layout(core.NodeID(i), device).Free() != free || ledger.Milli(core.NodeID(i), device) != 125*free {
						t.Fatalf("seed %d, device %d of node %d: %s; %v of layout %08b", seed, device, i, fault, on, ledger.Layout(core.NodeID(i), device))
					}
				}
			}
		}
		for _, j := range jobs {
			ledger.Release(j.spec, j.seats)
		}
		if left := ledger.Layout(0, 0) | ledger.Layout(0, 1) | ledger.Layout(1, 0); left != 0 {
			t.Fatalf("seed %d: %08b of an empty cluster is taken", seed, left)
		}
	}
	if refused < seated/10 {
		t.Errorf("%d refused and %d seated: the devices are too empty to tell", refused, seated)
	}
}

// A slice has its part of the memory of the device, and a job is seated where that suffices; one replica of a job at most is on a device.
func TestMemoryOfSlices(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		profile  string
		memoryGB float64
		want     int // replicas that an idle node of two devices could have
	}{
		"an eighth":               {"1g", 10, 2},
		"a little more":           {"1g", 10.001, 0},
		"two eighths":             {"2g", 20, 2},
		"half, as four slices do": {"3g", 40, 2},
		"all of it":               {"7g", 80, 2},
		"more than there is":      {"7g", 81, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &core.Cluster{Accelerators: []string{"a100"}, Sharing: core.Mig, Nodes: []core.Node{{Devices: 2, DeviceMemoryGB: 80}}}
			j := &core.JobSpec{ID: 3, DeviceMemoryGB: tc.memoryGB, Share: &core.Share{Milli: 1000, Profile: tc.profile}}
			var l core.Shares
			l.Reset(c)
			seats := []core.Seat{{Devices: 1}}
			if got := c.SeatsOn(j, &c.Nodes[0]); got != tc.want || l.FitsOn(j, 0, 1) != (tc.want > 0) || l.Occupy(j, seats) != (tc.want > 0) {
				t.Errorf("a node has room for %d, fits %t, want %d", got, l.FitsOn(j, 0, 1), tc.want)
			}
			if l.Occupy(j, seats) {
				t.Error("a second replica is on the device")
			}
			if c.Nodes[0].DeviceMemoryGB = 0; tc.want == 0 && c.SeatsOn(j, &c.Nodes[0]) != 2 {
				t.Error("a device of unknown memory is short of it")
			}
		})
	}
}

// A slice is given where its owner had it, and not where another is.
func TestOccupySlices(t *testing.T) {
	t.Parallel()
	c := &core.Cluster{Accelerators: []string{"a100"}, Sharing: core.Mig, Nodes: []core.Node{{Devices: 2}}}
	var l core.Shares
	l.Reset(c)
	one := func(id core.JobID) *core.JobSpec {
		return &core.JobSpec{ID: id, Share: &core.Share{Milli: 1000, Profile: "1g"}}
	}
	both := []core.Seat{{Devices: 3}}
	if !l.OccupySlices(one(0), both, []uint8{2, core.NoSlice}) || !slices.Equal(l.Slices(one(0), both), []uint8{2, 6}) {
		t.Errorf("slices begin at %v, want 2 as told and 6 as placed", l.Slices(one(0), both))
	}
	if l.OccupySlices(one(1), both, []uint8{0, 6}) || l.Layout(0, 0) != 0b100 || l.Layout(0, 1) != 0b1000000 {
		t.Errorf("a slice of another was given, or one was left: %08b %08b", l.Layout(0, 0), l.Layout(0, 1))
	}
	for _, start := range []uint8{7, 200} {
		if l.OccupySlices(one(2), []core.Seat{{Devices: 1}}, []uint8{start}) {
			t.Errorf("a slice begins at %d", start)
		}
	}
	if got := l.Slices(one(5), both); !slices.Equal(got, []uint8{core.NoSlice, core.NoSlice}) {
		t.Errorf("who is not there has slices %v", got)
	}
	c.Sharing = core.Fractional
	l.Reset(c)
	if l.Slices(one(0), both) != nil || l.SliceOf(one(0), 0, 0) != core.NoSlice {
		t.Error("there are slices of devices that are not divided so")
	}
}

// dice seats jobs by chance on slices, as a ledger of its own has room, and sometimes where there is none.
type dice struct {
	t     *rapid.T
	legal bool
}

func (p *dice) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	var s core.Seating
	var l core.Shares
	l.Reset(v.Cluster)
	p.legal = true
	stays := make([]bool, len(grants))
	for i, g := range grants { // those who stay first: they keep their slices
		j := v.Jobs[g.Job]
		stays[i] = j.Held == g.Replicas && rapid.IntRange(0, 3).Draw(p.t, "move") < 3 && l.OccupySlices(j.JobSpec, j.Seats, j.Slices())
	}
	for i, g := range grants {
		j := v.Jobs[g.Job]
		if stays[i] {
			s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: j.Seats, Evicted: rapid.IntRange(0, 4).Draw(p.t, "evicted") == 0})
			continue
		}
		seats := []core.Seat{{Node: core.NodeID(rapid.IntRange(0, 1).Draw(p.t, "node")), Devices: core.DeviceSet(rapid.IntRange(1, 3).Draw(p.t, "devices"))}}
		fits := seats[0].Devices.Count() == g.Replicas && !core.SameSeats(seats, j.Seats) && l.Occupy(j.JobSpec, seats)
		if !fits && (seats[0].Devices.Count() != g.Replicas || core.SameSeats(seats, j.Seats) || rapid.IntRange(0, 9).Draw(p.t, "wrong") != 7) {
			s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices})
			continue
		}
		p.legal = p.legal && fits
		s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: seats})
	}
	return s, nil
}

// Through rounds in which jobs come, stay, move, shrink, are edited and go, a seating is refused just when there is no room for the slices; slices are
// legal, a job keeps those that it has while it keeps its seats, and the same changes, told again, come to the same.
func TestSlicesOfAPipeline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster := func() *core.Cluster {
			return &core.Cluster{Accelerators: []string{"a100"}, Sharing: core.Mig, Nodes: []core.Node{{Name: "a", Devices: 2}, {ID: 1, Name: "b", Devices: 2}}}
		}
		var p *core.Pipeline
		fake := fakes{fixed: rigid{respond: func(r []core.Response) []core.Response {
			for i := range r {
				r[i].MinReplicas = 1
			}
			return r
		}}, grant: grantAll{change: func(grants []core.Grant) []core.Grant { // as many as it has
			for _, j := range p.Unfinished() {
				for i := range grants {
					if grants[i].Job == j.ID {
						grants[i].Replicas = cmp.Or(j.Held, j.Requested)
					}
				}
			}
			return grants
		}}}
		stages, placer := fake.stages(), &dice{t: t}
		stages.Placement.Policy = placer
		p = core.NewPipeline(cluster(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
		again := core.NewPipeline(cluster(), fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Memory: forgetful{}})
		next := core.JobID(0)
		before := map[core.JobID]core.Job{}
		for round := range 12 {
			seen := core.Observation{NowSeconds: float64(60 * round)}
			for _, j := range p.Unfinished() {
				e := core.Event{AtSeconds: seen.NowSeconds, Job: j.ID}
				switch fate := rapid.IntRange(0, 9).Draw(t, "fate"); {
				case fate == 1 || fate == 8:
					e.Kind = core.JobFinished
				case fate == 2:
					e.Kind = core.JobInterrupted
				case fate >= 5 && j.Held == 2:
					e.Kind, e.Seats = core.JobShrunk, []core.Seat{{Node: j.Seats[0].Node, Devices: j.Seats[0].Devices &^ 1}}
				case fate == 3:
					edited := *j.JobSpec
					edited.Share, _ = profileOf(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "share") })
					e.Kind, e.Spec = core.JobChanged, &edited
				default:
					continue
				}
				seen.Events = append(seen.Events, e)
			}
			if rapid.IntRange(0, 3).Draw(t, "health") == 2 { // everything is looked at anew
				health := rapid.SampledFrom([]core.Health{core.Ready, core.Ready, core.Draining}).Draw(t, "to")
				seen.Events = append(seen.Events, core.Event{Kind: core.NodeChanged, AtSeconds: seen.NowSeconds, Node: 1, Health: health})
			}
			for range rapid.IntRange(0, 3).Draw(t, "jobs") {
				e := submit(next, seen.NowSeconds, rapid.IntRange(1, 2).Draw(t, "replicas"))
				e.Spec.MinReplicas = 1
				e.Spec.Share, _ = profileOf(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "share") })
				if rapid.IntRange(0, 9).Draw(t, "runs already") == 7 && !slices.ContainsFunc(p.Unfinished(), func(j *core.Job) bool { return j.Held > 0 }) && len(seen.Events) == 0 {
					e.Held = &core.Held{Seats: []core.Seat{{Devices: 1<<e.Spec.Requested - 1}}}
				}
				seen.Events = append(seen.Events, e)
				next++
			}
			placer.legal = true
			var b script
			err := p.Round(context.Background(), seen, &b)
			var broken *core.InvariantError
			switch {
			case placer.legal && err != nil:
				t.Fatalf("round %d: %v", round, err)
			case !placer.legal && (!errors.As(err, &broken) || broken.Rule != core.RuleDeviceLeft && broken.Rule != core.RuleDeviceOnce):
				t.Fatalf("round %d: error %v, want %q broken, or %q where there is no such device", round, err, core.RuleDeviceLeft, core.RuleDeviceOnce)
			case err != nil:
				return
			}
			on := map[core.Seat][]slice{}
			now := map[core.JobID]core.Job{}
			for _, j := range p.Unfinished() {
				now[j.ID] = *j
				if j.Held == 0 || j.Share != nil && j.Share.Milli == 0 {
					if len(j.Slices()) > 0 {
						t.Fatalf("round %d: job %d has slices %v of nothing", round, j.ID, j.Slices())
					}
					continue
				}
				if was := before[j.ID]; was.Held > 0 && j.LastChange < seen.NowSeconds && !slices.Equal(was.Slices(), j.Slices()) {
					t.Fatalf("round %d: slices of job %d begin at %v, and at %v before", round, j.ID, j.Slices(), was.Slices())
				}
				k := 0
				for _, s := range j.Seats {
					for _, device := range s.Devices.List() {
						at := core.Seat{Node: s.Node, Devices: 1 << device}
						on[at] = append(on[at], slice{j.ID, j.Slice(), int(j.Slices()[k])})
						if j.SliceAt(s.Node, device) != j.Slices()[k] {
							t.Fatalf("slice %d of %v is at %d", k, j.Slices(), j.SliceAt(s.Node, device))
						}
						k++
					}
				}
				if k != len(j.Slices()) {
					t.Fatalf("round %d: job %d has slices %v on %v", round, j.ID, j.Slices(), j.Seats)
				}
			}
			for at, list := range on {
				if fault := illegal(list); fault != "" {
					t.Fatalf("round %d, %v: %s: %v", round, at, fault, list)
				}
			}
			changes := slices.Clone(b.applied)
			for i := range changes {
				changes[i].Slices = nil // as recorded by one who knows of none
			}
			seen.Decided = &core.Decided{Changes: changes}
			if err := again.Round(context.Background(), seen, &script{}); err != nil {
				t.Fatalf("round %d told again: %v", round, err)
			}
			for _, j := range again.Unfinished() {
				if was := now[j.ID]; !slices.Equal(was.Slices(), j.Slices()) || !core.SameSeats(was.Seats, j.Seats) {
					t.Fatalf("round %d told again: job %d has %v of %v, want %v of %v", round, j.ID, j.Slices(), j.Seats, was.Slices(), was.Seats)
				}
			}
			before = now
		}
	})
}

// forgetful keeps nothing.
type forgetful struct{}

func (forgetful) Replaying() bool                                    { return false }
func (forgetful) Learned() []core.Learned                            { return nil }
func (forgetful) Keep([]core.Learned) error                          { return nil }
func (forgetful) Begin(int, *core.Composition, []core.Learned) error { return nil }

// What a replica has of a device by what it asks for, and what service it attains.
func TestShareOfACluster(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sharing core.Sharing
		share   *core.Share
		want    *core.Share
		part    float64
	}{
		"a profile": {core.Mig, &core.Share{Milli: 1000, Profile: "2g"}, &core.Share{Milli: 1000, Profile: "2g"}, 2.0 / 7},
		"thousandths, the smallest that has them": {core.Mig, &core.Share{Milli: 142}, &core.Share{Milli: 142, Profile: "1g"}, 1.0 / 7},
		"one more than that has":                  {core.Mig, &core.Share{Milli: 143}, &core.Share{Milli: 143, Profile: "2g"}, 2.0 / 7},
		"half":                                    {core.Mig, &core.Share{Milli: 500}, &core.Share{Milli: 500, Profile: "4g"}, 4.0 / 7},
		"more than any part has":                  {core.Mig, &core.Share{Milli: 600}, &core.Share{Milli: 600, Profile: "7g"}, 1},
		"nothing of it":                           {core.Mig, &core.Share{}, &core.Share{}, 0},
		"nothing of it, with a profile":           {core.Mig, &core.Share{Profile: "1g"}, &core.Share{}, 0},
		"a whole device":                          {core.Mig, nil, nil, 1},
		"a profile where parts are divided":       {core.Fractional, &core.Share{Milli: 300, Profile: "2g"}, &core.Share{Milli: 300}, 0.3},
		"a profile of exclusive devices":          {core.Exclusive, &core.Share{Milli: 300, Profile: "2g"}, nil, 1},
		"a profile of devices taken in turns":     {core.TimeSlice, &core.Share{Milli: 300, Profile: "2g"}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &core.Cluster{Accelerators: []string{"a100"}, Sharing: tc.sharing, MaxOwners: 2, Nodes: []core.Node{{Devices: 2}}}
			p := core.NewPipeline(c, fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
			e := submit(0, 0, 1)
			e.Spec.Share = tc.share
			if err := p.Round(context.Background(), core.Observation{Events: []core.Event{e}}, &script{}); err != nil {
				t.Fatal(err)
			}
			j := p.Unfinished()[0]
			if (j.Share == nil) != (tc.want == nil) || j.Share != nil && *j.Share != *tc.want {
				t.Errorf("share %+v, want %+v", j.Share, tc.want)
			}
			if got := j.AttainedService(70); got != tc.part*70 {
				t.Errorf("%v device-seconds after 70 s, want %v", got, tc.part*70)
			}
		})
	}
}

// onFirst seats every job on the first device.
type onFirst struct{}

func (onFirst) Place(_ context.Context, _ *core.View, grants []core.Grant) (s core.Seating, err error) {
	for _, g := range grants {
		s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: []core.Seat{{Devices: 1}}})
	}
	return s, nil
}

// The slice that a job has stays where it is, also where all that runs is counted anew: the first 1g began at 6, the second at 4, and once the first is
// gone there is room for two of 2g, while three would fit beside one at 6.
func TestSlicesStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		more int
		want bool
	}{"two": {2, true}, "three": {3, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &core.Cluster{Accelerators: []string{"a100"}, Sharing: core.Mig, Nodes: []core.Node{{Name: "a", Devices: 1}, {ID: 1, Name: "b", Devices: 1}}}
			stages := fakes{}.stages()
			stages.Placement.Policy = onFirst{}
			p := core.NewPipeline(c, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}})
			of := func(id core.JobID, profile string) core.Event {
				e := submit(id, 0, 1)
				e.Spec.Share = &core.Share{Milli: 1000, Profile: profile}
				return e
			}
			if err := p.Round(context.Background(), core.Observation{Events: []core.Event{of(0, "1g"), of(1, "1g")}}, &script{}); err != nil {
				t.Fatal(err)
			}
			seen := core.Observation{NowSeconds: 60, Events: []core.Event{
				{Kind: core.JobFinished, Job: 0}, {Kind: core.NodeChanged, Node: 1, Health: core.Draining},
			}}
			for i := range tc.more {
				seen.Events = append(seen.Events, of(core.JobID(2+i), "2g"))
			}
			var b script
			if err := p.Round(context.Background(), seen, &b); (err == nil) != tc.want {
				t.Errorf("%d jobs of 2g beside a 1g at 4: error %v", tc.more, err)
			}
			for i, c := range b.applied {
				if want := uint8(2 * i); !slices.Equal(c.Slices, []uint8{want}) {
					t.Errorf("slice of change %d begins at %v, want %d", i, c.Slices, want)
				}
			}
		})
	}
}
