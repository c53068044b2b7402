package allocation

import (
	"testing"

	"github.com/quartet-sched/quartet/allocation/tiresias"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// What pinned jobs hold is nobody else's to be granted, and they count as kept.
func TestThePinnedComeFirst(t *testing.T) {
	pinned := func(replicas int) *coretest.JobBuilder { return coretest.MakeJob("p").Replicas(replicas).Pinned() }
	v := policytest.EightDevices(policytest.Waits(2), policytest.Waits(5), policytest.Runs(1), pinned(4).Running(900, coretest.Seat(1, 0, 1, 2, 3)), pinned(1).Waiting())
	for name, tc := range map[string]struct {
		factory core.Factory[core.Allocator]
		config  map[string]any
		want    string
	}{
		"fifo backfill":    {NewFIFO(), map[string]any{"queue": queue.Backfill}, "3×4 2×1 0×2 4×1"},
		"fifo":             {NewFIFO(), nil, "3×4| 2×1| 0×2| 1×5|"},
		"las":              {NewLAS(), map[string]any{"quantum_seconds": 0}, "3×4 0×2 4×1 2×1"},
		"las all":          {NewLAS(), map[string]any{"queue": queue.All, "quantum_seconds": 0}, "3×4 0×2 1×5 4×1 2×1"},
		"tiresias":         {tiresias.New(), nil, "3×4 0×2 2×1 4×1"},
		"srtf":             {NewSRTF(), nil, "3×4 0×2 2×1 4×1"},
		"optimus":          {NewOptimus(), nil, "2×1 4×1 0×2 3×4"},
		"elastic_dp":       {NewElasticDP(), nil, "3×4 0×2 2×1 4×1"},
		"elastic_fifo":     {NewElasticFIFO(), nil, "3×4 0×2 2×1 4×1"},
		"elastic_srtf":     {NewElasticSRTF(), nil, "3×4 0×2 2×1 4×1"},
		"elastic_tiresias": {NewElasticTiresias(), nil, "3×4 0×2 2×1 4×1"},
		"afs":              {NewAFS(), nil, "2×1 4×1 0×2 3×4"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policytest.Allocate(t, policytest.New(t, tc.factory, tc.config), v, coretest.Rigid); got != tc.want {
				t.Errorf("granted %s, want %s", got, tc.want)
			}
		})
	}
}
