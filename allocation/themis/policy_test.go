package themis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// typed renders the grants of a round as "job@type", in order.
func typed(t *testing.T, policy core.Allocator, v *core.View, respond func(*core.Job) core.Response) string {
	t.Helper()
	var words []string
	for _, g := range policytest.Ask(t, policy, v, respond) {
		words = append(words, fmt.Sprintf("%d@%s", g.Job, v.Cluster.Accelerators[g.Accelerator]))
	}
	return strings.Join(words, " ")
}

func TestThemis(t *testing.T) {
	one := coretest.MakeCluster().Nodes(1, "slow", 1).Obj()
	two := coretest.MakeCluster().Nodes(1, "slow", 1).Nodes(1, "fast", 1).Obj()
	waiting := func(submit, work float64) *coretest.JobBuilder {
		return coretest.MakeJob("j").Submit(submit).Replicas(1).Work(work).Waiting()
	}
	// curves tells how much faster each job is on the second type.
	curves := func(times ...float64) func(*core.Job) core.Response {
		return func(j *core.Job) core.Response {
			r := coretest.Rigid(j)
			for _, rate := range []float64{1, times[j.ID]} {
				r.Curves = append(r.Curves, core.Curve{OneNode: []float64{rate}, ManyNodes: []float64{rate}})
			}
			return r
		}
	}
	cases := map[string]struct {
		config  map[string]any
		cluster *core.Cluster
		jobs    []*coretest.JobBuilder
		respond func(*core.Job) core.Response
		want    string
	}{
		// At 1000 s the jobs are (1000 + 500)/500 and (900 + 100)/100 of their lengths.
		"the worst ratio first": {nil, one, []*coretest.JobBuilder{waiting(0, 500), waiting(100, 100)}, coretest.Rigid, "1@slow"},
		// Both are offered the devices; the first loses half on the slow type, the second nearly nothing.
		"the auction looks at both": {
			map[string]any{"offered_to": 1.0}, two, []*coretest.JobBuilder{waiting(0, 5000), waiting(0, 5000)}, curves(2, 1.1), "0@fast 1@slow",
		},
		// Offered to the second alone, which is behind: it takes the fast type, and the other one what is left.
		"the worst off alone bids": {
			map[string]any{"offered_to": 0.5}, two, []*coretest.JobBuilder{waiting(500, 5000), waiting(0, 5000)}, curves(2, 1.1), "1@fast 0@slow",
		},
		// Half of three is two: jobs 1 and 0, by 1.22 and 1.2, share as above, and job 2, by 1.02, gets nothing.
		"half of an odd number is rounded up": {
			map[string]any{"offered_to": 0.5}, two, []*coretest.JobBuilder{waiting(500, 5000), waiting(0, 5000), waiting(900, 5000)}, curves(2, 1.1, 1), "1@slow 0@fast",
		},
		"nobody can use what is left": {nil, one, []*coretest.JobBuilder{waiting(0, 500).Accelerators("fast")}, coretest.Rigid, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(tc.cluster).Now(1000).Jobs(tc.jobs...).Obj()
			if got := typed(t, policytest.New(t, New(), tc.config), v, tc.respond); got != tc.want {
				t.Errorf("granted %q, want %q", got, tc.want)
			}
		})
	}
}

func TestThemisKeepsLeases(t *testing.T) {
	policy := policytest.New(t, New(), map[string]any{"lease": "10m"})
	cluster := coretest.MakeCluster().Nodes(1, "t4", 1).Obj()
	holder := coretest.MakeJob("j").Replicas(1).Work(9000)
	behind := coretest.MakeJob("j").Replicas(1).Work(10).Waiting()
	for _, round := range []struct {
		now  float64
		jobs []*coretest.JobBuilder
		want string
	}{
		{0, []*coretest.JobBuilder{holder.Waiting()}, "0@t4"},
		{300, []*coretest.JobBuilder{holder.Running(0, coretest.Seat(0, 0)).Progress(0, 1), behind}, "0@t4"},
		{600, []*coretest.JobBuilder{holder, behind}, "1@t4"},
	} {
		v := coretest.MakeView(cluster).Now(round.now).Jobs(round.jobs...).Obj()
		if got := typed(t, policy, v, coretest.Rigid); got != round.want {
			t.Errorf("at %v s granted %q, want %q", round.now, got, round.want)
		}
	}
}

// A lease is on devices: one that broke ends it, and the job bids for others of its node.
func TestThemisEndsTheLeaseOfABrokenDevice(t *testing.T) {
	for name, tc := range map[string]struct {
		unusable core.DeviceSet
		want     string
	}{"none broke": {0, "0@slow"}, "one of its own": {0b0010, "0@fast"}, "one of others": {0b0100, "0@slow"}} {
		t.Run(name, func(t *testing.T) {
			policy := policytest.New(t, New(), map[string]any{"lease": "10m"})
			c := coretest.MakeCluster().Nodes(1, "slow", 4).Nodes(1, "fast", 2).Obj()
			holder := coretest.MakeJob("j").Replicas(2).Work(9000)
			respond := func(j *core.Job) core.Response {
				r := coretest.Rigid(j)
				r.Curves = []core.Curve{{OneNode: []float64{1, 2}}, {OneNode: []float64{5, 10}}}
				return r
			}
			c.Nodes[1].Health = core.Down
			v := coretest.MakeView(c).Jobs(holder.Waiting()).Obj()
			if got := typed(t, policy, v, respond); got != "0@slow" {
				t.Fatalf("granted %q, want what there is", got)
			}
			c.Nodes[1].Health, c.Nodes[0].Unusable = core.Ready, tc.unusable
			v = coretest.MakeView(c).Now(300).Jobs(holder.Running(0, coretest.Seat(0, 0, 1)).Progress(0, 1)).Obj()
			if got := typed(t, policy, v, respond); got != tc.want {
				t.Errorf("granted %q, want %q", got, tc.want)
			}
		})
	}
}

// Contention counts from when a job came. At 2000 s job 0 has seen 3000 device seconds asked for, of the 2000 that there were,
// and is (2000 + 400) / (400 · 1.5) = 4 behind. Job 1 has seen 2000 of 1000 since it came, and is (1000 + 100) / (100 · 2) = 5.5
// behind. Were what was asked for before added, it would be 2.75.
func TestThemisCountsContentionSinceAJobCame(t *testing.T) {
	policy := policytest.New(t, New(), nil)
	cluster := coretest.MakeCluster().Nodes(1, "t4", 1).Obj()
	first := coretest.MakeJob("j").Replicas(1).Work(400).Waiting()
	second := coretest.MakeJob("j").Submit(1000).Replicas(1).Work(100).Waiting()
	for _, round := range []struct {
		now  float64
		jobs []*coretest.JobBuilder
		want string
	}{
		{0, []*coretest.JobBuilder{first}, "0@t4"},
		{1000, []*coretest.JobBuilder{first, second}, "0@t4"},
		{2000, []*coretest.JobBuilder{first, second}, "1@t4"},
	} {
		v := coretest.MakeView(cluster).Now(round.now).Jobs(round.jobs...).Obj()
		if got := typed(t, policy, v, coretest.Rigid); got != round.want {
			t.Errorf("at %v s granted %q, want %q", round.now, got, round.want)
		}
	}
}
