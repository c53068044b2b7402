package core

import (
	"fmt"
	"math"
)

// check refuses numbers of a backend that would spoil what is learned and accounted from them.
func (e *Event) check(j *Job) error {
	wrong := func(what string, value any) error {
		return fmt.Errorf("backend reported %v of job %q with %s %v", e.Kind, j.Name, what, value)
	}
	m, g := &e.Measurement, &e.Gradients
	switch e.Kind {
	case JobMeasured:
		for _, v := range [...]struct {
			what  string
			value float64
		}{
			{"pass_seconds", m.PassSeconds},
			{"step_seconds", m.StepSeconds},
			{"gradient square", g.SquaredNorm},
			{"gradient variance", g.Variance},
		} {
			if !amount(v.value) {
				return wrong(v.what, v.value)
			}
		}
		if least := min(m.Nodes, m.Replicas, m.PerDevice); least < 0 {
			return wrong("a count", least)
		}
	case JobReported:
		if e.Metric == "" {
			return wrong("metric", `""`)
		}
		if !amount(e.Step) {
			return wrong("step", e.Step)
		}
		if math.IsInf(e.Value, 0) {
			return wrong("a value of "+e.Metric, e.Value)
		}
	case JobProgressed, JobInterrupted, JobShrunk:
		for _, v := range [...]struct {
			what  string
			value float64
		}{{"progress", e.Progress}, {"rate", e.Rate}, {"time", e.FromSeconds}, {"a first moment", e.NotBeforeSeconds}} {
			if !amount(v.value) {
				return wrong(v.what, v.value)
			}
		}
		if !amount(e.StepsLeft) && !math.IsNaN(e.StepsLeft) {
			return wrong("steps left", e.StepsLeft)
		}
	}
	if !finite(e.AtSeconds) {
		return wrong("time", e.AtSeconds)
	}
	return nil
}
