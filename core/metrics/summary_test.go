package metrics

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

func TestDescribe(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i) // 100 … 1: Describe sorts
	}
	cases := map[string]struct {
		sample []float64
		want   Distribution
	}{
		"one":     {[]float64{7}, Distribution{Mean: 7, P50: 7, P90: 7, P95: 7, P99: 7, Max: 7}},
		"two":     {[]float64{3, 1}, Distribution{Mean: 2, P50: 1, P90: 3, P95: 3, P99: 3, Max: 3}},
		"hundred": {hundred, Distribution{Mean: 50.5, P50: 50, P90: 90, P95: 95, P99: 99, Max: 100}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Describe(tc.sample)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestNumberReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Number(rapid.Float64().Draw(t, "number"))
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Number
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if got != want && want.Known() {
			t.Errorf("%s reads back as %v, want %v", text, got, want)
		}
	})
	for name, n := range map[string]float64{"not a number": math.NaN(), "infinite": math.Inf(1)} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(Number(n))
			if err != nil || string(text) != "null" {
				t.Errorf("%v is written as %s, %v; want null", n, text, err)
			}
			got := Number(1)
			if err := json.Unmarshal(text, &got); err != nil || got.Known() {
				t.Errorf("null reads back as %v, %v", got, err)
			}
		})
	}
}

func TestTextsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		var fromJSON string
		if err := json.Unmarshal(appendString(nil, text), &fromJSON); err != nil {
			t.Fatal(err)
		}
		if fromJSON != strings.ToValidUTF8(text, string(utf8.RuneError)) {
			t.Errorf("%q reads back from JSON as %q", text, fromJSON)
		}
		row := append(AppendCell(append([]byte(nil), "x,"...), text), '\n')
		records, err := csv.NewReader(strings.NewReader(string(row))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		// The reader of encoding/csv turns \r\n into \n, also in quotes.
		if want := strings.ReplaceAll(text, "\r\n", "\n"); records[0][1] != want {
			t.Errorf("%q reads back from CSV as %q", text, records[0][1])
		}
	})
}

func TestAppendDevices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := core.DeviceSet(rapid.Uint64().Draw(t, "devices"))
		if got, want := string(appendDevices(nil, set)), set.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

func TestDurationQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sample := rapid.SliceOfN(rapid.Int64Range(0, int64(100*time.Hour)), 1, 50).Draw(t, "nanoseconds")
		var d durations
		for _, ns := range sample {
			d.add(time.Duration(ns))
		}
		slices.Sort(sample)
		for _, p := range []float64{0.5, 0.99, 1} {
			exact := time.Duration(sample[int(math.Ceil(p*float64(len(sample))))-1]).Seconds()
			got := float64(d.quantile(p))
			if got < exact || got > exact*(1+1.0/perOctave) {
				t.Errorf("quantile %v = %v s, want %v s", p, got, exact)
			}
		}
	})
}

func TestExclusiveSeconds(t *testing.T) {
	cases := map[string]struct {
		spec core.JobSpec
		want bool
	}{
		"duration":   {core.JobSpec{TotalWork: 10}, true},
		"undated":    {core.JobSpec{}, false},
		"iterations": {core.JobSpec{TotalWork: 10, StepTimes: &core.StepTimes{}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, got := ExclusiveSeconds(&tc.spec); got != tc.want {
				t.Errorf("known = %v, want %v", got, tc.want)
			}
		})
	}
}
