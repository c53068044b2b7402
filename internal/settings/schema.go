package settings

import (
	"encoding/json"
	"strconv"
	"strings"
)

// SchemaOf is the JSON schema of a Config struct, given as a pointer to its defaults.
func SchemaOf(config any) map[string]any {
	return objectSchema(FieldsOf(config), Encode(config))
}

// objectSchema describes a mapping; defaults is nil for the elements of a list, which have none.
func objectSchema(fields []Field, defaults map[string]any) map[string]any {
	properties := map[string]any{}
	required := []any{}
	for i := range fields {
		f := &fields[i]
		nested, _ := defaults[f.Name].(map[string]any)
		property := valueSchema(f, f.Type, nested)
		property["description"] = f.Doc
		if value, given := defaults[f.Name]; given && !f.Required && f.Type != "object" && f.Type != "mapping" {
			property["default"] = value
		}
		inItem := defaults == nil
		if f.Required || (inItem && !zeroAllowed(f)) {
			required = append(required, f.Name)
		}
		properties[f.Name] = property
	}
	schema := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

func valueSchema(f *Field, typ string, defaults map[string]any) map[string]any {
	if elem, ok := strings.CutPrefix(typ, listOf); ok {
		return map[string]any{"type": "array", "items": valueSchema(f, elem, nil)}
	}
	schema := map[string]any{}
	switch typ {
	case "object":
		return objectSchema(f.Fields, defaults)
	case "mapping":
		return map[string]any{"type": "object"}
	case "bool":
		schema["type"] = "boolean"
	case "int":
		schema["type"] = "integer"
	case "uint":
		schema["type"], schema["minimum"] = "integer", 0
	case "number":
		schema["type"] = "number"
	case "duration":
		schema["type"] = "string"
		schema["pattern"] = durationPattern
		return schema // its bounds are durations too, which a schema cannot compare
	case "string":
		schema["type"] = "string"
		if f.Enum != nil {
			schema["enum"] = toAny(f.Enum)
		}
		return schema
	}
	setBound(schema, "minimum", f.Min)
	setBound(schema, "maximum", f.Max)
	return schema
}

// durationPattern accepts what time.ParseDuration does.
const durationPattern = `^[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

func setBound(schema map[string]any, keyword, tag string) {
	if _, err := strconv.ParseFloat(tag, 64); err == nil {
		schema[keyword] = json.Number(tag)
	}
}

func toAny(names []string) []any {
	list := make([]any, len(names))
	for i, n := range names {
		list[i] = n
	}
	return list
}
