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

// gavelRun says what is run of a composition of the paper.
type gavelRun struct {
	config      string
	several     bool    // jobs of several devices
	jobsPerHour float64 // 0 for all at once
	devices     int     // of each type
	jobs        int     // 0 for all
	first, last int     // measured
	sets        []string
}

// gavel is the run.
func (b *bench) gavel(r gavelRun) run {
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
	return paper("gavel-osdi20/"+r.config+".yaml", append(sets, r.sets...)...)
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
	maps.DeleteFunc(fixtures, func(_ string, f *gavelFixture) bool { return gavelConfigs[f.Policy] == "" }) // those share devices
	names := slices.Sorted(maps.Keys(fixtures))
	var runs []run
	for _, name := range names {
		runs = append(runs, b.gavel(fixtures[name].run()))
	}
	outcomes, err := b.all(runs)
	if err != nil {
		return nil, err
	}
	rows := [][]string{{"policy", "case", "mean JCT h", "ours", "difference", "makespan h", "ours", "jobs equal"}}
	for i, got := range outcomes {
		name := names[i]
		f := fixtures[name]
		equal, last := 0, 0.0
		for id, want := range f.Seconds {
			job := got.jobs[id]
			if job == nil || !job.JCTSeconds.Known() {
				continue
			}
			if last = max(last, float64(job.FinishSeconds)); math.Abs(float64(job.JCTSeconds)-want) < 0.002 {
				equal++
			}
		}
		_, label, _ := strings.Cut(name, "|")
		rows = append(rows, []string{
			f.Policy, strings.ReplaceAll(label, "|", ", "), hours(f.Mean), hours(got.meanJCT() / 3600), percent(got.meanJCT()/3600, f.Mean),
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
	compared := []struct {
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
	}
	var runs []run
	for _, r := range compared {
		runs = append(runs, b.gavel(gavelRun{config: r.config, several: r.several, jobsPerHour: r.rate, devices: 36, first: 4000, last: 4999}))
	}
	outcomes, err := b.all(runs)
	if err != nil {
		return nil, err
	}
	for i, got := range outcomes {
		r := compared[i]
		process, err := b.timed(runs[i])
		if err != nil {
			return nil, err
		}
		kind := "one device"
		if r.several {
			kind = "1 to 8 devices"
		}
		mean := got.meanJCT() / 3600
		rows = append(rows, []string{
			r.config, kind, fmt.Sprint(r.rate), hours(r.want), hours(mean), percent(mean, r.want), decimal(got.p99JCT() / 3600),
			fmt.Sprintf("%.1f %%", 100*float64(got.UtilizationRatio)), decimal(process.cpu.Seconds()),
		})
	}
	return rows, nil
}

// gavelSpare divides what max-min leaves over, or does not.
func (b *bench) gavelSpare() ([][]string, error) {
	rows := [][]string{{"jobs", "jobs/h", "left to the rounds: mean JCT h", "divided", "difference"}}
	streams := []gavelRun{
		{jobsPerHour: 4}, {jobsPerHour: 5.2}, {jobsPerHour: 6}, {several: true, jobsPerHour: 2}, {several: true, jobsPerHour: 2.6},
	}
	var runs []run
	for _, r := range streams {
		for _, spare := range []string{"rounds", "throughput"} {
			r.config, r.devices, r.first, r.last = "max-min", 36, 4000, 4999
			r.sets = []string{"pipeline.allocation.config.spare=" + spare}
			runs = append(runs, b.gavel(r))
		}
	}
	outcomes, err := b.all(runs)
	if err != nil {
		return nil, err
	}
	for i, r := range streams {
		kind := "one device"
		if r.several {
			kind = "1 to 8 devices"
		}
		left, divided := outcomes[2*i].meanJCT()/3600, outcomes[2*i+1].meanJCT()/3600
		rows = append(rows, []string{kind, fmt.Sprint(r.jobsPerHour), hours(left), hours(divided), percent(divided, left)})
	}
	return rows, nil
}

// gavelFloor is the price of a fairness floor under the best normalised sum, from none to all of max-min.
func (b *bench) gavelFloor() ([][]string, error) {
	rows := [][]string{{"composition", "jobs/h", "mean JCT h", "p50 h", "p99 h", "max h", "restarts a job"}}
	compared := []struct {
		label, config string
		sets          []string
	}{
		{"no floor", "best-normalised-sum", nil},
		{"floor 0.25", "best-normalised-sum", []string{"pipeline.allocation.config.fairness_floor=0.25"}},
		{"floor 0.5", "best-normalised-sum", []string{"pipeline.allocation.config.fairness_floor=0.5"}},
		{"floor 0.9", "best-normalised-sum", []string{"pipeline.allocation.config.fairness_floor=0.9"}},
		{"max-min, computed at events", "max-min", []string{"pipeline.allocation.config={}"}},
	}
	for _, rate := range []float64{5.2, 6} {
		var runs []run
		for _, c := range compared {
			runs = append(runs, b.gavel(gavelRun{config: c.config, jobsPerHour: rate, devices: 36, first: 4000, last: 4999, sets: c.sets}))
		}
		outcomes, err := b.all(runs)
		if err != nil {
			return nil, err
		}
		for i, got := range outcomes {
			rows = append(rows, []string{
				compared[i].label, fmt.Sprint(rate), hours(got.meanJCT() / 3600), hours(float64(got.JCTSeconds.P50) / 3600), decimal(got.p99JCT() / 3600), decimal(float64(got.JCTSeconds.Max) / 3600),
				decimal(got.meanRestarts()),
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
	sizes := []int{100, 200, 300, 400, 500, 700}
	policies := []struct{ config, policy string }{{"makespan", "Gavel"}, {"fifo-perf", "FIFO"}}
	var runs []run
	for _, n := range sizes {
		for _, p := range policies {
			runs = append(runs, paper("gavel-osdi20/"+p.config+".yaml", "seed=1", "measure={last_job: -1}", fmt.Sprintf(
				"workload={type: gavel_generated, config: {throughputs_path: %s, jobs: %d, jobs_per_hour: 0, replicas: mixed}}",
				filepath.Join(b.data, "data", "gavel", "throughputs_flat.csv.gz"), n,
			)))
		}
	}
	outcomes, err := b.all(runs)
	if err != nil {
		return nil, err
	}
	for i, n := range sizes {
		row := []string{strconv.Itoa(n)}
		for k, p := range policies {
			makespan, want := outcomes[i*len(policies)+k].makespan()/3600, published[p.policy+","+strconv.Itoa(n)]
			row = append(row, hours(want), hours(makespan))
			if p.config == "makespan" {
				row = append(row, percent(makespan, want))
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// readPairs reads the third column of a CSV file by the two before it.
func readPairs(path string) (map[string]float64, error) {
	return readNumbers(path, func(record []string) (key, number string, given bool) {
		return record[0] + "," + record[1], record[2], true
	})
}

// readNumbers reads numbers of a CSV file with a header, by the keys that of gives its rows, but for those that it gives none.
func readNumbers(path string, of func(record []string) (key, number string, given bool)) (map[string]float64, error) {
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
		key, number, given := of(record)
		if !given {
			continue
		}
		if values[key], err = strconv.ParseFloat(number, 64); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func hours(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }
