// Package policytest holds what the tests of policies share: small views, policies made from a config as it stands in a file, and
// checks that every policy of a stage must pass. Only tests import it.
package policytest

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// TB is the part of testing.TB and rapid.TB that the helpers use.
type TB interface {
	// Helper marks the function that calls it as a helper: failures are reported where that is called.
	Helper()
	// Errorf reports a failure; the test goes on.
	Errorf(format string, args ...any)
	// Fatal reports a failure and ends the test.
	Fatal(args ...any)
}

// Forever is the moment until which an answer stands that only an event can change.
var Forever = math.Inf(1)

// New creates a policy from a config as it stands in a file.
func New[T any](t TB, f core.Factory[T], config map[string]any) T {
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

// Ask asks an allocator about the active jobs of a view.
func Ask(t TB, policy core.Allocator, v *core.View, respond func(*core.Job) core.Response) []core.Grant {
	t.Helper()
	grants, err := policy.Allocate(context.Background(), v, coretest.Candidates(v, respond))
	if err != nil {
		t.Fatal(err)
	}
	return grants
}

// Allocate asks an allocator and renders the grants as "job×replicas", blocking ones with a bar behind.
func Allocate(t TB, policy core.Allocator, v *core.View, respond func(*core.Job) core.Response) string {
	t.Helper()
	grants := Ask(t, policy, v, respond)
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

// EightDevices is a view at 1000 s of two nodes with four devices each.
func EightDevices(jobs ...*coretest.JobBuilder) *core.View {
	return coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Now(1000).Jobs(jobs...).Obj()
}

// SharedDevices is EightDevices where two jobs may be on a device.
func SharedDevices(how core.Sharing, jobs ...*coretest.JobBuilder) *core.View {
	v := EightDevices(jobs...)
	v.Cluster.Sharing, v.Cluster.MaxOwners = how, 2
	return v
}

// Waits is a job that waits for so many replicas.
func Waits(replicas int) *coretest.JobBuilder {
	return coretest.MakeJob("a").Replicas(replicas).Waiting()
}

// Runs is a job that runs since 900 s. Which devices it holds is of no interest to an allocator.
func Runs(replicas int) *coretest.JobBuilder {
	return coretest.MakeJob("a").Replicas(replicas).Running(900, core.Seat{Devices: core.FirstDevices(replicas)})
}

// StandsUntil returns how long the last answer of an allocator stands, the jobs of the view being as the round left them.
func StandsUntil(t TB, policy core.Allocator, v *core.View, grants []core.Grant) float64 {
	t.Helper()
	steady := core.AbilitiesOf(policy).Steady
	if steady == nil {
		t.Fatal("the policy does not say how long its answer stands")
	}
	standing := steady.Standing()
	for _, g := range grants[:standing.IfSeated] {
		if v.Job(g.Job).State != core.Running {
			return v.NowSeconds
		}
	}
	return standing.UntilSeconds
}

// Scales responds with the rates of each job on 1 device and more, on one node and on several alike.
func Scales(rates ...[]float64) func(*core.Job) core.Response {
	return func(j *core.Job) core.Response {
		r := core.Response{Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas, RemainingWork: math.NaN()}
		if list := rates[j.ID]; list != nil {
			r.Curves = []core.Curve{{OneNode: list, ManyNodes: list}}
		}
		return r
	}
}

// Range responds with the range that a job was submitted with, and nothing about its rate.
func Range(j *core.Job) core.Response {
	return core.Response{Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas, RemainingWork: math.NaN()}
}

// Rigid responds with the range that a job was submitted with, and says that no work is left.
func Rigid(j *core.Job) core.Response {
	return core.Response{Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas}
}

// Units renders grants as "job×replicas", those of a group joined, blocking ones with a bar behind.
func Units(grants []core.Grant) string {
	var words []string
	for i := 0; i < len(grants); {
		var members []string
		for _, g := range grants[i : i+core.GroupOf(grants, i)] {
			members = append(members, fmt.Sprint(g.Job))
		}
		word := fmt.Sprintf("%s×%d", strings.Join(members, "+"), grants[i].Replicas)
		if grants[i].Blocking {
			word += "|"
		}
		words = append(words, word)
		i += len(members)
	}
	return strings.Join(words, " ")
}
