package metrics

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// twoTypes is 2 a100 and 6 t4.
func twoTypes() *core.Cluster {
	return &core.Cluster{Accelerators: []string{"a100", "t4"}, Nodes: []core.Node{
		{ID: 0, Accelerator: 0, Devices: 2}, {ID: 1, Accelerator: 1, Devices: 6},
	}}
}

// linear takes 120 s on one a100 and 240 s on one t4, and is as fast as it has devices, up to four.
func linear(_ core.JobID, accelerator core.AcceleratorID, devices int) float64 {
	return 120 * float64(accelerator+1) / float64(min(devices, 4))
}

func TestFairness(t *testing.T) {
	nan := math.NaN()
	for name, tc := range map[string]struct {
		spec       core.JobSpec
		alone      ExclusiveTime
		pause      float64 // at the first start
		devices, n float64 // requested, and jobs in the system, on average
		want       fairness
	}{
		// 12 devices are requested of 8, by 4 jobs: rho 150/(100·1.5). There are devices for every job: 150/100.
		"declared": {
			core.JobSpec{TotalWork: 100},
			nil, 0, 12, 4,
			fairness{jobsMean: 4, exclusive: 100, fair: nan, rho: 1, themis: 1.5, sia: nan},
		},
		// 16 jobs of one device on 8: both say 150/(100·2).
		"crowded": {
			core.JobSpec{TotalWork: 100},
			nil, 0, 16, 16,
			fairness{jobsMean: 16, exclusive: 100, fair: nan, rho: 0.75, themis: 0.75, sia: nan},
		},
		"not declared": {
			core.JobSpec{TotalWork: 100, StepTimes: &core.StepTimes{}},
			nil, 0, 12, 4,
			fairness{jobsMean: 4, exclusive: nan, fair: nan, rho: nan, themis: nan, sia: nan},
		},
		// 8/4 = 2 devices of each type: 60 s on a100 and 120 s on t4, weighted 2 to 6, are
		// 105 s. The same with the 2 requested.
		"modelled": {
			core.JobSpec{TotalWork: 1, Requested: 2, StepTimes: &core.StepTimes{}},
			linear, 0, 12, 4,
			fairness{jobsMean: 4, exclusive: 105, fair: 105, rho: 150 / (105 * 1.5), themis: 150.0 / 105, sia: 150.0 / 105},
		},
		// 8/3.2 = 2.5 devices lie between 60 s on 2 and 40 s on 3: 50 s on a100, 100 s on t4, 87.5 s in the mean.
		"between": {
			core.JobSpec{TotalWork: 100},
			linear, 0, 3.2, 3.2,
			fairness{jobsMean: 3.2, exclusive: 100, fair: 87.5, rho: 1.5, themis: 1.5, sia: 150 / 87.5},
		},
		// 8/16 is half a device: twice 120 s on a100, which is all that the job can run on.
		"half a device of one type": {
			core.JobSpec{TotalWork: 100, Accelerators: []string{"a100"}},
			linear, 0, 16, 16,
			fairness{jobsMean: 16, exclusive: 100, fair: 240, rho: 0.75, themis: 0.75, sia: 150.0 / 240},
		},
		// The pause of the start is part of Sia's share, and twice of half a device: 240 + 2·10 s.
		// It is no part of a run time alone.
		"after a pause": {
			core.JobSpec{TotalWork: 1, Requested: 1, Accelerators: []string{"a100"}, StepTimes: &core.StepTimes{}},
			linear, 10, 16, 16,
			fairness{jobsMean: 16, exclusive: 120, fair: 260, rho: 150.0 / 240, themis: 150.0 / 240, sia: 150.0 / 260},
		},
		"between, after a pause": {
			core.JobSpec{TotalWork: 100},
			linear, 12.5, 3.2, 3.2,
			fairness{jobsMean: 3.2, exclusive: 100, fair: 100, rho: 1.5, themis: 1.5, sia: 1.5},
		},
		// A type on which the job makes no progress counts as one that it cannot run on.
		"stuck on a type": {
			core.JobSpec{TotalWork: 100},
			func(id core.JobID, accelerator core.AcceleratorID, devices int) float64 {
				if accelerator == 0 {
					return math.Inf(1)
				}
				return linear(id, accelerator, devices)
			}, 0, 1, 1,
			fairness{jobsMean: 1, exclusive: 100, fair: 60, rho: 1.5, themis: 1.5, sia: 2.5},
		},
		// On t4 it needs 3 devices, and 8/3.2 = 2.5 are too few.
		"needs more of a type": {
			core.JobSpec{TotalWork: 100},
			func(id core.JobID, accelerator core.AcceleratorID, devices int) float64 {
				if accelerator == 1 && devices < 3 {
					return math.Inf(1)
				}
				return linear(id, accelerator, devices)
			}, 0, 3.2, 3.2,
			fairness{jobsMean: 3.2, exclusive: 100, fair: 50, rho: 1.5, themis: 1.5, sia: 3},
		},
		// 16 quarters of a device are 4 of 8. Half a device for each job is more than it asks for, and room for two replicas: 105 s as above.
		"a quarter of a device": {
			core.JobSpec{TotalWork: 100, Share: &core.Share{Milli: 250}},
			linear, 0, 4, 16,
			fairness{jobsMean: 16, exclusive: 100, fair: 105, rho: 1.5, themis: 1.5, sia: 150.0 / 105},
		},
		// 48 jobs on 8 devices: a sixth for each, two thirds of what it asks for.
		"less than its quarter": {
			core.JobSpec{TotalWork: 100, Share: &core.Share{Milli: 250}},
			nil, 0, 12, 48,
			fairness{jobsMean: 48, exclusive: 100, fair: nan, rho: 1, themis: 1, sia: nan},
		},
		// Its replicas are on as many devices as there are, at most: 30 s on a100, 60 s on t4.
		"on CPUs": {
			core.JobSpec{TotalWork: 100, Share: &core.Share{}},
			linear, 0, 0, 16,
			fairness{jobsMean: 16, exclusive: 100, fair: 52.5, rho: 1.5, themis: 1.5, sia: 150 / 52.5},
		},
		"stuck everywhere": {
			core.JobSpec{TotalWork: 100},
			func(core.JobID, core.AcceleratorID, int) float64 { return math.Inf(1) }, 0, 1, 1,
			fairness{jobsMean: 1, exclusive: 100, fair: nan, rho: 1.5, themis: 1.5, sia: nan},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := twoTypes()
			c.Sharing = core.Fractional
			r := record{spec: &tc.spec, part: c.Part(&tc.spec), finish: 150, outcome: completed, demanded: demanded{tc.devices * 150, tc.n * 150}}
			got := newShares(c, &capacity{}, tc.alone, func(core.JobID) float64 { return tc.pause }).of(&r)
			near := gocmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 || math.IsNaN(a) && math.IsNaN(b) })
			if diff := gocmp.Diff(tc.want, got, gocmp.AllowUnexported(fairness{}), near); diff != "" {
				t.Errorf("fairness (-want,+got):\n%s", diff)
			}
		})
	}
}

// The rows of fairness.csv are of completed jobs, and the summary has Sia's measure when it was asked for.
func TestFairnessIsWritten(t *testing.T) {
	var file bytes.Buffer
	c := NewCollector(testComponents, Outputs{Fairness: &file, ExclusiveTime: linear})
	summary, err := c.Finish(play(t, c), 160)
	if err != nil {
		t.Fatal(err)
	}
	// Of four t4. In a's life there is 1 job for 0-10, 2 for 10-90, 1 for 90-120 and 2 for 120-150:
	// 260 job-seconds, 1.733 jobs, which leave 4/1.733 = 2.308 devices: 60 s on 2 and 40 s on 3
	// make 53.846 s. In b's there are always 2.
	rows := strings.Split(strings.TrimSpace(file.String()), "\n")
	if len(rows) != 3 || rows[0]+"\n" != fairnessHeader {
		t.Fatalf("fairness.csv is\n%s", file.String())
	}
	for i, want := range [][]float64{
		{0, 260.0 / 150, 100, 60 - 20*(4*150.0/260-2), 150 / (100 * 650.0 / 600), 1.5, 150 / (60 - 20*(4*150.0/260-2))},
		{1, 2, 50, 60, 80 / (50 * 1.5), 1.6, 80.0 / 60},
	} {
		for k, cell := range strings.Split(rows[i+1], ",") {
			if got, err := strconv.ParseFloat(cell, 64); err != nil || math.Abs(got-want[k]) > 1e-12 {
				t.Errorf("job %d: %s is %s, want %v", i, strings.Split(rows[0], ",")[k], cell, want[k])
			}
		}
	}
	if got, want := summary.Fairness.Themis, (Rho{Mean: 1.55, Max: 1.6, UnfairRatio: 1}); got != want {
		t.Errorf("Themis is %+v, want %+v", got, want)
	}
	if got := summary.Fairness.Sia; got == nil || got.UnfairRatio != 1 || math.Abs(float64(got.Max)-150/(60-20*(4*150.0/260-2))) > 1e-12 {
		t.Errorf("Sia is %+v", got)
	}
}

// TestThemisAsPublished compares with what the artifact of Shockwave (NSDI'23) computed for its
// own runs: the JCT, the static rho, which tells the exclusive run time, and the rho of Themis of
// each job. Its contention is sampled at rounds.
func TestThemisAsPublished(t *testing.T) {
	var arrivals []float64
	trace, err := os.ReadFile(refdata.Path(t, "data", "shockwave", "tacc_120jobs.trace"))
	if err != nil {
		t.Fatal(err)
	}
	for row := range strings.Lines(string(trace)) {
		arrival, err := strconv.ParseFloat(strings.TrimSpace(strings.Split(row, "\t")[11]), 64)
		if err != nil {
			t.Fatal(err)
		}
		arrivals = append(arrivals, arrival)
	}
	packed, err := os.ReadFile(refdata.Path(t, "reference", "shockwave", "tacc_32gpu_120job_reference_results.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	content, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var published map[string]struct {
		JCT    []float64 `json:"jct_list"`
		Static []float64 `json:"finish_time_fairness_list"`
		Themis []float64 `json:"finish_time_fairness_themis_list"`
	}
	if err := json.NewDecoder(content).Decode(&published); err != nil {
		t.Fatal(err)
	}
	const devices = 32
	cluster := &core.Cluster{Accelerators: []string{"v100"}, Nodes: []core.Node{{Devices: devices}}}
	for _, policy := range []string{"max_min_fairness", "allox", "shockwave", "max_sum_throughput_perf", "gandiva_fair", "finish_time_fairness", "min_total_duration"} {
		t.Run(policy, func(t *testing.T) {
			run := published["tacc_32gpus/"+policy+"_simulation"]
			if len(run.JCT) != len(arrivals) || len(arrivals) != 120 {
				t.Fatalf("%d JCT and %d arrivals", len(run.JCT), len(arrivals))
			}
			var events []core.Event
			jobs := make([]*core.Job, len(arrivals))
			for i, jct := range run.JCT {
				exclusive := jct / run.Static[i] / (float64(len(arrivals)) / devices)
				j := core.NewJob(&core.JobSpec{ID: core.JobID(i), SubmitSeconds: arrivals[i], Requested: 1, TotalWork: exclusive})
				j.State, j.FirstStart, j.FinishSeconds = core.Completed, arrivals[i], arrivals[i]+jct
				jobs[i] = j
				events = append(events, submission(j), core.Event{Kind: core.JobFinished, AtSeconds: j.FinishSeconds, Job: j.ID})
			}
			slices.SortFunc(events, func(a, b core.Event) int { return cmp.Compare(a.AtSeconds, b.AtSeconds) })
			c := NewCollector(testComponents, Outputs{})
			if err := c.ObserveRound(&core.Report{View: &core.View{Cluster: cluster}, Events: events, Ended: jobs}); err != nil {
				t.Fatal(err)
			}
			shares := newShares(cluster, &capacity{}, nil, nil)
			var errs []float64
			for i := range jobs {
				got := shares.of(&c.records[i]).themis
				errs = append(errs, math.Abs(got/run.Themis[i]-1))
			}
			slices.Sort(errs)
			if median, most := errs[len(errs)/2], errs[len(errs)-1]; median > 0.003 || most > 0.04 {
				t.Errorf("off by %.2g in the median and %.2g at most", median, most)
			}
		})
	}
}
