package python_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

type tier struct {
	Tenant string  `config:"tenant" doc:"who"`
	Share  float64 `config:"share" doc:"how much" min:"0" max:"1"`
}

// everything is the Config of the policy of that name in tests/policies.py.
type everything struct {
	Enabled bool            `config:"enabled" doc:"a switch"`
	Count   int             `config:"count" doc:"a whole number" min:"1" max:"10"`
	Factor  float64         `config:"factor" doc:"a number" min:"0"`
	Name    string          `config:"name" doc:"a text"`
	Order   string          `config:"order" doc:"a choice" enum:"up|down|sideways"`
	Window  time.Duration   `config:"window" doc:"a duration" min:"1s" max:"24h"`
	Sizes   []int           `config:"sizes" doc:"whole numbers" min:"1"`
	Waits   []time.Duration `config:"waits" doc:"durations"`
	First   tier            `config:"first" doc:"an object"`
	Tiers   []tier          `config:"tiers" doc:"objects"`
	Extra   map[string]any  `config:"extra" doc:"free keys"`
}

func (c everything) Validate() error {
	if c.Count != 7 {
		return nil
	}
	return errors.Join(errors.New("count: seven is taken"), errors.New("sizes[0]: and this, too"), errors.New("nothing in particular"))
}

// inGo is what a Go author would have written.
func inGo() core.Factory[core.ClusterScaler] {
	return core.NewFactory(core.Info{Type: "everything", Summary: "has a setting of every type"}, everything{
		Enabled: true, Count: 3, Factor: 1.5, Name: "x", Order: "up", Window: 8 * time.Hour, Sizes: []int{1, 2},
		Waits: []time.Duration{90 * time.Second}, First: tier{"blue", 0.25}, Tiers: []tier{}, Extra: map[string]any{},
	}, func(everything, core.Settings) (core.ClusterScaler, error) { return nil, errors.New("not asked for") })
}

func start(t *testing.T) *host.Process {
	t.Helper()
	p, err := policies(t).Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestSettingsAreDescribedAsInGo(t *testing.T) {
	answer, err := stagev1.NewBaseServiceClient(start(t).Conn).Describe(context.Background(), &stagev1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if answer.GetName() != "policies" || answer.GetVersion() != "v1.2.3" {
		t.Errorf("name %q and version %q, want those of the script and of main", answer.GetName(), answer.GetVersion())
	}
	var got *stagev1.Component
	for _, c := range answer.GetComponents() {
		if c.GetType() == "everything" {
			got = c
		}
	}
	if got.GetStage() != stagev1.Stage_STAGE_SCALER || got.GetSource() != "nowhere" || len(got.GetCapabilities()) != 1 {
		t.Errorf("got %v", got)
	}
	equalJSON(t, "fields", got.GetFieldsJson(), inGo().Fields())
	// An element of a list has no defaults in Go; in Python it has those of its class, and says so.
	schema := strings.Replace(got.GetConfigSchemaJson(), `"default": "", "description": "who"`, `"description": "who"`, 1)
	schema = strings.Replace(schema, `"default": 0.0, "description": "how much"`, `"description": "how much"`, 1)
	equalJSON(t, "schema", schema, inGo().Schema())
}

func equalJSON(t *testing.T, what, got string, want any) {
	t.Helper()
	encoded, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(got), &a), json.Unmarshal(encoded, &b)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("%s (-Go +Python):\n%s", what, diff)
	}
}

func TestSettingsAreCheckedAsInGo(t *testing.T) {
	conn := start(t).Conn
	for name, raw := range map[string]map[string]any{
		"none":                   nil,
		"all of them":            {"enabled": false, "count": 4, "factor": 2, "name": "y", "order": "down", "window": "1h30m", "sizes": []any{3}, "waits": []any{"1m", "250ms"}, "first": map[string]any{"share": 1}, "tiers": []any{map[string]any{"tenant": "red", "share": 0.75}}, "extra": map[string]any{"a": "b"}},
		"unknown key":            {"cuont": 1, "zzz": 2},
		"unknown key far inside": {"tiers": []any{map[string]any{"tenant": "red", "share": 0.5, "tennant": "x"}}, "first": map[string]any{"shar": 1}},
		"wrong types":            {"enabled": "yes", "count": 1.5, "factor": "2", "name": 7, "order": true, "window": 60, "sizes": 3, "first": []any{}, "tiers": map[string]any{}, "extra": nil},
		"wrong elements":         {"sizes": []any{1, "two", 0}, "waits": []any{"soon", 5}, "tiers": []any{3}},
		"out of range":           {"count": 11, "factor": -0.5, "window": "25h", "first": map[string]any{"share": 2}},
		"below":                  {"count": 0, "window": "10ms"},
		"huge":                   {"count": uint64(1 << 63), "factor": 1e300},
		"unknown value":          {"order": "sidewys"},
		"number as text":         {"name": 1.5, "window": 2.5},
		"validate":               {"count": 7},
		"validate and more":      {"count": 7, "other": 1},
		"long text":              {"order": strings.Repeat("x", 100)},
	} {
		t.Run(name, func(t *testing.T) {
			config, want := inGo().Decode(raw)
			answer, err := host.Configure(context.Background(), conn, host.Component{
				Stage: stagev1.Stage_STAGE_SCALER, Type: "everything", ID: "scaler/everything", Config: raw,
			}, true)
			var got core.Diagnostics
			if err != nil && !errors.As(err, &got) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-Go +Python):\n%s", diff)
			}
			if len(want) == 0 {
				equalJSON(t, "config", answer.GetConfigJson(), core.Encode(config))
			}
		})
	}
}

func TestSettingsOfThePolicysOwnMaking(t *testing.T) {
	conn := start(t).Conn
	for name, tc := range map[string]struct {
		raw       map[string]any
		want      core.Diagnostics
		wantNeeds []string
	}{
		"missing":             {nil, core.Diagnostics{{Path: "limit", Summary: "required but missing", Hint: "must be set"}}, nil},
		"refused by setup":    {map[string]any{"limit": 13}, core.Diagnostics{{Summary: "a limit of 13 brings bad luck"}}, nil},
		"needs a capability":  {map[string]any{"limit": 11}, nil, []string{"remaining_work"}},
		"needs no capability": {map[string]any{"limit": 9}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := host.Configure(context.Background(), conn, host.Component{
				Stage: stagev1.Stage_STAGE_SCALER, Type: "strict", ID: "scaler/strict", Config: tc.raw,
			}, false)
			var got core.Diagnostics
			if err != nil && !errors.As(err, &got) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantNeeds, answer.GetCapabilities(), cmpopts.EquateEmpty()); len(got) == 0 && diff != "" {
				t.Errorf("capabilities (-want +got):\n%s", diff)
			}
		})
	}
}
