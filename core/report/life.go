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

// between is a course from one moment to another, with its value at the first.
func (c *course) between(from, to float64) course {
	var out course
	before := math.NaN()
	for i, at := range c.at {
		switch {
		case at <= from:
			before = c.values[i]
		case at <= to:
			if len(out.at) == 0 && !math.IsNaN(before) {
				out.add(from, before)
			}
			out.add(at, c.values[i])
		}
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

// trained takes in how the job trained at each moment, if that is known.
func (l *life) trained(batch, efficiency course) {
	if len(efficiency.at) > 0 {
		for i, v := range batch.values {
			batch.values[i] = zeroed(v) // while it has no devices
		}
		l.batch, l.efficiency = batch, efficiency
	}
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
		{"one-job-contention", "Jobs in the cluster while job %s was in it", "jobs", Plain, func(l *life) course { return l.contention }},
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
