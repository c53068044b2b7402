package metrics

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/quartet-sched/quartet/core"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var testComponents = Components{
	Workload: "workload/csv", Admission: []string{"admission/quota", "admission/load_threshold"},
	Allocation: "allocation/las", Placement: "placement/first_fit", Elasticity: "elasticity/fixed",
	Scaler: "scaler/none", Backend: "backend/simulator",
}

// play reports a run on two nodes of two devices, worked out by hand, and returns the jobs left at 160 s:
//
//	  0 s  a (2 devices, 100 s) is submitted and starts
//	 10 s  b (4 devices, 50 s) is submitted and waits; c (8 devices) is submitted and rejected
//	 40 s  a is stopped for b, which runs its 50 s
//	 90 s  b finishes, a starts again for its last 60 s
//	120 s  d (1 device) is submitted and starts
//	150 s  a finishes, which is told twice, and node t4-0 goes down; d stays
func play(t *testing.T, c *Collector) []*core.Job {
	t.Helper()
	cluster := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{
		{ID: 0, Name: "t4-0", Devices: 2}, {ID: 1, Name: "t4-1", Devices: 2},
	}}
	spec := func(id core.JobID, name, application string, submit float64, replicas int, work float64) *core.JobSpec {
		return &core.JobSpec{ID: id, Name: name, Application: application, SubmitSeconds: submit, Requested: replicas, TotalWork: work}
	}
	a := core.NewJob(spec(0, "a", `say "hi", all`, 0, 2, 100))
	b := core.NewJob(spec(1, "b", "", 10, 4, 50))
	x := core.NewJob(spec(2, "c\n", "", 10, 8, 5))
	d := core.NewJob(spec(3, "d", "bert", 120, 1, 0))
	onFirst := []core.Seat{{Node: 0, Devices: 0b11}}
	onBoth := []core.Seat{{Node: 0, Devices: 0b11}, {Node: 1, Devices: 0b11}}
	submitted := func(j *core.Job) core.Event {
		return core.Event{Kind: core.JobSubmitted, AtSeconds: j.SubmitSeconds, Job: j.ID, Spec: j.JobSpec}
	}
	gaps := [...]float64{math.NaN(), 0, 0.0125, 0.25, math.NaN(), math.NaN()}
	round := 0
	observe := func(now float64, active []core.JobID, waiting, used, usable int, r core.Report) {
		t.Helper()
		round++
		r.View = &core.View{NowSeconds: now, Round: round, Cluster: cluster, Devices: usable, Active: active, Waiting: waiting}
		r.DevicesUsed, r.GapRatio = used, gaps[round-1]
		r.StageTime = [len(core.StageNames)]time.Duration{1000, 2000, 3000, 4000, time.Duration(round) * 1000}
		if err := c.ObserveRound(&r); err != nil {
			t.Fatal(err)
		}
	}

	observe(0, []core.JobID{0}, 0, 2, 4, core.Report{
		Events:  []core.Event{submitted(a)},
		Changes: []core.Change{{Action: core.Start, Job: 0, Seats: onFirst, By: "placement/first_fit", Tuning: core.Tuning{BatchPerDevice: 32, AccumulationSteps: 1, LearningRateFactor: 1.5}}},
	})
	x.State = core.Rejected
	observe(10, []core.JobID{0, 1}, 1, 2, 4, core.Report{
		Events:  []core.Event{submitted(b), submitted(x)},
		Ended:   []*core.Job{x},
		Changes: []core.Change{{Action: core.Discard, Job: 2, By: "pipeline"}},
		Verdicts: []core.Verdict{
			{Job: 2, Code: core.Reject, Reason: core.ExceedsCluster, Wanted: 8, Available: 4, Unit: "devices", By: "pipeline"},
			{Job: 1, Code: core.Defer, Reason: core.PolicyDecision, Message: "not yet \u263a", By: "allocation/las"},
		},
	})
	observe(40, []core.JobID{0, 1}, 1, 4, 4, core.Report{Changes: []core.Change{
		{Action: core.Stop, Job: 0, Reason: core.PreemptedByPriority, By: "allocation/las"},
		{Action: core.Start, Job: 1, Seats: onBoth, By: "placement/first_fit"},
	}})
	b.State, b.FirstStart, b.FinishSeconds, b.Executed, b.Attained = core.Completed, 40, 90, 50, 200
	observe(90, []core.JobID{0}, 0, 2, 4, core.Report{
		Events:  []core.Event{{Kind: core.JobFinished, AtSeconds: 90, Job: 1}},
		Ended:   []*core.Job{b},
		Changes: []core.Change{{Action: core.Start, Job: 0, Seats: onFirst, By: "placement/first_fit"}},
	})
	observe(120, []core.JobID{0, 3}, 0, 3, 4, core.Report{
		Events:  []core.Event{submitted(d)},
		Changes: []core.Change{{Action: core.Start, Job: 3, Seats: []core.Seat{{Node: 1, Devices: 0b10}}, By: "placement/first_fit"}},
	})
	a.State, a.FirstStart, a.FinishSeconds, a.Executed, a.Attained = core.Completed, 0, 150, 100, 200
	a.Restarts, a.Preemptions = 1, 1
	finished := core.Event{Kind: core.JobFinished, AtSeconds: 150, Job: 0}
	down := core.Event{Kind: core.NodeChanged, AtSeconds: 150, Node: 0, Health: core.Down}
	observe(150, []core.JobID{3}, 0, 1, 2, core.Report{Events: []core.Event{finished, finished, down}, Ended: []*core.Job{a}})
	d.State, d.FirstStart, d.Held, d.AsOfSeconds = core.Running, 120, 1, 120
	return []*core.Job{d}
}

func TestCollectorTellsTheStory(t *testing.T) {
	var jobs, rounds, decisions bytes.Buffer
	c := NewCollector(testComponents, Outputs{Jobs: &jobs, Rounds: &rounds, Decisions: &decisions})
	left := play(t, c)
	summary, err := c.Finish(left, 160)
	if err != nil {
		t.Fatal(err)
	}

	checkGolden(t, "jobs.csv", jobs.Bytes())
	checkGolden(t, "rounds.csv", rounds.Bytes())
	checkGolden(t, "decisions.jsonl", decisions.Bytes())
	summary.Name, summary.Seed, summary.WallSeconds = "story", 7, 0.25
	text, err := json.MarshalIndent(summary, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "summary.json", append(text, '\n'))

	// JCT: a 150, b 80. Queueing: a 0, b 30, d 0. Held: a 200, b 200, d 40 of 4 devices × 160 s.
	if got, want := summary.JCTSeconds.Mean, Number(115); got != want {
		t.Errorf("mean JCT = %v, want %v", got, want)
	}
	if got, want := summary.QueueingSeconds.Mean, Number(10); got != want {
		t.Errorf("mean queueing = %v, want %v", got, want)
	}
	if got, want := summary.UtilizationRatio, Number(440.0/640); got != want {
		t.Errorf("utilisation = %v, want %v", got, want)
	}
	// Demand over a's life: 2 devices for 0-10, 6 for 10-90 (c leaves at once), 2 for 90-120, 3 for 120-150: 650
	// device-seconds, 650/150/4 = 1.083. Over b's life: 6/4 = 1.5.
	rhoA, rhoB := 150/(100*(650.0/150/4)), 80/(50*1.5)
	if got, want := float64(summary.Fairness.RhoMean), (rhoA+rhoB)/2; math.Abs(got-want) > 1e-12 {
		t.Errorf("mean rho = %v, want %v", got, want)
	}
	if got, want := float64(summary.Fairness.RhoMax), rhoA; math.Abs(got-want) > 1e-12 {
		t.Errorf("largest rho = %v, want %v", got, want)
	}
}

func TestEveryDecisionLineIsJSON(t *testing.T) {
	var decisions bytes.Buffer
	c := NewCollector(testComponents, Outputs{Decisions: &decisions})
	if _, err := c.Finish(play(t, c), 160); err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(decisions.Bytes()), []byte("\n"))
	if len(lines) != 11 {
		t.Errorf("%d lines, want 11", len(lines))
	}
	for _, line := range lines {
		var object map[string]any
		if err := json.Unmarshal(line, &object); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestFinishWithoutRounds(t *testing.T) {
	var jobs bytes.Buffer
	c := NewCollector(testComponents, Outputs{Jobs: &jobs})
	summary, err := c.Finish(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(jobsHeader, jobs.String()); diff != "" {
		t.Errorf("jobs.csv (-want,+got):\n%s", diff)
	}
	if summary.MakespanSeconds.Known() || summary.UtilizationRatio.Known() || summary.JCTSeconds.Mean.Known() {
		t.Errorf("a run without jobs has no makespan, utilisation or JCT: %+v", summary)
	}
	if _, err := json.Marshal(summary); err != nil {
		t.Error(err)
	}
}

// A round that breaks off after a submission is never reported, and yet the job is among the unfinished.
// A run that rejected all it was given ran nothing: what it used of the cluster is not known, and no zero of any sign.
func TestFinishWhenNothingRan(t *testing.T) {
	c := NewCollector(testComponents, Outputs{})
	j := core.NewJob(&core.JobSpec{Name: "a", SubmitSeconds: 5, Requested: 9, TotalWork: 1})
	j.State = core.Rejected
	err := c.ObserveRound(&core.Report{
		View:   &core.View{NowSeconds: 10, Round: 1, Cluster: &core.Cluster{Nodes: []core.Node{{Devices: 2}}}},
		Events: []core.Event{{Kind: core.JobSubmitted, AtSeconds: 5, Spec: j.JobSpec}}, Ended: []*core.Job{j},
	})
	if err != nil {
		t.Fatal(err)
	}
	summary, err := c.Finish(nil, 10)
	if err != nil {
		t.Fatal(err)
	}
	if summary.MakespanSeconds.Known() || summary.UtilizationRatio.Known() || summary.Jobs.Rejected != 1 {
		t.Errorf("makespan %v, utilisation %v, jobs %+v; want both unknown and one rejected",
			summary.MakespanSeconds, summary.UtilizationRatio, summary.Jobs)
	}
}

func TestFinishTakesJobsOfABrokenRound(t *testing.T) {
	var jobs bytes.Buffer
	c := NewCollector(testComponents, Outputs{Jobs: &jobs})
	j := core.NewJob(&core.JobSpec{ID: 1, Name: "late", SubmitSeconds: 5, Requested: 1})
	summary, err := c.Finish([]*core.Job{j}, 5)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(JobCounts{Submitted: 1, Unfinished: 1}, summary.Jobs); diff != "" {
		t.Errorf("counts (-want,+got):\n%s", diff)
	}
	if want := jobsHeader + "1,late,,5,,,,,,0,0,unfinished\n"; jobs.String() != want {
		t.Errorf("jobs.csv = %q, want %q", jobs.String(), want)
	}
}

type fullDisk struct{}

var errFullDisk = errors.New("no space left")

func (fullDisk) Write([]byte) (int, error) { return 0, errFullDisk }

func TestFinishTellsOfWriteErrors(t *testing.T) {
	for name, o := range map[string]Outputs{
		"jobs": {Jobs: fullDisk{}}, "rounds": {Rounds: fullDisk{}}, "decisions": {Decisions: fullDisk{}},
		"accelerators": {Accelerators: fullDisk{}}, "fairness": {Fairness: fullDisk{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewCollector(testComponents, o)
			if _, err := c.Finish(play(t, c), 160); !errors.Is(err, errFullDisk) {
				t.Errorf("error = %v, want %v", err, errFullDisk)
			}
		})
	}
}

func TestQuietRoundAllocatesNothing(t *testing.T) {
	c := NewCollector(testComponents, Outputs{Rounds: &discard{}, Decisions: &discard{}})
	r := &core.Report{View: &core.View{Cluster: &core.Cluster{}}}
	allocations := testing.AllocsPerRun(5000, func() {
		r.View.Round++
		r.View.NowSeconds += 60.5
		if err := c.ObserveRound(r); err != nil {
			t.Fatal(err)
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations a round, want 0", allocations)
	}
}

type discard struct{ n int }

func (d *discard) Write(b []byte) (int, error) { d.n += len(b); return len(b), nil }

func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want,+got):\n%s", name, diff)
	}
}

// BenchmarkLargeTrace follows a trace the size of Philly's through its whole life, on devices of one type and of two.
func BenchmarkLargeTrace(b *testing.B) {
	const count = 82247
	for types, name := range []string{"one type", "two types"} {
		b.Run(name, func(b *testing.B) {
			cluster := &core.Cluster{Accelerators: []string{"t4", "a100"}, Nodes: []core.Node{
				{Name: "t4-0", Devices: 8}, {Name: "a100-0", Devices: 8, Accelerator: core.AcceleratorID(types)},
			}}
			benchmarkTrace(b, cluster, count)
		})
	}
}

func benchmarkTrace(b *testing.B, cluster *core.Cluster, count int) {
	jobs := make([]*core.Job, count)
	for i := range jobs {
		jobs[i] = core.NewJob(&core.JobSpec{ID: core.JobID(i), Name: "philly-000000", SubmitSeconds: float64(i), Requested: 1, TotalWork: 100})
	}
	b.ReportAllocs()
	for b.Loop() {
		c := NewCollector(testComponents, Outputs{Jobs: &discard{}, Rounds: &discard{}, Decisions: &discard{}})
		view := core.View{Cluster: cluster, Devices: 8}
		for i, j := range jobs {
			view.Round, view.NowSeconds = i+1, float64(i)
			j.State, j.FirstStart, j.FinishSeconds, j.Executed, j.Attained = core.Completed, float64(i), float64(i)+123.25, 123.25, 123.25
			r := core.Report{
				View: &view,
				Events: []core.Event{
					{Kind: core.JobSubmitted, AtSeconds: float64(i), Job: j.ID, Spec: j.JobSpec},
					{Kind: core.JobFinished, AtSeconds: float64(i) + 0.5, Job: j.ID},
				},
				Ended:   jobs[i : i+1],
				Changes: []core.Change{{Action: core.Start, Job: j.ID, Seats: []core.Seat{{Node: core.NodeID(i % 2), Devices: 1}}, By: "placement/first_fit"}},
			}
			if err := c.ObserveRound(&r); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := c.Finish(nil, float64(count)); err != nil {
			b.Fatal(err)
		}
	}
}
