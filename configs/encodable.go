package configs

import (
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core"
)

// The bounds of the settings that a program may give to a component, far above any that make sense.
const (
	maxDepth  = 50
	maxValues = 1_000_000
)

// encodable finds what of a program's settings no file can hold: functions, channels, values that contain themselves. The encoder of
// YAML panics on such, or never ends.
func encodable(settings map[string]any) core.Diagnostics {
	e := encodableCheck{above: map[visit]bool{}}
	e.value("", reflect.ValueOf(settings), 0)
	if len(e.found) == 0 {
		if err := tryEncoding(settings); err != nil {
			e.refuse("", err.Error())
		}
	}
	return e.found
}

type encodableCheck struct {
	found core.Diagnostics
	above map[visit]bool // what the value at hand lies in
	seen  int
}

// visit is a reference that was followed. A slice and its first item can begin at one address.
type visit struct {
	pointer uintptr
	length  int
	of      reflect.Type
}

func (e *encodableCheck) refuse(path, summary string) {
	e.found = append(e.found, core.Diagnostic{Position: core.Position{File: fromProgram}, Path: path, Summary: summary})
}

// value checks what lies at a path. O(values), each as often as it is referred to, and at most maxValues.
func (e *encodableCheck) value(path string, v reflect.Value, depth int) {
	if e.seen++; e.seen > maxValues {
		if e.seen == maxValues+1 {
			e.refuse(path, fmt.Sprintf("there are more than %d values", maxValues))
		}
		return
	}
	if depth > maxDepth {
		e.refuse(path, fmt.Sprintf("is nested more than %d deep", maxDepth))
		return
	}
	switch v.Kind() {
	case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		e.refuse(path, "a value of Go type "+v.Type().String()+" cannot be a setting")
	case reflect.Interface:
		e.value(path, v.Elem(), depth)
	case reflect.Pointer:
		e.inside(path, visit{v.Pointer(), 0, v.Type()}, func() { e.value(path, v.Elem(), depth+1) })
	case reflect.Map:
		e.inside(path, visit{v.Pointer(), 0, v.Type()}, func() { e.mapping(path, v, depth) })
	case reflect.Slice:
		e.inside(path, visit{v.Pointer(), v.Len(), v.Type()}, func() { e.items(path, v, depth) })
	case reflect.Array:
		e.items(path, v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				e.value(core.JoinPath(path, field.Name), v.Field(i), depth+1)
			}
		}
	}
}

func (e *encodableCheck) mapping(path string, v reflect.Value, depth int) {
	for each := v.MapRange(); each.Next(); {
		key := each.Key()
		for key.Kind() == reflect.Interface {
			key = key.Elem()
		}
		if key.Kind() != reflect.String {
			e.refuse(path, fmt.Sprintf("a key of Go type %s cannot name a setting", typeOf(key)))
			continue
		}
		e.value(core.JoinPath(path, key.String()), each.Value(), depth+1)
	}
}

func (e *encodableCheck) items(path string, v reflect.Value, depth int) {
	for i := range v.Len() {
		e.value(fmt.Sprintf("%s[%d]", path, i), v.Index(i), depth+1)
	}
}

// inside checks what a reference leads to, unless the reference lies in there itself.
func (e *encodableCheck) inside(path string, here visit, check func()) {
	if here.pointer == 0 {
		return
	}
	if e.above[here] && (here.length > 0 || here.of.Kind() != reflect.Slice) {
		e.refuse(path, "contains itself")
		return
	}
	e.above[here] = true
	check()
	delete(e.above, here)
}

func typeOf(v reflect.Value) string {
	if !v.IsValid() {
		return "nil"
	}
	return v.Type().String()
}

// tryEncoding is why a value cannot be written as YAML: types may write themselves, and fail at it.
func tryEncoding(value any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be written as YAML: %v", r)
		}
	}()
	if err := new(yaml.Node).Encode(value); err != nil {
		return fmt.Errorf("cannot be written as YAML: %w", err)
	}
	return nil
}
