package control

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/quartet-sched/quartet/admission"
	"github.com/quartet-sched/quartet/allocation"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/placement"
)

// world walks a pipeline through rounds that a test makes up, ten seconds apart.
type world struct {
	t        testing.TB
	pipeline *core.Pipeline
	now      float64
	jobs     core.JobID
	events   []core.Event
}

func newWorld(t testing.TB, observers ...core.Observer) *world {
	return newWorldOf(t, cluster(), observers...)
}

func newWorldOf(t testing.TB, c *core.Cluster, observers ...core.Observer) *world {
	return &world{t: t, pipeline: core.NewPipeline(c, core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission/accept_all", Policy: coretest.Component(admission.NewAcceptAll(), nil, nil)}},
		Allocation: core.Component[core.Allocator]{ID: "allocation/las", Policy: coretest.Component(allocation.NewLAS(), map[string]any{"quantum_seconds": 0.0}, nil)},
		Placement:  core.Component[core.Placer]{ID: "placement/first_fit", Policy: coretest.Component(placement.NewFirstFit(), nil, nil)},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/fixed", Policy: coretest.Component(elasticity.NewFixed(), nil, nil)},
	}, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 10}, Observers: observers})}
}

func (w *world) submit(name string, replicas int) core.JobID {
	id := w.jobs
	w.jobs++
	spec := coretest.MakeJob(name).ID(id).Replicas(replicas).Submit(w.now).Work(1000).Obj().JobSpec
	w.report(core.Event{Kind: core.JobSubmitted, Job: id, Spec: spec, StepsLeft: math.NaN()})
	return id
}

func (w *world) report(e core.Event) {
	e.AtSeconds = w.now
	w.events = append(w.events, e)
}

func (w *world) round() {
	w.t.Helper()
	if err := w.pipeline.Round(w.t.Context(), core.Observation{NowSeconds: w.now, Events: w.events}, &fake{}); err != nil {
		w.t.Fatal(err)
	}
	w.events = nil
	w.now += 10
}

func TestDescribe(t *testing.T) {
	b := NewBoard(cluster())
	w := newWorld(t, b)
	first, huge := w.submit("first", 8), w.submit("huge", 9)
	w.round()
	w.submit("second", 2)
	w.report(core.Event{Kind: core.JobMeasured, Job: first, Measurement: core.Measurement{Accelerator: "t4", Nodes: 2, Replicas: 8, PerDevice: 32, PassSeconds: 0.5, StepSeconds: 0.75}})
	w.report(core.Event{Kind: core.JobProgressed, Job: first, Progress: 5, Rate: 2, FromSeconds: w.now, StepsLeft: math.NaN()})
	w.round() // least attained service first: the second job takes its two devices
	_, path := serve(t, &fake{}, b, discard)
	c := dial(t, path)
	ask := func(job string) *controlv1.DescribeResponse {
		t.Helper()
		m, err := c.Describe(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	id := func(id core.JobID) *int32 { n := int32(id); return &n }
	at := func(x float64) *float64 { return &x }
	want := &controlv1.DescribeResponse{NowSeconds: 10, Job: &controlv1.Job{
		Id: id(first), Name: "first", State: "waiting", Reason: "preempted_by_priority",
		Requested: 8, MinReplicas: 8, MaxReplicas: 8,
		SubmitSeconds: at(0), FirstStartSeconds: at(0), ChangeSeconds: at(10), ExecutedSeconds: 10, AttainedSeconds: 80,
		Preemptions: 1, Progress: 5, TotalWork: 1000,
		Measurement: &controlv1.Measurement{Accelerator: "t4", Nodes: 2, Replicas: 8, BatchPerDevice: 32, PassSeconds: 0.5, StepSeconds: 0.75},
	}, Decisions: []*controlv1.Decision{
		{Round: 1, What: "job_submitted"},
		{Round: 1, What: "start", By: "placement/first_fit", Seats: []*controlv1.Seat{
			{Node: "t4-0", Devices: []uint32{0, 1, 2, 3}}, {Node: "t4-1", Devices: []uint32{0, 1, 2, 3}},
		}},
		{Round: 2, AtSeconds: 10, What: "stop", By: "allocation/las", Reason: "preempted_by_priority"},
	}}
	if diff := cmp.Diff(want, ask("first"), protocmp.Transform()); diff != "" {
		t.Errorf("first (-want,+got):\n%s", diff)
	}
	want = &controlv1.DescribeResponse{NowSeconds: 10, Job: &controlv1.Job{
		Id: id(huge), Name: "huge", State: "rejected", Reason: "exceeds_cluster", Requested: 9, MinReplicas: 9, MaxReplicas: 9,
		SubmitSeconds: at(0), FinishSeconds: at(0), ChangeSeconds: at(0), TotalWork: 1000,
	}, Decisions: []*controlv1.Decision{
		{Round: 1, What: "job_submitted"},
		{Round: 1, What: "reject", By: "pipeline", Reason: "exceeds_cluster", Wanted: 9, Available: 8, Unit: "devices"},
	}}
	if diff := cmp.Diff(want, ask("huge"), protocmp.Transform()); diff != "" {
		t.Errorf("huge (-want,+got):\n%s", diff)
	}
	nodes, err := c.Nodes(t.Context())
	must(t, err)
	if diff := cmp.Diff([]*controlv1.Node{
		{Name: "t4-0", Accelerator: "t4", Devices: 4, Used: 2, Health: "ready"}, {Name: "t4-1", Accelerator: "t4", Devices: 4, Health: "ready"},
	}, nodes, protocmp.Transform(), protocmp.IgnoreFields(&controlv1.Node{}, "rack")); diff != "" {
		t.Errorf("nodes (-want,+got):\n%s", diff)
	}
}

// Why a job failed, was interrupted or begins again is told with the job and with what was decided about it.
func TestBoardTellsWhatWentWrong(t *testing.T) {
	b := NewBoard(cluster())
	w := newWorld(t, b)
	id := w.submit("a", 1)
	w.round()
	for _, e := range []core.Event{
		{Kind: core.JobProgressed, Progress: 1},
		{Kind: core.JobProgressed, Message: "begins again"},
		{Kind: core.JobInterrupted, Message: "lost"},
		{Kind: core.JobFailed, Message: "exited with 1"},
	} {
		e.Job = id
		w.report(e)
		w.round()
	}
	f, decisions, now, _ := b.find("a")
	if j := b.render(f, now); j.GetMessage() != "exited with 1" || j.GetFailures() != 2 || j.GetState() != "failed" {
		t.Errorf("the job is %v", j)
	}
	var told []string
	for _, d := range b.renderDecisions(decisions) {
		if d.GetMessage() != "" {
			told = append(told, d.GetWhat()+": "+d.GetMessage())
		}
	}
	want := []string{"job_progressed: begins again", "job_interrupted: lost", "job_failed: exited with 1"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

// expecting is a backend that knows of jobs which are still to come, or is too busy to tell.
type expecting struct {
	fake
	list []backend.Coming
	err  error
}

func (e *expecting) Coming(context.Context) ([]backend.Coming, error) { return e.list, e.err }

func TestJobsThatAreStillToCome(t *testing.T) {
	b := NewBoard(cluster())
	w := newWorld(t, b)
	w.submit("seen", 1)
	w.round()
	coming := func(id core.JobID, name string, cancelled bool) backend.Coming {
		return backend.Coming{JobSpec: *coretest.MakeJob(name).ID(id).Replicas(2).Submit(60).Obj().JobSpec, Cancelled: cancelled}
	}
	e := &expecting{list: []backend.Coming{coming(0, "seen", false), coming(1, "a", false), coming(2, "unwanted", true)}}
	_, path := serve(t, e, b, discard)
	c := dial(t, path)
	if _, err := c.Submit(t.Context(), file); err != nil { // of a and b
		t.Fatal(err)
	}
	states := func(ended bool) (list []string) {
		jobs, _, err := c.Jobs(t.Context(), ended)
		must(t, err)
		for _, j := range jobs {
			list = append(list, fmt.Sprintf("%s %s %v", j.GetName(), j.GetState(), j.SubmitSeconds != nil && j.GetSubmitSeconds() == 60))
		}
		return list
	}
	for ended, want := range map[bool][]string{
		false: {"seen running false", "a submitted true", "b submitted false"},
		true:  {"seen running false", "a submitted true", "unwanted cancelled true", "b submitted false"},
	} {
		if diff := cmp.Diff(want, states(ended)); diff != "" {
			t.Errorf("(-want,+got):\n%s", diff)
		}
	}
	for job, want := range map[string]string{"a": "submitted", "unwanted": "cancelled", "seen": "running", "b": "submitted"} {
		if d, err := c.Describe(t.Context(), job); err != nil || d.GetJob().GetState() != want {
			t.Errorf("%s is %v: %v", job, d.GetJob(), err)
		}
	}
	e.err = errors.New("in the middle of a round")
	if diff := cmp.Diff([]string{"seen running false", "a submitted false", "b submitted false"}, states(false)); diff != "" {
		t.Errorf("a busy backend (-want,+got):\n%s", diff)
	}
}

// TestBoardFollowsTheView holds the board to the view after each of many rounds, in which jobs come, end, are measured and
// lose their nodes.
func TestBoardFollowsTheView(t *testing.T) {
	b := NewBoard(cluster())
	rounds := 0
	ended := map[string]string{}
	w := newWorld(t, b, observer(func(r *core.Report) error {
		rounds++
		used := make([]uint32, len(r.View.Cluster.Nodes))
		var want []*controlv1.Job
		for _, j := range r.View.Jobs {
			if j == nil {
				continue
			}
			want = append(want, b.render(&facts{Job: *j}, r.View.NowSeconds))
			for _, s := range j.Seats {
				used[s.Node] += uint32(s.Devices.Count())
			}
		}
		for _, j := range r.Ended {
			ended[j.Name] = j.State.String()
		}
		jobs, _, now := b.list(false)
		var got []*controlv1.Job
		for _, f := range jobs {
			got = append(got, b.render(f, now))
		}
		if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&controlv1.Job{}, "measurement")); diff != "" {
			return fmt.Errorf("jobs (-want,+got):\n%s", diff)
		}
		all, _, _ := b.list(true)
		if len(all) != len(got)+len(ended) {
			return fmt.Errorf("%d jobs, of which %d live and %d ended", len(all), len(got), len(ended))
		}
		for _, f := range all {
			if state := ended[f.Name]; state != "" && f.State.String() != state {
				return fmt.Errorf("%s is %v, want %s", f.Name, f.State, state)
			}
		}
		for i, n := range b.listNodes(b.moment()) {
			if n.GetUsed() != used[i] || n.GetHealth() != r.View.Cluster.Nodes[i].Health.String() {
				return fmt.Errorf("node %v, want %d used", n, used[i])
			}
		}
		return nil
	}))
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		if random.IntN(2) == 0 {
			w.submit(fmt.Sprint("job-", w.jobs), 1+random.IntN(9))
		}
		for id := range w.jobs {
			kind := core.JobProgressed
			switch random.IntN(25) {
			case 0:
				kind = core.JobFinished
			case 1:
				kind = core.JobFailed
			case 2:
				kind = core.JobCancelled
			case 3:
				kind = core.JobMeasured
			}
			if e := b.job(id); e != nil && !e.State.Ended() {
				w.report(core.Event{Kind: kind, Job: id, Progress: w.now, Measurement: core.Measurement{Replicas: random.IntN(8)}})
			}
		}
		if random.IntN(10) == 0 {
			w.report(core.Event{Kind: core.NodeChanged, Node: core.NodeID(random.IntN(2)), Health: core.Health(random.IntN(3))})
		}
		w.round()
	}
	for _, state := range []string{"completed", "failed", "cancelled", "rejected"} {
		if n := len(slices.DeleteFunc(sortedValues(ended), func(s string) bool { return s != state })); n < 3 {
			t.Errorf("only %d jobs %s: the test holds little", n, state)
		}
	}
	if rounds != 300 {
		t.Errorf("%d rounds", rounds)
	}
}

func sortedValues(m map[string]string) []string {
	var values []string
	for _, v := range m {
		values = append(values, v)
	}
	slices.Sort(values)
	return values
}

type observer func(*core.Report) error

func (o observer) ObserveRound(r *core.Report) error { return o(r) }

func TestBoardForgets(t *testing.T) {
	b := NewBoard(cluster())
	w := newWorld(t, b)
	for range keptEnded + 5 {
		w.submit(fmt.Sprint("job-", w.jobs), 9) // more than there are devices: rejected at once
	}
	stays := w.submit("stays", 1)
	w.round()
	jobs, _, _ := b.list(true)
	if len(jobs) != keptEnded+1 {
		t.Errorf("%d jobs are kept, want %d", len(jobs), keptEnded+1)
	}
	for name, want := range map[string]bool{"job-4": false, "job-5": true, "stays": true} {
		if _, _, _, known := b.find(name); known != want {
			t.Errorf("%s is known: %v", name, known)
		}
	}
	for i := range keptDecisions {
		w.report(core.Event{Kind: core.JobInterrupted, Job: stays, Progress: float64(i)})
		w.round() // which starts it again
	}
	_, decisions, _, _ := b.find("stays")
	if last := decisions[len(decisions)-1]; len(decisions) != keptDecisions || last.what != "start" || last.round != keptDecisions+1 {
		t.Errorf("%d decisions, the last one %+v", len(decisions), last)
	}
	if d := decisions[len(decisions)-2]; d.what != "job_interrupted" || d.reason != core.NodeUnavailable {
		t.Errorf("the one before is %+v", d)
	}
}

// A job that the backend has taken in is known before a round sees it.
func TestSubmittedJobsAreKnownAtOnce(t *testing.T) {
	b := NewBoard(cluster())
	w := newWorld(t, b)
	w.submit("a", 1)
	w.round()
	_, path := serve(t, &fake{}, b, discard) // whose Submit takes in a and b
	c := dial(t, path)
	if _, err := c.Submit(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	states := func() map[string]string {
		jobs, _, err := c.Jobs(t.Context(), true)
		must(t, err)
		states := map[string]string{}
		for _, j := range jobs {
			states[j.GetName()] = j.GetState()
		}
		return states
	}
	if diff := cmp.Diff(map[string]string{"a": "running", "b": "submitted"}, states()); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	m, err := c.Describe(t.Context(), "b")
	must(t, err)
	if diff := cmp.Diff(&controlv1.Job{Name: "b", State: "submitted"}, m.GetJob(), protocmp.Transform()); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	w.submit("b", 1)
	w.round()
	if diff := cmp.Diff(map[string]string{"a": "running", "b": "running"}, states()); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

func TestJobsComeInParts(t *testing.T) {
	b := NewBoard(cluster())
	w := newWorld(t, b)
	const n = 2*jobsPerMessage + 3
	for range n {
		w.submit(fmt.Sprint("job-", w.jobs), 9)
	}
	w.round()
	_, path := serve(t, &fake{}, b, discard)
	c := dial(t, path)
	for ended, want := range map[bool]int{true: n, false: 0} {
		jobs, now, err := c.Jobs(t.Context(), ended)
		if err != nil || len(jobs) != want || now != 0 {
			t.Errorf("%d jobs at %v s, want %d: %v", len(jobs), now, want, err)
		}
		for i, j := range jobs {
			if j.GetId() != int32(i) {
				t.Fatalf("job %d comes at %d", j.GetId(), i)
			}
		}
	}
}

// TestReadersGoOnBesideRounds is for the race detector.
func TestReadersGoOnBesideRounds(t *testing.T) {
	b := NewBoard(cluster())
	w := newWorld(t, b)
	_, path := serve(t, &fake{}, b, discard)
	w.submit("job-0", 8)
	w.round()
	c := dial(t, path)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			jobs, _, err := c.Jobs(t.Context(), true)
			must(t, err)
			if !slices.IsSortedFunc(jobs, func(a, b *controlv1.Job) int { return int(a.GetId() - b.GetId()) }) {
				t.Error("the jobs are not in order")
			}
			_, err = c.Describe(t.Context(), "job-0")
			must(t, err)
			_, err = c.Nodes(t.Context())
			must(t, err)
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for i := range 200 {
		id := w.submit(fmt.Sprint("job-", w.jobs), 1+i%8)
		w.report(core.Event{Kind: core.JobMeasured, Job: 0, Measurement: core.Measurement{Replicas: i}})
		if i%3 == 0 {
			w.round()
			w.report(core.Event{Kind: core.JobCancelled, Job: id})
		}
		w.round()
	}
	close(stop)
	readers.Wait()
}
