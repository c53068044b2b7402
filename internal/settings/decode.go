package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
)

// Decode puts settings of the user on top of a Config struct, given as a pointer to its defaults. It is strict, and reports every problem with its path inside the
// config: see Factory.Decode of package core.
// After problems with values, config is as it was.
func Decode(config any, raw map[string]any) Diagnostics {
	fields := FieldsOf(config)
	var c checker
	c.object("", fields, raw, false)
	if c.unusable {
		return c.found
	}
	if err := assign(config, raw); err != nil {
		return append(c.found, Diagnostic{Summary: err.Error()})
	}
	if v, ok := config.(interface{ Validate() error }); ok {
		c.found = append(c.found, diagnose(v.Validate(), fields)...)
	}
	return c.found
}

// assign writes checked values into the struct. The checker has refused all that mapstructure would bend to fit.
func assign(config any, raw map[string]any) error {
	d, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result:               config,
		TagName:              "config",
		DecodeHook:           mapstructure.StringToTimeDurationHookFunc(),
		MatchName:            func(key, field string) bool { return key == field },
		IgnoreUntaggedFields: true,
		Squash:               true,
		ZeroFields:           true, // a list replaces the default one, and never writes into its memory
		DisableUnmarshaler:   true, // a method of a Config must not swallow unknown keys
	})
	if err != nil {
		return err
	}
	return d.Decode(raw)
}

// diagnose turns what a Validate method returned into diagnostics.
func diagnose(err error, fields []Field) Diagnostics {
	if err == nil {
		return nil
	}
	if ds := Diagnostics(nil); errors.As(err, &ds) {
		return ds
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var ds Diagnostics
		for _, e := range joined.Unwrap() {
			ds = append(ds, diagnose(e, fields)...)
		}
		return ds
	}
	if path, summary, found := strings.Cut(err.Error(), ": "); found {
		first := path[:len(path)-len(strings.TrimLeft(path, "abcdefghijklmnopqrstuvwxyz0123456789_"))]
		if first != "" && slices.ContainsFunc(fields, func(f Field) bool { return f.Name == first }) {
			return Diagnostics{{Path: path, Summary: summary}}
		}
	}
	return Diagnostics{{Summary: err.Error()}}
}

// checker compares raw settings with the fields they are meant for.
type checker struct {
	found    Diagnostics
	unusable bool // a problem that leaves no sensible value to decode
}

// object checks the keys of a mapping; inItem says that it lies in an element of a list, where nothing has defaults.
func (c *checker) object(path string, fields []Field, raw map[string]any, inItem bool) {
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		if !slices.ContainsFunc(fields, func(f Field) bool { return f.Name == key && key != "" }) {
			c.found = append(c.found, Diagnostic{Path: JoinPath(path, key), Summary: "unknown key", Hint: keyHint(key, fields)})
		}
	}
	for i := range fields {
		f := &fields[i]
		if value, given := raw[f.Name]; given {
			c.value(JoinPath(path, f.Name), f, f.Type, value, inItem)
		} else {
			c.absent(JoinPath(path, f.Name), f, inItem)
		}
	}
}

func keyHint(key string, fields []Field) string {
	if len(fields) == 0 {
		return "no keys are valid here"
	}
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
	}
	return SuggestHint(key, "keys", names)
}

func (c *checker) absent(path string, f *Field, inItem bool) {
	switch {
	case f.Type == "object":
		c.object(path, f.Fields, nil, inItem)
	case f.Required, inItem && !zeroAllowed(f):
		c.refuse(Diagnostic{Path: path, Summary: "required but missing", Hint: f.Doc})
	}
}

func zeroAllowed(f *Field) bool {
	var c checker
	switch f.Type {
	case "int", "uint", "number":
		c.number("", f, 0, 0)
	case "duration":
		c.duration("", f, "0s")
	case "string":
		c.string("", f, "")
	}
	return !c.unusable
}

// value checks a value of a setting, or each element of a list.
func (c *checker) value(path string, f *Field, typ string, raw any, inItem bool) {
	if elem, ok := strings.CutPrefix(typ, listOf); ok {
		list, ok := raw.([]any)
		if !ok {
			c.mismatch(path, typ, raw)
			return
		}
		for i, element := range list {
			c.value(fmt.Sprintf("%s[%d]", path, i), f, elem, element, true)
		}
		return
	}
	if !c.single(path, f, typ, raw, inItem) {
		c.mismatch(path, typ, raw)
	}
}

// single checks a value that is no list, and reports whether it is of the type.
func (c *checker) single(path string, f *Field, typ string, raw any, inItem bool) (ok bool) {
	switch typ {
	case "bool":
		_, ok = raw.(bool)
	case "int", "uint":
		ok = c.whole(path, f, typ, raw)
	case "number":
		var v float64
		if v, ok = raw.(float64); !ok {
			v, ok = wholeNumber(raw)
		}
		if ok {
			c.number(path, f, v, raw)
		}
	case "string":
		var v string
		if v, ok = raw.(string); ok {
			c.string(path, f, v)
		}
	case "duration":
		var v string
		if v, ok = raw.(string); ok {
			c.duration(path, f, v)
		}
	case "object":
		var v map[string]any
		if v, ok = raw.(map[string]any); ok {
			c.object(path, f.Fields, v, inItem)
		}
	case "mapping":
		_, ok = raw.(map[string]any)
	}
	return ok
}

// whole checks a whole number, and reports whether it is one. One that is too long for 64 bits is refused here.
func (c *checker) whole(path string, f *Field, typ string, raw any) bool {
	v, ok := wholeNumber(raw)
	if !ok {
		v, float := raw.(float64)
		if ok = float && beyond64Bits(typ, v); ok { // YAML reads what is too long for a whole number as a float
			c.refuse(Diagnostic{Path: path, Summary: fmt.Sprintf("%v is out of range", raw)})
		}
		return ok
	}
	c.number(path, f, v, raw)
	if (typ == "uint" && v < 0) || exceeds64Bits(typ, raw) {
		c.refuse(Diagnostic{Path: path, Summary: fmt.Sprintf("%v is out of range", raw)})
	}
	return true
}

func (c *checker) number(path string, f *Field, v float64, shown any) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		c.refuse(Diagnostic{Path: path, Summary: fmt.Sprintf("expected a finite number, got %v", v)})
		return
	}
	bound := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
	checkRange(c, path, f, v, fmt.Sprint(shown), bound)
}

// longest is the longest duration there is, in whole hours.
const longest = "2562047h"

// isDuration matches durations of any length.
var isDuration = regexp.MustCompile(durationPattern)

func (c *checker) duration(path string, f *Field, s string) {
	v, err := time.ParseDuration(s)
	switch {
	case err == nil && v == 0 && strings.ContainsAny(s, "123456789"):
		c.refuse(Diagnostic{Path: path, Summary: "must be 0s or at least 1ns, got " + s})
		return
	case err != nil && isDuration.MatchString(s) && strings.HasPrefix(s, "-"):
		c.refuse(Diagnostic{Path: path, Summary: fmt.Sprintf("must be at least %s, got %s", cmp.Or(f.Min, "-"+longest), quote(s))})
		return
	case err != nil && isDuration.MatchString(s):
		c.refuse(Diagnostic{Path: path, Summary: fmt.Sprintf("must be at most %s, got %s", cmp.Or(f.Max, longest), quote(s))})
		return
	case err != nil:
		c.mismatch(path, "duration", s)
		return
	}
	checkRange(c, path, f, v, FormatDuration(v), time.ParseDuration)
}

func checkRange[T cmp.Ordered](c *checker, path string, f *Field, v T, shown string, bound func(string) (T, error)) {
	if least, err := bound(f.Min); err == nil && v < least {
		c.refuse(Diagnostic{Path: path, Summary: fmt.Sprintf("must be at least %s, got %s", f.Min, shown)})
	}
	if most, err := bound(f.Max); err == nil && v > most {
		c.refuse(Diagnostic{Path: path, Summary: fmt.Sprintf("must be at most %s, got %s", f.Max, shown)})
	}
}

func (c *checker) string(path string, f *Field, v string) {
	if f.Enum != nil && !slices.Contains(f.Enum, v) {
		c.refuse(Diagnostic{
			Path: path, Summary: "unknown value " + quote(v), Hint: SuggestHint(v, "values", f.Enum),
		})
	}
}

func (c *checker) mismatch(path, typ string, raw any) {
	d := Diagnostic{Path: path, Summary: fmt.Sprintf("expected %s, got %s", expected(typ), given(raw))}
	_, whole := wholeNumber(raw)
	_, fractional := raw.(float64)
	_, truth := raw.(bool)
	switch {
	case (typ == "int" || typ == "uint") && fractional && isWhole(raw):
		if !strings.Contains(d.Summary, "e+") {
			d.Summary += ".0" // as it was written, with a point
		}
		d.Hint = fmt.Sprintf("write %.0f", raw)
	case typ == "duration" && (whole || fractional):
		d.Hint = fmt.Sprintf(`write "%vs"`, raw)
	case typ == "string" && (whole || fractional || truth):
		d.Hint = fmt.Sprintf(`write "%v" in quotes`, raw)
	}
	c.refuse(d)
}

func (c *checker) refuse(d Diagnostic) {
	c.found = append(c.found, d)
	c.unusable = true
}

var expectations = map[string]string{
	"bool": "true or false", "int": "a whole number", "uint": "a whole number", "number": "a number",
	"string": "text", "duration": `a duration such as "60s"`, "object": "a mapping", "mapping": "a mapping",
}

func expected(typ string) string {
	if strings.HasPrefix(typ, listOf) {
		return "a list"
	}
	return cmp.Or(expectations[typ], "nothing: the type of this setting is "+typ)
}

func given(raw any) string {
	switch v := raw.(type) {
	case nil:
		return "nothing"
	case string:
		return "text " + quote(v)
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	default:
		return fmt.Sprintf("number %v", v)
	}
}

// quote shows a text of the user's, cut to what fits a line.
func quote(s string) string {
	const longest = 60
	if len(s) > longest {
		return strconv.Quote(s[:longest]) + "…"
	}
	return strconv.Quote(s)
}

func wholeNumber(raw any) (float64, bool) {
	switch v := raw.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	}
	return 0, false
}

// exceeds64Bits reports a number that YAML can hold and the field cannot.
func exceeds64Bits(typ string, raw any) bool {
	v, ok := raw.(uint64)
	return ok && typ == "int" && v > math.MaxInt64
}

func isWhole(raw any) bool {
	v, _ := raw.(float64)
	return v == math.Trunc(v) && !math.IsInf(v, 0)
}

// beyond64Bits reports a float that is whole and that no field of the type can hold.
func beyond64Bits(typ string, v float64) bool {
	most := float64(math.MaxInt64) // rounded up, as the next
	if typ == "uint" {
		most = math.MaxUint64
	}
	return !math.IsInf(v, 0) && math.Abs(v) >= most
}

// JoinPath appends a key to the path of a mapping.
func JoinPath(path, key string) string {
	if path == "" || key == "" {
		return path + key
	}
	return path + "." + key
}
