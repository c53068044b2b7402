package metrics

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// Node d of 2 a100 joins at 100 s, node b of 4 t4 leaves at 50 s, and is told of it twice; a job runs from 0 to 200 s.
func TestDevicesCountForAsLongAsTheyAreThere(t *testing.T) {
	var decisions, fairness bytes.Buffer
	s := newStory(t, Outputs{Decisions: &decisions, Fairness: &fairness})
	j := core.NewJob(&core.JobSpec{Name: "j", Requested: 9, TotalWork: 100})
	s.report(0, core.Report{Events: []core.Event{submission(j)}, Changes: []core.Change{{Job: 0, Seats: []core.Seat{{Node: 0, Devices: 3}}}}})
	s.cluster.Nodes[1].Health = core.Gone
	gone := core.Event{Kind: core.NodeRemoved, AtSeconds: 50, Node: 1}
	s.report(60, core.Report{Events: []core.Event{gone, gone}})
	s.cluster.Nodes = append(s.cluster.Nodes, core.Node{ID: 3, Name: "d", Devices: 2, Health: core.Provisioning})
	added := &core.AddedNode{Name: "d", Accelerator: "a100", Devices: 2, Health: core.Provisioning, Unusable: 0b110}
	s.report(100, core.Report{Events: []core.Event{{Kind: core.NodeAdded, AtSeconds: 100, Node: 3, Added: added}}})
	j.State, j.FirstStart, j.FinishSeconds, j.Executed, j.Attained = core.Completed, 0, 200, 200, 400
	s.report(200, core.Report{Events: []core.Event{{Kind: core.JobFinished, AtSeconds: 200}}, Ended: []*core.Job{j}})
	summary, err := s.c.Finish(nil, 200)
	if err != nil {
		t.Fatal(err)
	}
	const a100, t4 = 2*200 + 2*100.0, 2*200 + 4*50.0
	if got, want := float64(summary.UtilizationRatio), 400/(a100+t4); math.Abs(got-want) > 1e-15 {
		t.Errorf("utilisation %v, want %v", got, want)
	}
	for i, want := range []AcceleratorUse{
		{Accelerator: "a100", Devices: 4, UtilizationRatio: 400 / a100}, {Accelerator: "t4", Devices: 6, UtilizationRatio: 0},
	} {
		u := summary.Accelerators[i]
		if got := (AcceleratorUse{Accelerator: u.Accelerator, Devices: u.Devices, UtilizationRatio: u.UtilizationRatio}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	// Its 9 replicas are shared by 6 devices on average.
	if want := fairnessHeader + "0,1,100,,1.3333333333333333,2,\n"; fairness.String() != want {
		t.Errorf("fairness.csv is %q, want %q", fairness.String(), want)
	}
	want := []string{
		`{"round":2,"t_s":50,"node":"b","event":"node_removed"}`,
		`{"round":2,"t_s":50,"node":"b","event":"node_removed"}`,
		`{"round":3,"t_s":100,"node":"d","event":"node_added","accelerator":"a100","devices":2,"health":"provisioning","unusable":"1"}`,
	}
	if diff := cmp.Diff(want, strings.Split(decisions.String(), "\n")[1:4]); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}

// A job that runs already on both types shrinks, is edited, and goes on.
func TestBooksOfAJobThatRunsAlready(t *testing.T) {
	var decisions, accelerators bytes.Buffer
	s := newStory(t, Outputs{Decisions: &decisions, Accelerators: &accelerators})
	j := core.NewJob(&core.JobSpec{Name: "j", Requested: 4})
	e := submission(j)
	e.AtSeconds = 10
	e.Held = &core.Held{Seats: []core.Seat{{Node: 0, Devices: 1}, {Node: 1, Devices: 7}}, Executed: 5, Attained: 20}
	edited := *j.JobSpec
	edited.MinReplicas, edited.MaxReplicas, edited.Weight, edited.Requested = 2, 8, 3, 6
	s.report(20, core.Report{Events: []core.Event{
		e,
		{Kind: core.JobStarting, AtSeconds: 10, Message: "a pod waits"},
		{Kind: core.JobStarted, AtSeconds: 12},
		{Kind: core.JobShrunk, AtSeconds: 14, Seats: []core.Seat{{Node: 1, Devices: 3}}, Cause: core.CauseDeviceLost},
		{Kind: core.DevicesReleased, AtSeconds: 15, Seats: []core.Seat{{Node: 0, Devices: 1}}},
		{Kind: core.JobChanged, AtSeconds: 16, Spec: &edited},
	}})
	j.State, j.FirstStart, j.Held, j.Executed, j.Attained, j.AsOfSeconds = core.Running, 5, 2, 15, 48, 20
	summary, err := s.c.Finish([]*core.Job{j}, 20)
	if err != nil {
		t.Fatal(err)
	}
	// The devices were there for 20 s, and it had 28 device-seconds since it was submitted: the 20 before, others saw.
	if got := float64(summary.UtilizationRatio); got != 28.0/(8*20) || summary.GPUHours != 28.0/3600 {
		t.Errorf("utilisation %v in %v hours, want that of what was seen", got, summary.GPUHours)
	}
	if a100, t4 := summary.Accelerators[0].DeviceSeconds, summary.Accelerators[1].DeviceSeconds; a100 != 4 || t4 != 24 {
		t.Errorf("%v and %v device-seconds, want 4 and 24", a100, t4)
	}
	// 5 of the 20 device-seconds before were on a100, as is one device of four; then 1 for 4 s, and 3 for 4 s and 2 for 6 s.
	if want := acceleratorsHeader + "0,a100,9,9,1\n0,t4,39,15,1\n"; accelerators.String() != want {
		t.Errorf("accelerators.csv is %q, want %q", accelerators.String(), want)
	}
	want := `{"round":1,"t_s":10,"job":"j","event":"job_submitted","replicas":4,"seats":[["a","0"],["b","0,1,2"]]}
{"round":1,"t_s":10,"job":"j","event":"job_starting","message":"a pod waits"}
{"round":1,"t_s":12,"job":"j","event":"job_started"}
{"round":1,"t_s":14,"job":"j","event":"job_shrunk","cause":"device_lost","replicas":2,"seats":[["b","0,1"]]}
{"round":1,"t_s":15,"job":"j","event":"devices_released","replicas":1,"seats":[["a","0"]]}
{"round":1,"t_s":16,"job":"j","event":"job_changed","min_replicas":2,"max_replicas":8,"weight":3}
`
	if diff := cmp.Diff(want, decisions.String()); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
	if s.c.demand.parts != 6*core.FinestPart {
		t.Errorf("%d devices are asked for, want the 6 that the owner asks for since", s.c.demand.parts/core.FinestPart)
	}
}
