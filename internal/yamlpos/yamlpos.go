// Package yamlpos reads files of YAML and knows where each value was written, so that what is wrong with a value names its
// line and column. Forms of files are core's to check: unknown keys, types and bounds come from core.Decode.
package yamlpos

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

// Document is the first YAML document of a file.
type Document struct {
	// File: name that stands for the file in positions.
	File string
	Root *yaml.Node // nil where the file is empty

	decoder *yaml.Decoder
}

// Read reads the first document of a text; file stands for it in positions. An error is a *SyntaxError.
func Read(file string, text []byte) (*Document, error) {
	d := &Document{File: file, decoder: yaml.NewDecoder(bytes.NewReader(text))}
	document, err := d.next()
	if err == nil {
		d.Root = document.Content[0]
	} else if errors.Is(err, io.EOF) {
		err = nil
	}
	return d, err
}

// Next is where another document begins; io.EOF where none does. Another error is a *SyntaxError.
func (d *Document) Next() (core.Position, error) {
	document, err := d.next()
	if err != nil {
		return core.Position{}, err
	}
	return core.Position{File: d.File, Line: document.Line, Column: document.Column}, nil
}

func (d *Document) next() (*yaml.Node, error) {
	var document yaml.Node
	if err := d.decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, io.EOF
	} else if err != nil {
		return nil, newSyntaxError(err)
	}
	return &document, nil
}

// Values are the values of a document whose top is a mapping, without their positions. An error is a *SyntaxError.
func (d *Document) Values() (map[string]any, error) {
	values := map[string]any{}
	if d.Root == nil {
		return values, nil
	}
	if err := d.Root.Decode(&values); err != nil {
		return nil, newSyntaxError(err)
	}
	return values, nil
}

// KubernetesObject describes a document that is an object of Kubernetes, such as `Kubernetes object of kind "PyTorchJob" ("kubeflow.org/v1")`;
// empty for any other document.
func (d *Document) KubernetesObject() string {
	if d.Root == nil || d.Root.Kind != yaml.MappingNode {
		return ""
	}
	_, version := child(d.Root, "apiVersion")
	_, kind := child(d.Root, "kind")
	if version == nil || kind == nil || version.Kind != yaml.ScalarNode || kind.Kind != yaml.ScalarNode || kind.Value == "" {
		return ""
	}
	return fmt.Sprintf("Kubernetes object of kind %q (%q)", kind.Value, version.Value)
}

// At is where the value at a path such as noise[3].samples was written, or the nearest one above it: at its key in a mapping,
// at the value in a list.
func (d *Document) At(path string) core.Position {
	if d.Root == nil {
		return core.Position{File: d.File}
	}
	at := locate(d.Root, path)
	return core.Position{File: d.File, Line: at.Line, Column: at.Column}
}

// Locate gives problems the positions of their paths.
func (d *Document) Locate(problems core.Diagnostics) core.Diagnostics {
	for i := range problems {
		problems[i].Position = d.At(problems[i].Path)
	}
	return problems
}

// locate finds the node to point at for a path. O(keys on the way).
func locate(n *yaml.Node, path string) *yaml.Node {
	at := n
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
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

// SyntaxError is why a text cannot be read as YAML.
type SyntaxError struct {
	Text  string // in one piece
	Lines []Line // what is wrong, line by line; one without a number where none is known
}

// Line is what is wrong with a line.
type Line struct {
	Number int // from 1; 0 for unknown
	// Text: what is wrong.
	Text string
}

// Error words all that is wrong, with the lines as far as they are known.
func (e *SyntaxError) Error() string { return e.Text }

var numbered = regexp.MustCompile(`line (\d+): (.*)`)

func newSyntaxError(err error) *SyntaxError {
	e := &SyntaxError{Text: strings.TrimPrefix(err.Error(), "yaml: ")}
	for _, match := range numbered.FindAllStringSubmatch(e.Text, -1) {
		number, _ := strconv.Atoi(match[1]) // digits
		e.Lines = append(e.Lines, Line{number, match[2]})
	}
	if e.Lines == nil {
		e.Lines = []Line{{0, e.Text}}
	}
	return e
}

// Diagnostics describes each line.
func (e *SyntaxError) Diagnostics(file string) core.Diagnostics {
	var problems core.Diagnostics
	for _, line := range e.Lines {
		problems = append(problems, core.Diagnostic{Position: core.Position{File: file, Line: line.Number}, Summary: line.Text})
	}
	return problems
}

// Parse reads a file of one document whose top is a mapping. An error is a core.Diagnostics.
func Parse(file string, text []byte) (d *Document, values map[string]any, err error) {
	problem := func(summary string) error {
		return core.Diagnostics{{Position: core.Position{File: file}, Summary: summary}}
	}
	d, err = Read(file, text)
	if err == nil && d.Root == nil {
		return nil, nil, problem("is empty")
	}
	if err == nil {
		values, err = d.Values()
	}
	if syntax, ok := errors.AsType[*SyntaxError](err); ok {
		return nil, nil, syntax.Diagnostics(file).Err()
	}
	if _, err := d.Next(); !errors.Is(err, io.EOF) {
		return nil, nil, problem("holds more than one document")
	}
	return d, values, nil
}

// Decode reads a struct with config tags from a file of one document. It is strict, and reports every problem at once as a
// core.Diagnostics.
func Decode(file string, text []byte, into any) error {
	d, values, err := Parse(file, text)
	if err != nil {
		return err
	}
	return d.Locate(core.Decode(into, values)).Err()
}
