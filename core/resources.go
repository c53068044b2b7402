package core

import "math"

// Resources is CPUs and memory, of a replica or of whatever its user says.
type Resources struct {
	CPUs     float64 // number of CPU cores
	MemoryGB float64 // main memory in GB
}

// Times is the resources of a number of replicas.
func (r Resources) Times(n float64) Resources { return Resources{r.CPUs * n, r.MemoryGB * n} }

// Plus is the sum.
func (r Resources) Plus(o Resources) Resources {
	return Resources{r.CPUs + o.CPUs, r.MemoryGB + o.MemoryGB}
}

// Over reports whether some part is more than that of another.
func (r Resources) Over(o Resources) bool { return r.CPUs > o.CPUs || r.MemoryGB > o.MemoryGB }

// Least is the smaller of each part.
func (r Resources) Least(o Resources) Resources {
	return Resources{math.Min(r.CPUs, o.CPUs), math.Min(r.MemoryGB, o.MemoryGB)}
}

// Thousandths rounds each part down to whole thousandths, in which nodes are counted. A part that is above a whole number of them by rounding
// alone stays.
func (r Resources) Thousandths() Resources {
	down := func(x float64) float64 { return math.Floor(x*1000*(1+1e-12)) / 1000 }
	return Resources{down(r.CPUs), down(r.MemoryGB)}
}

// Asks is what each replica of the job asks for; 0 where it says nothing.
func (s *JobSpec) Asks() Resources { return Resources{s.CPUs, s.MemoryGB} }

// Has is what each replica of a job that runs has: what placement gave it, else what it asks for.
func (j *Job) Has() Resources {
	if j.Resources != nil {
		return *j.Resources
	}
	return j.Asks()
}

// SameResources reports whether two placements give as much; nil stands for what the job asks for.
func SameResources(a, b *Resources) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// sane reports whether amounts can be counted.
func (r *Resources) sane() bool { return amount(r.CPUs) && amount(r.MemoryGB) }
