package goodput

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core"
)

// ReadProfile reads a profile from YAML; file is named in problems. It is strict, and reports every problem at once as
// core.Diagnostics.
func ReadProfile(file string, text []byte) (Profile, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var document yaml.Node
	if err := d.Decode(&document); errors.Is(err, io.EOF) {
		return Profile{}, core.Diagnostics{{Position: core.Position{File: file}, Summary: "is empty"}}
	} else if err != nil {
		return Profile{}, syntax(file, err)
	}
	var raw map[string]any
	if err := document.Decode(&raw); err != nil {
		return Profile{}, syntax(file, err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Profile{}, core.Diagnostics{{Position: core.Position{File: file}, Summary: "holds more than one document"}}
	}
	var p Profile
	problems := core.Decode(&p, raw)
	for i := range problems {
		at := locate(document.Content[0], problems[i].Path)
		problems[i].Position = core.Position{File: file, Line: at.Line, Column: at.Column}
	}
	return p, problems.Err()
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

// YAML is the profile as ReadProfile reads it, in the order of its fields.
func (p *Profile) YAML() []byte {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("version: %d", p.Version)
	line("name: %q", p.Name)
	line("batch: {%s}", flow(&p.Batch))
	line("max_replicas: %d", p.MaxReplicas)
	line("epochs: %d", p.Epochs)
	line("iterations_per_epoch: %s", number(p.IterationsPerEpoch))
	line("performance:")
	for i, f := range core.FieldsOf(&p.Performance) {
		line("  %s: %s", f.Name, number(p.Performance.vector()[i]))
	}
	line("noise:")
	for i := range p.Noise {
		line("  - {%s}", flow(&p.Noise[i]))
	}
	line("residuals: {%s}", flow(&p.Residuals))
	return b.Bytes()
}

// flow writes a struct of numbers on one line.
func flow(config any) string {
	values := core.Encode(config)
	var parts []string
	for _, f := range core.FieldsOf(config) {
		text := fmt.Sprint(values[f.Name])
		if x, fractional := values[f.Name].(float64); fractional {
			text = number(x)
		}
		parts = append(parts, f.Name+": "+text)
	}
	return strings.Join(parts, ", ")
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
