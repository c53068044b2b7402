package workload

// The names of what trainings report. Which of them one reports follows from how it goes: an accuracy grows, a loss falls.
const (
	accuracy = "accuracy"
	loss     = "loss"
)

// reports is what a job that trains at a total batch reports at the end of each epoch, counted from 1: what was measured on samples kept apart, on
// straight lines between the trainings next to the batch. nil outside all.
func (p *learning) reports(batch int) [][]Reported {
	low, high, ok := p.around(batch)
	if !ok || len(p.progress) == 0 {
		return nil
	}
	first, last := low.epochs[0].metric, low.epochs[len(p.progress)-1].metric
	metric := loss
	if last > first {
		metric = accuracy
	}
	all := make([][]Reported, len(p.progress))
	for e := range all {
		value := low.epochs[e].metric
		if low != high {
			value = interpolate(float64(batch), float64(low.batch), value, float64(high.batch), high.epochs[e].metric)
		}
		all[e] = []Reported{{Metric: metric, Step: float64(e + 1), Value: value}}
	}
	return all
}

// Reports is what the profile says of the requested batch.
func (m *measuredModel) Reports(phase int) []Reported { return m.reports[phase] }
