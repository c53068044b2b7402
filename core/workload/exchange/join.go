package exchange

import "math"

// Reasons of rows that are parts of jobs.
const (
	reasonJoined  = "part of a job, counted with its first row"
	reasonUnequal = "part of a job whose parts have different shares of devices, or too many devices"
)

// joined is a job that several rows are parts of.
type joined struct {
	first *Record
	parts []*Record // after the first
}

// join makes one job of the rows that are parts of it: they start together, so that it is as large as all of them, and lasts until
// the last of them ends. Job names the job of a row by the row's name; nil where each row is a job.
func (in *importer) join(job func(name string) string) {
	if job == nil || !in.hasParts(job) {
		return
	}
	jobs := make(map[string]*joined, in.trace.count)
	var order []*joined
	for i := range in.trace.count {
		r := in.trace.At(i)
		name := job(r.Name)
		if name == "" {
			name = r.Name
		}
		if j := jobs[name]; j != nil {
			j.parts = append(j.parts, r)
			continue
		}
		j := &joined{first: r}
		jobs[name], order = j, append(order, j)
	}
	var whole Trace
	for _, j := range order {
		r := *j.first
		if name := job(r.Name); name != "" {
			r.Name = in.label([]byte(name))
		}
		reason := reasonJoined
		if !r.absorb(j.parts) {
			reason = reasonUnequal
			in.tally.drop(reason, int(j.first.line), j.first.Name)
		} else {
			whole.add(&r)
		}
		for _, part := range j.parts {
			in.tally.drop(reason, int(part.line), part.Name)
		}
	}
	in.trace = whole
}

// hasParts reports whether a row is a part of a job of another name.
func (in *importer) hasParts(job func(name string) string) bool {
	for i := range in.trace.count {
		if name := in.trace.At(i).Name; job(name) != name {
			return true
		}
	}
	return false
}

// absorb makes the record that of a job with further parts, and reports whether one record can hold them all.
func (r *Record) absorb(parts []*Record) bool {
	if len(parts) == 0 {
		return true
	}
	d := r.Details()
	end, replicas := r.ends(), float64(r.Replicas)
	cpus, memory := d.CPUs*replicas, d.MemoryGB*replicas
	equal := true // in their times
	for _, p := range parts {
		of := p.Details()
		if of.ShareMilli != d.ShareMilli {
			return false
		}
		equal = equal && p.Start == r.Start && p.Duration == r.Duration
		n := float64(p.Replicas)
		replicas, cpus, memory = replicas+n, cpus+of.CPUs*n, memory+of.MemoryGB*n
		r.Submit, r.Start, end = math.Min(r.Submit, p.Submit), math.Min(r.Start, p.Start), math.Max(end, p.ends())
		r.Limit, r.Estimate = longer(r.Limit, p.Limit), longer(r.Estimate, p.Estimate)
		r.Accelerators = unionOf(r.Accelerators, p.Accelerators)
		if r.Outcome == "" || r.Outcome == "completed" && p.Outcome != "" {
			r.Outcome = p.Outcome
		}
	}
	if replicas > maxCount {
		return false
	}
	if !equal {
		begin := r.Start
		if begin != begin {
			begin = r.Submit // as ends counts
		}
		r.Duration = micros(end - begin)
	}
	r.Replicas = int32(replicas)
	if d.CPUs, d.MemoryGB = cpus/replicas, memory/replicas; d != (Details{}) {
		r.more = &d
	}
	return true
}

// longer is the longer of two times, and the known one where the other is NaN.
func longer(a, b float64) float64 {
	if a != a || b > a {
		return b
	}
	return a
}
