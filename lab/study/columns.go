package study

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/quartet-sched/quartet/core/metrics"
)

// leftOut are the parts of a summary that differ from run to run, or say what a study says better.
var leftOut = []string{"schema", "name", "seed", "wall_seconds", "decision_seconds"}

// number is one number of a summary.
type summaryNumber struct {
	path string // such as jct_seconds.mean
	at   [][]int
}

var summaryNumbers = sync.OnceValue(func() []summaryNumber {
	var list []summaryNumber
	walk(reflect.TypeFor[metrics.Summary](), "", nil, &list)
	return list
})

// walk lists the numbers of a struct in the order of its fields. Lists are left out: they differ in length.
func walk(t reflect.Type, path string, at [][]int, list *[]summaryNumber) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if path == "" && slices.Contains(leftOut, name) {
			continue
		}
		whole := name
		if path != "" {
			whole = path + "." + name
		}
		inner := append(slices.Clone(at), []int{i})
		kind := f.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		switch kind.Kind() {
		case reflect.Struct:
			walk(kind, whole, inner, list)
		case reflect.Float64, reflect.Int, reflect.Int32, reflect.Int64:
			*list = append(*list, summaryNumber{whole, inner})
		}
	}
}

// of is the number in a summary; NaN where it has none.
func (n *summaryNumber) of(s *metrics.Summary) float64 {
	v := reflect.ValueOf(s).Elem()
	for _, step := range n.at {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return nan
			}
			v = v.Elem()
		}
		v = v.FieldByIndex(step)
	}
	if v.CanInt() {
		return float64(v.Int())
	}
	return v.Float()
}

// Metrics lists the numbers of a summary by path, such as jct_seconds.mean.
func Metrics() []string {
	var paths []string
	for _, n := range summaryNumbers() {
		paths = append(paths, n.path)
	}
	return paths
}

// Columns lists the same as they are named in runs.csv, such as jct_seconds_mean.
func Columns() []string {
	names := Metrics()
	for i := range names {
		names[i] = strings.ReplaceAll(names[i], ".", "_")
	}
	return names
}

// Value is a number of a summary by its path; NaN where there is none.
func Value(s *metrics.Summary, path string) float64 { return valueOfMetric(s, path) }

// valueOfMetric is a number of a summary by its path.
func valueOfMetric(s *metrics.Summary, path string) float64 {
	if s == nil {
		return nan
	}
	list := summaryNumbers()
	i := slices.IndexFunc(list, func(n summaryNumber) bool { return n.path == path })
	if i < 0 {
		return nan
	}
	return list[i].of(s)
}
