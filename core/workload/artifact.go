package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// Columns of the workloads of the artifacts of Pollux and Sia, which ask for a job in the same words.
const (
	artifactName = iota
	artifactSubmit
	artifactApplication
	artifactReplicas
	artifactBatch
	artifactEnd // what follows is one artifact's own
)

var artifactColumns = []string{"name", "time", "application", "num_replicas", "batch_size"}

// readArtifact reads the jobs of a workload, a row each. Take gives a job its model, and returns false for a row that it rejected.
func readArtifact(in *input, cols columns, profiles *profileReader, take func(t *table, job *Job, batch int) bool) (*Workload, error) {
	t := openTable(in, cols)
	var jobs []Job
	for t.next() {
		job := Job{At: t.declaration()}
		spec := &job.Spec
		spec.Name, spec.SubmitSeconds, spec.Weight = t.text(artifactName), t.moment(artifactSubmit), 1
		spec.Application, spec.Requested = t.label(artifactApplication), t.count(artifactReplicas)
		if !take(t, &job, t.count(artifactBatch)) {
			continue
		}
		spec.TotalWork = job.Model.PhaseEnd(job.Model.Phases() - 1)
		jobs = append(jobs, job)
	}
	inputs := append([]Input{in.Input}, profiles.inputs...)
	slices.SortFunc(inputs[1:], func(a, b Input) int { return strings.Compare(a.Path, b.Path) })
	return assemble(jobs, inputs, append(t.finish(), profiles.problems...))
}

// profilesOf reads the profile of an application when it is first asked for.
type profilesOf[P any] struct {
	names []string // applications with a profile
	known map[string]*P
	read  func(ctx context.Context, application string) *P
}

// of returns the profile of the application that a column of a row names; nil where there is none that can be used, which was then reported.
func (p *profilesOf[P]) of(ctx context.Context, t *table, column int, application string) *P {
	if found, read := p.known[application]; read {
		return found
	}
	if !slices.Contains(p.names, application) {
		t.reject(column, "an application with a profile: "+core.SuggestHint(application, "names", p.names))
		return nil
	}
	found := p.read(ctx, application)
	p.known[application] = found
	return found
}

// readCurves reads the step times of an application by placement, by packShape, and calls each for every row.
func (r *profileReader) readCurves(ctx context.Context, path string, each func(shape uint64, batch int, time stepTime)) map[uint64]*stepCurve {
	curves := map[uint64]*stepCurve{}
	r.open(ctx, path, placementsColumns, func(t *table) {
		for t.next() {
			shape, batch := t.shape(placementsShape), t.count(placementsBatch)
			time := t.stepTime(placementsStep, placementsSync)
			if !t.ok() {
				continue
			}
			curve := curves[shape]
			if curve == nil {
				curve = &stepCurve{}
				curves[shape] = curve
			}
			if !curve.add(t, batch, time) {
				continue
			}
			each(shape, batch, time)
		}
	})
	return curves
}

// add takes the step time of a batch per device, which must be more than that of the row before.
func (c *stepCurve) add(t *table, batch int, time stepTime) bool {
	if n := len(c.batches); n > 0 && batch <= c.batches[n-1] {
		t.reject(placementsBatch, fmt.Sprintf("more than the %d of the row before on this placement", c.batches[n-1]))
		return false
	}
	c.batches, c.times = append(c.batches, batch), append(c.times, time)
	return true
}
