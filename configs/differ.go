package configs

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Difference is a setting in which two resolved configs differ, each value as YAML on one line, empty where there is none.
type Difference struct {
	Path  string // of the setting, such as round.interval
	Here  string // value in the config
	There string // value in the other config
}

// String words the difference as "path: value, there value".
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s, there %s", d.Path, orAbsent(d.Here), orAbsent(d.There))
}

// Differ lists how a resolved config differs from another, in the order of the keys, each as "path: value, there value".
// Of a component of another type only the type is listed. Where results go and which files are written is no difference.
func Differ(resolved, other []byte) ([]string, error) {
	here, err := Leaves(resolved)
	if err != nil {
		return nil, err
	}
	there, err := Leaves(other)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, d := range Differences(here, there) {
		list = append(list, d.String())
	}
	return list, nil
}

// Differences lists what Differ words, of the settings of two configs. A section that one of them leaves out is at its defaults.
func Differences(here, there []Leaf) []Difference {
	here, there = withSections(here, there), withSections(there, here)
	known := make(map[string]string, len(there))
	for _, leaf := range there {
		known[leaf.Path] = leaf.Value
	}
	var list []Difference
	changed := "\x00" // settings of a component whose type differs: the type says it all
	tell := func(d Difference) {
		if component, ok := strings.CutSuffix(d.Path, "type"); ok && d.Here != d.There {
			changed = component + "config"
		}
		if d.Here != d.There && !strings.HasPrefix(d.Path, changed) {
			list = append(list, d)
		}
	}
	for _, leaf := range here {
		tell(Difference{leaf.Path, leaf.Value, known[leaf.Path]})
		delete(known, leaf.Path)
	}
	for _, leaf := range there {
		if _, left := known[leaf.Path]; left {
			tell(Difference{leaf.Path, "", leaf.Value})
		}
	}
	return list
}

// withSections adds the defaults of the sections that a config leaves out and another has.
func withSections(leaves, other []Leaf) []Leaf {
	f, whole := defaultFile(), leaves
	for _, section := range [...]struct {
		prefix string
		node   func() *yaml.Node
	}{
		{"sample.", func() *yaml.Node { return settings(&f.Sample) }},
		{"estimate.", func() *yaml.Node { return settings(&f.Estimate) }},
		{"measure.", f.Measure.node},
	} {
		within := func(leaf Leaf) bool { return strings.HasPrefix(leaf.Path, section.prefix) }
		if slices.ContainsFunc(leaves, within) || !slices.ContainsFunc(other, within) {
			continue
		}
		whole = slices.Clone(whole)
		walkLeaves("", section.node(), func(path string, leaf *yaml.Node) {
			if path = section.prefix + path; slices.ContainsFunc(other, func(o Leaf) bool { return o.Path == path }) {
				whole = append(whole, Leaf{path, flow(leaf)})
			}
		})
	}
	return whole
}

// A Leaf is a setting of a resolved config: a scalar, or a list or mapping without content, as YAML on one line.
type Leaf struct {
	Path  string // of the setting, such as round.interval
	Value string // as YAML on one line
}

// Leaves lists the settings of a resolved config in its order. Where results go and which files are written is left out.
func Leaves(resolved []byte) ([]Leaf, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(resolved, &document); err != nil {
		return nil, fmt.Errorf("read a resolved config: %w", err)
	}
	var list []Leaf
	if len(document.Content) > 0 {
		walkLeaves("", document.Content[0], func(path string, leaf *yaml.Node) {
			if !strings.HasPrefix(path, "output.") {
				list = append(list, Leaf{path, flow(leaf)})
			}
		})
	}
	return list, nil
}

func orAbsent(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}
