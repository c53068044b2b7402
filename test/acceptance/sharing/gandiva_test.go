package sharing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/interference"
	"github.com/quartet-sched/quartet/internal/doortest"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// pairsOf watches who is on whose devices, and for how long, and holds that against what the model says.
type pairsOf struct {
	model        interference.Model
	accelerator  string
	slice, pause float64
	since        map[[2]core.JobID]float64
	kept, parted int    // pairs that were worth it for more than a slice, and others that were tried
	slow         int    // looks at pairs that are not worth it, for less than a slice
	fault        string // empty for none
}

// sum is what the members of a pair have of their rates alone, together.
func (o *pairsOf) sum(a, b *core.JobSpec) float64 {
	return o.model.Rate(a, []*core.JobSpec{b}, o.accelerator) + o.model.Rate(b, []*core.JobSpec{a}, o.accelerator)
}

func (o *pairsOf) ObserveRound(r *core.Report) error {
	on, now := map[core.Seat]*core.Job{}, map[[2]core.JobID]float64{}
	for _, j := range r.View.Jobs {
		if j == nil || j.State != core.Running {
			continue
		}
		for _, seat := range j.Seats {
			for _, d := range seat.Devices.List() {
				at := core.Seat{Node: seat.Node, Devices: 1 << d}
				if other := on[at]; other != nil {
					now[[2]core.JobID{other.ID, j.ID}] = max(other.LastChange, j.LastChange)
				}
				on[at] = j
			}
		}
	}
	for pair, since := range now {
		a, b := r.View.Jobs[pair[0]], r.View.Jobs[pair[1]]
		const rounding = 1e-9
		if r.View.NowSeconds < since+o.pause+o.slice-rounding {
			if o.sum(a.JobSpec, b.JobSpec) < 1 {
				o.slow++
			}
			continue
		}
		switch sum := o.sum(a.JobSpec, b.JobSpec); {
		case sum > 1+rounding:
			o.kept++
		case sum < 1-rounding && o.fault == "":
			o.fault = fmt.Sprintf("at %v s %q and %q are on the same devices since %v s, and together as fast as %v", r.View.NowSeconds, a.Name, b.Name, since, sum)
		}
	}
	for pair := range o.since {
		if _, still := now[pair]; !still && r.View.Job(pair[0]) != nil && r.View.Job(pair[1]) != nil {
			o.parted++
		}
	}
	o.since = now
	return nil
}

const sliced = `version: 1
name: sliced
seed: %d
cluster:
  sharing: timeslice
  max_owners: %d
  nodes: [{name: n, count: %d, accelerator: gpu, devices: 4, device_memory_gb: 16}]
workload: {type: csv, config: {path: %q}}
round: {interval: %ds, on_events: %t}
pipeline:
  allocation: {type: gandiva, config: {slice: 60s, pairs: %s, grow_shrink: %t}}
  placement: {type: %s}
  elasticity: {job: {type: fixed, config: {replicas: elastic}}}
backend: {type: simulator, config: {restart_overhead: %ds, co_location: %s}}
output: {write: []}
`

// models are those of the simulator, with what they say. Of the fitted one no pair is slower than in turns.
var models = []struct {
	config string
	is     interference.Model
}{
	{"{model: hinge}", interference.UsualHinge()},
	{"{model: none}", interference.None{}},
	{"{model: turns}", interference.Turns{}},
	{"{model: turns, switch_ratio: 0.01}", interference.Turns{SwitchRatio: 0.01}},
	{"{model: turns, switch_ratio: 0.3}", interference.Turns{SwitchRatio: 0.3}},
	{"{model: table, table: %q}", interference.Table{Unknown: interference.UsualHinge()}},
}

// drawPairs writes what pairs of three applications have of their rates alone, of which some do not fit and some were not measured.
func drawPairs(t *rapid.T, path string) {
	table := &strings.Builder{}
	table.WriteString("worker_type,job_type,scale_factor,partner_job_type,partner_scale_factor,tput_self,tput_partner\n")
	for replicas := 1; replicas <= 4; replicas++ {
		for i, first := range "abc" {
			fmt.Fprintf(table, "gpu,%c,%d,,,10,\n", first, replicas)
			for _, second := range "abc"[i:] {
				rate := rapid.SampledFrom([]float64{0, 1, 4.9, 5, 5.1, 9})
				if rapid.IntRange(0, 3).Draw(t, "not measured") > 0 {
					fmt.Fprintf(table, "gpu,%c,%d,%c,%d,%v,%v\n", first, replicas, second, replicas, rate.Draw(t, "first"), rate.Draw(t, "second"))
				}
			}
		}
	}
	if err := os.WriteFile(path, []byte(table.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Whatever jobs come and whatever sharing costs them, no pair whose rates add up to less than 1 is together for longer than a slice, and all jobs end.
func TestGandivaPartsPairsThatAreNotWorthIt(t *testing.T) {
	t.Parallel()
	folder, kept, parted := t.TempDir(), 0, 0
	rapid.Check(t, func(t *rapid.T) {
		trace := &strings.Builder{}
		trace.WriteString("name,application,submit_s,duration_s,replicas,min_replicas,max_replicas,weight,utilisation,device_memory_gb\n")
		nodes := rapid.IntRange(1, 2).Draw(t, "nodes")
		for i := range rapid.IntRange(6, 20).Draw(t, "jobs") {
			replicas := rapid.IntRange(1, 4).Draw(t, "replicas")
			fmt.Fprintf(trace, "j%d,%s,%v,%v,%d,%d,%d,%v,%v,%v\n", i, rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "application"), rapid.Float64Range(0, 300).Draw(t, "submit"), rapid.Float64Range(200, 1500).Draw(t, "duration"),
				replicas, replicas, replicas+rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "more"), rapid.SampledFrom([]float64{0.1, 1, 3}).Draw(t, "weight"),
				rapid.SampledFrom([]string{"", "0.1", "0.4", "0.7", "1"}).Draw(t, "utilisation"), rapid.SampledFrom([]float64{0, 4, 8, 12, 16}).Draw(t, "memory"))
		}
		path := filepath.Join(folder, "trace.csv")
		if err := os.WriteFile(path, []byte(trace.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		model := models[rapid.IntRange(0, len(models)-1).Draw(t, "model")]
		if strings.Contains(model.config, "table") {
			pairs := filepath.Join(folder, "pairs.csv")
			drawPairs(t, pairs)
			model.config = fmt.Sprintf(model.config, pairs)
		}
		pause := rapid.SampledFrom([]int{0, 1, 90}).Draw(t, "pause")
		interval := rapid.SampledFrom([]int{20, 60, 100}).Draw(t, "interval")
		config := fmt.Sprintf(sliced, rapid.IntRange(0, 3).Draw(t, "seed"), rapid.IntRange(1, 3).Draw(t, "owners"), nodes, path, interval, rapid.Bool().Draw(t, "on events"),
			rapid.SampledFrom([]string{"least_used", "random", "none"}).Draw(t, "pairs"), rapid.Bool().Draw(t, "grow"),
			rapid.SampledFrom([]string{"gandiva_affinity", "consolidated", "first_fit"}).Draw(t, "placement"), pause, model.config)
		c, err := quartet.Parse(quartet.Builtins(), "sliced.yaml", config, quartet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		seen := &pairsOf{model: model.is, accelerator: "gpu", slice: 60, pause: float64(pause)}
		c.Observers = append(c.Observers, seen)
		result, err := c.Simulate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kept, parted = kept+seen.kept, parted+seen.parted
		if s := result.Summary; pause < 60 && s.Jobs.Unfinished > 0 || seen.fault != "" {
			t.Fatalf("%s; %+v\n%s\n%s", seen.fault, s.Jobs, config, trace)
		}
	})
	if kept == 0 || parted == 0 {
		t.Errorf("%d looks at pairs that are worth it, %d pairs that were parted: want some of both", kept, parted)
	}
}

// Of a pair that takes turns with others it is seen in several turns that one does not come forward: they are parted, and end.
func TestGandivaPartsAPairThatStandsStillInItsTurns(t *testing.T) {
	t.Parallel()
	for _, pauseSeconds := range []int{0, 1, 30, 59} {
		t.Run(fmt.Sprintf("pause of %d s", pauseSeconds), func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			trace, pairs := filepath.Join(folder, "trace.csv"), filepath.Join(folder, "pairs.csv")
			jobs := "name,application,submit_s,duration_s,replicas\n"
			for i, application := range []string{"a", "b", "a", "b", "c", "c"} {
				jobs += fmt.Sprintf("j%d,%s,0,600,1\n", i, application)
			}
			const rates = `worker_type,job_type,scale_factor,partner_job_type,partner_scale_factor,tput_self,tput_partner
gpu,a,1,,,10,
gpu,b,1,,,10,
gpu,c,1,,,10,
gpu,a,1,a,1,0,0
gpu,a,1,b,1,0,4.9
gpu,b,1,b,1,0,0
gpu,a,1,c,1,0,4.9
gpu,b,1,c,1,0,4.9
gpu,c,1,c,1,0,0
`
			for path, content := range map[string]string{trace: jobs, pairs: rates} {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			config := strings.Replace(fmt.Sprintf(sliced, 0, 2, 1, trace, 60, true, "least_used", false, "first_fit", pauseSeconds, fmt.Sprintf("{model: table, table: %q}", pairs)), "devices: 4", "devices: 1", 1)
			c, err := quartet.Parse(quartet.Builtins(), "still.yaml", config, quartet.Options{})
			if err != nil {
				t.Fatal(err)
			}
			result, err := c.Simulate(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if ended := result.Summary.Jobs.Completed; ended != 6 {
				t.Errorf("%d of 6 jobs ended", ended)
			}
		})
	}
}

// The same on a stream of Gavel's with the pairs that were measured on the V100: both kinds of pairs are tried.
func TestGandivaOnGavelsPairs(t *testing.T) {
	t.Parallel()
	refdata.Path(t, "data", "gavel")
	for _, pairs := range []string{"least_used", "random"} {
		c, err := quartet.Load(quartet.Builtins(), quartet.Options{
			Files: []string{"papers/gandiva-osdi18/gavel-stream.yaml"}, Env: os.LookupEnv,
			Sets: []string{"workload.config.jobs=500", "workload.config.jobs_per_hour=3.2", "output.write=[]", "pipeline.allocation.config.pairs=" + pairs},
		})
		if err != nil {
			t.Fatal(err)
		}
		seen := &pairsOf{model: interference.Table{Unknown: interference.UsualHinge()}, accelerator: "v100", slice: 360, pause: 1}
		c.Observers = append(c.Observers, seen)
		if doortest.Simulate(t, c); seen.fault != "" || seen.kept < 1000 || seen.slow < 20 {
			t.Errorf("%s: %d looks at pairs that are worth it, %d at others; %s", pairs, seen.kept, seen.slow, seen.fault)
		}
	}
}
