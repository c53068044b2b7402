package configs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// Sources outside of files, as they appear in diagnostics and origins.
const (
	fromDefault = "default"
	fromSet     = "--set"
	fromOut     = "--out"
	fromEnv     = "env "
)

// overlay applies what was given outside of the files, the stronger later: environment, --set, flags of the program, --out.
func overlay(root *node, o Options) core.Diagnostics {
	var ds core.Diagnostics
	if o.Env != nil {
		ds = append(ds, environment(root)...)
	}
	for _, assignment := range typesFirst(o.Sets) {
		ds = append(ds, set(root, fromSet, assignment)...)
	}
	for _, flag := range o.Flags {
		ds = append(ds, set(root, flag.Name, flag.Set)...)
	}
	if o.OutDir != "" {
		at := core.Position{File: fromOut}
		dir := []step{{key: "output"}, {key: "dir"}}
		ds = append(ds, root.assign(dir, &node{at: at, scalar: o.OutDir})...)
	}
	return ds
}

// typesFirst puts the assignments to types before the others: a change of type drops the config of the earlier type,
// and must not drop what another --set gives to the new one.
func typesFirst(sets []string) []string {
	ofType := func(assignment string) bool {
		path, _, _ := strings.Cut(assignment, "=")
		return strings.HasSuffix(path, ".type")
	}
	sorted := slices.Clone(sets)
	slices.SortStableFunc(sorted, func(a, b string) int {
		switch {
		case ofType(a) == ofType(b):
			return 0
		case ofType(a):
			return -1
		default:
			return 1
		}
	})
	return sorted
}

// set applies one path=value that a flag gave.
func set(root *node, flag, assignment string) core.Diagnostics {
	at := core.Position{File: flag}
	path, value, ok := strings.Cut(assignment, "=")
	steps, valid := parsePath(path)
	if !ok || !valid {
		return core.Diagnostics{{
			Position: at, Summary: fmt.Sprintf("%q is not of the form path=value", assignment),
			Hint: "for example pipeline.admission[0].type=accept_all",
		}}
	}
	n, ds := readValue(at, value)
	if len(ds) == 0 {
		ds = root.assign(steps, n)
	}
	for i := range ds {
		ds[i].Path = path
	}
	return ds
}

// assign puts a value at a path, and makes the mappings and lists on the way that are missing; an index one past the
// end of a list appends.
func (n *node) assign(path []step, value *node) core.Diagnostics {
	refuse := func(hint, format string, args ...any) core.Diagnostics {
		return core.Diagnostics{{Position: value.at, Summary: fmt.Sprintf(format, args...), Hint: hint}}
	}
	s, rest := path[0], path[1:]
	switch {
	case s.isIndex && n.kind != listKind:
		return refuse("", "cannot set an item of what is not a list")
	case s.isIndex && s.index > len(n.list):
		return refuse(holds(len(n.list)), "index %d is out of range", s.index)
	case !s.isIndex && n.kind != mappingKind:
		return refuse("", "cannot set key %q of what is not a mapping", s.key)
	}
	if len(rest) == 0 {
		n.replace(s, value)
		return nil
	}
	next, known := n.find(path[:1])
	if !known {
		next = &node{at: value.at, kind: listKind}
		if !rest[0].isIndex {
			next = newMapping(value.at)
		}
		n.replace(s, next)
	}
	return next.assign(rest, value)
}

// holds says up to where a list can be set.
func holds(items int) string {
	switch items {
	case 0:
		return "the list is empty: 0 appends"
	case 1:
		return "the list has 1 item: 0 is it, 1 appends"
	default:
		return fmt.Sprintf("the list has %d items: 0 to %d are they, %d appends", items, items-1, items)
	}
}

// replace puts a value at a step that is valid here.
func (n *node) replace(s step, value *node) {
	switch {
	case !s.isIndex:
		if s.key == "type" {
			n.dropConfigUnlessType(value)
		}
		n.put(s.key, value)
	case s.index == len(n.list):
		n.list = append(n.list, value)
	default:
		n.list[s.index] = value
	}
}
