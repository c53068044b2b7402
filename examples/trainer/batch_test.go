package main

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/elasticity"
)

// moment is what goodput elasticity made of a report.
type moment struct {
	progress  float64
	gradients core.Gradients
	batch     int
}

func (m *moment) noise(batch int) float64 { return noiseScale(m.gradients, batch) }

// goodputPolicy is goodput elasticity as it is by default.
func goodputPolicy(t *testing.T) core.Elasticity {
	t.Helper()
	config, problems := elasticity.NewGoodput().Decode(nil)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	policy, err := elasticity.NewGoodput().New(config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// tune is what the policy makes of the job on as many devices as it has.
func (s *scheduled) tune(policy core.Elasticity) core.Tuning {
	s.t.Helper()
	v := &core.View{Jobs: []*core.Job{s.job}, Changed: []core.JobID{s.job.ID}, Cluster: s.cluster}
	if _, err := policy.Respond(context.Background(), v, v.Jobs); err != nil {
		s.t.Fatal(err)
	}
	devices := make([]int, s.job.MaxReplicas)
	for i := range devices {
		devices[i] = i
	}
	tunings, err := policy.Tune(context.Background(), v, []core.Placement{{Job: s.job.ID, Seats: []core.Seat{coretest.Seat(0, devices...)}}})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(tunings) == 1 {
		s.job.Tuning = tunings[0]
	}
	return s.job.Tuning
}

func totalBatch(t core.Tuning, replicas int) int {
	return replicas * t.BatchPerDevice * (t.AccumulationSteps + 1)
}

// typical is the moment whose batch is the median.
func typical(some []moment) moment {
	some = slices.SortedFunc(slices.Values(some), func(a, b moment) int { return cmp.Compare(a.batch, b.batch) })
	return some[len(some)/2]
}

// The gradients of a training become noisier against their mean while it converges, and goodput elasticity, hearing of
// it, gives it larger batches on the same replicas. Batches follow the estimates, which are not smooth, and the step
// times of each new batch; once all is measured, a noisier report never makes a smaller batch.
func TestBatchGrowsWithNoise(t *testing.T) {
	const replicas, end = 2, 8000
	limits := core.BatchSpec{Requested: 64, Initial: 64, Max: 2048, MinPerDevice: 8, MaxPerDevice: 1024}
	for _, model := range []string{modelSoftmax, modelMLP} {
		t.Run(model, func(t *testing.T) {
			s := startScheduled(t, 1, replicas, limits,
				"-model", model, "-samples", "20000", "-rate", "0.002", "-report-every", "50ms", "-checkpoint-every", "0", "-iterations", "1e9")
			defer s.stop()
			policy := goodputPolicy(t)
			var all []moment
			for s.job.Progress < end {
				s.report()
				before := s.job.Tuning
				now := s.tune(policy)
				if !now.Equal(before) {
					s.send(agent.ToJob{Tuning: &agent.Tuning{
						BatchPerDevice: now.BatchPerDevice, AccumulationSteps: now.AccumulationSteps, LearningRateFactor: now.LearningRateFactor,
					}})
				}
				all = append(all, moment{s.job.Progress, s.job.Gradients, totalBatch(now, replicas)})
			}
			for _, m := range all {
				t.Logf("after %5.0f iterations: noise scale %7.1f, batch %4d", m.progress, m.noise(limits.Initial), m.batch)
			}
			part := max(len(all)/3, 1)
			if early, late := typical(all[:part]), typical(all[len(all)-part:]); !(late.batch > early.batch) || !(late.noise(1) > early.noise(1)) {
				t.Errorf("early %+v, late %+v, want more noise and a larger batch", early, late)
			}
			slices.SortFunc(all, func(a, b moment) int { return cmp.Compare(a.noise(1), b.noise(1)) })
			for i := range all {
				s.job.Gradients = all[i].gradients
				all[i].batch = totalBatch(s.tune(policy), replicas)
				if i > 0 && all[i].batch < all[i-1].batch {
					t.Errorf("of less noise comes a larger batch: %+v and %+v", all[i-1], all[i])
				}
			}
			if least, most := all[0], all[len(all)-1]; !(most.batch > least.batch) {
				t.Errorf("least noise %+v, most %+v, want a larger batch", least, most)
			}
		})
	}
}
