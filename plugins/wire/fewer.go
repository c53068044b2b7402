package wire

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// Fewer says how the candidates of a question differ from all of the round: those that it leaves out, and those with another range. Both are
// in JobID order.
func Fewer(all, asked []core.Candidate) (withheld []int32, narrowed []*stagev1.Narrowed) {
	if len(all) == 0 || len(asked) == len(all) && &asked[0] == &all[0] {
		return nil, nil // it is about all of them
	}
	for i := range all {
		if len(asked) == 0 || asked[0].ID != all[i].ID {
			withheld = append(withheld, int32(all[i].ID))
			continue
		}
		if r, whole := asked[0].Response, all[i].Response; r.MinReplicas != whole.MinReplicas || r.MaxReplicas != whole.MaxReplicas {
			narrowed = append(narrowed, &stagev1.Narrowed{Job: int32(all[i].ID), MinReplicas: int32(r.MinReplicas), MaxReplicas: int32(r.MaxReplicas)})
		}
		asked = asked[1:]
	}
	return withheld, narrowed
}

// FewerFrom are the candidates of a question that leaves some out, or narrows their ranges. all is not changed. It fails for a job that is none of them,
// and for a range that is none.
func FewerFrom(all []core.Candidate, withheld []int32, narrowed []*stagev1.Narrowed) ([]core.Candidate, error) {
	if len(withheld)+len(narrowed) == 0 {
		return all, nil
	}
	out := make(map[core.JobID]bool, len(withheld))
	for _, id := range withheld {
		out[core.JobID(id)] = true
	}
	asked := slices.DeleteFunc(slices.Clone(all), func(c core.Candidate) bool { return out[c.ID] })
	if len(asked)+len(out) != len(all) {
		return nil, fmt.Errorf("%d jobs are withheld of %d, and %d are left", len(out), len(all), len(asked))
	}
	for _, n := range narrowed {
		at := slices.IndexFunc(asked, func(c core.Candidate) bool { return c.ID == core.JobID(n.GetJob()) })
		if at < 0 || n.GetMinReplicas() < 1 || n.GetMaxReplicas() < n.GetMinReplicas() {
			return nil, fmt.Errorf("job %d is narrowed to %d..%d replicas, and is no candidate or cannot be", n.GetJob(), n.GetMinReplicas(), n.GetMaxReplicas())
		}
		r := *asked[at].Response
		r.MinReplicas, r.MaxReplicas = int(n.GetMinReplicas()), int(n.GetMaxReplicas())
		asked[at].Response = &r
	}
	return asked, nil
}
