package goodput

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core"
)

// YAML is a file of one YAML document, whose positions are still known.
type YAML struct {
	Raw  map[string]any
	file string
	root *yaml.Node
}

// ParseYAML reads a file's text; file is named in problems.
func ParseYAML(file string, text []byte) (*YAML, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := d.Decode(&document); errors.Is(err, io.EOF) {
		return nil, core.Diagnostics{{Position: core.Position{File: file}, Summary: "is empty"}}
	} else if err != nil {
		return nil, syntax(file, err)
	}
	var raw map[string]any
	if err := document.Decode(&raw); err != nil {
		return nil, syntax(file, err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, core.Diagnostics{{Position: core.Position{File: file}, Summary: "holds more than one document"}}
	}
	return &YAML{Raw: raw, file: file, root: document.Content[0]}, nil
}

// At is the position of the key or list element at a path such as noise[3].samples, or of the nearest one above it.
func (y *YAML) At(path string) core.Position {
	at := locate(y.root, path)
	return core.Position{File: y.file, Line: at.Line, Column: at.Column}
}

// Locate gives problems the positions of their paths.
func (y *YAML) Locate(problems core.Diagnostics) core.Diagnostics {
	for i := range problems {
		problems[i].Position = y.At(problems[i].Path)
	}
	return problems
}

// DecodeYAML reads a struct with config tags, such as a Profile, from a file of one YAML document; file is named in
// problems. It is strict, and reports every problem at once as core.Diagnostics.
func DecodeYAML(file string, text []byte, into any) error {
	y, err := ParseYAML(file, text)
	if err != nil {
		return err
	}
	return y.Locate(core.Decode(into, y.Raw)).Err()
}

var syntaxLine = regexp.MustCompile(`line (\d+): (.*)`)

func syntax(file string, err error) error {
	var problems core.Diagnostics
	for _, match := range syntaxLine.FindAllStringSubmatch(err.Error(), -1) {
		line, _ := strconv.Atoi(match[1]) // digits
		problems = append(problems, core.Diagnostic{Position: core.Position{File: file, Line: line}, Summary: match[2]})
	}
	if problems == nil {
		problems = core.Diagnostics{{Position: core.Position{File: file}, Summary: strings.TrimPrefix(err.Error(), "yaml: ")}}
	}
	return problems.Err()
}

// locate finds the key or list element at a path such as noise[3].samples, or the nearest one above it.
func locate(n *yaml.Node, path string) *yaml.Node {
	at := n
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		key, value := child(n, step)
		if key == nil {
			break
		}
		at, n = key, value
	}
	return at
}

// child is the value of a key, or the element at an index, with the node to point at; nil if there is none.
func child(n *yaml.Node, step string) (at, value *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i], n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	}
	return nil, nil
}
