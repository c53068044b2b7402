package core_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

func TestForeignFactoryAsksForItsSettings(t *testing.T) {
	fields := []core.Field{{Name: "limit", Type: "int", Doc: "How many.", Default: "3"}}
	schema := map[string]any{"type": "object"}
	var built map[string]any
	f := core.NewForeignFactory(core.Info{Type: "far", Capabilities: []core.Capability{core.CapabilityStepTimes}}, core.Foreign{
		Fields: func() []core.Field { return fields },
		Schema: func() map[string]any { return schema },
		Decode: func(raw map[string]any) (map[string]any, []core.Capability, core.Diagnostics) {
			if raw["limit"] == "many" {
				return nil, nil, core.Diagnostics{{Path: "limit", Summary: "expected a whole number"}}
			}
			return map[string]any{"limit": 3}, []core.Capability{core.CapabilityStepTimes, core.CapabilityRemainingWork}, nil
		},
	}, func(settings map[string]any, _ core.Settings) (core.Allocator, error) {
		built = settings
		return nil, nil
	})

	config, problems := f.Decode(nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := map[string]any{"limit": 3}
	if diff := cmp.Diff(want, core.Encode(config)); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fields, core.FieldsOf(config)); diff != "" {
		t.Errorf("fields of the config (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fields, f.Fields()); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(schema, f.Schema()); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
	wantNeeds := []core.Capability{core.CapabilityStepTimes, core.CapabilityRemainingWork} // each once
	if diff := cmp.Diff(wantNeeds, f.Needs(config)); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
	if _, err := f.New(config, core.Settings{}); err != nil || built["limit"] != 3 {
		t.Errorf("built with %v, error %v", built, err)
	}
	if got := f.Described().Info; got.Type != "far" || len(got.Capabilities) != 1 {
		t.Errorf("it is %+v although nothing else is told", got)
	}
	if config, problems := f.Decode(map[string]any{"limit": "many"}); config != nil || len(problems) != 1 || problems[0].Path != "limit" {
		t.Errorf("got config %v and problems %v, want the problem at limit alone", config, problems)
	}
}

// What only the component itself can tell is asked for when it is to be used.
func TestForeignFactoryIsTold(t *testing.T) {
	asked := 0
	f := core.NewForeignFactory(core.Info{Type: "far"}, core.Foreign{Info: func() core.Info {
		asked++
		return core.Info{Type: "far", OneType: true, Counts: true, Sharing: []core.Sharing{core.TimeSlice}}
	}}, func(map[string]any, core.Settings) (core.Allocator, error) { return nil, nil })
	if f.OneType || f.Counts || f.Sharing != nil || asked > 0 {
		t.Errorf("it is %+v, asked %d times, before anybody needs to know", f.Info, asked)
	}
	if told := f.Described(); !told.OneType || !told.Counts || len(told.Sharing) != 1 || asked != 1 {
		t.Errorf("it is %+v, asked %d times", told.Info, asked)
	}
}
