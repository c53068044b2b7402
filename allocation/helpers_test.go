package allocation

import (
	"context"
	"fmt"
	"math"
	"strings"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// newPolicy creates a policy from a config as it stands in a file.
func newPolicy(t rapid.TB, f core.Factory[core.Allocator], config map[string]any) core.Allocator {
	t.Helper()
	decoded, problems := f.Decode(config)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	policy, err := f.New(decoded, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// ask asks a policy about the active jobs of a view.
func ask(t rapid.TB, policy core.Allocator, v *core.View, respond func(*core.Job) core.Response) []core.Grant {
	t.Helper()
	grants, err := policy.Allocate(context.Background(), v, coretest.Candidates(v, respond))
	if err != nil {
		t.Fatal(err)
	}
	return grants
}

// allocate asks a policy and renders the grants as "job×replicas", blocking ones with a bar behind.
func allocate(t rapid.TB, policy core.Allocator, v *core.View, respond func(*core.Job) core.Response) string {
	t.Helper()
	grants := ask(t, policy, v, respond)
	words := make([]string, len(grants))
	for i, g := range grants {
		words[i] = fmt.Sprintf("%d×%d", g.Job, g.Replicas)
		if g.Blocking {
			words[i] += "|"
		}
		if g.Accelerator != core.AnyAccelerator || g.Proposed != nil {
			t.Errorf("grant for job %d prescribes a type or a seating", g.Job)
		}
	}
	return strings.Join(words, " ")
}

// eightDevices is a view at 1000 s of two nodes with four devices each.
func eightDevices(jobs ...*coretest.JobBuilder) *core.View {
	return coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Now(1000).Jobs(jobs...).Obj()
}

func waits(replicas int) *coretest.JobBuilder {
	return coretest.MakeJob("a").Replicas(replicas).Waiting()
}

// runs is a job that runs since 900 s. Which devices it holds is of no interest to an allocator.
func runs(replicas int) *coretest.JobBuilder {
	return coretest.MakeJob("a").Replicas(replicas).Running(900, core.Seat{Devices: core.FirstDevices(replicas)})
}

// standsUntil is how long the last answer of a policy stands, the jobs of the view being as the round left them.
func standsUntil(t rapid.TB, policy core.Allocator, v *core.View, grants []core.Grant) float64 {
	t.Helper()
	steady, ok := policy.(core.Steady)
	if !ok {
		t.Fatal("the policy cannot tell how long its answer stands")
	}
	standing := steady.Standing()
	for _, g := range grants[:standing.IfSeated] {
		if v.Job(g.Job).State != core.Running {
			return v.NowSeconds
		}
	}
	return standing.UntilSeconds
}

var forever = math.Inf(1)
