package study

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core"
)

// Builder makes a study of short values, as flags give them.
type Builder struct {
	Name     string   // name of the study
	Base     []string // config files that every run begins with
	Sets     []string // assignments path=value of flags
	Seeds    int      // replicates of each cell
	Baseline string   // scheduler; the first where it is empty

	UnequalInputs bool // as in a study

	axes  []Axis
	found core.Diagnostics
}

// Axis adds an axis of items as Short reads them, if there are any; flag stands for it in messages.
func (b *Builder) Axis(flag, name string, values []string) {
	if len(values) == 0 {
		return
	}
	axis := Axis{Name: name}
	at := core.Position{File: flag}
	for _, value := range values {
		item, err := Short(name, value, "")
		if err != nil {
			b.found = append(b.found, core.Diagnostic{Position: at, Summary: err.Error()})
			continue
		}
		if slices.ContainsFunc(axis.Items, func(other Item) bool { return other.Name == item.Name }) {
			b.found = append(b.found, core.Diagnostic{Position: at, Summary: fmt.Sprintf("%q is given twice", item.Name)})
			continue
		}
		item.At = at
		for k := range item.Set {
			item.Set[k].At = at
		}
		axis.Items = append(axis.Items, item)
	}
	b.axes = append(b.axes, axis)
}

// Study is the study, or core.Diagnostics with every problem.
func (b *Builder) Study() (*Study, error) {
	s := &Study{Base: slices.Clone(b.Base), Axes: b.axes, Seeds: Seeds{First: 1, Count: b.Seeds}, Metrics: defaultMetrics, UnequalInputs: b.UnequalInputs, at: core.Position{File: "bench"}}
	if len(s.Base) == 0 {
		s.Base = []string{"default.yaml"}
	}
	add := func(flag, summary, hint string) {
		b.found = append(b.found, core.Diagnostic{Position: core.Position{File: flag}, Summary: summary, Hint: hint})
	}
	if err := s.Rename(b.Name); err != nil {
		add("--name", err.Error(), "")
	}
	if b.Seeds < 1 {
		add("--seeds", fmt.Sprintf("must be at least 1, got %d", b.Seeds), "")
	}
	for _, assignment := range b.Sets {
		setting, err := ParseSetting(assignment)
		if err != nil {
			add("--set", err.Error(), "for example round.interval=30s")
			continue
		}
		setting.At = core.Position{File: "--set"}
		s.Set = append(s.Set, setting)
	}
	s.Compared = max(s.axis(axisScheduler), 0)
	if b.Baseline != "" && len(s.Axes) > 0 {
		var names []string
		for _, item := range s.Axes[s.Compared].Items {
			names = append(names, item.Name)
		}
		if s.Baseline = slices.Index(names, b.Baseline); s.Baseline < 0 {
			add("--baseline", fmt.Sprintf("no scheduler is called %q", b.Baseline), core.SuggestHint(b.Baseline, "schedulers", names))
		}
	}
	if len(s.Axes) > 0 && len(s.Axes[s.Compared].Items) == 1 {
		s.Baseline = -1 // it is compared with nothing
	}
	return s, b.found.Err()
}

// ParseSetting reads a setting of the form path=value, the value in YAML.
func ParseSetting(assignment string) (Setting, error) {
	path, text, ok := strings.Cut(assignment, "=")
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); !ok || err != nil {
		return Setting{}, fmt.Errorf("%q is not of the form path=value", assignment)
	}
	return Setting{Path: path, Value: value}, nil
}

// Rename gives the study another name.
func (s *Study) Rename(name string) error {
	if !plainName.MatchString(name) {
		return fmt.Errorf("%q is not a plain file name; use letters, digits, %q, %q and %q", name, "-", "_", ".")
	}
	s.Name = name
	return nil
}

// Pooled lists the comparisons over all items of the axes that are not compared.
func (r *Result) Pooled() (list []*Comparison) {
	most := 0
	for i := range r.Stats {
		most = max(most, pooled(r.Stats[i].Items))
	}
	for i := range r.Stats {
		if pooled(r.Stats[i].Items) == most {
			list = append(list, &r.Stats[i])
		}
	}
	return list
}
