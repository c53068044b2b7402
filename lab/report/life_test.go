package report

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The job that a life is about held devices longest: neither the first nor the one with most devices; of several the least name.
func TestLongestHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		stays map[string][]period
		want  string
	}{
		"none":            {nil, ""},
		"the longer":      {map[string][]period{"a": {{0, 10, 9, 0}}, "b": {{0, 11, 1, 0}}}, "b"},
		"several stays":   {map[string][]period{"a": {{0, 10, 9, 0}}, "b": {{0, 6, 1, 0}, {20, 26, 1, 0}}}, "b"},
		"as long":         {map[string][]period{"c": {{5, 10, 9, 0}}, "b": {{0, 5, 1, 0}}, "d": {{0, 5, 1, 0}}}, "b"},
		"no time at all":  {map[string][]period{"a": {{5, 5, 9, 0}}}, ""},
		"of ten as long":  {map[string][]period{"j": {{0, 1, 1, 0}}, "i": {{0, 1, 1, 0}}, "h": {{0, 1, 1, 0}}, "g": {{0, 1, 1, 0}}, "f": {{0, 1, 1, 0}}}, "f"},
		"the last longer": {map[string][]period{"z": {{0, 2, 1, 0}}, "a": {{0, 1, 1, 0}}}, "z"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := longestHeld(tc.stays); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Stays become steps: in order of time, without a gap where one follows another at once, and 0 in between.
func TestLives(t *testing.T) {
	l := newLife("x", []period{{50, 60, 1, 8}, {10, 20, 2, 16}, {20, 30, 4, 32}})
	want := life{
		label:   "x",
		devices: course{[]float64{10, 20, 30, 50, 60}, []float64{2, 4, 0, 1, 0}},
		batch:   course{[]float64{10, 20, 30, 50, 60}, []float64{16, 32, 0, 8, 0}},
	}
	if diff := cmp.Diff(want, l, cmp.AllowUnexported(life{}, course{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if l = newLife("x", []period{{0, 1, 1, 0}}); l.batch.at != nil {
		t.Errorf("without a batch it has %v", l.batch)
	}
	l.trained(course{}, course{})
	if l.efficiency.at != nil {
		t.Errorf("of nothing known it has the efficiency %v", l.efficiency)
	}
	l.trained(course{[]float64{0, 1}, []float64{64, math.NaN()}}, course{[]float64{0, 1}, []float64{0.5, math.NaN()}})
	if diff := cmp.Diff([2]course{{[]float64{0, 1}, []float64{64, 0}}, {[]float64{0, 1}, []float64{0.5, 0}}}, [2]course{l.batch, l.efficiency}, cmp.AllowUnexported(course{})); diff != "" {
		t.Errorf("trained (-want +got):\n%s", diff)
	}
}

func TestCourseBetween(t *testing.T) {
	c := course{[]float64{0, 10, 20, 30}, []float64{1, 2, 3, 4}}
	for name, tc := range map[string]struct {
		from, to float64
		want     course
	}{
		"within":        {5, 25, course{[]float64{5, 10, 20, 25}, []float64{1, 2, 3, 3}}},
		"at its steps":  {10, 20, course{[]float64{10, 20}, []float64{2, 2}}},
		"between steps": {11, 12, course{[]float64{11, 12}, []float64{2, 2}}},
		"to the end":    {20, 100, course{[]float64{20, 30, 100}, []float64{3, 4, 4}}},
		"before it":     {-5, 5, course{[]float64{0, 5}, []float64{1, 1}}},
		"long before":   {-5, -1, course{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, c.between(tc.from, tc.to), cmp.AllowUnexported(course{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Of more moments than a page keeps it holds every second one of each job, and each at which the batch changed.
func TestManyPacesAreThinned(t *testing.T) {
	var text strings.Builder
	text.WriteString("job,at_s,batch,efficiency\n")
	for i := range mostPaces / 2 {
		batch := 8
		if i >= 1001 { // between two that are kept
			batch = 16
		}
		fmt.Fprintf(&text, "0,%d,%d,0.5\n1,%d,4,1\n", i, batch, i)
	}
	all := small()
	all["efficiency.csv"] = files(map[string]string{"x": text.String()})["x"]
	_, page := pageOf(t, all)
	columns, _ := unpacked(t, page)
	kept := map[float64][]float64{}
	for i, job := range columns["paces.job"] {
		kept[job] = append(kept[job], columns["paces.at"][i])
	}
	for job, want := range map[float64]int{0: mostPaces/4 + 1, 1: mostPaces / 4} {
		if len(kept[job]) != want {
			t.Errorf("job %v keeps %d moments, want %d", job, len(kept[job]), want)
		}
	}
	if diff := cmp.Diff([]float64{0, 2, 4}, kept[1][:3]); diff != "" || kept[0][501] != 1001 {
		t.Errorf("moments (-want +got):\n%s, the batch changes at %v", diff, kept[0][501])
	}
}

// A page allows its own scripts by their digest and nothing from elsewhere, and shows the first of many tenants.
func TestPageHoldsItsScripts(t *testing.T) {
	all := full()
	var tenants strings.Builder
	tenants.WriteString("tenant,jobs,gpu_seconds\n")
	for i := range mostGroups + 1 {
		fmt.Fprintf(&tenants, "t%03d,1,%d\n", i, i)
	}
	all["tenants.csv"].Data = []byte(tenants.String())
	_, page := pageOf(t, all)
	_, script, _ := strings.Cut(page, "<script>")
	script, _, _ = strings.Cut(script, "</script>")
	policy := strings.ReplaceAll(strings.ReplaceAll(page[:strings.Index(page, "viewport")], "&#39;", "'"), "&#43;", "+")
	if !strings.Contains(script, "Q.run") || !strings.Contains(policy, digestOf(script)) || strings.Contains(policy, "connect-src") {
		t.Error("the scripts are not there, not allowed, or may connect")
	}
	if text := shown(t, page); !strings.Contains(text, "By tenant, most device time first, the first 200 of 201") || strings.Contains(text, "t000 |") || !strings.Contains(text, "| t200 |") {
		t.Error("not the first of many tenants")
	}
}
