package workload

import (
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// A trace says that something is unknown by an empty cell. A 0 that would be taken for it is refused; where 0 means something, or the same, it is read.
func TestCSVTellsNothingFromZero(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		column, value string
		err           string
		of            func(*core.JobSpec) float64
		want          float64
	}{
		"utilisation is unknown":      {"utilisation", "", "", func(s *core.JobSpec) float64 { return s.Utilisation }, 0},
		"utilisation of 0":            {"utilisation", "0", `jobs.csv:2:10: utilisation is "0"; expected nothing where it is unknown, or a part of a device above 0, at most 1`, nil, 0},
		"utilisation of 0.0":          {"utilisation", "0.0", `utilisation is "0.0"; expected nothing`, nil, 0},
		"hardly any utilisation":      {"utilisation", "1e-9", "", func(s *core.JobSpec) float64 { return s.Utilisation }, 1e-9},
		"a whole device":              {"utilisation", "1", "", func(s *core.JobSpec) float64 { return s.Utilisation }, 1},
		"more than a device":          {"utilisation", "1.01", `utilisation is "1.01"`, nil, 0},
		"tolerance is not told":       {"slowdown_tolerance", "", "", func(s *core.JobSpec) float64 { return s.SlowdownTolerance }, 0},
		"tolerance of 0":              {"slowdown_tolerance", "0", `jobs.csv:2:10: slowdown_tolerance is "0"; expected nothing where it is unknown, or a part of the speed alone above 0, at most 1`, nil, 0},
		"hardly any tolerance":        {"slowdown_tolerance", "1e-9", "", func(s *core.JobSpec) float64 { return s.SlowdownTolerance }, 1e-9},
		"no device memory":            {"device_memory_gb", "0", "", func(s *core.JobSpec) float64 { return s.DeviceMemoryGB }, 0},
		"a share of 0":                {"share_milli", "0", "", func(s *core.JobSpec) float64 { return float64(s.Share.Milli) }, 0},
		"a share of a whole device":   {"share_milli", "1000", "", func(s *core.JobSpec) float64 { return float64(s.Share.Milli) }, 1000},
		"a share that is not told":    {"share_milli", "", "", wholeDevices, 1},
		"utilisation below 0":         {"utilisation", "-0.1", `utilisation is "-0.1"`, nil, 0},
		"utilisation that is no part": {"utilisation", "NaN", `utilisation is "NaN"`, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			text := "name,submit_s,duration_s,replicas," + tc.column + "\na,0,10,1," + tc.value + "\n"
			w, err := loadFrom(t, NewCSV(), map[string]any{"path": writeFile(t, text, t.TempDir(), "jobs.csv")})
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if err == nil && tc.of(&w.Jobs[0].Spec) != tc.want {
				t.Errorf("read is %v, want %v", tc.of(&w.Jobs[0].Spec), tc.want)
			}
		})
	}
}

// wholeDevices is 1 for a job that says nothing of shares.
func wholeDevices(s *core.JobSpec) float64 {
	if s.Share == nil {
		return 1
	}
	return 0
}
