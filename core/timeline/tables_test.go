package timeline_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/timeline"
)

// Names of nodes may hold the signs that join them, and a mask any device.
func TestReadSeats(t *testing.T) {
	const refused = "want NODE:MASK joined by plus signs, the mask hexadecimal and not 0, no node twice"
	for name, tc := range map[string]struct {
		cells string // replicas, nodes, seats
		want  []timeline.Seat
		err   string
	}{
		"a long mask":             {"5,1,a:1f", []timeline.Seat{{"a", 0x1f}}, ""},
		"a digit and a plus sign": {"2,1,1+a:3", []timeline.Seat{{"1+a", 3}}, ""},
		"no mask before a plus":   {"2,1,x:y+u:3", []timeline.Seat{{"x:y+u", 3}}, ""},
		"a node twice":            {"2,2,a:1+a:2", nil, refused},
		"no name":                 {"2,1,:3", nil, refused},
		"no name before another":  {"3,2,:3+a:1", nil, refused},
		"no device":               {"0,1,a:0", nil, refused},
		"something after it":      {"1,1,a:1+b", nil, refused},
		"nothing":                 {"1,1,", nil, refused},
		"other replicas":          {"2,1,a:1", nil, "column replicas is \"2\", want as many as there are devices in seats"},
		"other nodes":             {"2,1,a:1+b:1", nil, "column nodes is \"1\", want as many as there are nodes in seats"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := timeline.ReadTimeline(strings.NewReader(timelineHeader+"\n0,0,1,t4,"+tc.cells+",,,finished\n"), "timeline.csv")
			if tc.err != "" {
				if err == nil || !strings.HasSuffix(err.Error(), tc.err) {
					t.Errorf("error %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got[0].Seats); diff != "" || got[0].How != timeline.Finished {
				t.Errorf("%v, seats -want +got:\n%s", got[0].How, diff)
			}
		})
	}
}

func read[T any](t *testing.T, reader func(text string) ([]T, error), header, row string, want T) {
	t.Helper()
	got, err := reader(header + "\n" + row + "\n")
	if err != nil {
		t.Error(err)
	}
	unknown := cmp.Comparer(func(a, b metrics.Number) bool { return a == b || !a.Known() && !b.Known() })
	if diff := cmp.Diff([]T{want}, got, unknown); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func nodesOf(text string) ([]timeline.NodeHealth, error) {
	return timeline.ReadNodes(strings.NewReader(text), "nodes.csv")
}

func usageOf(text string) ([]timeline.Usage, error) {
	return timeline.ReadUsage(strings.NewReader(text), "usage.csv")
}

func jobsOf(text string) ([]metrics.Job, error) {
	return timeline.ReadJobs(strings.NewReader(text), "jobs.csv")
}

const jobsHeader = "job,name,application,submit_s,first_start_s,finish_s,jct_s,queueing_s,replicas_mean,restarts,gpu_seconds,outcome"

func TestReadTheOtherFiles(t *testing.T) {
	unknown := metrics.Number(math.NaN())
	read(t, nodesOf, nodesHeader, "a,t4,64,1.5,2,draining", timeline.NodeHealth{
		Node: "a", Accelerator: "t4", Devices: core.MaxDevicesPerNode, Start: 1.5, End: 2, Health: core.Draining,
	})
	read(t, usageOf, usageHeader, "1,2,3,4,5,6,7,,9", timeline.Usage{
		At: 1, DevicesReady: 2, DevicesUsed: 3, Running: 4, Waiting: 5, Pending: 6, Demand: 7, Efficiency: unknown, Goodput: 9,
	})
	trained := func(text string) ([]timeline.JobTraining, error) {
		return timeline.ReadTraining(strings.NewReader(text), "training.csv")
	}
	read(t, trained, trainingHeader, "1,2,3,4.5,0.5,6", timeline.JobTraining{Job: 1, InitialBatch: 2, Seconds: 3, BatchMean: 4.5, EfficiencyMean: 0.5, GoodputMean: 6})
	paces := func(text string) ([]timeline.Pace, error) {
		return timeline.ReadEfficiency(strings.NewReader(text), "efficiency.csv")
	}
	read(t, paces, efficiencyHeader, "1,2.5,3,0.5,6", timeline.Pace{Job: 1, At: 2.5, Batch: 3, Efficiency: 0.5, Goodput: 6})
	read(t, paces, efficiencyHeader, "0,4,,,", timeline.Pace{At: 4, Efficiency: unknown, Goodput: unknown})
	read(t, jobsOf, jobsHeader, "1,a,b,2,3,4,5,6,7,8,9,completed", metrics.Job{
		ID: 1, Name: "a", Application: "b", SubmitSeconds: 2, FirstStartSeconds: 3, FinishSeconds: 4, JCTSeconds: 5, QueueingSeconds: 6,
		ReplicasMean: 7, Restarts: 8, GPUSeconds: 9, Outcome: "completed",
	})
	read(t, jobsOf, jobsHeader, "0,a,b,2,,,,,,0,0,unfinished", metrics.Job{
		Name: "a", Application: "b", SubmitSeconds: 2, FirstStartSeconds: unknown, FinishSeconds: unknown, JCTSeconds: unknown, QueueingSeconds: unknown,
		ReplicasMean: unknown, Outcome: "unfinished",
	})
}

// Every wrong cell is told with its place.
func TestReadWrongCells(t *testing.T) {
	nodes := func(text string) error { _, err := nodesOf(text); return err }
	usage := func(text string) error { _, err := usageOf(text); return err }
	for name, tc := range map[string]struct {
		read func(text string) error
		text string
		want string
	}{
		"no device":      {nodes, nodesHeader + "\na,t4,0,0,1,ready", `nodes.csv:2:6: column devices is "0", want a whole number of at least 1`},
		"too many":       {nodes, nodesHeader + "\na,t4,65,0,1,ready", `nodes.csv:2:6: column devices is "65", want a whole number of at least 1`},
		"another health": {nodes, nodesHeader + "\na,t4,1,0,1,well", `nodes.csv:2:12: column health is "well", want one of ready, draining, down, provisioning`},
		"twice at once":  {usage, usageHeader + "\n3,1,0,0,0,0,0,,\n3,1,0,0,0,0,0,,", `usage.csv:3:1: column at_s is "3", want a moment after that of the row before`},
		"back in time":   {usage, usageHeader + "\n3,1,0,0,0,0,0,,\n4,1,0,0,0,0,0,,\n3.5,1,0,0,0,0,0,,", `usage.csv:4:1: column at_s is "3.5", want a moment after that of the row before`},
		"two cells": {usage, usageHeader + "\n3,1,0,0,0,-1,0,x,", `usage.csv:2:11: column pending is "-1", want a whole number of at least 0
usage.csv:2:16: column efficiency is "x", want a number`},
		"nothing at all":  {nodes, "", "nodes.csv: is empty; want the columns " + nodesHeader},
		"no header":       {nodes, "a\"b\n", `nodes.csv:1: bare " in non-quoted-field`},
		"a broken row":    {nodes, nodesHeader + "\na,\"t4\n", `nodes.csv:2: extraneous or missing " in quoted-field`},
		"a column is off": {nodes, "node,accelerator,devices,start_s,health\na,t4,1,0,ready\n", `nodes.csv:1: lacks the column "end_s"`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.read(tc.text); err == nil || err.Error() != tc.want {
				t.Errorf("error is\n%v, want\n%s", err, tc.want)
			}
		})
	}
}

// Of a file that is wrong in each row, a hundred problems are told.
func TestProblemsOfAFileAreBounded(t *testing.T) {
	text := timelineHeader + strings.Repeat("\n0,2,1,t4,1,1,a:1,,,moved", 150)
	_, err := timeline.ReadTimeline(strings.NewReader(text), "timeline.csv")
	problems := core.Diagnostics(nil)
	if !errors.As(err, &problems) || len(problems) != 100 {
		t.Errorf("%d problems, want 100", len(problems))
	}
}
