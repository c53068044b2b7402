package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
)

// world is a cluster with jobs, and what seats them.
type world struct {
	name, what  string
	config      string // without round and pipeline
	round       string
	placement   string
	elasticity  string
	wide        float64 // devices from which on a job is wide
	allocations []string
}

const strict = "{type: consolidated, config: {strict: true}}"

// worlds are those that are measured.
func worlds() []*world {
	plain := plainAllocations()
	return []*world{
		twoTypes("two-types", 1, strict, plain),
		twoTypes("two-types-seed-2", 2, strict, plain),
		twoTypes("two-types-spread", 1, "{type: consolidated}", plain),
		{
			name: "wl6", what: "Pollux workload 6 on 16 nodes of four devices, jobs on the fewest nodes", wide: 4, round: "interval: 60s", placement: strict, allocations: allAllocations(),
			config: header("wl6", "{nodes: [{name: t4, count: 16, accelerator: t4, devices: 4}]}",
				`{type: pollux, config: {path: "${QUARTET_DATA}/data/pollux-osdi21/workloads/workload-6.csv", profiles: "${QUARTET_DATA}/data/pollux-osdi21"}}`),
		},
		{
			name: "wl6-elastic", what: "the same, where elastic jobs run on fewer and on more devices", wide: 4, round: "interval: 60s", placement: strict,
			elasticity: ", elasticity: {job: {type: fixed, config: {replicas: elastic}}}", allocations: []string{"elastic_dp", "elastic_fifo", "elastic_srtf", "elastic_tiresias", "elasticflow", "optimus", "afs", "edf", "pollux", "gpu_fraction"},
			config: header("wl6", "{nodes: [{name: t4, count: 16, accelerator: t4, devices: 4}]}",
				`{type: pollux, config: {path: "${QUARTET_DATA}/data/pollux-osdi21/workloads/workload-6.csv", profiles: "${QUARTET_DATA}/data/pollux-osdi21"}}`),
		},
		openb("openb", "{type: best_fit}"),
		philly("philly", 0, 90),
		philly("philly-20000", 20000, 60),
		philly("philly-30000", 30000, 60),
		philly("philly-40000", 40000, 60),
		philly("philly-70000", 70000, 60),
	}
}

func header(name, cluster, workload string) string {
	return "version: 1\nname: " + name + "\ncluster: " + cluster + "\nworkload: " + workload + "\noutput: {write: []}\n"
}

// plainAllocations are those that need nothing but jobs of known work.
func plainAllocations() []string {
	return append([]string{"fifo backfill", "srtf kept"}, allAllocations()...)
}

func allAllocations() (list []string) {
	for _, f := range quartet.Builtins().Allocation {
		if len(f.Sharing) > 0 && !slices.Contains(f.Sharing, core.Exclusive) || f.Type == "lucid" || f.Type == "gandiva" || f.Type == "muri" || strings.HasSuffix(f.Type, "_packed") {
			continue // they need a cluster that shares devices
		}
		list = append(list, f.Type)
	}
	return list
}

// twoTypes is 400 jobs of one to eight devices on eight nodes of four devices of each of two types, of which some ask for a type.
func twoTypes(name string, seed uint64, placement string, allocations []string) *world {
	r := core.NewRand(seed, "two-types")
	var b strings.Builder
	b.WriteString("name,submit_s,duration_s,replicas,accelerators\n")
	at := 0.0
	for i := range 400 {
		at += -math.Log(1-r.Float64()) * 100
		duration := 60 + math.Exp(math.Log(1200)+1.2*r.NormFloat64())
		replicas := []int{1, 1, 1, 1, 2, 2, 2, 4, 4, 8}[r.IntN(10)]
		on := []string{"", "", "a", "a", "b"}[r.IntN(5)]
		fmt.Fprintf(&b, "j%d,%.0f,%.0f,%d,%s\n", i, at, min(duration, 36000), replicas, on)
	}
	path := filepath.Join(os.TempDir(), "quartet-"+name+".csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		panic(err)
	}
	return &world{
		name: name, what: "400 jobs of 1 to 8 devices, on 8 nodes of 4 devices of each of two types; three of five jobs ask for a type", wide: 4, round: "interval: 60s",
		placement: placement, allocations: allocations,
		config: header(name, "{nodes: [{name: a, count: 8, accelerator: a, devices: 4}, {name: b, count: 8, accelerator: b, devices: 4}]}", fmt.Sprintf("{type: csv, config: {path: %q}}", path)),
	}
}

func openb(name, placement string) *world {
	return &world{
		name: name, what: "the tasks of openb with their parts of devices, CPUs and memory, on a tenth of its nodes, as in the study fragments", wide: 2,
		round: "interval: 0s, on_events: true", placement: placement, allocations: []string{"fifo backfill", "srtf", "srtf kept", "las", "tiresias", "drf", "tetris", "ftf", "edf"},
		config: header(name, `{sharing: fractional, count_resources: true, nodes: [
 {name: g2, count: 55, accelerator: G2, devices: 8, cpus: 96, memory_gb: 384}, {name: g3, count: 4, accelerator: G3, devices: 8, cpus: 128, memory_gb: 768},
 {name: p100-c, count: 11, accelerator: P100, devices: 2, cpus: 16, memory_gb: 120}, {name: p100-d, count: 2, accelerator: P100, devices: 2, cpus: 64, memory_gb: 256},
 {name: t4-a, count: 39, accelerator: T4, devices: 2, cpus: 104, memory_gb: 512}, {name: t4-b, count: 2, accelerator: T4, devices: 4, cpus: 96, memory_gb: 384},
 {name: v100m16-a, count: 2, accelerator: V100M16, devices: 1, cpus: 8, memory_gb: 32}, {name: v100m16-b, count: 3, accelerator: V100M16, devices: 4, cpus: 32, memory_gb: 128},
 {name: v100m16-c, count: 1, accelerator: V100M16, devices: 8, cpus: 64, memory_gb: 256}, {name: v100m32-a, count: 1, accelerator: V100M32, devices: 4, cpus: 48, memory_gb: 368},
 {name: v100m32-b, count: 2, accelerator: V100M32, devices: 8, cpus: 96, memory_gb: 768}]}`,
			`{type: openb, config: {path: "${QUARTET_DATA}/data/alibaba-openb-2023/openb_pod_list_default.csv.gz", shares: true}}`+
				"\nsample: {window: {from: 2760h, span: 816h}, load: {factor: 120, by: compression}}\nbackend: {type: simulator, config: {restart_overhead: 0s}}"),
	}
}

// philly is 10,000 jobs of Philly from a rank on.
func philly(name string, first, nodes int) *world {
	return &world{
		name: name, what: fmt.Sprintf("10,000 jobs of Philly from rank %d on, on %d nodes of eight devices, jobs on the fewest nodes", first, nodes), wide: 8, round: "interval: 300s",
		placement: strict, allocations: []string{"fifo backfill", "las"},
		config: header(name, fmt.Sprintf("{nodes: [{name: gpu, count: %d, accelerator: p100, devices: 8}]}", nodes),
			fmt.Sprintf(`{type: philly, config: {path: "${QUARTET_DATA}/data/pollux-osdi21/philly.csv.gz"}}`+"\nsample: {window: {first_job: %d, jobs: 10000}}", first)),
	}
}
