package placement

import (
	"context"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// newPlacer creates a placer from a config as it stands in a file.
func newPlacer(t rapid.TB, f core.Factory[core.Placer], config map[string]any) core.Placer {
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

// place asks a placer and renders its answer: one line for each seated grant, "job: node[devices] …", with "evicted" behind if it is so, then one for
// each refused one, "job: reason wanted/available".
func place(t rapid.TB, policy core.Placer, v *core.View, grants []core.Grant) string {
	t.Helper()
	seating, err := policy.Place(context.Background(), v, grants)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range seating.Placed {
		line := fmt.Sprintf("%d:", p.Job)
		for _, seat := range p.Seats {
			line += fmt.Sprintf(" %d[%s]", seat.Node, seat.Devices)
		}
		if p.Evicted {
			line += " evicted"
		}
		lines = append(lines, line)
	}
	for _, u := range seating.Unseated {
		line := fmt.Sprintf("%d: %s %v/%v", u.Job, u.Reason, u.Wanted, u.Available)
		if u.Message != "" {
			line += " (" + u.Message + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// inOrder grants every job of a view what it requests, in the order of identifiers.
func inOrder(v *core.View) []core.Grant {
	var grants []core.Grant
	for _, j := range v.Jobs {
		grants = append(grants, core.Grant{Job: j.ID, Accelerator: core.AnyAccelerator, Replicas: j.Requested})
	}
	return grants
}

func waits(replicas int) *coretest.JobBuilder {
	return coretest.MakeJob("a").Replicas(replicas).Waiting()
}

// holds is a running job on these seats.
func holds(seats ...core.Seat) *coretest.JobBuilder {
	return coretest.MakeJob("a").Replicas(core.Replicas(seats)).Running(0, seats...)
}

// lines joins the expected lines of an answer.
func lines(l ...string) string { return strings.Join(l, "\n") }

var seat = coretest.Seat
