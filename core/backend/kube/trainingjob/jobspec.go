package trainingjob

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// The bounds of what people may write, as the definition of the resource has them.
const (
	longestName   = 45 // of a job; what is left of the 63 of a label and a host name is for run and member
	leastWeight   = 1e-6
	mostWeight    = 1e6
	mostWork      = 1e15
	mostReplicas  = 1_000_000
	mostSeconds   = 86_400
	mostBatch     = math.MaxInt32
	mostDeadline  = 1e9       // seconds
	mostTemplate  = 256 << 10 // bytes of JSON; the job and its status are one object, and a store takes 1.5 MiB of that
	bytesPerGiB   = 1 << 30
	millisPerUnit = 1000
)

// JobName is what the job is called in a run: its namespace and name.
func (j *TrainingJob) JobName() string { return j.Namespace + "/" + j.Name }

// Tenant is whose job it is: its queue, or else its namespace.
func (j *TrainingJob) Tenant() string { return cmp.Or(j.Spec.Queue, j.Namespace) }

// DevicesPerReplica is how many devices a pod template is for.
func (j *TrainingJob) DevicesPerReplica() int { return max(j.Spec.Replicas.DevicesPerReplica, 1) }

// JobSpec is the job as the stages know it, and everything that is wrong with it. With problems the spec is not to be used.
//
// A replica of core is one device: the bounds of a job with several devices in a replica are multiplied, and so between them
// it may be given a number that is no multiple. What is left out stands for: weight 1; requested replicas the most it can use,
// or else the least, or else 1; bounds the requested replicas; batches as in a job file. CPUs and memory are what the
// containers of the template request, for each device. The API server refuses most of the problems; they are found again here
// because it may know an older definition.
func (j *TrainingJob) JobSpec(id core.JobID, submitSeconds float64) (core.JobSpec, core.Diagnostics) {
	s, devices := &j.Spec, j.DevicesPerReplica()
	requested := cmp.Or(s.Requested, s.Replicas.Max, s.Replicas.Min, 1)
	var found problems
	found.name(j.Name)
	found.spec(s)
	spec := core.JobSpec{
		ID: id, Name: j.JobName(), Tenant: j.Tenant(), Application: s.Application, Experiment: s.Experiment, Weight: cmp.Or(s.Weight, 1),
		SubmitSeconds: submitSeconds,
		Requested:     requested * devices,
		MinReplicas:   cmp.Or(s.Replicas.Min, requested) * devices,
		MaxReplicas:   cmp.Or(s.Replicas.Max, requested) * devices,
		Pinned:        s.Pinned, Accelerators: slices.Clone(s.Accelerators), Batch: s.Batch.spec(), TotalWork: s.Work,
		DeadlineSeconds: s.DeadlineSeconds, BestEffort: s.BestEffort, Tier: s.Tier,
	}
	template, faults := s.PodTemplate()
	found.Diagnostics = append(found.Diagnostics, faults...)
	if template != nil {
		cpus, memory := requests(&template.Spec)
		spec.CPUs = float64(cpus.MilliValue()) / millisPerUnit / float64(devices)
		spec.MemoryGB = memory.AsApproximateFloat64() / bytesPerGiB / float64(devices)
	}
	return spec, found.Diagnostics
}

func (b *Batch) spec() core.BatchSpec {
	requested := cmp.Or(b.Requested, b.Initial)
	if requested == 0 {
		return core.BatchSpec{}
	}
	most := cmp.Or(b.Max, max(requested, b.Initial))
	return core.BatchSpec{
		Requested: requested, Initial: cmp.Or(b.Initial, requested), Max: most,
		MinPerDevice: cmp.Or(b.MinPerDevice, 1), MaxPerDevice: cmp.Or(b.MaxPerDevice, most),
	}
}

// experimentName is the pattern of the definition of the resource: names of job files.
var experimentName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,59}$`)

// problems collects what is wrong with a job.
type problems struct{ core.Diagnostics }

func (p *problems) add(path, summary, hint string) {
	p.Diagnostics = append(p.Diagnostics, core.Diagnostic{Path: path, Summary: summary, Hint: hint})
}

// between holds a number to its bounds. 0 stands for one that is left out.
func between[N int | int64 | float64](p *problems, path string, got, least, most N) {
	if got != 0 && !(got >= least && got <= most) {
		p.add(path, fmt.Sprintf("must be from %v to %v, got %v", least, most, got), "")
	}
}

// order holds two numbers, both of them given, to an order.
func (p *problems) order(path, lower, upper string, least, most int) {
	if least > 0 && most > 0 && least > most {
		p.add(path, fmt.Sprintf("%s must be at most %s, got %d and %d", lower, upper, least, most), "")
	}
}

func (p *problems) name(name string) {
	if len(name) > longestName {
		p.add("metadata.name", fmt.Sprintf("%q has %d characters, at most %d leave room for the names of its pods", name, len(name), longestName), "")
	}
	if !isLabel(name) {
		p.add("metadata.name", fmt.Sprintf("%q cannot be part of a host name", name), `use lower-case letters, digits and "-"`)
	}
}

func (p *problems) spec(s *Spec) {
	between(p, "spec.weight", s.Weight, leastWeight, mostWeight)
	between(p, "spec.work", s.Work, 0, mostWork)
	between(p, "spec.deadlineSeconds", s.DeadlineSeconds, 0, mostDeadline)
	if s.Experiment != "" && !experimentName.MatchString(s.Experiment) {
		p.add("spec.experiment", fmt.Sprintf("%q cannot name an experiment", s.Experiment), `use up to 60 letters, digits, "-", "_" and ".", the first a letter, digit or "_"`)
	}
	if core.TierRank(s.Tier) < 0 {
		p.add("spec.tier", fmt.Sprintf("there is no tier %q", s.Tier), "valid values: "+strings.Join(core.Tiers(), ", "))
	}
	if s.PodPer != "" && s.PodPer != PodPerNode && s.PodPer != PodPerReplica {
		p.add("spec.podPer", fmt.Sprintf("is %q", s.PodPer), "valid values: "+PodPerNode+", "+PodPerReplica)
	}
	r := &s.Replicas
	for _, count := range [...]struct {
		path string
		got  int
		most int
	}{
		{"spec.requested", s.Requested, mostReplicas},
		{"spec.replicas.min", r.Min, mostReplicas},
		{"spec.replicas.max", r.Max, mostReplicas},
		{"spec.replicas.devicesPerReplica", r.DevicesPerReplica, core.MaxDevicesPerNode},
		{"spec.batch.requested", s.Batch.Requested, mostBatch},
		{"spec.batch.initial", s.Batch.Initial, mostBatch},
		{"spec.batch.min", s.Batch.Min, mostBatch},
		{"spec.batch.max", s.Batch.Max, mostBatch},
		{"spec.batch.minPerDevice", s.Batch.MinPerDevice, mostBatch},
		{"spec.batch.maxPerDevice", s.Batch.MaxPerDevice, mostBatch},
	} {
		between(p, count.path, count.got, 1, count.most)
	}
	p.order("spec.replicas.min", "replicas.min", "replicas.max", r.Min, r.Max)
	p.order("spec.requested", "replicas.min", "requested", r.Min, s.Requested)
	p.order("spec.requested", "requested", "replicas.max", s.Requested, r.Max)
	for i, accelerator := range s.Accelerators {
		if accelerator == "" || slices.Contains(s.Accelerators[:i], accelerator) {
			p.add(fmt.Sprintf("spec.accelerators[%d]", i), fmt.Sprintf("%q is empty or named before", accelerator), "")
		}
	}
	p.batch(&s.Batch)
	if g := s.GraceSeconds; g != nil {
		between(p, "spec.graceSeconds", *g, 0, mostSeconds)
	}
	if t := s.StartTimeoutSeconds; t != nil && (*t < 1 || *t > mostSeconds) {
		p.add("spec.startTimeoutSeconds", fmt.Sprintf("must be from 1 to %d, got %d", mostSeconds, *t), "")
	}
}

func (p *problems) batch(b *Batch) {
	if *b == (Batch{}) {
		return
	}
	s := b.spec()
	if s.Requested == 0 {
		p.add("spec.batch.requested", "must be given with the other bounds of the batch", "")
		return
	}
	p.order("spec.batch.min", "batch.min", "batch.max", b.Min, s.Max)
	p.order("spec.batch.min", "batch.min", "batch.requested", b.Min, s.Requested)
	p.order("spec.batch.max", "batch.requested", "batch.max", s.Requested, b.Max)
	p.order("spec.batch.max", "batch.initial", "batch.max", s.Initial, b.Max)
	p.order("spec.batch.maxPerDevice", "batch.minPerDevice", "batch.maxPerDevice", b.MinPerDevice, b.MaxPerDevice)
	p.order("spec.batch.minPerDevice", "batch.minPerDevice", "batch.requested", b.MinPerDevice, s.Requested)
}

// isLabel reports whether a name is lower-case letters, digits and inner hyphens.
func isLabel(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (c != '-' || i == 0 || i == len(name)-1) {
			return false
		}
	}
	return name != ""
}
