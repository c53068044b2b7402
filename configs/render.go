package configs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/yamlpos"
)

// Resolved is the config as canonical YAML with every default filled in and every variable expanded. Parse reads the
// same config back from it, in an empty environment.
func (c *Config) Resolved() ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(c.document()); err != nil {
		return nil, fmt.Errorf("write the config: %w", err)
	}
	return b.Bytes(), e.Close()
}

// Reread reads what Resolved wrote, perhaps in an earlier version, with the components that this config was read with: settings that have come since
// are at their defaults.
func (c *Config) Reread(resolved []byte) (*Config, error) {
	if c.reread == nil {
		return nil, errors.New("the config was not read from text")
	}
	return c.reread(resolved)
}

// Locate fills in where the settings were written that an error names by their paths.
func (c *Config) Locate(err error) error {
	found, ok := errors.AsType[core.Diagnostics](err)
	if !ok || c.tree == nil {
		return err
	}
	for i := range found {
		if d := &found[i]; d.Path != "" && d.Position == (core.Position{}) {
			steps, _ := parsePath(d.Path)
			n, _ := c.tree.find(steps)
			d.Position = n.at
		}
	}
	return found
}

// Origin says where the value of a setting came from.
type Origin struct {
	Path  string // such as "pipeline.allocation.config.fairness_p"
	Value string // as YAML on one line
	From  string // file:line:column, "default", "--set", "--out", another flag or "env" and a variable
}

// Origins lists every setting with where its value came from, in the order of Resolved.
func (c *Config) Origins() []Origin {
	var origins []Origin
	walkLeaves("", c.document(), func(path string, leaf *yaml.Node) {
		from := fromDefault
		steps, _ := parsePath(path)
		n, found := c.tree.find(steps)
		if around := inherited(path); !found && around != "" {
			steps, _ = parsePath(around)
			n, found = c.tree.find(steps)
		}
		if by, laid := c.fromRestart[path]; !found && laid {
			steps, _ = parsePath(by)
			n, found = c.tree.find(steps)
		}
		if found {
			from = n.at.String()
		}
		origins = append(origins, Origin{Path: path, Value: flow(leaf), From: from})
	})
	return origins
}

// walkLeaves visits scalars, and lists and mappings without content.
func walkLeaves(path string, n *yaml.Node, visit func(path string, leaf *yaml.Node)) {
	switch {
	case len(n.Content) == 0:
		visit(path, n)
	case n.Kind == yaml.SequenceNode:
		for i, item := range n.Content {
			walkLeaves(fmt.Sprintf("%s[%d]", path, i), item, visit)
		}
	default:
		for i := 0; i+1 < len(n.Content); i += 2 {
			walkLeaves(core.JoinPath(path, n.Content[i].Value), n.Content[i+1], visit)
		}
	}
}

func flow(n *yaml.Node) string {
	data, err := yaml.Marshal(n)
	if err != nil {
		return n.Value
	}
	return strings.TrimSpace(string(data))
}

// document is the config as YAML nodes, keys in the order of the documentation.
func (c *Config) document() *yaml.Node {
	entries := []entry{{"version", scalar(c.Version)}, {"name", scalar(c.Name)}, {"seed", scalar(c.Seed)}}
	if len(c.Plugins.Dirs) > 0 {
		entries = append(entries, entry{"plugins", settings(&c.Plugins)})
	}
	entries = append(entries,
		entry{"cluster", settings(&c.Cluster)},
		entry{"workload", c.Workload.node()},
	)
	if !c.Sample.Whole() {
		entries = append(entries, entry{"sample", sampleNode(&c.Sample)})
	}
	if c.Estimate != workload.DefaultEstimate() {
		entries = append(entries, entry{"estimate", settings(&c.Estimate)})
	}
	entries = append(entries, entry{"round", settings(&c.Round)})
	if cost := c.restartNode(); cost != nil {
		entries = append(entries, entry{restartPath, cost})
	}
	if !c.Measure.Whole() {
		entries = append(entries, entry{"measure", c.Measure.node()})
	}
	entries = append(entries, entry{"pipeline", c.pipelineNode()})
	if len(c.Alternatives) > 0 {
		entries = append(entries, entry{synthesizerPath, c.Synthesizer.node(c.Alternatives)})
	}
	return mapping(append(entries,
		entry{"backend", c.Backend.node()},
		entry{"output", settings(&c.Output)},
	)...)
}

func (c *Config) pipelineNode() *yaml.Node {
	admission := &yaml.Node{Kind: yaml.SequenceNode}
	if len(c.Admission) == 0 {
		admission.Style = yaml.FlowStyle
	}
	for _, s := range c.Admission {
		admission.Content = append(admission.Content, s.node())
	}
	return mapping(
		entry{"admission", admission},
		entry{"allocation", c.Allocation.node()},
		entry{"placement", c.Placement.node()},
		entry{"elasticity", mapping(entry{"job", c.Elasticity.node()}, entry{"cluster", c.Scaler.node()})},
	)
}

// node leaves out the shares that are not given.
func (m *Measure) node() *yaml.Node {
	values := core.Encode(m)
	for name, ratio := range map[string]float64{"warm_up_ratio": m.WarmUpRatio, "cool_down_ratio": m.CoolDownRatio} {
		if ratio == 0 {
			delete(values, name)
		}
	}
	return fieldsNode(core.FieldsOf(m), values)
}

func (s Selected[S]) node() *yaml.Node {
	entries := []entry{{"type", scalar(s.Factory.Type)}}
	if config := settings(s.Config); len(config.Content) > 0 {
		entries = append(entries, entry{"config", config})
	}
	if s.Remote != nil {
		if s.Remote.Isolated {
			entries = append(entries, entry{"isolate", scalar(true)})
		}
		entries = append(entries, entry{"plugin", s.Remote.node()})
	}
	return mapping(entries...)
}

func (r *Remote[S]) node() *yaml.Node {
	values := core.Encode(&r.Options)
	delete(values, "fallback")
	n := fieldsNode(core.FieldsOf(&r.Options), values)
	if r.Fallback != nil {
		n.Content = append(n.Content, mapping(entry{"fallback", r.Fallback.node()}).Content...)
	}
	return n
}

// sampleNode leaves out the parts that earlier versions did not have where they do nothing: a config is then resolved to what it was.
func sampleNode(s *workload.Sample) *yaml.Node {
	values := core.Encode(s)
	if s.Tiers.None() {
		delete(values, "tiers")
	}
	if s.Usage.None() {
		delete(values, "usage")
	}
	return fieldsNode(core.FieldsOf(s), values)
}

// settings renders a Config struct, given by pointer.
func settings(config any) *yaml.Node {
	return fieldsNode(core.FieldsOf(config), core.Encode(config))
}

func fieldsNode(fields []core.Field, values map[string]any) *yaml.Node {
	var entries []entry
	for i := range fields {
		f := &fields[i]
		if value, given := values[f.Name]; given {
			entries = append(entries, entry{f.Name, valueNode(f, value)})
		}
	}
	return mapping(entries...)
}

func valueNode(f *core.Field, value any) *yaml.Node {
	switch value := value.(type) {
	case map[string]any:
		if len(f.Fields) == 0 {
			return scalar(value) // of free keys
		}
		return fieldsNode(f.Fields, value)
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, item := range value {
			n.Content = append(n.Content, valueNode(f, item))
		}
		return n
	default:
		return scalar(value)
	}
}

// entry is a key of a mapping with its value.
type entry struct {
	key   string
	value *yaml.Node
}

func mapping(entries ...entry) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, e := range entries {
		n.Content = append(n.Content, scalar(e.key), e.value)
	}
	return n
}

// scalar encodes a string, a bool, a number or a mapping of these, with the quotes they need.
func scalar(value any) *yaml.Node {
	if text, ok := value.(string); ok {
		return yamlpos.Text(text)
	}
	var n yaml.Node
	if err := n.Encode(value); err != nil {
		n.SetString(fmt.Sprint(value)) // never: scalars can be encoded
	}
	return &n
}
