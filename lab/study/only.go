package study

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Only names items of one axis.
type Only struct {
	Axis  int   // index of the axis
	Items []int // indices of the items with which the cell is run
}

// restrict reads with which items of other axes an item goes together.
func (r *reader) restrict(s *Study, values map[string]any) {
	for a := range s.Axes {
		list, ok := values[s.Axes[a].Name].([]any)
		if !ok || len(list) != len(s.Axes[a].Items) {
			continue // a short form of load has none; what cannot be read is told already
		}
		for k, value := range list {
			fields, _ := value.(map[string]any)
			with, ok := fields["with"].(map[string]any)
			if !ok {
				continue
			}
			path := fmt.Sprintf("axes.%s[%d].with", s.Axes[a].Name, k)
			if _, own := with[s.Axes[a].Name]; own {
				r.add(path, fmt.Sprintf("%q is its own axis", s.Axes[a].Name), "name items of other axes")
				continue
			}
			s.Axes[a].Items[k].With = r.only(s, path, with)
		}
	}
	if len(r.found) == 0 && !s.any(s.whole()) {
		r.add("axes", "no items go together", "an item that names others in with is combined with no others")
	}
}

// only reads items by axis, in the order of the axes.
func (r *reader) only(s *Study, path string, values map[string]any) []Only {
	var list []Only
	for name := range values {
		if s.axis(name) < 0 {
			r.add(path, fmt.Sprintf("there is no axis %q", name), core.SuggestHint(name, "axes", s.axisNames()))
		}
	}
	for a := range s.Axes {
		value, named := values[s.Axes[a].Name]
		if !named {
			continue
		}
		wanted, ok := value.([]any)
		if !ok {
			wanted = []any{value}
		}
		if len(wanted) == 0 {
			r.add(path+"."+s.Axes[a].Name, "names no item", "leave the axis out for all of its items")
			continue
		}
		o := Only{Axis: a}
		names := s.Axes[a].names()
		for _, w := range wanted {
			k := slices.Index(names, fmt.Sprint(w))
			if k < 0 {
				r.add(path+"."+s.Axes[a].Name, fmt.Sprintf("the axis has no item %q", fmt.Sprint(w)), core.SuggestHint(fmt.Sprint(w), "items", names))
				continue
			}
			o.Items = append(o.Items, k)
		}
		list = append(list, o)
	}
	return list
}

func (a *Axis) names() []string {
	names := make([]string, len(a.Items))
	for k := range a.Items {
		names[k] = a.Items[k].Name
	}
	return names
}

// together reports whether the items of a cell go together.
func (s *Study) together(items []int) bool {
	for a, k := range items {
		for _, o := range s.Axes[a].Items[k].With {
			if !slices.Contains(o.Items, items[o.Axis]) {
				return false
			}
		}
	}
	return true
}

// whole selects all items of every axis.
func (s *Study) whole() []int {
	items := make([]int, len(s.Axes))
	for a := range items {
		items[a] = -1
	}
	return items
}

// any reports whether a selection covers a cell.
func (s *Study) any(selection []int) bool {
	if !slices.ContainsFunc(s.Axes, func(a Axis) bool {
		return slices.ContainsFunc(a.Items, func(i Item) bool { return len(i.With) > 0 })
	}) {
		return true
	}
	return len(s.within(selection)) > 0
}
