package advise

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/lab/study"
)

// Goal is what is to be small.
type Goal struct {
	Name   string `json:"name"`   // name that people give: mean, tail, makespan, fairness or cost
	Metric string `json:"metric"` // of summary.json, by path
}

// Goals lists what can be asked for.
var Goals = []Goal{
	{"mean", "jct_seconds.mean"},
	{"p99", "jct_seconds.p99"},
	{"makespan", "makespan_seconds"},
	{"fair", "fairness.rho_max"},
}

// second decides between compositions that are the same by the goal: the mean completion time or, beside it, the tail.
func (g Goal) second() string {
	if g.Metric == Goals[0].Metric {
		return Goals[1].Metric
	}
	return Goals[0].Metric
}

// GoalNames lists the names of Goals.
func GoalNames() []string {
	var names []string
	for _, g := range Goals {
		names = append(names, g.Name)
	}
	return names
}

// ParseGoal finds a goal by its name.
func ParseGoal(name string) (Goal, error) {
	i := slices.IndexFunc(Goals, func(g Goal) bool { return g.Name == name })
	if i < 0 {
		return Goal{}, fmt.Errorf("unknown goal %q; %s", name, core.SuggestHint(name, "goals", GoalNames()))
	}
	return Goals[i], nil
}

// Limit bounds a metric in every window.
type Limit struct {
	Metric string  // metric of summary.json, by path
	Below  bool    // it must be below Bound, and not above
	Equal  bool    // or equal to it
	Bound  float64 // value in the unit of the metric
}

// ParseLimit reads a limit such as rho_max<2. The metric is one of summary.json by its path, or by the end of its path where no other
// ends so.
func ParseLimit(text string) (Limit, error) {
	at := strings.IndexAny(text, "<>")
	if at < 0 {
		return Limit{}, fmt.Errorf("%q is no limit; write METRIC<NUMBER, such as rho_max<2; <=, > and >= are known too", text)
	}
	l := Limit{Below: text[at] == '<'}
	number := text[at+1:]
	number, l.Equal = strings.CutPrefix(number, "=")
	var err error
	if l.Bound, err = strconv.ParseFloat(strings.TrimSpace(number), 64); err != nil || math.IsNaN(l.Bound) || math.IsInf(l.Bound, 0) {
		return Limit{}, fmt.Errorf("%q is no bound of a limit; write a number", strings.TrimSpace(number))
	}
	l.Metric, err = metricNamed(strings.TrimSpace(text[:at]))
	return l, err
}

// metricNamed is the metric of a path, or of the end of one.
func metricNamed(name string) (string, error) {
	metrics := study.Metrics()
	if slices.Contains(metrics, name) {
		return name, nil
	}
	var ends []string
	for _, m := range metrics {
		if name != "" && strings.HasSuffix(m, "."+name) {
			ends = append(ends, m)
		}
	}
	switch len(ends) {
	case 0:
		return "", fmt.Errorf("unknown metric %q; %s", name, core.SuggestHint(name, "metrics", metrics))
	case 1:
		return ends[0], nil
	}
	return "", errors.New(name + " is the end of several metrics; write one of " + strings.Join(ends, ", "))
}

// String words the limit as a user writes it, such as jct_seconds.p99<=3600.
func (l Limit) String() string {
	sign := ">"
	if l.Below {
		sign = "<"
	}
	if l.Equal {
		sign += "="
	}
	return l.Metric + sign + strconv.FormatFloat(l.Bound, 'g', -1, 64)
}

// Holds reports whether a value keeps the limit. One that is not known does not.
func (l Limit) Holds(value float64) bool {
	return l.Equal && value == l.Bound || l.Below && value < l.Bound || !l.Below && value > l.Bound
}

// excess is by how much a value misses the limit, in units of the bound.
func (l Limit) excess(value float64) float64 {
	switch {
	case l.Holds(value):
		return 0
	case math.IsNaN(value):
		return math.Inf(1)
	default:
		return math.Abs(value-l.Bound) / max(math.Abs(l.Bound), 1e-9)
	}
}

// worst is the value among several that is farthest on the wrong side; NaN when one is not known.
func (l Limit) worst(values []float64) float64 {
	worst := math.NaN()
	for i, v := range values {
		if math.IsNaN(v) {
			return v
		}
		if i == 0 || l.Below && v > worst || !l.Below && v < worst {
			worst = v
		}
	}
	return worst
}
