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
	"github.com/quartet-sched/quartet/internal/doortest"
)

// slowest keeps the least part of its speed alone that each job was told to have. Jobs of known duration do a second's work in one, alone.
type slowest struct {
	part  map[core.JobID]float64
	specs map[core.JobID]*core.JobSpec
}

func newSlowest() *slowest { return &slowest{map[core.JobID]float64{}, map[core.JobID]*core.JobSpec{}} }

func (o *slowest) ObserveRound(r *core.Report) error {
	for i := range r.Events {
		switch e := &r.Events[i]; {
		case e.Kind == core.JobSubmitted:
			o.specs[e.Job] = e.Spec
		case e.Kind == core.JobProgressed && e.Rate > 0:
			if part, seen := o.part[e.Job]; !seen || e.Rate < part {
				o.part[e.Job] = e.Rate
			}
		}
	}
	return nil
}

// simulateSlowest runs a config, and tells how slow each job was at its slowest.
func simulateSlowest(t *rapid.T, name, config string) (*quartet.Result, *slowest) {
	t.Helper()
	c, err := quartet.Parse(quartet.Builtins(), name, config, quartet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := newSlowest()
	c.Observers = append(c.Observers, seen)
	result, err := c.Simulate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return result, seen
}

// beyond is how much more of its speed alone a job lost than it tolerates, of the one that lost most, and how many lost some.
func (o *slowest) beyond(otherwise float64) (most float64, slowed int) {
	for id, part := range o.part {
		tolerance := o.specs[id].SlowdownTolerance
		if tolerance == 0 {
			tolerance = otherwise
		}
		if part < 1 {
			slowed++
		}
		most = max(most, 1-part-tolerance)
	}
	return most, slowed
}

const rounding = 1e-9

// The figures of docs/results/sharing.md at load 1.2: no job loses more of its speed than it tolerates, and jobs wait less than half as long as
// with devices of their own, whether jobs pass one that does not fit or wait behind it.
func TestPackingHalvesQueueing(t *testing.T) {
	t.Parallel()
	waits := map[string]float64{}
	for seed := 1; seed <= 3; seed++ {
		for name, set := range map[string]string{
			"tolerant": "", "exclusive": "pipeline.allocation.config={sharing: false, queue: backfill}", "blocking": "pipeline.allocation.config={sharing: false, queue: blocking}",
			"full": "pipeline.allocation.config.pack=full",
		} {
			sets := []string{fmt.Sprintf("seed=%d", seed), "sample.load.factor=1.2", "output.write=[]"}
			if set != "" {
				sets = append(sets, set)
			}
			c, err := quartet.Load(quartet.Builtins(), quartet.Options{Files: []string{"papers/lucid-asplos23/tolerant.yaml"}, Sets: sets})
			if err != nil {
				t.Fatal(err)
			}
			seen := newSlowest()
			c.Observers = append(c.Observers, seen)
			s := doortest.Simulate(t, c).Summary
			waits[name] += float64(s.QueueingSeconds.Mean)
			most, slowed := seen.beyond(0)
			if most > rounding {
				t.Errorf("%s, seed %d: a job loses %v more of its speed than it tolerates", name, seed, most)
			}
			if packs := set == "" || name == "full"; packs && slowed < 100 || !packs && slowed > 0 {
				t.Errorf("%s, seed %d: %d jobs lose some of their speed", name, seed, slowed)
			}
		}
	}
	for _, packed := range []string{"tolerant", "full"} {
		for _, alone := range []string{"exclusive", "blocking"} {
			if waits[packed] > waits[alone]/2 {
				t.Errorf("%s: jobs wait %.0f s, and %.0f s when %s", packed, waits[packed]/3, waits[alone]/3, alone)
			}
		}
	}
}

const packed = `version: 1
name: packed
cluster:
  sharing: timeslice
  max_owners: %d
  nodes: [{name: n, count: %d, accelerator: gpu, devices: 4, device_memory_gb: 16}]
workload: {type: csv, config: {path: %q}}
estimate: {source: noisy, sigma: %v}
round: {interval: %s, on_events: true}
pipeline:
  allocation: {type: lucid, config: {pack: %s, tolerance: %v, label_sum: %d}}
  placement: {type: %s}
backend: {type: simulator, config: {restart_overhead: %s, co_location: {model: hinge}}}
output: {write: []}
`

// Whatever jobs come, none is slowed down by more than it tolerates, and all end.
func TestNobodyIsSlowedDownByMoreThanHeTolerates(t *testing.T) {
	t.Parallel()
	folder, together := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		trace := &strings.Builder{}
		trace.WriteString("name,submit_s,duration_s,replicas,utilisation,slowdown_tolerance,device_memory_gb\n")
		nodes := rapid.IntRange(1, 2).Draw(t, "nodes")
		for i := range rapid.IntRange(1, 25).Draw(t, "jobs") {
			fmt.Fprintf(trace, "j%d,%v,%v,%d,%v,%v,%v\n", i, rapid.Float64Range(0, 300).Draw(t, "submit"), rapid.Float64Range(1, 3000).Draw(t, "duration"),
				rapid.IntRange(1, 4).Draw(t, "replicas"), rapid.SampledFrom([]string{"", "0.1", "0.4", "0.5", "0.7", "0.9", "1"}).Draw(t, "utilisation"),
				rapid.SampledFrom([]string{"", "", "0.05", "0.2", "1"}).Draw(t, "tolerance"), rapid.SampledFrom([]float64{0, 4, 8, 12, 16}).Draw(t, "memory"))
		}
		path := filepath.Join(folder, "trace.csv")
		if err := os.WriteFile(path, []byte(trace.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		otherwise := rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(t, "otherwise")
		config := fmt.Sprintf(packed, rapid.IntRange(1, 3).Draw(t, "owners"), nodes, path, rapid.SampledFrom([]float64{0, 1}).Draw(t, "sigma"),
			rapid.SampledFrom([]string{"10s", "60s"}).Draw(t, "interval"), rapid.SampledFrom([]string{"first", "full"}).Draw(t, "pack"), otherwise,
			rapid.IntRange(0, 4).Draw(t, "labels"), rapid.SampledFrom([]string{"consolidated", "first_fit", "most_free"}).Draw(t, "placement"), rapid.SampledFrom([]string{"0s", "90s"}).Draw(t, "overhead"))
		result, seen := simulateSlowest(t, "packed.yaml", config)
		most, slowed := seen.beyond(otherwise)
		together += slowed
		if s := result.Summary; most > rounding || s.Jobs.Unfinished > 0 || s.Preemptions > 0 {
			t.Fatalf("a job loses %v more than it tolerates; %+v\n%s\n%s", most, s.Jobs, config, trace)
		}
	})
	if together == 0 {
		t.Error("nobody was slowed down")
	}
}
