package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// pathKeys are the endings of the keys whose values are paths, in which variables are expanded.
var pathKeys = []string{"path", "profiles", "dir", "dirs", "file"}

func holdsPath(key string) bool {
	return slices.ContainsFunc(pathKeys, func(ending string) bool { return strings.HasSuffix(key, ending) })
}

// expand replaces ${VAR} and ${VAR:-default} in the values of path keys.
func expand(n *node, o Options) core.Diagnostics {
	var ds core.Diagnostics
	for _, item := range n.list {
		ds = append(ds, expand(item, o)...)
	}
	for _, key := range n.keys {
		value := n.fields[key]
		if holdsPath(key) {
			for _, item := range value.list {
				ds = append(ds, item.expandPath(o)...)
			}
			ds = append(ds, value.expandPath(o)...)
		}
		ds = append(ds, expand(value, o)...)
	}
	return ds
}

// expandPath replaces the variables in a text.
func (n *node) expandPath(o Options) (ds core.Diagnostics) {
	text, ok := n.scalar.(string)
	if !ok {
		return nil
	}
	n.scalar, ds = expandText(text, o)
	for i := range ds {
		ds[i].Position = n.at
	}
	return ds
}

var (
	variable     = regexp.MustCompile(`\$\{[^}]*\}?`)
	wellFormed   = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}$`)
	variableHint = "write ${NAME} or ${NAME:-default}"
)

func expandText(text string, o Options) (string, core.Diagnostics) {
	var ds core.Diagnostics
	expanded := variable.ReplaceAllStringFunc(text, func(reference string) string {
		match := wellFormed.FindStringSubmatch(reference)
		if match == nil {
			ds = append(ds, core.Diagnostic{Summary: fmt.Sprintf("%q is not a variable", reference), Hint: variableHint})
			return reference
		}
		name, withDefault := match[1], match[2] != ""
		if value, set := o.env(name); set && (value != "" || !withDefault) {
			return value
		}
		if !withDefault {
			ds = append(ds, core.Diagnostic{
				Summary: fmt.Sprintf("environment variable %q is not set", name),
				Hint:    fmt.Sprintf("set it, or write ${%s:-default}", name),
			})
		}
		return match[3]
	})
	if len(ds) == 0 && variable.MatchString(expanded) {
		ds = append(ds, core.Diagnostic{Summary: fmt.Sprintf("%q is still to be expanded", expanded), Hint: "variables cannot be nested"})
	}
	return expanded, ds
}
