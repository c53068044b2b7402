package sim

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
)

func TestBackToBack(t *testing.T) {
	second := time.Second
	for name, tc := range map[string]scenario{
		// A unit of work a second: the second job ends at 25 and keeps its device to 65, and the last round is short.
		"a round is over when the last job is": {
			config: Config{Publication: Publication{Progress: backToBack}}, nodes: 1, arrivals: []arrival{{5, phased{130.5}}, {5, phased{20}}, {200, phased{1}}},
			steps: []step{
				{
					wake: every(60), now: 5, tells: []string{"job_submitted 0@5", "job_submitted 1@5"},
					apply: []core.Change{start(0, seats(0, 1)), start(1, seats(0, 2))},
				},
				{wake: by(65, 60), now: 65, tells: []string{
					"job_progressed 0@5", "job_progressed 1@5", "job_finished 1@25", "job_progressed 0@65",
				}},
				{wake: by(125, 60), now: 125, tells: []string{"job_progressed 0@125"}},
				{wake: by(185, 60), now: 135.5, tells: []string{"job_finished 0@135.5"}},
				{wake: every(60), now: 200, tells: []string{"job_submitted 2@200"}},
				{wake: by(260, 60), now: 260, tells: nil},
			},
		},
		"only whole steps are done": {
			config: Config{Publication: Publication{Progress: backToBack}, Cost: restart.Cost{RestartOverhead: second / 2}}, nodes: 1, arrivals: []arrival{{0, phased{100}}},
			steps: []step{
				{wake: every(10), now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(10, 10), now: 9.5, tells: []string{"job_progressed 0@0", "job_progressed 0@9.5"}},
				{wake: by(20, 10), now: 19.5, tells: []string{"job_progressed 0@19.5"}, apply: []core.Change{stop(0)}},
				{wake: by(30, 10), now: 29.5, tells: []string{"job_progressed 0@19.5"}},
			},
		},
		// A step takes 25 s: a round of 10 s lasts as long as one.
		"a round does one step at least": {
			config: Config{Publication: Publication{Progress: backToBack}}, nodes: 1, arrivals: []arrival{{0, slow{phased{3}}}},
			steps: []step{
				{wake: every(10), now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(10, 10), now: 25, tells: []string{"job_progressed 0@0", "job_progressed 0@25"}},
				{wake: by(35, 10), now: 50, tells: []string{"job_progressed 0@50"}},
				{wake: by(60, 10), now: 75, tells: []string{"job_finished 0@75"}},
			},
		},
		// The 5 s that the pause leaves of the first round are too few, and none is forced there.
		"no step is forced into a part of a round": {
			config: Config{Publication: Publication{Progress: backToBack}, Cost: restart.Cost{RestartOverhead: 5 * second}}, nodes: 1, arrivals: []arrival{{0, slow{phased{3}}}},
			steps: []step{
				{wake: every(10), now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(10, 10), now: 5, tells: []string{"job_progressed 0@0", "job_progressed 0@5"}},
				{wake: by(15, 10), now: 30, tells: []string{"job_progressed 0@30"}},
			},
		},
		"quiet rounds are not told": {
			config: Config{Publication: Publication{Progress: backToBack}}, nodes: 1, arrivals: []arrival{{0, phased{100}}},
			steps: []step{
				{wake: every(10), now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: every(10), now: 100, tells: []string{"job_progressed 0@0", "job_finished 0@100"}},
				{wake: every(10), end: true},
			},
		},
		"the end of two rounds is in time": {
			config: Config{Publication: Publication{Progress: backToBack}}, nodes: 1, arrivals: []arrival{{0, phased{100}}},
			steps: []step{
				{wake: every(10), now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(20, 10), now: 20, tells: []string{"job_progressed 0@0", "job_progressed 0@20"}},
				{wake: by(49, 10), now: 40, tells: []string{"job_progressed 0@40"}},
			},
		},
		// Phase 1 is half as fast. It begins at 15 s, and two of its steps fit the 5 s that are left of the second round; after
		// that five fit each round, from 19 s on.
		"a round goes on in the next phase": {
			config: Config{Publication: Publication{Progress: backToBack}}, nodes: 1, arrivals: []arrival{{0, profiled{phased{15, 45}}}},
			steps: []step{
				{wake: every(10), now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(10, 10), now: 10, tells: []string{"job_progressed 0@0", "job_progressed 0@10", "job_measured 0@10"}},
				{wake: by(20, 10), now: 19, tells: []string{"job_progressed 0@19", "job_measured 0@19"}},
				{wake: every(10), now: 75, tells: []string{"job_finished 0@75"}},
			},
		},
		// At 2 a second phase 0 ends at 7.5 s, and two steps of 1 s fit what is left of the round.
		"a round goes on in the next phase, on two devices": {
			config: Config{Publication: Publication{Progress: backToBack}}, nodes: 1, arrivals: []arrival{{0, profiled{phased{15, 45}}}},
			steps: []step{
				{wake: every(10), now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 3))}},
				{wake: by(10, 10), now: 9.5, tells: []string{"job_progressed 0@0", "job_progressed 0@9.5", "job_measured 0@9.5"}},
				{wake: every(10), now: 37.5, tells: []string{"job_finished 0@37.5"}},
			},
		},
		"two jobs end in one round": {
			config: Config{Publication: Publication{Progress: backToBack}}, nodes: 1, arrivals: []arrival{{0, phased{5}}, {0, phased{7}}, {0, phased{3}}},
			steps: []step{
				{
					wake: every(10), now: 0, tells: []string{"job_submitted 0@0", "job_submitted 1@0", "job_submitted 2@0"},
					apply: []core.Change{start(0, seats(0, 1)), start(1, seats(0, 2)), start(2, seats(0, 4))},
				},
				{wake: every(10), now: 7, tells: []string{
					"job_progressed 0@0", "job_progressed 1@0", "job_progressed 2@0", "job_finished 0@5", "job_finished 1@7", "job_finished 2@3",
				}},
				{wake: every(10), end: true},
			},
		},
		"where nobody runs the next arrival is next": {
			config: Config{Publication: Publication{Progress: backToBack}}, nodes: 1, arrivals: []arrival{{0, phased{5}}, {200, phased{5}}},
			steps: []step{
				{wake: every(60), now: 0, tells: []string{"job_submitted 0@0"}},
				{wake: every(60), now: 200, tells: []string{"job_submitted 1@200"}},
			},
		},
		"nodes fail": {
			config: Config{Publication: Publication{Progress: backToBack}, NodeEvents: []NodeEvent{{"n0", 15 * second, "down"}}},
			nodes:  1, arrivals: []arrival{{0, phased{100}}},
			steps: []step{
				{wake: every(10), now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: every(10), now: 20, tells: []string{"job_progressed 0@0", "node_changed 0@15", "job_interrupted 0@20"}},
			},
		},
	} {
		t.Run(name, tc.run)
	}
}

// A job that is done with its part of a round idles to the end of it: its line goes on from there.
func TestAJobThatIdlesIsToldAsOfTheEndOfTheRound(t *testing.T) {
	s := open(t, Config{Publication: Publication{Progress: backToBack}}, 1, arrival{0, slow{phased{30}}}, arrival{0, phased{100}})
	apply(t, s, by(0, 10), start(0, seats(0, 1)))
	if err := s.Apply(t.Context(), []core.Change{start(1, seats(0, 2))}); err != nil {
		t.Fatal(err)
	}
	seen, err := s.Next(t.Context(), by(10, 10))
	if err != nil {
		t.Fatal(err)
	}
	// The step of job 0 takes 25 s, and job 1 did the ten that fit an interval.
	var got []core.Event
	for _, e := range seen.Events {
		if e.AtSeconds > 0 {
			got = append(got, e)
		}
	}
	want := []core.Event{
		{Kind: core.JobProgressed, AtSeconds: 25, Job: 0, Progress: 1, Rate: 1.0 / 25, FromSeconds: 25, StepsLeft: 1},
		{Kind: core.JobProgressed, AtSeconds: 25, Job: 1, Progress: 10, Rate: 1, FromSeconds: 25, StepsLeft: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Both jobs span both nodes, and do 1 a second rather than 2. Job 1 ends at 10 s, and the 90 that are left of job 0 take 45 s.
func TestTheEndOfAJobEndsItsInterference(t *testing.T) {
	for _, progress := range []string{exact, perRound, backToBack} {
		t.Run(progress, func(t *testing.T) {
			s := open(t, Config{Interference: 0.5, Publication: Publication{FirstRound: atStart, Progress: progress}}, 2,
				arrival{0, phased{100}}, arrival{0, phased{10}})
			ends := map[core.JobID]float64{}
			for round := range 3 {
				w := every(10)
				if round == 0 {
					w = by(0, 10)
				}
				seen, err := s.Next(t.Context(), w)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range seen.Events {
					if e.Kind == core.JobFinished {
						ends[e.Job] = e.AtSeconds
					}
				}
				if round > 0 {
					continue
				}
				if err := s.Apply(t.Context(), []core.Change{start(0, seats(0, 1), seats(1, 1)), start(1, seats(0, 2), seats(1, 2))}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(map[core.JobID]float64{0: 55, 1: 10}, ends); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
		})
	}
}

// On a t4 it does 1 a second, on an a100 10.
func TestAMovedJobRunsOnTheTypeThatItHas(t *testing.T) {
	s := open(t, Config{}, 2, arrival{0, typed{phased{100}}})
	s.devices.cluster.Accelerators = []string{"t4", "a100"}
	s.devices.cluster.Nodes[1].Accelerator = 1
	apply(t, s, by(0, 0), start(0, seats(0, 1)))
	apply(t, s, by(40, 0), core.Change{Action: core.Move, Seats: []core.Seat{seats(1, 1)}})
	seen, err := s.Next(t.Context(), core.Wake{BySeconds: math.Inf(1), OnEvents: true})
	if err != nil || seen.NowSeconds != 46 {
		t.Errorf("ends at %v s with error %v, want 46 s", seen.NowSeconds, err)
	}
}
