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
	"github.com/quartet-sched/quartet/internal/inputfile"
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
	if earlier, err := inputfile.Read(path, inputfile.Document); err == nil && slices.Equal(earlier, text) {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return replace(path, text)
}

// document is the study as YAML.
func (s *Study) document(dir string) *yaml.Node {
	m := newMapping()
	m.put("version", nodeOf(1))
	m.put("name", nodeOf(s.Name))
	if len(s.Base) > 0 {
		m.put("base", filesNode(dir, s.Base))
	}
	if len(s.Set) > 0 {
		m.put("set", settingsNode(s.Set))
	}
	axes := newMapping()
	for a := range s.Axes {
		items := &yaml.Node{Kind: yaml.SequenceNode}
		for k := range s.Axes[a].Items {
			items.Content = append(items.Content, s.itemNode(dir, &s.Axes[a].Items[k]))
		}
		axes.put(s.Axes[a].Name, items)
	}
	m.put("axes", axes.node)
	m.put("seeds", s.Seeds.node())
	if s.Baseline >= 0 {
		baseline := newMapping()
		baseline.put(s.Axes[s.Compared].Name, nodeOf(s.Axes[s.Compared].Items[s.Baseline].Name))
		m.put("baseline", flow(baseline.node))
	}
	if s.UnequalInputs {
		m.put("unequal_inputs", nodeOf(true))
	}
	m.put("metrics", flow(nodeOf(s.Metrics)))
	if len(s.Write) > 0 {
		m.put("write", flow(nodeOf(s.Write)))
	}
	if len(s.Points) > 0 {
		m.put("published", s.pointsNode())
	}
	return m.node
}

// itemNode is an item of an axis as YAML.
func (s *Study) itemNode(dir string, item *Item) *yaml.Node {
	m := newMapping()
	m.put("name", nodeOf(item.Name))
	if len(item.Files) > 0 {
		m.put("files", filesNode(dir, item.Files))
	}
	m.put("set", settingsNode(item.Set))
	if item.Windows != nil {
		m.put("windows", item.Windows.node())
	}
	if len(item.With) > 0 {
		m.put("with", flow(s.withNode(item.With)))
	}
	return flow(m.node)
}

// node is the windows as YAML.
func (w *Windows) node() *yaml.Node {
	m := newMapping()
	if w.Span > 0 {
		m.put("span", nodeOf(core.FormatDuration(w.Span)))
	} else {
		m.put("jobs", nodeOf(w.Jobs))
		m.put("first_job", nodeOf(w.FirstJob))
		if w.Stride > 0 {
			m.put("stride", nodeOf(w.Stride))
		}
	}
	m.put("count", nodeOf(w.Count))
	return flow(m.node)
}

// node is the seeds as YAML.
func (s *Seeds) node() *yaml.Node {
	m := newMapping()
	if s.Config {
		m.put("config", nodeOf(true))
	} else {
		m.put("first", nodeOf(s.First))
		m.put("count", nodeOf(s.Count))
	}
	if u := s.Until; u != nil {
		until := newMapping()
		until.put("metric", nodeOf(u.Metric))
		until.put("half_width", nodeOf(u.HalfWidth))
		until.put("most", nodeOf(u.Most))
		m.put("until", flow(until.node))
	}
	return flow(m.node)
}

// pointsNode is the published figures as YAML.
func (s *Study) pointsNode() *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range s.Points {
		p := &s.Points[i]
		m := newMapping()
		m.put("figure", nodeOf(p.Figure))
		m.put("metric", nodeOf(p.Metric))
		m.put("at", flow(s.withNode(p.At)))
		m.put("value", nodeOf(p.Value))
		list.Content = append(list.Content, m.node)
	}
	return list
}

// mapping is a YAML mapping in the order in which its keys are put.
type mapping struct{ node *yaml.Node }

func newMapping() mapping { return mapping{&yaml.Node{Kind: yaml.MappingNode}} }

func (m mapping) put(key string, value *yaml.Node) {
	m.node.Content = append(m.node.Content, nodeOf(key), value)
}

// nodeOf is a value as YAML.
func nodeOf(value any) *yaml.Node {
	var n yaml.Node
	if err := n.Encode(value); err != nil {
		n.SetString("") // never: it was read from YAML
	}
	return &n
}

// flow puts a node on one line.
func flow(n *yaml.Node) *yaml.Node {
	n.Style = yaml.FlowStyle
	return n
}

// filesNode is a list of files, each as it is reached from a folder.
func filesNode(dir string, names []string) *yaml.Node {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = from(dir, name)
	}
	return flow(nodeOf(list))
}

// settingsNode is settings by path.
func settingsNode(list []Setting) *yaml.Node {
	m := newMapping()
	for _, s := range list {
		m.put(s.Path, flow(nodeOf(s.Value)))
	}
	return flow(m.node)
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
func (s *Study) withNode(list []Only) *yaml.Node {
	m := newMapping()
	for _, o := range list {
		names := make([]string, len(o.Items))
		for i, k := range o.Items {
			names[i] = s.Axes[o.Axis].Items[k].Name
		}
		value := flow(nodeOf(names))
		if len(names) == 1 {
			value = nodeOf(names[0])
		}
		m.put(s.Axes[o.Axis].Name, value)
	}
	return m.node
}
