package allocation

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/allocation/tiresias"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// What allocations say of how long an answer stands, where a job can be seated beside others: on devices that are counted as taken.

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
		"fifo, whole devices":     {NewFIFO(), nil, core.Exclusive, second, "0×6| 1×4|", policytest.Forever},
		"fifo, parts":             {NewFIFO(), nil, core.Fractional, second, "0×6| 1×4| 2×5|", policytest.Forever},
		"fifo, slices":            {NewFIFO(), nil, core.Mig, second, "0×6| 1×4| 2×5|", policytest.Forever},
		"fifo, turns":             {NewFIFO(), nil, core.TimeSlice, second, "0×6| 1×4| 2×5|", policytest.Forever},
		"fifo, with backfill":     {NewFIFO(), map[string]any{"queue": queue.Backfill}, core.Fractional, second, "0×6", policytest.Forever},
		"srtf without preemption": {NewSRTF(), blocking(map[string]any{"preemptive": false}), core.Fractional, third, "0×6| 1×4| 2×5|", policytest.Forever},

		"fifo that preempts":                {NewFIFO(), map[string]any{"preemptive": true}, core.Fractional, second, "0×6| 1×4|", 1000},
		"fifo that preempts, none pinned":   {NewFIFO(), map[string]any{"preemptive": true}, core.Fractional, nobody, "0×6| 1×4|", 1000},
		"fifo that preempts, whole devices": {NewFIFO(), map[string]any{"preemptive": true}, core.Exclusive, second, "0×6| 1×4|", policytest.Forever},
		"srtf, whole devices":               {NewSRTF(), blocking(nil), core.Exclusive, third, "1×4| 2×5|", policytest.Forever},
		"tetris, whole devices":             {NewTetris(), blocking(map[string]any{"step_times": false}), core.Exclusive, third, "1×4| 2×5|", policytest.Forever},
		"drf, whole devices":                {NewDRF(), blocking(map[string]any{"by": drfByJob}), core.Exclusive, third, "1×4| 2×5|", policytest.Forever},
		"srtf":                              {NewSRTF(), blocking(nil), core.Fractional, third, "1×4| 2×5|", 1000},
		"srtf, none pinned":                 {NewSRTF(), blocking(nil), core.Fractional, nobody, "1×4| 2×5|", 1000},
		"tetris":                            {NewTetris(), blocking(map[string]any{"step_times": false}), core.Mig, third, "1×4| 2×5|", 1000},
		"tetris, none pinned":               {NewTetris(), blocking(map[string]any{"step_times": false}), core.Mig, nobody, "1×4| 2×5|", 1000},
		"drf":                               {NewDRF(), blocking(map[string]any{"by": drfByJob}), core.TimeSlice, third, "1×4| 2×5|", 1000},
		"drf, none pinned":                  {NewDRF(), blocking(map[string]any{"by": drfByJob}), core.TimeSlice, nobody, "1×4| 2×5|", 1000},
		"tiresias":                          {tiresias.New(), blocking(nil), core.Fractional, second, "0×6| 1×4|", 1000},
		"tiresias, none pinned":             {tiresias.New(), blocking(nil), core.Fractional, nobody, "0×6| 1×4|", 1000},
		"tiresias, whole devices":           {tiresias.New(), blocking(nil), core.Exclusive, second, "0×6| 1×4|", 10_500},
		"las, which grants not all":         {NewLAS(), blocking(map[string]any{"quantum_seconds": 0}), core.Fractional, nobody, "1×4| 2×5|", 1000},
		"las, where one is pinned":          {NewLAS(), blocking(map[string]any{"quantum_seconds": 0}), core.Fractional, third, "1×4| 2×5|", 1000},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := []*coretest.JobBuilder{
				coretest.MakeJob("r").Replicas(6).Share(900).Work(1e6).Running(900, coretest.Seat(0, 0, 1, 2, 3), coretest.Seat(1, 0, 1)),
				policytest.Waits(4).Share(900).Work(4), policytest.Waits(5).Share(900).Work(5),
			}
			if tc.pinned != nobody {
				jobs[tc.pinned] = jobs[tc.pinned].Pinned()
			}
			v, policy := policytest.SharedDevices(tc.how, jobs...), policytest.New(t, tc.factory, tc.config)
			if got := policytest.Allocate(t, policy, v, coretest.Rigid); got != tc.want {
				t.Errorf("granted %s, want %s", got, tc.want)
			}
			if until := policy.(core.Steady).Standing().UntilSeconds; until != tc.until && !(math.Abs(until-tc.until) <= 2*queue.EarlySeconds) {
				t.Errorf("stands until %v s, want %v", until, tc.until)
			}
		})
	}
}

// Parts are counted where jobs have parts: those of twelve replicas fit on eight devices, and those of a fourth job do not.
func TestPartsAreCounted(t *testing.T) {
	policies := map[string]core.Factory[core.Allocator]{"fifo": NewFIFO(), "las": NewLAS(), "srtf": NewSRTF(), "tetris": NewTetris(), "drf": NewDRF(), "tiresias": tiresias.New(), "finish_time_fairness": NewFTF()}
	for how, want := range map[core.Sharing]int{core.Exclusive: 2, core.TimeSlice: 2, core.Fractional: 3, core.Mig: 3} {
		for name, factory := range policies {
			v := policytest.SharedDevices(how, policytest.Waits(4).Share(500).Work(4), policytest.Waits(4).Share(500).Work(4), policytest.Waits(4).Share(400).Work(4), policytest.Waits(8).Share(950).Work(40))
			policy := policytest.New(t, factory, map[string]any{"queue": queue.Backfill})
			if got := len(strings.Fields(policytest.Allocate(t, policy, v, coretest.Rigid))); got != want {
				t.Errorf("%s, %v: granted %d jobs, want %d", name, how, got, want)
			}
		}
	}
}

// An answer that grants everybody stands where that is what the devices suffice for. Where one more is seated beside others, las leaves another one out once that
// one has run for less long.
func TestEverybodyIsGrantedAndOneOverruns(t *testing.T) {
	for how, until := range map[core.Sharing]float64{core.Exclusive: policytest.Forever, core.Fractional: 1000} {
		policy := policytest.New(t, NewLAS(), map[string]any{"queue": queue.Blocking})
		v := policytest.SharedDevices(how, policytest.Waits(4).Share(900), policytest.Waits(3).Share(900), policytest.Waits(5).Share(900))
		if got := policytest.Allocate(t, policy, v, coretest.Rigid); got != "0×4| 1×3| 2×5|" {
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
		for how, want := range map[core.Sharing]float64{core.Exclusive: policytest.Forever, core.Fractional: 1000, core.Mig: 1000, core.TimeSlice: 1000} {
			t.Run(name+" "+how.String(), func(t *testing.T) {
				running := pinned().Running(900, coretest.Seat(0, 0))
				other := coretest.MakeJob("o").Elastic(1, 1, 8).Waiting()
				policy := policytest.New(t, factory, nil)
				respond := func(j *core.Job) core.Response {
					return core.Response{Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas, RemainingWork: 100, Curves: []core.Curve{{OneNode: []float64{1, 2, 3, 4, 5, 6, 7, 8}, ManyNodes: []float64{1, 2, 3, 4, 5, 6, 7, 8}}}}
				}
				before := policytest.SharedDevices(how, running, pinned().Waiting(), other)
				if got := policytest.Allocate(t, policy, before, respond); got != "0×1 1×1 2×6" {
					t.Errorf("granted %s, want six devices for the last", got)
				}
				if until := policy.(core.Steady).Standing().UntilSeconds; until != want {
					t.Errorf("stands until %v s, want %v", until, want)
				}
				after := policytest.SharedDevices(how, running, pinned().Running(1000, coretest.Seat(0, 0)), other)
				if how == core.Exclusive {
					return // nobody is beside another
				}
				if got := policytest.Allocate(t, policy, after, respond); got != "0×1 1×1 2×7" {
					t.Errorf("granted %s once the second pinned job runs beside the first, want seven devices for the last", got)
				}
				if until := policy.(core.Steady).Standing().UntilSeconds; until != policytest.Forever {
					t.Errorf("stands until %v s with all pinned jobs seated, want for ever", until)
				}
			})
		}
	}
}
