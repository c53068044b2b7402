package twin_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	beliefs "github.com/quartet-sched/quartet/core/twin"
	"github.com/quartet-sched/quartet/core/workload"
)

// decided notes what rounds decide, by their moments.
type decided struct {
	rounds []float64
	busy   map[float64]string // a node that a job was on before the round
	last   string
	by     map[float64][]string
}

func (d *decided) ObserveRound(r *core.Report) error {
	now := r.View.NowSeconds
	d.rounds = append(d.rounds, now)
	if d.last != "" {
		d.busy[now] = d.last
	}
	d.by[now] = decisions(r.View.Cluster, r.Changes)
	d.last = ""
	for _, j := range r.View.Jobs {
		if j != nil && len(j.Seats) > 0 && r.View.Cluster.Nodes[j.Seats[0].Node].Pool == "" {
			d.last = r.View.Cluster.Nodes[j.Seats[0].Node].Name
		}
	}
	return nil
}

func decisions(c *core.Cluster, changes []core.Change) (list []string) {
	for i := range changes {
		ch := &changes[i]
		text := fmt.Sprintf("%d %v %v", ch.Job, ch.Action, ch.Reason)
		for _, s := range ch.Seats {
			text += " " + c.Nodes[s.Node].Name + ":" + s.Devices.String()
		}
		list = append(list, text)
	}
	return list
}

func parsed(t *testing.T, config string) *quartet.Composition {
	t.Helper()
	c, err := quartet.Parse(quartet.Builtins(), "twin.yaml", config, quartet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func simulated(t *testing.T, c *quartet.Composition) *decided {
	t.Helper()
	d := &decided{busy: map[float64]string{}, by: map[float64][]string{}}
	c.Observers = []core.Observer{d}
	if _, err := c.Simulate(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Observers = nil
	return d
}

// What a what-if of a drain says of the next round is what the round decides in which the node is drained: the jobs named move, and no others. The other
// future is that of the run as it is.
func TestADrainMovesTheJobsThatAreNamed(t *testing.T) {
	for name, changes := range twinned {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.Contains(changes, "pools:") {
				t.Skip("a simulation drains no node of a pool by its config")
			}
			config := over(t, twinHead, changes)
			plain := simulated(t, parsed(t, config))
			moments := slices.DeleteFunc(slices.Clone(plain.rounds), func(at float64) bool { return math.Mod(at, 60) != 0 || plain.busy[at] == "" })
			if len(moments) < 5 {
				t.Fatalf("%d moments", len(moments))
			}
			moved := 0
			for i := range 5 {
				at := moments[(2*i+1)*len(moments)/10]
				node := plain.busy[at]
				told, err := parsed(t, config).TwinAt(t.Context(), time.Duration(at)*time.Second, quartet.Forecasting{})
				if err != nil {
					t.Fatal(err)
				}
				w, err := told.WhatIf(t.Context(), &quartet.Change{Drain: []string{node}, Horizon: time.Minute}, 1)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(plain.by[at], decisions(w.Without.Cluster, w.Without.Changes), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("the round at %v s as it is (-run +what if):\n%s", at, diff)
				}
				c := parsed(t, config)
				s := c.Backend.Config.(*sim.Config)
				s.NodeEvents = append(s.NodeEvents, sim.NodeEvent{At: time.Duration(at) * time.Second, Node: node, To: "draining"})
				drained := simulated(t, c)
				if diff := cmp.Diff(drained.by[at], decisions(w.With.Cluster, w.With.Changes), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("the round at %v s when %q is drained (-run +what if):\n%s", at, node, diff)
				}
				moved += len(slices.DeleteFunc(w.Moves, func(m quartet.Move) bool { return m.Same }))
			}
			if moved == 0 {
				t.Error("no drain moves a job")
			}
		})
	}
}

// Of a change that changes nothing come the same futures.
func TestWhatIfNothingChanges(t *testing.T) {
	for name, changes := range twinned {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told, err := parsed(t, over(t, twinHead, changes)).TwinAt(t.Context(), 2*time.Hour, quartet.Forecasting{Model: beliefs.WorkloadModelOptions{Arrivals: beliefs.ArrivalsRecent}})
			if err != nil {
				t.Fatal(err)
			}
			w, err := told.WhatIf(t.Context(), &quartet.Change{Horizon: 3 * time.Hour}, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range w.Measures {
				if m.Without != m.With && !(math.IsNaN(m.Without) && math.IsNaN(m.With)) || m.Change != 0 {
					t.Errorf("%s: %v, and %v", m.Name, m.Without, m.With)
				}
			}
			for _, s := range w.Shifts {
				if s.EndWith != s.EndWithout || s.StartWith != s.StartWithout {
					t.Errorf("%s ends at %v s, and %v s", s.Name, s.EndWithout, s.EndWith)
				}
			}
			if len(w.Shifts) == 0 || len(w.Most(10)) > 0 {
				t.Errorf("%d jobs, of which %d end at another time", len(w.Shifts), len(w.Most(10)))
			}
		})
	}
}

const whatIfHead = `
version: 1
name: whatif
seed: 1
cluster: {nodes: [{name: a, count: 2, accelerator: v100, devices: 4}]}
workload: {type: jobs, config: {path: JOBS}}
round: {interval: 60s}
backend: {type: simulator}
pipeline: {allocation: {type: fifo}}
`

// Small cases, computed by hand: the moment is 10 min.
func TestWhatIf(t *testing.T) {
	job := func(name string, replicas int, seconds float64) string {
		return fmt.Sprintf("  - {name: %s, command: [run], replicas: %d, seconds: %v}\n", name, replicas, seconds)
	}
	submitted := func(name string, replicas int, seconds float64) []workload.Job {
		jobs, err := workload.DecodeJobs("more.yaml", []byte("version: 1\njobs:\n"+job(name, replicas, seconds)))
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	for name, tc := range map[string]struct {
		jobs   string
		change quartet.Change
		next   []string  // with the change
		later  []float64 // seconds, by job; infinite for by anything: how long jobs are is not known
	}{
		"a drained node's job waits for the end of the drain": {
			jobs: job("one", 4, 7200) + job("two", 4, 7200), change: quartet.Change{Drain: []string{"a-1"}, For: time.Hour},
			next: []string{"1 stop node_unavailable"}, later: []float64{0, 3600},
		},
		"a job moves to the free node": {
			jobs: job("one", 4, 7200), change: quartet.Change{Drain: []string{"a-0"}}, next: []string{"0 move none a-1:0,1,2,3"}, later: []float64{0},
		},
		"more nodes let the third job start": {
			jobs: job("one", 4, 7200) + job("two", 4, 7200) + job("three", 4, 3600), change: quartet.Change{Add: []quartet.MoreNodes{{Like: "a", Count: 1}}},
			next: []string{"2 start none a-added-0:0,1,2,3"}, later: []float64{0, 0, math.Inf(-1)},
		},
		"a job that is submitted waits behind the others": {
			jobs: job("one", 4, 7200) + job("two", 4, 7200), change: quartet.Change{Submit: submitted("mine", 8, 60)}, later: []float64{0, 0, 0, math.NaN()},
		},
		"a job that is too large is rejected": {
			jobs: job("one", 4, 7200), change: quartet.Change{Submit: submitted("mine", 9, 60)}, next: []string{"1 start none a-1:0", "2 discard exceeds_cluster"}, later: []float64{0, 0, math.NaN()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/jobs.yaml"
			if err := os.WriteFile(path, []byte("version: 1\njobs:\n"+tc.jobs+tick), 0o600); err != nil {
				t.Fatal(err)
			}
			told, err := parsed(t, strings.ReplaceAll(whatIfHead, "JOBS", path)).TwinAt(t.Context(), 10*time.Minute, quartet.Forecasting{})
			if err != nil {
				t.Fatal(err)
			}
			w, err := told.WhatIf(t.Context(), &tc.change, 3)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.next, decisions(w.With.Cluster, w.With.Changes), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("next round at %v s (-want +got):\n%s", w.NowSeconds, diff)
			}
			for i, want := range tc.later {
				got := w.Shifts[i].Later.Median
				if math.IsNaN(want) != math.IsNaN(got) || !math.IsInf(want, 0) && math.Abs(got-want) > 61 || math.IsInf(want, 0) && got*math.Copysign(1, want) < 61 {
					t.Errorf("%s ends %v s later, want %v", w.Shifts[i].Name, got, want)
				}
			}
		})
	}
}

// tick has a round held at the moment.
const tick = "  - {name: tick, command: [run], seconds: 1, submit: 10m}\n"

// Every problem of a change is told at once.
func TestWhatIfOfWhatThereIsNot(t *testing.T) {
	told, err := parsed(t, twinHead+"pipeline: {allocation: {type: fifo}}").TwinAt(t.Context(), time.Hour, quartet.Forecasting{})
	if err != nil {
		t.Fatal(err)
	}
	var present string
	for _, id := range slices.Sorted(maps.Keys(told.Names)) {
		if told.Snapshot.View().Jobs[id] != nil {
			present = told.Names[id]
		}
	}
	jobs := []workload.Job{{Spec: core.JobSpec{Name: present}}, {Spec: core.JobSpec{Name: "new", SubmitSeconds: 5}}, {Spec: core.JobSpec{Name: "new"}}}
	_, err = told.WhatIf(t.Context(), &quartet.Change{Drain: []string{"a-9", "a-0", "a-0"}, Add: []quartet.MoreNodes{{Like: "c", Count: 1}, {Like: "b", Count: 1}}, Submit: jobs}, 1)
	want := `--add: there is no pool, group or node "c"; did you mean "a"? valid pools and groups: a, b
--drain: there is no node "a-9"; did you mean "a-0"? valid nodes: a-0, a-1, a-2, b-0, b-1
--drain: node "a-0" is named twice
--submit: there is a job "` + present + `" already; give it another name
--submit: job "new" says when it is submitted; leave submit out: what if it came now?
--submit: there is a job "new" already; give it another name`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}
