package workload

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Tiers gives jobs a tier of service at random, those that have none. The sum of the parts is at most 1; the rest have none.
type Tiers struct {
	// Premium: part of the jobs that become premium, of those without a tier, a ratio from 0 to 1.
	Premium float64 `config:"premium" doc:"part of the jobs that become premium, of those without a tier" min:"0" max:"1"`
	// Standard: that become standard, a ratio from 0 to 1.
	Standard float64 `config:"standard" doc:"that become standard" min:"0" max:"1"`
	// Basic: that become basic, a ratio from 0 to 1.
	Basic float64 `config:"basic" doc:"that become basic" min:"0" max:"1"`
}

// None reports whether no job gets a tier.
func (t Tiers) None() bool { return t == Tiers{} }

func (t Tiers) sum() float64 { return t.Premium + t.Standard + t.Basic }

func (t Tiers) check() core.Diagnostics {
	const rounding = 1e-9
	if t.sum() > 1+rounding {
		return core.Diagnostics{{Path: "tiers", Summary: "gives more jobs a tier than there are", Hint: "premium, standard and basic come to 1 at most"}}
	}
	return nil
}

// of are the jobs with their tiers. Each is drawn by the seed and the name of the job.
func (t Tiers) of(jobs []Job, seed uint64) []Job {
	if t.None() {
		return jobs
	}
	jobs = slices.Clone(jobs)
	for i := range jobs {
		spec := &jobs[i].Spec
		if spec.Tier != "" {
			continue
		}
		switch drawn := core.NewRand(seed, "sample/tiers/"+spec.Name).Float64(); {
		case drawn < t.Premium:
			spec.Tier = core.Premium
		case drawn < t.Premium+t.Standard:
			spec.Tier = core.Standard
		case drawn < t.sum():
			spec.Tier = core.Basic
		}
	}
	return jobs
}
