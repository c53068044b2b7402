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

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
	"github.com/quartet-sched/quartet/core/workload"
)

// phased is a model with given phase ends and one unit of work per second and replica.
type phased []float64

func (p phased) Phases() int                             { return len(p) }
func (p phased) PhaseEnd(i int) float64                  { return p[i] }
func (p phased) Rate(i int, r workload.Running) float64  { return float64(r.Replicas) + 0*p[i] } // of its phases only
func (p phased) StepsLeft(phase int) float64             { return float64(len(p) - phase) }
func seats(node core.NodeID, d core.DeviceSet) core.Seat { return core.Seat{Node: node, Devices: d} }

// slow does one unit of work in 25 s.
type slow struct{ phased }

func (slow) Rate(int, workload.Running) float64 { return 1.0 / 25 }

// halting does nothing with a batch of 9 on each device.
type halting struct{ phased }

func (m halting) Rate(phase int, r workload.Running) float64 {
	if r.Tuning.BatchPerDevice == 9 {
		return 0
	}
	return m.phased.Rate(phase, r)
}

// typed is ten times as fast on an a100.
type typed struct{ phased }

func (m typed) Rate(phase int, r workload.Running) float64 {
	if r.Accelerators[0] == "a100" {
		return 10 * m.phased.Rate(phase, r)
	}
	return m.phased.Rate(phase, r)
}

func start(id core.JobID, seats ...core.Seat) core.Change { return core.Change{Job: id, Seats: seats} }

func stop(id core.JobID) core.Change { return core.Change{Action: core.Stop, Job: id} }

func every(interval float64) core.Wake {
	return core.Wake{BySeconds: math.Inf(1), IntervalSeconds: interval}
}
func by(t, interval float64) core.Wake { return core.Wake{BySeconds: t, IntervalSeconds: interval} }

type arrival struct {
	at    float64
	model workload.Model
}

func open(t *testing.T, c Config, nodes int, arrivals ...arrival) *Simulator {
	t.Helper()
	if c.StallAfter == 0 {
		c.StallAfter = time.Hour
	}
	cluster := &core.Cluster{Accelerators: []string{"t4"}}
	for i := range nodes {
		cluster.Nodes = append(cluster.Nodes, core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("n%d", i), Devices: 4})
	}
	w := &workload.Workload{}
	for i, a := range arrivals {
		w.Jobs = append(w.Jobs, workload.Job{
			Spec:  core.JobSpec{ID: core.JobID(i), Name: fmt.Sprintf("j%d", i), SubmitSeconds: a.at, TotalWork: a.model.PhaseEnd(a.model.Phases() - 1)},
			Model: a.model,
		})
	}
	o := opener{c, core.Settings{Rand: core.NewRand(1, "sim")}}
	b, err := o.Open(context.Background(), cluster, w)
	if err != nil {
		t.Fatal(err)
	}
	return b.(*Simulator)
}

// step is one round: what Next must tell, and the changes to apply then.
type step struct {
	wake  core.Wake
	now   float64
	tells []string // "kind job@moment"
	apply []core.Change
	end   bool // Next must tell the end
}

// scenario is a run, round by round.
type scenario struct {
	config   Config
	nodes    int
	arrivals []arrival
	steps    []step
}

func (tc scenario) run(t *testing.T) {
	t.Helper()
	s := open(t, tc.config, tc.nodes, tc.arrivals...)
	for i, step := range tc.steps {
		seen, err := s.Next(context.Background(), step.wake)
		if step.end {
			if !errors.Is(err, io.EOF) {
				t.Fatalf("step %d: error %v, want the end", i, err)
			}
			return
		}
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if seen.NowSeconds != step.now {
			t.Errorf("step %d: now %v, want %v", i, seen.NowSeconds, step.now)
		}
		var tells []string
		for _, e := range seen.Events {
			tells = append(tells, fmt.Sprintf("%v %d@%v", e.Kind, e.Job, e.AtSeconds))
		}
		if diff := cmp.Diff(step.tells, tells); diff != "" {
			t.Errorf("step %d: events (-want +got):\n%s", i, diff)
		}
		if err := s.Apply(context.Background(), step.apply); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

func TestSimulator(t *testing.T) {
	second := time.Second
	onEvents := core.Wake{BySeconds: math.Inf(1), OnEvents: true}
	publishedByPollux := Publication{FirstRound: oneInterval, Progress: perRound, EpochEnds: wholeSeconds}
	for name, tc := range map[string]scenario{
		"a job ends at the exact moment, after its pause": {
			config: Config{Cost: restart.Cost{RestartOverhead: 30 * second}}, nodes: 1, arrivals: []arrival{{10, phased{100}}},
			steps: []step{
				{wake: onEvents, now: 10, tells: []string{"job_submitted 0@10"}, apply: []core.Change{start(0, seats(0, 3))}},
				{wake: onEvents, now: 90, tells: []string{"job_progressed 0@10", "job_finished 0@90"}},
				{wake: onEvents, end: true},
			},
		},
		"an event wakes the next round of the grid": {
			nodes: 1, arrivals: []arrival{{10, phased{100}}, {61, phased{1}}},
			steps: []step{
				{wake: every(60), now: 60, tells: []string{"job_submitted 0@10"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: every(60), now: 120, tells: []string{"job_progressed 0@60", "job_submitted 1@61"}},
				{wake: by(180, 60), now: 180, tells: []string{"job_finished 0@160"}, apply: []core.Change{start(1, seats(0, 1))}},
				{wake: every(60), now: 240, tells: []string{"job_progressed 1@180", "job_finished 1@181"}},
				{wake: every(60), end: true},
			},
		},
		"a stop keeps the progress, a second start pays again": {
			config: Config{Cost: restart.Cost{RestartOverhead: 10 * second}, FreeFirstStart: true}, nodes: 1, arrivals: []arrival{{0, phased{100}}},
			steps: []step{
				{wake: by(0, 60), now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(60, 60), now: 60, tells: []string{"job_progressed 0@0"}, apply: []core.Change{stop(0)}},
				{wake: by(120, 60), now: 120, tells: []string{"job_progressed 0@60"}, apply: []core.Change{start(0, seats(0, 3))}},
				{wake: every(60), now: 180, tells: []string{"job_progressed 0@120", "job_finished 0@150"}},
			},
		},
		"phases are told, and wake the grid": {
			nodes: 1, arrivals: []arrival{{0, phased{70, 100}}},
			steps: []step{
				{wake: every(60), now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: every(60), now: 120, tells: []string{"job_progressed 0@0", "job_progressed 0@70", "job_finished 0@100"}},
			},
		},
		"phases wake the grid though no job ends": {
			nodes: 1, arrivals: []arrival{{0, phased{70, 400}}},
			steps: []step{
				{wake: every(60), now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: every(60), now: 120, tells: []string{"job_progressed 0@0", "job_progressed 0@70"}},
			},
		},
		"jobs that end at one moment are told in their order": {
			nodes: 1, arrivals: []arrival{{0, phased{50}}, {0, phased{50}}, {0, phased{50}}},
			steps: []step{
				{
					wake: onEvents, now: 0, tells: []string{"job_submitted 0@0", "job_submitted 1@0", "job_submitted 2@0"},
					apply: []core.Change{start(2, seats(0, 1)), start(1, seats(0, 2)), start(0, seats(0, 4))},
				},
				{wake: onEvents, now: 50, tells: []string{
					"job_progressed 2@0", "job_progressed 1@0", "job_progressed 0@0", "job_finished 0@50", "job_finished 1@50", "job_finished 2@50",
				}},
			},
		},
		"a rejected job is not told of again": {
			nodes: 1, arrivals: []arrival{{0, phased{50}}, {10, phased{50}}},
			steps: []step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{{Action: core.Discard}}},
				{wake: onEvents, now: 10, tells: []string{"job_submitted 1@10"}},
			},
		},
		// Two devices do 2 a second: 60 are done at 30 s, of which the 20 since the checkpoint at 20 s are lost.
		"a checkpoint in an earlier phase": {
			config: Config{
				CheckpointInterval: 20 * second,
				NodeEvents:         []NodeEvent{{"n0", 30 * second, "down"}, {"n0", 60 * second, "ready"}},
			},
			nodes: 1, arrivals: []arrival{{0, phased{45, 100}}},
			steps: []step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 3))}},
				{wake: onEvents, now: 30, tells: []string{"job_progressed 0@0", "job_progressed 0@22.5", "node_changed 0@30", "job_interrupted 0@30"}},
				{wake: onEvents, now: 60, tells: []string{"node_changed 0@60"}, apply: []core.Change{start(0, seats(0, 3))}},
				{wake: onEvents, now: 90, tells: []string{"job_progressed 0@60", "job_progressed 0@62.5", "job_finished 0@90"}},
			},
		},
		"a checkpoint at the beginning of a phase does not end the one before again": {
			config: Config{
				CheckpointInterval: 20 * second,
				NodeEvents:         []NodeEvent{{"n0", 50 * second, "down"}, {"n0", 60 * second, "ready"}},
			},
			nodes: 1, arrivals: []arrival{{0, phased{40, 100}}},
			steps: []step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: onEvents, now: 50, tells: []string{"job_progressed 0@0", "job_progressed 0@40", "node_changed 0@50", "job_interrupted 0@50"}},
				{wake: onEvents, now: 60, tells: []string{"node_changed 0@60"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: onEvents, now: 120, tells: []string{"job_progressed 0@60", "job_finished 0@120"}},
			},
		},
		// Disturbed, job 0 does 1 a second for 100 s, and then 2. At its speed of now, the 120 s since its start are more than
		// it did: it begins again, and not before its start.
		"no more is lost than was done since the start": {
			config: Config{
				Interference: 0.5, CheckpointInterval: 1000 * second,
				NodeEvents: []NodeEvent{{"n0", 120 * second, "down"}, {"n0", 130 * second, "ready"}},
			},
			nodes: 2, arrivals: []arrival{{0, phased{200}}, {0, phased{100}}},
			steps: []step{
				{
					wake: onEvents, now: 0, tells: []string{"job_submitted 0@0", "job_submitted 1@0"},
					apply: []core.Change{start(0, seats(0, 1), seats(1, 1)), start(1, seats(0, 2), seats(1, 2))},
				},
				{wake: onEvents, now: 100, tells: []string{
					"job_progressed 0@0", "job_progressed 1@0", "job_progressed 0@0", "job_progressed 1@0", "job_finished 1@100", "job_progressed 0@100",
				}},
				{wake: onEvents, now: 120, tells: []string{"node_changed 0@120", "job_interrupted 0@120"}},
				{wake: onEvents, now: 130, tells: []string{"node_changed 0@130"}, apply: []core.Change{start(0, seats(0, 1), seats(1, 1))}},
				{wake: onEvents, now: 230, tells: []string{"job_progressed 0@130", "job_finished 0@230"}},
			},
		},
		// Job 0 does 10 until n0 fails, and job 1 as much: 90 are left, at 2 a second.
		"a failure ends the interference of the job that it stops": {
			config: Config{Interference: 0.5, NodeEvents: []NodeEvent{{"n0", 10 * second, "down"}}},
			nodes:  3, arrivals: []arrival{{0, phased{100}}, {0, phased{100}}},
			steps: []step{
				{
					wake: onEvents, now: 0, tells: []string{"job_submitted 0@0", "job_submitted 1@0"},
					apply: []core.Change{start(0, seats(0, 1), seats(1, 1)), start(1, seats(1, 2), seats(2, 2))},
				},
				{wake: onEvents, now: 10, tells: []string{
					"job_progressed 0@0", "job_progressed 1@0", "job_progressed 0@0", "job_progressed 1@0", "node_changed 0@10", "job_interrupted 0@10", "job_progressed 1@10",
				}},
				{wake: onEvents, now: 55, tells: []string{"job_finished 1@55"}},
			},
		},
		"a job on one node disturbs nobody": {
			config: Config{Interference: 0.5}, nodes: 2, arrivals: []arrival{{0, phased{100}}, {0, phased{100}}},
			steps: []step{
				{
					wake: onEvents, now: 0, tells: []string{"job_submitted 0@0", "job_submitted 1@0"},
					apply: []core.Change{start(0, seats(0, 1), seats(1, 1)), start(1, seats(0, 2))},
				},
				{wake: onEvents, now: 50, tells: []string{"job_progressed 0@0", "job_progressed 1@0", "job_finished 0@50"}},
				{wake: onEvents, now: 100, tells: []string{"job_finished 1@100"}},
			},
		},
		// With a batch of 9 on each device it does nothing.
		"a job that stands still does not end": {
			nodes: 1, arrivals: []arrival{{0, halting{phased{100}}}},
			steps: []step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(50, 0), now: 50, tells: []string{"job_progressed 0@0"}, apply: []core.Change{{Action: core.Tune, Tuning: core.Tuning{BatchPerDevice: 9}}}},
				{wake: by(500, 0), now: 500, tells: []string{"job_progressed 0@50"}, apply: []core.Change{{Action: core.Tune}}},
				{wake: onEvents, now: 550, tells: []string{"job_progressed 0@500", "job_finished 0@550"}},
			},
		},
		"a moved job runs where it is, not where it was": {
			nodes: 2, arrivals: []arrival{{0, profiled{phased{100}}}},
			steps: []step{
				{wake: by(0, 0), now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(40, 0), now: 40, tells: []string{"job_progressed 0@0", "job_measured 0@40"}, apply: []core.Change{{Action: core.Move, Seats: []core.Seat{seats(1, 1)}}}},
				{wake: by(500, 0), now: 100, tells: []string{"job_progressed 0@40", "job_finished 0@100"}},
			},
		},
		"published: quiet rounds are not told": {
			config: Config{Publication: Publication{Progress: perRound}}, nodes: 1, arrivals: []arrival{{0, phased{1000}}},
			steps: []step{
				{wake: every(60), now: 60, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(120, 60), now: 120, tells: []string{"job_progressed 0@60"}},
				{wake: by(300, 60), now: 300},
			},
		},
		// After a pause of half a second, 59.5 s are rounded to 60 s: half a second more than the round has left.
		"published: whole seconds do not exceed the round": {
			config: Config{Cost: restart.Cost{RestartOverhead: second / 2}, Publication: Publication{FirstRound: atStart, Progress: perRound, EpochEnds: wholeSeconds}},
			nodes:  1, arrivals: []arrival{{0, phased{59.5}}},
			steps: []step{
				{wake: every(60), now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: every(60), now: 60, tells: []string{"job_progressed 0@0", "job_finished 0@60"}},
			},
		},
		"interference slows both, until one is gone": {
			config: Config{Interference: 0.5}, nodes: 2, arrivals: []arrival{{0, phased{200}}, {0, phased{200}}},
			steps: []step{
				{
					wake: onEvents, now: 0, tells: []string{"job_submitted 0@0", "job_submitted 1@0"},
					apply: []core.Change{start(0, seats(0, 1), seats(1, 1)), start(1, seats(0, 2), seats(1, 2))},
				},
				{wake: by(100, 0), now: 100, tells: []string{
					"job_progressed 0@0", "job_progressed 1@0", "job_progressed 0@0", "job_progressed 1@0",
				}, apply: []core.Change{stop(0)}},
				{wake: onEvents, now: 150, tells: []string{"job_progressed 0@100", "job_progressed 1@100", "job_finished 1@150"}},
			},
		},
		"a job that spans nodes pays the locality penalty": {
			config: Config{LocalityPenalty: 0.5}, nodes: 2, arrivals: []arrival{{0, phased{100}}},
			steps: []step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1), seats(1, 1))}},
				{wake: onEvents, now: 100, tells: []string{"job_progressed 0@0", "job_finished 0@100"}},
			},
		},
		"a job on one node pays no locality penalty": {
			config: Config{LocalityPenalty: 0.5}, nodes: 2, arrivals: []arrival{{0, phased{100}}},
			steps: []step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 3))}},
				{wake: onEvents, now: 50, tells: []string{"job_progressed 0@0", "job_finished 0@50"}},
			},
		},
		// A checkpoint at 50, after a pause of 30 s: 5 of the 25 s that it worked are lost, and 80 are left.
		"a pause is no time worked since a checkpoint": {
			config: Config{
				Cost: restart.Cost{RestartOverhead: 30 * second}, CheckpointInterval: 20 * second,
				NodeEvents: []NodeEvent{{"n0", 55 * second, "down"}, {"n0", 60 * second, "ready"}},
			},
			nodes: 1, arrivals: []arrival{{0, phased{100}}},
			steps: []step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: onEvents, now: 55, tells: []string{"job_progressed 0@0", "node_changed 0@55", "job_interrupted 0@55"}},
				{wake: onEvents, now: 60, tells: []string{"node_changed 0@60"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: onEvents, now: 170, tells: []string{"job_progressed 0@60", "job_finished 0@170"}},
			},
		},
		// 15 s into a pause that a change of the batch caused: nothing was worked since, and nothing is lost of the 50 s before.
		"a failure in a pause takes nothing that was done before it": {
			config: Config{
				TuneOverhead: 40 * second, CheckpointInterval: 200 * second,
				NodeEvents: []NodeEvent{{"n0", 65 * second, "down"}, {"n0", 70 * second, "ready"}},
			},
			nodes: 1, arrivals: []arrival{{0, phased{100}}},
			steps: []step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(50, 0), now: 50, tells: []string{"job_progressed 0@0"}, apply: []core.Change{{Action: core.Tune, Tuning: core.Tuning{BatchPerDevice: 8}}}},
				{wake: onEvents, now: 65, tells: []string{"job_progressed 0@50", "node_changed 0@65", "job_interrupted 0@65"}},
				{wake: onEvents, now: 70, tells: []string{"node_changed 0@70"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: onEvents, now: 120, tells: []string{"job_progressed 0@70", "job_finished 0@120"}},
			},
		},
		"a failing node throws its jobs back to the last checkpoint": {
			config: Config{
				CheckpointInterval: 20 * second,
				NodeEvents:         []NodeEvent{{"n0", 50 * second, "down"}, {"n0", 60 * second, "ready"}},
			},
			nodes: 1, arrivals: []arrival{{0, phased{45, 100}}},
			steps: []step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: onEvents, now: 50, tells: []string{"job_progressed 0@0", "job_progressed 0@45", "node_changed 0@50", "job_interrupted 0@50"}},
				{wake: onEvents, now: 60, tells: []string{"node_changed 0@60"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: onEvents, now: 120, tells: []string{"job_progressed 0@60", "job_progressed 0@65", "job_finished 0@120"}},
			},
		},
		"another batch is no checkpoint": {
			config: Config{
				CheckpointInterval: 20 * second,
				NodeEvents:         []NodeEvent{{"n0", 55 * second, "down"}, {"n0", 60 * second, "ready"}},
			},
			nodes: 1, arrivals: []arrival{{0, phased{100}}},
			steps: []step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(50, 0), now: 50, tells: []string{"job_progressed 0@0"}, apply: []core.Change{{Action: core.Tune, Tuning: core.Tuning{BatchPerDevice: 8}}}},
				{wake: onEvents, now: 55, tells: []string{"job_progressed 0@50", "node_changed 0@55", "job_interrupted 0@55"}},
				{wake: onEvents, now: 60, tells: []string{"node_changed 0@60"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: onEvents, now: 120, tells: []string{"job_progressed 0@60", "job_finished 0@120"}},
			},
		},
		"applying twice has the effect of once": {
			config: Config{Cost: restart.Cost{RestartOverhead: 10 * second}}, nodes: 1, arrivals: []arrival{{0, phased{50}}},
			steps: []step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1)), start(0, seats(0, 1))}},
				{wake: onEvents, now: 60, tells: []string{"job_progressed 0@0", "job_progressed 0@0", "job_finished 0@60"}},
			},
		},
		"a rejected job is not waited for": {
			nodes: 1, arrivals: []arrival{{0, phased{50}}},
			steps: []step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{{Action: core.Discard}}},
				{wake: onEvents, end: true},
			},
		},
		"a job that nobody starts ends the run": {
			nodes: 1, arrivals: []arrival{{0, phased{50}}},
			steps: []step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}},
				{wake: by(60, 60), now: 60},
				{wake: by(7200, 60), end: true},
			},
		},
		"published: completion at the next round": {
			config: Config{Publication: Publication{Completion: nextRound}}, nodes: 1, arrivals: []arrival{{10, phased{100}}},
			steps: []step{
				{wake: every(300), now: 300, tells: []string{"job_submitted 0@10"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: every(300), now: 600, tells: []string{"job_progressed 0@300", "job_finished 0@600"}},
			},
		},
		"published: whole seconds at the end of epochs, first decision after one interval": {
			config: Config{Cost: restart.Cost{RestartOverhead: 30 * second}, Publication: publishedByPollux}, nodes: 1, arrivals: []arrival{{0, phased{10.4, 20.8, 100.8}}},
			steps: []step{
				{wake: every(60), now: 60, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(120, 60), now: 120, tells: []string{"job_progressed 0@60", "job_progressed 0@120"}},
				{wake: by(180, 60), now: 180},
				{wake: every(60), now: 240, tells: []string{"job_finished 0@190"}},
			},
		},
	} {
		t.Run(name, tc.run)
	}
}
