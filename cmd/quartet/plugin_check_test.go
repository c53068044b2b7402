package main

import (
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
		core.RuleStandingSane, core.RuleTargetSane,
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
