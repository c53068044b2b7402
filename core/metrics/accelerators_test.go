package metrics

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// story is a collector and the rounds it is told, on a cluster of two types: nodes a (2 a100), b (4 t4) and c (2 t4).
type story struct {
	t       testing.TB
	c       *Collector
	cluster *core.Cluster
	round   int
}

func newStory(t testing.TB, o Outputs) *story {
	return &story{t: t, c: NewCollector(testComponents, o), cluster: &core.Cluster{
		Accelerators: []string{"a100", "t4"},
		Nodes: []core.Node{
			{ID: 0, Name: "a", Accelerator: 0, Devices: 2},
			{ID: 1, Name: "b", Accelerator: 1, Devices: 4},
			{ID: 2, Name: "c", Accelerator: 1, Devices: 2},
		},
	}}
}

func (s *story) report(now float64, r core.Report) {
	s.t.Helper()
	s.round++
	r.View = &core.View{NowSeconds: now, Round: s.round, Cluster: s.cluster, Devices: 8}
	if err := s.c.ObserveRound(&r); err != nil {
		s.t.Fatal(err)
	}
}

func submission(j *core.Job) core.Event {
	return core.Event{Kind: core.JobSubmitted, AtSeconds: j.SubmitSeconds, Job: j.ID, Spec: j.JobSpec}
}

// playStory is the run that TestBooksByType works out:
//
//	  0 s  m, which mixes types, starts on both a100; y, bound to a100, waits; so do z, bound to t4, and v, which is
//	       rejected
//	100 s  m moves to four t4 of b, y starts on one a100
//	150 s  b fails and m with it, told at 160 s, where m starts again on one a100 and both t4 of c
//	160 s  y is stopped
//	200 s  m finishes, told twice at 220 s
//	260 s  the run is cut short: y runs again since 240 s, z waits
func playStory(t testing.TB, s *story) []*core.Job {
	t.Helper()
	spec := func(id core.JobID, name string, submit float64, types ...string) *core.Job {
		return core.NewJob(&core.JobSpec{ID: id, Name: name, SubmitSeconds: submit, Requested: 2, TotalWork: 100, Accelerators: types})
	}
	m, y, z, v := spec(0, "m", 0), spec(1, "y", 10, "a100"), spec(2, "z", 20, "t4", "k80"), spec(3, "v", 20, "t4")
	start := func(j *core.Job, seats ...core.Seat) core.Change {
		return core.Change{Action: core.Start, Job: j.ID, Seats: seats}
	}
	s.report(0, core.Report{Events: []core.Event{submission(m)}, Changes: []core.Change{start(m, core.Seat{Node: 0, Devices: 0b11})}})
	v.State = core.Rejected
	s.report(20, core.Report{
		Events: []core.Event{submission(y), submission(z), submission(v)}, Ended: []*core.Job{v},
		Changes: []core.Change{{Action: core.Discard, Job: v.ID}},
	})
	s.report(100, core.Report{Changes: []core.Change{
		{Action: core.Move, Job: m.ID, Seats: []core.Seat{{Node: 1, Devices: 0b1111}}},
		start(y, core.Seat{Node: 0, Devices: 0b1}),
	}})
	s.report(160, core.Report{
		Events: []core.Event{
			{Kind: core.NodeChanged, AtSeconds: 150, Node: 1, Health: core.Down}, {Kind: core.JobInterrupted, AtSeconds: 150, Job: m.ID},
		},
		Changes: []core.Change{
			{Action: core.Stop, Job: y.ID},
			start(m, core.Seat{Node: 0, Devices: 0b10}, core.Seat{Node: 2, Devices: 0b11}),
			{Action: core.Tune, Job: m.ID},
		},
	})
	finished := core.Event{Kind: core.JobFinished, AtSeconds: 200, Job: m.ID}
	m.State, m.FirstStart, m.FinishSeconds, m.Executed, m.Attained = core.Completed, 0, 200, 190, 520
	s.report(220, core.Report{Events: []core.Event{finished, finished}, Ended: []*core.Job{m}})
	s.report(240, core.Report{Changes: []core.Change{start(y, core.Seat{Node: 0, Devices: 0b1})}})
	y.State, y.FirstStart, y.Held, y.Executed, y.Attained, y.AsOfSeconds = core.Running, 100, 1, 60, 60, 240
	return []*core.Job{y, z}
}

func TestBooksByType(t *testing.T) {
	var accelerators bytes.Buffer
	s := newStory(t, Outputs{Accelerators: &accelerators})
	summary, err := s.c.Finish(playStory(t, s), 260)
	if err != nil {
		t.Fatal(err)
	}
	// m on a100: 2 for 100 s and 1 for 40 s; on t4: 4 for 50 s and 2 for 40 s. y on a100: 1 for 60 s and for 20 s.
	wantRows := acceleratorsHeader + "0,a100,240,140,2\n0,t4,280,90,2\n1,a100,80,80,2\n"
	if diff := cmp.Diff(wantRows, accelerators.String()); diff != "" {
		t.Errorf("accelerators.csv (-want,+got):\n%s", diff)
	}
	// m started at once and y, bound to its type as z is, after 90 s. The makespan is 260 s.
	want := []AcceleratorUse{
		{
			Accelerator: "a100", Devices: 2, DeviceSeconds: 320, UtilizationRatio: 320.0 / (2 * 260), GPUHours: 320.0 / 3600,
			Jobs: 2, Starts: 4, FirstJobs: 2, QueueingSecondsMean: 45, BoundJobs: 1, BoundQueueingSecondsMean: 90,
		},
		{
			Accelerator: "t4", Devices: 6, DeviceSeconds: 280, UtilizationRatio: 280.0 / (6 * 260), GPUHours: 280.0 / 3600,
			Jobs: 1, Starts: 2, FirstJobs: 0, QueueingSecondsMean: unknown, BoundJobs: 1, BoundQueueingSecondsMean: unknown,
		},
	}
	sameNumber := cmp.Comparer(func(a, b Number) bool { return a == b || !a.Known() && !b.Known() })
	if diff := cmp.Diff(want, summary.Accelerators, sameNumber); diff != "" {
		t.Errorf("accelerators (-want,+got):\n%s", diff)
	}
}

// A job on several types at once first ran on the one it had most devices of, and of equal ones on the first seated.
func TestFirstType(t *testing.T) {
	a, b, c := core.Seat{Node: 0, Devices: 0b1}, core.Seat{Node: 1, Devices: 0b1}, core.Seat{Node: 2, Devices: 0b11}
	for name, tc := range map[string]struct {
		seats []core.Seat
		want  string
	}{
		"one":               {[]core.Seat{a}, "a100"},
		"most":              {[]core.Seat{a, c}, "t4"},
		"most of two nodes": {[]core.Seat{a, b, c}, "t4"},
		"equal":             {[]core.Seat{a, b}, "a100"},
		"equal, turned":     {[]core.Seat{b, a}, "t4"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, Outputs{})
			j := core.NewJob(&core.JobSpec{Name: "j", Requested: 1})
			s.report(7, core.Report{Events: []core.Event{submission(j)}, Changes: []core.Change{{Job: 0, Seats: tc.seats}}})
			j.State, j.FirstStart = core.Running, 7
			summary, err := s.c.Finish([]*core.Job{j}, 9)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range summary.Accelerators {
				if (u.FirstJobs == 1) != (u.Accelerator == tc.want) {
					t.Errorf("%d jobs first ran on %s, want all on %s", u.FirstJobs, u.Accelerator, tc.want)
				}
			}
		})
	}
}

// A job that lost its devices in a round that was not completed held them up to then.
func TestFinishAfterABrokenRound(t *testing.T) {
	var accelerators bytes.Buffer
	s := newStory(t, Outputs{Accelerators: &accelerators})
	j := core.NewJob(&core.JobSpec{Name: "j", Requested: 1})
	s.report(0, core.Report{Events: []core.Event{submission(j)}, Changes: []core.Change{{Job: 0, Seats: []core.Seat{{Node: 0, Devices: 0b11}}}}})
	j.State, j.FirstStart, j.Executed, j.Attained, j.LastChange = core.Waiting, 0, 30, 60, 30
	if _, err := s.c.Finish([]*core.Job{j}, 50); err != nil {
		t.Fatal(err)
	}
	if want := acceleratorsHeader + "0,a100,60,30,1\n"; accelerators.String() != want {
		t.Errorf("accelerators.csv = %q, want %q", accelerators.String(), want)
	}
}

// Where nothing ran, what was used of a type is not known, and no zero of any sign.
func TestNothingRanOnMixedTypes(t *testing.T) {
	s := newStory(t, Outputs{})
	j := core.NewJob(&core.JobSpec{Name: "j", Requested: 9, Accelerators: []string{"t4"}})
	j.State = core.Rejected
	s.report(5, core.Report{Events: []core.Event{submission(j)}, Ended: []*core.Job{j}})
	summary, err := s.c.Finish(nil, 5)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range summary.Accelerators {
		if u.UtilizationRatio.Known() || u.Jobs != 0 || u.BoundJobs != 0 {
			t.Errorf("%+v, want no use, of which the share is not known", u)
		}
	}
	if len(summary.Accelerators) != 2 {
		t.Errorf("%d types, want 2", len(summary.Accelerators))
	}
}

// A cluster of one type has no list of types, and its file holds what jobs.csv does when it is asked for.
func TestOneType(t *testing.T) {
	var accelerators bytes.Buffer
	c := NewCollector(testComponents, Outputs{Accelerators: &accelerators})
	summary, err := c.Finish(play(t, c), 160)
	if err != nil {
		t.Fatal(err)
	}
	if want := acceleratorsHeader + "0,t4,200,100,2\n1,t4,200,50,1\n3,t4,40,40,1\n"; accelerators.String() != want {
		t.Errorf("accelerators.csv = %q, want %q", accelerators.String(), want)
	}
	if summary.Accelerators != nil {
		t.Errorf("accelerators are %+v, want none", summary.Accelerators)
	}
}

func TestQuietRoundOnMixedTypesAllocatesNothing(t *testing.T) {
	s := newStory(t, Outputs{Accelerators: &discard{}, Rounds: &discard{}})
	playStory(t, s)
	r := &core.Report{View: &core.View{Cluster: s.cluster, NowSeconds: 1e6}}
	allocations := testing.AllocsPerRun(2000, func() {
		r.View.Round++
		r.View.NowSeconds += 60.5
		if err := s.c.ObserveRound(r); err != nil {
			t.Fatal(err)
		}
	})
	if allocations != 0 {
		t.Errorf("%v allocations a round, want 0", allocations)
	}
}

// TestBooksBalance tells random runs on random types, with mixed seats, moves, failures and a sudden end, and audits
// the books with a second way of counting: device by device, from who sat where between one moment and the next.
func TestBooksBalance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobsFile, accelerators bytes.Buffer
		s := &auditedRun{t: t, collector: NewCollector(testComponents, Outputs{Jobs: &jobsFile, Accelerators: &accelerators})}
		s.draw()
		summary, err := s.collector.Finish(s.unfinished(), s.now)
		if err != nil {
			t.Fatal(err)
		}
		got := map[[2]string]float64{}
		byJob, byType := map[string]float64{}, map[string]float64{}
		for _, row := range rowsOf(t, &accelerators) {
			seconds, err := strconv.ParseFloat(row[2], 64)
			if err != nil {
				t.Fatal(err)
			}
			got[[2]string{row[0], row[1]}] = seconds
			byJob[row[0]] += seconds
			byType[row[1]] += seconds
		}
		for key, want := range s.audit {
			if math.Abs(got[key]-want) > 1e-6 {
				t.Errorf("job %s held %s for %v device-seconds, the audit says %v", key[0], key[1], got[key], want)
			}
			delete(got, key)
		}
		for key, seconds := range got {
			if seconds > 1e-6 {
				t.Errorf("job %s held %s for %v device-seconds, the audit knows of none", key[0], key[1], seconds)
			}
		}
		for _, row := range rowsOf(t, &jobsFile) {
			if want, err := strconv.ParseFloat(row[10], 64); err != nil || math.Abs(byJob[row[0]]-want) > 1e-6 {
				t.Errorf("job %s held %v device-seconds of all types, gpu_seconds is %v (%v)", row[0], byJob[row[0]], want, err)
			}
		}
		total := 0.0
		for _, u := range summary.Accelerators {
			if total += float64(u.GPUHours); math.Abs(float64(u.DeviceSeconds)-byType[u.Accelerator]) > 1e-6 {
				t.Errorf("%s: %v device-seconds, its rows say %v", u.Accelerator, u.DeviceSeconds, byType[u.Accelerator])
			}
		}
		if len(summary.Accelerators) > 0 && math.Abs(total-float64(summary.GPUHours)) > 1e-9 {
			t.Errorf("%v GPU hours of all types, %v in all", total, summary.GPUHours)
		}
	})
}

func rowsOf(t *rapid.T, file *bytes.Buffer) [][]string {
	rows, err := csv.NewReader(strings.NewReader(file.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// auditedRun draws what a pipeline might tell, and keeps the accounts of the jobs as the pipeline would.
type auditedRun struct {
	t         *rapid.T
	collector *Collector
	cluster   *core.Cluster
	jobs      []*core.Job
	now       float64
	audit     map[[2]string]float64 // device-seconds by job and type
}

func (s *auditedRun) draw() {
	t := s.t
	s.audit = map[[2]string]float64{}
	s.cluster = &core.Cluster{Accelerators: []string{"a100", "t4", "v100"}}
	for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
		s.cluster.Nodes = append(s.cluster.Nodes, core.Node{
			ID: core.NodeID(i), Name: fmt.Sprint(i), Devices: rapid.IntRange(1, 8).Draw(t, "devices"),
			Accelerator: core.AcceleratorID(rapid.IntRange(0, 2).Draw(t, "type")),
		})
	}
	for round := range rapid.IntRange(1, 12).Draw(t, "rounds") {
		r := core.Report{View: &core.View{Round: round + 1, Cluster: s.cluster}}
		s.drawEvents(&r, rapid.SampledFrom([]float64{0, 1, 60, 333.25}).Draw(t, "seconds"))
		r.View.NowSeconds = s.now
		s.drawChanges(&r)
		if err := s.collector.ObserveRound(&r); err != nil {
			t.Fatal(err)
		}
	}
	s.pass(rapid.SampledFrom([]float64{0, 17.5}).Draw(t, "at the end"))
}

// pass lets time go by, and counts every device that every job holds.
func (s *auditedRun) pass(seconds float64) {
	s.now += seconds
	for _, j := range s.jobs {
		for _, seat := range j.Seats {
			for range seat.Devices.List() {
				s.audit[[2]string{fmt.Sprint(j.ID), s.cluster.Accelerators[s.cluster.Nodes[seat.Node].Accelerator]}] += seconds
			}
		}
	}
}

// drawEvents lets seconds pass in two parts, with things happening between them.
func (s *auditedRun) drawEvents(r *core.Report, seconds float64) {
	share := rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(s.t, "moment")
	s.pass(seconds * share)
	for _, j := range s.jobs {
		if j.State != core.Running {
			continue
		}
		e := core.Event{AtSeconds: s.now, Job: j.ID}
		switch rapid.IntRange(0, 7).Draw(s.t, "happens") {
		case 0:
			e.Kind, j.State = core.JobFinished, core.Completed
		case 1:
			e.Kind, j.State = core.JobFailed, core.Failed
		case 2:
			e.Kind, j.State = core.JobInterrupted, core.Waiting
		default:
			continue
		}
		s.settle(j)
		j.Seats, j.Held = nil, 0
		r.Events = append(r.Events, e)
		if rapid.IntRange(0, 3).Draw(s.t, "told twice") == 0 {
			r.Events = append(r.Events, e)
		}
		if j.State.Ended() {
			j.FinishSeconds = s.now
			r.Ended = append(r.Ended, j)
		}
	}
	for range rapid.IntRange(0, 2).Draw(s.t, "submissions") {
		j := core.NewJob(&core.JobSpec{ID: core.JobID(len(s.jobs)), Name: fmt.Sprint(len(s.jobs)), SubmitSeconds: s.now, Requested: 1})
		j.State = core.Waiting
		s.jobs = append(s.jobs, j)
		r.Events = append(r.Events, submission(j))
	}
	s.pass(seconds * (1 - share))
}

func (s *auditedRun) settle(j *core.Job) {
	j.Executed, j.Attained, j.AsOfSeconds, j.LastChange = j.ExecutedSeconds(s.now), j.AttainedService(s.now), s.now, s.now
}

// drawChanges starts, moves and stops jobs on any devices, which need not be
// free: who else sits there is no matter here.
func (s *auditedRun) drawChanges(r *core.Report) {
	for _, j := range s.jobs {
		change := core.Change{Job: j.ID}
		switch {
		case j.State.Ended() || rapid.Bool().Draw(s.t, "leave"):
			continue
		case j.State == core.Running && rapid.IntRange(0, 2).Draw(s.t, "stop") == 0:
			change.Action, j.State = core.Stop, core.Waiting
		case j.State == core.Running:
			change.Action = core.Move
		default:
			change.Action, j.State = core.Start, core.Running
		}
		if change.Action != core.Stop {
			nodes := rapid.Permutation(s.cluster.Nodes).Draw(s.t, "nodes")
			for _, n := range nodes[:rapid.IntRange(1, len(nodes)).Draw(s.t, "seats")] {
				devices := core.FirstDevices(rapid.IntRange(1, n.Devices).Draw(s.t, "devices"))
				change.Seats = append(change.Seats, core.Seat{Node: n.ID, Devices: devices})
			}
		}
		if math.IsNaN(j.FirstStart) {
			j.FirstStart = s.now
		}
		s.settle(j)
		j.Seats, j.Held = change.Seats, core.Replicas(change.Seats)
		r.Changes = append(r.Changes, change)
	}
}

func (s *auditedRun) unfinished() []*core.Job {
	var left []*core.Job
	for _, j := range s.jobs {
		if !j.State.Ended() {
			left = append(left, j)
		}
	}
	return left
}
