// Package settling_test holds rounds to what they do about grants that cannot be placed, through the door.
package settling_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// world is a cluster with jobs, and the two stages that divide and seat.
type world struct {
	nodes, allocation, placement, rows string
	passes                             int    // 0 for the default
	elasticity                         string // of jobs; empty for the default
	columns, each                      string // more columns of the jobs, and their values in every row
	catalog                            *quartet.Catalog
}

// trace is the jobs of the world as a csv file.
func (w world) trace() string {
	const header = "name,submit_s,duration_s,replicas,accelerators"
	return header + w.columns + "\n" + strings.ReplaceAll(w.rows, "\n", w.each+"\n")
}

// compose makes the composition of a world, with a round a minute and at each event.
func (w world) compose(t *testing.T) *quartet.Composition {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(trace, []byte(w.trace()), 0o644); err != nil {
		t.Fatal(err)
	}
	settle, elasticity := "", ""
	if w.passes > 0 {
		settle = fmt.Sprintf(", settle: {passes: %d}", w.passes)
	}
	if w.elasticity != "" {
		elasticity = ", elasticity: {job: " + w.elasticity + "}"
	}
	config := filepath.Join(t.TempDir(), "settling.yaml")
	text := fmt.Sprintf("version: 1\ncluster: {nodes: [%s]}\nworkload: {type: csv, config: {path: %q}}\nround: {interval: 60s, on_events: true%s}\n"+
		"pipeline: {allocation: %s, placement: %s%s}\n", w.nodes, trace, settle, w.allocation, w.placement, elasticity)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	catalog := quartet.Builtins()
	if w.catalog != nil {
		catalog = *w.catalog
	}
	c, err := quartet.Load(catalog, configs.Options{Files: []string{config}, Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// run simulates a world, and returns its jobs by name.
func run(t *testing.T, w world) map[string]metrics.Job {
	t.Helper()
	c := w.compose(t)
	c.Observers = append(c.Observers, doortest.ObserverFunc((&watcher{t: t}).observe))
	jobs := map[string]metrics.Job{}
	for _, j := range doortest.Simulate(t, c).Jobs {
		jobs[j.Name] = j
	}
	return jobs
}

// watcher remembers who held what after the round before.
type watcher struct {
	t    *testing.T
	held map[core.JobID][]core.Seat
}

// observe fails where a job was preempted, and everything that it held is idle: nobody is stopped for a grant that was not placed.
func (w *watcher) observe(r *core.Report) {
	var free core.Ledger
	free.Reset(r.View.Cluster)
	held := map[core.JobID][]core.Seat{}
	for _, j := range r.View.Jobs {
		if j != nil && j.State == core.Running {
			free.Occupy(j.Seats)
			held[j.ID] = j.Seats
		}
	}
	for _, c := range r.Changes {
		if c.Action == core.Stop && c.Reason == core.PreemptedByPriority && free.Occupy(w.held[c.Job]) {
			w.t.Errorf("at %v s job %d was preempted, and all that it held is idle", r.View.NowSeconds, c.Job)
			free.Release(w.held[c.Job])
		}
	}
	w.held = held
}

const strict = "{type: consolidated, config: {strict: true}}"

// A gang for which no node is empty stops nobody before it can start: H1. With ten times the devices and with nodes of three sizes as well.
func TestAGangThatFitsNowhereStopsNobody(t *testing.T) {
	t.Parallel()
	for name, times := range map[string]int{"as reported": 1, "ten times the devices": 10} {
		for _, allocation := range []string{"srtf", "las", "ftf", "afs", "elastic_srtf", "tiresias", "drf", "tetris", "edf"} {
			t.Run(name+"/"+allocation, func(t *testing.T) {
				t.Parallel()
				rows := ""
				for _, r := range []struct {
					name             string
					at, lasts, wants int
				}{{"a", 0, 2000, 1}, {"b", 1, 50, 1}, {"c", 2, 2000, 1}, {"d", 3, 50, 1}, {"e", 60, 5000, 1}, {"f", 61, 5000, 1}, {"wide", 100, 3000, 2}} {
					rows += fmt.Sprintf("%s,%d,%d,%d,\n", r.name, r.at, r.lasts, r.wants*times)
				}
				jobs := run(t, world{nodes: fmt.Sprintf("{name: n, count: 2, accelerator: g, devices: %d}", 2*times), allocation: "{type: " + allocation + "}", placement: strict, rows: rows})
				if wide := jobs["wide"]; wide.Outcome != "completed" {
					t.Errorf("the gang is %s", wide.Outcome)
				}
			})
		}
	}
}

// A gang that fits no node lets those pass that do: H2.
func TestBackfillPassesAGangThatFitsNoNode(t *testing.T) {
	t.Parallel()
	const rows = "a1,0,20000,5,\nb1,1,20000,5,\nmix,3600,100,6,\ns1,3700,6000,3,\ns2,3800,6000,3,\n"
	w := world{nodes: "{name: n, count: 2, accelerator: a, devices: 8}", allocation: "{type: fifo, config: {queue: backfill}}", placement: strict, rows: rows}
	jobs := run(t, w)
	for name, want := range map[string]float64{"a1": 0, "b1": 1, "mix": 20000, "s1": 3700, "s2": 3800} {
		if got := float64(jobs[name].FirstStartSeconds); got != want {
			t.Errorf("%s starts at %v s, want %v", name, got, want)
		}
	}
	w.allocation = "{type: fifo}" // which blocks: nobody passes
	if jobs := run(t, w); float64(jobs["s1"].FirstStartSeconds) < 20000 {
		t.Errorf("s1 passes a gang that keeps its turn, at %v s", jobs["s1"].FirstStartSeconds)
	}
	w.allocation, w.passes = "{type: fifo, config: {queue: backfill}}", 1
	if jobs := run(t, w); float64(jobs["s1"].FirstStartSeconds) != 20000 {
		t.Errorf("with one pass s1 starts at %v s, want 20000 as before", jobs["s1"].FirstStartSeconds)
	}
}

// A job that wants a type gets it though others, which want another type, come first: H3. Under every allocation that counts devices over the whole
// cluster; with three types, and with several devices a job.
func TestATypeIsNotIdleForOthersThatCannotUseIt(t *testing.T) {
	t.Parallel()
	allocations := []string{
		"{type: srtf}", "{type: tiresias}", "{type: drf}", "{type: tetris}", "{type: edf}", "{type: optimus}", "{type: afs}", "{type: elastic_dp}",
		"{type: elastic_fifo}", "{type: elastic_srtf}", "{type: elastic_tiresias}", "{type: fifo, config: {queue: backfill}}", "{type: gpu_fraction}", "{type: ftf}", "{type: las}",
	}
	for name, tc := range map[string]struct{ nodes, rows string }{
		"as reported": {
			"{name: na, accelerator: a, devices: 1}, {name: nb, accelerator: b, devices: 1}",
			"a1,0,3600,1,a\na2,1,3600,1,a\nb1,2,7200,1,b\n",
		},
		"three types": {
			"{name: na, accelerator: a, devices: 1}, {name: nb, accelerator: b, devices: 1}, {name: nc, accelerator: c, devices: 1}",
			"a1,0,3600,1,a\na2,1,3600,1,a\na3,1,3600,1,a\nb1,2,7200,1,b\n",
		},
		"gangs": {
			"{name: na, accelerator: a, devices: 4}, {name: nb, accelerator: b, devices: 4}",
			"a1,0,3600,4,a\na2,1,3600,4,a\nb1,2,7200,4,b\n",
		},
	} {
		for _, allocation := range allocations {
			t.Run(name+"/"+allocation, func(t *testing.T) {
				t.Parallel()
				jobs := run(t, world{nodes: tc.nodes, allocation: allocation, placement: "{type: consolidated}", rows: tc.rows})
				if b := jobs["b1"]; float64(b.FirstStartSeconds) > 60 || b.Restarts > 0 {
					t.Errorf("b1 starts at %v s and restarts %d times: its type is idle from the beginning", b.FirstStartSeconds, b.Restarts)
				}
			})
		}
	}
}

// An elastic job is given fewer devices where a placement that seats on one node finds no more: it runs on the half that a node has.
func TestAnElasticGrantIsNarrowed(t *testing.T) {
	t.Parallel()
	for _, allocation := range []string{"elastic_fifo", "elastic_srtf", "optimus", "afs"} {
		t.Run(allocation, func(t *testing.T) {
			t.Parallel()
			jobs := run(t, world{
				nodes: "{name: n, count: 2, accelerator: g, devices: 4}", allocation: "{type: " + allocation + "}", placement: "{type: fgd}",
				elasticity: "{type: fixed, config: {replicas: elastic}}", rows: "e,0,3600,8,\n", columns: ",min_replicas,max_replicas", each: ",1,8",
			})
			if e := jobs["e"]; float64(e.FirstStartSeconds) > 0 || e.ReplicasMean < 1 {
				t.Errorf("it starts at %v s, with %v devices, and is %s", e.FirstStartSeconds, e.ReplicasMean, e.Outcome)
			}
		})
	}
}

// A gang takes the devices of a running job behind it, and of no more of them than it needs; a job behind those takes nobody's. Without make_room it waits.
func TestAGangIsGivenRoom(t *testing.T) {
	t.Parallel()
	// Two nodes of four: x and y run on two devices each, of different nodes. The gang of four is shorter than both, and has waited for a minute.
	const rows = "fill,0,100,2,\nx,1,9000,2,\nfill2,2,100,2,\ny,3,9000,2,\ngang,60,3000,4,\n"
	jobs := run(t, world{nodes: "{name: n, count: 2, accelerator: a, devices: 4}", allocation: "{type: srtf}", placement: strict, rows: rows})
	stopped := jobs["x"].Restarts + jobs["y"].Restarts
	if gang := jobs["gang"]; float64(gang.FirstStartSeconds) > 300 || stopped != 1 {
		t.Errorf("the gang starts at %v s, and %d of the two others lost their devices: want one", gang.FirstStartSeconds, stopped)
	}
}

// Every job ends that is admitted, under every allocation: what is reserved for one that cannot take it keeps nobody else waiting. Afs left 16 of 53 jobs
// waiting for ever beside idle devices, and las 20 where it may make no room.
func TestEveryJobEnds(t *testing.T) {
	t.Parallel()
	for _, allocation := range quartet.Builtins().Allocation {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(allocation.Type, " ", seed), func(t *testing.T) {
				t.Parallel()
				s := quartet.NewSpec()
				s.Seed, s.Round.Settle.MakeRoom, s.Round.Settle.ReserveAfter = seed, seed%2 == 0, time.Hour
				s.Cluster.Nodes = []quartet.NodeGroup{
					{Name: "a", Count: 3, Accelerator: "v100", Devices: 4}, {Name: "b", Count: 2, Accelerator: "k80", Devices: 2},
				}
				if len(allocation.Sharing) > 0 {
					s.Cluster.Sharing = allocation.Sharing[0].String()
				}
				s.Workload = quartet.Part{Type: "generated", Config: map[string]any{"jobs": 60, "span": "4h"}}
				s.Pipeline.Allocation.Type, s.Pipeline.Placement.Type = allocation.Type, "consolidated"
				s.Pipeline.Elasticity.Job = quartet.Policy{Type: "fixed", Config: map[string]any{"replicas": "elastic"}}
				jobs := doortest.Simulate(t, doortest.Compose(t, quartet.Builtins(), s)).Summary.Jobs
				if jobs.Unfinished > 0 {
					t.Errorf("%d jobs never end", jobs.Unfinished)
				}
			})
		}
	}
}
