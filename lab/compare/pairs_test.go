package compare

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/lab/study"
)

// Runs of one replicate are one observation, however many loads there are, but each workload is another: unless workloads are what is compared.
func TestUnitsOfStudies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		axes     []string // each of two items, "scheduler 1" and "scheduler 2"
		compared int
		chosen   bool // the first item of the compared axis against the second, and not study against study
		want     []string
	}{
		"no workloads":                {axes: []string{"scheduler"}, chosen: true, want: []string{"1", "2"}},
		"workloads last":              {axes: []string{"scheduler", "workload"}, chosen: true, want: []string{"1 workload 1", "1 workload 2", "2 workload 1", "2 workload 2"}},
		"workloads first":             {axes: []string{"workload", "scheduler"}, compared: 1, chosen: true, want: []string{"1 workload 1", "1 workload 2", "2 workload 1", "2 workload 2"}},
		"loads":                       {axes: []string{"scheduler", "load"}, chosen: true, want: []string{"1", "2"}},
		"one workload against others": {axes: []string{"workload", "scheduler"}, chosen: true, want: []string{"1", "2"}},
		"studies compare workloads":   {axes: []string{"workload", "scheduler"}, want: []string{"1", "2"}},
		"studies compare schedulers":  {axes: []string{"workload", "scheduler"}, compared: 1, want: []string{"1 workload 1", "1 workload 2", "2 workload 1", "2 workload 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			side := func(item int) *Side {
				s := &Side{study: &study.Kept{Study: &study.Study{Compared: tc.compared}}, chosen: -1}
				lists := [][]string{nil}
				for _, axis := range tc.axes {
					items := []string{axis + " 1", axis + " 2"}
					s.study.Axes = append(s.study.Axes, study.Axis{Name: axis, Items: []study.Item{{Name: items[0]}, {Name: items[1]}}})
					var longer [][]string
					for _, l := range lists {
						longer = append(longer, append(slices.Clone(l), items[0]), append(slices.Clone(l), items[1]))
					}
					lists = longer
				}
				if tc.chosen {
					s.chosen, s.item = tc.compared, fmt.Sprintf("%s %d", tc.axes[tc.compared], item)
				}
				for _, items := range lists {
					for replicate := 1; replicate <= 2; replicate++ {
						if !tc.chosen || items[tc.compared] == s.item {
							s.Runs = append(s.Runs, &Run{Items: items, Replicate: replicate})
						}
					}
				}
				return s
			}
			base := side(1)
			pairs, alone, err := matchStudies(base, side(2))
			if err != nil || len(alone) > 0 || len(pairs) != len(base.Runs) {
				t.Fatalf("%d pairs of %d runs, alone %q: %v", len(pairs), len(base.Runs), alone, err)
			}
			var got []string
			for _, p := range pairs {
				got = append(got, p.unit)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, slices.Compact(got)); diff != "" {
				t.Errorf("units (-want +got):\n%s", diff)
			}
		})
	}
}
