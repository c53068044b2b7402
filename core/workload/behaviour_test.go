package workload

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
)

// Where jobs overlap, a window ends where the fewest devices are held, whatever the order of the jobs.
func TestQuietMomentsOfJobsThatOverlap(t *testing.T) {
	jobs := []Job{
		newDurationJob("long", 0, 1000, 1), newDurationJob("wide", 10, 100, 8), newDurationJob("late", 300, 100, 4), newDurationJob("last", 2000, 10, 1),
	}
	cases := map[string]struct {
		at, within, want float64
	}{
		"after the wide one":         {90, 60, 110},
		"before the wide one":        {50, 40, 10},
		"the nearest of equal ones":  {120, 30, 120},
		"between the others":         {350, 100, 300},
		"after the late one":         {360, 100, 400},
		"when all have ended":        {900, 200, 1000},
		"where it is, without room":  {50, 0, 50},
		"no earlier than the first":  {5, 100, 0},
		"one that begins is not cut": {305, 10, 300},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := quietest(jobs, tc.at, tc.within, 0, math.Inf(1))
			if got != tc.want {
				t.Errorf("moved from %v to %v, want %v", tc.at, got, tc.want)
			}
		})
	}
	unknown := append(jobs[:1:1], Job{Spec: core.JobSpec{SubmitSeconds: 5, Requested: 64}, Model: endless{jobs[0].Model}})
	if got := quietest(unknown, 950, 100, 0, math.Inf(1)); got != 1000 {
		t.Errorf("a job of unknown length moves it to %v, want 1000", got)
	}
}

// endless is a job that never ends.
type endless struct{ Model }

func (endless) PhaseEnd(int) float64 { return math.Inf(1) }

// Commands may be resampled as long as none comes twice.
func TestBlocksOfCommands(t *testing.T) {
	w := evenly(0, 50)
	for i := range w.Jobs {
		w.Jobs[i].Spec.Command = []string{"true"}
	}
	if s, err := sampled(func(s *Sample) { s.Blocks.Length = 5000 * time.Second }).Apply(w, 9); err != nil || len(s.Jobs) != 50 {
		t.Errorf("in one block: %v", err)
	}
	if _, err := sampled(func(s *Sample) { s.Blocks.Length = 500 * time.Second }).Apply(w, 9); err == nil || !strings.Contains(err.Error(), "which cannot be repeated") {
		t.Errorf("in ten blocks: %v", err)
	}
	none, err := sampled(func(s *Sample) { s.Blocks.Length = time.Hour }).Apply(&Workload{}, 1)
	if err != nil || len(none.Jobs) != 0 {
		t.Errorf("of no jobs: %v, %v", none, err)
	}
	longest := sampled(func(s *Sample) { s.Blocks.Length = 5000*time.Second + 1 })
	if _, err := longest.Apply(w, 9); err == nil || !strings.Contains(err.Error(), "is longer than the workload") {
		t.Errorf("in a block that is a little longer: %v", err)
	}
}

// Within a block, jobs keep their distances; a block goes on at the begin where the workload ends.
func TestBlocksKeepDistances(t *testing.T) {
	w := &Workload{Jobs: []Job{
		newDurationJob("a", 0, 1, 1), newDurationJob("b", 7, 2, 1), newDurationJob("c", 60, 3, 1), newDurationJob("d", 90, 4, 1),
	}}
	for i := range w.Jobs {
		w.Jobs[i].Spec.ID = core.JobID(i)
	}
	span := impliedSpan(w.Jobs) // 120
	if span != 120 {
		t.Fatalf("it takes %v, want a mean gap after the last submission", span)
	}
	for seed := range uint64(50) {
		s, err := sampled(func(s *Sample) { s.Blocks.Length = 120 * time.Second }).Apply(w, seed)
		if err != nil || len(s.Jobs) != 4 {
			t.Fatalf("seed %d: %d jobs, %v", seed, len(s.Jobs), err)
		}
		at := map[string]float64{}
		for i := range s.Jobs {
			at[s.Jobs[i].Spec.Name] = s.Jobs[i].Spec.SubmitSeconds
		}
		for name, after := range map[string]float64{"b": 7, "c": 60, "d": 90} {
			if got := wrap(at[name]-at["a"], span); math.Abs(got-after) > 1e-9 {
				t.Errorf("seed %d: %s comes %v s after a, want %v", seed, name, got, after)
			}
		}
	}
	if one := impliedSpan(w.Jobs[3:]); !(one > 90) || one > 90.001 {
		t.Errorf("a single job takes %v, want a moment more than its submission", one)
	}
}

func TestWrapAndReflect(t *testing.T) {
	for _, tc := range []struct{ at, period, wrapped, reflected float64 }{
		{0, 10, 0, 0}, {4, 10, 4, 4}, {-4, 10, 6, 4}, {13, 10, 3, 7}, {-13, 10, 7, 7}, {10, 10, 0, 10}, {20, 10, 0, 0}, {25, 10, 5, 5}, {31, 10, 1, 9},
	} {
		if got := wrap(tc.at, tc.period); got != tc.wrapped {
			t.Errorf("%v goes around %v to %v, want %v", tc.at, tc.period, got, tc.wrapped)
		}
		if got := reflected(tc.at, tc.period); got != tc.reflected {
			t.Errorf("%v is thrown back within %v to %v, want %v", tc.at, tc.period, got, tc.reflected)
		}
	}
	if got := reflected(7, 0); got != 0 {
		t.Errorf("in no time, a moment is thrown to %v", got)
	}
}

// A file of the traces of Gavel that holds no job says so.
func TestGavelFilesWithoutJobs(t *testing.T) {
	for _, format := range []string{gavelTrace, gavelPhilly} {
		_, err := readString(func(in *input) (*Workload, error) {
			return GavelConfig{Format: format}.read(in, toyGavel(t, toySpeeds))
		}, "\n")
		if err == nil || !strings.Contains(err.Error(), "no rows") && !strings.Contains(err.Error(), "empty") {
			t.Errorf("%s: error %v", format, err)
		}
	}
}

// What is wrong with the types of a row is told once.
func TestTypesOfOpenB(t *testing.T) {
	header := strings.Join(openbColumns.all(), ",") + "\n"
	for _, types := range []string{"T4||T4", "|", "T4|T4|T4"} {
		_, err := readString(readOpenBWhole, header+"a,1,1,1,1000,"+types+",LS,Running,0,9,1\n")
		if n := strings.Count(err.Error(), "\n") + 1; err == nil || n != 1 || !strings.Contains(err.Error(), "different accelerator types") {
			t.Errorf("%q: %v", types, err)
		}
	}
}

// An epoch may end with as many iterations as the one before, but not with fewer, nor without progress.
func TestTrainingsThatStandStill(t *testing.T) {
	for rows, want := range map[string]string{
		"100,100,0.5,1,10\n200,100,0.75,2,30\n": "",
		"100,100,0.5,1,10\n200,99,0.75,2,30\n":  "no less than in the row before",
		"100,100,0.5,1,10\n100,200,0.75,2,30\n": "more than in the row before",
		"0,100,0.5,1,10\n":                      "more than in the row before",
	} {
		r := &profileReader{}
		path := writeFile(t, "progress,iteration,metric,grad_sqr,grad_var\n"+rows, t.TempDir(), "validation-10.csv")
		epochs := r.readTraining(t.Context(), path)
		err := r.problems.Err()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", rows, err, want)
		}
		if err == nil && len(epochs) != 2 {
			t.Errorf("%q: %d epochs", rows, len(epochs))
		}
	}
}

// A job of a fitted application trains at the batch that it is tuned to.
func TestModelledTraining(t *testing.T) {
	m := newModelledModel(simple(), 40)
	for name, tc := range map[string]struct {
		phase      int
		running    Running
		batch      int
		efficiency float64
	}{
		"its own batch":    {0, Running{Shape: []int{2}, Replicas: 2}, 40, 4 / 1.75 / 4},
		"later":            {1, Running{Shape: []int{2}, Replicas: 2}, 40, 10 / 3.25 / 4},
		"a tuned one":      {0, Running{Shape: []int{2}, Replicas: 2, Tuning: core.Tuning{BatchPerDevice: 5, AccumulationSteps: 1}}, 20, 4 / 2.5 / 2},
		"the initial one":  {0, Running{Shape: []int{2}, Replicas: 2, Tuning: core.Tuning{BatchPerDevice: 5}}, 10, 1},
		"one it cannot be": {0, Running{Shape: []int{2}, Replicas: 2, Tuning: core.Tuning{BatchPerDevice: 21}}, 0, 0},
	} {
		batch, efficiency, samples, ok := m.Training(tc.phase, tc.running)
		if ok != (tc.batch > 0) || batch != tc.batch || ok && samples != 10 {
			t.Errorf("%s: trains at %d, %v samples a unit of work (%v), want %d", name, batch, samples, ok, tc.batch)
		}
		if diff := cmp.Diff(tc.efficiency, efficiency, about); diff != "" {
			t.Errorf("%s: efficiency (-want +got):\n%s", name, diff)
		}
	}
}

// A job of a measured application trains where it was measured.
func TestMeasuredTraining(t *testing.T) {
	w, err := loadToy(t, "toy-0,0,toy,1,15\n", remainingExact)
	if err != nil {
		t.Fatal(err)
	}
	cluster := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "n", Devices: 4}}}
	trainings := NewTrainings(cluster, w)
	seats := func(devices int) []core.Seat {
		return []core.Seat{{Node: 0, Devices: core.FirstDevices(devices)}}
	}
	for name, tc := range map[string]struct {
		job      core.JobID
		progress float64
		devices  int
		tuning   core.Tuning
		want     int
		gain     float64
	}{
		"the largest batch":     {0, 0, 2, core.Tuning{BatchPerDevice: 10}, 20, gainAt(20) / 2},
		"at its own batch":      {0, 0, 1, core.Tuning{}, 16, gainAt(16) / 1.6},
		"later":                 {0, 99, 2, core.Tuning{BatchPerDevice: 10}, 20, 12.0 / 7 / 2},
		"at the end":            {0, 1e9, 2, core.Tuning{BatchPerDevice: 10}, 20, 12.0 / 7 / 2},
		"a little before":       {0, 98.9, 2, core.Tuning{BatchPerDevice: 10}, 20, gainAt(20) / 2},
		"not measured":          {0, 0, 3, core.Tuning{BatchPerDevice: 5}, 0, 0},
		"negative accumulation": {0, 0, 1, core.Tuning{BatchPerDevice: 10, AccumulationSteps: -1}, 0, 0},
		"more than was trained": {0, 0, 2, core.Tuning{BatchPerDevice: 10, AccumulationSteps: 1}, 0, 0},
		"another job":           {1, 0, 2, core.Tuning{BatchPerDevice: 10}, 0, 0},
	} {
		batch, efficiency, samples, ok := trainings.At(tc.job, tc.progress, seats(tc.devices), tc.tuning)
		if ok != (tc.want > 0) || ok && (batch != tc.want || samples != 10) {
			t.Errorf("%s: trains at %d, %v samples (%v), want %d", name, batch, samples, ok, tc.want)
		}
		if diff := cmp.Diff(tc.gain, efficiency, cmpopts.EquateApprox(1e-9, 1e-12)); ok && diff != "" {
			t.Errorf("%s: efficiency (-want +got):\n%s", name, diff)
		}
	}
}

// A job of a file takes the seconds that it declares, and otherwise nobody knows how long.
func TestJobsOfAFileSayHowLong(t *testing.T) {
	w, err := readString(readJobs, "version: 1\njobs:\n  - {name: a, command: [x], seconds: 120, replicas: 2}\n  - {name: b, command: [x]}\n")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{120, math.Inf(1)} {
		if got := w.Jobs[i].Model.PhaseEnd(0); got != want {
			t.Errorf("%s takes %v, want %v", w.Jobs[i].Spec.Name, got, want)
		}
	}
	if rate := w.Jobs[0].Model.Rate(0, Running{Shape: []int{2}, Replicas: 2}); rate != 1 {
		t.Errorf("on what it asks for, its rate is %v", rate)
	}
}
