package configs

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Differ lists how a resolved config differs from another, in the order of the keys, each as "path: value, there value".
// Of a component of another type only the type is told. Where results go and which files are written is no difference.
func Differ(resolved, other []byte) ([]string, error) {
	here, order, err := leaves(resolved)
	if err != nil {
		return nil, err
	}
	there, more, err := leaves(other)
	if err != nil {
		return nil, err
	}
	var list []string
	changed := "\x00" // settings of a component whose type differs: the type says it all
	for _, path := range append(order, more...) {
		a, b := here[path], there[path]
		delete(here, path)
		delete(there, path)
		if component, ok := strings.CutSuffix(path, "type"); ok && a != b {
			changed = component + "config"
		}
		if a != b && !strings.HasPrefix(path, changed) {
			list = append(list, fmt.Sprintf("%s: %s, there %s", path, orAbsent(a), orAbsent(b)))
		}
	}
	return list, nil
}

// leaves lists the values of a resolved config by their paths.
func leaves(resolved []byte) (values map[string]string, order []string, err error) {
	var document yaml.Node
	if err := yaml.Unmarshal(resolved, &document); err != nil {
		return nil, nil, fmt.Errorf("read a resolved config: %w", err)
	}
	values = map[string]string{}
	if len(document.Content) > 0 {
		walkLeaves("", document.Content[0], func(path string, leaf *yaml.Node) {
			if !strings.HasPrefix(path, "output.") {
				values[path] = flow(leaf)
				order = append(order, path)
			}
		})
	}
	return values, order, nil
}

func orAbsent(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}
