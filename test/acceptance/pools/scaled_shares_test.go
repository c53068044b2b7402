package pools_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
)

// sharingPool is a pool of nodes of four devices and 32 CPUs, of which %s says how they are shared.
const sharingPool = `version: 1
name: sharing-pool
cluster:
  %s
  pools: [{name: p, accelerator: t4, devices: 4, cpus: 32, memory_gb: 256, max: %d, price_per_hour: 1}]
workload: {type: csv, config: {path: %q}}
round: {interval: 60s, on_events: true}
pipeline:
  allocation: {type: fifo, config: {queue: all}}
  placement: {type: %s}
  elasticity: {cluster: {type: %s}}
backend: {type: simulator, config: {restart_overhead: 0s, pools: [{pool: p, provisioning: 90s}]}}
output: {write: []}
`

// largest is how many nodes a pool had at most, with those on their way.
type largest struct{ nodes int }

func (o *largest) ObserveRound(r *core.Report) error {
	o.nodes = max(o.nodes, r.View.Cluster.PoolSize("p"))
	return nil
}

// scaleShared runs jobs on a pool, and returns how many of them completed, and how many nodes the pool had at most.
func scaleShared(t interface {
	Helper()
	Fatal(args ...any)
}, run *testing.T, folder, cluster string, most int, placer, scaler, trace string,
) (completed, nodes int) {
	t.Helper()
	file := filepath.Join(folder, "jobs.csv")
	if err := os.WriteFile(file, []byte(trace), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := quartet.Parse(quartet.Builtins(), "pool.yaml", fmt.Sprintf(sharingPool, cluster, most, file, placer, scaler), quartet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := &largest{}
	c.Observers = append(c.Observers, seen)
	r, err := c.Simulate(run.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r.Summary.Jobs.Completed, seen.nodes
}

const sharedHeader = "name,submit_s,duration_s,replicas,share_milli,cpus,memory_gb,device_memory_gb,mig_profile\n"

// A pool gets the nodes that jobs need, by whatever they run out of first: devices, parts of them, CPUs or memory.
func TestScalersCountWhatJobsShare(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cluster string
		jobs    int
		row     string // replicas and what follows
		placer  string
		want    int // nodes, by the scaler queue
	}{
		"whole devices":                  {"count_resources: true", 8, "1,,,,,", "best_fit", 2},
		"whole devices, gangs":           {"count_resources: true", 2, "4,,,,,", "best_fit", 2},
		"ten times as many":              {"count_resources: true", 80, "1,,,,,", "best_fit", 20},
		"CPUs run out first":             {"count_resources: true", 8, "1,,16,,,", "best_fit", 4},
		"twice the CPUs":                 {"count_resources: true", 8, "1,,32,,,", "best_fit", 8},
		"CPUs that leave some":           {"count_resources: true", 8, "1,,12,,,", "best_fit", 4},
		"memory runs out first":          {"count_resources: true", 8, "1,,,128,,", "best_fit", 4},
		"CPUs and memory as devices":     {"count_resources: true", 8, "1,,8,64,,", "best_fit", 2},
		"half devices":                   {"sharing: fractional", 16, "1,500,,,,", "fgd", 2},
		"half devices, CPUs not counted": {"sharing: fractional", 16, "1,500,32,,,", "fgd", 2},
		"more than half":                 {"sharing: fractional", 16, "1,501,,,,", "fgd", 4},
		"tenths":                         {"sharing: fractional", 80, "1,100,,,,", "fgd", 2},
		"thousandths":                    {"sharing: fractional", 80, "1,1,,,,", "fgd", 1},
		"two halves":                     {"sharing: fractional", 8, "2,500,,,,", "fgd", 2},
		"halves on eight devices":        {"sharing: fractional", 1, "8,500,,,,", "fgd", 2},
		"halves that want CPUs":          {"sharing: fractional; count_resources: true", 16, "1,500,8,,,", "fgd", 4},
		"CPUs alone":                     {"sharing: fractional; count_resources: true", 16, "1,0,4,,,", "fgd", 2},
		"nothing":                        {"sharing: fractional; count_resources: true", 16, "1,0,,,,", "fgd", 1},
		"slices, two of seven":           {"sharing: mig", 24, "1,200,,,,2g", "fgd", 2},
		"slices, one of seven":           {"sharing: mig", 56, "1,100,,,,1g", "fgd", 2},
		"slices, three of seven":         {"sharing: mig", 16, "1,400,,,,3g", "fgd", 2},
		"whole slices":                   {"sharing: mig", 8, "1,1000,,,,7g", "fgd", 2},
		"turns":                          {"sharing: timeslice", 8, "1,,,,,", "first_fit", 2},
		"beside a node without CPUs": {
			"count_resources: true; nodes: [{name: poor, count: 1, accelerator: t4, devices: 4, cpus: 2}]", 8, "1,,4,,,", "best_fit", 2,
		},
		"beside a node with few": {
			"count_resources: true; nodes: [{name: poor, count: 1, accelerator: t4, devices: 4, cpus: 8}]", 8, "1,,8,,,", "best_fit", 2,
		},
		"beside a node with enough": {
			"count_resources: true; nodes: [{name: rich, count: 2, accelerator: t4, devices: 4, cpus: 64}]", 8, "1,,8,,,", "best_fit", 0,
		},
	} {
		cluster := strings.ReplaceAll(tc.cluster, "; ", "\n  ")
		trace := &strings.Builder{}
		trace.WriteString(sharedHeader)
		for i := range tc.jobs {
			fmt.Fprintf(trace, "j%d,0,3600,%s\n", i, tc.row)
		}
		for _, scaler := range []string{"queue", "goodput", "throughput", "marginal"} {
			t.Run(name+"/"+scaler, func(t *testing.T) {
				t.Parallel()
				done, nodes := scaleShared(t, t, t.TempDir(), cluster, 40, tc.placer, scaler, trace.String())
				if done != tc.jobs {
					t.Errorf("%d of %d jobs completed", done, tc.jobs)
				}
				if scaler == "queue" && nodes != tc.want {
					t.Errorf("the pool had %d nodes, want %d", nodes, tc.want)
				}
				if scaler != "queue" && nodes > 2*tc.want+1 {
					t.Errorf("the pool had %d nodes, and %d hold all jobs", nodes, tc.want)
				}
			})
		}
	}
}

// Whatever jobs share and ask for, all of them end on a pool, and the pool has no fewer nodes than their devices, their CPUs or their memory take, up to its most, and not
// many more than all of that.
func TestPoolsOfSharedNodesAreNeitherShortNorLarge(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		milli := rapid.SampledFrom([]int{0, 1, 10, 100, 300, 500, 600, 1000})
		cpus, memory := rapid.SampledFrom([]float64{0, 0.5, 3, 8, 17, 32}), rapid.SampledFrom([]float64{0, 1, 30, 64, 200})
		scaler := rapid.SampledFrom([]string{"queue", "queue", "goodput", "throughput", "marginal"}).Draw(r, "scaler")
		sharing := rapid.SampledFrom([]string{"none", "fractional", "mig"}).Draw(r, "sharing")
		counts := rapid.Bool().Draw(r, "counts")
		most := rapid.IntRange(2, 30).Draw(r, "most")
		jobs := rapid.IntRange(1, 40).Draw(r, "jobs")
		trace, held, widest := sharedHeader, 0, 0
		var devices, cores, gigabytes, together float64 // in nodes
		for i := range jobs {
			replicas := rapid.SampledFrom([]int{1, 1, 1, 2, 4}).Draw(r, "replicas")
			share, c, m := milli.Draw(r, "share"), cpus.Draw(r, "cpus"), memory.Draw(r, "memory")
			asked := [2]float64{c, m}
			part := float64(share) / 4000 // a slice has as much at least
			if sharing == "none" {
				part = 0.25
			}
			if !counts {
				c, m = 0, 0
			}
			seats := 4.0
			if c > 0 {
				seats = min(seats, math.Floor(32/c))
			}
			if m > 0 {
				seats = min(seats, math.Floor(256/m))
			}
			n := float64(replicas)
			if n > seats*float64(most) {
				continue // a list with such a job is refused
			}
			trace += fmt.Sprintf("j%d,0,3600,%d,%d,%v,%v,,\n", i, replicas, share, asked[0], asked[1])
			held++
			devices, cores, gigabytes = devices+n*part, cores+n*c/32, gigabytes+n*m/256
			together += n * max(part, c/32, m/256)
			widest = max(widest, replicas)
		}
		if held == 0 {
			r.Skip("no job fits")
		}
		done, nodes := scaleShared(r, t, folder, fmt.Sprintf("sharing: %s\n  count_resources: %v", sharing, counts), most, "best_fit", scaler, trace)
		if done != held {
			r.Fatalf("%d of %d jobs completed", done, held)
		}
		if scaler != "queue" {
			return
		}
		if least := math.Ceil(max(devices, cores, gigabytes) - 1e-6); float64(nodes) < min(float64(most), least) {
			r.Fatalf("the pool has %d nodes, and jobs take %v", nodes, least)
		}
		if enough := max(2*math.Ceil(together)+1, float64(widest)); float64(nodes) > enough && sharing != "mig" {
			r.Fatalf("the pool has %d nodes, and jobs take some %v", nodes, together)
		}
	})
}
