package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

type shared struct {
	Queue string `config:"queue" doc:"what happens to jobs behind one that does not fit" enum:"backfill|blocking"`
}

type tenant struct {
	Name    string        `config:"name" doc:"name of the tenant" required:"true"`
	Devices int           `config:"devices" doc:"most devices it may hold" min:"1"`
	Grace   time.Duration `config:"grace" doc:"time over the limit" min:"0s"`
}

type limits struct {
	Least float64 `config:"least" doc:"least share"`
	Most  float64 `config:"most" doc:"largest share" max:"1"`
}

type sample struct {
	shared
	Factor     float64       `config:"factor" doc:"share that may be promised" min:"0" max:"4"`
	Jobs       int           `config:"jobs" doc:"number of jobs" min:"1"`
	Seed       uint64        `config:"seed" doc:"seed of the stream"`
	Lease      time.Duration `config:"lease" doc:"length of a lease" min:"1s"`
	Verbose    bool          `config:"verbose" doc:"say more"`
	Label      string        `config:"label" doc:"name in reports"`
	Thresholds []float64     `config:"thresholds" doc:"ends of the queues" min:"0"`
	Tenants    []tenant      `config:"tenants" doc:"limits by tenant"`
	Limits     limits        `config:"limits" doc:"bounds of the share"`
}

// strict is lent fields of which one is required, and one of the items of a list.
type strict struct {
	lent `required:"label tenants.grace"`
}

type lent struct {
	Label   string   `config:"label" doc:"name in reports"`
	Other   string   `config:"other" doc:"another"`
	Tenants []tenant `config:"tenants" doc:"limits by tenant"`
}

// A struct that is embedded may be held to more than its own tags say; by itself it is not.
func TestRequiredOfAnEmbeddedStruct(t *testing.T) {
	raw := settings{"tenants": []any{settings{"name": "a", "devices": 1}}}
	var s strict
	if diff := cmp.Diff("label: required but missing; name in reports\ntenants[0].grace: required but missing; time over the limit", core.Decode(&s, raw).Error()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	var l lent
	if found := core.Decode(&l, raw); len(found) > 0 {
		t.Errorf("problems %v of the struct by itself", found)
	}
	whole := settings{"label": "", "tenants": []any{settings{"name": "a", "devices": 1, "grace": "0s"}}}
	if found := core.Decode(&s, whole); len(found) > 0 {
		t.Errorf("problems %v with all that is required", found)
	}
}

func (s sample) Validate() error {
	var problems []error
	if s.Limits.Least > s.Limits.Most {
		problems = append(problems, errors.New("limits.least: exceeds limits.most"))
	}
	if s.Label == "forbidden" {
		problems = append(problems, errors.New("this label, sadly: is taken"))
	}
	return errors.Join(problems...)
}

func sampleDefaults() sample {
	return sample{
		shared: shared{Queue: "backfill"}, Factor: 1.5, Jobs: 3, Lease: time.Minute,
		Thresholds: []float64{10, 20}, Limits: limits{Least: 0.25, Most: 0.75},
	}
}

func sampleFactory() core.Factory[any] {
	return core.NewFactory(core.Info{Type: "sample", Summary: "a sample"}, sampleDefaults(),
		func(c sample, _ core.Settings) (any, error) { return c, nil })
}

type settings = map[string]any

func TestDecode(t *testing.T) {
	cases := map[string]struct {
		raw  settings
		want func(*sample)
	}{
		"nothing":                     {nil, func(*sample) {}},
		"a whole number as a number":  {settings{"factor": 2}, func(s *sample) { s.Factor = 2 }},
		"the largest seed":            {settings{"seed": uint64(math.MaxUint64)}, func(s *sample) { s.Seed = math.MaxUint64 }},
		"a duration":                  {settings{"lease": "1.5h"}, func(s *sample) { s.Lease = 90 * time.Minute }},
		"a field of an embedded one":  {settings{"queue": "blocking"}, func(s *sample) { s.Queue = "blocking" }},
		"an object keeps its rest":    {settings{"limits": settings{"most": 1}}, func(s *sample) { s.Limits.Most = 1 }},
		"a list replaces the default": {settings{"thresholds": []any{5}}, func(s *sample) { s.Thresholds = []float64{5} }},
		"an empty list":               {settings{"thresholds": []any{}}, func(s *sample) { s.Thresholds = []float64{} }},
		"objects in a list": {
			settings{"tenants": []any{settings{"name": "a", "devices": 2, "grace": "3s"}}},
			func(s *sample) { s.Tenants = []tenant{{"a", 2, 3 * time.Second}} },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ds := sampleFactory().Decode(tc.raw)
			if len(ds) > 0 {
				t.Fatal(ds)
			}
			want := sampleDefaults()
			tc.want(&want)
			if diff := cmp.Diff(&want, got, cmp.AllowUnexported(sample{})); diff != "" {
				t.Errorf("config (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestDecodeNeverTouchesTheDefaults(t *testing.T) {
	f := sampleFactory()
	if _, ds := f.Decode(settings{"thresholds": []any{1, 2}}); len(ds) > 0 {
		t.Fatal(ds)
	}
	got, _ := f.Decode(nil)
	if diff := cmp.Diff([]float64{10, 20}, got.(*sample).Thresholds); diff != "" {
		t.Errorf("default after another decode (-want,+got):\n%s", diff)
	}
}

func TestDecodeProblems(t *testing.T) {
	const keys = "queue, factor, jobs, seed, lease, verbose, label, thresholds, tenants, limits"
	cases := map[string]struct {
		raw  settings
		want string
	}{
		"unknown key": {settings{"facto": 1}, `facto: unknown key; did you mean "factor"? valid keys: ` + keys},
		"far key":     {settings{"unheard_of": 1}, `unheard_of: unknown key; valid keys: ` + keys},
		"other case":  {settings{"Factor": 1}, `Factor: unknown key; did you mean "factor"? valid keys: ` + keys},
		"empty key":   {settings{"": 1}, `unknown key; valid keys: ` + keys},
		"nested key": {
			settings{"limits": settings{"leas": 0.5}},
			`limits.leas: unknown key; did you mean "least"? valid keys: least, most`,
		},
		"key in a list": {
			settings{"tenants": []any{settings{"name": "a", "devices": 1, "x": 1}}},
			`tenants[0].x: unknown key; valid keys: name, devices, grace`,
		},
		"text for a number":     {settings{"factor": "1"}, `factor: expected a number, got text "1"`},
		"fraction for a whole":  {settings{"jobs": 1.5}, `jobs: expected a whole number, got number 1.5`},
		"zero fraction":         {settings{"jobs": 2.0}, `jobs: expected a whole number, got number 2.0; write 2`},
		"too large for a whole": {settings{"jobs": uint64(math.MaxUint64)}, `jobs: 18446744073709551615 is out of range`},
		"negative seed":         {settings{"seed": -1}, `seed: -1 is out of range`},
		"seed beyond 64 bits":   {settings{"seed": 1e23}, `seed: 1e+23 is out of range`},
		"seed of 2^64":          {settings{"seed": 18446744073709551616.0}, `seed: 1.8446744073709552e+19 is out of range`},
		"far below 64 bits":     {settings{"jobs": -1e19}, `jobs: -1e+19 is out of range`},
		"a whole float":         {settings{"seed": 2.0}, `seed: expected a whole number, got number 2.0; write 2`},
		"a long whole float":    {settings{"seed": 1e19}, `seed: expected a whole number, got number 1e+19; write 10000000000000000000`},
		"an infinite seed":      {settings{"seed": math.Inf(1)}, `seed: expected a whole number, got number +Inf`},
		"truth for text":        {settings{"label": true}, `label: expected text, got true; write "true" in quotes`},
		"number for text":       {settings{"label": 12}, `label: expected text, got number 12; write "12" in quotes`},
		"text for a switch":     {settings{"verbose": "yes"}, `verbose: expected true or false, got text "yes"`},
		"number for a switch":   {settings{"verbose": 1}, `verbose: expected true or false, got number 1`},
		"bare duration":         {settings{"lease": 60}, `lease: expected a duration such as "60s", got number 60; write "60s"`},
		"odd duration":          {settings{"lease": "1 day"}, `lease: expected a duration such as "60s", got text "1 day"`},
		"duration of nothing":   {settings{"lease": "0.5ns"}, `lease: must be 0s or at least 1ns, got 0.5ns`},
		"endless duration":      {settings{"lease": "9999999h"}, `lease: must be at most 2562047h, got "9999999h"`},
		"endless duration back": {settings{"lease": "-9999999h"}, `lease: must be at least 1s, got "-9999999h"`},
		"short duration":        {settings{"lease": "10ms"}, `lease: must be at least 1s, got 10ms`},
		"below the least":       {settings{"jobs": 0}, `jobs: must be at least 1, got 0`},
		"above the most":        {settings{"factor": 4.5}, `factor: must be at most 4, got 4.5`},
		"not a number":          {settings{"factor": math.NaN()}, `factor: expected a finite number, got NaN`},
		"infinite":              {settings{"factor": math.Inf(1)}, `factor: expected a finite number, got +Inf`},
		"not of the enum": {
			settings{"queue": "backfil"},
			`queue: unknown value "backfil"; did you mean "backfill"? valid values: backfill, blocking`,
		},
		"nothing given":         {settings{"jobs": nil}, `jobs: expected a whole number, got nothing`},
		"scalar for a list":     {settings{"thresholds": 1}, `thresholds: expected a list, got number 1`},
		"element of a list":     {settings{"thresholds": []any{1, "2", -3}}, "thresholds[1]: expected a number, got text \"2\"\nthresholds[2]: must be at least 0, got -3"},
		"list for an object":    {settings{"limits": []any{}}, `limits: expected a mapping, got a list`},
		"scalar in object list": {settings{"tenants": []any{true}}, `tenants[0]: expected a mapping, got true`},
		"missing in a list": {
			settings{"tenants": []any{settings{}}},
			"tenants[0].name: required but missing; name of the tenant\n" +
				"tenants[0].devices: required but missing; most devices it may hold",
		},
		"validation":          {settings{"limits": settings{"least": 0.9}}, `limits.least: exceeds limits.most`},
		"validation, twice":   {settings{"label": "forbidden", "limits": settings{"least": 1}}, "limits.least: exceeds limits.most\nthis label, sadly: is taken"},
		"all problems":        {settings{"facto": 1, "jobs": "x"}, "facto: unknown key; did you mean \"factor\"? valid keys: " + keys + "\njobs: expected a whole number, got text \"x\""},
		"unknown and invalid": {settings{"facto": 1, "limits": settings{"least": 0.9}}, "facto: unknown key; did you mean \"factor\"? valid keys: " + keys + "\nlimits.least: exceeds limits.most"},
		"long text is cut":    {settings{"jobs": strings.Repeat("x", 200)}, `jobs: expected a whole number, got text "` + strings.Repeat("x", 60) + `"…`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config, ds := sampleFactory().Decode(tc.raw)
			if config != nil {
				t.Errorf("config %v despite problems", config)
			}
			if diff := cmp.Diff(tc.want, ds.Error()); diff != "" {
				t.Errorf("problems (-want,+got):\n%s", diff)
			}
		})
	}
}

type misfit struct {
	Small int8     `config:"small" doc:"a type without meaning in configs"`
	Again []misfit `config:"again" doc:"itself"`
	Bare  string
}

func TestFieldsOfMisfitConfig(t *testing.T) {
	fields := core.FieldsOf(&misfit{})
	if got, want := fields[0].Type, "unsupported int8"; got != want {
		t.Errorf("type %q, want %q", got, want)
	}
	if got := fields[2].Name; got != "" {
		t.Errorf("untagged field is named %q", got)
	}
	ds := core.Decode(&misfit{}, settings{"small": 1})
	if want := "small: expected nothing: the type of this setting is unsupported int8, got number 1"; ds.Error() != want {
		t.Errorf("problems %q, want %q", ds, want)
	}
}

func TestFields(t *testing.T) {
	want := []core.Field{
		{Name: "queue", Type: "string", Doc: "what happens to jobs behind one that does not fit", Default: "backfill", Enum: []string{"backfill", "blocking"}},
		{Name: "factor", Type: "number", Doc: "share that may be promised", Default: "1.5", Min: "0", Max: "4"},
		{Name: "jobs", Type: "int", Doc: "number of jobs", Default: "3", Min: "1"},
		{Name: "seed", Type: "uint", Doc: "seed of the stream", Default: "0"},
		{Name: "lease", Type: "duration", Doc: "length of a lease", Default: "1m", Min: "1s"},
		{Name: "verbose", Type: "bool", Doc: "say more", Default: "false"},
		{Name: "label", Type: "string", Doc: "name in reports"},
		{Name: "thresholds", Type: "list of number", Doc: "ends of the queues", Default: "[10, 20]", Min: "0"},
		{Name: "tenants", Type: "list of object", Doc: "limits by tenant", Default: "[]", Fields: []core.Field{
			{Name: "name", Type: "string", Doc: "name of the tenant", Required: true},
			{Name: "devices", Type: "int", Doc: "most devices it may hold", Default: "0", Min: "1"},
			{Name: "grace", Type: "duration", Doc: "time over the limit", Default: "0s", Min: "0s"},
		}},
		{Name: "limits", Type: "object", Doc: "bounds of the share", Fields: []core.Field{
			{Name: "least", Type: "number", Doc: "least share", Default: "0.25"},
			{Name: "most", Type: "number", Doc: "largest share", Default: "0.75", Max: "1"},
		}},
	}
	if diff := cmp.Diff(want, sampleFactory().Fields()); diff != "" {
		t.Errorf("fields (-want,+got):\n%s", diff)
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Minute: "1m", 8 * time.Hour: "8h", 90 * time.Minute: "1h30m", 10 * time.Second: "10s",
		time.Hour + 10*time.Second: "1h0m10s", 20 * time.Minute: "20m", 1500 * time.Millisecond: "1.5s",
	} {
		if got := core.FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%v) = %q, want %q", d, got, want)
		}
		if back, err := time.ParseDuration(core.FormatDuration(d)); back != d {
			t.Errorf("%q reads back as %v, %v", want, back, err)
		}
	}
}

// Nobody is told to write what was written.
func TestSuggestHint(t *testing.T) {
	valid := []string{"t4", "v100"}
	for name, want := range map[string]string{
		"t44": `did you mean "t4"? valid types: t4, v100`, "t4": "valid types: t4, v100", "T4": `did you mean "t4"? valid types: t4, v100`, "": "valid types: t4, v100", "h200x": "valid types: t4, v100",
	} {
		if got := core.SuggestHint(name, "types", valid); got != want {
			t.Errorf("SuggestHint(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	valid := []string{"las", "srtf", "tiresias", "fifo"}
	for name, want := range map[string]string{
		"srft": "srtf", "tirsias": "tiresias", "lass": "las", "pollux": "", "": "", "LAS_LAS_LAS": "",
		strings.Repeat("las", 1000): "",
	} {
		if got := core.Nearest(name, valid); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

// drawRaw draws settings that may or may not fit a sample.
func drawRaw(t *rapid.T) settings {
	scalar := rapid.OneOf(
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int().AsAny(), rapid.Uint64().AsAny(), rapid.Float64().AsAny(),
		rapid.SampledFrom([]any{"", "60s", "backfill", "x", math.NaN(), math.Inf(-1), int64(math.MinInt64)}),
	)
	value := rapid.OneOf(
		scalar,
		rapid.SliceOfN(scalar, 0, 3).AsAny(),
		rapid.Custom(func(t *rapid.T) any {
			return settings{rapid.SampledFrom([]string{"least", "most", "name", "x"}).Draw(t, "key"): scalar.Draw(t, "value")}
		}),
	)
	keys := rapid.SampledFrom([]string{"queue", "factor", "jobs", "seed", "lease", "verbose", "label", "thresholds", "tenants", "limits", "x"})
	raw := settings{}
	for key, v := range rapid.MapOfN(keys, value, 0, 5).Draw(t, "raw") {
		if list, ok := v.([]any); ok && len(list) == 0 {
			v = []any{}
		}
		raw[key] = v
	}
	return raw
}

func TestDecodeIsSafeAndEncodeInvertsIt(t *testing.T) {
	f := sampleFactory()
	rapid.Check(t, func(t *rapid.T) {
		raw := drawRaw(t)
		config, ds := f.Decode(raw)
		if (config == nil) != (len(ds) > 0) {
			t.Fatalf("config %v with problems %v", config, ds)
		}
		if config == nil {
			return
		}
		again, ds := f.Decode(core.Encode(config))
		if len(ds) > 0 {
			t.Fatalf("encoded config refused: %v", ds)
		}
		if diff := cmp.Diff(core.Encode(config), core.Encode(again)); diff != "" {
			t.Fatalf("config changed on the way (-want,+got):\n%s", diff)
		}
		for key, v := range raw {
			if got := core.Encode(config)[key]; !sameSetting(v, got) {
				t.Fatalf("%s: given %#v, decoded %#v", key, v, got)
			}
		}
	})
}

// sameSetting compares a scalar as given with what came of it; the texts of equal numbers and durations may differ.
func sameSetting(given, got any) bool {
	switch given := given.(type) {
	case []any, settings:
		return true // compared element by element in the table tests
	case string:
		a, errA := time.ParseDuration(given)
		b, errB := time.ParseDuration(fmt.Sprint(got))
		return (errA == nil && errB == nil && a == b) || got == any(given)
	case float64:
		return got == any(given)
	}
	if f, ok := got.(float64); ok {
		return reflect.ValueOf(given).Convert(reflect.TypeFor[float64]()).Float() == f
	}
	return fmt.Sprint(given) == fmt.Sprint(got)
}

func TestSchema(t *testing.T) {
	data, err := json.Marshal(sampleFactory().Schema())
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	schema := got.(settings)
	if schema["$schema"] != core.SchemaDialect || schema["additionalProperties"] != false {
		t.Errorf("schema is not a strict one of the dialect: %s", data)
	}
	want := settings{
		"queue":      settings{"description": "what happens to jobs behind one that does not fit", "type": "string", "enum": []any{"backfill", "blocking"}, "default": "backfill"},
		"factor":     settings{"description": "share that may be promised", "type": "number", "minimum": 0.0, "maximum": 4.0, "default": 1.5},
		"jobs":       settings{"description": "number of jobs", "type": "integer", "minimum": 1.0, "default": 3.0},
		"seed":       settings{"description": "seed of the stream", "type": "integer", "minimum": 0.0, "default": 0.0},
		"lease":      settings{"description": "length of a lease", "type": "string", "default": "1m"},
		"verbose":    settings{"description": "say more", "type": "boolean", "default": false},
		"label":      settings{"description": "name in reports", "type": "string", "default": ""},
		"thresholds": settings{"description": "ends of the queues", "type": "array", "items": settings{"type": "number", "minimum": 0.0}, "default": []any{10.0, 20.0}},
		"tenants": settings{"description": "limits by tenant", "type": "array", "default": []any{}, "items": settings{
			"type": "object", "additionalProperties": false, "required": []any{"name", "devices"}, "properties": settings{
				"name":    settings{"description": "name of the tenant", "type": "string"},
				"devices": settings{"description": "most devices it may hold", "type": "integer", "minimum": 1.0},
				"grace":   settings{"description": "time over the limit", "type": "string"},
			},
		}},
		"limits": settings{"description": "bounds of the share", "type": "object", "additionalProperties": false, "properties": settings{
			"least": settings{"description": "least share", "type": "number", "default": 0.25},
			"most":  settings{"description": "largest share", "type": "number", "maximum": 1.0, "default": 0.75},
		}},
	}
	ignorePattern := cmp.FilterPath(func(p cmp.Path) bool {
		i, ok := p.Last().(cmp.MapIndex)
		return ok && i.Key().String() == "pattern"
	}, cmp.Ignore())
	if diff := cmp.Diff(want, schema["properties"], ignorePattern); diff != "" {
		t.Errorf("properties (-want,+got):\n%s", diff)
	}
}

// optional has settings whose zero means something else than their absence.
type optional struct {
	Least *int           `config:"least" doc:"least" min:"0"`
	Most  *float64       `config:"most" doc:"most"`
	After *time.Duration `config:"after" doc:"after"`
	Other **int          `config:"other" doc:"a pointer to no value"`
}

func TestAbsenceIsNoZero(t *testing.T) {
	for name, tc := range map[string]struct {
		raw  settings
		want optional
	}{
		"absent": {nil, optional{}},
		"zero":   {settings{"least": 0, "most": 0, "after": "0s"}, optional{Least: new(0), Most: new(0.0), After: new(time.Duration(0))}},
		"more":   {settings{"least": 3, "most": 0.5, "after": "2s"}, optional{Least: new(3), Most: new(0.5), After: new(2 * time.Second)}},
	} {
		t.Run(name, func(t *testing.T) {
			var got optional
			if ds := core.Decode(&got, tc.raw); len(ds) > 0 {
				t.Fatal(ds)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			var again optional
			if ds := core.Decode(&again, core.Encode(&got)); len(ds) > 0 || cmp.Diff(got, again) != "" {
				t.Errorf("%v is encoded as %v", got, core.Encode(&got))
			}
		})
	}
	fields := core.FieldsOf(&optional{})
	for i, want := range []string{"int", "number", "duration", "unsupported **int"} {
		if fields[i].Type != want || fields[i].Default != "" {
			t.Errorf("field %d is a %q with the default %q, want a %q without one", i, fields[i].Type, fields[i].Default, want)
		}
	}
	if ds := core.Decode(&optional{}, settings{"least": -1}); len(ds) != 1 {
		t.Error(ds)
	}
	if schema := core.SchemaOf(&optional{}); schema["properties"].(settings)["least"].(settings)["default"] != nil {
		t.Error("the schema has a default for what has none")
	}
}
