package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A course is a step function of time.
type course struct{ at, values []float64 }

func (c *course) add(at, value float64) {
	c.at, c.values = append(c.at, at), append(c.values, value)
}

// between is a course from one moment to another, with its values at both. A course that has not begun then begins later.
func (c *course) between(from, to float64) course {
	var out course
	last := math.NaN()
	for i, at := range c.at {
		if at > from && len(out.at) == 0 && !math.IsNaN(last) {
			out.add(from, last)
		}
		if at >= to {
			break
		}
		if last = c.values[i]; at > from {
			out.add(at, last)
		}
	}
	if !math.IsNaN(last) {
		if len(out.at) == 0 {
			out.add(from, last)
		}
		out.add(to, last)
	}
	return out
}

// A life is how one job fared in one run: its devices, and how it trained on them, beside how many jobs there were.
type life struct {
	label                                  string
	devices, batch, efficiency, contention course
}

// period is how long a job held so many devices, and the batch that it began with; 0 for none.
type period struct{ start, end, devices, batch float64 }

// newLife is that of a job with so many stays. The batch over its stays is that of their starts.
func newLife(label string, stays []period) life {
	l := life{label: label}
	slices.SortFunc(stays, func(a, b period) int { return cmp.Compare(a.start, b.start) })
	for i, one := range stays {
		l.devices.add(one.start, one.devices)
		l.batch.add(one.start, one.batch)
		if i+1 == len(stays) || stays[i+1].start > one.end {
			l.devices.add(one.end, 0)
			l.batch.add(one.end, 0)
		}
	}
	if !slices.ContainsFunc(l.batch.values, func(v float64) bool { return v > 0 }) {
		l.batch = course{}
	}
	return l
}

// trained takes in how the job trained at each moment, if that is known. Both are 0 while it has no devices, as devices are.
func (l *life) trained(batch, efficiency course) {
	if len(efficiency.at) == 0 {
		return
	}
	for i := range efficiency.at {
		batch.values[i], efficiency.values[i] = zeroed(batch.values[i]), zeroed(efficiency.values[i])
	}
	l.batch, l.efficiency = batch, efficiency
}

// beside takes in how many jobs there were while the job had not ended.
func (l *life) beside(jobs course) {
	if n := len(l.devices.at); n > 0 {
		l.contention = jobs.between(l.devices.at[0], l.devices.at[n-1])
	}
}

// longestHeld is the job with devices for the longest time, the least name of several; empty when there is none.
func longestHeld(stays map[string][]period) string {
	job, most := "", 0.0
	for name, list := range stays {
		held := 0.0
		for _, one := range list {
			held += one.end - one.start
		}
		if held > most || held == most && name < job {
			job, most = name, held
		}
	}
	return job
}

// lifeFigures draw the lives of a job.
func lifeFigures(job, where string, lives []life) []Figure {
	var list []Figure
	for _, f := range [...]struct {
		name, title, label string
		y                  Unit
		of                 func(*life) course
	}{
		{"one-job-devices", "Devices of job %s", "devices", Plain, func(l *life) course { return l.devices }},
		{"one-job-batch", "Batch of job %s", "batch", Plain, func(l *life) course { return l.batch }},
		{"one-job-efficiency", "Statistical efficiency of job %s", "efficiency", Share, func(l *life) course { return l.efficiency }},
		{"one-job-contention", "Contention of job %s", "jobs in the cluster", Plain, func(l *life) course { return l.contention }},
	} {
		one := Figure{Place: placeOne, Name: f.name, Title: fmt.Sprintf(f.title, job) + suffix(where), XLabel: "time", YLabel: f.label, X: Seconds, Y: f.y}
		for c := range lives {
			if of := f.of(&lives[c]); known(of.values) {
				x, y := thinned(of.at, of.values)
				one.Lines = append(one.Lines, Line{Label: lives[c].label, Colour: c, Step: true, X: x, Y: y})
			}
		}
		list = append(list, one)
	}
	return drawn(list)
}

// lifeFigures follow the job of a run that held devices longest.
func (r *Run) lifeFigures() []Figure {
	stays := map[string][]period{}
	for i := range r.stays {
		s := &r.stays[i]
		name, devices := r.Jobs.name[s.job], float64(s.replicas)
		stays[name] = append(stays[name], period{s.start, s.end, devices, devices * float64(s.batch) * float64(s.passes+1)})
	}
	job := longestHeld(stays)
	if job == "" {
		return nil
	}
	l := newLife(job, stays[job])
	if r.paces != nil {
		l.trained(r.pacesOf(job))
	}
	if r.usage != nil {
		l.beside(r.jobsOver())
	}
	return lifeFigures(job, "", []life{l})
}

// pacesOf is what efficiency.csv tells of a job.
func (r *Run) pacesOf(name string) (batch, efficiency course) {
	id := float64(r.Jobs.id[slices.Index(r.Jobs.name, name)])
	job, _ := r.paces.numbers("job") // the page tells of what is no number
	at, _ := r.paces.numbers("at_s")
	batches, _ := r.paces.numbers("batch")
	efficiencies, _ := r.paces.numbers("efficiency")
	for i := range job {
		if job[i] == id && !math.IsNaN(at[i]) {
			batch.add(at[i], batches[i])
			efficiency.add(at[i], efficiencies[i])
		}
	}
	return batch, efficiency
}

// jobsOver is how many jobs there were.
func (r *Run) jobsOver() (jobs course) {
	at, _ := r.usage.numbers("at_s") // the page tells of what is no number
	jobs = course{at: at, values: make([]float64, len(at))}
	for _, column := range [...]string{"running", "waiting", "pending"} {
		values, _ := r.usage.numbers(column)
		for i, v := range values {
			jobs.values[i] += v
		}
	}
	return jobs
}
