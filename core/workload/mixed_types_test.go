package workload

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

func loadUnlike(t *testing.T, seed uint64, change func(*MixedTypesConfig)) *Workload {
	t.Helper()
	factory := NewMixedTypes()
	config, problems := factory.Decode(nil)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(config.(*MixedTypesConfig))
	}
	source, err := factory.New(config, core.Settings{Rand: core.NewRand(seed, "workload")})
	if err != nil {
		t.Fatal(err)
	}
	w, err := source.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestUnlikeJobs(t *testing.T) {
	w := loadUnlike(t, 1, nil)
	checkWorkload(t, w)
	seen := map[string]bool{}
	for i := range w.Jobs {
		job := &w.Jobs[i]
		s := &job.Spec
		seen[s.Application] = true
		if !s.MixesTypes || s.StepTimes == nil || s.MaxReplicas != len(s.StepTimes.MixedTypes.SyncSeconds) || s.TotalWork != job.Model.PhaseEnd(job.Model.Phases()-1) {
			t.Fatalf("%+v", s)
		}
		if memory := slices.Contains(s.Accelerators, "T4"); memory == (s.Application == "gpt2") {
			t.Errorf("%s runs on %v", s.Application, s.Accelerators)
		}
		rate := job.Model.Rate(0, Running{Shape: []int{s.Requested}, Accelerators: []string{referenceType}, Replicas: s.Requested})
		if seconds := s.TotalWork / rate; seconds < 590 || seconds > 14_500 {
			t.Errorf("%s runs for %v s on what it requests, want 600 to 14400", s.Name, seconds)
		}
	}
	if len(seen) != len(mixedTasks) {
		t.Errorf("applications %v, want %d", seen, len(mixedTasks))
	}
}

// What a job tells of its step times is how it runs, with a batch in proportion and on one type.
func TestUnlikeJobsRunAsTheyTell(t *testing.T) {
	for _, job := range loadUnlike(t, 2, func(c *MixedTypesConfig) { c.Jobs = 40 }).Jobs {
		u := job.Spec.StepTimes.MixedTypes
		alone := func(accelerator string) float64 {
			i := slices.IndexFunc(u.SingleDeviceTimes, func(a core.SingleDeviceTime) bool { return a.Accelerator == accelerator })
			return u.SingleDeviceTimes[i].Seconds
		}
		g2, g3 := 1/alone("G2"), 1/alone("G3")
		batch := float64(job.Spec.Batch.Requested)
		mixed := Running{Shape: []int{2, 1}, Accelerators: []string{"G2", "G3"}, Replicas: 3}
		part := int(math.Round(batch * g2 / (2*g2 + g3)))
		mixed.Tuning.BatchByReplica = []int{part, part, job.Spec.Batch.Requested - 2*part}
		want := 1 / (1/(2*g2+g3) + u.SyncSeconds[2])
		if got := job.Model.Rate(0, mixed); math.Abs(got/want-1) > 0.1 { // whole samples: gpt2 has 64 of them
			t.Errorf("%s, in proportion: %v steps/s, want %v", job.Spec.Application, got, want)
		}
		for r := 1; r <= 4; r *= 2 {
			one, _ := job.Spec.StepTimes.On("G3")
			c := Running{Shape: []int{r}, Accelerators: []string{"G3"}, Replicas: r}
			if got := job.Model.Rate(0, c); math.Abs(got*one[r-1]-1) > 1e-12 {
				t.Errorf("%s on %d G3: %v steps/s, want %v", job.Spec.Application, r, got, 1/one[r-1])
			}
		}
	}
}

// Two devices, one three times as fast as the other: an even split waits for the slow one, l = max(b/ρ) + sync.
func TestUnlikeModelByHand(t *testing.T) {
	task := &mixedTask{kind: &mixedKind{batch: 80}, types: []string{"fast", "slow"}, rates: []float64{30, 10}, sync: []float64{0, 0.5, 0.5}}
	m := &mixedModel{task: task, iterations: 1000}
	both := func(tuning core.Tuning) Running {
		return Running{Shape: []int{1, 1}, Accelerators: []string{"fast", "slow"}, Replicas: 2, Tuning: tuning}
	}
	cases := map[string]struct {
		c    Running
		want float64 // seconds of a step at the whole batch; +Inf where it cannot run
	}{
		"in proportion":           {both(core.Tuning{BatchPerDevice: 40, BatchByReplica: []int{60, 20}}), 2 + 0.5},
		"evenly":                  {both(core.Tuning{BatchPerDevice: 40}), 4 + 0.5},
		"evenly, by itself":       {both(core.Tuning{}), 4 + 0.5},
		"a split for other seats": {both(core.Tuning{BatchPerDevice: 40, BatchByReplica: []int{80}}), 4 + 0.5},
		"nothing for the slow":    {both(core.Tuning{BatchPerDevice: 40, BatchByReplica: []int{80, 0}}), 80.0/30 + 0.5},
		"in two passes":           {both(core.Tuning{BatchPerDevice: 20, AccumulationSteps: 1, BatchByReplica: []int{30, 10}}), 2*1 + 0.5},
		"half the batch":          {both(core.Tuning{BatchPerDevice: 20}), 2 * (2 + 0.5)},
		"alone":                   {Running{Shape: []int{1}, Accelerators: []string{"slow"}, Replicas: 1}, 8},
		"on a type it cannot use": {Running{Shape: []int{1}, Accelerators: []string{"other"}, Replicas: 1}, math.Inf(1)},
		"on too many":             {Running{Shape: []int{4}, Accelerators: []string{"fast"}, Replicas: 4}, math.Inf(1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := 1 / m.Rate(0, tc.c); !(math.Abs(got-tc.want) < 1e-12 || got == tc.want) {
				t.Errorf("%v s a step, want %v", got, tc.want)
			}
		})
	}
	if got := m.StepsLeft(75); got != 250 {
		t.Errorf("%v steps left after three quarters, want 250", got)
	}
}

// The rates follow the data sheets: ratios of a device's speed to that of a V100, worked out by hand.
func TestUnlikeRates(t *testing.T) {
	task := func(name string) *mixedTask {
		i := slices.IndexFunc(mixedTasks, func(k mixedKind) bool { return k.name == name })
		c := MixedTypesConfig{MaxReplicas: 2, SlowestLinkGbps: 8}
		return newMixedTask(&mixedTasks[i], c)
	}
	for _, tc := range []struct {
		application, accelerator string
		want                     float64
	}{
		{"yolov3", "A10", (0.2/(0.4*15.7) + 1.0/630) / (0.2/(0.4*31.2) + 1.0/420)},
		{"bert", "P100", (0.26/50 + 0.6/630) / (0.26/7.48 + 0.6/512.4)},
		{"gpt2", "T4", 0},
	} {
		k := task(tc.application)
		m := mixedModel{task: k}
		if got := m.rateOn(tc.accelerator) / k.reference; math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("%s on %s: %v times a V100, want %v", tc.application, tc.accelerator, got, tc.want)
		}
	}
	// 102 MB over 1 GB/s: 2·(2-1)/2·0.102 s.
	if got := task("resnet50").sync; got[0] != 0 || math.Abs(got[1]-0.102) > 1e-12 {
		t.Errorf("reducing gradients takes %v s, want 0 and 0.102", got)
	}
}

func TestUnlikeConfigProblems(t *testing.T) {
	_, problems := NewMixedTypes().Decode(map[string]any{"shortest_seconds": 100, "longest_seconds": 10})
	if problems.Err() == nil {
		t.Error("the longest duration may be below the shortest")
	}
}
