package allocation

import (
	"testing"

	"github.com/quartet-sched/quartet/allocation/tiresias"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// Where types differ, a job that does not fit keeps nobody from a type that it cannot use: the placer must be shown everyone.
func TestBlockingIsByType(t *testing.T) {
	for name, factory := range map[string]core.Factory[core.Allocator]{"fifo": NewFIFO(), "srtf": NewSRTF(), "las": NewLAS(), "tiresias": tiresias.New()} {
		t.Run(name, func(t *testing.T) {
			c := coretest.MakeCluster().Nodes(1, "a100", 4).Nodes(1, "v100", 4).Obj()
			v := coretest.MakeView(c).Jobs(
				coretest.MakeJob("a").Replicas(4).Work(10).Waiting(), coretest.MakeJob("b").Replicas(4).Work(20).Waiting(),
				coretest.MakeJob("c").Replicas(4).Work(30).Waiting(),
			).Obj()
			grants, err := policytest.New(t, factory, map[string]any{"queue": queue.Blocking}).Allocate(t.Context(), v, coretest.Candidates(v, coretest.Rigid))
			if err != nil {
				t.Fatal(err)
			}
			if len(grants) != 3 || !grants[2].Blocking {
				t.Errorf("grants %+v, want blocking ones of three jobs", grants)
			}
		})
	}
}
