package synergy_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
	. "github.com/quartet-sched/quartet/policykit/synergy"
)

// of is a toy with so many devices, of a kind.
func of(kind, devices int) Server {
	return Server{Devices: devices, Resources: toy.Resources, Kind: kind}
}

func with(j Job, change func(j *Job)) Job {
	change(&j)
	return j
}

// Which servers, and what of their CPUs, computed by hand. A server has 8 CPUs, of which a device stands for 2.
func TestSeats(t *testing.T) {
	t.Parallel()
	plain := func(devices int) Job { return toyJob(devices, 2, 10, 1) }
	light := func(devices int) Job { return toyJob(devices, 0.5, 1, 1) }
	on := func(kinds uint64) func(*Job) { return func(j *Job) { j.Kinds = kinds } }
	mixes := func(kinds uint64) func(*Job) { return func(j *Job) { j.Kinds, j.Mixes = kinds, true } }
	stays := func(seats ...Seat) func(*Job) { return func(j *Job) { j.Stays, j.Runs = seats, true } }
	type grant struct {
		CPUs, Speed float64
		Seats       []Seat
	}
	for name, tc := range map[string]struct {
		mode        Mode
		consolidate bool
		servers     []Server
		jobs        []Job
		want        []grant
	}{
		"a job without devices has nothing": {Fair, false, []Server{of(0, 4)}, []Job{{Fair: toyFair}, plain(1)}, []grant{{}, {2, 1, []Seat{{0, 1}}}}},
		"of a later kind": {Fair, false, []Server{of(0, 4), of(1, 4), of(2, 4)}, []Job{with(plain(2), on(0b100)), with(plain(2), on(0b110))}, []grant{
			{4, 1, []Seat{{2, 2}}}, {4, 1, []Seat{{1, 2}}},
		}},
		"all of a kind":                  {Fair, false, []Server{of(0, 4), of(1, 4)}, []Job{with(plain(4), on(2))}, []grant{{8, 1, []Seat{{1, 4}}}}},
		"no two kinds":                   {Fair, false, []Server{of(0, 2), of(1, 2)}, []Job{plain(3)}, []grant{{}}},
		"two kinds where they are mixed": {Fair, false, []Server{of(0, 2), of(1, 2), of(2, 2)}, []Job{with(plain(4), mixes(0b101))}, []grant{{8, 1, []Seat{{0, 2}, {2, 2}}}}},
		"more than both have":            {Fair, false, []Server{of(0, 2), of(1, 2)}, []Job{with(plain(5), mixes(3))}, []grant{{}}},
		"consolidated on its kind, though another is fuller": {Fair, true, []Server{of(0, 2), of(1, 4)}, []Job{with(plain(2), on(2))}, []grant{{4, 1, []Seat{{1, 2}}}}},
		"consolidated on the first of two alike":             {Fair, true, []Server{of(0, 3), of(0, 3)}, []Job{plain(2)}, []grant{{4, 1, []Seat{{0, 2}}}}},
		"one that has the room before fuller ones":           {Fair, true, []Server{of(0, 2), of(0, 1)}, []Job{plain(2)}, []grant{{4, 1, []Seat{{0, 2}}}}},
		"from the fullest until it is full":                  {Fair, true, []Server{of(0, 3), of(0, 1), of(0, 2)}, []Job{plain(4)}, []grant{{8, 1, []Seat{{0, 1}, {1, 1}, {2, 2}}}}},
		"of two alike all of the first":                      {Fair, true, []Server{of(0, 2), of(0, 2)}, []Job{plain(3)}, []grant{{6, 1, []Seat{{0, 2}, {1, 1}}}}},
		"device by device of its kind alone":                 {Fair, true, []Server{of(1, 1), of(0, 2), of(0, 2)}, []Job{with(plain(3), on(1))}, []grant{{6, 1, []Seat{{1, 2}, {2, 1}}}}},
		"no more on a server than CPUs are for":              {Greedy, true, []Server{of(0, 4), of(0, 4)}, []Job{toyJob(3, 4, 10, 2)}, []grant{{12, 2, []Seat{{0, 2}, {1, 1}}}}},
		"and none where they do not suffice":                 {Greedy, true, []Server{of(0, 4), of(0, 4)}, []Job{toyJob(5, 4, 10, 2), plain(1)}, []grant{{}, {2, 1, []Seat{{0, 1}}}}},
		"who does without CPUs has seats where there are none": {Greedy, false, []Server{of(0, 4)}, []Job{toyJob(2, 4, 5, 2), toyJob(1, 0, 5, 1), toyJob(1, 1, 0, 1)}, []grant{
			{8, 2, []Seat{{0, 2}}}, {0, 1, []Seat{{0, 1}}}, {},
		}},
		// What is taken back for a job.
		"from the server with the fewest free for one device": {Tune, false, []Server{of(0, 3), of(0, 2)}, []Job{toyJob(1, 8, 1, 2), toyJob(1, 8, 1, 3), toyJob(1, 2, 1, 1)}, []grant{
			{8, 2, []Seat{{0, 1}}}, {2, 1, []Seat{{1, 1}}}, {2, 1, []Seat{{1, 1}}},
		}},
		"from the first with enough for several": {Tune, false, []Server{of(0, 4), of(0, 3)}, []Job{toyJob(1, 8, 1, 2), toyJob(1, 8, 1, 3), plain(2)}, []grant{
			{2, 1, []Seat{{0, 1}}}, {8, 3, []Seat{{1, 1}}}, {4, 1, []Seat{{0, 2}}},
		}},
		"from the fullest where none has enough": {Tune, false, []Server{of(0, 4), of(0, 2), of(0, 3)}, []Job{
			toyJob(1, 8, 1, 2), toyJob(1, 8, 1, 3), toyJob(1, 8, 1, 4), plain(5),
		}, []grant{
			{2, 1, []Seat{{0, 1}}}, {2, 1, []Seat{{1, 1}}}, {2, 1, []Seat{{2, 1}}}, {10, 1, []Seat{{0, 3}, {1, 1}, {2, 1}}},
		}},
		"from no more servers than it needs": {Tune, false, []Server{of(0, 3), of(0, 3), of(0, 2)}, []Job{
			toyJob(1, 8, 1, 2), toyJob(1, 8, 1, 3), toyJob(1, 8, 1, 4), plain(3),
		}, []grant{
			{2, 1, []Seat{{0, 1}}}, {8, 3, []Seat{{1, 1}}}, {2, 1, []Seat{{2, 1}}}, {6, 1, []Seat{{0, 2}, {2, 1}}},
		}},
		"of its kind alone": {Tune, false, []Server{of(0, 2), of(1, 4)}, []Job{with(toyJob(1, 8, 1, 2), on(1)), with(toyJob(1, 8, 1, 3), on(2)), with(plain(1), on(2))}, []grant{
			{8, 2, []Seat{{0, 1}}}, {2, 1, []Seat{{1, 1}}}, {2, 1, []Seat{{1, 1}}},
		}},
		"from the one with the most CPUs for a device": {Tune, false, []Server{of(0, 4)}, []Job{toyJob(2, 2.5, 1, 2), toyJob(1, 3, 1, 3), toyJob(1, 1, 1, 1)}, []grant{
			{5, 2, []Seat{{0, 2}}}, {2, 1, []Seat{{0, 1}}}, {1, 1, []Seat{{0, 1}}},
		}},
		"then with the most memory for a device": {Tune, false, []Server{of(0, 4)}, []Job{toyJob(2, 1, 12.5, 2), toyJob(1, 1, 15, 3), toyJob(1, 1, 5, 1)}, []grant{
			{2, 2, []Seat{{0, 2}}}, {1, 1, []Seat{{0, 1}}}, {1, 1, []Seat{{0, 1}}},
		}},
		"as little memory as is missing": {Tune, false, []Server{of(0, 4)}, []Job{toyJob(1, 1, 20, 2), toyJob(1, 1, 20, 3), plain(1)}, []grant{
			{1, 1, []Seat{{0, 1}}}, {1, 3, []Seat{{0, 1}}}, {2, 1, []Seat{{0, 1}}},
		}},
		"no more than is missing": {Tune, false, []Server{of(0, 4)}, []Job{toyJob(1, 4, 1, 2), toyJob(1, 4, 1, 3), plain(1)}, []grant{
			{2, 1, []Seat{{0, 1}}}, {4, 3, []Seat{{0, 1}}}, {2, 1, []Seat{{0, 1}}},
		}},
		"who has less than its part keeps it": {Tune, false, []Server{of(0, 4)}, []Job{toyJob(1, 7.5, 1, 2), toyJob(1, 0.5, 1, 3), plain(1), plain(1)}, []grant{
			{2, 1, []Seat{{0, 1}}}, {0.5, 3, []Seat{{0, 1}}}, {2, 1, []Seat{{0, 1}}}, {2, 1, []Seat{{0, 1}}},
		}},
		"who asks for less than its part keeps its speed": {Tune, false, []Server{of(0, 4)}, []Job{toyJob(1, 1, 1, 1.1), toyJob(1, 7, 1, 2), plain(1)}, []grant{
			{1, 1.1, []Seat{{0, 1}}}, {2, 1, []Seat{{0, 1}}}, {2, 1, []Seat{{0, 1}}},
		}},
		// The larger one has less for a device.
		"from the one with the most for a device, who came last": {Tune, false, []Server{of(0, 4)}, []Job{toyJob(1, 3, 1, 3), toyJob(2, 2.5, 1, 2), toyJob(1, 1, 1, 1)}, []grant{
			{2, 1, []Seat{{0, 1}}}, {5, 2, []Seat{{0, 2}}}, {1, 1, []Seat{{0, 1}}},
		}},
		"memory as well": {Tune, false, []Server{of(0, 4)}, []Job{toyJob(1, 1, 15, 3), toyJob(2, 1, 12.5, 2), toyJob(1, 1, 5, 1)}, []grant{
			{1, 1, []Seat{{0, 1}}}, {2, 2, []Seat{{0, 2}}}, {1, 1, []Seat{{0, 1}}},
		}},
		"who is over its part in nothing is passed over": {Tune, false, []Server{of(0, 4)}, []Job{toyJob(1, 1.5, 1, 1.1), toyJob(1, 1, 30, 2), plain(1)}, []grant{
			{1.5, 1.1, []Seat{{0, 1}}}, {1, 1, []Seat{{0, 1}}}, {2, 1, []Seat{{0, 1}}},
		}},
		"the first of two servers alike": {Tune, false, []Server{of(0, 2), of(0, 2)}, []Job{toyJob(1, 8, 1, 2), toyJob(1, 8, 1, 3), plain(1)}, []grant{
			{2, 1, []Seat{{0, 1}}}, {8, 3, []Seat{{1, 1}}}, {2, 1, []Seat{{0, 1}}},
		}},
		"what several devices want of a server, and no more": {Tune, false, []Server{of(0, 4)}, []Job{toyJob(1, 3, 1, 2), toyJob(1, 3, 1, 3), toyJob(2, 1.5, 1, 1)}, []grant{
			{2, 1, []Seat{{0, 1}}}, {3, 3, []Seat{{0, 1}}}, {3, 1, []Seat{{0, 2}}},
		}},
		"from servers of its kind, whoever asked before": {Tune, false, []Server{of(0, 4), of(1, 3), of(1, 3)}, []Job{
			with(toyJob(1, 8, 1, 2), on(1)), with(toyJob(1, 8, 1, 3), on(2)), with(toyJob(1, 8, 1, 4), on(2)), with(plain(1), on(1)), with(plain(4), on(2)),
		}, []grant{
			{2, 1, []Seat{{0, 1}}}, {2, 1, []Seat{{1, 1}}}, {2, 1, []Seat{{2, 1}}}, {2, 1, []Seat{{0, 1}}}, {8, 1, []Seat{{1, 2}, {2, 2}}},
		}},
		// Those that stay.
		"who stays is seated first, and divides in turn": {Tune, false, []Server{of(0, 4)}, []Job{toyJob(1, 6, 10, 2), with(toyJob(1, 6, 10, 3), stays(Seat{0, 1}))}, []grant{
			{6, 2, []Seat{{0, 1}}}, {2, 1, []Seat{{0, 1}}},
		}},
		"seats are kept while others are divided": {Tune, false, []Server{of(0, 4), of(0, 4)}, []Job{
			light(1), light(2), with(light(3), stays(Seat{1, 3})), with(light(2), stays(Seat{0, 2})),
		}, []grant{
			{0.5, 1, []Seat{{0, 1}}}, {1, 1, []Seat{{0, 1}, {1, 1}}}, {1.5, 1, []Seat{{1, 3}}}, {1, 1, []Seat{{0, 2}}},
		}},
		"of those that stay no more than is missing is taken": {Tune, false, []Server{of(0, 4)}, []Job{
			with(toyJob(2, 2.5, 1, 2), stays(Seat{0, 2})), with(toyJob(1, 3, 1, 3), stays(Seat{0, 1})), with(toyJob(1, 2, 1, 1), stays(Seat{0, 1})),
		}, []grant{
			{4, 1, []Seat{{0, 2}}}, {2, 1, []Seat{{0, 1}}}, {2, 1, []Seat{{0, 1}}},
		}},
		"who comes is given what it asks for or nothing, where those that stay make room for one another": {Greedy, false, []Server{of(0, 4)}, []Job{
			with(toyJob(1, 7, 1, 2), stays(Seat{0, 1})), toyJob(1, 4, 1, 3), with(plain(1), stays(Seat{0, 1})),
		}, []grant{
			{2, 1, []Seat{{0, 1}}}, {4, 3, []Seat{{0, 1}}}, {2, 1, []Seat{{0, 1}}},
		}},
		// On a server of fewer CPUs a device than the jobs' part. The second finds no seat, but takes from the first, so that there is room for the fourth.
		"seats that are lost in turn are found again": {Tune, false, []Server{{Devices: 3, Resources: resources(5, 25)}}, []Job{
			with(toyJob(1, 3, 0, 2), stays(Seat{0, 1})), toyJob(2, 3, 0, 3), toyJob(1, 5, 5, 4), toyJob(1, 1, 15, 5),
		}, []grant{
			{2, 1, []Seat{{0, 1}}}, {}, {2, 1, []Seat{{0, 1}}}, {1, 5, []Seat{{0, 1}}},
		}},
		"who stays takes what is missing for its devices, and no more": {Tune, false, []Server{of(0, 4)}, []Job{
			with(toyJob(1, 3, 1, 2), stays(Seat{0, 1})), with(toyJob(1, 3, 1, 3), stays(Seat{0, 1})), with(toyJob(2, 1.5, 1, 1), stays(Seat{0, 2})),
		}, []grant{
			{2, 1, []Seat{{0, 1}}}, {3, 3, []Seat{{0, 1}}}, {3, 1, []Seat{{0, 2}}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Packer{Mode: tc.mode, Consolidate: tc.consolidate}
			p.Round([]Server{of(0, 4), of(0, 4), of(0, 4)}, slices.Repeat([]Job{light(1)}, 6)) // leaves nothing
			var got []grant
			for _, g := range p.Round(tc.servers, tc.jobs) {
				got = append(got, grant{g.CPUs, g.Speed, g.Seats})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("grants (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLeft(t *testing.T) {
	t.Parallel()
	p := Packer{Mode: Fair}
	p.Round([]Server{of(0, 4), of(1, 3), of(2, 1)}, []Job{
		with(toyJob(1, 2, 10, 1), func(j *Job) { j.Kinds = 1 }),
		with(toyJob(2, 2, 10, 1), func(j *Job) { j.Kinds, j.Blocking = 4, true }), // has no seat
		with(toyJob(1, 2, 10, 1), func(j *Job) { j.Kinds = 4 }),
		with(toyJob(1, 2, 10, 1), func(j *Job) { j.Kinds, j.Runs = 4, true }),
	})
	for name, tc := range map[string]struct {
		kinds uint64
		want  Capacity
	}{
		"of none":             {0, Capacity{}},
		"of one":              {1, Capacity{3, resources(6, 30)}},
		"of two":              {3, Capacity{6, resources(14, 70)}},
		"of one that is full": {4, Capacity{}},
	} {
		if got := p.Left(tc.kinds); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
	for kind, want := range []bool{false, false, true, false} {
		if got := p.Closed(kind); got != want {
			t.Errorf("kind %d is closed: %t, want %t", kind, got, want)
		}
	}
}

// A job that found no seat leaves nothing of its kinds to those after it, also where those that stay and those that came divide CPUs and memory anew.
func TestClosedWhereOthersDivide(t *testing.T) {
	t.Parallel()
	blocks := func(j *Job) { j.Kinds, j.Blocking = 1, true }
	for name, mode := range modes {
		p := Packer{Mode: mode}
		p.Round([]Server{of(0, 4), of(1, 4)}, []Job{
			with(toyJob(1, 2, 10, 1), func(j *Job) { j.Stays, j.Runs = []Seat{{0, 1}}, true }),
			toyJob(1, 2, 10, 1), with(toyJob(4, 2, 10, 1), blocks),
		})
		if !p.Closed(0) || p.Closed(1) {
			t.Errorf("%s: the first kind is closed: %t, want true; the second: %t, want false", name, p.Closed(0), p.Closed(1))
		}
	}
}

// What a job can be given: the proportional share, its demand, and what was measured to be as fast at least.
func TestBundles(t *testing.T) {
	t.Parallel()
	table := &core.Sensitivity{CPUs: []float64{1, 3}, MemoryGB: []float64{5, 10}, Speeds: [][]float64{{0.5, 1}, {0.9, 1.5}}}
	job := toyJob(2, 3, 8, 1.4)
	shares := []optim.Bundle{{Uses: [2]float64{4, 16}, Value: 1}, {Uses: [2]float64{6, 16}, Value: 1.4}}
	for name, tc := range map[string]struct {
		table *core.Sensitivity
		want  []optim.Bundle
	}{
		"not measured": {nil, shares},
		"measured":     {table, append(slices.Clone(shares), optim.Bundle{Uses: [2]float64{2, 20}, Value: 1}, optim.Bundle{Uses: [2]float64{6, 20}, Value: 1.5})},
	} {
		if diff := cmp.Diff(tc.want, (&Measured{job, tc.table}).Bundles()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
