package configs

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/yamlpos"
)

// reader turns YAML into nodes and collects what breaks the grammar of configs.
type reader struct {
	position func(line, column int) core.Position
	found    core.Diagnostics
}

// readFile reads a YAML document whose top level is a mapping; nil when it is not. An empty document is an empty
// mapping. What breaks the grammar is left out of the tree.
func readFile(file string, data []byte) (*node, core.Diagnostics) {
	r := &reader{position: func(line, column int) core.Position {
		return core.Position{File: file, Line: line, Column: column}
	}}
	root := newMapping(r.position(1, 1))
	document, err := yamlpos.Read(file, data)
	switch {
	case err != nil:
		r.syntax(err)
		return nil, r.found
	case document.Root == nil:
		return root, nil
	}
	if object := document.KubernetesObject(); object != "" {
		r.add(document.At("apiVersion"), "is a "+object+", not a config", "a config says how to schedule (docs/config.md); jobs of a local run are given with --jobs (docs/run.md), and objects to kubectl (docs/kubernetes.md)")
		return nil, r.found
	}
	top := document.Root
	switch {
	case top.Kind == yaml.MappingNode:
		root = r.mapping(top, root.at)
	case top.ShortTag() != "!!null":
		r.add(r.position(top.Line, top.Column), "expected a mapping at the top level", "")
		return nil, r.found
	}
	if second, err := document.Next(); err == nil {
		r.add(second, "a config is a single YAML document", "remove the second one")
	} else if !errors.Is(err, io.EOF) {
		r.syntax(err)
		return nil, r.found
	}
	return root, r.found
}

// readValue reads a value given outside of files, as flow or scalar YAML.
func readValue(at core.Position, value string) (*node, core.Diagnostics) {
	r := &reader{position: func(int, int) core.Position { return at }}
	document, err := yamlpos.Read(at.File, []byte(value))
	switch {
	case err != nil:
		r.syntax(err)
		return nil, r.found
	case document.Root == nil:
		r.add(at, "has no value", "")
		return nil, r.found
	}
	return r.value(document.Root, at, ""), r.found
}

func (r *reader) add(at core.Position, summary, hint string) {
	r.found = append(r.found, core.Diagnostic{Position: at, Summary: summary, Hint: hint})
}

// syntax says why a text is no YAML.
func (r *reader) syntax(err error) {
	if e, ok := errors.AsType[*yamlpos.SyntaxError](err); ok {
		for _, line := range e.Lines {
			r.add(r.position(max(line.Number, 1), 0), "cannot read YAML: "+line.Text, "")
		}
	}
}

// value is nil when the value was refused.
func (r *reader) value(y *yaml.Node, at core.Position, key string) *node {
	switch y.Kind {
	case yaml.MappingNode:
		return r.mapping(y, at)
	case yaml.SequenceNode:
		n := &node{at: at, kind: listKind}
		for _, item := range y.Content {
			if v := r.value(item, r.position(item.Line, item.Column), ""); v != nil {
				n.list = append(n.list, v)
			}
		}
		return n
	case yaml.ScalarNode:
		return r.scalar(y, at, key)
	default:
		r.add(at, "aliases are not supported", "repeat the value")
		return nil
	}
}

func (r *reader) scalar(y *yaml.Node, at core.Position, key string) *node {
	n := &node{at: at}
	switch tag := y.ShortTag(); tag {
	case "!!str", "!!timestamp":
		n.scalar = y.Value
	case "!!bool", "!!int", "!!float":
		if err := y.Decode(&n.scalar); err != nil {
			r.add(at, fmt.Sprintf("%q is not a value of %s", y.Value, tag), "")
			return nil
		}
	case "!!null":
		if key == "config" || key == "plugin" { // every setting of it commented out
			return newMapping(at)
		}
	default:
		r.add(at, fmt.Sprintf("tag %q is not supported", tag), "")
		return nil
	}
	return n
}

func (r *reader) mapping(y *yaml.Node, at core.Position) *node {
	n := newMapping(at)
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, keyAt := y.Content[i], r.position(y.Content[i].Line, y.Content[i].Column)
		if key.Kind != yaml.ScalarNode || !keyPattern.MatchString(key.Value) {
			hint := ""
			if lower := strings.ToLower(key.Value); keyPattern.MatchString(lower) {
				hint = fmt.Sprintf("write %q", lower)
			}
			r.add(keyAt, fmt.Sprintf("key %q is not lower_snake_case", key.Value), hint)
			continue
		}
		if earlier, twice := n.fields[key.Value]; twice {
			r.add(keyAt, fmt.Sprintf("key %q is given twice", key.Value), "first at "+earlier.at.String())
			continue
		}
		if v := r.value(y.Content[i+1], keyAt, key.Value); v != nil {
			n.put(key.Value, v)
		}
	}
	return n
}
