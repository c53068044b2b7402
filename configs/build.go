package configs

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// fromProgram stands for the place of what a program set in a File.
const fromProgram = "program"

// Build checks a config that was made by a program, beginning with DefaultFile, as Load checks files. Options.Files are not
// read. What is empty or false in the file is left out, and so are a restart that costs nothing and what is zero in an item
// of a list.
func Build(c Catalog, f File, o Options) (*Config, error) {
	l := newLoader(c, o, fromProgram)
	at := core.Position{File: fromProgram}
	settings := core.Encode(&f)
	if f.Restart.Overhead == 0 && len(f.Restart.Applications) == 0 {
		delete(settings, restartPath)
	}
	if problems := encodable(settings); len(problems) > 0 {
		return nil, problems.Err()
	}
	r := &reader{position: func(int, int) core.Position { return at }}
	root := r.mapping(fieldsNode(core.FieldsOf(&f), written(settings, false)), at)
	l.found = append(l.found, r.found...)
	l.root = root
	return l.load()
}

// written leaves out what nobody wrote.
func written(settings map[string]any, item bool) map[string]any {
	kept := map[string]any{}
	for key, value := range settings {
		switch v := value.(type) {
		case map[string]any:
			if key != "config" { // the settings of a component are what they are
				v = written(v, item)
			}
			if len(v) > 0 {
				kept[key] = v
			}
		case []any:
			list := slices.Clone(v)
			for i := range list {
				if m, ok := list[i].(map[string]any); ok {
					list[i] = written(m, true)
				}
			}
			kept[key] = list
		case string:
			if v != "" {
				kept[key] = v
			}
		case bool:
			if v {
				kept[key] = v
			}
		default:
			if !item || value != int64(0) && value != 0.0 {
				kept[key] = value
			}
		}
	}
	return kept
}
