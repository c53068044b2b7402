package workload

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Usage says at random what jobs need of their devices, where they do not declare it: what policies go by that have jobs share devices. Each
// amount is drawn evenly between its bounds; one whose upper bound is 0 is left as it is.
type Usage struct {
	// LeastUtilisation: least part of a device that a replica keeps busy, of jobs that do not declare it, a ratio from 0 to 1.
	LeastUtilisation float64 `config:"least_utilisation" doc:"least part of a device that a replica keeps busy, of jobs that do not declare it" min:"0" max:"1"`
	// MostUtilisation: most, a ratio from 0 to 1.
	MostUtilisation float64 `config:"most_utilisation" doc:"most; 0 leaves it untold" min:"0" max:"1"`
	// LeastDeviceMemoryGB: least memory of its device that a replica needs, of jobs that do not declare it.
	LeastDeviceMemoryGB float64 `config:"least_device_memory_gb" doc:"least memory of its device that a replica needs, of jobs that do not declare it" min:"0"`
	// MostDeviceMemoryGB: most.
	MostDeviceMemoryGB float64 `config:"most_device_memory_gb" doc:"most; 0 leaves it untold" min:"0"`
	// LeastTolerance: least part of its speed alone that a job lets go for sharing devices, of jobs that do not declare it, a ratio from 0 to 1.
	LeastTolerance float64 `config:"least_tolerance" doc:"least part of its speed alone that a job lets go for sharing devices, of jobs that do not declare it" min:"0" max:"1"`
	// MostTolerance: most, a ratio from 0 to 1.
	MostTolerance float64 `config:"most_tolerance" doc:"most; 0 leaves it untold" min:"0" max:"1"`
}

// None reports whether nothing is drawn.
func (u Usage) None() bool { return u == Usage{} }

func (u Usage) check() (found core.Diagnostics) {
	for _, bounds := range []struct {
		of          string
		least, most float64
	}{
		{"utilisation", u.LeastUtilisation, u.MostUtilisation},
		{"device_memory_gb", u.LeastDeviceMemoryGB, u.MostDeviceMemoryGB},
		{"tolerance", u.LeastTolerance, u.MostTolerance},
	} {
		if bounds.least > bounds.most {
			found = append(found, core.Diagnostic{
				Path:    "usage.least_" + bounds.of,
				Summary: fmt.Sprintf("must be at most most_%s, got %v and %v", bounds.of, bounds.least, bounds.most),
			})
		}
	}
	return found
}

// of are the jobs with what was drawn for them. Each amount is drawn by the seed and the name of the job, whatever else is drawn.
func (u Usage) of(jobs []Job, seed uint64) []Job {
	if u.None() {
		return jobs
	}
	drawn := slices.Clone(jobs)
	for i := range drawn {
		spec := &drawn[i].Spec
		random := core.NewRand(seed, "sample/usage/"+spec.Name)
		for _, amount := range []struct {
			told        *float64
			least, most float64
		}{
			{&spec.Utilisation, u.LeastUtilisation, u.MostUtilisation},
			{&spec.DeviceMemoryGB, u.LeastDeviceMemoryGB, u.MostDeviceMemoryGB},
			{&spec.SlowdownTolerance, u.LeastTolerance, u.MostTolerance},
		} {
			part := random.Float64()
			if *amount.told == 0 && amount.most > 0 {
				*amount.told = amount.least + part*(amount.most-amount.least)
			}
		}
	}
	return drawn
}
