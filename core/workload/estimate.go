package workload

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// Estimate says what policies know about the work of a job. The job does its true work all the same, and is measured by it: only
// JobSpec.TotalWork and Job.StepsLeft change. No site knows true durations; a limit or an estimate is what it has.
//
// A job that outlives its estimate has no work left as far as policies know, and goes on.
type Estimate struct {
	// Source: where the work that policies know comes from: declared, noisy, limit, estimate or none.
	Source string `config:"source" doc:"where it comes from: the true work, that with an error, a column of the trace, or nothing" enum:"declared|noisy|limit|estimate|none"`
	// Sigma: for noisy, the standard deviation of the logarithm of the known work over the true work, whose median is 0.
	Sigma float64 `config:"sigma" doc:"for noisy, the standard deviation of the logarithm of the known work over the true work, whose median is 0; 0.7 is a factor of 2" min:"0" max:"10"`
}

// The values of Estimate.Source.
const (
	EstimateDeclared = "declared"
	EstimateNoisy    = "noisy"
	EstimateLimit    = "limit"
	EstimateColumn   = "estimate"
	EstimateNone     = "none"
)

// DefaultEstimate gives the true work, as far as it is declared.
func DefaultEstimate() Estimate { return Estimate{Source: EstimateDeclared} }

// Check finds settings that do not go together.
func (e Estimate) Check() core.Diagnostics {
	if e.Sigma > 0 && e.Source != EstimateNoisy {
		return core.Diagnostics{{Path: "sigma", Summary: fmt.Sprintf("source %s has no error", e.Source), Hint: "write source: noisy"}}
	}
	return nil
}

// True reports whether policies know the true work.
func (e Estimate) True() bool {
	return e.Source == EstimateDeclared || e.Source == EstimateNoisy && e.Sigma == 0
}

// WorkKnown reports whether policies know any work.
func (e Estimate) WorkKnown() bool { return e.Source != EstimateNone }

// Apply makes the workload as policies know it. The one given stays as it is. An error is a core.Diagnostics: jobs
// without the column that is asked for. What is drawn for a job depends on the seed and its name, and is scaled by Sigma.
func (e Estimate) Apply(w *Workload, seed uint64) (*Workload, error) {
	if e.True() {
		return w, nil
	}
	if w.React != nil {
		return nil, core.Diagnostics{{Path: "estimate", Summary: "the workload has no list of jobs: it submits them by what becomes of earlier ones", Hint: "leave it out: policies then know their true work"}}
	}
	if w.Open {
		return nil, core.Diagnostics{{Path: "estimate", Summary: "the workload has no jobs of its own: those that are submitted while the run is in progress say what is known of them"}}
	}
	var missing []*Job
	jobs := slices.Clone(w.Jobs)
	for i := range jobs {
		job := &jobs[i]
		part, known := e.of(job, seed)
		if !known {
			missing = append(missing, job)
		}
		job.told = &knownWork{spec: job.Spec, part: part}
		if job.told.spec.TotalWork *= part; e.Source == EstimateNone {
			job.told.spec.TotalWork = 0
		}
	}
	if len(missing) > 0 {
		return nil, e.lacks(missing, len(jobs))
	}
	return &Workload{Jobs: jobs, Inputs: w.Inputs}, nil
}

// lacks says how many jobs, of so many, lack the column, and which are the first.
func (e Estimate) lacks(missing []*Job, jobs int) core.Diagnostics {
	column := csvColumns.all()[e.column()]
	d := core.Diagnostic{
		Position: missing[0].At, Summary: fmt.Sprintf("job %q has no %s", missing[0].Spec.Name, column),
		Hint: "estimate.source asks for it; give each job one, or take another source",
	}
	if len(missing) > 1 {
		var names []string
		for _, job := range missing[:min(namedMissing, len(missing))] {
			names = append(names, strconv.Quote(job.Spec.Name))
		}
		d.Summary = fmt.Sprintf("%d of %d jobs have no %s: %s", len(missing), jobs, column, strings.Join(names, ", "))
		if more := len(missing) - len(names); more > 0 {
			d.Summary += fmt.Sprintf(" and %d more", more)
		}
	}
	return core.Diagnostics{d}
}

// namedMissing bounds how many jobs are named that lack a column.
const namedMissing = 3

func (e Estimate) column() int {
	if e.Source == EstimateLimit {
		return csvLimit
	}
	return csvEstimate
}

// of is what is told of a job's work, as a part of the truth; NaN when nothing is. It is false where the trace does not say.
func (e Estimate) of(job *Job, seed uint64) (part float64, known bool) {
	switch e.Source {
	case EstimateNone:
		return math.NaN(), true
	case EstimateLimit:
		return job.LimitSeconds / job.Spec.TotalWork, job.LimitSeconds > 0
	case EstimateColumn:
		return job.EstimateSeconds / job.Spec.TotalWork, job.EstimateSeconds > 0
	default:
		return math.Exp(e.Sigma * core.NewRand(seed, "sample/estimate/"+job.Spec.Name).NormFloat64()), true
	}
}

// knownWork is what policies are told of a job in the place of the truth.
type knownWork struct {
	spec core.JobSpec
	part float64 // of the true work; NaN when they are told of none
}

// KnownSpec is what policies know about the job.
func (j *Job) KnownSpec() *core.JobSpec {
	if j.told != nil {
		return &j.told.spec
	}
	return &j.Spec
}

// StepsLeft is what policies know about the optimizer steps left when a phase begins; NaN when nothing is. It is as many too few,
// or too many, as at the begin of the job.
func (j *Job) StepsLeft(phase int) float64 {
	left := j.Model.StepsLeft(phase)
	if j.told == nil {
		return left
	}
	return max(left+(j.told.part-1)*j.Model.StepsLeft(0), 0)
}

// True returns what is so of a job about which policies know something else, and otherwise what they know.
func (w *Workload) True(told *core.JobSpec) *core.JobSpec {
	if id := int(told.ID); id < len(w.Jobs) && w.Jobs[id].told != nil && w.Jobs[id].Spec.Name == told.Name {
		return &w.Jobs[id].Spec
	}
	return told
}
