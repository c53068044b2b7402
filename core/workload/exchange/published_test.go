package exchange

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/internal/refdata"
)

// What is read of the traces as they are published.
func TestPublishedTraces(t *testing.T) {
	for name, tc := range map[string]struct {
		path    []string
		options Options
		kept    int
		parts   int // of those kept, jobs with a part of a device
		dropped map[string]int
	}{
		"openb 2023": {
			path: []string{"data", "alibaba-openb-2023", "openb_pod_list_default.csv.gz"}, options: Options{From: OpenB},
			kept: 6203, parts: 2573, dropped: map[string]int{reasonNeverRan: 861, reasonNoGPU: 1088},
		},
		"openb 2023, types": {
			path: []string{"data", "fgd", "openb_pod_list_gpuspec33.csv.gz"}, options: Options{From: OpenB},
			kept: 6203, parts: 2573, dropped: map[string]int{reasonNeverRan: 861, reasonNoGPU: 1088},
		},
		"Kalos, mapped": {
			path:    []string{"data", "acme", "kalos_completed_319.csv"},
			options: Options{From: CSV, Map: map[string]string{"name": "job", "replicas": "gpus", "application": "kind"}},
			kept:    319,
			dropped: map[string]int{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := os.Open(refdata.Path(t, tc.path...))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			trace, counts, err := Import(t.Context(), name, file, tc.options)
			if err != nil {
				t.Fatal(err)
			}
			parts := 0
			for i := range trace.Len() {
				if trace.At(i).Details().ShareMilli > 0 {
					parts++
				}
			}
			dropped := map[string]int{}
			for _, d := range counts.Dropped {
				dropped[d.Reason] = d.Rows
			}
			if counts.Kept != tc.kept || parts != tc.parts {
				t.Errorf("%d of %d kept, %d with parts of devices; want %d, %d", counts.Kept, counts.Rows, parts, tc.kept, tc.parts)
			}
			if diff := cmp.Diff(tc.dropped, dropped); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
		})
	}
}
