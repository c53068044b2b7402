package sharing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// settled counts what is done to one job after its first start, and whether it started at all.
type settled struct {
	job     string
	started bool
	changes []string
}

func (s *settled) ObserveRound(r *core.Report) error {
	for _, c := range r.Changes {
		j := r.View.Job(c.Job)
		if j == nil || j.Name != s.job || c.Action == core.Tune {
			continue
		}
		if s.started {
			s.changes = append(s.changes, fmt.Sprintf("%v at %v s", c.Action, r.View.NowSeconds))
		}
		s.started = true
	}
	return nil
}

// crowd writes 20 elastic jobs for eight devices. The first is long, so that most policies would take its devices for others.
func crowd(t *testing.T, pinned bool) string {
	t.Helper()
	var rows strings.Builder
	rows.WriteString("name,submit_s,duration_s,replicas,min_replicas,max_replicas,pinned\n")
	fmt.Fprintf(&rows, "long,0,9000,3,1,6,%v\n", pinned)
	for i := range 19 {
		fmt.Fprintf(&rows, "short-%d,%d,%d,%d,1,%d,false\n", i, 600+60*i, 300+97*i%600, 1+i%3, 2+i%3)
	}
	file := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// simulateCrowd runs the crowd under two policies, on devices that are shared if a way is given, and tells what came of the long job.
func simulateCrowd(t *testing.T, file, allocator, placer, replicas string, sharing ...core.Sharing) (*quartet.Result, *settled) {
	t.Helper()
	s := doortest.Small()
	s.Cluster.Nodes = []quartet.NodeGroup{{Name: "n", Count: 2, Accelerator: "t4", Devices: 4}}
	s.Workload = quartet.Part{Type: "csv", Config: map[string]any{"path": file}}
	s.Pipeline.Allocation.Type, s.Pipeline.Placement.Type = allocator, placer
	s.Cluster.CountResources = placer == "synergy" // which divides them
	if allocator == "tiresias" {
		s.Pipeline.Allocation.Config = map[string]any{"thresholds": []any{1000}} // that the long job passes while others wait
	}
	s.Pipeline.Elasticity.Job = quartet.Policy{Type: "fixed", Config: map[string]any{"replicas": replicas}}
	if len(sharing) > 0 {
		s.Cluster.Sharing = sharing[0].String()
	}
	c := doortest.Compose(t, quartet.Builtins(), s)
	seen := &settled{job: "long"}
	c.Observers = append(c.Observers, seen)
	return doortest.Simulate(t, c), seen
}

// A pinned job among others runs to its end on the devices that it got first, whoever decides.
func TestEveryBuiltinLeavesAPinnedJobWhereItIs(t *testing.T) {
	catalog := quartet.Builtins()
	file := crowd(t, true)
	for _, a := range catalog.Allocation {
		for _, p := range catalog.Placement {
			if len(a.Sharing) > 0 && !slices.Contains(p.Sharing, a.Sharing[0]) {
				continue
			}
			for _, replicas := range []string{"requested", "elastic"} {
				t.Run(a.Type+"/"+p.Type+"/"+replicas, func(t *testing.T) {
					r, seen := simulateCrowd(t, file, a.Type, p.Type, replicas, a.Sharing...)
					if len(r.Unfinished) > 0 || r.Summary.Jobs.Completed != 20 {
						t.Errorf("%d of 20 jobs completed", r.Summary.Jobs.Completed)
					}
					if !seen.started || len(seen.changes) > 0 {
						t.Errorf("the pinned job started: %v, and then: %v", seen.started, seen.changes)
					}
				})
			}
		}
	}
}

// The test above would see it: without its pin, the same job loses devices under policies of each kind.
func TestWithoutItsPinAJobIsDisturbed(t *testing.T) {
	file := crowd(t, false)
	for allocator, placer := range map[string]string{
		"las": "first_fit", "srtf": "consolidated", "afs": "most_free", "optimus": "proposed", "pollux": "proposed", "tiresias": "tail_eviction",
	} {
		t.Run(allocator, func(t *testing.T) {
			if _, seen := simulateCrowd(t, file, allocator, placer, "elastic"); len(seen.changes) == 0 {
				t.Error("nothing is done to the long job")
			}
		})
	}
}
