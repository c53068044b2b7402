package timeline_test

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// Node c joins, is provisioned, loses a device and leaves; one job runs already, shrinks and is held back by its owner.
func TestRecorderOfAClusterThatChanges(t *testing.T) {
	s := newStory(t, nil)
	held := submitted(0, 2)
	held.Held = &core.Held{Seats: []core.Seat{seat(1, 3)}}
	s.view.Cluster.Nodes = append(s.view.Cluster.Nodes, core.Node{ID: 2, Name: "c", Devices: 4, Health: core.Provisioning})
	running := map[core.JobID]core.JobState{0: core.Running}
	s.round(10, running, []core.Event{held, {
		Kind: core.NodeAdded, AtSeconds: 5, Node: 2, Added: &core.AddedNode{Name: "c", Accelerator: "t4", Devices: 4, Health: core.Provisioning},
	}})
	s.round(30, running, []core.Event{
		{Kind: core.NodeChanged, AtSeconds: 15, Node: 2, Health: core.Ready},
		{Kind: core.JobStarting, AtSeconds: 16},
		{Kind: core.JobStarted, AtSeconds: 17},
		{Kind: core.DevicesReleased, AtSeconds: 17},
		{Kind: core.NodeChanged, AtSeconds: 20, Node: 2, Health: core.Ready, Unusable: 0b11},
		{Kind: core.JobShrunk, AtSeconds: 25, Seats: []core.Seat{seat(1, 1)}},
	})
	suspended := *spec(0)
	suspended.Suspended, suspended.Requested = true, 5
	s.round(40, map[core.JobID]core.JobState{0: core.Pending}, []core.Event{
		{Kind: core.NodeRemoved, AtSeconds: 35, Node: 2},
		{Kind: core.NodeChanged, AtSeconds: 36, Node: 2, Health: core.Ready},
		{Kind: core.JobChanged, AtSeconds: 38, Spec: &suspended},
	}, core.Change{Action: core.Stop, Job: 0, Reason: core.Suspended})
	s.finish(50, &core.Job{JobSpec: &suspended, State: core.Pending})
	expect(t, "timeline.csv", lines(timelineHeader, "0,2,25,v100,2,1,b:3,,,resized", "0,25,40,v100,1,1,b:1,,,preempted"), &s.files.timeline)
	expect(t, "nodes.csv", lines(nodesHeader,
		"a,t4,2,0,50,ready", "b,v100,4,0,50,ready", "c,t4,4,5,15,provisioning", "c,t4,4,15,35,ready",
	), &s.files.nodes)
	expect(t, "usage.csv", lines(usageHeader,
		"0,6,0,0,0,0,0,,",
		"2,6,2,1,0,0,1,,",
		"15,10,2,1,0,0,1,,",
		"20,8,2,1,0,0,1,,",
		"25,8,1,1,0,0,1,,",
		"35,6,1,1,0,0,1,,",
		"38,6,1,1,0,0,5,,",
		"40,6,0,0,0,1,5,,",
		"50,6,0,0,0,1,5,,",
	), &s.files.usage)
}
