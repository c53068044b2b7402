package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/internal/yamlpos"
)

// AsYAML writes a JSON document as YAML, with its members in their order.
func AsYAML(w io.Writer, document []byte) error {
	in := json.NewDecoder(bytes.NewReader(document))
	in.UseNumber()
	root, err := yamlValue(in)
	if err != nil {
		return fmt.Errorf("translate to YAML: %w", err)
	}
	var text bytes.Buffer
	out := yaml.NewEncoder(&text)
	out.SetIndent(2)
	if err := out.Encode(root); err != nil {
		return err
	}
	_, err = text.WriteTo(w)
	return err
}

// yamlValue reads the next value of a JSON document.
func yamlValue(in *json.Decoder) (*yaml.Node, error) {
	token, err := in.Token()
	if err != nil {
		return nil, err
	}
	scalar := func(tag, value string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
	}
	switch token := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if token == '{' {
			n.Kind = yaml.MappingNode
		}
		for in.More() {
			if n.Kind == yaml.MappingNode {
				key, err := yamlValue(in)
				if err != nil {
					return nil, err
				}
				n.Content = append(n.Content, key)
			}
			value, err := yamlValue(in)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, value)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		_, err := in.Token()
		return n, err
	case string:
		return yamlpos.Text(token), nil
	case json.Number:
		if _, err := strconv.ParseInt(token.String(), 10, 64); err == nil {
			return scalar("!!int", token.String()), nil
		}
		return scalar("!!float", token.String()), nil
	case bool:
		return scalar("!!bool", strconv.FormatBool(token)), nil
	default:
		return scalar("!!null", "null"), nil
	}
}
