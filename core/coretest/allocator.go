package coretest

import (
	"context"
	"fmt"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// RunAllocator holds an allocation policy to its contract.
func RunAllocator(t *testing.T, f core.Factory[core.Allocator], opts ...Option) {
	runChecks(t, checks(allocatorSlot(f.Type), f, opts))
}

func allocatorSlot(policyType string) slot[core.Allocator] {
	return slot[core.Allocator]{
		id:      "allocation/" + policyType,
		install: func(s *core.Stages, c core.Component[core.Allocator]) { s.Allocation = c },
		wrap:    func(tr *trial[core.Allocator]) core.Allocator { return judgedAllocator{tr} },
		ask: func(ctx context.Context, a core.Allocator, q question) error {
			_, err := a.Allocate(ctx, q.View, q.Candidates)
			return err
		},
	}
}

type judgedAllocator struct{ *trial[core.Allocator] }

// Allocate judges the answer about all candidates.
func (j judgedAllocator) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	grants, err := j.judge(ctx, question{View: v, inputs: inputs{Candidates: candidates}})
	j.askTwinAgain(ctx, v, candidates)
	return grants, err
}

// AllocateSome judges the answer about some of all candidates.
func (j judgedAllocator) AllocateSome(ctx context.Context, v *core.View, all, some []core.Candidate) ([]core.Grant, error) {
	return j.judge(ctx, question{View: v, inputs: inputs{Admitted: all, Candidates: some}})
}

// AskedOnce lets the policy speak for the stage that wraps it.
func (j judgedAllocator) AskedOnce() bool { return askedOnce(j.policy) }

// Precedes lets the policy speak for the stage that wraps it.
func (j judgedAllocator) Precedes() bool {
	can := core.AbilitiesOf(j.policy)
	return can.Precedes()
}

func askedOnce(a core.Allocator) bool {
	can := core.AbilitiesOf(a)
	return !can.AskedAgain()
}

func (j judgedAllocator) judge(ctx context.Context, q question) ([]core.Grant, error) {
	grants := ask(j.trial, q, func(a core.Allocator, q question) ([]core.Grant, error) { return allocateBy(ctx, a, q) })
	for i := range grants {
		if fault := grantFault(q.View, &grants[i]); fault != "" {
			j.t.Fatalf("grant for job %d: %s", grants[i].Job, fault)
		}
	}
	return grants, nil
}

// allocateBy puts a question to an allocator as a pipeline does.
func allocateBy(ctx context.Context, a core.Allocator, q question) ([]core.Grant, error) {
	if some := core.AbilitiesOf(a).SomeAllocator; some != nil && q.Admitted != nil {
		return some.AllocateSome(ctx, q.View, q.Admitted, q.Candidates)
	}
	return a.Allocate(ctx, q.View, q.Candidates)
}

// askTwinAgain asks the twin once more in the same round, as a pipeline does where grants found no devices: about some of the candidates,
// elastic ones with smaller ranges. What it answers later must not follow from that, unless the policy is to be asked once.
func (j judgedAllocator) askTwinAgain(ctx context.Context, v *core.View, candidates []core.Candidate) {
	if askedOnce(j.twin) || !anyBool().Draw(j.t, "asked again") {
		return
	}
	again := question{View: v, inputs: inputs{Admitted: candidates, Candidates: candidates}}.clone()
	some := again.Candidates[:0]
	for _, c := range again.Candidates {
		pinned := c.State == core.Running && c.MustStay(v.Cluster, c.Response)
		if r := c.Response; !pinned && r.MaxReplicas > r.MinReplicas && anyBool().Draw(j.t, "narrowed") {
			r.MaxReplicas = r.MinReplicas + (r.MaxReplicas-r.MinReplicas)/2
		}
		if pinned || !anyBool().Draw(j.t, "left out") {
			some = append(some, c)
		}
	}
	again.Candidates = some
	if _, err := allocateBy(ctx, j.twin, again); err != nil {
		j.t.Fatalf("asked again about fewer candidates: %v", err)
	}
}

// grantFault says what is wrong with a grant that a pipeline would pass on; empty for nothing.
func grantFault(v *core.View, g *core.Grant) string {
	j := v.Job(g.Job)
	if j == nil {
		return "" // the pipeline says so
	}
	if t := g.Accelerator; t >= 0 && int(t) < len(v.Cluster.Accelerators) && !j.CanRunOn(v.Cluster, t) {
		return fmt.Sprintf("the job cannot run on %q", v.Cluster.Accelerators[t])
	}
	if len(g.Proposed) == 0 {
		return ""
	}
	return proposalFault(v.Cluster, j, g)
}

// proposalFault says why nobody could follow the proposed seats of a grant; empty when they can be followed.
func proposalFault(c *core.Cluster, j *core.Job, g *core.Grant) string {
	if got := core.Replicas(g.Proposed); got != g.Replicas {
		return fmt.Sprintf("proposes seats for %d of %d replicas", got, g.Replicas)
	}
	if fault := seatsFault(c, j, g.Accelerator, g.Proposed); fault != "" {
		return "proposed seats: " + fault
	}
	return ""
}

// seatsFault says why a job granted a type cannot hold seats, whoever else holds them; empty when it can.
func seatsFault(c *core.Cluster, j *core.Job, granted core.AcceleratorID, seats []core.Seat) string {
	visited := make(map[core.NodeID]bool)
	for _, s := range seats {
		if s.Node < 0 || int(s.Node) >= len(c.Nodes) {
			return fmt.Sprintf("there is no node %d", s.Node)
		}
		n := &c.Nodes[s.Node]
		switch {
		case s.Devices == 0:
			return fmt.Sprintf("no device on node %q", n.Name)
		case visited[s.Node]:
			return fmt.Sprintf("node %q has two seats", n.Name)
		case s.Devices&^n.Usable() != 0:
			return fmt.Sprintf("devices %s of %s node %q", s.Devices, n.Health, n.Name)
		case !j.MixesTypes && n.Accelerator != c.Nodes[seats[0].Node].Accelerator:
			return "two accelerator types"
		case granted != core.AnyAccelerator && n.Accelerator != granted, !j.Accepts(c, n.Accelerator):
			return fmt.Sprintf("node %q has type %q", n.Name, c.Accelerators[n.Accelerator])
		case !hasMemory(c, j, n.Accelerator):
			return fmt.Sprintf("node %q has devices of too little memory", n.Name)
		}
		visited[s.Node] = true
	}
	return ""
}
