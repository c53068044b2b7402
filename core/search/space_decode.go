package search

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

const pointsKey = "points"

// dimensionKeys are the keys of a dimension in a config.
func dimensionKeys() []string { return slices.Concat([]string{"name"}, scales[:], []string{pointsKey}) }

// DecodeSpace reads the space of a config, the list at a path, and reports every problem with its path.
func DecodeSpace(path string, raw []map[string]any) (Space, core.Diagnostics) {
	r := dimensionReader{}
	space := make(Space, 0, len(raw))
	if len(raw) > maxParams {
		r.refuse(path, fmt.Sprintf("%d hyper-parameters, at most %d are allowed", len(raw), maxParams), "")
	}
	for i, item := range raw {
		at := fmt.Sprintf("%s[%d]", path, i)
		d := r.dimension(at, item)
		if first := slices.IndexFunc(space, func(o Dimension) bool { return o.Name == d.Name }); first >= 0 && d.Name != "" {
			r.refuse(at+".name", fmt.Sprintf("%q is also the name of %s[%d]", d.Name, path, first), "")
		}
		space = append(space, d)
	}
	if len(r.found) > 0 {
		return nil, r.found
	}
	return space, nil
}

// dimensionReader collects problems.
type dimensionReader struct{ found core.Diagnostics }

func (r *dimensionReader) refuse(path, summary, hint string) {
	r.found = append(r.found, core.Diagnostic{Path: path, Summary: summary, Hint: hint})
}

func (r *dimensionReader) dimension(at string, raw map[string]any) (d Dimension) {
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		if keys := dimensionKeys(); !slices.Contains(keys, key) {
			r.refuse(core.JoinPath(at, key), "unknown key", core.SuggestHint(key, "keys", keys))
		}
	}
	switch name, given := raw["name"]; {
	case !given:
		r.refuse(at+".name", "required but missing", "what the hyper-parameter is called")
	default:
		text, ok := name.(string)
		if !ok {
			r.refuse(at+".name", fmt.Sprintf("expected text, got %v", name), fmt.Sprintf(`write "%v" in quotes`, name))
		} else if err := checkName(text); err != nil {
			r.refuse(at+".name", err.Error(), "")
		}
		d.Name = text
	}
	var given []Scale
	for i, scale := range scales {
		if _, has := raw[scale]; has {
			given = append(given, Scale(i))
		}
	}
	if len(given) != 1 {
		hint := "give one of " + strings.Join(scales[:], ", ")
		if len(given) == 0 {
			r.refuse(at, "says nothing of its values", hint)
		} else {
			r.refuse(core.JoinPath(at, given[1].String()), fmt.Sprintf("stands beside %s", given[0]), hint)
		}
		return d
	}
	d.Scale = given[0]
	values := core.JoinPath(at, d.Scale.String())
	switch d.Scale {
	case Choice:
		d.Choices = r.choices(values, raw["choice"])
	case Fixed:
		if v, err := valueOf(raw["fixed"]); err != nil {
			r.refuse(values, err.Error(), "")
		} else {
			d.Choices = []Value{v}
		}
	default:
		r.bounds(values, raw[d.Scale.String()], &d)
	}
	r.points(at, raw, &d)
	return d
}

func (r *dimensionReader) choices(path string, raw any) (choices []Value) {
	items, ok := raw.([]any)
	switch {
	case !ok:
		r.refuse(path, "expected a list of values", "such as [adam, sgd]")
	case len(items) == 0:
		r.refuse(path, "has no values", "")
	case len(items) > mostChoices:
		r.refuse(path, fmt.Sprintf("has %d values, at most %d are allowed", len(items), mostChoices), "")
		return nil
	}
	seen := make(map[string]int, len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		v, err := valueOf(item)
		if err != nil {
			r.refuse(at, err.Error(), "")
			continue
		}
		// A job is given both as one text, so that 1 and "1" would be tried twice.
		if first, twice := seen[v.String()]; twice {
			r.refuse(at, fmt.Sprintf("%s is also %s[%d]", quoted(v), path, first), "")
		}
		seen[v.String()] = i
		choices = append(choices, v)
	}
	return choices
}

// bounds reads the two ends of numbers.
func (r *dimensionReader) bounds(path string, raw any, d *Dimension) {
	ends, ok := raw.([]any)
	if !ok || len(ends) != 2 {
		r.refuse(path, "expected the least and the greatest value", "such as [1, 10]")
		return
	}
	least := math.Inf(-1)
	switch d.Scale {
	case LogUniform:
		least = math.SmallestNonzeroFloat64
	case LogInt:
		least = 1
	}
	bad := false
	refuse := func(path, summary string) { r.refuse(path, summary, ""); bad = true }
	var numbers [2]float64
	for i, end := range ends {
		at := fmt.Sprintf("%s[%d]", path, i)
		v, err := valueOf(end)
		x, number := v.Float()
		_, truth := end.(bool)
		switch {
		case err != nil:
			refuse(at, err.Error())
		case !number || truth:
			refuse(at, "expected a number, got "+quoted(v))
		case d.Whole() && x != math.Trunc(x):
			refuse(at, fmt.Sprintf("expected a whole number, got %s", v))
		case d.Whole() && math.Abs(x) > maxInt:
			refuse(at, fmt.Sprintf("%s is beyond 2^53, from where on whole numbers are not exact", v))
		case x < least && d.Scale == LogUniform:
			refuse(at, fmt.Sprintf("must be above 0, got %s", v))
		case x < least:
			refuse(at, fmt.Sprintf("must be at least 1, got %s", v))
		}
		numbers[i] = x
	}
	d.Low, d.High = numbers[0], numbers[1]
	if !bad && d.Low >= d.High {
		refuse(path, fmt.Sprintf("%s is not below %s", text(d.Low), text(d.High)))
		r.found[len(r.found)-1].Hint = "for one value write fixed"
	}
	if !bad && math.IsInf(d.High-d.Low, 0) {
		refuse(path, "the ends lie farther apart than a number can say")
	}
}

func text(x float64) string { return Number(x).String() }

func (r *dimensionReader) points(at string, raw map[string]any, d *Dimension) {
	given, has := raw[pointsKey]
	if !has {
		return
	}
	path := core.JoinPath(at, pointsKey)
	v, err := valueOf(given)
	x, number := v.Float()
	switch {
	case d.Listed():
		r.refuse(path, fmt.Sprintf("is for numbers, not for %s", d.Scale), "a grid tries every value of the list")
	case err != nil || !number || x != math.Trunc(x):
		r.refuse(path, fmt.Sprintf("expected a whole number, got %v", given), "")
	case x < 2 || x > mostPoints:
		r.refuse(path, fmt.Sprintf("must be from 2 to %d, got %s", mostPoints, v), "")
	default:
		d.Points = int(x)
	}
}
