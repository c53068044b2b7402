package publications

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/internal/refdata"
)

const matchingMarket = "matching-tpds24/matching.yaml"

// TestMatchingBeatsItsBaselines holds the order of docs/results on fewer workloads.
func TestMatchingBeatsItsBaselines(t *testing.T) {
	seconds := func(config string, sets ...string) float64 {
		sum := 0.0
		for _, seed := range []string{"1", "2", "3"} {
			summary, _ := simulated(t, config, append([]string{"seed=" + seed, "workload.config.jobs=150"}, sets...)...)
			if summary.Jobs.Completed != 150 {
				t.Fatalf("%s: %d jobs completed, want 150", config, summary.Jobs.Completed)
			}
			sum += float64(summary.JCTSeconds.Mean)
		}
		return sum / 3
	}
	market := seconds(matchingMarket)
	for _, baseline := range []string{"even-split", "type-blind", "raw-rate"} {
		if got := seconds("matching-tpds24/" + baseline + ".yaml"); got < 1.03*market {
			t.Errorf("%s: mean JCT %.0f s, the matching market's %.0f s", baseline, got, market)
		}
	}
	sizes := seconds("matching-tpds24/optimus-matching.yaml")
	if got := seconds("matching-tpds24/optimus.yaml"); got < 1.03*sizes {
		t.Errorf("optimus: mean JCT %.0f s, with the market as placement %.0f s", got, sizes)
	}
}

// TestMatchingIsNearSia holds the market to 2 % of Sia's allocation of the same jobs, at fewer restarts than two a job.
func TestMatchingIsNearSia(t *testing.T) {
	market, sia, restarts := 0.0, 0.0, 0.0
	for seed := 4; seed <= 10; seed++ {
		at := fmt.Sprintf("seed=%d", seed)
		ours, _ := simulated(t, matchingMarket, at)
		theirs, _ := simulated(t, matchingMarket, at, "pipeline.allocation={type: sia}")
		market, sia = market+float64(ours.JCTSeconds.Mean), sia+float64(theirs.JCTSeconds.Mean)
		restarts += float64(ours.Restarts.Mean) / 7
	}
	if got := market/sia - 1; got > 0.02 || restarts > 2 {
		t.Errorf("mean JCT %+.2f %% against sia with %.2f restarts a job, want at most +2 %% and 2", 100*got, restarts)
	}
}

// TestSampledMarketIsNearTheExactOptimum compares whole runs in which every round is solved either way.
func TestSampledMarketIsNearTheExactOptimum(t *testing.T) {
	exact, _ := simulated(t, "matching-tpds24/exact.yaml")
	sampled, _ := simulated(t, "matching-tpds24/exact.yaml", "pipeline.allocation.config.search=sampled")
	if got, want := float64(sampled.JCTSeconds.Mean), float64(exact.JCTSeconds.Mean); math.Abs(got/want-1) > 0.02 {
		t.Errorf("mean JCT %v s, exactly solved %v s", got, want)
	}
}

// TestMatchingRunsOnTheMixOfOpenB: one in fifty devices of each type, to whole nodes, and one A10.
func TestMatchingRunsOnTheMixOfOpenB(t *testing.T) {
	f, err := os.Open(refdata.Path(t, "data", "alibaba-openb-2023", "openb_node_list_gpu_node.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(content).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]int{}
	for _, record := range records[1:] { // sn, cpu_milli, memory_mib, gpu, model
		devices, err := strconv.Atoi(record[3])
		if err != nil {
			t.Fatal(err)
		}
		published[record[4]] += devices
	}
	c, err := quartet.Load(quartet.Builtins(), quartet.Options{Files: []string{"papers/" + matchingMarket}, Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	cluster := c.Config.BuildCluster()
	ours, node := map[string]int{}, map[string]int{}
	for _, n := range cluster.Nodes {
		ours[cluster.Accelerators[n.Accelerator]] += n.Devices
		node[cluster.Accelerators[n.Accelerator]] = n.Devices
	}
	if len(ours) != len(published) {
		t.Errorf("%d types, want %d", len(ours), len(published))
	}
	for model, devices := range published {
		if math.Abs(float64(ours[model])-float64(devices)/50) > float64(node[model])/2 && model != "A10" {
			t.Errorf("%d devices of %s, want one in fifty of %d", ours[model], model, devices)
		}
	}
}
