package gavel

import (
	"context"
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// policiesByName makes a fresh one of each policy.
var policiesByName = map[string]func() policy{
	"max-min":                        func() policy { return new(maxMin) },
	"max-min with spare":             func() policy { return &maxMin{spare: true} },
	"water-filling":                  func() policy { return new(waterFilling) },
	"finish-time fairness":           func() policy { return &finishTimes{booked: map[core.JobID]booking{}} },
	"makespan":                       func() policy { return new(makespan) },
	"makespan by search":             func() policy { return &makespan{tolerance: 0.05} },
	"best normalised sum":            func() policy { return new(bestNormalisedSum) },
	"best normalised sum with floor": func() policy { return &bestNormalisedSum{floor: 1} },
	"fifo_perf":                      func() policy { return new(fifoPerf) },
	"isolated":                       func() policy { return isolated{} },
	"allox":                          func() policy { return new(alloX) },
}

// trainee is a job of the scale tests: its speeds by type and its work, in a unit of its own.
type trainee struct {
	replicas, arrival int
	speeds            []float64
	work              float64
}

// scaled is the same job in another unit of work.
func (j trainee) scaled(by float64) trainee {
	speeds := make([]float64, len(j.speeds))
	for t, speed := range j.speeds {
		speeds[t] = speed * by
	}
	j.speeds, j.work = speeds, j.work*by
	return j
}

// train holds rounds in which jobs progress on the types that they are granted, and renders all grants.
func train(ctx context.Context, m *mechanism, c *core.Cluster, jobs []trainee, rounds int) ([]string, error) {
	const interval = 360
	var answers []string
	executed, done := make([]float64, len(jobs)), make([]float64, len(jobs)) // seconds, and the part of the work
	for round := range rounds {
		now := float64(interval * round)
		v := coretest.MakeView(c).Now(now).Round(round + 1).Interval(interval).Obj()
		var candidates []core.Candidate
		for i, j := range jobs {
			if j.arrival > round || done[i] > 1-1e-9 {
				continue
			}
			job := coretest.MakeJob(fmt.Sprint(i)).ID(core.JobID(i)).Replicas(j.replicas).Submit(float64(interval*j.arrival)).Waiting().
				Executed(executed[i], executed[i]*float64(j.replicas)).Obj()
			r := &core.Response{Job: job.ID, MinReplicas: j.replicas, MaxReplicas: j.replicas, RemainingWork: j.work * (1 - done[i])}
			for _, speed := range j.speeds {
				rates := make([]float64, j.replicas)
				rates[j.replicas-1] = speed
				r.Curves = append(r.Curves, core.Curve{OneNode: rates, ManyNodes: rates})
			}
			candidates = append(candidates, core.Candidate{Job: job, Response: r})
		}
		grants, err := m.Allocate(ctx, v, candidates)
		if err != nil {
			return nil, err
		}
		for _, g := range grants {
			answers = append(answers, fmt.Sprintf("%d: %d on %d", round, g.Job, g.Accelerator))
			executed[g.Job] += interval
			done[g.Job] += interval * (jobs[g.Job].speeds[g.Accelerator] / jobs[g.Job].work)
		}
	}
	return answers, nil
}

// drawTrainees draws jobs with many ties between them: those of an application are equal.
func drawTrainees(t *rapid.T) []trainee {
	speeds := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1, 2, 3, 0.3, 7.25, 1.1}), 3, 3)
	applications := rapid.SliceOfN(speeds, 1, 3).Draw(t, "applications")
	jobs := make([]trainee, rapid.IntRange(1, 10).Draw(t, "jobs"))
	for i := range jobs {
		jobs[i] = trainee{
			replicas: rapid.IntRange(1, 3).Draw(t, "replicas"), arrival: rapid.IntRange(0, 4).Draw(t, "arrival"),
			speeds: rapid.SampledFrom(applications).Draw(t, "speeds"), work: 360 * float64(rapid.IntRange(1, 20).Draw(t, "work")),
		}
	}
	return jobs
}

// In which unit a job counts its work is its own affair: a thousand million times more steps a second, of as many times
// more, change no decision.
func TestUnitsOfWorkChangeNoDecision(t *testing.T) {
	c := coretest.MakeCluster().Nodes(2, "a", 2).Nodes(1, "b", 3).Nodes(1, "c", 3).Obj()
	for name, newPolicy := range policiesByName {
		for _, config := range []Rounds{defaults, {NewJobs: wait, Types: inOrder, Accounts: reset, TypeBlind: true}} {
			t.Run(fmt.Sprintf("%s, blind %v", name, config.TypeBlind), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					jobs := drawTrainees(t)
					want, err := train(context.Background(), newMechanism(config, newPolicy(), core.Settings{}), c, jobs, 12)
					if err != nil {
						t.Fatal(err)
					}
					for i := range jobs {
						jobs[i] = jobs[i].scaled(math.Pow10(rapid.IntRange(-12, 12).Draw(t, "magnitudes")))
					}
					got, err := train(context.Background(), newMechanism(config, newPolicy(), core.Settings{}), c, jobs, 12)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("grants (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// Speeds at the ends of what numbers hold, and types on which a job next to never ends, end no run.
func TestExtremeSpeedsEndNoRun(t *testing.T) {
	c := coretest.MakeCluster().Nodes(2, "a", 2).Nodes(1, "b", 3).Nodes(1, "c", 3).Obj()
	extremes := []float64{0, math.SmallestNonzeroFloat64, 1e-310, 1e-200, 1e-60, 1e-12, 1, 1e9, 1e60, 1e200, math.MaxFloat64}
	policies := maps.Clone(policiesByName)
	policies["max-sum"] = func() policy { return new(maxSum) }
	for name, newPolicy := range policies {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				jobs := drawTrainees(t)
				for i := range jobs {
					jobs[i].speeds = rapid.SliceOfN(rapid.SampledFrom(extremes), 3, 3).Draw(t, "extremes")
					jobs[i].work = rapid.SampledFrom(extremes[1:]).Draw(t, "extreme work")
				}
				if _, err := train(context.Background(), newMechanism(defaults, newPolicy(), core.Settings{}), c, jobs, 6); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
