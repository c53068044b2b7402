package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
	"github.com/quartet-sched/quartet/core/workload"
)

// profiled is a model whose rate depends on all that a profile's does: the phase, the replicas, how they are spread, and
// the batch.
type profiled struct{ phased }

func (m profiled) Rate(phase int, r workload.Running) float64 {
	return m.phased.Rate(phase, r) / float64(len(r.Shape)) * (1 + float64(r.Tuning.BatchPerDevice)/10) / float64(1+phase%3)
}

func (profiled) Measure(phase int, r workload.Running) (core.Measurement, core.Gradients, bool) {
	return core.Measurement{Nodes: len(r.Shape), Replicas: r.Replicas, PerDevice: r.Tuning.BatchPerDevice}, core.Gradients{SquaredNorm: float64(phase)}, true
}

// progressAt is what a job has done at a moment after its last event.
func (j *simJob) progressAt(now float64) float64 {
	return j.progress + max(now-max(j.asOf, j.pausedUntil), 0)*j.rate
}

// Progress event by event and round by round are the same where nothing happens inside a round that concerns another job:
// without interference always, and with it until the first job ends.
func TestBothWaysToProgressAgree(t *testing.T) {
	seconds := func(t *rapid.T, most int, name string) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Second
	}
	rapid.Check(t, func(rt *rapid.T) {
		config := Config{
			Cost: restart.Cost{RestartOverhead: seconds(rt, 100, "overhead")}, TuneOverhead: seconds(rt, 70, "tune_overhead"),
			Resize:          Resize{InPlace: rapid.Bool().Draw(rt, "in_place"), Overhead: seconds(rt, 100, "resize")},
			FreeFirstStart:  rapid.Bool().Draw(rt, "free_first_start"),
			LocalityPenalty: rapid.Float64Range(0, 0.9).Draw(rt, "locality_penalty"),
		}
		last := 0.0 // work after the drawn phases
		if rapid.Bool().Draw(rt, "interferes") {
			config.Interference, last = rapid.Float64Range(0.1, 0.9).Draw(rt, "interference"), 1e9
		}
		var arrivals []arrival
		for range rapid.IntRange(1, 4).Draw(rt, "jobs") {
			var ends phased
			end := 0.0
			for range rapid.IntRange(1, 5).Draw(rt, "phases") {
				end += rapid.Float64Range(1, 300).Draw(rt, "work")
				ends = append(ends, end)
			}
			if last > 0 {
				ends = append(ends, last)
			}
			arrivals = append(arrivals, arrival{0, profiled{ends}})
		}
		var both [2]*Simulator
		for i, progress := range []string{exact, perRound} {
			c := config
			c.Publication = Publication{FirstRound: atStart, Progress: progress}
			both[i] = open(t, c, 3, arrivals...)
		}
		ends := [2]map[core.JobID]float64{{}, {}}
		measured := [2]map[core.JobID]core.Measurement{{}, {}}
		for now := 0.0; now < 20*60; now += 60 {
			changes := drawChanges(rt, both[0])
			for i, s := range both {
				seen, err := s.Next(context.Background(), by(now, 60))
				if errors.Is(err, io.EOF) && s.jobs.active == 0 {
					continue
				}
				if err != nil || seen.NowSeconds != now {
					rt.Fatalf("round at %v s with error %v, want %v s", seen.NowSeconds, err, now)
				}
				for _, e := range seen.Events {
					switch e.Kind {
					case core.JobFinished:
						ends[i][e.Job] = e.AtSeconds
					case core.JobMeasured:
						measured[i][e.Job] = e.Measurement
					}
				}
				if err := s.Apply(context.Background(), changes); err != nil {
					rt.Fatal(err)
				}
			}
			for id := range arrivals {
				job := core.JobID(id)
				a, b := both[0].jobs.byID[id], both[1].jobs.byID[id]
				if math.Abs(ends[0][job]-ends[1][job]) > 1e-6 {
					rt.Fatalf("job %d ends at %v s event by event and at %v s round by round", id, ends[0][job], ends[1][job])
				}
				if a == nil || b == nil {
					continue // it ended, or is not there yet
				}
				if x, y := measured[0][job], measured[1][job]; x != y {
					rt.Fatalf("job %d at %v s: last measured %+v event by event and %+v round by round", id, now, x, y)
				}
				if x, y := a.progressAt(now), b.progressAt(now); math.Abs(x-y) > 1e-6 || a.phase != b.phase || a.rate != b.rate {
					rt.Fatalf("job %d at %v s: %v done in phase %d at rate %v event by event, %v in phase %d at rate %v round by round",
						id, now, x, a.phase, a.rate, y, b.phase, b.rate)
				}
			}
		}
	})
}

// drawChanges draws what a round does to each job. A job only uses devices of its own, one a node.
func drawChanges(t *rapid.T, s *Simulator) []core.Change {
	var changes []core.Change
	for id := range s.jobs.byID {
		c := core.Change{Job: core.JobID(id), Tuning: core.Tuning{BatchPerDevice: rapid.IntRange(0, 3).Draw(t, "batch")}}
		nodes := rapid.IntRange(0, 7).Draw(t, "nodes")
		for n := range core.NodeID(3) {
			if nodes>>n&1 == 1 {
				c.Seats = append(c.Seats, seats(n, 1<<id))
			}
		}
		switch holds := s.jobs.byID[id] != nil && s.jobs.byID[id].seats != nil; {
		case rapid.Bool().Draw(t, "leave it"):
			continue
		case nodes == 0 && holds:
			c.Action = core.Stop
		case nodes == 0:
			continue
		case holds && rapid.Bool().Draw(t, "tune"):
			c.Action, c.Seats = core.Tune, nil
		case holds:
			c.Action = core.Move
		}
		changes = append(changes, c)
	}
	return changes
}

// A job reports once of each phase in which a round finds it, and not again while nothing changes.
func TestEachPhaseIsMeasured(t *testing.T) {
	for _, progress := range []string{exact, perRound, backToBack} {
		t.Run(progress, func(t *testing.T) {
			s := open(t, Config{Publication: Publication{FirstRound: atStart, Progress: progress}}, 1, arrival{0, profiled{phased{70, 400}}})
			var got []string
			for round := range 4 {
				seen, err := s.Next(context.Background(), by(60*float64(round), 60))
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range seen.Events {
					if e.Kind == core.JobMeasured {
						got = append(got, fmt.Sprintf("phase %v in round %d", e.Gradients.SquaredNorm, round))
					}
				}
				if round == 0 {
					if err := s.Apply(context.Background(), []core.Change{start(0, seats(0, 1))}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if diff := cmp.Diff([]string{"phase 0 in round 1", "phase 1 in round 2"}, got); diff != "" {
				t.Errorf("measured (-want +got):\n%s", diff)
			}
		})
	}
}

// With whole_steps a job does the whole units of work that fit a round of 10 s; a unit that is longer than a round goes on in the next, unless a pause took part
// of the round.
func TestWholeUnitsFitARound(t *testing.T) {
	for name, tc := range map[string]struct {
		model  steady
		paused float64
		want   float64
	}{
		"whole units, a part is left":          {steady{100, 0.25}, 0, 2},
		"a unit longer than a round":           {steady{100, 0.04}, 0, 0.4},
		"a unit as long as a round":            {steady{100, 0.1}, 0, 1},
		"a part of a unit after a pause":       {steady{100, 0.04}, 5, 0},
		"units after a pause":                  {steady{100, 0.5}, 5, 2},
		"the pause lasts as long as the round": {steady{100, 1}, 10, 0},
		"all that is left of the work":         {steady{1.5, 1}, 0, 1.5},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Config{Publication: Publication{Progress: wholeSteps}}, 1, arrival{0, tc.model})
			s.arrive(0)
			j := s.jobs.byID[0]
			j.rate, j.pausedUntil = tc.model.rate, tc.paused
			s.advanceSteps(j, 0, 10)
			if math.Abs(j.progress-tc.want) > 1e-9 || j.asOf != 10 || j.ended != (tc.want == tc.model.work) {
				t.Errorf("did %v by %v s, ended: %v; want %v by 10 s", j.progress, j.asOf, j.ended, tc.want)
			}
		})
	}
}
