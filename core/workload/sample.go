package workload

import (
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Sample says which jobs of a workload take part in a run, and how dense they come. Its parts are applied in their order. The
// zero value of a part leaves the workload as it is, but for Load, which DefaultSample sets.
//
// What is drawn at random is drawn from one stream for each job, by the seed and the name of the job: schedulers are compared on
// the same jobs, whatever else they draw, and the jobs at one load are among those at a higher one.
type Sample struct {
	// Window: the part of the workload that takes part.
	Window Window `config:"window" doc:"the part of the workload that takes part"`
	// Blocks: submissions resampled in blocks of time.
	Blocks Blocks `config:"blocks" doc:"submissions resampled in blocks of time"`
	// Load: how dense the jobs come.
	Load Load `config:"load" doc:"how dense the jobs come"`
	// Tiers: how many of the jobs without a tier of service get one.
	Tiers Tiers `config:"tiers" doc:"how many of the jobs without a tier of service get one"`
	// Usage: what jobs need of their devices that do not declare it.
	Usage Usage `config:"usage" doc:"what jobs need of their devices if they do not declare it"`
}

// DefaultSample takes every job as it is.
func DefaultSample() Sample { return Sample{Load: Load{Factor: 1, By: ByThinning}} }

// Whole reports whether the sample leaves every workload as it is.
func (s Sample) Whole() bool { return s == DefaultSample() }

// Draws reports whether the sample depends on the seed.
func (s Sample) Draws() bool {
	return s.Blocks.Length > 0 || s.Load.By == ByThinning && s.Load.Factor != 1 || !s.Tiers.None() || !s.Usage.None()
}

// Check finds what cannot be right for any workload. Paths are those of the settings within the sample.
func (s Sample) Check() core.Diagnostics {
	return slices.Concat(s.Window.check(), s.Blocks.check(), s.Load.check(), s.Tiers.check(), s.Usage.check())
}

// Apply takes the sample of a workload, which it leaves as it is; the two may share memory. An error is a core.Diagnostics with
// paths that begin with "sample".
func (s Sample) Apply(w *Workload, seed uint64) (*Workload, error) {
	if s.Whole() {
		return w, nil
	}
	if w.React != nil {
		return nil, sampleProblem("", "the workload has no list of jobs to choose from: it submits them by what becomes of earlier ones", "leave it out")
	}
	if w.Open {
		return nil, sampleProblem("", "the workload has no jobs of its own to choose from: they are submitted while the run is in progress", "")
	}
	jobs, span, err := s.Window.of(w.Jobs)
	if err == nil {
		jobs, err = s.Blocks.of(jobs, span, seed)
	}
	if err == nil {
		jobs, err = s.Load.of(jobs, seed)
	}
	if err != nil {
		return nil, err
	}
	return &Workload{Jobs: s.Usage.of(s.Tiers.of(jobs, seed), seed), Inputs: w.Inputs}, nil
}

// sampleProblem is a problem with a setting of a sample.
func sampleProblem(path, summary, hint string) core.Diagnostics {
	return core.Diagnostics{{Path: core.JoinPath("sample", path), Summary: summary, Hint: hint}}
}

// renumber gives jobs the ids of their order.
func renumber(jobs []Job) {
	for i := range jobs {
		jobs[i].Spec.ID = core.JobID(i)
	}
}

// reassemble brings jobs of which some are repeated into submission order. Such a job cannot be a command: two of it would run in
// one folder.
func reassemble(jobs []Job, path string, repeated int) ([]Job, error) {
	for i := range jobs {
		if job := &jobs[i]; repeated > 0 && len(job.Spec.Command) > 0 {
			found := sampleProblem(path, fmt.Sprintf("job %q runs a command, which cannot be repeated", job.Spec.Name), "only simulated jobs can")
			found[0].Position = job.At
			return nil, found
		}
	}
	w, err := assemble(jobs, nil, nil)
	if err != nil {
		return nil, err
	}
	return w.Jobs, nil
}

// lastSubmit is when the last of the jobs, which are in submission order, is submitted.
func lastSubmit(jobs []Job) float64 { return jobs[len(jobs)-1].Spec.SubmitSeconds }

// wrap brings a moment into a time that goes around.
func wrap(seconds, period float64) float64 {
	if seconds = math.Mod(seconds, period); seconds < 0 {
		seconds += period
	}
	return seconds
}
