package gandiva

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/pace"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// sliced is a cluster through rounds of a policy: jobs are seated where units of their turn to run find devices, lowest first.
type sliced struct {
	t       *testing.T
	policy  core.Allocator
	cluster *core.Cluster
	jobs    []*coretest.JobBuilder
	running map[core.JobID][]core.Seat
	since   map[core.JobID]float64
	rates   func(id, beside core.JobID) float64 // beside -1 for nobody
	ended   []core.JobID
	slack   func(j *core.Job) core.Response
}

func newSliced(t *testing.T, config map[string]any, cluster *core.Cluster, jobs ...*coretest.JobBuilder) *sliced {
	return &sliced{
		t: t, policy: policytest.New(t, New(), config), cluster: cluster, jobs: jobs, running: map[core.JobID][]core.Seat{}, since: map[core.JobID]float64{},
		rates: func(_, beside core.JobID) float64 { return map[bool]float64{true: 1, false: 0.6}[beside < 0] }, slack: policytest.Rigid,
	}
}

// round holds one, and returns the units that run after it.
func (s *sliced) round(now float64) string {
	s.t.Helper()
	beside := map[core.JobID]core.JobID{}
	for id, seats := range s.running {
		beside[id] = -1
		for other, at := range s.running {
			if other != id && core.SameDevices(seats, at) {
				beside[id] = other
			}
		}
	}
	for i := range s.jobs {
		id := core.JobID(i)
		if seats := s.running[id]; seats != nil {
			s.jobs[i].Running(s.since[id], seats...).Progress(0, s.rates(id, beside[id]))
		} else {
			s.jobs[i].Waiting()
		}
	}
	v := coretest.MakeView(s.cluster).Now(now).Jobs(s.jobs...).Obj()
	for i := range s.jobs {
		if s.running[core.JobID(i)] == nil {
			v.Jobs[i].Seats, v.Jobs[i].Held = nil, 0
		}
	}
	for _, id := range s.ended {
		v.Jobs[id] = nil
	}
	v.Active = nil
	for i, j := range v.Jobs {
		if j != nil {
			v.Active = append(v.Active, core.JobID(i))
		}
	}
	grants := policytest.Ask(s.t, s.policy, v, s.slack)
	before, free := s.running, core.Ledger{}
	free.Reset(s.cluster)
	s.running = map[core.JobID][]core.Seat{}
	var fresh [][]core.Grant
	for i := 0; i < len(grants); {
		group := grants[i : i+core.GroupOf(grants, i)]
		i += len(group)
		kept := false
		for _, g := range group {
			if seats := before[g.Job]; !kept && core.Replicas(seats) == g.Replicas && free.Occupy(seats) {
				kept = true
				s.seat(group, seats, before, now)
			}
		}
		if !kept {
			fresh = append(fresh, group)
		}
	}
	for _, group := range fresh {
		for n := range s.cluster.Nodes {
			if free.Free(core.NodeID(n)) >= group[0].Replicas {
				s.seat(group, []core.Seat{free.Take(core.NodeID(n), group[0].Replicas)}, before, now)
				break
			}
		}
	}
	var words []string
	for i := 0; i < len(grants); {
		n := core.GroupOf(grants, i)
		words = append(words, policytest.Units(grants[i:i+n]))
		i += n
	}
	return strings.Join(words, " ")
}

func (s *sliced) seat(group []core.Grant, seats []core.Seat, before map[core.JobID][]core.Seat, now float64) {
	for _, g := range group {
		s.running[g.Job] = seats
		if !core.SameDevices(before[g.Job], seats) {
			s.since[g.Job] = now
		}
	}
}

// rounds holds one at each of the moments, and joins what runs.
func (s *sliced) rounds(moments ...float64) string {
	s.t.Helper()
	var all []string
	for _, now := range moments {
		all = append(all, fmt.Sprintf("%v: %s", now, s.round(now)))
	}
	return strings.Join(all, "\n")
}

func (s *sliced) want(got, want string) {
	s.t.Helper()
	want = strings.TrimSpace(strings.ReplaceAll(want, "\t", ""))
	if got != want {
		s.t.Errorf("granted\n%s\nwant\n%s", got, want)
	}
}

func job(replicas int) *coretest.JobBuilder {
	return coretest.MakeJob("a").Replicas(replicas).Utilisation(0.5)
}

func oneNode(devices int) *core.Cluster {
	return coretest.MakeCluster().Nodes(1, "t4", devices).TakesTurns(2, 16).Obj()
}

// Two devices and three jobs: who had least is next, and turns end at multiples of the slice.
func TestGandivaTakesTurns(t *testing.T) {
	s := newSliced(t, map[string]any{"pairs": pairsNone}, oneNode(2), job(1), job(1), job(1))
	s.want(s.rounds(0, 30, 60, 90, 120, 180), `
		0: 0×1 1×1
		30: 0×1 1×1
		60: 2×1 0×1
		90: 0×1 2×1
		120: 1×1 2×1
		180: 0×1 1×1`)
	if got := s.policy.(core.Steady).Standing().UntilSeconds; got > 240 || got < 239.99 {
		t.Errorf("stands until %v, want until the slice is over at 240", got)
	}
}

// A job of twice the weight has its devices twice as long, one of many replicas as long as one of few, and one that comes later begins with those
// that had least.
func TestGandivaTurnsByWeight(t *testing.T) {
	s := newSliced(t, map[string]any{"pairs": pairsNone}, oneNode(2), job(2).Weight(2), job(1), job(1))
	count := map[core.JobID]int{}
	for slice := range 60 {
		if slice == 30 {
			s.jobs = append(s.jobs, job(1))
		}
		s.round(float64(60 * slice))
		for id := range s.running {
			count[id]++
		}
	}
	// In the first half 20 slices of both devices and 10 of one, in the second 17 of both, and 26 device-slices for three.
	for id, want := range map[core.JobID]int{0: 37, 1: 19, 2: 19, 3: 9} {
		if got := count[id]; got < want-1 || got > want {
			t.Errorf("job %d has %d slices, want %d", id, got, want)
		}
	}
}

// While somebody waits, the two that use least are tried together; the pair stays while it is worth it, and until it is needed no more.
func TestGandivaPacks(t *testing.T) {
	s := newSliced(t, nil, oneNode(2), job(1).Utilisation(0.9), job(1).Utilisation(0.2), job(1).Utilisation(0.3))
	s.want(s.rounds(0, 60, 120, 240), `
		0: 0×1 1×1
		60: 2×1 0+1×1
		120: 2×1 0+1×1
		240: 2×1 0+1×1`)
	if got := s.policy.(core.Steady).Standing().UntilSeconds; got != 240 {
		t.Errorf("with a pair it stands until %v, want to be asked every round", got)
	}
	s.ended = []core.JobID{0}
	delete(s.running, 0)
	s.want(s.rounds(300, 360), `
		300: 2×1 1×1
		360: 2×1 1×1`)
	if got := s.policy.(core.Steady).Standing().UntilSeconds; !math.IsInf(got, 1) {
		t.Errorf("with devices for all it stands until %v", got)
	}
}

// Of jobs whose rates alone are known, those that use least are tried first; 0 and 1 are no faster than in turns, all others are.
func TestGandivaPartsAndRemembers(t *testing.T) {
	for name, tc := range map[string]struct {
		worst float64 // of each of 0 and 1 beside the other
		want  string
	}{
		"as fast as in turns": {0.5, `
			0: 0×1 1×1
			60: 2×1 0+1×1
			120: 1+2×1 0×1
			180: 1+2×1 0×1`},
		"a little faster": {0.501, `
			0: 0×1 1×1
			60: 2×1 0+1×1
			120: 2×1 0+1×1
			180: 2×1 0+1×1`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSliced(t, nil, oneNode(2), job(1).Utilisation(0.9), job(1).Utilisation(0.2), job(1).Utilisation(0.3))
			s.rates = func(id, beside core.JobID) float64 {
				switch {
				case beside < 0:
					return 2 // of which parts are taken
				case id+beside == 1:
					return 2 * tc.worst
				}
				return 1.2
			}
			s.want(s.rounds(0, 60, 120, 180), tc.want)
		})
	}
}

func TestGandivaDoesNotPack(t *testing.T) {
	alike := []*coretest.JobBuilder{job(1), job(1), job(1)}
	twoTypes := coretest.MakeCluster().Nodes(1, "t4", 1).Nodes(1, "v100", 1).TakesTurns(2, 16).Obj()
	cases := map[string]struct {
		config  map[string]any
		cluster *core.Cluster
		jobs    []*coretest.JobBuilder
		rate    float64 // alone
	}{
		"when told not to":              {map[string]any{"pairs": pairsNone}, oneNode(1), alike, 1},
		"where nobody takes turns":      {nil, coretest.MakeCluster().Nodes(1, "t4", 1).Obj(), alike, 1},
		"where devices have one owner":  {nil, coretest.MakeCluster().Nodes(1, "t4", 1).TakesTurns(1, 16).Obj(), alike, 1},
		"who need too much memory":      {nil, oneNode(1), []*coretest.JobBuilder{job(1).DeviceMemory(10.5), job(1).DeviceMemory(5.75)}, 1},
		"those of other sizes":          {nil, oneNode(2), []*coretest.JobBuilder{job(1), job(2)}, 1},
		"those of which nobody hears":   {nil, oneNode(1), alike, 0},
		"those that may run elsewhere":  {nil, twoTypes, []*coretest.JobBuilder{job(1), job(1).Accelerators("t4"), job(1).Accelerators("v100")}, 1},
		"with drawn pairs none of them": {map[string]any{"pairs": pairsRandom}, oneNode(2), []*coretest.JobBuilder{job(1), job(2)}, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSliced(t, tc.config, tc.cluster, tc.jobs...)
			s.rates = func(_, _ core.JobID) float64 { return tc.rate }
			for slice := range 12 {
				if got := s.round(float64(60 * slice)); strings.Contains(got, "+") {
					t.Fatalf("slice %d: %s", slice, got)
				}
			}
		})
	}
}

// Memory that both fill is enough, and who is pinned is left alone.
func TestGandivaPacksWithinMemory(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second *coretest.JobBuilder
		packs         bool
	}{
		"both fill it":  {job(1).DeviceMemory(10), job(1).DeviceMemory(6), true},
		"one is pinned": {job(1).Pinned(), job(1), false},
	} {
		s := newSliced(t, nil, oneNode(1), tc.first, tc.second)
		packed := false
		for slice := range 6 {
			packed = packed || strings.Contains(s.round(float64(60*slice)), "+")
		}
		if packed != tc.packs {
			t.Errorf("%s: packs %t", name, packed)
		}
	}
}

// A pair that stops coming forward is parted as well as one that is slow.
func TestGandivaPartsPairsThatStandStill(t *testing.T) {
	s := newSliced(t, nil, oneNode(1), job(1), job(1))
	s.rates = func(_, beside core.JobID) float64 {
		if beside >= 0 {
			return 0
		}
		return 1
	}
	s.want(s.rounds(0, 60, 120, 180, 240), `
		0: 0×1
		60: 1×1
		120: 0+1×1
		180: 0×1
		240: 1×1`)
}

// Idle devices of its node go to a job that can use them, and back when somebody comes.
func TestGandivaGrowsAndShrinks(t *testing.T) {
	s := newSliced(t, map[string]any{"grow_shrink": true}, coretest.MakeCluster().Nodes(2, "t4", 4).TakesTurns(2, 16).Obj(), job(2).Elastic(1, 2, 3), job(1), job(4))
	s.slack = func(j *core.Job) core.Response {
		return core.Response{Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas}
	}
	s.want(s.rounds(0, 60, 120), `
		0: 0×2 1×1 2×4
		60: 0×3 1×1 2×4
		120: 0×3 1×1 2×4`)
	s.jobs = append(s.jobs, job(1))
	s.want(s.rounds(180, 240), `
		180: 0×2 1×1 2×4 3×1
		240: 0×2 1×1 2×4 3×1`)
	s.ended = []core.JobID{1}
	delete(s.running, 1)
	s.want(s.rounds(300), "300: 0×3 2×4 3×1")
}

// One that gains nothing from another device takes none.
func TestGandivaGrowsWhoGains(t *testing.T) {
	for rate, want := range map[float64]string{2.1: "60: 0×3", 2: "60: 0×2", 0: "60: 0×2"} {
		s := newSliced(t, map[string]any{"grow_shrink": true}, oneNode(4), job(2).Elastic(1, 2, 3))
		s.slack = func(j *core.Job) core.Response {
			return core.Response{Job: j.ID, MinReplicas: 1, MaxReplicas: 3, Curves: []core.Curve{{OneNode: []float64{1, 2, rate}}}}
		}
		s.round(0)
		s.want(s.rounds(60), want)
	}
}

// One that takes over after any round goes on as the one before would have.
func TestGandivaGoesOnFromItsSnapshot(t *testing.T) {
	jobs := func() []*coretest.JobBuilder {
		return []*coretest.JobBuilder{job(1).Utilisation(0.9), job(1).Utilisation(0.2).Weight(2), job(1).Utilisation(0.3), job(2), job(1)}
	}
	rates := func(id, beside core.JobID) float64 {
		switch {
		case beside < 0:
			return 2
		case (id+beside)%3 == 0:
			return 0.9
		}
		return 1.2
	}
	for after := range 8 {
		one, other := newSliced(t, nil, oneNode(2), jobs()...), newSliced(t, nil, oneNode(2), jobs()...)
		one.rates, other.rates = rates, rates
		for slice := range 12 {
			now := float64(60 * slice)
			got, want := other.round(now), one.round(now)
			if got != want {
				t.Fatalf("taken over after round %d: in round %d %s, want %s", after, slice, got, want)
			}
			if slice == after {
				learned, err := other.policy.(core.Snapshotter).Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				other.policy = policytest.New(t, New(), nil)
				if err := other.policy.(core.Snapshotter).Restore(learned); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestGandivaRefusesBrokenSnapshots(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":             ``,
		"no such job":         `{"Jobs":[{"Job":-1,"Mate":-1,"With":-1}]}`,
		"a job twice":         `{"Jobs":[{"Job":1,"Mate":-1},{"Job":1,"Mate":-1}]}`,
		"a mate of another":   `{"Jobs":[{"Job":1,"Mate":2},{"Job":2,"Mate":-1}]}`,
		"a mate of its own":   `{"Jobs":[{"Job":1,"Mate":1}]}`,
		"a mate that is none": `{"Jobs":[{"Job":1,"Mate":7}]}`,
		"a rate of 0":         `{"Alone":[{"Job":1,"Rate":0,"Replicas":1,"Nodes":1}]}`,
		"two rates":           `{"Alone":[{"Job":1,"Rate":1,"Replicas":1,"Nodes":1},{"Job":1,"Rate":1,"Replicas":1,"Nodes":1}]}`,
	} {
		policy := policytest.New(t, New(), nil).(*gandiva)
		if err := policy.Restore([]byte(text)); err == nil || len(policy.jobs) > 0 || policy.asked {
			t.Errorf("%s: error %v, %d jobs", name, err, len(policy.jobs))
		}
	}
}

// When somebody leaves, only as many pairs are parted as there are devices for, those that gain least first.
func TestGandivaPartsTheWorstPairsFirst(t *testing.T) {
	s := newSliced(t, nil, oneNode(3), job(1).Utilisation(0.1), job(1).Utilisation(0.2), job(1).Utilisation(0.3), job(1).Utilisation(0.4), job(1).Utilisation(0.5))
	s.rates = func(id, beside core.JobID) float64 {
		switch {
		case beside < 0:
			return 1
		case id < 2:
			return 0.55 // 0 and 1, and others beside them
		}
		return 0.9
	}
	for slice := range 6 {
		s.round(float64(60 * slice))
	}
	before := s.round(360)
	if strings.Count(before, "+") != 2 {
		t.Fatalf("%s: want two pairs", before)
	}
	alone := core.JobID(-1)
	for id, seats := range s.running {
		shares := false
		for other, at := range s.running {
			shares = shares || other != id && core.SameDevices(seats, at)
		}
		if !shares {
			alone = id
		}
	}
	s.ended = []core.JobID{alone}
	delete(s.running, alone)
	after := s.round(420)
	if strings.Count(after, "+") != 1 || strings.Contains(after, "0+") || strings.Contains(after, "1+") {
		t.Errorf("before %s, after job %d left %s: want the pair of jobs 0 and 1 parted", before, alone, after)
	}
	if n := len(s.policy.(*gandiva).jobs); n != 4 {
		t.Errorf("remembers %d jobs, want 4", n)
	}
	if n := len(s.policy.(*gandiva).paces.Learned()); n != 4 {
		t.Errorf("remembers %d rates, want 4", n)
	}
}

func TestGandivaDrawsPairs(t *testing.T) {
	s := newSliced(t, map[string]any{"pairs": pairsRandom}, oneNode(2), job(1), job(1), job(1), job(1), job(1))
	pairs := 0
	for slice := range 12 {
		pairs = max(pairs, strings.Count(s.round(float64(60*slice)), "+"))
	}
	if pairs != 2 {
		t.Errorf("%d pairs at once, want 2 of five jobs", pairs)
	}
}

// A pair is measured after a whole slice, not at rounds before.
func TestGandivaMeasuresAfterASlice(t *testing.T) {
	s := newSliced(t, nil, oneNode(1), job(1), job(1))
	s.rates = func(_, beside core.JobID) float64 {
		if beside >= 0 {
			return 0.4
		}
		return 1
	}
	s.want(s.rounds(0, 60, 120, 150, 179, 180), `
		0: 0×1
		60: 1×1
		120: 0+1×1
		150: 0+1×1
		179: 0+1×1
		180: 0×1`)
}

// Members of a pair count as having their devices half of the time: of four jobs on one device, two of which are a pair, that has half of the slices.
func TestGandivaChargesPairsByHalves(t *testing.T) {
	s := newSliced(t, nil, oneNode(1), job(1), job(1), job(1).DeviceMemory(16), job(1).DeviceMemory(15.5))
	s.jobs[0].DeviceMemory(1)
	s.jobs[1].DeviceMemory(1)
	count := map[string]int{}
	for slice := range 46 {
		if got := s.round(float64(60 * slice)); slice >= 6 {
			count[got]++
		}
	}
	if pair := count["0+1×1"]; pair < 19 || pair > 21 || count["2×1"] < 9 || count["3×1"] < 9 {
		t.Errorf("slices %v, want 20 of the pair, and 10 of each of the others", count)
	}
}

// Those whom another scheduler packed stay together while that is worth it, once it is known how fast they are alone.
func TestGandivaTakesPairsOver(t *testing.T) {
	for beside, want := range map[float64]string{0.6: "0+1×1", 0.4: "0×1"} {
		policy := policytest.New(t, New(), nil).(*gandiva)
		alone, err := pace.Restored([]pace.Learned{{Job: 0, Rate: 1, Replicas: 1, Nodes: 1}, {Job: 1, Rate: 1, Replicas: 1, Nodes: 1}})
		if err != nil {
			t.Fatal(err)
		}
		policy.paces = alone
		seat := core.Seat{Devices: 1}
		v := coretest.MakeView(oneNode(1)).Now(600).Jobs(
			job(1).Running(0, seat).Progress(0, beside), job(1).Running(0, seat).Progress(0, beside),
		).Obj()
		if got := policytest.Units(policytest.Ask(t, policy, v, policytest.Rigid)); got != want {
			t.Errorf("at %v of the rates alone: granted %s, want %s", beside, got, want)
		}
	}
}

// On devices of one type which of them is left to the placement; of several, each job has one that it can run on, and keeps it.
func TestGandivaGrantsTypes(t *testing.T) {
	two := coretest.MakeCluster().Nodes(1, "t4", 1).Nodes(1, "v100", 2).TakesTurns(2, 16).Obj()
	v := coretest.MakeView(two).Now(600).Jobs(
		job(1).Running(0, core.Seat{Node: 1, Devices: 2}), job(1).Accelerators("v100").Waiting(), job(1).Waiting(), job(1).Accelerators("t4").Waiting(),
	).Obj()
	var got []core.AcceleratorID
	for _, g := range policytest.Ask(t, policytest.New(t, New(), map[string]any{"pairs": pairsNone}), v, policytest.Rigid) {
		got = append(got, g.Accelerator)
	}
	if want := []core.AcceleratorID{1, 1, 0}; !slices.Equal(got, want) {
		t.Errorf("types %v, want %v", got, want)
	}
	v = coretest.MakeView(oneNode(1)).Now(600).Jobs(job(1).Waiting()).Obj()
	if grants := policytest.Ask(t, policytest.New(t, New(), nil), v, policytest.Rigid); grants[0].Accelerator != core.AnyAccelerator {
		t.Errorf("of one type it grants type %d", grants[0].Accelerator)
	}
}

// Whether turns are over does not depend on a round that was not held: at 305 s the slice that ended at 300 s is an old story.
func TestTurnsOfGandivaDoNotDependOnRoundsThatAreNotHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		how      core.Sharing
		now      float64
		interval float64
		want     float64
	}{
		"jobs share devices":      {core.TimeSlice, 305, 60, 300},
		"on the grid":             {core.TimeSlice, 300, 60, 240},
		"soon after the last one": {core.TimeSlice, 165, 60, 161},
		"without an interval":     {core.TimeSlice, 305, 0, 161},
		"whole devices":           {core.Exclusive, 305, 60, 161},
	} {
		v := policytest.SharedDevices(tc.how)
		v.NowSeconds, v.IntervalSeconds = tc.now, tc.interval
		if got := (&gandiva{last: 161}).before(v); got != tc.want {
			t.Errorf("%s: the round before was at %v s, want %v", name, got, tc.want)
		}
	}
}
