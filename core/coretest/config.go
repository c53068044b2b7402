package coretest

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// strangeKey is a setting that no component has.
const strangeKey = "no_such_key"

// CheckConfig reports everything that is wrong with what a factory says of itself: type and settings in snake_case, a
// summary and one sentence of documentation for each setting, defaults that decode, and unknown keys that do not,
// however deep. raw gives the settings that have no default; nil for none.
func CheckConfig[S any](f core.Factory[S], raw map[string]any) error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if !snakeCase.MatchString(f.Type) {
		fault("type %q is not snake_case", f.Type)
	}
	if f.Summary == "" || strings.Contains(f.Summary, "\n") {
		fault("summary %q is not one line", f.Summary)
	}
	if f.Description == "" {
		fault("no description")
	}
	config, problems := f.Decode(raw)
	if err := problems.Err(); err != nil {
		fault("config: %w", err)
		return errors.Join(faults...)
	}
	if _, problems := f.Decode(core.Encode(config)); problems.Err() != nil {
		fault("config does not survive writing it out: %w", problems.Err())
	}
	faults = append(faults, fieldFaults("", f.Fields())...)
	for _, raw := range intrusions(core.Encode(config), f.Fields()) {
		if _, problems := f.Decode(raw); !mentions(problems, strangeKey) {
			fault("unknown key is not refused: %v", raw)
		}
	}
	return errors.Join(faults...)
}

func fieldFaults(path string, fields []core.Field) []error {
	var faults []error
	seen := make(map[string]bool)
	for i := range fields {
		f := &fields[i]
		at := core.JoinPath(path, f.Name)
		switch {
		case !snakeCase.MatchString(f.Name):
			faults = append(faults, fmt.Errorf("setting %q: name is not snake_case", at))
		case seen[f.Name]:
			faults = append(faults, fmt.Errorf("setting %q: declared twice", at))
		case f.Doc == "":
			faults = append(faults, fmt.Errorf("setting %q: no documentation", at))
		case strings.Contains(f.Type, "unsupported"):
			faults = append(faults, fmt.Errorf("setting %q: type %s", at, f.Type))
		}
		seen[f.Name] = true
		faults = append(faults, fieldFaults(at, f.Fields)...)
	}
	return faults
}

// intrusions returns copies of the settings with an unknown key, one for each object among them and in them, and one
// for each list of objects.
func intrusions(settings map[string]any, fields []core.Field) []map[string]any {
	all := []map[string]any{with(settings, strangeKey, 1)}
	for i := range fields {
		f := &fields[i]
		switch f.Type {
		case "object":
			inner, _ := settings[f.Name].(map[string]any)
			for _, intruded := range intrusions(inner, f.Fields) {
				all = append(all, with(settings, f.Name, intruded))
			}
		case "list of object":
			all = append(all, with(settings, f.Name, []any{map[string]any{strangeKey: 1}}))
		}
	}
	return all
}

func with(settings map[string]any, key string, value any) map[string]any {
	changed := map[string]any{key: value}
	for k, v := range settings {
		if k != key {
			changed[k] = v
		}
	}
	return changed
}

func mentions(problems core.Diagnostics, key string) bool {
	for _, p := range problems {
		if strings.HasSuffix(p.Path, key) {
			return true
		}
	}
	return false
}
