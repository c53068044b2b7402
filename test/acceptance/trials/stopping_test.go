package trials_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// searched is a workload of the trials of a search, submitted a second after each other, and of one job that is none.
type searched struct {
	replicas   int
	experiment string
}

func (s searched) Load(context.Context) (*workload.Workload, error) {
	w := &workload.Workload{}
	for i := range doortest.Trials + 1 {
		job := workload.Job{
			Spec: core.JobSpec{
				ID: core.JobID(i), Name: fmt.Sprintf("trial-%d", i), Experiment: s.experiment, Weight: 1, SubmitSeconds: float64(i),
				Requested: s.replicas, MinReplicas: s.replicas, MaxReplicas: s.replicas, TotalWork: 60 * doortest.TrialEpochs,
			},
			Model: doortest.TrialOf(i), // trial 0 is the best
		}
		if i == doortest.Trials {
			job.Spec.Name, job.Spec.Experiment = "alone", ""
		}
		w.Jobs = append(w.Jobs, job)
	}
	return w, nil
}

// searching is a composition that runs the search on eight devices, or as many as all trials ask for.
func searching(t *testing.T, s workload.Source, devices int, onEvents bool, admission ...quartet.Policy) *quartet.Composition {
	t.Helper()
	return searchingAt(t, "30s", s, devices, onEvents, admission...)
}

// searchingAt is searching where a restart takes so long.
func searchingAt(t *testing.T, overhead string, s workload.Source, devices int, onEvents bool, admission ...quartet.Policy) *quartet.Composition {
	t.Helper()
	spec := searchSpec(overhead, devices, onEvents, admission...)
	return doortest.Compose(t, quartet.Builtins().WithWorkload(quartet.Given("searched", s)), spec)
}

// searchSpec is a config that runs a search.
func searchSpec(overhead string, devices int, onEvents bool, admission ...quartet.Policy) quartet.Spec {
	spec := doortest.Small()
	spec.Cluster.Nodes = []quartet.NodeGroup{{Name: "n", Count: devices / 4, Accelerator: "t4", Devices: 4}}
	spec.Workload = quartet.Part{Type: "searched"}
	spec.Pipeline.Admission = admission
	spec.Pipeline.Placement.Type = "first_fit"
	spec.Pipeline.Elasticity.Job = quartet.Policy{Type: "fixed"}
	spec.Round.Interval, spec.Round.OnEvents = time.Minute, onEvents
	if onEvents {
		spec.Round.Interval = 0
	}
	spec.Output.Write = []string{"jobs", "decisions"}
	spec.Backend.Config = map[string]any{"restart_overhead": overhead}
	return spec
}

// stoppers are the policies that stop trials early, and how many of the trials each pauses at least, and lets come to their end.
var stoppers = map[string]struct {
	policies          []quartet.Policy
	pauses, ends, all int
}{
	"median":             {[]quartet.Policy{{Type: "median"}}, 0, 12, 0},
	"successive_halving": {[]quartet.Policy{{Type: "successive_halving", Config: map[string]any{"max_step": 27}}}, 26, 26, 1},
	"of a declared cohort": {
		[]quartet.Policy{{Type: "successive_halving", Config: map[string]any{"max_step": 27, "trials": 9}}}, 20, 24, 3,
	},
	"of a cohort that never fills up": {
		[]quartet.Policy{{Type: "successive_halving", Config: map[string]any{"max_step": 27, "trials": 100}}}, 27, 26, 1,
	},
	"asha that stops":    {[]quartet.Policy{{Type: "asha", Config: map[string]any{"max_step": 27}}}, 0, 15, 0},
	"asha that promotes": {[]quartet.Policy{{Type: "asha", Config: map[string]any{"max_step": 27, "variant": "promote"}}}, 15, 20, 0},
	"hyperband":          {[]quartet.Policy{{Type: "hyperband", Config: map[string]any{"max_step": 27}}}, 10, 20, 0},
	"convergence and asha": {
		[]quartet.Policy{{Type: "convergence", Config: map[string]any{"change": 0.1, "reports": 3}}, {Type: "asha", Config: map[string]any{"variant": "promote"}}}, 10, 20, 0,
	},
	"asha and a quota": {
		[]quartet.Policy{{Type: "quota", Config: map[string]any{"default_jobs": 6}}, {Type: "asha", Config: map[string]any{"variant": "promote"}}}, 10, 20, 0,
	},
	"two that have trials wait": {
		[]quartet.Policy{{Type: "successive_halving"}, {Type: "asha", Config: map[string]any{"variant": "promote"}}}, 10, 20, 0,
	},
}

// No trial is lost or waits for ever, those that wait hold no device and go on from where they were after a restart, and those that are ended have done what they did.
func TestStoppingTrialsEarly(t *testing.T) {
	for name, tc := range stoppers {
		for _, onEvents := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, on events %v", name, onEvents), func(t *testing.T) {
				c := searching(t, searched{1, "cifar10"}, 8, onEvents, tc.policies...)
				paused, pauses, pruned, through := map[core.JobID]float64{}, 0, map[core.JobID]bool{}, 0
				c.Observers = append(c.Observers, doortest.ObserverFunc(func(r *core.Report) {
					for id, work := range paused {
						if j := r.View.Job(id); j != nil && j.State != core.Running && (j.Held != 0 || j.Seats != nil || j.WorkDone(r.View.NowSeconds) != work) {
							t.Errorf("round %d: %s waits with %v and has done %v, of %v when it was paused", r.View.Round, j.Name, j.Seats, j.Progress, work)
						}
					}
					for _, change := range r.Changes {
						j := r.View.Job(change.Job)
						switch work, was := paused[change.Job]; {
						case change.Action == core.Pause:
							pauses++
							paused[change.Job] = j.Progress
							if j.State != core.Pending || change.Reason != core.AwaitingResults || j.Experiment == "" {
								t.Errorf("round %d: %v is %v", r.View.Round, change, j.State)
							}
						case change.Action == core.Finish && change.Reason == core.Pruned:
							pruned[change.Job] = true
							delete(paused, change.Job)
						case change.Action == core.Start && was:
							if j.Progress != work {
								t.Errorf("round %d: %s goes on from %v, want %v", r.View.Round, j.Name, j.Progress, work)
							}
							delete(paused, change.Job)
						}
					}
					for _, j := range r.Ended {
						if j.State != core.Completed {
							t.Errorf("%s is %v", j.Name, j.State)
						}
						if j.Progress == j.TotalWork {
							through++
						}
						if pruned[j.ID] && (j.Progress <= 0 || j.Progress >= j.TotalWork) {
							t.Errorf("%s was ended with %v of %v done", j.Name, j.Progress, j.TotalWork)
						}
					}
				}))
				r := doortest.Simulate(t, c)
				if done := r.Summary.Jobs.Completed; done != doortest.Trials+1 || len(r.Unfinished) > 0 {
					t.Errorf("%d jobs completed, %d have not ended", done, len(r.Unfinished))
				}
				if pauses < tc.pauses || tc.pauses == 0 && pauses > 0 || len(pruned) < tc.ends || tc.all > 0 && through != tc.all+1 {
					t.Errorf("%d pauses, %d trials ended, %d jobs came to their end; want %d pauses and %d ended at least, %d", pauses, len(pruned), through, tc.pauses, tc.ends, tc.all+1)
				}
				if pruned[0] || pruned[doortest.Trials] {
					t.Error("the best trial, or a job that is none, was ended")
				}
			})
		}
	}
}

// A trial that waited pays for its restart: between two epochs there are its minute, the wait and the pause.
func TestATrialThatWaitedPaysForItsRestart(t *testing.T) {
	for name, tc := range map[string]struct{ overhead, want time.Duration }{"none": {0, 0}, "half a minute": {30 * time.Second, 30 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			c := searchingAt(t, tc.overhead.String(), searched{1, "cifar10"}, 28, true, quartet.Policy{Type: "successive_halving", Config: map[string]any{"max_step": 27}})
			resumed := 0
			at := map[core.JobID]float64{}
			c.Observers = append(c.Observers, doortest.ObserverFunc(func(r *core.Report) {
				for _, e := range r.Events {
					if started, was := at[e.Job]; was && e.Kind == core.JobReported {
						resumed++
						if got := e.AtSeconds - started; math.Abs(got-60-tc.want.Seconds()) > 1e-6 {
							t.Errorf("job %d: its next epoch took %v s, want a minute and %v", e.Job, got, tc.want)
						}
						delete(at, e.Job)
					}
				}
				for _, change := range r.Changes {
					if j := r.View.Job(change.Job); change.Action == core.Start && j.Restarts > 0 {
						at[change.Job] = r.View.NowSeconds
					}
				}
			}))
			doortest.Simulate(t, c)
			if resumed < 8 {
				t.Errorf("%d trials went on", resumed)
			}
		})
	}
}

// With more replicas for each trial, a search under ASHA is done earlier.
func TestASHAWithMoreReplicasIsDoneEarlier(t *testing.T) {
	for _, variant := range []string{"stop", "promote"} {
		last := math.Inf(1)
		for _, replicas := range []int{1, 2, 4} {
			r := doortest.Simulate(t, searching(t, searched{replicas, "cifar10"}, 112, false, quartet.Policy{Type: "asha", Config: map[string]any{"variant": variant}}))
			if makespan := float64(r.Summary.MakespanSeconds); makespan >= last {
				t.Errorf("%s with %d replicas is done after %v s, and after %v s with fewer", variant, replicas, makespan, last)
			} else {
				last = makespan
			}
		}
	}
}

// A run repeats byte for byte, and tells of each trial that is ended or waits by which figures.
func TestEarlyStoppingRepeatsAndTellsWhy(t *testing.T) {
	for name, tc := range stoppers {
		t.Run(name, func(t *testing.T) {
			var files [2][]byte
			for i := range files {
				c := searching(t, searched{1, "cifar10"}, 8, false, tc.policies...)
				c.Dir, c.Keep = "", true
				for _, f := range doortest.Simulate(t, c).Files {
					if strings.HasSuffix(f.File, "decisions.jsonl") {
						files[i] = f.Content
					}
				}
			}
			if len(files[0]) == 0 || !bytes.Equal(files[0], files[1]) {
				t.Error("decisions differ between two runs, or are none")
			}
			told := 0
			for line := range strings.Lines(string(files[0])) {
				if strings.Contains(line, `"pruned"`) && strings.Contains(line, "loss of ") {
					told++
				}
			}
			if told < tc.ends {
				t.Errorf("%d ends are explained, want %d", told, tc.ends)
			}
		})
	}
}

func TestAdmissionsThatJudgeNobodyAreNoted(t *testing.T) {
	for name, tc := range map[string]struct {
		experiment string
		policies   []quartet.Policy
		want       []string
	}{
		"trials": {"cifar10", []quartet.Policy{{Type: "asha"}}, nil},
		"none": {"", []quartet.Policy{{Type: "asha"}, {Type: "median"}}, []string{
			`"admission/asha" judges no job: none of 28 jobs is a trial of an experiment`,
			`"admission/median" judges no job: none of 28 jobs is a trial of an experiment`,
		}},
		"others": {"", []quartet.Policy{{Type: "convergence"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var notes []string
			c := searching(t, searched{1, tc.experiment}, 8, false, tc.policies...)
			c.Note = func(text string) {
				if strings.Contains(text, "judges no job") {
					notes = append(notes, text)
				}
			}
			doortest.Simulate(t, c)
			if diff := cmp.Diff(tc.want, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
