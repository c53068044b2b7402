package study

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
)

// Locate finds the config files of a study, beside the study file or where the process runs, unless they are embedded.
func (s *Study) Locate(folder string) {
	locate := func(files []string) {
		for i, name := range files {
			beside := filepath.Join(folder, name)
			if filepath.IsAbs(name) || name == "-" {
				continue
			}
			if _, err := os.Stat(beside); err == nil {
				files[i] = beside
			}
		}
	}
	locate(s.Base)
	for a := range s.Axes {
		for k := range s.Axes[a].Items {
			locate(s.Axes[a].Items[k].Files)
		}
	}
}

// writeResolved writes the study with everything that was left out, such that it can be read from its folder.
func (s *Study) writeResolved(dir string) error {
	text, err := yaml.Marshal(s.document(dir))
	if err != nil {
		return err
	}
	path := filepath.Join(dir, StudyFile)
	if earlier, err := os.ReadFile(path); err == nil && slices.Equal(earlier, text) {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return replace(path, text)
}

func (s *Study) document(dir string) *yaml.Node {
	node := func(value any) *yaml.Node {
		var n yaml.Node
		if err := n.Encode(value); err != nil {
			n.SetString("") // never: it was read from YAML
		}
		return &n
	}
	flow := func(n *yaml.Node) *yaml.Node { n.Style = yaml.FlowStyle; return n }
	mapping := &yaml.Node{Kind: yaml.MappingNode}
	put := func(m *yaml.Node, key string, value *yaml.Node) { m.Content = append(m.Content, node(key), value) }
	files := func(names []string) *yaml.Node {
		list := make([]string, len(names))
		for i, name := range names {
			list[i] = from(dir, name)
		}
		return flow(node(list))
	}
	settings := func(list []Setting) *yaml.Node {
		m := flow(&yaml.Node{Kind: yaml.MappingNode})
		for _, s := range list {
			put(m, s.Path, flow(node(s.Value)))
		}
		return m
	}
	put(mapping, "version", node(1))
	put(mapping, "name", node(s.Name))
	if len(s.Base) > 0 {
		put(mapping, "base", files(s.Base))
	}
	if len(s.Set) > 0 {
		put(mapping, "set", settings(s.Set))
	}
	axes := &yaml.Node{Kind: yaml.MappingNode}
	for a := range s.Axes {
		items := &yaml.Node{Kind: yaml.SequenceNode}
		for k := range s.Axes[a].Items {
			item := &s.Axes[a].Items[k]
			m := flow(&yaml.Node{Kind: yaml.MappingNode})
			put(m, "name", node(item.Name))
			if len(item.Files) > 0 {
				put(m, "files", files(item.Files))
			}
			put(m, "set", settings(item.Set))
			if w := item.Windows; w != nil {
				windows := flow(&yaml.Node{Kind: yaml.MappingNode})
				if w.Span > 0 {
					put(windows, "span", node(core.FormatDuration(w.Span)))
				} else {
					put(windows, "jobs", node(w.Jobs))
					put(windows, "first_job", node(w.FirstJob))
					if w.Stride > 0 {
						put(windows, "stride", node(w.Stride))
					}
				}
				put(windows, "count", node(w.Count))
				put(m, "windows", windows)
			}
			if len(item.With) > 0 {
				put(m, "with", flow(s.withNode(item.With, node, put)))
			}
			items.Content = append(items.Content, m)
		}
		put(axes, s.Axes[a].Name, items)
	}
	put(mapping, "axes", axes)
	seeds := flow(&yaml.Node{Kind: yaml.MappingNode})
	if s.Seeds.Config {
		put(seeds, "config", node(true))
	} else {
		put(seeds, "first", node(s.Seeds.First))
		put(seeds, "count", node(s.Seeds.Count))
	}
	if u := s.Seeds.Until; u != nil {
		until := flow(&yaml.Node{Kind: yaml.MappingNode})
		put(until, "metric", node(u.Metric))
		put(until, "half_width", node(u.HalfWidth))
		put(until, "most", node(u.Most))
		put(seeds, "until", until)
	}
	put(mapping, "seeds", seeds)
	if s.Baseline >= 0 {
		m := flow(&yaml.Node{Kind: yaml.MappingNode})
		put(m, s.Axes[s.Compared].Name, node(s.Axes[s.Compared].Items[s.Baseline].Name))
		put(mapping, "baseline", m)
	}
	if s.UnequalInputs {
		put(mapping, "unequal_inputs", node(true))
	}
	put(mapping, "metrics", flow(node(s.Metrics)))
	if len(s.Write) > 0 {
		put(mapping, "write", flow(node(s.Write)))
	}
	if len(s.Points) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range s.Points {
			p := &s.Points[i]
			m := flow(&yaml.Node{Kind: yaml.MappingNode})
			put(m, "figure", node(p.Figure))
			put(m, "metric", node(p.Metric))
			put(m, "at", flow(s.withNode(p.At, node, put)))
			put(m, "value", node(p.Value))
			list.Content = append(list.Content, m)
		}
		put(mapping, "published", list)
	}
	return mapping
}

// from is the name of a file as it is reached from a folder; embedded configs keep theirs.
func from(dir, name string) string {
	if name == "-" || filepath.IsAbs(name) {
		return name
	}
	if _, err := os.Stat(name); err != nil && slices.Contains(configs.EmbeddedNames(), name) {
		return name
	}
	folder, err := filepath.Abs(dir)
	if err != nil {
		return name
	}
	absolute, err := filepath.Abs(name)
	if err != nil {
		return name
	}
	relative, err := filepath.Rel(folder, absolute)
	if err != nil {
		return name
	}
	return relative
}

func (s *Study) problem(path, summary, hint string) error {
	return core.Diagnostics{{Position: s.at, Path: path, Summary: summary, Hint: hint}}
}

// withNode names items by axis: a list of them, or the only one.
func (s *Study) withNode(list []Only, node func(any) *yaml.Node, put func(m *yaml.Node, key string, value *yaml.Node)) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for _, o := range list {
		names := make([]string, len(o.Items))
		for i, k := range o.Items {
			names[i] = s.Axes[o.Axis].Items[k].Name
		}
		value := node(names)
		value.Style = yaml.FlowStyle
		if len(names) == 1 {
			value = node(names[0])
		}
		put(m, s.Axes[o.Axis].Name, value)
	}
	return m
}
