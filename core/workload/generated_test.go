package workload

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
)

func generate(t testing.TB, settings map[string]any) *Workload {
	t.Helper()
	return mustLoad(t, NewGenerated(), settings)
}

func TestGeneratedDefaults(t *testing.T) {
	w := generate(t, nil)
	if len(w.Jobs) != 160 {
		t.Fatalf("%d jobs", len(w.Jobs))
	}
	for i := range w.Jobs {
		s := &w.Jobs[i].Spec
		if s.ID != core.JobID(i) || s.SubmitSeconds < 0 || s.SubmitSeconds >= 28800 || s.SubmitSeconds != math.Floor(s.SubmitSeconds) {
			t.Errorf("job %q is number %d, submitted at %v s", s.Name, s.ID, s.SubmitSeconds)
		}
		if s.Application == "" || s.TotalWork < 1 || s.Requested < 1 {
			t.Errorf("job %q: %+v", s.Name, s)
		}
	}
	if diff := diffJobs(w.Jobs, generate(t, nil).Jobs); diff != "" {
		t.Errorf("the same seed gives other jobs:\n%s", diff)
	}
}

// With applications the same jobs are drawn, and train instead of running for their time.
func TestGeneratedApplications(t *testing.T) {
	rigid, elastic := generate(t, nil), generate(t, map[string]any{"applications": true})
	shared := map[polluxTask]*modelledModel{}
	for i := range elastic.Jobs {
		job := &elastic.Jobs[i]
		m := job.Model.(*modelledModel)
		task := polluxTask{job.Spec.Application, job.Spec.Batch.Requested}
		if shared[task] == nil {
			shared[task] = m
		}
		if m != shared[task] || m.profile.Name != job.Spec.Application {
			t.Errorf("job %q trains %q with a model of its own", job.Spec.Name, m.profile.Name)
		}
		r := &rigid.Jobs[i].Spec
		if job.Spec.Name != r.Name || job.Spec.SubmitSeconds != r.SubmitSeconds || job.Spec.Application != r.Application || job.Spec.Requested != r.Requested {
			t.Errorf("job %+v, without applications %+v", job.Spec, r)
		}
	}
}

// The mix is that of the eight workloads of the Pollux artifact, by application.
func TestGeneratedMix(t *testing.T) {
	const jobs = 20000
	w := generate(t, map[string]any{"jobs": jobs, "applications": true})
	got := map[string]float64{}
	for i := range w.Jobs {
		got[w.Jobs[i].Spec.Application] += 1.0 / jobs
	}
	want := map[string]float64{"ncf": 0.393, "cifar10": 0.387, "deepspeech2": 0.087, "bert": 0.067, "yolov3": 0.046, "imagenet": 0.020}
	for _, application := range slices.Sorted(maps.Keys(want)) {
		share := want[application]
		if tolerance := 4 * math.Sqrt(share*(1-share)/jobs); math.Abs(got[application]-share) > tolerance {
			t.Errorf("%s: share is %.4f, want %.3f", application, got[application], share)
		}
	}
	if len(got) != len(want) {
		t.Errorf("applications %v, want those of %v", got, want)
	}
}

// The shares of many draws lie within four standard deviations of those stated.
func TestGeneratedReplicas(t *testing.T) {
	const jobs = 20000
	cases := map[string]map[int]float64{
		mixOne:    {1: 1},
		mixGavel:  {1: 0.7, 2: 0.1, 4: 0.15, 8: 0.05},
		mixPhilly: {1: 0.9318, 2: 0.0221, 4: 0.0227, 8: 0.02, 16: 0.0024, 32: 0.0008},
		mixPollux: {1: 0.393, 4: 0.046, 6: 0.1425, 8: 0.1425, 12: 0.1425, 16: 0.1135, 24: 0.0067, 32: 0.0067, 48: 0.0067},
	}
	for mix, want := range cases {
		t.Run(mix, func(t *testing.T) {
			w := generate(t, map[string]any{"jobs": jobs, "replicas": mix, "durations": mixGavel})
			got := map[int]float64{}
			for i := range w.Jobs {
				got[w.Jobs[i].Spec.Requested] += 1.0 / jobs
			}
			for _, replicas := range slices.Sorted(maps.Keys(want)) {
				share := want[replicas]
				if tolerance := 4*math.Sqrt(share*(1-share)/jobs) + 1e-4; math.Abs(got[replicas]-share) > tolerance {
					t.Errorf("%d replicas: share is %.4f, want %.4f", replicas, got[replicas], share)
				}
			}
		})
	}
}

func TestGeneratedDurations(t *testing.T) {
	cases := map[string]struct {
		low, high, median, mean float64 // the mean within 5 %, where one is known
	}{
		// 5/8 of the lower interval is the median of the whole: 60·10^(1.5+1.5·0.625).
		mixGavel:  {1897, 600000, 60 * math.Pow(10, 1.5+1.5*0.625), 60361},
		mixPhilly: {1, 4628226, 1144, 0},
		mixPollux: {33, 31396, 573, 0}, // 49 % run for at most 449 s, 59 % for at most 573
	}
	for mix, want := range cases {
		t.Run(mix, func(t *testing.T) {
			w := generate(t, map[string]any{"jobs": 20000, "durations": mix})
			var seconds []float64
			mean := 0.0
			for i := range w.Jobs {
				seconds = append(seconds, w.Jobs[i].Spec.TotalWork)
				mean += w.Jobs[i].Spec.TotalWork / float64(len(w.Jobs))
			}
			slices.Sort(seconds)
			if seconds[0] < want.low || seconds[len(seconds)-1] > want.high {
				t.Errorf("durations are %v..%v s, want them within %v..%v", seconds[0], seconds[len(seconds)-1], want.low, want.high)
			}
			if median := seconds[len(seconds)/2]; relativeError(median, want.median) > 0.1 {
				t.Errorf("median is %v s, want %v", median, want.median)
			}
			if want.mean > 0 && relativeError(mean, want.mean) > 0.05 {
				t.Errorf("mean is %v s, want %v", mean, want.mean)
			}
		})
	}
}

func TestPhillyQuantiles(t *testing.T) {
	for _, q := range phillyQuantiles {
		if got := phillySeconds(q.share); relativeError(got, q.seconds) > 1e-9 {
			t.Errorf("quantile %v is %v s, want %v", q.share, got, q.seconds)
		}
	}
	if got, want := phillySeconds(0.25), math.Sqrt(75*209.0); relativeError(got, want) > 1e-9 {
		t.Errorf("quantile 0.25 is %v s, want %v", got, want)
	}
}

func TestGeneratedArrivals(t *testing.T) {
	const jobs = 20000
	hours := func(hours ...float64) func(at float64) bool {
		return func(at float64) bool { return hours[0]*3600 <= at && at < hours[1]*3600 }
	}
	burst := func(at float64) bool { return math.Mod(at, 4*3600) < 1800 }
	cases := map[string]struct {
		settings map[string]any
		within   func(at float64) bool
		want     float64 // share of the arrivals
	}{
		"poisson": {map[string]any{"arrivals": arrivalsPoisson}, hours(6, 12), 0.25},
		// Half an hour in four at 4 times the rate: 0.5·4/(0.5·4 + 3.5).
		"bursty": {map[string]any{"arrivals": arrivalsBursty}, burst, 2.0 / 5.5},
		// A quarter of the day around the peak: 1/4 + 0.8·√2/(2π).
		"diurnal": {map[string]any{"arrivals": arrivalsDiurnal}, hours(11, 17), 0.25 + 0.8*math.Sqrt2/(2*math.Pi)},
		"at once": {map[string]any{"span": "0s"}, func(at float64) bool { return at == 0 }, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			settings := map[string]any{"jobs": jobs, "span": "24h"}
			maps.Copy(settings, tc.settings)
			w := generate(t, settings)
			got := 0.0
			for i := range w.Jobs {
				if tc.within(w.Jobs[i].Spec.SubmitSeconds) {
					got += 1.0 / jobs
				}
			}
			if tolerance := 4*math.Sqrt(tc.want*(1-tc.want)/jobs) + 1e-9; math.Abs(got-tc.want) > tolerance {
				t.Errorf("share is %.4f, want %.4f", got, tc.want)
			}
		})
	}
}

func TestGeneratedConfigProblems(t *testing.T) {
	cases := map[string]map[string]any{
		"no jobs":                    {"jobs": 0},
		"negative span":              {"span": "-1s"},
		"unknown arrivals":           {"arrivals": "weekly"},
		"burst without length":       {"arrivals": arrivalsBursty, "burst_length": "0s"},
		"burst longer than its turn": {"arrivals": arrivalsBursty, "burst_every": (10 * time.Minute).String()},
		"swing above the mean":       {"diurnal_amplitude": 1.5},
		"applications without a mix": {"applications": true, "replicas": mixOne},
		"or for a known time":        {"applications": true, "durations": mixPhilly},
	}
	for name, settings := range cases {
		t.Run(name, func(t *testing.T) {
			if _, problems := NewGenerated().Decode(settings); problems.Err() == nil {
				t.Error("accepted")
			}
		})
	}
}

// Tenants by replicas name whose the jobs are, and change nothing else.
func TestGeneratedTenants(t *testing.T) {
	plain, named := generate(t, map[string]any{"jobs": 50}), generate(t, map[string]any{"jobs": 50, "tenants": "by_replicas"})
	for i := range plain.Jobs {
		a, b := plain.Jobs[i].Spec, named.Jobs[i].Spec
		if want := fmt.Sprintf("replicas-%d", a.Requested); a.Tenant != "" || b.Tenant != want {
			t.Errorf("job %d is of %q and %q, want none and %q", i, a.Tenant, b.Tenant, want)
		}
		if b.Tenant = ""; a.SubmitSeconds != b.SubmitSeconds || a.Requested != b.Requested || a.TotalWork != b.TotalWork {
			t.Errorf("job %d is %+v and %+v", i, a, b)
		}
	}
}
