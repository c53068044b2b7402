package configs

import (
	"path/filepath"
	"reflect"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// layer lays the tree over the defaults, key by key.
func (l *loader) layer() {
	f := defaultFile()
	defaults := nonZero(core.Encode(&f))
	defaults["name"] = strings.TrimSuffix(filepath.Base(l.name), filepath.Ext(l.name))
	l.settings, _ = laid(defaults, l.root.plain()).(map[string]any)
}

// laid is a value over a default: mappings key by key; everything else replaces, an empty mapping too.
func laid(under, over any) any {
	lower, ok := under.(map[string]any)
	upper, both := over.(map[string]any)
	if !ok || !both {
		return over
	}
	for key, value := range upper {
		m, mapping := value.(map[string]any)
		if earlier, given := lower[key]; given && (!mapping || len(m) > 0) {
			value = laid(earlier, value)
		}
		lower[key] = value
	}
	return lower
}

// nonZero leaves out what has no default, so that it is still missed when nobody gives it.
func nonZero(settings map[string]any) map[string]any {
	given := map[string]any{}
	for key, value := range settings {
		if nested, ok := value.(map[string]any); ok {
			if nested = nonZero(nested); len(nested) > 0 {
				given[key] = nested
			}
		} else if list, ok := value.([]any); (ok && len(list) > 0) || (!ok && !reflect.ValueOf(value).IsZero()) {
			given[key] = value
		}
	}
	return given
}

// lookup returns the value at a path, nil when there is none.
func lookup(value any, path string) any {
	steps, _ := parsePath(path)
	for _, s := range steps {
		if s.isIndex {
			list, _ := value.([]any)
			if s.index >= len(list) {
				return nil
			}
			value = list[s.index]
		} else {
			mapping, _ := value.(map[string]any)
			value = mapping[s.key]
		}
	}
	return value
}
