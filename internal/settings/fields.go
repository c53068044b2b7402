// Package settings describes, checks, decodes and encodes the Config structs of components, and words the problems of inputs. Package core lends its names.
package settings

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Field describes one setting of a Config struct. It is read from the tags of the struct:
//
//	Factor float64 `config:"factor" doc:"share of the devices that may be promised" min:"0"`
//
// config is the key, lower_snake_case; doc one sentence. enum:"a|b", min and max bound the value, or each element of a
// list; required:"true" is for a setting without a default. An embedded struct lends its fields; required:"list.key" on it
// makes a field of theirs required, several with spaces between them. The elements
// of a list have no defaults: what is left out of one is zero, and refused if the tags forbid zero. A pointer is for a
// setting whose zero means something else than its absence: it is nil where the setting is left out.
type Field struct {
	Name string // empty when the config tag is missing
	// Type is bool, int, uint, number, string, duration, object, mapping (free keys), "list of" one of these, or
	// "unsupported" followed by a Go type that no config may use.
	Type     string
	Doc      string   // one sentence; empty when the doc tag is missing
	Default  string   // as the user would write it; empty for objects
	Required bool     // has no default, so that the user must set it
	Enum     []string // values that are allowed; nil for no such list
	Min, Max string   // bounds, as the tags have them; empty for none
	Fields   []Field  // of an object, or of the objects of a list
}

// FieldsOf describes the fields of a Config struct, given as a pointer to its defaults.
func FieldsOf(config any) []Field {
	return fieldsOf(reflect.Indirect(reflect.ValueOf(config)), 0)
}

const (
	listOf      = "list of "
	unsupported = "unsupported "
)

// maxNesting ends the description of a Config struct that contains itself.
const maxNesting = 8

var durationType = reflect.TypeFor[time.Duration]()

func fieldsOf(config reflect.Value, depth int) []Field {
	var fields []Field
	for i := range config.NumField() {
		sf, value := config.Type().Field(i), config.Field(i)
		switch {
		case embedded(sf):
			lent := fieldsOf(value, depth+1)
			for path := range strings.FieldsSeq(sf.Tag.Get("required")) {
				require(lent, strings.Split(path, "."))
			}
			fields = append(fields, lent...)
		case sf.IsExported():
			fields = append(fields, newField(sf, value, depth))
		}
	}
	return fields
}

// require makes the field at a path of keys required.
func require(fields []Field, path []string) {
	for i := range fields {
		switch f := &fields[i]; {
		case f.Name != path[0]:
		case len(path) > 1:
			require(f.Fields, path[1:])
		default:
			f.Required, f.Default = true, ""
		}
	}
}

func embedded(sf reflect.StructField) bool {
	return sf.Anonymous && sf.Type.Kind() == reflect.Struct
}

func newField(sf reflect.StructField, value reflect.Value, depth int) Field {
	f := Field{
		Name: sf.Tag.Get("config"), Doc: sf.Tag.Get("doc"), Type: typeName(sf.Type, depth),
		Required: sf.Tag.Get("required") == "true", Min: sf.Tag.Get("min"), Max: sf.Tag.Get("max"),
	}
	if enum := sf.Tag.Get("enum"); enum != "" {
		f.Enum = strings.Split(enum, "|")
	}
	switch {
	case sf.Type.Kind() == reflect.Pointer && value.IsNil(): // no default
	case f.Type == "object":
		f.Fields = fieldsOf(value, depth+1)
	case strings.HasSuffix(f.Type, listOf+"object"):
		f.Fields = fieldsOf(reflect.Zero(element(sf.Type)), depth+1)
		f.Default = text(encode(value))
	case !f.Required && !strings.Contains(f.Type, unsupported):
		f.Default = text(encode(value))
	}
	return f
}

func typeName(t reflect.Type, depth int) string {
	if t == durationType {
		return "duration"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int64:
		return "int"
	case reflect.Uint, reflect.Uint64:
		return "uint"
	case reflect.Float64:
		return "number"
	case reflect.String:
		return "string"
	case reflect.Pointer:
		if name := typeName(t.Elem(), depth); t.Elem().Kind() != reflect.Pointer && slices.Contains([]string{"bool", "int", "uint", "number", "string", "duration"}, name) {
			return name
		}
	case reflect.Slice:
		if depth < maxNesting {
			return listOf + typeName(t.Elem(), depth+1)
		}
	case reflect.Struct:
		if depth < maxNesting {
			return "object"
		}
	case reflect.Map:
		if t == reflect.TypeFor[map[string]any]() {
			return "mapping"
		}
	}
	return unsupported + t.String()
}

// element is the type inside all the lists.
func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// Encode is the inverse of Decode: every setting of a config with its value, as Decode takes it, but those that are left out and have no value then.
func Encode(config any) map[string]any {
	settings := map[string]any{}
	encodeInto(settings, reflect.Indirect(reflect.ValueOf(config)))
	return settings
}

func encodeInto(settings map[string]any, config reflect.Value) {
	for i := range config.NumField() {
		sf := config.Type().Field(i)
		if embedded(sf) {
			encodeInto(settings, config.Field(i))
		} else if key := sf.Tag.Get("config"); key != "" && sf.IsExported() {
			if value := config.Field(i); value.Kind() != reflect.Pointer {
				settings[key] = encode(value)
			} else if !value.IsNil() {
				settings[key] = encode(value.Elem())
			}
		}
	}
}

func encode(v reflect.Value) any {
	if v.Type() == durationType {
		return FormatDuration(time.Duration(v.Int()))
	}
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint64:
		return v.Uint()
	case reflect.Float64:
		return v.Float()
	case reflect.String:
		return v.String()
	case reflect.Pointer:
		if !v.IsNil() {
			return encode(v.Elem())
		}
		return nil
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = encode(v.Index(i))
		}
		return list
	case reflect.Struct:
		settings := map[string]any{}
		encodeInto(settings, v)
		return settings
	default:
		return v.Interface()
	}
}

// FormatDuration writes a duration without the zero parts that time.Duration.String adds: 8h, not 8h0m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// text writes an encoded value the way YAML does on one line.
func text(v any) string {
	switch v := v.(type) {
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		elements := make([]string, len(v))
		for i := range v {
			elements[i] = text(v[i])
		}
		return "[" + strings.Join(elements, ", ") + "]"
	case map[string]any:
		return "" // an object shows its defaults field by field
	default:
		return fmt.Sprint(v)
	}
}
