package policytest

import (
	"context"
	"fmt"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// Place asks a placer and renders its answer: one line for each seated grant, "job: node[devices] …", with "evicted" behind if it is so, then one for
// each refused one, "job: reason wanted/available".
func Place(t TB, policy core.Placer, v *core.View, grants []core.Grant) string {
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
	return Lines(lines...)
}

// InOrder grants every job of a view what it requests, in the order of identifiers.
func InOrder(v *core.View) []core.Grant {
	var grants []core.Grant
	for _, j := range v.Jobs {
		grants = append(grants, core.Grant{Job: j.ID, Accelerator: core.AnyAccelerator, Replicas: j.Requested})
	}
	return grants
}

// Grouped is InOrder with each job in the group that is given for it, 0 for none.
func Grouped(v *core.View, groups ...int) []core.Grant {
	grants := InOrder(v)
	for i := range grants {
		grants[i].Group = groups[i]
	}
	return grants
}

// DevicesWithMemory is nodes of one type, with so many devices each, whose devices have so many gigabytes; two jobs may be on one.
func DevicesWithMemory(sharing core.Sharing, memoryGB float64, devices ...int) *core.Cluster {
	b := coretest.MakeCluster()
	for _, n := range devices {
		b = b.Nodes(1, "t4", n)
	}
	c := b.Obj()
	c.Sharing, c.MaxOwners = sharing, 2
	for i := range c.Nodes {
		c.Nodes[i].DeviceMemoryGB = memoryGB
	}
	return c
}

// Holds is a running job on these seats.
func Holds(seats ...core.Seat) *coretest.JobBuilder {
	return coretest.MakeJob("a").Replicas(core.Replicas(seats)).Running(0, seats...)
}

// Lines joins the expected lines of an answer.
func Lines(l ...string) string { return strings.Join(l, "\n") }
