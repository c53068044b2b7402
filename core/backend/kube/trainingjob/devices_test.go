package trainingjob

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

func TestDevices(t *testing.T) {
	cases := map[string]struct {
		set  core.DeviceSet
		want string
	}{
		"none":               {0, ""},
		"one":                {0b1, "0"},
		"two":                {0b11, "0-1"},
		"a range and one":    {0b1001111, "0-3,6"},
		"single ones":        {0b10101, "0,2,4"},
		"the last":           {1 << 63, "63"},
		"all":                {^core.DeviceSet(0), "0-63"},
		"all but one inside": {^core.DeviceSet(0) &^ (1 << 10), "0-9,11-63"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := FormatDevices(tc.set); got != tc.want {
				t.Errorf("written %q, want %q", got, tc.want)
			}
			if got, err := ParseDevices(tc.want); err != nil || got != tc.set {
				t.Errorf("read %v, %v, want %v", got, err, tc.set)
			}
		})
	}
}

func TestDevicesThatAreNone(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"a word":           {"all", `"all" is no number`},
		"no number":        {"0,,2", `"" is no number`},
		"an end":           {"0-", `"" is no number`},
		"a sign":           {"+1", `"+1" is no number`},
		"a negative":       {"-1", `"" is no number`},
		"a blank":          {"0, 1", `" 1" is no number`},
		"a leading zero":   {"01", `"01" is no number`},
		"too great":        {"64", "devices count from 0 to 63"},
		"much too great":   {"99999999999999999999", "devices count from 0 to 63"},
		"backwards":        {"3-1", "ends before it begins"},
		"twice":            {"1,1", "does not come after"},
		"overlapping":      {"0-3,2-4", "does not come after"},
		"out of order":     {"4,2", "does not come after"},
		"three in a range": {"1-2-3", `"2-3" is no number`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseDevices(tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) || got != 0 {
				t.Errorf("read %v, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// What is written is read as the same, in one way only.
func TestDevicesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := core.DeviceSet(rapid.Uint64().Draw(t, "set"))
		text := FormatDevices(set)
		if got, err := ParseDevices(text); err != nil || got != set {
			t.Fatalf("%v is written as %q and read as %v, %v", set, text, got, err)
		}
		if longest := 192; len(text) > longest {
			t.Fatalf("%q has %d characters; the definition allows %d", text, len(text), longest)
		}
	})
}

func FuzzParseDevices(f *testing.F) {
	f.Add("0-3,6")
	f.Add("63")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := ParseDevices(text)
		if err != nil {
			return
		}
		if again, err := ParseDevices(FormatDevices(set)); err != nil || again != set {
			t.Errorf("%q is %v, and written as %q", text, set, FormatDevices(set))
		}
	})
}
