package core

import (
	"time"

	"github.com/quartet-sched/quartet/internal/settings"
)

// What describes the settings of components and the problems of inputs.
type (
	// Field describes one setting of a Config struct, as the tags of the struct have it.
	Field = settings.Field
	// Position is a place in an input file; Line and Column count from 1, 0 means unknown.
	Position = settings.Position
	// Diagnostic is one problem in an input, described so that the user can fix it without looking elsewhere.
	Diagnostic = settings.Diagnostic
	// Diagnostics is every problem found in an input. It is an error when it is not empty: return it through Err.
	Diagnostics = settings.Diagnostics
)

// SchemaDialect is the JSON schema draft that Schema speaks.
const SchemaDialect = "https://json-schema.org/draft/2020-12/schema"

// Fields describes the settings of the component, in the order of its Config struct.
func (f Factory[S]) Fields() []Field {
	if f.foreign != nil {
		return f.foreign.Fields()
	}
	return FieldsOf(f.defaults())
}

// FieldsOf describes the fields of a Config struct, given as a pointer to its defaults, or those of a config that
// Factory.Decode returned.
func FieldsOf(config any) []Field {
	if c, ok := config.(*foreignConfig); ok {
		return c.fields
	}
	return settings.FieldsOf(config)
}

// Decode makes a config for New: the defaults with the user's settings on top. It is strict, and reports every problem
// with its path inside the config: unknown keys, values of the wrong type, values that the tags forbid, and, when the
// values are usable, what Validate says. An error of Validate that begins with the path of a setting and ": " is
// reported there; joined errors are reported one by one. The config is nil when there are problems. raw holds what
// YAML and JSON can hold, and may be nil.
func (f Factory[S]) Decode(raw map[string]any) (config any, ds Diagnostics) {
	if f.foreign != nil {
		return f.foreign.decode(raw)
	}
	config = f.defaults()
	if ds = Decode(config, raw); len(ds) > 0 {
		return nil, ds
	}
	return config, nil
}

// Decode does for any Config struct, given as a pointer to its defaults, what Factory.Decode does for a component.
// After problems with values, config is as it was.
func Decode(config any, raw map[string]any) Diagnostics { return settings.Decode(config, raw) }

// Encode is the inverse of Decode: every setting of a config with its value, as Decode takes it, but those that are left out and have no value then.
func Encode(config any) map[string]any {
	if c, ok := config.(*foreignConfig); ok {
		return c.settings
	}
	return settings.Encode(config)
}

// Schema is the JSON schema of the component's settings.
func (f Factory[S]) Schema() map[string]any {
	if f.foreign != nil {
		return f.foreign.Schema()
	}
	schema := SchemaOf(f.defaults())
	schema["$schema"] = SchemaDialect
	schema["title"] = f.Type
	schema["description"] = f.Summary
	return schema
}

// SchemaOf is the JSON schema of a Config struct, given as a pointer to its defaults.
func SchemaOf(config any) map[string]any { return settings.SchemaOf(config) }

// FormatDuration writes a duration without the zero parts that time.Duration.String adds: 8h, not 8h0m0s.
func FormatDuration(d time.Duration) string { return settings.FormatDuration(d) }

// JoinPath appends a key to the path of a mapping.
func JoinPath(path, key string) string { return settings.JoinPath(path, key) }

// Nearest is the valid name that a mistyped one most likely stands for; "" when none is near.
func Nearest(name string, valid []string) string { return settings.Nearest(name, valid) }

// UnknownName reports that nothing of a kind has a name: a job or a node, say. Where says where it was looked for, as in ` in namespace "x"`, or
// is empty. The hint lists the valid names if these are few, and the nearest of them otherwise.
func UnknownName(noun, name, where string, valid []string) Diagnostics {
	return settings.UnknownName(noun, name, where, valid)
}

// SuggestHint is the hint for an unknown name: `did you mean "x"? valid keys: a, b`. The noun names what is listed. A name that is valid is
// not suggested to who wrote it.
func SuggestHint(name, noun string, valid []string) string {
	return settings.SuggestHint(name, noun, valid)
}
