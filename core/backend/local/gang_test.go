package local

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
)

func TestBounds(t *testing.T) {
	job := &core.JobSpec{CPUs: 0.5, MemoryGB: 0.25}
	cases := map[string]struct {
		config Config
		want   keeper.Orders
	}{
		"tried": {
			Config{LogMB: 2, LogFiles: 3, Limits: keeper.LimitsTry},
			keeper.Orders{LogBytes: 2 << 20, LogFiles: 3, Limits: keeper.LimitsTry, CPUs: 0.5, MemoryBytes: 256 << 20},
		},
		"off": {Config{Limits: limitsOff}, keeper.Orders{}},
	}
	for name, tc := range cases {
		var got keeper.Orders
		tc.config.bound(&got, job)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
