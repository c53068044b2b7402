package configs

import (
	"reflect"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// countsParts is the config of an allocator that counts parts of devices.
type countsParts struct{}

func (countsParts) CountsFractions() {}

func TestAbilitiesOfConfigs(t *testing.T) {
	cases := map[string]any{
		"TakesTurns":      struct{ core.TakesTurns }{},
		"NeedsInterval":   struct{ core.NeedsInterval }{},
		"PlansDeadlines":  struct{ core.PlansDeadlines }{},
		"CountsRestart":   struct{ core.CountsRestart }{},
		"CountsFractions": countsParts{},
	}
	for name, config := range cases {
		found := reflect.ValueOf(abilitiesOf(config))
		for i := range found.NumField() {
			if field := found.Type().Field(i).Name; found.Field(i).IsNil() == (field == name) {
				t.Errorf("of a config with %s, %s is found: %v", name, field, !found.Field(i).IsNil())
			}
		}
	}
	if fields := reflect.TypeFor[abilities]().NumField(); len(cases) != fields {
		t.Errorf("%d abilities are tried, of %d", len(cases), fields)
	}
}
