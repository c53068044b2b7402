package pollux

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestWeightsOfManyJobs compares the weights of more jobs than are compared in pairs with those of all pairs.
func TestWeightsOfManyJobs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	p := &allocator{config: Default}
	for range 2 * pairLimit {
		p.jobs = append(p.jobs, job{attained: 1e7 * math.Pow(r.Float64(), 6)})
	}
	p.weighByAttained()
	if len(p.groups) == len(p.jobs) {
		t.Error("no jobs were grouped")
	}
	for i := range p.jobs {
		service, want := p.jobs[i].attained+p.config.AttainedScale, 0.0
		for k := range p.jobs {
			other := p.jobs[k].attained + p.config.AttainedScale
			want += other / (other + service)
		}
		if got := p.jobs[i].weight; math.Abs(got-want) > 1e-5*want {
			t.Errorf("job %d weighs %v, all pairs make it %v", i, got, want)
		}
	}
}
