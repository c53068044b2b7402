package report

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTexts(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(-1)
	for name, tc := range map[string]struct {
		write func(float64) string
		texts map[float64]string
	}{
		"digits":  {digits, map[float64]string{0: "0", 0.12346: "0.1235", -2: "-2", 999.96: "1000", 1000: "1,000", 1234567.4: "1,234,567", -1000: "-1,000", 999999: "999,999", 1e15: "1000000000000000", inf: "–"}},
		"span":    {span, map[float64]string{0: "0 s", 2e-5: "20 µs", 1e-3: "1 ms", 0.5: "500 ms", 1: "1 s", 119.9: "120 s", 120: "2 min", 7199: "120 min", 7200: "2 h", 172799: "48 h", 172800: "2 d", 1e6: "11.57 d", -90: "-90 s", -3600: "-60 min", inf: "–"}},
		"percent": {percent, map[float64]string{0: "0 %", 0.12345: "12.3 %", 1: "100 %", -0.5: "-50 %", inf: "–"}},
		"plain":   {Plain.text, map[float64]string{60: "60"}},
		"seconds": {Seconds.text, map[float64]string{60: "60 s"}},
		"share":   {Share.text, map[float64]string{0.5: "50 %"}},
		"signed":  {signedPercent, map[float64]string{0.5: "+50 %", -0.123456: "-12.3 %", math.Copysign(0, -1): "0 %"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[float64]string{}
			for v := range tc.texts {
				got[v] = tc.write(v)
			}
			if diff := cmp.Diff(tc.texts, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := tc.write(nan); got != "–" {
				t.Errorf("NaN is %q", got)
			}
		})
	}
	for path, want := range map[string]string{"runs/a-b_1.0": "runs/a-b_1.0", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "AZaz09/=:@%+,": "AZaz09/=:@%+,"} {
		if got := shellQuoted(path); got != want {
			t.Errorf("%q as a word is %s, want %s", path, got, want)
		}
	}
	for metric, want := range map[string]Unit{"jct_seconds.mean": Seconds, "utilization_ratio": Share, "fairness.rho_mean": Plain, "ratio": Plain} {
		if got := unitOf(metric); got != want {
			t.Errorf("the unit of %s is %s, want %s", metric, got, want)
		}
	}
}

// What is packed reads back to within half of its scale, the finest that holds the largest value.
func TestTimesArePacked(t *testing.T) {
	for name, tc := range map[string]struct {
		values []float64
		scale  float64
		delta  bool
		want   []uint32
	}{
		"milliseconds":   {[]float64{0, 0.0004, 0.0006, 10}, 0.001, true, []uint32{0, 0, 1, 9999}},
		"not sorted":     {[]float64{10, 1, 1.5}, 0.001, false, []uint32{10000, 1000, 1500}},
		"unknown":        {[]float64{1, math.NaN(), 2}, 0.001, false, []uint32{1000, missing, 2000}},
		"negative":       {[]float64{-5, 1}, 0.001, false, []uint32{0, 1000}},
		"49 days":        {[]float64{4294967.29}, 0.001, true, []uint32{4294967290}},
		"50 days":        {[]float64{4294967.295}, 0.01, true, []uint32{429496730}},
		"a century":      {[]float64{3.2e9}, 1, true, []uint32{3200000000}},
		"more than fits": {[]float64{1, 1e300}, 1000, true, []uint32{0, missing - 1}},
		"none":           {nil, 0.001, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPack()
			p.counts("before", []uint32{7})
			p.times("x", tc.values)
			if diff := cmp.Diff(column{At: 4, N: len(tc.values), Scale: tc.scale, Delta: tc.delta}, p.index["x"]); diff != "" {
				t.Errorf("column (-want +got):\n%s", diff)
			}
			var got []uint32
			for i := range tc.values {
				got = append(got, binary.LittleEndian.Uint32(p.blob[4+4*i:]))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
	p := newPack()
	p.wholes("x", []float64{math.NaN(), -1, 2.9, 1e300})
	var got []uint32
	for i := range 4 {
		got = append(got, binary.LittleEndian.Uint32(p.blob[4*i:]))
	}
	if diff := cmp.Diff([]uint32{missing, 0, 2, missing - 1}, got); diff != "" {
		t.Errorf("whole numbers (-want +got):\n%s", diff)
	}
}

// Of many rows as many as asked for are kept, from the first to the last, at even steps.
func TestRowsAreKeptEvenly(t *testing.T) {
	if diff := cmp.Diff([]int{0, 1, 2}, evenly(3)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, n := range []int{mostMoments, mostMoments + 1, 2*mostMoments + 7, 10 * mostMoments} {
		rows := evenly(n)
		if len(rows) != mostMoments || rows[0] != 0 || rows[len(rows)-1] != n-1 {
			t.Fatalf("of %d rows %d, from %d to %d", n, len(rows), rows[0], rows[len(rows)-1])
		}
		for i, row := range rows {
			if off := float64(row) - float64(i)*float64(n-1)/float64(mostMoments-1); off > 0 || off <= -1 {
				t.Fatalf("of %d rows, %d is row %d", n, i, row)
			}
		}
	}
	x, y := make([]float64, 5*mostSteps), make([]float64, 5*mostSteps)
	for i := range x {
		x[i], y[i] = float64(2*i), float64(i)
	}
	at, values := thinned(x, y)
	if len(at) != mostSteps || at[0] != 0 || at[len(at)-1] != x[len(x)-1] || values[len(values)-1] != y[len(y)-1] {
		t.Fatalf("%d moments, from %v to %v", len(at), at[0], at[len(at)-1])
	}
	for i := range at {
		if values[i] != math.Floor(at[i]/2) {
			t.Fatalf("at %v the value is %v", at[i], values[i])
		}
	}
}

// Marks of an axis are at round distances, within it, and few.
func TestTicks(t *testing.T) {
	type mark struct {
		at    float64
		label string
	}
	marked := func(list []tick) (marks []mark) {
		for _, tick := range list {
			marks = append(marks, mark{tick.value, tick.label})
		}
		return marks
	}
	for name, tc := range map[string]struct {
		unit      Unit
		low, high float64
		want      []mark
	}{
		"ones":       {Plain, 0, 5, []mark{{0, "0"}, {1, "1"}, {2, "2"}, {3, "3"}, {4, "4"}, {5, "5"}}},
		"twos":       {Plain, 0, 9, []mark{{0, "0"}, {2, "2"}, {4, "4"}, {6, "6"}, {8, "8"}}},
		"fives":      {Plain, -11, 21, []mark{{-10, "-10"}, {-5, "-5"}, {0, "0"}, {5, "5"}, {10, "10"}, {15, "15"}, {20, "20"}}},
		"tens":       {Plain, 1, 62, []mark{{10, "10"}, {20, "20"}, {30, "30"}, {40, "40"}, {50, "50"}, {60, "60"}}},
		"shares":     {Share, 0, 1, []mark{{0, "0 %"}, {0.2, "20 %"}, {0.4, "40 %"}, {0.6000000000000001, "60 %"}, {0.8, "80 %"}, {1, "100 %"}}},
		"hours":      {Seconds, 0, 6 * 3600, []mark{{0, "0 s"}, {3600, "60 min"}, {7200, "2 h"}, {10800, "3 h"}, {14400, "4 h"}, {18000, "5 h"}, {21600, "6 h"}}},
		"seconds":    {Seconds, 0, 14, []mark{{0, "0 s"}, {2, "2 s"}, {4, "4 s"}, {6, "6 s"}, {8, "8 s"}, {10, "10 s"}, {12, "12 s"}, {14, "14 s"}}},
		"below":      {Seconds, 0, 0.6, []mark{{0, "0 s"}, {0.1, "100 ms"}, {0.2, "200 ms"}, {0.30000000000000004, "300 ms"}, {0.4, "400 ms"}, {0.5, "500 ms"}, {0.6000000000000001, "600 ms"}}[:6]},
		"many years": {Seconds, 0, 86400 * 3000, []mark{{0, "0 s"}, {43200000, "500 d"}, {86400000, "1000 d"}, {129600000, "1500 d"}, {172800000, "2000 d"}, {216000000, "2500 d"}, {259200000, "3000 d"}}},
		"two years":  {Seconds, 1, 1 + 60480000.5, []mark{{17280000, "200 d"}, {34560000, "400 d"}, {51840000, "600 d"}}},
		"a point":    {Seconds, 7, 7, []mark{{7, "7 s"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, marked(tc.unit.ticks(tc.low, tc.high)), cmp.AllowUnexported(mark{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	want := []mark{{0.5, ""}, {0.6, ""}, {0.7, ""}, {0.8, ""}, {0.9, ""}, {1, "1 s"}, {2, ""}, {3, ""}}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	if diff := cmp.Diff(want, marked(Seconds.logTicks(0.5, 3)), cmp.AllowUnexported(mark{}), near); diff != "" {
		t.Errorf("marks of powers (-want +got):\n%s", diff)
	}
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(-1e9, 1e9).Draw(t, "low")
		high := low + rapid.Float64Range(1e-3, 1e12).Draw(t, "width")
		unit := rapid.SampledFrom([]Unit{Plain, Seconds, Share}).Draw(t, "unit")
		list := unit.ticks(low, high)
		if len(list) == 0 || len(list) > mostTicks+1 {
			t.Fatalf("%d marks", len(list))
		}
		for _, tick := range list {
			if slack := (high - low) * 1e-9; tick.value < low-slack || tick.value > high {
				t.Fatalf("%v is not between %v and %v", tick.value, low, high)
			}
		}
	})
}

// A curve of a distribution is its values, each at the share of jobs that are no larger.
func TestDistributions(t *testing.T) {
	d := newDistribution("k", "t", true, []float64{3, math.NaN(), 1, 2})
	if points, low, high := d.curve(); !cmp.Equal([]float64{1, 2, 3}, points) || low != 0.25 || high != 0.75 {
		t.Errorf("curve %v from %v to %v", points, low, high)
	}
	for p, want := range map[float64]float64{0.1: 1, 0.34: 2, 0.5: 2, 0.9: 3, 1: 3} {
		if got := d.quantile(p); got != want {
			t.Errorf("quantile %v is %v, want %v", p, got, want)
		}
	}
	if d.mean() != 2 {
		t.Errorf("mean %v", d.mean())
	}
	none := newDistribution("", "", false, []float64{math.NaN()})
	if !math.IsNaN(none.mean()) || !math.IsNaN(none.quantile(.5)) {
		t.Error("nothing has a mean")
	}
	many := make([]float64, 10_000)
	for i := range many {
		many[i] = float64(i)
	}
	points, low, high := newDistribution("", "", false, many).curve()
	l := cdf("x", 3, newDistribution("", "", false, many))
	if len(points) > 600 || points[0] != 1e-3 || points[len(points)-1] != 9999 || low != 1e-4 || high != 1 || l.Y[0] != low || l.Y[len(l.Y)-1] != high || l.Colour != 3 || !l.Step {
		t.Errorf("%d points from %v to %v, shares %v to %v", len(points), points[0], points[len(points)-1], low, high)
	}
	for i, v := range points {
		if want := l.Y[i] * 10_000; math.Abs(v+1-want) > 0.6 && v > 1e-3 {
			t.Fatalf("%v at the share %v", v, l.Y[i])
		}
	}
}

// Figures are drawn as they are: places, bands, bars, marks, legends and scales.
func TestDrawnFigures(t *testing.T) {
	nan := math.NaN()
	for name, f := range map[string]Figure{
		"bands": {Name: "bands", Title: "Bands", XLabel: "load", YLabel: "time", X: Plain, Y: Seconds, Lines: []Line{
			{Label: "a", X: []float64{0.5, 1, 2}, Y: []float64{60, 120, nan}, Low: []float64{30, nan, nan}, High: []float64{90, nan, nan}},
			{Label: "b", Colour: 1, X: []float64{0.5, 1, 2}, Y: []float64{30, 60, 90}, Low: []float64{20, 50, 80}, High: []float64{40, 70, 110}},
			{Label: "c", Colour: 2, Step: true, X: []float64{0.5, nan, 2}, Y: []float64{10, 1, 20}},
			{Label: "d", Colour: 3, X: []float64{1}, Y: []float64{nan}},
		}},
		"points": {Name: "points", Title: strings.Repeat("A very long title ", 8), XLabel: "who", YLabel: "change", X: Plain, Y: Share, Ticks: []string{"a", "b", "c", "d", "e", "f"}, Lines: []Line{
			{Label: "ours", Points: true, X: []float64{0, 1, 5}, Y: []float64{-0.5, 0.25, 1}, Low: []float64{-0.75, nan, 0.5}, High: []float64{-0.25, nan, 1.5}},
			{Label: "published", Points: true, Hollow: true, X: []float64{0, 1}, Y: []float64{0.5, 0.75}},
		}},
		"log": {Name: "log", Title: "Log", XLabel: "time", YLabel: "jobs", X: Seconds, Y: Share, LogX: true, Lines: []Line{{Label: "x", Colour: 9, Step: true, X: []float64{1, 10, 5000}, Y: []float64{0.1, 0.5, 1}}}},
		"one": {Name: "one", Title: "One", X: Plain, Y: Plain, Lines: []Line{{Label: "x", X: []float64{3}, Y: []float64{7}, Points: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Draw(&out, &f, "svg"); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".svg", out.String())
		})
	}
}
