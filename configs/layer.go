package configs

import (
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/viper"

	"github.com/quartet-sched/quartet/core"
)

// layer lays the tree over the defaults, key by key. Viper folds the case of keys and loses empty mappings and nulls,
// without a word: the grammar of configs knows no other keys than lower case ones, and the rest travels sealed.
func (l *loader) layer() error {
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	f := defaultFile()
	for key, value := range nonZero(core.Encode(&f)) {
		v.SetDefault(key, value)
	}
	v.SetDefault("name", strings.TrimSuffix(filepath.Base(l.name), filepath.Ext(l.name)))
	sealed := map[string]any{}
	for key, value := range l.root.fields {
		sealed[key] = seal(value)
	}
	if err := v.MergeConfigMap(sealed); err != nil {
		return err
	}
	l.settings = map[string]any{}
	for key, value := range v.AllSettings() {
		l.settings[key] = unseal(value)
	}
	return nil
}

// seal is the plain value of a mapping of the file's own keys. What viper would lose, and the settings of components,
// stay nodes, which viper hands on untouched.
func seal(n *node) any {
	if n.kind != mappingKind || len(n.keys) == 0 {
		return n
	}
	m := make(map[string]any, len(n.fields))
	for key, value := range n.fields {
		if key == "config" {
			m[key] = value
		} else {
			m[key] = seal(value)
		}
	}
	return m
}

// unseal makes the value plain again.
func unseal(value any) any {
	switch value := value.(type) {
	case *node:
		return value.plain()
	case map[string]any:
		m := make(map[string]any, len(value))
		for key, v := range value {
			m[key] = unseal(v)
		}
		return m
	default:
		return value
	}
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
