package coretest

import (
	"errors"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

var fakeInfo = core.Info{Type: "fake", Summary: "does something for a test", Description: "Nothing more."}

func configFactory[C any](info core.Info, defaults C) core.Factory[core.Admitter] {
	return core.NewFactory(info, defaults, func(C, core.Settings) (core.Admitter, error) { return plain{}, nil })
}

type tenant struct {
	Name string `config:"name" doc:"Name of the tenant." required:"true"`
}

type goodConfig struct {
	Factor  float64  `config:"factor" doc:"Share of the devices." min:"0"`
	Tenants []tenant `config:"tenants" doc:"Limits by tenant."`
	Limits  struct {
		Jobs int `config:"jobs" doc:"Most jobs at once."`
	} `config:"limits" doc:"Limits for all."`
}

type requiredConfig struct {
	Path string `config:"path" doc:"File to read." required:"true"`
}

type badNameConfig struct {
	Factor float64 `config:"maxFactor" doc:"Share of the devices."`
}

type noDocConfig struct {
	Factor float64 `config:"factor"`
}

type deepNoDocConfig struct {
	Limits struct {
		Jobs int `config:"jobs"`
	} `config:"limits" doc:"Limits for all."`
}

type twiceConfig struct {
	A float64 `config:"factor" doc:"Share of the devices."`
	B float64 `config:"factor" doc:"Another share."`
}

type unsupportedConfig struct {
	Done chan int `config:"done" doc:"A thing that no file holds."`
}

type belowMinConfig struct {
	Factor float64 `config:"factor" doc:"Share of the devices." min:"1"`
}

type invalidConfig struct {
	Factor float64 `config:"factor" doc:"Share of the devices."`
}

func (invalidConfig) Validate() error { return errors.New("never right") }

func TestCheckConfig(t *testing.T) {
	cases := map[string]struct {
		factory core.Factory[core.Admitter]
		raw     map[string]any
		want    string // empty for no fault
	}{
		"nothing to set":       {configFactory(fakeInfo, core.None{}), nil, ""},
		"nested settings":      {configFactory(fakeInfo, goodConfig{Factor: 1, Tenants: []tenant{{"blue"}}}), nil, ""},
		"a required setting":   {configFactory(fakeInfo, requiredConfig{}), map[string]any{"path": "jobs.csv"}, ""},
		"it is missing":        {configFactory(fakeInfo, requiredConfig{}), nil, "path"},
		"type in camel case":   {configFactory(core.Info{Type: "fakeType", Summary: "a", Description: "b"}, core.None{}), nil, "not snake_case"},
		"no summary":           {configFactory(core.Info{Type: "fake", Description: "b"}, core.None{}), nil, "not one line"},
		"a summary of 2 lines": {configFactory(core.Info{Type: "fake", Summary: "a\nb", Description: "b"}, core.None{}), nil, "not one line"},
		"no description":       {configFactory(core.Info{Type: "fake", Summary: "a"}, core.None{}), nil, "no description"},
		"key in camel case":    {configFactory(fakeInfo, badNameConfig{}), nil, `"maxFactor": name is not snake_case`},
		"no documentation":     {configFactory(fakeInfo, noDocConfig{}), nil, `"factor": no documentation`},
		"none deep inside":     {configFactory(fakeInfo, deepNoDocConfig{}), nil, `"limits.jobs": no documentation`},
		"a key twice":          {configFactory(fakeInfo, twiceConfig{}), nil, "declared twice"},
		"an unsupported type":  {configFactory(fakeInfo, unsupportedConfig{}), nil, "chan int"},
		"a default too small":  {configFactory(fakeInfo, belowMinConfig{}), nil, "factor"},
		"invalid defaults":     {configFactory(fakeInfo, invalidConfig{}), nil, "never right"},
		"a setting of nobody":  {configFactory(fakeInfo, core.None{}), map[string]any{"x": 1}, "unknown key"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := CheckConfig(tc.factory, tc.raw)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("fault: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

// TestIntrusionsReachEveryObject makes sure that strictness is tested at every level.
func TestIntrusionsReachEveryObject(t *testing.T) {
	f := configFactory(fakeInfo, goodConfig{})
	config, _ := f.Decode(nil)
	var got []string
	for _, raw := range intrusions(core.Encode(config), f.Fields()) {
		_, problems := f.Decode(raw)
		for _, p := range problems {
			if strings.HasSuffix(p.Path, strangeKey) {
				got = append(got, p.Path)
			}
		}
	}
	if want := "no_such_key tenants[0].no_such_key limits.no_such_key"; strings.Join(got, " ") != want {
		t.Errorf("unknown keys at %q, want %q", got, want)
	}
}
