package market

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBind(t *testing.T) {
	cases := map[string]struct {
		rates        [][]float64
		won          [][]int
		count, sizes []int
		crowd        bool
		want         [][]float64 // rates that are left
	}{
		"the type that makes most of what was won": {
			rates: [][]float64{{1, 3}, {1, 3}}, won: [][]int{{4, 1}, {2, 1}},
			count: []int{8, 8}, sizes: []int{1, 1},
			want: [][]float64{{1, 0}, {0, 3}},
		},
		"the fastest where nothing was": {
			rates: [][]float64{{1, 3}}, won: [][]int{{0, 0}}, count: []int{8, 8}, sizes: []int{1},
			want: [][]float64{{0, 3}},
		},
		"larger jobs first": {
			rates: [][]float64{{1, 3}, {1, 3}}, won: [][]int{{0, 1}, {0, 1}}, count: []int{2, 2}, sizes: []int{1, 2},
			want: [][]float64{{1, 0}, {0, 3}},
		},
		"some mix": {
			rates: [][]float64{{1, 3}, {1, 3}}, won: [][]int{{1, 1}, {1, 1}}, count: []int{2, 2}, sizes: []int{0, 1},
			want: [][]float64{{1, 3}, {0, 3}},
		},
		"all mix": {
			rates: [][]float64{{1, 3}}, won: [][]int{{1, 1}}, count: []int{2, 2}, sizes: []int{0},
			want: [][]float64{{1, 3}},
		},
		"no room is no type": {
			rates: [][]float64{{1}, {1}}, won: [][]int{{1}, {1}}, count: []int{1}, sizes: []int{1, 1},
			want: [][]float64{{1}, {0}},
		},
		"or a crowd": {
			rates: [][]float64{{1}, {1}}, won: [][]int{{1}, {1}}, count: []int{1}, sizes: []int{1, 1}, crowd: true,
			want: [][]float64{{1}, {1}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var jobs []Job
			for _, rates := range tc.rates {
				jobs = append(jobs, Job{Rates: rates})
			}
			some := slices.Max(tc.sizes) > 0
			if got := Bind(jobs, tc.won, Workers{Count: tc.count}, tc.sizes, tc.crowd); got != some {
				t.Errorf("bound any: %v, want %v", got, some)
			}
			var got [][]float64
			for i := range jobs {
				got = append(got, jobs[i].Rates)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rates left (-want +got):\n%s", diff)
			}
		})
	}
}
