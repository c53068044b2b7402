package gavel

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// askAt holds a round in which nobody holds anything, 360 s after the one before.
func askAt(t *testing.T, m *mechanism, c *core.Cluster, round int, jobs ...*coretest.JobBuilder) []core.Grant {
	t.Helper()
	v := coretest.MakeView(c).Now(float64(360 * round)).Round(round + 1).Interval(360).Jobs(jobs...).Obj()
	grants, err := m.Allocate(t.Context(), v, coretest.Candidates(v, coretest.Rigid))
	if err != nil {
		t.Fatal(err)
	}
	return grants
}

// A type that comes with a new node is served at once, and what jobs received and are short of stays booked.
func TestANewTypeGetsAccounts(t *testing.T) {
	for name, blind := range map[string]bool{"each": false, "blind": true} {
		t.Run(name, func(t *testing.T) {
			config := defaults
			config.TypeBlind = blind
			m := newMechanism(config, &maxMin{spare: true}, core.Settings{})
			one := coretest.MakeCluster().Nodes(1, "a", 1).Obj()
			ran, waits := coretest.MakeJob("j").Replicas(1).Waiting(), coretest.MakeJob("j").Replicas(1).Waiting()
			first := askAt(t, m, one, 0, ran, waits)
			askAt(t, m, one, 1, ran.Executed(360, 360), waits)
			before := m.jobTable.members[first[0].Job]
			grants := askAt(t, m, coretest.MakeCluster().Nodes(1, "a", 1).Nodes(1, "b", 1).Obj(), 2, ran, waits)
			if len(grants) != 2 || grants[0].Accelerator == grants[1].Accelerator {
				t.Errorf("granted %+v, want one job on each type", grants)
			}
			after := m.jobTable.members[first[0].Job]
			received := func(m *member) float64 { return m.seconds[0] - m.deficit[0] }
			if diff := cmp.Diff(received(before), received(after), cmpopts.EquateApprox(0, 360)); diff != "" {
				t.Errorf("received on the type that was there (-want +got):\n%s", diff)
			}
			if len(after.speed) != 2 || after.speed[1] != 1 || after.seconds[1] != 180 {
				t.Errorf("speeds %v and %v s on the new type, want to run there with the credit of a round's half", after.speed, after.seconds)
			}
		})
	}
}

// Accounts by more types than there are come from another cluster: a job begins anew.
func TestAccountsOfAnotherClusterAreClosed(t *testing.T) {
	m := newMechanism(defaults, &maxMin{}, core.Settings{})
	job := coretest.MakeJob("j").Replicas(1).Waiting()
	askAt(t, m, coretest.MakeCluster().Nodes(1, "a", 1).Nodes(1, "b", 1).Obj(), 0, job)
	learned, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	m = newMechanism(defaults, &maxMin{}, core.Settings{})
	if err := m.Restore(learned); err != nil {
		t.Fatal(err)
	}
	grants := askAt(t, m, coretest.MakeCluster().Nodes(1, "a", 1).Obj(), 1, job)
	if want := []core.Grant{{Job: 0, Accelerator: 0, Replicas: 1}}; !cmp.Equal(want, grants) {
		t.Errorf("granted %+v, want %+v", grants, want)
	}
}

// A job whose owner gives it another weight gets its share by it in the next computation, though nobody came or went.
func TestAnotherWeightIsNews(t *testing.T) {
	g := &given{shares: map[core.JobID][]float64{0: {1}}}
	m := newMechanism(Rounds{RecomputeInterval: 360e9, NewJobs: share, Types: inOrder, Accounts: reset}, g, core.Settings{})
	c := coretest.MakeCluster().Nodes(1, "a", 1).Obj()
	for round, step := range []struct {
		weight float64
		asked  int
	}{{1, 1}, {1, 1}, {1, 1}, {3, 2}, {3, 2}} {
		askAt(t, m, c, round, coretest.MakeJob("j").Replicas(1).Weight(step.weight).Waiting())
		if g.asked != step.asked {
			t.Errorf("round %d: shares were computed %d times, want %d", round, g.asked, step.asked)
		}
	}
}

// A node that is gone says nothing about how many replicas of a type fit on one node, and neither do broken devices.
func TestTheLargestNodeIsOneThatIsThere(t *testing.T) {
	c := coretest.MakeCluster().Nodes(3, "a", 8).Obj()
	c.Nodes[0].Health, c.Nodes[1].Unusable, c.Nodes[2].Unusable = core.Gone, 0b0111, 0b1111
	m := newMechanism(defaults, &maxMin{}, core.Settings{})
	askAt(t, m, c, 0)
	if m.nodes[0] != 5 || m.devices[0] != 9 {
		t.Errorf("the largest node has %d of %v devices, want 5 of 9", m.nodes[0], m.devices[0])
	}
}
