package timeline_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/timeline"
)

// files are what a recorder writes.
type files struct{ timeline, nodes, usage, training, efficiency bytes.Buffer }

// story is the rounds of a run over two nodes, a of two t4 and b of four v100.
type story struct {
	*timeline.Recorder
	t     *testing.T
	view  core.View
	files files
}

func newStory(t *testing.T, truth timeline.Truth) *story {
	return storyOf(t, truth, &core.Cluster{Accelerators: []string{"t4", "v100"}, Nodes: []core.Node{
		{ID: 0, Name: "a", Accelerator: 0, Devices: 2}, {ID: 1, Name: "b", Accelerator: 1, Devices: 4},
	}})
}

// storyOf is one on another cluster.
func storyOf(t *testing.T, truth timeline.Truth, c *core.Cluster) *story {
	s := &story{t: t}
	s.view.Cluster = c
	s.Recorder = timeline.NewRecorder(s.view.Cluster, timeline.Outputs{
		Timeline: &s.files.timeline, Nodes: &s.files.nodes, Usage: &s.files.usage, Training: &s.files.training,
		Efficiency: &s.files.efficiency, Truth: truth,
	})
	return s
}

// round tells a round. Jobs are given as they are after it: those that are admitted count as active.
func (s *story) round(now float64, jobs map[core.JobID]core.JobState, events []core.Event, changes ...core.Change) {
	s.t.Helper()
	s.view.NowSeconds = now
	s.view.Active, s.view.Jobs = nil, make([]*core.Job, 10)
	var ended []*core.Job
	for id := range core.JobID(10) {
		state, there := jobs[id]
		if !there {
			continue
		}
		j := &core.Job{JobSpec: spec(id), State: state}
		if state.Ended() {
			ended = append(ended, j)
			continue
		}
		s.view.Jobs[id] = j
		if state != core.Pending {
			s.view.Active = append(s.view.Active, id)
		}
	}
	if err := s.ObserveRound(&core.Report{View: &s.view, Events: events, Ended: ended, Changes: changes}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) finish(end float64, unfinished ...*core.Job) {
	s.t.Helper()
	if err := s.Finish(unfinished, end); err != nil {
		s.t.Fatal(err)
	}
}

func spec(id core.JobID) *core.JobSpec {
	return &core.JobSpec{ID: id, Requested: int(id) + 1, Batch: core.BatchSpec{Initial: 32}}
}

func submitted(id core.JobID, at float64) core.Event {
	return core.Event{Kind: core.JobSubmitted, AtSeconds: at, Job: id, Spec: spec(id)}
}

func happened(kind core.EventKind, id core.JobID, at float64) core.Event {
	return core.Event{Kind: kind, AtSeconds: at, Job: id}
}

func start(action core.Action, id core.JobID, seats ...core.Seat) core.Change {
	return core.Change{Action: action, Job: id, Seats: seats, Tuning: core.Tuning{BatchPerDevice: 16, AccumulationSteps: 1}}
}

func seat(node core.NodeID, devices core.DeviceSet) core.Seat {
	return core.Seat{Node: node, Devices: devices}
}

func lines(rows ...string) string { return strings.Join(rows, "\n") + "\n" }

const (
	timelineHeader = "job,start_s,end_s,accelerator,replicas,nodes,seats,batch_per_device,accumulation_steps,end"
	usageHeader    = "at_s,devices_ready,devices_used,running,waiting,pending,demand,efficiency,goodput"
	nodesHeader    = "node,accelerator,devices,start_s,end_s,health"
	trainingHeader = "job,initial_batch,seconds,batch_mean,efficiency_mean,goodput_mean"

	efficiencyHeader = "job,at_s,batch,efficiency,goodput"
)

func expect(t *testing.T, name, want string, got *bytes.Buffer) {
	t.Helper()
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// A job of each fate: resized, moved and finished; stopped by a policy, and cancelled while it waits; interrupted by a node that
// fails; rejected; still running at the end.
func TestRecorder(t *testing.T) {
	s := newStory(t, nil)
	running, waiting, pending := core.Running, core.Waiting, core.Pending
	s.round(10, map[core.JobID]core.JobState{0: running, 1: running, 2: waiting, 3: pending},
		[]core.Event{submitted(0, 1), submitted(1, 1), submitted(2, 5), submitted(3, 10)},
		start(core.Start, 0, seat(0, 1)), start(core.Start, 1, seat(1, 3)))
	s.round(20, map[core.JobID]core.JobState{0: running, 1: waiting, 2: running, 3: core.Rejected}, nil,
		core.Change{Action: core.Stop, Job: 1, Reason: core.PreemptedByPriority},
		start(core.Move, 0, seat(0, 2), seat(1, 4)), start(core.Start, 2, seat(1, 3), seat(0, 1)),
		core.Change{Action: core.Discard, Job: 3})
	s.round(30, map[core.JobID]core.JobState{0: running, 2: running, 1: core.Cancelled},
		[]core.Event{happened(core.JobCancelled, 1, 25)}, start(core.Move, 0, seat(1, 8), seat(1, 4)))
	s.round(40, map[core.JobID]core.JobState{0: core.Completed, 2: waiting}, []core.Event{
		happened(core.JobFinished, 0, 32.5),
		{Kind: core.NodeChanged, AtSeconds: 35, Node: 1, Health: core.Down},
		happened(core.JobInterrupted, 2, 35),
	})
	s.round(50, map[core.JobID]core.JobState{2: running}, []core.Event{{Kind: core.NodeChanged, AtSeconds: 50, Node: 1, Health: core.Ready}},
		start(core.Start, 2, seat(1, 15)))
	s.finish(60, &core.Job{JobSpec: spec(2), State: running})

	expect(t, "timeline.csv", lines(timelineHeader,
		"0,10,20,t4,1,1,a:1,16,1,resized",
		"1,10,20,v100,2,1,b:3,16,1,preempted",
		"0,20,30,t4+v100,2,2,a:2+b:4,16,1,moved",
		"0,30,32.5,v100,2,2,b:8+b:4,16,1,finished",
		"2,20,35,v100+t4,3,2,b:3+a:1,16,1,interrupted",
		"2,50,60,v100,4,1,b:f,16,1,unfinished",
	), &s.files.timeline)
	expect(t, "nodes.csv", lines(nodesHeader,
		"a,t4,2,0,60,ready", "b,v100,4,0,35,ready", "b,v100,4,35,50,down", "b,v100,4,50,60,ready",
	), &s.files.nodes)
	expect(t, "usage.csv", lines(usageHeader,
		"0,6,0,0,0,0,0,,",
		"1,6,0,0,0,2,3,,",
		"5,6,0,0,0,3,6,,",
		"10,6,3,2,1,1,10,,",
		"20,6,5,2,1,0,6,,",
		"25,6,5,2,0,0,4,,",
		"32.5,6,3,1,0,0,3,,",
		"35,2,0,0,1,0,3,,",
		"50,6,4,1,0,0,3,,",
		"60,6,4,1,0,0,3,,",
	), &s.files.usage)
	expect(t, "training.csv", lines(trainingHeader), &s.files.training)
	expect(t, "efficiency.csv", lines(efficiencyHeader), &s.files.efficiency)
}

// A drained node's jobs are interrupted, whoever stops them; a job that ends twice, or was never submitted, is told once.
func TestRecorderOfOddEvents(t *testing.T) {
	s := newStory(t, nil)
	s.round(0, map[core.JobID]core.JobState{0: core.Running}, []core.Event{submitted(0, 0)}, start(core.Start, 0, seat(0, 1)))
	s.round(5, map[core.JobID]core.JobState{0: core.Waiting}, []core.Event{
		{Kind: core.NodeChanged, AtSeconds: 4, Node: 0, Health: core.Draining},
		{Kind: core.NodeChanged, AtSeconds: 4, Node: 0, Health: core.Draining},
		happened(core.JobFinished, 7, 4),
		{Kind: core.JobShrunk, AtSeconds: 4, Job: 7, Seats: []core.Seat{seat(0, 1)}},
	}, core.Change{Action: core.Stop, Job: 0, Reason: core.NodeUnavailable})
	s.round(6, map[core.JobID]core.JobState{0: core.Failed}, []core.Event{
		{Kind: core.JobShrunk, AtSeconds: 5.5, Job: 0, Seats: []core.Seat{seat(0, 1)}}, // it waits
		happened(core.JobInterrupted, 0, 6), happened(core.JobFailed, 0, 6), happened(core.JobFinished, 0, 6),
	})
	s.finish(6)
	expect(t, "timeline.csv", lines(timelineHeader, "0,0,5,t4,1,1,a:1,16,1,interrupted"), &s.files.timeline)
	expect(t, "nodes.csv", lines(nodesHeader, "a,t4,2,0,4,ready", "a,t4,2,4,6,draining", "b,v100,4,0,6,ready"), &s.files.nodes)
	expect(t, "usage.csv", lines(usageHeader, "0,6,1,1,0,0,1,,", "4,4,1,1,0,0,1,,", "5,4,0,0,1,0,1,,", "6,4,0,0,0,0,0,,"), &s.files.usage)
}

// A run that is cut short between two rounds: one job ended since, one was submitted since.
func TestRecorderOfACutRun(t *testing.T) {
	s := newStory(t, nil)
	s.round(0, map[core.JobID]core.JobState{0: core.Running, 1: core.Running}, []core.Event{submitted(0, 0), submitted(1, 0)},
		start(core.Start, 0, seat(0, 1)), start(core.Start, 1, seat(1, 3)))
	ended := &core.Job{JobSpec: spec(0), State: core.Completed, FinishSeconds: 3}
	late := &core.Job{JobSpec: spec(2), State: core.Pending}
	late.SubmitSeconds = 4
	s.finish(8, &core.Job{JobSpec: spec(1), State: core.Running}, late, ended)
	expect(t, "timeline.csv", lines(timelineHeader, "0,0,3,t4,1,1,a:1,16,1,finished", "1,0,8,v100,2,1,b:3,16,1,unfinished"), &s.files.timeline)
	expect(t, "usage.csv", lines(usageHeader, "0,6,3,2,0,0,3,,", "3,6,2,1,0,0,2,,", "4,6,2,1,0,1,5,,", "8,6,2,1,0,1,5,,"), &s.files.usage)
}

// Training is exact to the event: a pause of 4 s, a phase that halves the efficiency, another batch.
func TestRecorderOfTraining(t *testing.T) {
	truth := func(id core.JobID, progress float64, seats []core.Seat, tuning core.Tuning) (int, float64, float64, bool) {
		efficiency := 0.8
		if progress >= 100 {
			efficiency = 0.4
		}
		return core.Replicas(seats) * tuning.BatchPerDevice, efficiency, 32, id == 1
	}
	s := newStory(t, truth)
	jobs := map[core.JobID]core.JobState{0: core.Running, 1: core.Running}
	progressed := func(at, progress, rate, from float64) core.Event {
		return core.Event{Kind: core.JobProgressed, AtSeconds: at, Job: 1, Progress: progress, Rate: rate, FromSeconds: from}
	}
	s.round(0, jobs, []core.Event{submitted(0, 0), submitted(1, 0)}, start(core.Start, 0, seat(0, 1)), start(core.Start, 1, seat(1, 3)))
	s.round(16, jobs, []core.Event{progressed(0, 0, 10, 4), progressed(14, 100, 5, 14)},
		core.Change{Action: core.Tune, Job: 1, Tuning: core.Tuning{BatchPerDevice: 64}})
	s.round(20, map[core.JobID]core.JobState{0: core.Running, 1: core.Completed}, []core.Event{
		progressed(16, 110, 7, 16), happened(core.JobFinished, 1, 20),
	})
	s.finish(20, &core.Job{JobSpec: spec(0), State: core.Running})
	expect(t, "usage.csv", lines(usageHeader,
		"0,6,3,2,0,0,3,0.8,0", "4,6,3,2,0,0,3,0.8,160", "14,6,3,2,0,0,3,0.4,80", "16,6,3,2,0,0,3,0.4,112", "20,6,1,1,0,0,1,,",
	), &s.files.usage)
	expect(t, "training.csv", lines(trainingHeader, "1,32,20,51.2,0.6799999999999999,220.8"), &s.files.training)
	expect(t, "efficiency.csv", lines(efficiencyHeader,
		"1,0,32,0.8,0", "1,4,32,0.8,320", "1,14,32,0.4,160", "1,16,128,0.4,224", "1,20,,,"), &s.files.efficiency)
}
