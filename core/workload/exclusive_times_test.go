package workload

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// loneCluster is 3 nodes of 2 a100, and 1 of 8 t4.
func loneCluster() *core.Cluster {
	c := &core.Cluster{Accelerators: []string{"a100", "t4"}, Nodes: []core.Node{{Accelerator: 1, Devices: 8}}}
	for range 3 {
		c.Nodes = append(c.Nodes, core.Node{Accelerator: 0, Devices: 2})
	}
	return c
}

// lone is a model of two phases of 100 and 300 units of work, whose rate a test says.
type lone struct {
	rate func(phase int, c Running) float64
}

func (m *lone) Phases() int                       { return 2 }
func (m *lone) PhaseEnd(phase int) float64        { return 100 + 300*float64(phase) }
func (m *lone) Rate(phase int, c Running) float64 { return m.rate(phase, c) }
func (m *lone) StepsLeft(int) float64             { return math.NaN() }

func TestAlone(t *testing.T) {
	const a100, t4 = 0, 1
	elastic := func(least, most int, rate func(phase int, c Running) float64) Job {
		return Job{
			Spec:  core.JobSpec{MinReplicas: least, Requested: least, MaxReplicas: most},
			Model: &lone{rate},
		}
	}
	rigid := newDurationJob("rigid", 0, 600, 4)
	stretchy := newDurationJob("stretchy", 0, 600, 4)
	stretchy.Spec.MinReplicas, stretchy.Spec.MaxReplicas = 1, 8
	replicas := func(_ int, c Running) float64 { return float64(c.Replicas) }
	batched := elastic(2, 2, func(phase int, c Running) float64 {
		perDevice, accumulation := c.Tuning.BatchPerDevice, c.Tuning.AccumulationSteps
		if perDevice == 0 {
			perDevice = 8
		}
		// Best is the smallest batch in the first phase, 2×8, and the largest in the second, 2×16×2.
		switch total := 2 * perDevice * (accumulation + 1); {
		case perDevice > 16:
			return 0
		case phase == 0:
			return 16 / float64(total)
		default:
			return float64(total) / 16
		}
	})
	batched.Spec.Batch = core.BatchSpec{Requested: 16, Initial: 16, Max: 64, MinPerDevice: 4, MaxPerDevice: 16}
	// The more samples a device takes at once, the better: up to 4 on a t4, 16 elsewhere.
	narrower := elastic(2, 2, func(_ int, c Running) float64 { return float64(max(c.Tuning.BatchPerDevice, 1)) })
	narrower.Spec.Batch = batched.Spec.Batch
	narrower.Spec.BatchByType = []core.TypeBatch{{Accelerator: "t4", MinPerDevice: 4, MaxPerDevice: 4}}
	for name, tc := range map[string]struct {
		job         Job
		accelerator core.AcceleratorID
		devices     int
		want        float64
	}{
		"as requested":          {rigid, a100, 4, 600},
		"more than it uses":     {rigid, t4, 64, 600},
		"part of the time":      {rigid, a100, 1, 2400},
		"one of four":           {stretchy, a100, 1, 2400},
		"as many as it can use": {stretchy, a100, 64, 300},
		"all phases":            {elastic(1, 4, replicas), a100, 2, 200},
		"slower with more": {elastic(1, 4, func(_ int, c Running) float64 {
			return [...]float64{0, 4, 8, 2, 1}[c.Replicas]
		}), a100, 4, 50},
		"cannot run with few": {elastic(1, 4, func(_ int, c Running) float64 {
			return max(float64(c.Replicas)-3, 0)
		}), a100, 3, math.Inf(1)},
		"not on this type": {elastic(1, 4, func(_ int, c Running) float64 {
			if c.Accelerators[0] == "a100" {
				return 0
			}
			return 4
		}), a100, 4, math.Inf(1)},
		"a type of its own": {elastic(1, 4, func(_ int, c Running) float64 {
			if c.Accelerators[0] == "a100" {
				return 8
			}
			return 4
		}), t4, 4, 100},
		"the best batch of each phase": {batched, a100, 2, 100 + 300.0/4},
		"within the bounds of a type":  {narrower, t4, 2, 400.0 / 4},
		"and of the others":            {narrower, a100, 2, 400.0 / 16},
	} {
		t.Run(name, func(t *testing.T) {
			alone := NewExclusiveTimes(loneCluster(), &Workload{Jobs: []Job{tc.job}})
			alone.Seconds(0, 1-tc.accelerator, tc.devices) // does not matter
			for range 2 {                                  // the second time from memory
				if got := alone.Seconds(0, tc.accelerator, tc.devices); got != tc.want {
					t.Errorf("%v s, want %v", got, tc.want)
				}
			}
		})
	}
}

// A job alone sits on as few nodes of the type as there can be.
func TestAloneIsConsolidated(t *testing.T) {
	for name, tc := range map[string]struct {
		accelerator core.AcceleratorID
		want        string
	}{
		"nodes of two":      {0, "[2 2 1] [a100 a100 a100]"},
		"one node of eight": {1, "[5] [t4]"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			job := Job{Spec: core.JobSpec{MinReplicas: 5, MaxReplicas: 5}, Model: &lone{func(_ int, c Running) float64 {
				got = fmt.Sprint(c.Shape, c.Accelerators)
				return 1
			}}}
			NewExclusiveTimes(loneCluster(), &Workload{Jobs: []Job{job}}).Seconds(0, tc.accelerator, 5)
			if got != tc.want {
				t.Errorf("runs on %s, want %s", got, tc.want)
			}
		})
	}
}

// On the applications that come with Quartet: more devices never take longer, no setting that is allowed is faster, and
// the order of the questions does not matter.
func TestAloneOfApplications(t *testing.T) {
	models, err := tunedModels()
	if err != nil {
		t.Fatal(err)
	}
	var jobs []Job
	for _, kind := range polluxKinds {
		task := polluxTask{kind.value.application, kind.value.batch}
		jobs = append(jobs, newTrainingJob(fmt.Sprint(len(jobs)), 0, kind.value.replicas, models[task]))
	}
	c := loneCluster()
	alone := NewExclusiveTimes(c, &Workload{Jobs: jobs})
	rapid.Check(t, func(t *rapid.T) {
		id := core.JobID(rapid.IntRange(0, len(jobs)-1).Draw(t, "job"))
		job := &jobs[id]
		devices := rapid.IntRange(1, 12).Draw(t, "devices")
		got := NewExclusiveTimes(c, &Workload{Jobs: jobs[id : id+1]}).Seconds(0, 0, devices)
		if again, more := alone.Seconds(id, 0, devices), alone.Seconds(id, 0, devices+1); again != got || more > got {
			t.Errorf("job %d: %v s on %d devices, %v s when asked with others, %v s on one more", id, got, devices, again, more)
		}
		replicas := rapid.IntRange(job.Spec.MinReplicas, min(devices, job.Spec.MaxReplicas)).Draw(t, "replicas")
		running := Running{
			Shape: consolidated(replicas, 2), Replicas: replicas,
			Tuning: rapid.SampledFrom(tunings(job.Spec.Batch, replicas)).Draw(t, "tuning"),
		}
		running.Accelerators = slices.Repeat([]string{"a100"}, len(running.Shape))
		seconds := 0.0
		for phase := range job.Model.Phases() {
			work := job.Model.PhaseEnd(phase)
			if phase > 0 {
				work -= job.Model.PhaseEnd(phase - 1)
			}
			seconds += work / job.Model.Rate(phase, running)
		}
		if seconds < got*(1-1e-12) {
			t.Errorf("job %d: %v s as %+v, %v s at its best on %d devices", id, seconds, running, got, devices)
		}
	})
}
