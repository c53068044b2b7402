package configs

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// node is a value of a config together with where it was written: at its key in a mapping, at the value in a list.
// It is a scalar, a list, or a mapping.
type node struct {
	at   core.Position
	kind kind

	scalar any // string, bool, int, int64, uint64, float64, or nil for an explicit null
	list   []*node
	keys   []string // of a mapping, as written
	fields map[string]*node
}

type kind uint8

const (
	scalarKind kind = iota
	listKind
	mappingKind
)

func newMapping(at core.Position) *node {
	return &node{at: at, kind: mappingKind, fields: map[string]*node{}}
}

// put sets a key of a mapping.
func (n *node) put(key string, value *node) {
	if _, known := n.fields[key]; !known {
		n.keys = append(n.keys, key)
	}
	n.fields[key] = value
}

// remove deletes a key of a mapping.
func (n *node) remove(key string) {
	delete(n.fields, key)
	n.keys = slices.DeleteFunc(n.keys, func(k string) bool { return k == key })
}

// plain is the value without positions.
func (n *node) plain() any {
	switch n.kind {
	case listKind:
		list := make([]any, len(n.list))
		for i := range list {
			list[i] = n.list[i].plain()
		}
		return list
	case mappingKind:
		m := make(map[string]any, len(n.fields))
		for key, value := range n.fields {
			m[key] = value.plain()
		}
		return m
	default:
		return n.scalar
	}
}

// find returns the node at a path, or the nearest node above it and false.
func (n *node) find(path []step) (*node, bool) {
	for _, s := range path {
		var next *node
		switch {
		case s.isIndex && n.kind == listKind && s.index < len(n.list):
			next = n.list[s.index]
		case !s.isIndex && n.kind == mappingKind:
			next = n.fields[s.key]
		}
		if next == nil {
			return n, false
		}
		n = next
	}
	return n, true
}

// merge lays a later config over this one: mappings key by key, everything else replaces. A config belongs to its type:
// where the type of a component changes, the config of the earlier type goes, and so do its plugin options.
func (n *node) merge(over *node) *node {
	if n.kind != mappingKind || over.kind != mappingKind {
		return over
	}
	if t, given := over.fields["type"]; given {
		n.dropConfigUnlessType(t)
	}
	for _, key := range over.keys {
		value := over.fields[key]
		if earlier, both := n.fields[key]; both {
			value = earlier.merge(value)
		}
		n.put(key, value)
	}
	return n
}

func (n *node) dropConfigUnlessType(t *node) {
	if earlier, given := n.fields["type"]; !given || earlier.scalar != t.scalar {
		n.remove("config")
		n.remove("plugin")
	}
}

// step is one step of a path: a key, or an index into a list.
type step struct {
	key     string
	index   int
	isIndex bool
}

var (
	keyPattern   = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	partPattern  = regexp.MustCompile(`^([a-z][a-z0-9_]*)((?:\[[0-9]{1,9}\])*)$`)
	indexPattern = regexp.MustCompile(`[0-9]+`)
)

// parsePath reads a path such as "pipeline.admission[0].type"; false when it is not one.
func parsePath(path string) ([]step, bool) {
	var steps []step
	for part := range strings.SplitSeq(path, ".") {
		match := partPattern.FindStringSubmatch(part)
		if match == nil {
			return steps, false
		}
		steps = append(steps, step{key: match[1]})
		for _, index := range indexPattern.FindAllString(match[2], -1) {
			i, _ := strconv.Atoi(index) // at most nine digits
			steps = append(steps, step{index: i, isIndex: true})
		}
	}
	return steps, true
}
