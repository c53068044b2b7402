package coretest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

var unknown = math.NaN()

// inputs is what a stage is handed in a round besides the View. Each stage reads its own part.
type inputs struct {
	Jobs       []*core.Job
	Candidates []core.Candidate
	Admitted   []core.Candidate // beside Candidates, which then are those that wait; of an allocator that is asked about some, all of them
	Grants     []core.Grant
	Placements []core.Placement
	Plan       *core.Plan
}

// question is everything that a stage sees in a round.
type question struct {
	View *core.View
	inputs
}

// clone copies a question deeply, step times included. Jobs of the copy are those of its View.
func (q question) clone() question {
	c := question{View: cloneView(q.View)}
	for _, j := range q.Jobs {
		c.Jobs = append(c.Jobs, c.View.Job(j.ID))
	}
	candidates := func(from []core.Candidate) (list []core.Candidate) {
		for _, candidate := range from {
			response := cloneResponse(*candidate.Response)
			list = append(list, core.Candidate{Job: c.View.Job(candidate.ID), Response: &response})
		}
		return list
	}
	c.Candidates, c.Admitted = candidates(q.Candidates), candidates(q.Admitted)
	c.Grants, c.Placements = cloneGrants(q.Grants), clonePlacements(q.Placements)
	if q.Plan != nil {
		c.Plan = &core.Plan{
			Grants: cloneGrants(q.Plan.Grants), Placements: clonePlacements(q.Plan.Placements),
			Tunings: slices.Clone(q.Plan.Tunings), Cluster: q.Plan.Cluster, Candidates: candidates(q.Plan.Candidates),
		}
	}
	return c
}

// shareStepTimes gives the jobs of a clone the very tables of the original: jobs of one application share a table, and
// a policy may recognise it by its address.
func (q question) shareStepTimes(original question) {
	for id, j := range q.View.Jobs {
		if j != nil {
			j.StepTimes = original.View.Jobs[id].StepTimes
		}
	}
}

// scribble destroys a question after the call it was made for, so that a policy that kept a part of it reads nonsense.
func (q question) scribble() {
	v := q.View
	for i := range v.Cluster.Nodes {
		v.Cluster.Nodes[i] = core.Node{ID: -1, Accelerator: -1, Health: core.Down}
	}
	for i := range v.Cluster.Pools {
		v.Cluster.Pools[i] = core.Pool{Name: "scribbled", Accelerator: -1, Min: -1, Max: -1}
	}
	for _, j := range v.Jobs {
		if j != nil {
			*j.JobSpec = core.JobSpec{ID: -1, Weight: unknown, SubmitSeconds: unknown, TotalWork: unknown}
			*j = core.Job{JobSpec: j.JobSpec, State: core.Failed, AsOfSeconds: unknown, Attained: unknown, Executed: unknown, Progress: unknown}
		}
	}
	scribbled := slices.Concat(q.Candidates, q.Admitted)
	if q.Plan != nil {
		scribbled = append(scribbled, q.Plan.Candidates...)
	}
	for i := range scribbled {
		*scribbled[i].Response = core.Response{Job: -1, RemainingWork: unknown}
	}
	clear(q.Grants)
	clear(q.Placements)
	clear(v.Jobs)
	v.NowSeconds = unknown
	v.Active, v.Changed = v.Active[:0], v.Changed[:0]
}

// hide replaces what a policy without a capability must not read.
func (q question) hide(needs []core.Capability) {
	hideWork := !slices.Contains(needs, core.CapabilityRemainingWork)
	hidePairs := !slices.Contains(needs, core.CapabilityPairRates)
	hideSteps := !slices.Contains(needs, core.CapabilityStepTimes)
	for _, j := range q.View.Jobs {
		if j == nil {
			continue
		}
		if hideWork {
			j.TotalWork, j.Progress = unknown, unknown
		}
		if hidePairs {
			j.Pairs = nil
		}
		if hideSteps {
			j.StepTimes, j.StepsLeft = &core.StepTimes{OneNode: []float64{unknown}, ManyNodes: []float64{-1}}, -1
		}
	}
}

func cloneView(v *core.View) *core.View {
	c := *v
	c.Cluster = cloneCluster(v.Cluster)
	c.Active, c.Changed = slices.Clone(v.Active), slices.Clone(v.Changed)
	c.Jobs = make([]*core.Job, len(v.Jobs))
	for id, j := range v.Jobs {
		if j != nil {
			c.Jobs[id] = cloneJob(j)
		}
	}
	return &c
}

func cloneCluster(c *core.Cluster) *core.Cluster {
	copied := *c
	clone := &copied
	clone.Accelerators, clone.Nodes, clone.Pools = slices.Clone(c.Accelerators), slices.Clone(c.Nodes), slices.Clone(c.Pools)
	for i := range clone.Pools {
		clone.Pools[i].Prices = slices.Clone(clone.Pools[i].Prices)
	}
	return clone
}

func cloneJob(j *core.Job) *core.Job {
	c, spec := *j, *j.JobSpec
	c.JobSpec, c.Seats = &spec, slices.Clone(j.Seats)
	if j.Sliced != nil {
		c.Sliced = &core.Sliced{Starts: slices.Clone(j.Sliced.Starts)}
	}
	if j.Share != nil {
		share := *j.Share
		spec.Share = &share
	}
	spec.Accelerators, spec.Command = slices.Clone(spec.Accelerators), slices.Clone(spec.Command)
	spec.BatchByType = slices.Clone(spec.BatchByType)
	if s := spec.Share; s != nil {
		share := *s
		spec.Share = &share
	}
	if t := spec.StepTimes; t != nil {
		spec.StepTimes = cloneStepTimes(t)
	}
	c.Tuning.BatchByReplica = slices.Clone(j.Tuning.BatchByReplica)
	c.Resources = cloneResources(j.Resources)
	c.Reported = slices.Clone(j.Reported)
	for i := range c.Reported {
		c.Reported[i].Points = slices.Clone(c.Reported[i].Points)
	}
	return &c
}

func cloneResources(r *core.Resources) *core.Resources {
	if r == nil {
		return nil
	}
	c := *r
	return &c
}

func cloneStepTimes(t *core.StepTimes) *core.StepTimes {
	c := &core.StepTimes{OneNode: slices.Clone(t.OneNode), ManyNodes: slices.Clone(t.ManyNodes), Types: slices.Clone(t.Types)}
	for i, on := range c.Types {
		c.Types[i].OneNode, c.Types[i].ManyNodes = slices.Clone(on.OneNode), slices.Clone(on.ManyNodes)
	}
	if u := t.MixedTypes; u != nil {
		c.MixedTypes = &core.MixedTypeTimes{SingleDeviceTimes: slices.Clone(u.SingleDeviceTimes), SyncSeconds: slices.Clone(u.SyncSeconds)}
	}
	return c
}

func cloneResponse(r core.Response) core.Response {
	r.Curves = slices.Clone(r.Curves)
	for i, curve := range r.Curves {
		r.Curves[i] = core.Curve{OneNode: slices.Clone(curve.OneNode), ManyNodes: slices.Clone(curve.ManyNodes)}
	}
	if u := r.MixedTypes; u != nil {
		r.MixedTypes = &core.MixedTypeRates{SingleDeviceRates: slices.Clone(u.SingleDeviceRates), SyncSeconds: slices.Clone(u.SyncSeconds)}
	}
	return r
}

func cloneGrants(grants []core.Grant) []core.Grant {
	c := slices.Clone(grants)
	for i := range c {
		c[i].Proposed = slices.Clone(c[i].Proposed)
	}
	return c
}

func clonePlacements(placements []core.Placement) []core.Placement {
	c := slices.Clone(placements)
	for i := range c {
		c[i].Seats, c[i].Resources = slices.Clone(c[i].Seats), cloneResources(c[i].Resources)
	}
	return c
}

// same reports whether two values hold the same, following pointers. NaN equals NaN, and nil an empty slice.
func same(a, b any) bool { return sameValue(reflect.ValueOf(a), reflect.ValueOf(b)) }

func sameValue(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
		return a.Pointer() == b.Pointer() || sameValue(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !sameValue(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !sameValue(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Float64:
		x, y := a.Float(), b.Float()
		return x == y || math.IsNaN(x) && math.IsNaN(y)
	default:
		return a.Equal(b)
	}
}

// mostDifferences is how many places a diff lists.
const mostDifferences = 20

// diff lists where two values that are not the same differ, a line for what each holds there.
func diff(a, b any) string {
	var d differences
	d.find("", reflect.ValueOf(a), reflect.ValueOf(b))
	if len(d) > mostDifferences {
		d = append(d[:mostDifferences], fmt.Sprintf("and %d more\n", len(d)-mostDifferences))
	}
	return strings.Join(d, "")
}

// differences are places where two values differ.
type differences []string

// find goes through two values as sameValue does.
func (d *differences) find(place string, a, b reflect.Value) {
	switch {
	case sameValue(a, b):
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil():
		d.find(place, a.Elem(), b.Elem())
	case a.Kind() == reflect.Struct:
		for i := range a.NumField() {
			d.find(place+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	case a.Kind() == reflect.Slice:
		for i := range max(a.Len(), b.Len()) {
			at := fmt.Sprintf("%s[%d]", place, i)
			switch {
			case i >= b.Len():
				*d = append(*d, "- "+at+": "+shown(a.Index(i))+"\n")
			case i >= a.Len():
				*d = append(*d, "+ "+at+": "+shown(b.Index(i))+"\n")
			default:
				d.find(at, a.Index(i), b.Index(i))
			}
		}
	default:
		*d = append(*d, "- "+place+": "+shown(a)+"\n+ "+place+": "+shown(b)+"\n")
	}
}

// shown is a value as people read it, behind its pointer.
func shown(v reflect.Value) string {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return fmt.Sprintf("%+v", v)
}
