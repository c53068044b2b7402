package placement

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// counted is nodes with four devices, of which the CPUs and the memory are counted: 2 CPUs and 10 GB for each device of the first, and as much as a test says of the second.
func counted(cpus ...float64) *core.Cluster {
	c := coretest.MakeCluster().Nodes(len(cpus), "t4", 4).Obj()
	c.CountsResources = true
	for i := range c.Nodes {
		c.Nodes[i].CPUs, c.Nodes[i].MemoryGB = cpus[i], 40
	}
	return c
}

// eager runs best with so many CPUs.
func eager(cpus float64) *core.Sensitivity {
	return &core.Sensitivity{Base: core.Resources{CPUs: 2, MemoryGB: 10}, Ideal: core.Resources{CPUs: cpus, MemoryGB: 10}, Speedup: 2}
}

// placeGiven is place with what each replica is given behind the seats.
func placeGiven(t *testing.T, p core.Placer, v *core.View, grants []core.Grant) string {
	t.Helper()
	seating, err := p.Place(t.Context(), v, grants)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, placed := range seating.Placed {
		line := fmt.Sprintf("%d:", placed.Job)
		for _, s := range placed.Seats {
			line += fmt.Sprintf(" %d[%s]", s.Node, s.Devices)
		}
		if r := placed.Resources; r != nil {
			line += fmt.Sprintf(" %v CPUs %v GB", r.CPUs, r.MemoryGB)
		}
		lines = append(lines, line)
	}
	for _, u := range seating.Unseated {
		lines = append(lines, fmt.Sprintf("%d: %s", u.Job, u.Explain()))
	}
	return strings.Join(lines, "; ")
}

func TestSynergy(t *testing.T) {
	t.Parallel()
	job := coretest.MakeJob
	for name, tc := range map[string]struct {
		config  map[string]any
		cluster *core.Cluster
		jobs    []*coretest.JobBuilder
		want    string
	}{
		"fair": {
			config: map[string]any{"mode": synergyFair}, cluster: counted(8),
			jobs: []*coretest.JobBuilder{job("a").Replicas(1).Sensitive(eager(6)).Waiting(), job("b").Replicas(2).Waiting()},
			want: "0: 0[0] 2 CPUs 10 GB; 1: 0[1,2] 2 CPUs 10 GB",
		},
		"greedy makes who lacks CPUs wait": {
			config: map[string]any{"mode": synergyGreedy}, cluster: counted(8),
			jobs: []*coretest.JobBuilder{job("a").Replicas(1).Sensitive(eager(6)).Waiting(), job("b").Replicas(1).Sensitive(eager(4)).Waiting()},
			want: "0: 0[0] 6 CPUs 10 GB; 1: fragmented: devices are free, and CPUs are short (wants 4 cpus, 2 available)",
		},
		"greedy makes who lacks memory wait": {
			config: map[string]any{"mode": synergyGreedy}, cluster: counted(8),
			jobs: []*coretest.JobBuilder{job("a").Replicas(1).Asks(1, 35).Waiting(), job("b").Replicas(1).Asks(1, 20).Waiting()},
			want: "0: 0[0]; 1: fragmented: devices are free, and memory is short (wants 20 GB, 5 available)",
		},
		"tune gives what is left, then takes it back": {
			cluster: counted(8),
			jobs: []*coretest.JobBuilder{
				job("a").Replicas(1).Sensitive(eager(6)).Waiting(), job("b").Replicas(1).Sensitive(eager(4)).Waiting(), job("c").Replicas(2).Sensitive(eager(4)).Waiting(),
			},
			want: "0: 0[0] 2 CPUs 10 GB; 1: 0[1] 2 CPUs 10 GB; 2: 0[2,3] 2 CPUs 10 GB",
		},
		"devices are short": {
			cluster: counted(8),
			jobs:    []*coretest.JobBuilder{job("a").Replicas(3).Waiting(), job("b").Replicas(2).Waiting()},
			want:    "0: 0[0,1,2] 2 CPUs 10 GB; 1: waiting_for_devices (wants 2 devices, 1 available)",
		},
		"who runs stays and comes first, whatever the order": {
			config: map[string]any{"mode": synergyGreedy}, cluster: counted(8, 8),
			jobs: []*coretest.JobBuilder{job("a").Replicas(3).Sensitive(eager(2)).Waiting(), job("b").Replicas(2).Sensitive(eager(4)).Running(0, coretest.Seat(0, 2, 3))},
			want: "0: 1[0,1,2] 2 CPUs 10 GB; 1: 0[2,3] 4 CPUs 10 GB",
		},
		"among those that stay, the order of the grants": {
			cluster: counted(8),
			jobs: []*coretest.JobBuilder{
				job("a").Replicas(1).Sensitive(eager(4)).Waiting(), job("b").Replicas(1).Sensitive(eager(6)).Running(0, coretest.Seat(0, 3)).Given(6, 10),
			},
			want: "0: 0[0] 4 CPUs 10 GB; 1: 0[3] 2 CPUs 10 GB",
		},
		"seated anew, in order": {
			config: map[string]any{"replan": true, "mode": synergyFair}, cluster: counted(8, 8),
			jobs: []*coretest.JobBuilder{job("a").Replicas(3).Waiting(), job("b").Replicas(2).Running(0, coretest.Seat(0, 2, 3))},
			want: "0: 0[0,1,3] 2 CPUs 10 GB; 1: 0[2] 1[0] 2 CPUs 10 GB",
		},
		"pinned jobs stay, anew or not": {
			config: map[string]any{"replan": true}, cluster: counted(8, 8),
			jobs: []*coretest.JobBuilder{job("a").Replicas(3).Waiting(), job("b").Replicas(2).Pinned().Running(0, coretest.Seat(0, 2, 3))},
			want: "0: 0[0,1] 1[0] 2 CPUs 10 GB; 1: 0[2,3] 2 CPUs 10 GB",
		},
		"consolidated": {
			config: map[string]any{"consolidate": true}, cluster: counted(8, 8),
			jobs: []*coretest.JobBuilder{job("a").Replicas(2).Waiting(), job("b").Replicas(3).Waiting(), job("c").Replicas(2).Waiting()},
			want: "0: 0[0,1] 2 CPUs 10 GB; 1: 1[0,1,2] 2 CPUs 10 GB; 2: 0[2,3] 2 CPUs 10 GB",
		},
		"a node that tells nothing is short of nothing": {
			config: map[string]any{"mode": synergyGreedy}, cluster: counted(0),
			jobs: []*coretest.JobBuilder{job("a").Replicas(2).Sensitive(eager(100)).Waiting(), job("b").Replicas(2).Asks(7, 0).Waiting()},
			want: "0: 0[0,1] 100 CPUs 10 GB; 1: 0[2,3] 7 CPUs 10 GB",
		},
		"of unlike nodes the part is that of the poorest": {
			config: map[string]any{"mode": synergyFair}, cluster: counted(32, 4),
			jobs: []*coretest.JobBuilder{job("a").Replicas(5).Waiting()},
			want: "0: 0[0,1,2,3] 1[0] 1 CPUs 10 GB",
		},
		"a demand beyond a server is that of the server": {
			cluster: counted(8), jobs: []*coretest.JobBuilder{job("a").Replicas(2).Sensitive(eager(100)).Waiting()},
			want: "0: 0[0,1] 4 CPUs 10 GB",
		},
		"a job larger than a server has its part": {
			cluster: counted(8, 8), jobs: []*coretest.JobBuilder{job("a").Replicas(6).Sensitive(eager(4)).Waiting()},
			want: "0: 0[0,1,2,3] 1[0,1] 2 CPUs 10 GB",
		},
		"without known sensitivity, what it asks for": {
			config: map[string]any{"mode": synergyGreedy}, cluster: counted(8),
			jobs: []*coretest.JobBuilder{job("a").Replicas(2).Asks(1.5, 3).Waiting(), job("b").Replicas(1).Asks(0, 3).Waiting()},
			want: "0: 0[0,1]; 1: 0[2] 2 CPUs 3 GB",
		},
		"parts are whole thousandths": {
			config: map[string]any{"mode": synergyFair}, cluster: counted(10.0 / 3),
			jobs: []*coretest.JobBuilder{job("a").Replicas(4).Waiting()},
			want: "0: 0[0,1,2,3] 0.833 CPUs 10 GB",
		},
		"no node of its type": {
			cluster: counted(8), jobs: []*coretest.JobBuilder{job("a").Replicas(1).Accelerators("v100").Waiting()},
			want: "0: accelerator_missing (wants 1 devices, 0 available)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := coretest.MakeView(tc.cluster).Jobs(tc.jobs...).Obj()
			p := policytest.New(t, NewSynergy(), tc.config)
			for again := range 2 {
				if got := placeGiven(t, p, v, policytest.InOrder(v)); got != tc.want {
					t.Errorf("asked %d times before: %s\nwant %s", again, got, tc.want)
				}
			}
		})
	}
}

// Where CPUs are not counted, devices are seated and nothing is given.
func TestSynergyWithoutCounting(t *testing.T) {
	t.Parallel()
	c := counted(8)
	c.CountsResources = false
	v := coretest.MakeView(c).Jobs(coretest.MakeJob("a").Replicas(2).Sensitive(eager(6)).Asks(99, 99).Waiting()).Obj()
	if got, want := placeGiven(t, policytest.New(t, NewSynergy(), nil), v, policytest.InOrder(v)), "0: 0[0,1]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A job that fits on devices is told what else is short by placers by score, too, once.
func TestScoredTellsOfCPUs(t *testing.T) {
	t.Parallel()
	v := coretest.MakeView(counted(8)).Jobs(coretest.MakeJob("a").Replicas(1).Asks(6, 1).Waiting(), coretest.MakeJob("b").Replicas(2).Asks(2, 10).Waiting()).Obj()
	want := "0: 0[0]; 1: fragmented: devices are free, and CPUs are short (wants 4 cpus, 2 available)"
	if got := placeGiven(t, policytest.New(t, NewBestFit(), nil), v, policytest.InOrder(v)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A round in which everybody stays allocates nothing.
func TestSynergyAllocatesNothing(t *testing.T) {
	v := coretest.MakeView(counted(8, 8)).Jobs(
		coretest.MakeJob("a").Replicas(3).Sensitive(eager(3)).Running(0, coretest.Seat(0, 0, 1, 2)), coretest.MakeJob("b").Replicas(2).Sensitive(eager(6)).Running(0, coretest.Seat(1, 2, 3)),
		coretest.MakeJob("c").Replicas(4).Waiting(),
	).Obj()
	grants := policytest.InOrder(v)
	for _, mode := range []string{synergyFair, synergyGreedy, synergyTune} {
		p := policytest.New(t, NewSynergy(), map[string]any{"mode": mode})
		ask := func() {
			if _, err := p.Place(t.Context(), v, grants); err != nil {
				t.Fatal(err)
			}
		}
		ask()
		if n := testing.AllocsPerRun(20, ask); n > 0 {
			t.Errorf("%s: %v allocations", mode, n)
		}
	}
}

// TestSynergyStanding tells for how long who has what stands: while somebody has less than he wants, for one round, whatever took it from him.
func TestSynergyStanding(t *testing.T) {
	t.Parallel()
	job := coretest.MakeJob
	short := []*coretest.JobBuilder{ // two that were seated when nobody was greedy
		job("a").Replicas(1).Sensitive(eager(8)).Running(0, coretest.Seat(0, 0)).Given(2, 10), job("b").Replicas(1).Sensitive(eager(8)).Running(0, coretest.Seat(0, 1)).Given(2, 10),
	}
	full := []*coretest.JobBuilder{job("a").Replicas(1).Sensitive(eager(4)).Waiting(), job("b").Replicas(1).Sensitive(eager(4)).Waiting()}
	for name, tc := range map[string]struct {
		mode string
		jobs []*coretest.JobBuilder
		want float64 // of a round at 600 s
	}{
		"greedy, somebody is short":    {synergyGreedy, short, 600},
		"tune, somebody is short":      {synergyTune, short, 600},
		"fair, everybody has his part": {synergyFair, short, math.Inf(1)},
		"greedy, everybody has all":    {synergyGreedy, full, math.Inf(1)},
		"tune, everybody has all":      {synergyTune, full, math.Inf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(counted(8)).Now(600).Jobs(tc.jobs...).Obj()
			p := policytest.New(t, NewSynergy(), map[string]any{"mode": tc.mode})
			placeGiven(t, p, v, policytest.InOrder(v))
			if got := p.(core.Steady).Standing().UntilSeconds; got != tc.want {
				t.Errorf("stands until %v s, want %v s", got, tc.want)
			}
		})
	}
}
