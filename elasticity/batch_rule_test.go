package elasticity

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

func TestBatchRuleConformance(t *testing.T) {
	for name, config := range map[string]map[string]any{
		"noise":                nil,
		"schedule":             {"rule": ruleSchedule},
		"doubling":             {"rule": ruleNoiseDoubling},
		"averaged":             {"rule": ruleAveragedNoise},
		"critical regime":      {"rule": ruleCriticalRegime},
		"schedule of an epoch": {"rule": ruleSchedule, "epochs": 1},
		"oracle":               {"knowledge": "oracle"},
		"history":              {"knowledge": "history"},
		"profiled":             {"profiled": true},
		"blind to types":       {"types": "blind"},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunElasticity(t, NewBatchRule(), coretest.Pinning(), coretest.WithConfig(config))
		})
	}
}

func newBatchRule(t testing.TB, settings map[string]any) *goodputAgent {
	t.Helper()
	config, problems := NewBatchRule().Decode(settings)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	made, err := NewBatchRule().New(config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return made.(*goodputAgent)
}
