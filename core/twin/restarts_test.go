package twin_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
	"github.com/quartet-sched/quartet/core/workload"
)

// anew is a model of a job that keeps no checkpoint.
type anew struct{ workload.Model }

func (anew) BeginsAnew() bool { return true }

// oneJob is a run of jobs of an hour on two nodes of a device each.
func oneJob(t *testing.T, jobs int, pipeline string) string {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace.csv")
	text := "name,submit_s,duration_s,replicas\n"
	for i := range jobs {
		text += fmt.Sprintf("job-%d,0,3600,1\n", i)
	}
	if err := os.WriteFile(trace, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("version: 1\nname: twin\ncluster: {nodes: [{name: n, count: 2, accelerator: v100, devices: 1}]}\n"+
		"workload: {type: csv, config: {path: %q}}\nround: {interval: 60s}\nbackend: {type: simulator}\n%s", trace, pipeline)
}

// In a future a job that keeps no checkpoint loses what it did when its replicas end, and no other job does.
func TestAFutureLosesWhatIsNotKept(t *testing.T) {
	const fifo = "pipeline: {allocation: {type: fifo}}"
	node := func(to core.Health) []twin.NodeChange {
		return []twin.NodeChange{{AtSeconds: 1200, Node: 0, To: to}}
	}
	for name, tc := range map[string]struct {
		nodes []twin.NodeChange
		anew  bool
		every int // seconds
		want  float64
	}{
		"nothing happens":                       {anew: true, want: 3600},
		"its node is drained":                   {nodes: node(core.Draining), anew: true, want: 4800},
		"its node fails":                        {nodes: node(core.Down), anew: true, want: 4800},
		"its node fails, whatever others keep":  {nodes: node(core.Down), anew: true, every: 600, want: 4800},
		"another node fails":                    {nodes: []twin.NodeChange{{AtSeconds: 1200, Node: 1, To: core.Down}}, anew: true, want: 3600},
		"it keeps it, and its node is drained":  {nodes: node(core.Draining), want: 3600},
		"it keeps it, and its node fails":       {nodes: node(core.Down), want: 3600},
		"it keeps some, and its node fails":     {nodes: node(core.Down), every: 700, want: 3600 + 500},
		"it is moved twice":                     {nodes: append(node(core.Draining), twin.NodeChange{AtSeconds: 1800, Node: 0, To: core.Ready}, twin.NodeChange{AtSeconds: 2400, Node: 1, To: core.Draining}), anew: true, want: 6000},
		"it is moved twice and keeps it though": {nodes: append(node(core.Draining), twin.NodeChange{AtSeconds: 1800, Node: 0, To: core.Ready}, twin.NodeChange{AtSeconds: 2400, Node: 1, To: core.Draining}), want: 3600},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := run(t, oneJob(t, 1, fifo), 1)
			still := s.list[0]
			w := truth(c, still, c.Jobs)
			if w.Nodes = tc.nodes; tc.anew {
				w.Jobs[0].Model = anew{w.Jobs[0].Model}
			}
			w.Config.CheckpointInterval = time.Duration(tc.every) * time.Second
			f, err := still.Future(t.Context(), policies(c, true), w, math.Inf(1))
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Jobs[0].EndSeconds; got != tc.want {
				t.Errorf("it ends at %v s, want %v s", got, tc.want)
			}
		})
	}
}

// A future of jobs that never come to an end, because they are stopped again and again and keep nothing, is over all the same.
func TestAFutureOfJobsThatNeverEnd(t *testing.T) {
	c, s := run(t, oneJob(t, 3, "pipeline: {allocation: {type: las, config: {quantum_seconds: 0}}}"), 1)
	still := s.list[0]
	w := truth(c, still, c.Jobs)
	for i := range w.Jobs {
		w.Jobs[i].Model = anew{w.Jobs[i].Model}
	}
	f, err := still.Future(t.Context(), policies(c, true), w, math.Inf(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, fate := range f.Jobs {
		if !math.IsNaN(fate.EndSeconds) {
			t.Errorf("job %d ends at %v s", fate.ID, fate.EndSeconds)
		}
	}
}

// restarted is a round of a run on real machines, made by hand.
func restarted(view *core.View, round int, now float64, events []core.Event, changes ...core.Change) *core.Report {
	view.Round, view.NowSeconds = round, now
	return &core.Report{View: view, Events: events, Changes: changes}
}

// Whether a job begins anew is what its backend tells, and where that tells nothing, what restarts showed, of the job or of its application.
func TestBeliefsOfRestarts(t *testing.T) {
	type told = core.Checkpointing
	const unknown, keeps, begins = core.CheckpointingUnknown, core.KeepsProgress, core.BeginsAnew
	for name, tc := range map[string]struct {
		told      told    // at the submission
		later     told    // with its progress
		restart   float64 // progress with which it goes on after a stop at 1000; NaN for never stopped
		want      bool
		wantOther bool // of another job of the application, of which nothing is told
	}{
		"nothing is known":                       {restart: math.NaN()},
		"told to keep nothing":                   {told: begins, later: begins, restart: math.NaN(), want: true},
		"told to keep it":                        {told: keeps, later: keeps, restart: math.NaN()},
		"made a checkpoint after all":            {told: begins, later: keeps, restart: math.NaN()},
		"begins anew":                            {restart: 0, want: true, wantOther: true},
		"begins anew, and reports late":          {restart: 100, want: true, wantOther: true},
		"goes on":                                {restart: 1000},
		"goes on from an older checkpoint":       {restart: 900},
		"goes on, and was told to keep nothing":  {told: begins, later: begins, restart: 1000},
		"seems to begin anew with a checkpoint":  {told: keeps, later: keeps, restart: 0, wantOther: true},
		"told to keep nothing, and begins anew":  {told: begins, later: begins, restart: 0, want: true, wantOther: true},
		"goes on with more than it was known of": {restart: 1200},
	} {
		t.Run(name, func(t *testing.T) {
			spec := func(id core.JobID) *core.JobSpec {
				return &core.JobSpec{ID: id, Name: fmt.Sprint("job-", id), Application: "net", Requested: 1, MinReplicas: 1, MaxReplicas: 1}
			}
			cluster := &core.Cluster{Accelerators: []string{"gpu"}, Nodes: []core.Node{{Name: "n", Devices: 2, Health: core.Ready}}}
			jobs := []*core.Job{core.NewJob(spec(0)), core.NewJob(spec(1))}
			view := &core.View{Cluster: cluster, Jobs: jobs, Devices: 2}
			seats := []core.Seat{{Node: 0, Devices: 1}}
			b := twin.NewWorkloadModel(twin.WorkloadModelOptions{})
			observe := func(r *core.Report) {
				t.Helper()
				if err := b.ObserveRound(r); err != nil {
					t.Fatal(err)
				}
			}
			progressed := func(rate, progress float64) []core.Event {
				jobs[0].Progress, jobs[0].ProgressRate, jobs[0].ProgressAsOf = progress, rate, view.NowSeconds
				return []core.Event{{Kind: core.JobProgressed, Job: 0, Rate: rate, Progress: progress, FromSeconds: view.NowSeconds, Checkpointing: tc.later}}
			}
			submitted := []core.Event{
				{Kind: core.JobSubmitted, Job: 0, Spec: jobs[0].JobSpec, Checkpointing: tc.told}, {Kind: core.JobSubmitted, Job: 1, Spec: jobs[1].JobSpec},
			}
			observe(restarted(view, 1, 0, submitted, core.Change{Action: core.Start, Job: 0, Seats: seats}))
			jobs[0].State, jobs[0].Seats, jobs[0].Held, jobs[0].FirstStart = core.Running, seats, 1, 0
			observe(restarted(view, 2, 60, progressed(1, 0)))
			if !math.IsNaN(tc.restart) {
				jobs[0].Progress, jobs[0].ProgressRate, jobs[0].ProgressAsOf = 1000, 0, 1060
				jobs[0].State, jobs[0].Seats, jobs[0].Held = core.Waiting, nil, 0
				observe(restarted(view, 3, 1060, nil, core.Change{Action: core.Stop, Job: 0}))
				observe(restarted(view, 4, 1120, progressed(0, tc.restart/2), core.Change{Action: core.Start, Job: 0, Seats: seats}))
				jobs[0].State, jobs[0].Seats, jobs[0].Held = core.Running, seats, 1
				view.NowSeconds = 1180
				observe(restarted(view, 5, 1180, progressed(1, tc.restart)))
			}
			for _, b := range []*twin.WorkloadModel{b, b.Clone()} {
				w := b.Draw(view, 1, 0, math.Inf(1))
				for id, want := range []bool{tc.want, tc.wantOther} {
					if got := w.Jobs[id].Model.(workload.Restarter).BeginsAnew(); got != want {
						t.Errorf("job %d begins anew: %v, want %v", id, got, want)
					}
				}
			}
		})
	}
}
