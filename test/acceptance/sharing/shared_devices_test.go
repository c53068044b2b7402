package sharing_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// writeParts writes jobs at random, of which most ask for a part of a device for each replica, some for two or three devices, and some for less than they can use.
func writeParts(t *testing.T, seed uint64, pinned bool) (file string, jobs int) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	var rows strings.Builder
	rows.WriteString("name,submit_s,duration_s,replicas,min_replicas,max_replicas,share_milli,pinned\n")
	jobs = 4 + random.IntN(12)
	for i := range jobs {
		replicas, share := 1, ""
		if random.IntN(3) == 0 {
			replicas = 2 + random.IntN(2)
		}
		if random.IntN(4) > 0 {
			share = fmt.Sprint(100 * (1 + random.IntN(10)))
		}
		least, most := replicas, replicas
		if random.IntN(3) == 0 {
			least, most = 1, replicas+1
		}
		fmt.Fprintf(&rows, "job-%d,%d,%d,%d,%d,%d,%s,%v\n", i, random.IntN(600), 60+random.IntN(2000), replicas, least, most, share, pinned && random.IntN(4) == 0)
	}
	file = filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, jobs
}

// Every allocation runs every job to its end on a small cluster, however devices are shared and whoever seats the jobs.
func TestEveryBuiltinBearsSharedDevices(t *testing.T) {
	t.Parallel()
	catalog := quartet.Builtins()
	seed := uint64(0)
	for _, sharing := range []core.Sharing{core.Exclusive, core.Fractional, core.Mig, core.TimeSlice} {
		for _, a := range catalog.Allocation {
			for _, p := range catalog.Placement {
				if len(a.Sharing) > 0 && !slices.Contains(a.Sharing, sharing) || sharing != core.Exclusive && !slices.Contains(p.Sharing, sharing) {
					continue
				}
				for _, replicas := range []string{"requested", "elastic"} {
					seed++
					trace := seed
					t.Run(strings.Join([]string{sharing.String(), a.Type, p.Type, replicas}, "/"), func(t *testing.T) {
						file, jobs := writeParts(t, trace, trace%3 == 0)
						s := doortest.Small()
						s.Cluster.Sharing = sharing.String()
						s.Cluster.CountResources = p.Type == "synergy"
						s.Cluster.Nodes = []quartet.NodeGroup{{Name: "n", Count: 4, Accelerator: "t4", Devices: 1}}
						if trace%2 == 0 {
							s.Cluster.Nodes = []quartet.NodeGroup{{Name: "n", Count: 2, Accelerator: "t4", Devices: 2}, {Name: "m", Count: 1, Accelerator: "v100", Devices: 4}}
						}
						s.Round.OnEvents = trace%4 < 2
						s.Workload = quartet.Part{Type: "csv", Config: map[string]any{"path": file}}
						s.Pipeline.Allocation.Type, s.Pipeline.Placement.Type = a.Type, p.Type
						s.Pipeline.Elasticity.Job = quartet.Policy{Type: "fixed", Config: map[string]any{"replicas": replicas}}
						r := doortest.Simulate(t, doortest.Compose(t, quartet.Builtins(), s))
						if done := r.Summary.Jobs.Completed; done != jobs {
							t.Errorf("%d of %d jobs completed", done, jobs)
						}
					})
				}
			}
		}
	}
}
