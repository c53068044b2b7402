package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// document is one object, as nodes: comments stay.
type document struct{ root *yaml.Node }

// parse reads the documents of a stream, each of which must be a mapping.
func parse(name string, stream []byte) ([]document, error) {
	var documents []document
	decoder := yaml.NewDecoder(bytes.NewReader(stream))
	for {
		var node yaml.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) {
			return documents, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(node.Content) == 0 || node.Content[0].Tag == "!!null" {
			continue
		}
		if node.Content[0].Kind != yaml.MappingNode {
			return nil, fmt.Errorf("%s: line %d: an object is a mapping", name, node.Content[0].Line)
		}
		documents = append(documents, document{&node})
	}
}

// encode writes documents as one stream.
func encode(documents []document) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	for _, d := range documents {
		if err := encoder.Encode(d.root); err != nil {
			return nil, err
		}
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// at is the node under keys of nested mappings; nil where there is none.
func (d document) at(keys ...string) *yaml.Node {
	node := d.root.Content[0]
	for _, key := range keys {
		if node = child(node, key); node == nil {
			return nil
		}
	}
	return node
}

// text is the scalar under keys; empty where there is none.
func (d document) text(keys ...string) string {
	if node := d.at(keys...); node != nil && node.Kind == yaml.ScalarNode {
		return node.Value
	}
	return ""
}

// put sets the scalar under keys, which must be there: a manifest and its edits belong together.
func (d document) put(value string, keys ...string) error {
	node := d.at(keys...)
	if node == nil {
		return fmt.Errorf("%s %q has no %v to set", d.text("kind"), d.text("metadata", "name"), keys)
	}
	setText(node, value)
	return nil
}

// setText makes a node a string, quoted where it would be read as something else.
func setText(node *yaml.Node, value string) {
	node.Style = 0
	node.SetString(value)
}

// child is the value of a key in a mapping, or nil.
func child(mapping *yaml.Node, key string) *yaml.Node {
	if mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// ensure is the value of a key in a mapping, made an empty mapping where there is none.
func ensure(mapping *yaml.Node, key string) *yaml.Node {
	found := child(mapping, key)
	if found == nil {
		name := new(yaml.Node)
		name.SetString(key)
		found = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
		mapping.Content = append(mapping.Content, name, found)
	}
	if found.Tag == "!!null" {
		*found = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: mapping.Style}
	}
	return found
}
