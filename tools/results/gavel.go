package main

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// gavelConfigs names the composition that repeats a published policy.
var gavelConfigs = map[string]string{
	"fifo_perf": "fifo-perf", "isolated": "isolated", "max_min_fairness": "max-min-blind", "max_min_fairness_perf": "max-min",
	"finish_time_fairness_perf": "finish-time-fairness", "max_sum_throughput_perf": "max-sum", "allox": "allox",
	"min_total_duration_perf": "makespan", "lp_best_normalised_throughput_sum": "best-normalised-sum",
}

// gavelRun is a run of a composition of the paper.
type gavelRun struct {
	config      string
	several     bool    // jobs of several devices
	jobsPerHour float64 // 0 for all at once
	devices     int     // of each type
	jobs        int     // 0 for all
	first, last int     // measured
	sets        []string
	timed       bool
}

func (b *bench) gavel(r gavelRun) (*outcome, error) {
	stream := "continuous_single_seed0.csv.gz"
	if r.several {
		stream = "continuous_multi_seed0.csv.gz"
	}
	sets := []string{
		"workload.config.path=" + filepath.Join(b.data, "data", "gavel", stream),
		fmt.Sprintf("workload.config.jobs_per_hour=%v", r.jobsPerHour), fmt.Sprintf("workload.config.jobs=%d", r.jobs),
		fmt.Sprintf("measure={first_job: %d, last_job: %d}", r.first, r.last),
	}
	for i := range 3 {
		sets = append(sets, fmt.Sprintf("cluster.nodes[%d].count=%d", i, r.devices))
	}
	return b.once(run{config: "papers/gavel-osdi20/" + r.config + ".yaml", sets: append(sets, r.sets...), timed: r.timed})
}

// gavelFixture is what the published simulator answers on a small cluster.
type gavelFixture struct {
	Policy  string
	Spec    []int
	Rate    *float64
	Multi   bool
	Total   *int
	Mean    float64            `json:"avg_jct_h"`
	Span    float64            `json:"makespan_h"`
	Seconds map[string]float64 `json:"jct_s"`
}

// run is the run that a fixture was made by: all its jobs at once, or the hundred after the first fifty.
func (f *gavelFixture) run() gavelRun {
	r := gavelRun{config: gavelConfigs[f.Policy], several: f.Multi, devices: f.Spec[0], first: 50, last: 149}
	if f.Total != nil {
		r.jobs, r.first, r.last = *f.Total, 0, *f.Total-1
	}
	if f.Rate != nil {
		r.jobsPerHour = *f.Rate
	}
	return r
}

func (b *bench) gavelSmall() ([][]string, error) {
	fixtures, err := readFixtures(filepath.Join(b.data, "reference", "gavel", "small_fixtures.json.gz"))
	if err != nil {
		return nil, err
	}
	rows := [][]string{{"policy", "case", "mean JCT h", "ours", "difference", "makespan h", "ours", "jobs equal"}}
	for _, name := range slices.Sorted(maps.Keys(fixtures)) {
		f := fixtures[name]
		if gavelConfigs[f.Policy] == "" {
			continue // shares devices
		}
		got, err := b.gavel(f.run())
		if err != nil {
			return nil, err
		}
		equal, last := 0, 0.0
		for id, want := range f.Seconds {
			job := got.jobs[id]
			if job == nil {
				continue
			}
			jct, errJCT := strconv.ParseFloat(job[jobJCT], 64)
			finish, errFinish := strconv.ParseFloat(job[jobFinish], 64)
			if errJCT != nil || errFinish != nil {
				continue
			}
			if last = max(last, finish); math.Abs(jct-want) < 0.002 {
				equal++
			}
		}
		_, label, _ := strings.Cut(name, "|")
		rows = append(rows, []string{
			f.Policy, strings.ReplaceAll(label, "|", ", "), hours(f.Mean), hours(got.JCT.Mean / 3600), percent(got.JCT.Mean/3600, f.Mean),
			hours(f.Span), hours(last / 3600), fmt.Sprintf("%d of %d", equal, len(f.Seconds)),
		})
	}
	return rows, nil
}

func readFixtures(path string) (map[string]*gavelFixture, error) {
	disk, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	content, err := gzip.NewReader(bytes.NewReader(disk))
	if err != nil {
		return nil, err
	}
	fixtures := map[string]*gavelFixture{}
	return fixtures, json.NewDecoder(content).Decode(&fixtures)
}

// gavelContinuous repeats runs at full size that the published simulator was measured on, for the stream of seed 0.
func (b *bench) gavelContinuous() ([][]string, error) {
	rows := [][]string{{"composition", "jobs", "jobs/h", "reference mean JCT h", "ours", "difference", "p99 h", "utilisation", "CPU s"}}
	for _, r := range []struct {
		config  string
		several bool
		rate    float64
		want    float64 // spec/heterogeneity.md, 5.2 and 6.5
	}{
		{"fifo-perf", false, 4, 17.331},
		{"max-min", false, 4, 17.052},
		{"max-min-blind", false, 4, 23.607},
		{"max-min", false, 5.2, 22.438},
		{"max-min", true, 2, 19.017},
		{"best-normalised-sum", false, 5.2, 17.825},
		{"best-normalised-sum", false, 6, 34.188},
	} {
		got, err := b.gavel(gavelRun{config: r.config, several: r.several, jobsPerHour: r.rate, devices: 36, first: 4000, last: 4999, timed: true})
		if err != nil {
			return nil, err
		}
		kind := "one device"
		if r.several {
			kind = "1 to 8 devices"
		}
		mean := got.JCT.Mean / 3600
		rows = append(rows, []string{
			r.config, kind, fmt.Sprint(r.rate), hours(r.want), hours(mean), percent(mean, r.want), decimal(got.JCT.P99 / 3600),
			fmt.Sprintf("%.1f %%", 100*got.Utilization), decimal(got.cpu.Seconds()),
		})
	}
	return rows, nil
}

// gavelSpare divides what max-min leaves over, or does not.
func (b *bench) gavelSpare() ([][]string, error) {
	rows := [][]string{{"jobs", "jobs/h", "left to the rounds: mean JCT h", "divided", "difference"}}
	for _, r := range []gavelRun{
		{jobsPerHour: 4}, {jobsPerHour: 5.2}, {jobsPerHour: 6}, {several: true, jobsPerHour: 2}, {several: true, jobsPerHour: 2.6},
	} {
		kind := "one device"
		if r.several {
			kind = "1 to 8 devices"
		}
		var means []float64
		for _, spare := range []string{"rounds", "throughput"} {
			r.config, r.devices, r.first, r.last = "max-min", 36, 4000, 4999
			r.sets = []string{"pipeline.allocation.config.spare=" + spare}
			got, err := b.gavel(r)
			if err != nil {
				return nil, err
			}
			means = append(means, got.JCT.Mean/3600)
		}
		rows = append(rows, []string{kind, fmt.Sprint(r.jobsPerHour), hours(means[0]), hours(means[1]), percent(means[1], means[0])})
	}
	return rows, nil
}

// gavelFloor is the price of a fairness floor under the best normalised sum, from none to all of max-min.
func (b *bench) gavelFloor() ([][]string, error) {
	rows := [][]string{{"composition", "jobs/h", "mean JCT h", "p50 h", "p99 h", "max h", "restarts a job"}}
	for _, rate := range []float64{5.2, 6} {
		for _, run := range []struct {
			label, config string
			sets          []string
		}{
			{"no floor", "best-normalised-sum", nil},
			{"floor 0.25", "best-normalised-sum", []string{"pipeline.allocation.config.fairness_floor=0.25"}},
			{"floor 0.5", "best-normalised-sum", []string{"pipeline.allocation.config.fairness_floor=0.5"}},
			{"floor 0.9", "best-normalised-sum", []string{"pipeline.allocation.config.fairness_floor=0.9"}},
			{"max-min, computed at events", "max-min", []string{"pipeline.allocation.config={}"}},
		} {
			got, err := b.gavel(gavelRun{config: run.config, jobsPerHour: rate, devices: 36, first: 4000, last: 4999, sets: run.sets})
			if err != nil {
				return nil, err
			}
			rows = append(rows, []string{
				run.label, fmt.Sprint(rate), hours(got.JCT.Mean / 3600), hours(got.JCT.P50 / 3600), decimal(got.JCT.P99 / 3600), decimal(got.JCT.Max / 3600),
				decimal(got.Restarts.Mean),
			})
		}
	}
	return rows, nil
}

// gavelMakespan submits all jobs at once: those that the generator draws for the seed of the published figures, which are
// not the published ones, so that neither figure comes within what is asked.
func (b *bench) gavelMakespan() ([][]string, error) {
	published, err := readPairs(filepath.Join(b.data, "reference", "gavel", "published_makespan_seed1.csv"))
	if err != nil {
		return nil, err
	}
	rows := [][]string{{"jobs", "published Gavel h", "makespan", "difference", "published FIFO h", "fifo-perf"}}
	for _, n := range []int{100, 200, 300, 400, 500, 700} {
		row := []string{strconv.Itoa(n)}
		for _, run := range []struct{ config, policy string }{{"makespan", "Gavel"}, {"fifo-perf", "FIFO"}} {
			got, err := b.simulate("gavel-osdi20/"+run.config+".yaml", "seed=1", "measure={last_job: -1}", fmt.Sprintf(
				"workload={type: gavel_generated, config: {throughputs_path: %s, jobs: %d, jobs_per_hour: 0, replicas: mixed}}",
				filepath.Join(b.data, "data", "gavel", "throughputs_flat.csv.gz"), n,
			))
			if err != nil {
				return nil, err
			}
			want := published[run.policy+","+strconv.Itoa(n)]
			row = append(row, hours(want), hours(got.Makespan/3600))
			if run.config == "makespan" {
				row = append(row, percent(got.Makespan/3600, want))
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// readPairs reads the third column of a CSV file by the two before it.
func readPairs(path string) (map[string]float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	values := make(map[string]float64, len(records))
	for _, record := range records[1:] {
		if values[record[0]+","+record[1]], err = strconv.ParseFloat(record[2], 64); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func hours(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }
