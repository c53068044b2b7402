package main

import (
	"fmt"
	"math"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// mixing is the model of a job whose replicas run on devices of different types, each with its part
// of a fixed batch: the slowest sets the pace.
type mixing struct {
	samples map[string]float64 // a second on one device, by type; none where it cannot run
	batch   int
	sync    []float64 // seconds, by replicas
	steps   float64
}

func (m *mixing) Phases() int { return 3 }

func (m *mixing) PhaseEnd(phase int) float64 { return m.steps * float64(phase+1) / 3 }

func (m *mixing) StepsLeft(phase int) float64 { return m.steps * float64(3-phase) / 3 }

func (m *mixing) Rate(_ int, c workload.Running) float64 {
	if c.Replicas > len(m.sync) {
		return 0
	}
	slowest, replica := 0.0, 0
	for node, replicas := range c.Shape {
		for range replicas {
			part := math.Ceil(float64(m.batch) / float64(c.Replicas))
			if len(c.Tuning.BatchByReplica) == c.Replicas {
				part = float64(c.Tuning.BatchByReplica[replica])
			}
			slowest = max(slowest, part/m.samples[c.Accelerators[node]])
			replica++
		}
	}
	return 1 / (slowest + m.sync[c.Replicas-1])
}

// drawMixing draws jobs that may run on several types at once, in every other scenario.
func (s *scenario) drawMixing(t *rapid.T) {
	if rapid.Bool().Draw(t, "no mixing") {
		return
	}
	for range rapid.IntRange(1, 8).Draw(t, "mixing jobs") {
		m := &mixing{samples: map[string]float64{}, batch: 64, steps: float64(rapid.IntRange(10, 200).Draw(t, "steps"))}
		times := &core.StepTimes{MixedTypes: &core.MixedTypeTimes{}}
		job := workload.Job{Model: m}
		spec := &job.Spec
		spec.MaxReplicas = rapid.IntRange(1, 16).Draw(t, "most")
		for r := range spec.MaxReplicas {
			m.sync = append(m.sync, s.unit*rapid.Float64Range(0, 2).Draw(t, "sync")*float64(r))
		}
		times.MixedTypes.SyncSeconds = m.sync
		for _, accelerator := range rapid.SliceOfNDistinct(rapid.SampledFrom(acceleratorTypes), 1, 3, rapid.ID).Draw(t, "types") {
			alone := s.unit * rapid.Float64Range(1, 20).Draw(t, "alone")
			m.samples[accelerator] = float64(m.batch) / alone
			spec.Accelerators = append(spec.Accelerators, accelerator)
			times.MixedTypes.SingleDeviceTimes = append(times.MixedTypes.SingleDeviceTimes, core.SingleDeviceTime{Accelerator: accelerator, Seconds: alone})
			on := core.TypeTimes{Accelerator: accelerator}
			for r, sync := range m.sync {
				on.OneNode = append(on.OneNode, alone/float64(r+1)+sync)
			}
			on.ManyNodes = on.OneNode
			times.Types = append(times.Types, on)
		}
		spec.Name, spec.Application, spec.Weight = fmt.Sprintf("j%d", s.jobs()), "mixing", 1
		spec.SubmitSeconds = s.unit * 50 * float64(rapid.IntRange(0, 40).Draw(t, "submit"))
		// Not all policies put a job on several types where one alone is too small.
		spec.Requested = min(rapid.IntRange(1, spec.MaxReplicas).Draw(t, "requested"), max(s.cluster.CapacityFor(spec), 1))
		spec.MinReplicas = 1
		spec.MixesTypes, spec.StepTimes, spec.TotalWork = true, times, m.steps
		spec.Batch = core.BatchSpec{Requested: m.batch, Initial: m.batch, Max: m.batch, MinPerDevice: 1}
		s.trains = append(s.trains, job)
	}
}
