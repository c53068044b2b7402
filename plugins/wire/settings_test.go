package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/plugins/wire"
)

func TestSettingsFrom(t *testing.T) {
	const text = `{"whole": 3, "float": 3.5, "whole_float": 2.0, "exponent": 1e3, "seed": 18446744073709551615,
		"negative": -9007199254740993, "list": [1, 2.5, {"deep": 7}], "text": "7", "no": null}`
	want := map[string]any{
		"whole": 3, "float": 3.5, "whole_float": 2, "exponent": 1000, "seed": uint64(18446744073709551615),
		"negative": -9007199254740993, "list": []any{1, 2.5, map[string]any{"deep": 7}}, "text": "7", "no": nil,
	}
	got, err := wire.SettingsFrom(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	for text, wantError := range map[string]bool{"": false, "null": false, "[]": true, "{": true} {
		if got, err := wire.SettingsFrom(text); (err != nil) != wantError || got != nil {
			t.Errorf("%q: got %v, error %v; want an error %t", text, got, err, wantError)
		}
	}
}
