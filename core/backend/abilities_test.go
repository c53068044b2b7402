package backend_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/fake"
	"github.com/quartet-sched/quartet/core/backend/kube"
	"github.com/quartet-sched/quartet/core/backend/local"
	"github.com/quartet-sched/quartet/core/sim"
)

// bare is a backend that can nothing besides.
type bare struct{ core.Backend }

// What a backend can do is found by its methods alone: one that is renamed, or changes its arguments, is lost in silence without this list.
func TestAbilitiesOfBackends(t *testing.T) {
	for name, tc := range map[string]struct {
		backend core.Backend
		want    []string
	}{
		"none":            {bare{}, nil},
		"the simulator":   {&sim.Simulator{}, []string{"Scaling", "Files", "Reactive", "Jobs", "StartPauses", "Pairs", "GivesUp"}},
		"a fake":          {&fake.Backend{}, []string{"Scaling", "Memory", "Driven", "Run", "Closer", "Operated", "CatchingUp"}},
		"local processes": {&local.Backend{}, []string{"Scaling", "Memory", "Clock", "Driven", "Run", "Pending", "Ends", "Leaving", "Closer", "Operated", "Expecting", "CatchingUp"}},
		"Kubernetes":      {&kube.Backend{}, []string{"KeepsDevices", "Reseating", "Memory", "Observer", "Clock", "Leaving", "Closer", "Operated", "Forecasts", "CatchingUp"}},
	} {
		t.Run(name, func(t *testing.T) {
			can := reflect.ValueOf(backend.AbilitiesOf(tc.backend))
			var got []string
			for i := range can.NumField() {
				if !can.Field(i).IsZero() {
					got = append(got, can.Type().Field(i).Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("it can (-want +got):\n%s", diff)
			}
		})
	}
}
