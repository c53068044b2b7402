package timeline_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/timeline"
)

// trains is a truth of which every job trains, half as well from a progress of 100 on.
func trains(_ core.JobID, progress float64, seats []core.Seat, tuning core.Tuning) (int, float64, float64, bool) {
	efficiency := 0.75
	if progress >= 100 {
		efficiency = 0.5
	}
	return core.Replicas(seats) * tuning.BatchPerDevice, efficiency, 32, true
}

func progressed(id core.JobID, at, progress, rate, from float64) core.Event {
	return core.Event{Kind: core.JobProgressed, AtSeconds: at, Job: id, Progress: progress, Rate: rate, FromSeconds: from}
}

// Each file is written alone as it is beside the others.
func TestRecorderWritesWhatIsWanted(t *testing.T) {
	tell := func(wanted func(*timeline.Outputs)) {
		s := newStory(t, nil)
		o := timeline.Outputs{Timeline: &s.files.timeline, Nodes: &s.files.nodes, Usage: &s.files.usage, Training: &s.files.training, Truth: trains}
		wanted(&o)
		s.Recorder = timeline.NewRecorder(s.view.Cluster, o)
		s.Expect(1)
		running := map[core.JobID]core.JobState{0: core.Running}
		s.round(0, running, []core.Event{submitted(0, 0)}, start(core.Start, 0, seat(0, 1)))
		s.round(10, running, []core.Event{progressed(0, 0, 0, 2, 4), {Kind: core.NodeChanged, AtSeconds: 8, Node: 1, Health: core.Down}})
		s.finish(10, &core.Job{JobSpec: spec(0), State: core.Running})
		for name, file := range map[string]struct {
			want string
			got  *bytes.Buffer
			to   any
		}{
			"timeline.csv": {lines(timelineHeader, "0,0,10,t4,1,1,a:1,16,1,unfinished"), &s.files.timeline, o.Timeline},
			"nodes.csv":    {lines(nodesHeader, "a,t4,2,0,10,ready", "b,v100,4,0,8,ready", "b,v100,4,8,10,down"), &s.files.nodes, o.Nodes},
			"usage.csv":    {lines(usageHeader, "0,6,1,1,0,0,1,0.75,0", "4,6,1,1,0,0,1,0.75,64", "8,2,1,1,0,0,1,0.75,64", "10,2,1,1,0,0,1,0.75,64"), &s.files.usage, o.Usage},
			"training.csv": {lines(trainingHeader, "0,32,10,16,0.75,38.4"), &s.files.training, o.Training},
		} {
			if file.to == nil {
				file.want = ""
			}
			expect(t, name, file.want, file.got)
		}
	}
	all := func(*timeline.Outputs) {}
	for _, wanted := range []func(*timeline.Outputs){
		all,
		func(o *timeline.Outputs) { o.Timeline = nil },
		func(o *timeline.Outputs) { o.Nodes = nil },
		func(o *timeline.Outputs) { o.Usage = nil },
		func(o *timeline.Outputs) { o.Training = nil },
		func(o *timeline.Outputs) { o.Usage, o.Training = nil, nil },
		func(o *timeline.Outputs) { *o = timeline.Outputs{Truth: trains} },
	} {
		tell(wanted)
	}
}

// Without a truth nobody is known to train.
func TestRecorderWithoutATruth(t *testing.T) {
	s := newStory(t, nil)
	running := map[core.JobID]core.JobState{0: core.Running}
	s.round(0, running, []core.Event{submitted(0, 0)}, start(core.Start, 0, seat(0, 1)))
	s.round(10, running, []core.Event{progressed(0, 0, 0, 2, 4)})
	s.finish(10, &core.Job{JobSpec: spec(0), State: core.Running})
	expect(t, "usage.csv", lines(usageHeader, "0,6,1,1,0,0,1,,", "10,6,1,1,0,0,1,,"), &s.files.usage)
	expect(t, "training.csv", lines(trainingHeader), &s.files.training)
}

// A node that is down when the run begins counts once it is ready; of what happens to it at one moment the last counts, and of
// what happens as the run ends nothing is left to tell.
func TestRecorderOfNodes(t *testing.T) {
	s := newStory(t, nil)
	s.view.Cluster.Nodes[0].Health = core.Down
	s.Recorder = timeline.NewRecorder(s.view.Cluster, timeline.Outputs{Nodes: &s.files.nodes, Usage: &s.files.usage})
	changed := func(node core.NodeID, h core.Health, at float64) core.Event {
		return core.Event{Kind: core.NodeChanged, AtSeconds: at, Node: node, Health: h}
	}
	s.round(0, nil, nil)
	s.round(10, nil, []core.Event{changed(0, core.Ready, 5), changed(1, core.Draining, 7), changed(1, core.Down, 7)})
	s.round(20, nil, nil)
	s.round(30, nil, []core.Event{changed(0, core.Draining, 30), changed(1, core.Ready, 35)})
	s.finish(30)
	expect(t, "nodes.csv", lines(nodesHeader, "a,t4,2,0,5,down", "a,t4,2,5,30,ready", "b,v100,4,0,7,ready", "b,v100,4,7,30,down"), &s.files.nodes)
	expect(t, "usage.csv", lines(usageHeader, "0,4,0,0,0,0,0,,", "5,6,0,0,0,0,0,,", "7,2,0,0,0,0,0,,", "30,0,0,0,0,0,0,,", "35,4,0,0,0,0,0,,"), &s.files.usage)

	s = newStory(t, nil)
	s.finish(0)
	expect(t, "nodes.csv of no time", lines(nodesHeader, "a,t4,2,0,0,ready", "b,v100,4,0,0,ready"), &s.files.nodes)
	expect(t, "usage.csv of no time", lines(usageHeader, "0,6,0,0,0,0,0,,"), &s.files.usage)
}

// Jobs wait from the round in which an admission lets them pass, whoever stays behind, came before or ended meanwhile.
func TestRecorderOfAdmission(t *testing.T) {
	running, waiting, pending, completed := core.Running, core.Waiting, core.Pending, core.Completed
	s := newStory(t, nil)
	s.round(10, map[core.JobID]core.JobState{0: running, 1: running, 2: running, 3: pending, 4: pending, 5: pending},
		[]core.Event{submitted(0, 0), submitted(1, 0), submitted(2, 0), submitted(3, 0), submitted(4, 0), submitted(5, 0)},
		start(core.Start, 0, seat(0, 1)), start(core.Start, 1, seat(0, 2)), start(core.Start, 2, seat(1, 1)))
	s.round(20, map[core.JobID]core.JobState{0: running, 1: running, 2: running, 3: waiting, 4: pending, 5: pending}, nil)
	s.round(30, map[core.JobID]core.JobState{0: completed, 1: running, 2: running, 3: waiting, 4: waiting, 5: pending}, []core.Event{happened(core.JobFinished, 0, 30)})
	s.round(40, map[core.JobID]core.JobState{1: running, 2: running, 3: waiting, 4: waiting, 5: waiting}, nil)
	s.finish(50)
	expect(t, "usage.csv", lines(usageHeader,
		"0,6,0,0,0,6,21,,", "10,6,3,3,0,3,21,,", "20,6,3,3,1,2,21,,", "30,6,2,2,2,1,20,,", "40,6,2,2,3,0,20,,", "50,6,2,2,3,0,20,,"), &s.files.usage)

	s = newStory(t, nil) // of many that began at once, the one that did not is not forgotten
	began := []core.Event{submitted(0, 0), submitted(1, 0), submitted(2, 0), submitted(3, 0)}
	s.round(0, map[core.JobID]core.JobState{0: running, 1: running, 2: running, 3: pending}, began,
		start(core.Start, 0, seat(0, 1)), start(core.Start, 1, seat(0, 2)), start(core.Start, 2, seat(1, 1)))
	s.round(10, map[core.JobID]core.JobState{0: running, 1: running, 2: running, 3: waiting}, nil)
	s.finish(20)
	expect(t, "usage.csv of many", lines(usageHeader, "0,6,3,3,0,1,10,,", "10,6,3,3,1,0,10,,", "20,6,3,3,1,0,10,,"), &s.files.usage)
}

// Nobody knows a job that was never submitted; one that fails is told to, and one that waits cannot be interrupted.
func TestRecorderOfEnds(t *testing.T) {
	s := newStory(t, nil)
	s.round(0, map[core.JobID]core.JobState{0: core.Running, 1: core.Waiting}, []core.Event{submitted(0, 0), submitted(1, 0), happened(core.JobInterrupted, 2, 0)},
		start(core.Start, 0, seat(0, 1)))
	s.round(10, map[core.JobID]core.JobState{0: core.Failed, 1: core.Waiting}, []core.Event{
		happened(core.JobFailed, 0, 4), happened(core.JobFinished, 2, 5), happened(core.JobInterrupted, 9, 6), happened(core.JobInterrupted, 1, 6),
	})
	s.finish(10)
	expect(t, "timeline.csv", lines(timelineHeader, "0,0,4,t4,1,1,a:1,16,1,failed"), &s.files.timeline)
	expect(t, "usage.csv", lines(usageHeader, "0,6,1,1,1,0,3,,", "4,6,0,0,1,0,2,,", "10,6,0,0,1,0,2,,"), &s.files.usage)
}

// Stays come in order of their ends, then of their jobs, though a round tells some of its own moment and the next one others. A
// job without a batch has none in its row, and names that CSV quotes are read back as they are.
func TestRecorderOrdersStays(t *testing.T) {
	s := newStory(t, nil)
	s.view.Cluster.Nodes[0].Name = `rack 1, "a"+b`
	jobs := map[core.JobID]core.JobState{1: core.Running, 2: core.Running}
	s.round(5, jobs, []core.Event{submitted(1, 0), submitted(2, 0)},
		core.Change{Action: core.Start, Job: 1, Seats: []core.Seat{seat(0, 1), seat(1, 12)}}, start(core.Start, 2, seat(0, 2)))
	s.round(20, map[core.JobID]core.JobState{1: core.Running, 2: core.Waiting}, nil, core.Change{Action: core.Stop, Job: 2})
	s.round(30, map[core.JobID]core.JobState{1: core.Completed, 2: core.Waiting}, []core.Event{happened(core.JobFinished, 1, 20)})
	s.finish(30)
	expect(t, "timeline.csv", lines(timelineHeader,
		`1,5,20,t4+v100,3,2,"rack 1, ""a""+b:1+b:c",,,finished`, `2,5,20,t4,1,1,"rack 1, ""a""+b:2",16,1,preempted`), &s.files.timeline)
	got, err := timeline.ReadTimeline(&s.files.timeline, "timeline.csv")
	if err != nil {
		t.Fatal(err)
	}
	want := timeline.Stay{
		Job: 1, Start: 5, End: 20, Accelerator: "t4+v100", Seats: []timeline.Seat{{Node: `rack 1, "a"+b`, Devices: 1}, {Node: "b", Devices: 12}}, How: timeline.Finished,
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if got, want := got[0].DeviceSeconds(), 45.0; got != want {
		t.Errorf("%v device seconds, want %v", got, want)
	}
}

// Pauses end at their moments, in whatever order they were told and whether or not anything else happens, and one at the end of
// the run has ended.
func TestRecorderOfPauses(t *testing.T) {
	s := newStory(t, trains)
	jobs := map[core.JobID]core.JobState{0: core.Running, 1: core.Running, 2: core.Running, 3: core.Running}
	s.round(0, jobs, []core.Event{submitted(0, 0), submitted(1, 0), submitted(2, 0), submitted(3, 0)},
		start(core.Start, 0, seat(0, 1)), start(core.Start, 1, seat(0, 2)), start(core.Start, 2, seat(1, 1)), start(core.Start, 3, seat(1, 2)))
	s.round(1, jobs, []core.Event{progressed(3, 0, 0, 1, 4), progressed(0, 0, 0, 1, 9), progressed(1, 0, 0, 1, 7), progressed(2, 0, 0, 1, 12)})
	s.round(6, jobs, nil)
	s.round(10, jobs, []core.Event{{Kind: core.NodeChanged, AtSeconds: 8, Node: 0, Health: core.Draining}})
	s.finish(12, &core.Job{JobSpec: spec(0), State: core.Running}, &core.Job{JobSpec: spec(1), State: core.Running},
		&core.Job{JobSpec: spec(2), State: core.Running}, &core.Job{JobSpec: spec(3), State: core.Running})
	expect(t, "usage.csv", lines(usageHeader,
		"0,6,4,4,0,0,10,0.75,0", "4,6,4,4,0,0,10,0.75,8", "7,6,4,4,0,0,10,0.75,16", "8,4,4,4,0,0,10,0.75,16", "9,4,4,4,0,0,10,0.75,24", "12,4,4,4,0,0,10,0.75,32"), &s.files.usage)
	expect(t, "training.csv", lines(trainingHeader,
		"0,32,12,16,0.75,8", "1,32,12,16,0.75,13.333333333333334", "2,32,12,16,0.75,0", "3,32,12,16,0.75,21.333333333333332"), &s.files.training)
	expect(t, "efficiency.csv", lines(efficiencyHeader,
		"0,0,16,0.75,0", "1,0,16,0.75,0", "2,0,16,0.75,0", "3,0,16,0.75,0", "3,4,16,0.75,32", "1,7,16,0.75,32", "0,9,16,0.75,32",
		"0,12,,,", "1,12,,,", "2,12,,,", "3,12,,,"), &s.files.efficiency)
}

// A job that trains pauses again, is tuned, is interrupted and goes on from an earlier point; another one trains after it.
func TestRecorderOfTrainingThatChanges(t *testing.T) {
	s := newStory(t, trains)
	running := map[core.JobID]core.JobState{0: core.Running}
	s.round(0, running, []core.Event{submitted(0, 0)}, start(core.Start, 0, seat(0, 1)))
	s.round(10, running, []core.Event{progressed(0, 0, 0, 10, 0), progressed(0, 4, 40, 10, 6)}) // for two seconds nothing
	s.round(20, running, []core.Event{progressed(0, 14, 120, 10, 14)}, core.Change{Action: core.Tune, Job: 0, Tuning: core.Tuning{BatchPerDevice: 64}})
	s.round(30, map[core.JobID]core.JobState{0: core.Running}, []core.Event{
		{Kind: core.JobInterrupted, Job: 0, AtSeconds: 22, Progress: 50},
	}, start(core.Start, 0, seat(0, 1)))
	s.round(40, map[core.JobID]core.JobState{0: core.Completed, 1: core.Running}, []core.Event{happened(core.JobFinished, 0, 34), submitted(1, 36)},
		start(core.Start, 1, seat(1, 1)))
	s.finish(50, &core.Job{JobSpec: spec(1), State: core.Running})
	expect(t, "usage.csv", lines(usageHeader,
		"0,6,1,1,0,0,1,0.75,320", "4,6,1,1,0,0,1,0.75,0", "6,6,1,1,0,0,1,0.75,320", "14,6,1,1,0,0,1,0.5,320", "20,6,1,1,0,0,1,0.5,0",
		"22,6,0,0,1,0,1,,", "30,6,1,1,0,0,1,0.75,0", "34,6,0,0,0,0,0,,", "36,6,0,0,0,1,2,,", "40,6,1,1,0,0,2,0.75,0", "50,6,1,1,0,0,2,0.75,0"), &s.files.usage)
	expect(t, "efficiency.csv", lines(efficiencyHeader,
		"0,0,16,0.75,320", "0,4,16,0.75,0", "0,6,16,0.75,320", "0,14,16,0.5,320", "0,20,64,0.5,0", "0,22,,,", "0,30,16,0.75,0", "0,34,,,",
		"1,40,16,0.75,0", "1,50,,,"), &s.files.efficiency)
}

// A job that loses devices and goes on with those that are left trains at another rate from then on.
func TestRecorderOfAJobThatShrinks(t *testing.T) {
	s := newStory(t, trains)
	running := map[core.JobID]core.JobState{0: core.Running}
	s.round(0, running, []core.Event{submitted(0, 0)}, start(core.Start, 0, seat(0, 1), seat(1, 1)))
	s.round(10, running, []core.Event{
		progressed(0, 0, 0, 10, 0),
		{Kind: core.JobShrunk, Job: 0, AtSeconds: 8, Progress: 80, Rate: 5, FromSeconds: 9, Seats: []core.Seat{seat(0, 1)}},
	})
	s.finish(20, &core.Job{JobSpec: spec(0), State: core.Running})
	expect(t, "timeline.csv", lines(timelineHeader, "0,0,8,t4+v100,2,2,a:1+b:1,16,1,resized", "0,8,20,t4,1,1,a:1,16,1,unfinished"), &s.files.timeline)
	expect(t, "efficiency.csv", lines(efficiencyHeader, "0,0,32,0.75,320", "0,8,16,0.75,0", "0,9,16,0.75,160", "0,20,,,"), &s.files.efficiency)
}

// A row is written when something in it changed, whether or not other files are asked for: not when a job that pauses is moved.
func TestRecorderOfEfficiencyAlone(t *testing.T) {
	s := newStory(t, trains)
	s.Recorder = timeline.NewRecorder(s.view.Cluster, timeline.Outputs{Efficiency: &s.files.efficiency, Truth: trains})
	jobs := map[core.JobID]core.JobState{0: core.Running, 2: core.Running}
	s.round(0, jobs, []core.Event{submitted(0, 0), submitted(2, 0)}, start(core.Start, 0, seat(0, 1)), start(core.Start, 2, seat(1, 1)))
	s.round(10, jobs, nil, start(core.Move, 0, seat(0, 2)))
	s.round(20, jobs, []core.Event{progressed(2, 15, 0, 1, 15)}, start(core.Move, 0, seat(1, 2)))
	s.finish(30, &core.Job{JobSpec: spec(0), State: core.Running}, &core.Job{JobSpec: spec(2), State: core.Running})
	expect(t, "efficiency.csv", lines(efficiencyHeader, "0,0,16,0.75,0", "2,0,16,0.75,0", "2,15,16,0.75,32", "0,30,,,", "2,30,,,"), &s.files.efficiency)
}
