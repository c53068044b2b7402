package promises_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// picky are jobs of which a type of the cluster below holds none, or not all replicas: for want of CPUs, of memory, or of nodes for a gang. Job least
// suits everywhere, but its wider gangs do not.
const picky = `name,submit_s,duration_s,replicas,min_replicas,max_replicas,cpus,memory_gb
cpus,0,600,1,1,1,8,0
memory,0,600,1,1,1,0,100
gang,60,600,6,6,6,2,0
both,60,600,4,4,4,9,90
plain,120,600,2,2,2,0,0
least,120,600,2,1,8,1,1
wide,120,600,8,1,8,3,1
again,3000,600,1,1,1,8,0
`

// large are jobs that need the memory of the larger devices, alone and in gangs, beside some that need little.
const large = `name,submit_s,duration_s,replicas,min_replicas,max_replicas,device_memory_gb,load_s,compute_s
one,0,600,1,1,1,30,0.1,1
gang,0,600,4,4,4,30,0.1,1
small,0,600,2,2,2,4,1,0.1
any,60,600,2,1,8,0,0.1,1
later,120,600,1,1,1,40,1,0.1
small again,180,600,1,1,1,4,0.1,1
again,3000,600,1,1,1,30,1,0.1
`

// TestNobodyWaitsForATypeThatCannotHoldHim holds that nobody waits for ever for devices of a type whose nodes cannot hold him, whoever decides and whichever
// type comes first.
func TestNobodyWaitsForATypeThatCannotHoldHim(t *testing.T) {
	catalog := quartet.Builtins()
	poor := quartet.NodeGroup{Name: "poor", Count: 2, Devices: 4, CPUs: 4, MemoryGB: 64, DeviceMemoryGB: 16}
	rich := quartet.NodeGroup{Name: "rich", Count: 2, Devices: 4, CPUs: 64, MemoryGB: 512, DeviceMemoryGB: 40}
	for what, tc := range map[string]struct {
		jobs    string
		sharing core.Sharing
		counts  bool
	}{
		"CPUs and memory": {picky, core.Exclusive, true},
		"device memory":   {large, core.TimeSlice, false},
	} {
		file := filepath.Join(t.TempDir(), "jobs.csv")
		if err := os.WriteFile(file, []byte(tc.jobs), 0o600); err != nil {
			t.Fatal(err)
		}
		placer := catalog.Placement[slices.IndexFunc(catalog.Placement, func(p core.Factory[core.Placer]) bool {
			return (p.Counts && !p.Divides || !tc.counts) && (tc.sharing == core.Exclusive || slices.Contains(p.Sharing, tc.sharing))
		})].Type
		for _, a := range catalog.Allocation {
			if len(a.Sharing) > 0 && !slices.Contains(a.Sharing, tc.sharing) {
				continue // it needs placements that have several share a device, which count no CPUs
			}
			for _, types := range [][2]string{{"a100", "v100"}, {"v100", "a100"}} {
				for _, replicas := range []string{"requested", "elastic"} {
					t.Run(strings.Join([]string{what, a.Type, "poor " + types[0], replicas}, "/"), func(t *testing.T) {
						s := doortest.Small()
						poor, rich := poor, rich
						poor.Accelerator, rich.Accelerator = types[0], types[1]
						s.Cluster.Nodes = []quartet.NodeGroup{poor, rich}
						s.Cluster.CountResources, s.Cluster.Sharing = tc.counts, tc.sharing.String()
						s.Workload = quartet.Part{Type: "csv", Config: map[string]any{"path": file}}
						s.Pipeline.Allocation.Type, s.Pipeline.Placement.Type = a.Type, placer
						s.Pipeline.Elasticity.Job = quartet.Policy{Type: "fixed", Config: map[string]any{"replicas": replicas}}
						r := doortest.Simulate(t, doortest.Compose(t, catalog, s))
						if want := strings.Count(tc.jobs, "\n") - 1; r.Summary.Jobs.Completed != want {
							t.Errorf("%d of %d jobs completed; unfinished %v", r.Summary.Jobs.Completed, want, r.Unfinished)
						}
					})
				}
			}
		}
	}
}

// TestScalersGrowAPoolThatHolds holds that a scaler asks for nodes which can hold who waits, though those of a cheaper pool cannot.
func TestScalersGrowAPoolThatHolds(t *testing.T) {
	catalog := quartet.Builtins()
	poor := configs.Pool{Name: "poor", Devices: 4, Max: 4, CPUs: 4, MemoryGB: 64, DeviceMemoryGB: 16, PricePerHour: 1}
	rich := configs.Pool{Name: "rich", Devices: 4, Max: 2, CPUs: 64, MemoryGB: 512, DeviceMemoryGB: 40, PricePerHour: 9}
	for what, tc := range map[string]struct {
		jobs    string
		sharing core.Sharing
		placer  string
	}{
		"CPUs and memory": {picky, core.Exclusive, "best_fit"},
		"device memory":   {large, core.TimeSlice, "first_fit"},
	} {
		file := filepath.Join(t.TempDir(), "jobs.csv")
		if err := os.WriteFile(file, []byte(tc.jobs), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, scaler := range catalog.Scaler {
			if scaler.Type == "none" {
				continue
			}
			for _, types := range [][2]string{{"a100", "v100"}, {"v100", "a100"}} {
				t.Run(strings.Join([]string{what, scaler.Type, "poor " + types[0]}, "/"), func(t *testing.T) {
					s := doortest.Small()
					poor, rich := poor, rich
					poor.Accelerator, rich.Accelerator = types[0], types[1]
					s.Cluster.Nodes, s.Cluster.Pools = nil, []configs.Pool{poor, rich}
					s.Cluster.CountResources, s.Cluster.Sharing = tc.sharing == core.Exclusive, tc.sharing.String()
					s.Workload = quartet.Part{Type: "csv", Config: map[string]any{"path": file}}
					s.Round = quartet.Round{Interval: time.Minute, OnEvents: true}
					s.Pipeline.Placement.Type, s.Pipeline.Elasticity.Cluster.Type = tc.placer, scaler.Type
					r := doortest.Simulate(t, doortest.Compose(t, catalog, s))
					if want := strings.Count(tc.jobs, "\n") - 1; r.Summary.Jobs.Completed != want {
						t.Errorf("%d of %d jobs completed; unfinished %v", r.Summary.Jobs.Completed, want, r.Unfinished)
					}
				})
			}
		}
	}
}

// Promises are kept where only some types hold a job's CPUs: no device of another type is counted on. CPUs are enough for all devices of a type that holds it.
func TestNoPromiseCountsOnATypeThatCannotHold(t *testing.T) {
	t.Parallel()
	config := strings.NewReplacer("{nodes: [%s]}", "{count_resources: true, nodes: [%s]}", "first_fit", "best_fit").Replace(promising)
	folder := t.TempDir()
	met, asked := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		nodes, most := "", 0
		for i, name := range []string{"t4", "v100"} {
			devices := rapid.IntRange(1, 8).Draw(t, "devices") // on one node: best_fit seats nobody on two
			nodes += fmt.Sprintf("{name: n%d, accelerator: %s, devices: %d, cpus: %d}, ", i, name, devices, []int{1, 9}[i]*devices)
			if most == 0 || devices < most {
				most = devices
			}
		}
		trace := dueHeader + ",cpus\n"
		for i := range rapid.IntRange(1, 25).Draw(t, "jobs") {
			trace += drawDue(t, i, most) + "," + rapid.SampledFrom([]string{"0", "1", "9"}).Draw(t, "CPUs") + "\n"
		}
		d := keepsPromisesOf(t, folder, config, nodes, trace, "0s", "17s", "160s")
		if d != nil {
			met, asked = met+d.Met, asked+d.Met+d.Missed+d.Declined
		}
	})
	if met*10 < asked {
		t.Errorf("%d promises met, of %d deadlines", met, asked)
	}
}
