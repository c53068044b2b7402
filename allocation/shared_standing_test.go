package allocation

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// What allocations say of how long an answer stands, where a job can be seated beside others: on devices that are counted as taken.

func sharedDevices(how core.Sharing, jobs ...*coretest.JobBuilder) *core.View {
	v := eightDevices(jobs...)
	v.Cluster.Sharing, v.Cluster.MaxOwners = how, 2
	return v
}

// Who keeps running jobs where they are grants everyone, for the placement to see who fits. Others end where the devices do; if the job that they do not suffice
// for runs all the same, the walk may end elsewhere.
func TestBlockingWhereDevicesAreShared(t *testing.T) {
	const nobody, second, third = 0, 1, 2
	blocking := func(config map[string]any) map[string]any {
		all := map[string]any{"queue": queue.Blocking}
		maps.Copy(all, config)
		return all
	}
	for name, tc := range map[string]struct {
		factory core.Factory[core.Allocator]
		config  map[string]any
		how     core.Sharing
		pinned  int
		want    string
		until   float64
	}{
		"fifo, whole devices":     {NewFIFO(), nil, core.Exclusive, second, "0×6| 1×4|", forever},
		"fifo, parts":             {NewFIFO(), nil, core.Fractional, second, "0×6| 1×4| 2×5|", forever},
		"fifo, slices":            {NewFIFO(), nil, core.Mig, second, "0×6| 1×4| 2×5|", forever},
		"fifo, turns":             {NewFIFO(), nil, core.TimeSlice, second, "0×6| 1×4| 2×5|", forever},
		"fifo, with backfill":     {NewFIFO(), map[string]any{"queue": queue.Backfill}, core.Fractional, second, "0×6", forever},
		"srtf without preemption": {NewSRTF(), blocking(map[string]any{"preemptive": false}), core.Fractional, third, "0×6| 1×4| 2×5|", forever},

		"fifo that preempts":                {NewFIFO(), map[string]any{"preemptive": true}, core.Fractional, second, "0×6| 1×4|", 1000},
		"fifo that preempts, none pinned":   {NewFIFO(), map[string]any{"preemptive": true}, core.Fractional, nobody, "0×6| 1×4|", 1000},
		"fifo that preempts, whole devices": {NewFIFO(), map[string]any{"preemptive": true}, core.Exclusive, second, "0×6| 1×4|", forever},
		"srtf, whole devices":               {NewSRTF(), blocking(nil), core.Exclusive, third, "1×4| 2×5|", forever},
		"tetris, whole devices":             {NewTetris(), blocking(map[string]any{"step_times": false}), core.Exclusive, third, "1×4| 2×5|", forever},
		"drf, whole devices":                {NewDRF(), blocking(map[string]any{"by": drfByJob}), core.Exclusive, third, "1×4| 2×5|", forever},
		"srtf":                              {NewSRTF(), blocking(nil), core.Fractional, third, "1×4| 2×5|", 1000},
		"srtf, none pinned":                 {NewSRTF(), blocking(nil), core.Fractional, nobody, "1×4| 2×5|", 1000},
		"tetris":                            {NewTetris(), blocking(map[string]any{"step_times": false}), core.Mig, third, "1×4| 2×5|", 1000},
		"tetris, none pinned":               {NewTetris(), blocking(map[string]any{"step_times": false}), core.Mig, nobody, "1×4| 2×5|", 1000},
		"drf":                               {NewDRF(), blocking(map[string]any{"by": drfByJob}), core.TimeSlice, third, "1×4| 2×5|", 1000},
		"drf, none pinned":                  {NewDRF(), blocking(map[string]any{"by": drfByJob}), core.TimeSlice, nobody, "1×4| 2×5|", 1000},
		"tiresias":                          {NewTiresias(), blocking(nil), core.Fractional, second, "0×6| 1×4|", 1000},
		"tiresias, none pinned":             {NewTiresias(), blocking(nil), core.Fractional, nobody, "0×6| 1×4|", 1000},
		"tiresias, whole devices":           {NewTiresias(), blocking(nil), core.Exclusive, second, "0×6| 1×4|", 10_500},
		"las, who grants not all":           {NewLAS(), blocking(nil), core.Fractional, nobody, "1×4| 2×5|", 1000},
		"las, where one is pinned":          {NewLAS(), blocking(nil), core.Fractional, third, "1×4| 2×5|", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := []*coretest.JobBuilder{
				coretest.MakeJob("r").Replicas(6).Share(900).Work(1e6).Running(900, coretest.Seat(0, 0, 1, 2, 3), coretest.Seat(1, 0, 1)),
				waits(4).Share(900).Work(4), waits(5).Share(900).Work(5),
			}
			if tc.pinned != nobody {
				jobs[tc.pinned] = jobs[tc.pinned].Pinned()
			}
			v, policy := sharedDevices(tc.how, jobs...), newPolicy(t, tc.factory, tc.config)
			if got := allocate(t, policy, v, coretest.Rigid); got != tc.want {
				t.Errorf("granted %s, want %s", got, tc.want)
			}
			if until := policy.(core.Steady).Standing().UntilSeconds; until != tc.until && !(math.Abs(until-tc.until) <= 2*early) {
				t.Errorf("stands until %v s, want %v", until, tc.until)
			}
		})
	}
}

// Parts are counted where jobs have parts: those of twelve replicas fit on eight devices, and those of a fourth job do not.
func TestPartsAreCounted(t *testing.T) {
	policies := map[string]core.Factory[core.Allocator]{"fifo": NewFIFO(), "las": NewLAS(), "srtf": NewSRTF(), "tetris": NewTetris(), "drf": NewDRF(), "tiresias": NewTiresias(), "finish_time_fairness": NewFTF()}
	for how, want := range map[core.Sharing]int{core.Exclusive: 2, core.TimeSlice: 2, core.Fractional: 3, core.Mig: 3} {
		for name, factory := range policies {
			v := sharedDevices(how, waits(4).Share(500).Work(4), waits(4).Share(500).Work(4), waits(4).Share(400).Work(4), waits(8).Share(950).Work(40))
			policy := newPolicy(t, factory, map[string]any{"queue": queue.Backfill})
			if got := len(strings.Fields(allocate(t, policy, v, coretest.Rigid))); got != want {
				t.Errorf("%s, %v: granted %d jobs, want %d", name, how, got, want)
			}
		}
	}
}

// An answer that grants everybody stands where that is what the devices suffice for. Where one more is seated beside others, las leaves another one out once that
// one has run for less long.
func TestEverybodyIsGrantedAndOneOverruns(t *testing.T) {
	for how, until := range map[core.Sharing]float64{core.Exclusive: forever, core.Fractional: 1000} {
		policy := newPolicy(t, NewLAS(), map[string]any{"queue": queue.Blocking})
		v := sharedDevices(how, waits(4).Share(900), waits(3).Share(900), waits(5).Share(900))
		if got := allocate(t, policy, v, coretest.Rigid); got != "0×4| 1×3| 2×5|" {
			t.Errorf("%v: granted %s, want everybody", how, got)
		}
		if got := policy.(core.Steady).Standing().UntilSeconds; got != until {
			t.Errorf("%v: stands until %v s, want %v", how, got, until)
		}
	}
}

// The devices of pinned jobs are counted once, however many are on one: a pinned job that starts beside another may leave more than there was before.
func TestAPinnedJobMayLeaveDevicesWhenItStarts(t *testing.T) {
	pinned := func() *coretest.JobBuilder { return coretest.MakeJob("p").Share(500).Work(10).Pinned() }
	for name, factory := range map[string]core.Factory[core.Allocator]{"optimus": NewOptimus(), "afs": NewAFS()} {
		for how, want := range map[core.Sharing]float64{core.Exclusive: forever, core.Fractional: 1000, core.Mig: 1000, core.TimeSlice: 1000} {
			t.Run(name+" "+how.String(), func(t *testing.T) {
				running := pinned().Running(900, coretest.Seat(0, 0))
				other := coretest.MakeJob("o").Elastic(1, 1, 8).Waiting()
				policy := newPolicy(t, factory, nil)
				respond := func(j *core.Job) core.Response {
					return core.Response{Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas, RemainingWork: 100, Curves: []core.Curve{{OneNode: []float64{1, 2, 3, 4, 5, 6, 7, 8}, ManyNodes: []float64{1, 2, 3, 4, 5, 6, 7, 8}}}}
				}
				before := sharedDevices(how, running, pinned().Waiting(), other)
				if got := allocate(t, policy, before, respond); got != "0×1 1×1 2×6" {
					t.Errorf("granted %s, want six devices for the last", got)
				}
				if until := policy.(core.Steady).Standing().UntilSeconds; until != want {
					t.Errorf("stands until %v s, want %v", until, want)
				}
				after := sharedDevices(how, running, pinned().Running(1000, coretest.Seat(0, 0)), other)
				if how == core.Exclusive {
					return // nobody is beside another
				}
				if got := allocate(t, policy, after, respond); got != "0×1 1×1 2×7" {
					t.Errorf("granted %s once the second pinned job runs beside the first, want seven devices for the last", got)
				}
				if until := policy.(core.Steady).Standing().UntilSeconds; until != forever {
					t.Errorf("stands until %v s with all pinned jobs seated, want for ever", until)
				}
			})
		}
	}
}

// A job that asks for a part of its devices attains that part of their time, and is not behind for it.
func TestGPUFractionOfJobsWithPartsOfDevices(t *testing.T) {
	for name, tc := range map[string]struct {
		milli int
		want  float64 // when its guarantee ends, of two devices for 500 s with nothing missed
	}{
		"whole devices":             {0, 500 + 120/0.05},
		"halves":                    {500, 500 + 120/0.05},
		"thousandths":               {1, 500 + 120/0.05},
		"all of them, in so many":   {1000, 500 + 120/0.05},
		"a third, which is no part": {333, 500 + 120/0.05},
	} {
		t.Run(name, func(t *testing.T) {
			j := coretest.MakeJob("r").Replicas(2).Submit(500).Tier(core.Premium)
			part := 1.0
			if tc.milli > 0 {
				j, part = j.Share(tc.milli), float64(tc.milli)/core.WholeDevice
			}
			// It was resized to what it has at 800 s, and had as many devices before.
			v := sharedDevices(core.Fractional, j.Running(800, coretest.Seat(0, 0), coretest.Seat(1, 0)).Executed(300, 600*part))
			policy := newPolicy(t, NewGPUFraction(), nil)
			ask(t, policy, v, elasticRange)
			if until := policy.(core.Steady).Standing().UntilSeconds; math.Abs(until-tc.want) > 2*early {
				t.Errorf("stands until %v s, want %v", until, tc.want)
			}
		})
	}
}

// What a job attained of parts does not tell when it was resized: the round after is held.
func TestGPUFractionIsAskedAgainAfterItResizedAJobWithParts(t *testing.T) {
	for how, want := range map[core.Sharing]float64{core.Exclusive: forever, core.Fractional: 1000, core.Mig: 1000, core.TimeSlice: 1000} {
		policy := newPolicy(t, NewGPUFraction(), nil)
		ask(t, policy, sharedDevices(how, waits(2).Share(0)), elasticRange)
		if until := policy.(core.Steady).Standing().UntilSeconds; until != want {
			t.Errorf("%v: stands until %v s, want %v", how, until, want)
		}
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
		v := sharedDevices(tc.how)
		v.NowSeconds, v.IntervalSeconds = tc.now, tc.interval
		if got := (&gandiva{last: 161}).before(v); got != tc.want {
			t.Errorf("%s: the round before was at %v s, want %v", name, got, tc.want)
		}
	}
}
