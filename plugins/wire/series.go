package wire

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// encodeReported encodes what a job reported since it was sent last, and what it took back.
func (e *Encoder) encodeReported(m *stagev1.Job, j *core.Job) {
	if !e.Reports || len(j.Reported) == 0 {
		return
	}
	for int(j.ID) >= len(e.reported) {
		e.reported = append(e.reported, nil)
	}
	for i := range j.Reported { // metrics keep their order
		s := &j.Reported[i]
		if i == len(e.reported[j.ID]) {
			e.reported[j.ID] = append(e.reported[j.ID], core.Series{Metric: s.Metric})
		}
		sent := &e.reported[j.ID][i]
		kept := 0
		for kept < min(len(sent.Points), len(s.Points)) && sent.Points[kept].Equal(s.Points[kept]) {
			kept++
		}
		if kept == len(sent.Points) && kept == len(s.Points) {
			continue
		}
		sent.Points = append(sent.Points[:kept], s.Points[kept:]...)
		m.Reported = append(m.Reported, &stagev1.Series{
			Metric: s.Metric, Kept: int32(kept),
			Points: each(s.Points[kept:], func(p core.Point) *stagev1.Point {
				return &stagev1.Point{Step: p.Step, Value: p.Value, AtSeconds: p.AtSeconds}
			}),
		})
	}
}

// reported takes in what a job reported since it was sent last.
func (c *Copy) reported(j *core.Job, list []*stagev1.Series) error {
	for _, m := range list {
		at := slices.IndexFunc(j.Reported, func(s core.Series) bool { return s.Metric == m.GetMetric() })
		if at < 0 {
			at = len(j.Reported)
			j.Reported = append(j.Reported, core.Series{Metric: m.GetMetric()})
		}
		s := &j.Reported[at]
		if m.GetKept() < 0 || int(m.GetKept()) > len(s.Points) {
			return fmt.Errorf("job %d keeps %d points of %q, of which it has %d", j.ID, m.GetKept(), m.GetMetric(), len(s.Points))
		}
		s.Points = s.Points[:m.GetKept()]
		for _, p := range m.GetPoints() {
			s.Points = append(s.Points, core.Point{Step: p.GetStep(), Value: p.GetValue(), AtSeconds: p.GetAtSeconds()})
		}
	}
	return nil
}
