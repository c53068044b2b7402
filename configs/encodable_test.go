package configs

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// failing writes itself as text, or does not.
type failing struct{ panics bool }

func (f failing) MarshalText() ([]byte, error) {
	if f.panics {
		panic("out of words")
	}
	return nil, errors.New("out of ink")
}

// Whatever a program puts into the settings of a component is taken or refused with its place: Build does not panic, and ends.
func TestBuildTakesOddValues(t *testing.T) {
	var nilMap map[string]any
	var nilPointer *int
	type ring struct{ Next any }
	loop := &ring{}
	loop.Next = loop
	cyclicMap := map[string]any{}
	cyclicMap["self"] = cyclicMap
	cyclicList := make([]any, 1)
	cyclicList[0] = cyclicList
	deep := any(1)
	for range 100 {
		deep = []any{deep}
	}
	deepMap := any(1)
	for range 100 {
		deepMap = map[string]any{"m": deepMap}
	}
	wide := any(1)
	for range 40 {
		wide = []any{wide, wide}
	}
	shared := map[string]any{"a": 1}
	word := "blocking"
	cases := map[string]struct {
		value any
		want  string
	}{
		"func":                      {func() {}, "pipeline.allocation.config.queue: a value of Go type func() cannot be a setting"},
		"nil func":                  {(func())(nil), "a value of Go type func() cannot be a setting"},
		"chan":                      {make(chan int), "a value of Go type chan int cannot be a setting"},
		"complex":                   {complex(1, 2), "a value of Go type complex128 cannot be a setting"},
		"unsafe pointer":            {unsafe.Pointer(nilPointer), "a value of Go type unsafe.Pointer cannot be a setting"},
		"func in a list":            {[]any{1, []func(){nil}}, "pipeline.allocation.config.queue[1][0]: a value of Go type func() cannot be a setting"},
		"func in a struct":          {ring{Next: func() {}}, "config.queue.Next: a value of Go type func() cannot be a setting"},
		"key of numbers":            {map[int]int{1: 2}, "config.queue: a key of Go type int cannot name a setting"},
		"key of anything":           {map[any]any{nil: 2}, "config.queue: a key of Go type nil cannot name a setting"},
		"cyclic pointer":            {loop, "config.queue.Next: contains itself"},
		"cyclic map":                {cyclicMap, "config.queue.self: contains itself"},
		"cyclic list":               {cyclicList, "config.queue[0]: contains itself"},
		"too deep":                  {deep, "is nested more than 50 deep"},
		"too deep a mapping":        {deepMap, "is nested more than 50 deep"},
		"too many":                  {wide, "there are more than 1000000 values"},
		"text that fails":           {failing{}, "cannot be written as YAML: out of ink"},
		"text that panics":          {failing{panics: true}, "cannot be written as YAML: out of words"},
		"nil":                       {nil, "config.queue: expected text, got nothing"},
		"nil map":                   {nilMap, "config.queue: expected text, got a mapping"},
		"nil pointer":               {nilPointer, "config.queue: expected text, got nothing"},
		"NaN":                       {math.NaN(), "config.queue: expected text, got number NaN"},
		"infinity":                  {math.Inf(-1), "config.queue: expected text, got number -Inf"},
		"a large number":            {uint64(math.MaxUint64), "config.queue: expected text, got number 18446744073709551615"},
		"bytes that are no text":    {"\xff\xfe", `program: tag "!!binary" is not supported`},
		"a moment":                  {time.Unix(0, 0).UTC(), `unknown value "1970-01-01T00:00:00Z"`},
		"the same mapping twice":    {[]any{shared, shared}, "config.queue: expected text, got a list"},
		"empty lists in each other": {[][]any{{}, {}}, "config.queue: expected text, got a list"},
		"a pointer to text":         {&word, ""},
		"text":                      {"blocking", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, place := range []func(*File, map[string]any){
				func(f *File, m map[string]any) { f.Pipeline.Allocation.Config = m },
				func(f *File, m map[string]any) { f.Pipeline.Allocation.Plugin = m },
				func(f *File, m map[string]any) { f.Workload.Config = m },
			} {
				f := programmed()
				place(&f, map[string]any{"queue": tc.value})
				_, err := Build(fakeCatalog(), f, Options{})
				if f.Pipeline.Allocation.Config == nil {
					continue // no queue can be there
				}
				if got := fmt.Sprint(err); tc.want == "" && err != nil || strings.Count(got, tc.want) != 1 && tc.want != "" {
					t.Errorf("built with %v, want %q", err, tc.want)
				}
			}
		})
	}
}

// What a key that names nothing leads to is not looked at, and as deep as may be is not too deep.
func TestEncodable(t *testing.T) {
	nested := func(depth int) any {
		value := any(1)
		for range depth {
			value = map[string]any{"m": value}
		}
		return value
	}
	for name, tc := range map[string]struct {
		value any
		want  int
	}{
		"a key of numbers":     {map[int]any{1: func() {}}, 1},
		"two keys of numbers":  {map[int]any{1: func() {}, 2: 1}, 2},
		"as deep as may be":    {nested(maxDepth - 1), 0},
		"one deeper":           {nested(maxDepth), 1},
		"two functions":        {[]any{func() {}, func() {}}, 2},
		"fields that are told": {struct{ A, b any }{1, func() {}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := encodable(map[string]any{"x": tc.value}); len(got) != tc.want {
				t.Errorf("%d problems, want %d: %v", len(got), tc.want, got.Err())
			}
		})
	}
}

// What can be written as YAML is taken as a file is; nothing that is drawn makes Build panic.
func TestBuildNeverPanics(t *testing.T) {
	leaf := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) any { return rapid.Float64().Draw(t, "float") }),
		rapid.Custom(func(t *rapid.T) any { return rapid.String().Draw(t, "text") }),
		rapid.Custom(func(t *rapid.T) any { return rapid.Uint64().Draw(t, "uint") }),
		rapid.Custom(func(t *rapid.T) any { return time.Duration(rapid.Int64().Draw(t, "duration")) }),
		rapid.SampledFrom([]any{nil, true, func() {}, make(chan bool), struct{ A any }{func() {}}, &struct{}{}, [2]int{}, []byte("x"), map[any]any{1.5: nil}, math.NaN(), complex64(1)}),
	)
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf,
			rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "list") }),
			rapid.Custom(func(t *rapid.T) any { return rapid.MapOfN(rapid.String(), value(depth-1), 0, 3).Draw(t, "mapping") }),
		)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := programmed()
		f.Pipeline.Allocation.Config = rapid.MapOfN(rapid.SampledFrom([]string{"queue", "oracle", "x", "Y", ""}), value(3), 0, 3).Draw(t, "config")
		if c, err := Build(fakeCatalog(), f, Options{}); err == nil {
			if _, err := c.Resolved(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
