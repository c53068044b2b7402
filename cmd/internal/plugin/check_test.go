package plugin

import (
	"context"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// TestRemediesLeadOn holds every rule of the pipeline to a remedy of its own, which does not send the user back to the
// command that told it.
func TestRemediesLeadOn(t *testing.T) {
	general := remedyFor(coretest.Result{})
	for _, rule := range []string{
		core.RuleAnswerForAsked, core.RuleAnswerOnce, core.RuleReplicasInRange, core.RuleAnswerEveryGrant, core.RuleDeviceOnce, core.RuleGangComplete,
		core.RuleOneAccelerator, core.RuleGapSane, core.RulePinnedStays, core.RuleTuningSane, core.RuleVerdictAllowed, core.RuleResponseSane,
		core.RuleStandingSane, core.RuleTargetSane, core.RuleDeviceLeft, core.RuleNodeLeft,
	} {
		err := &core.InvariantError{Component: "allocation/x", Round: 1, Rule: rule, Detail: "detail"}
		if remedyFor(coretest.Result{Fault: err.Error()}) == general {
			t.Errorf("no remedy for %q", rule)
		}
	}
	for _, m := range remedies {
		if strings.Contains(m.remedy, "plugin test") {
			t.Errorf("%q sends back to the command that told it", m.remedy)
		}
	}
}

// careless seats every job on the first devices of a node that is ready, whoever is on them, where the cluster counts more than whole devices; elsewhere nobody.
type careless struct{}

func (careless) Place(_ context.Context, v *core.View, grants []core.Grant) (s core.Seating, err error) {
	blocked := false
	for _, g := range grants {
		for i := range v.Cluster.Nodes {
			n, j := &v.Cluster.Nodes[i], v.Job(g.Job)
			seats := []core.Seat{{Node: n.ID, Devices: 1}}
			if !blocked && v.Cluster.CountsShares() && g.Replicas == 1 && j.State == core.Waiting && n.Usable()&1 != 0 && j.CanRunOn(v.Cluster, n.Accelerator) && g.Accelerator == core.AnyAccelerator {
				s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: seats})
				break
			}
		}
		if len(s.Placed) == 0 || s.Placed[len(s.Placed)-1].Job != g.Job {
			s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.WaitingForDevices})
			blocked = blocked || g.Blocking
		}
	}
	return s, nil
}

// What a plugin says that it counts it is tested with, and one that seats more than there is does not conform.
func TestPluginsAreHeldToWhatTheyCount(t *testing.T) {
	for name, info := range map[string]core.Info{
		"parts":     {Sharing: []core.Sharing{core.Fractional}},
		"slices":    {Sharing: []core.Sharing{core.Mig}},
		"resources": {Counts: true},
	} {
		t.Run(name, func(t *testing.T) {
			info.Type, info.Summary, info.Description = "careless", "seats all on the first device", "for a test"
			factory := core.NewFactory(info, core.None{}, func(core.None, core.Settings) (core.Placer, error) { return careless{}, nil })
			results, err := coretest.Check(factory, coretest.Effort{Worlds: 100, Seed: 1}, append(heldTo(&factory.Info), coretest.Elsewhere(), coretest.Evicting())...)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if strings.Contains(r.Fault, core.RuleDeviceLeft) || strings.Contains(r.Fault, core.RuleNodeLeft) || strings.Contains(r.Fault, core.RuleDeviceOnce) {
					return
				}
			}
			t.Errorf("conforms: %+v", results)
		})
	}
	if got := heldTo(&core.Info{}); got != nil {
		t.Error("a policy that says nothing meets more than whole devices")
	}
}
