package sharing_test

import (
	"encoding/csv"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/doortest"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// muriRun runs a config of Muri on a trace.
func muriRun(t *testing.T, name, trace string, sets ...string) *metrics.Summary {
	t.Helper()
	return muriRunOn(t, name, refdata.Path(t, "data", "muri", trace+".csv.gz"), sets...)
}

// muriRunOn runs a config of Muri on the trace in a file.
func muriRunOn(t *testing.T, name, path string, sets ...string) *metrics.Summary {
	t.Helper()
	sets = append(sets, "workload.config.path="+path)
	c, err := quartet.Load(quartet.Builtins(), quartet.Options{Files: []string{"papers/muri-sigcomm22/" + name + ".yaml"}, Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	return doortest.Simulate(t, c).Summary
}

// muriPublished is the mean, the 99th percentile and the makespan that were published, in seconds.
func muriPublished(t *testing.T, trace, policy string) (mean, p99, makespan float64) {
	t.Helper()
	rows := refdata.Rows(t, refdata.Path(t, "reference", "muri", "published.csv"))
	for _, row := range rows {
		if row[0] == trace && row[1] == policy {
			var x [3]float64
			for i := range x {
				var err error
				if x[i], err = strconv.ParseFloat(row[2+i], 64); err != nil {
					t.Fatal(err)
				}
			}
			return x[0], x[2], x[1]
		}
	}
	t.Fatalf("no figures of %s on %s", policy, trace)
	return 0, 0, 0
}

// muriEnds is when the authors' program ends each job, in seconds.
func muriEnds(t *testing.T, name string) map[string]float64 {
	t.Helper()
	rows := refdata.Rows(t, refdata.Path(t, "reference", "muri", name))
	job, end := slices.Index(rows[0], "job_id"), slices.Index(rows[0], "end_time")
	ends := map[string]float64{}
	for _, row := range rows[1:] {
		var err error
		if ends[row[job]], err = strconv.ParseFloat(row[end], 64); err != nil {
			t.Fatal(err)
		}
	}
	return ends
}

// off is how far a figure is from another one, as a part of it.
func off(got, want float64) float64 { return math.Abs(got/want - 1) }

// The baselines of Muri that take no group are the published ones to nine digits, through the pipeline.
func TestMuriBaselines(t *testing.T) {
	for _, policy := range []string{"srtf", "srsf", "tiresias"} {
		for _, trace := range []string{"trace1", "trace1_pr", "trace3", "trace3_pr", "trace4"} {
			t.Run(policy+" "+trace, func(t *testing.T) {
				got := muriRun(t, policy, trace)
				mean, p99, makespan := muriPublished(t, trace, policy)
				if off(float64(got.JCTSeconds.Mean), mean) > 1e-9 || off(float64(got.MakespanSeconds), makespan) > 1e-9 {
					t.Errorf("mean %v s, makespan %v s, want %v and %v", got.JCTSeconds.Mean, got.MakespanSeconds, mean, makespan)
				}
				if off(float64(got.JCTSeconds.P99), p99) > 1e-9 {
					t.Errorf("99th percentile %v s, want %v", got.JCTSeconds.P99, p99)
				}
			})
		}
	}
}

// Jobs of the same length come in the order of their submission, whatever an iteration of each takes. Trace 4' is trace 4 with all jobs there at once, and 508 of
// them last as long as another. The same jobs in iterations of a millisecond give the same answer.
func TestMuriEqualLengths(t *testing.T) {
	rows := refdata.Rows(t, refdata.Path(t, "data", "muri", "trace4.csv.gz"))
	column := func(name string) int { return slices.Index(rows[0], name) }
	submit, iterations, each := column("submit_time"), column("iterations"), column("iteration_time")
	mean := func(change func(row []string)) float64 {
		changed := [][]string{rows[0]}
		for _, row := range rows[1:] {
			row = slices.Clone(row)
			row[submit] = "0"
			change(row)
			changed = append(changed, row)
		}
		path := filepath.Join(t.TempDir(), "trace.csv")
		file, err := os.Create(path)
		if err == nil {
			err = errors.Join(csv.NewWriter(file).WriteAll(changed), file.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return float64(muriRunOn(t, "srtf", path).JCTSeconds.Mean)
	}
	want := mean(func(row []string) {
		n, err := strconv.Atoi(row[iterations])
		ms, err2 := strconv.Atoi(row[each])
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		row[iterations], row[each] = strconv.Itoa(n*ms), "1"
	})
	if got := mean(func([]string) {}); off(got, want) > 1e-9 {
		t.Errorf("mean %v s, and %v s in iterations of a millisecond", got, want)
	}
}

// Shortest remaining time ends each job of trace 3 when the authors' program does.
func TestMuriShortestFirstByJob(t *testing.T) {
	want := muriEnds(t, "trace3_srtf_jobs.csv.gz")
	c, err := quartet.Load(quartet.Builtins(), quartet.Options{
		Files: []string{"papers/muri-sigcomm22/srtf.yaml"}, Sets: []string{"workload.config.path=" + refdata.Path(t, "data", "muri", "trace3.csv.gz")},
	})
	if err != nil {
		t.Fatal(err)
	}
	jobs := doortest.Simulate(t, c).Jobs
	if len(jobs) != len(want) {
		t.Errorf("%d jobs, want %d", len(jobs), len(want))
	}
	for _, j := range jobs {
		if math.Abs(float64(j.FinishSeconds)-want[j.Name]) > 1e-5 {
			t.Errorf("job %s ends at %v, want %v", j.Name, j.FinishSeconds, want[j.Name])
		}
	}
}

// The imitation of AntMan ends all jobs of trace 3 but one when the authors' program does.
func TestMuriAntManByJob(t *testing.T) {
	want := muriEnds(t, "trace3_antman_like_jobs.csv.gz")
	c, err := quartet.Load(quartet.Builtins(), quartet.Options{
		Files: []string{"papers/muri-sigcomm22/antman.yaml"}, Sets: []string{"workload.config.path=" + refdata.Path(t, "data", "muri", "trace3.csv.gz")},
	})
	if err != nil {
		t.Fatal(err)
	}
	jobs := doortest.Simulate(t, c).Jobs
	if len(jobs) != len(want) {
		t.Errorf("%d jobs, want %d", len(jobs), len(want))
	}
	equal, first := 0, math.Inf(1)
	for _, j := range jobs {
		if math.Abs(float64(j.FinishSeconds)-want[j.Name]) < 1e-5 {
			equal++
		} else {
			first = min(first, float64(j.FinishSeconds), want[j.Name])
		}
	}
	t.Logf("%d of %d jobs equal, the first other one at %.0f s", equal, len(want), first)
	if equal < len(want)-1 {
		t.Errorf("%d of %d jobs equal, the first other one at %v s", equal, len(want), first)
	}
}

// The published figures of the imitation are met to nine digits on traces 3 and 3', the latter of which had no part in finding the rules; on the others, with many
// jobs of one device, to 0.8 %.
func TestMuriAntMan(t *testing.T) {
	for trace, part := range map[string]float64{"trace1": 2.5e-3, "trace1_pr": 4e-3, "trace3": 1e-9, "trace3_pr": 1e-9, "trace4": 8e-3} {
		t.Run(trace, func(t *testing.T) {
			got := muriRun(t, "antman", trace)
			mean, p99, makespan := muriPublished(t, trace, "antman_like")
			t.Logf("mean %+.1e, 99th percentile %+.1e, makespan %+.1e", float64(got.JCTSeconds.Mean)/mean-1, float64(got.JCTSeconds.P99)/p99-1, float64(got.MakespanSeconds)/makespan-1)
			if off(float64(got.JCTSeconds.Mean), mean) > part || off(float64(got.JCTSeconds.P99), p99) > part || off(float64(got.MakespanSeconds), makespan) > part {
				t.Errorf("mean %v s, 99th percentile %v s, makespan %v s, want %v, %v and %v", got.JCTSeconds.Mean, got.JCTSeconds.P99, got.MakespanSeconds, mean, p99, makespan)
			}
		})
	}
}

// Muri through the pipeline is within a percent of what the authors' program gives on trace 3, and of the published figure on trace 1.
func TestMuriGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		policy, trace string
		want          float64
	}{
		"S on trace 3, run again": {"muri-s", "trace3", 83242.464},
		"L on trace 3, run again": {"muri-l", "trace3", 88686.973},
		"L on trace 1, published": {"muri-l", "trace1", 1072009.710},
	} {
		t.Run(name, func(t *testing.T) {
			got := float64(muriRun(t, tc.policy, tc.trace).JCTSeconds.Mean)
			t.Logf("mean %.0f s, %+.2f %%", got, 100*(got/tc.want-1))
			if off(got, tc.want) > 0.01 {
				t.Errorf("mean %v s, want %v within a percent", got, tc.want)
			}
		})
	}
}

// How far Muri through the pipeline is from the published means, of which it meets but one within the percent that is asked for: Muri-L on trace 1. The
// figures are what was measured, to a tenth of a percent, and hold it from drifting, to either side: who gets closer writes down the new ones. On trace 3, the authors' program itself
// gave less when it was run again: see TestMuriGroups.
func TestMuriGroupsHowFarItIs(t *testing.T) {
	for policy, traces := range map[string]map[string]float64{ // percent
		"muri-s": {"trace1": -8.3, "trace1_pr": -2.9, "trace3_pr": -1.3, "trace4": -5.0},
		"muri-l": {"trace1": -0.4, "trace1_pr": -2.3, "trace3_pr": -4.5, "trace4": -5.1},
	} {
		for trace, want := range traces {
			t.Run(policy+" "+trace, func(t *testing.T) {
				mean, p99, makespan := muriPublished(t, trace, strings.ReplaceAll(policy, "-", "_"))
				got := muriRun(t, policy, trace)
				percent := 100 * (float64(got.JCTSeconds.Mean)/mean - 1)
				t.Logf("mean %.0f s, %+.3f %%, 99th percentile %+.2f %%, makespan %+.2f %%", got.JCTSeconds.Mean, percent,
					100*(float64(got.JCTSeconds.P99)/p99-1), 100*(float64(got.MakespanSeconds)/makespan-1))
				if math.Abs(percent-want) > 0.05 {
					t.Errorf("the mean of %v s is %+.2f %% off the published %v s, and was %+.1f %%", got.JCTSeconds.Mean, percent, mean, want)
				}
			})
		}
	}
}

// How far Muri-S is from the authors' program by job, on trace 3: of 992 jobs 441 end when they do there, and 943 within a percent of that
// moment. Completion times are within a percent for 574, as most are short against the moment.
func TestMuriShortByJobHowFarItIs(t *testing.T) {
	want := muriEnds(t, "trace3_muri_s_jobs.csv.gz")
	c, err := quartet.Load(quartet.Builtins(), quartet.Options{
		Files: []string{"papers/muri-sigcomm22/muri-s.yaml"}, Sets: []string{"workload.config.path=" + refdata.Path(t, "data", "muri", "trace3.csv.gz")},
	})
	if err != nil {
		t.Fatal(err)
	}
	jobs := doortest.Simulate(t, c).Jobs
	if len(jobs) != len(want) {
		t.Errorf("%d jobs, want %d", len(jobs), len(want))
	}
	equal, ends, times := 0, 0, 0
	for _, j := range jobs {
		end, known := want[j.Name]
		if !known {
			t.Errorf("nothing is known of job %s", j.Name)
			continue
		}
		if math.Abs(float64(j.FinishSeconds)-end) < 1e-5 {
			equal++
		}
		if off(float64(j.FinishSeconds), end) <= 0.01 {
			ends++
		}
		if off(float64(j.FinishSeconds)-j.SubmitSeconds, end-j.SubmitSeconds) <= 0.01 {
			times++
		}
	}
	t.Logf("of %d jobs %d equal, %d ends and %d completion times within a percent", len(want), equal, ends, times)
	if equal < 441 || ends < 943 || times < 574 {
		t.Errorf("of %d jobs %d are equal, %d ends and %d completion times within a percent, and were 441, 943 and 574", len(want), equal, ends, times)
	}
}

// Ours ends jobs at least five percent sooner on the mean than the published Muri-L and than ours of it, which know as much. So it does where a partner that
// comes or goes costs those who stay nothing.
func TestMuriOurs(t *testing.T) {
	for _, trace := range []string{"trace1", "trace1_pr", "trace3", "trace3_pr", "trace4"} {
		t.Run(trace, func(t *testing.T) {
			ours, muri := float64(muriRun(t, "ours", trace).JCTSeconds.Mean), float64(muriRun(t, "muri-l", trace).JCTSeconds.Mean)
			published, _, _ := muriPublished(t, trace, "muri_l")
			t.Logf("mean %.0f s, Muri-L %.0f s (%+.1f %%), published %.0f s (%+.1f %%)", ours, muri, 100*(ours/muri-1), published, 100*(ours/published-1))
			if ours > 0.95*min(muri, published) {
				t.Errorf("mean %.0f s, Muri-L %.0f s here and %.0f s published", ours, muri, published)
			}
		})
	}
}
