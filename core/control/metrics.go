package control

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// metric sums up what a job reported of one of its metrics.
type metric struct {
	name                    string
	latest, lowest, highest core.Point
	reports                 int
}

// metricsOf sums up what a job reported. What it knew before is taken over where nothing came to it: O(metrics), and O(points) of each metric that the
// job reported since.
func metricsOf(j *core.Job, before []metric) []metric {
	same := len(before) == len(j.Reported)
	for i := range j.Reported {
		if !same {
			break
		}
		same = before[i].sums(&j.Reported[i])
	}
	if same {
		return before
	}
	list := make([]metric, 0, len(j.Reported))
	for i := range j.Reported {
		s := &j.Reported[i]
		if i < len(before) && before[i].sums(s) {
			list = append(list, before[i])
			continue
		}
		list = append(list, sum(s))
	}
	return list
}

// sums reports whether the summary is that of a series. A point that is told again comes later than the one that it takes the place of.
func (m *metric) sums(s *core.Series) bool {
	latest, _ := s.Latest()
	return m.name == s.Metric && m.reports == len(s.Points) && m.latest.Equal(latest)
}

func sum(s *core.Series) metric {
	m := metric{name: s.Metric, reports: len(s.Points)}
	for i, p := range s.Points {
		if i == 0 || p.Value < m.lowest.Value || m.lowest.Diverged() {
			m.lowest = p
		}
		if i == 0 || p.Value > m.highest.Value || m.highest.Diverged() {
			m.highest = p
		}
		m.latest = p
	}
	return m
}

func (m *metric) render() *controlv1.Metric {
	return &controlv1.Metric{
		Name: clean(m.name), Step: m.latest.Step, Value: m.latest.Value, AtSeconds: m.latest.AtSeconds,
		Lowest: m.lowest.Value, LowestStep: m.lowest.Step, Highest: m.highest.Value, HighestStep: m.highest.Step, Reports: uint32(m.reports),
	}
}
