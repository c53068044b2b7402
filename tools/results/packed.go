package main

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// packedSeeds are the seeds of the published means.
const packedSeeds = 3

// generated is a run over jobs that the published generator draws for a seed.
func (b *bench) generated(config, replicas string, rate float64, jobs, seed int, sets ...string) run {
	return paper("gavel-osdi20/"+config+".yaml", append([]string{
		fmt.Sprintf("seed=%d", seed), fmt.Sprintf(
			"workload={type: gavel_generated, config: {throughputs_path: %s, jobs: %d, jobs_per_hour: %v, replicas: %s}}",
			filepath.Join(b.data, "data", "gavel", "throughputs_flat.csv.gz"), jobs, rate, replicas,
		),
	}, sets...)...)
}

// gavelPacked sets max-min with pairs beside the published means, and beside what pairs gain over max-min without.
func (b *bench) gavelPacked() ([][]string, error) {
	published, err := readNotebook(filepath.Join(b.data, "reference", "gavel", "published_notebook_figures.csv"))
	if err != nil {
		return nil, err
	}
	rows := [][]string{{
		"jobs", "jobs/h", "published mean JCT h", "seed 0", "difference", "seeds 0 to 2", "difference", "published against max-min", "ours against max-min",
	}}
	points := []struct {
		trace, replicas, label string
		rates                  []float64
	}{
		{"single", "one", "one device", []float64{0.4, 2, 4, 4.8, 5.2, 5.6, 6}},
		{"multi", "mixed", "1 to 8 devices", []float64{0.2, 1, 2, 2.4, 2.6}},
	}
	var runs []run
	for _, p := range points {
		for _, rate := range p.rates {
			for _, config := range []string{"max-min-packed", "max-min"} {
				for seed := range packedSeeds {
					runs = append(runs, b.generated(config, p.replicas, rate, 6000, seed))
				}
			}
		}
	}
	outcomes, err := b.all(runs)
	if err != nil {
		return nil, err
	}
	mean := func() float64 {
		sum := 0.0
		for _, got := range outcomes[:packedSeeds] {
			sum += got.meanJCT() / 3600 / packedSeeds
		}
		outcomes = outcomes[packedSeeds:]
		return sum
	}
	for _, p := range points {
		for _, rate := range p.rates {
			key := p.trace + "," + strconv.FormatFloat(rate, 'f', 1, 64)
			want, alone := published[key+",max_min_fairness_packed"], published[key+",max_min_fairness_perf"]
			first := outcomes[0].meanJCT() / 3600
			packed := mean()
			rows = append(rows, []string{
				p.label, fmt.Sprint(rate), hours(want), hours(first), percent(first, want), hours(packed), percent(packed, want),
				percent(want, alone), percent(packed, mean()),
			})
		}
	}
	return rows, nil
}

// gavelPackedMakespan sets the makespan with pairs beside the published one, of other jobs than the generator draws.
func (b *bench) gavelPackedMakespan() ([][]string, error) {
	published, err := readPairs(filepath.Join(b.data, "reference", "gavel", "published_makespan_seed1.csv"))
	if err != nil {
		return nil, err
	}
	rows := [][]string{{"jobs", "published, pairs, h", "ours", "difference", "published against no pairs", "ours against no pairs"}}
	sizes := []int{100, 300, 500, 700}
	var runs []run
	for _, n := range sizes {
		for _, config := range []string{"makespan-packed", "makespan"} {
			runs = append(runs, b.generated(config, "mixed", 0, n, 1, "measure={last_job: -1}"))
		}
	}
	outcomes, err := b.all(runs)
	if err != nil {
		return nil, err
	}
	for i, n := range sizes {
		packed, alone := outcomes[2*i].makespan()/3600, outcomes[2*i+1].makespan()/3600
		want := published["Gavel w/ SS,"+strconv.Itoa(n)]
		rows = append(rows, []string{
			strconv.Itoa(n), hours(want), hours(packed), percent(packed, want), percent(want, published["Gavel,"+strconv.Itoa(n)]), percent(packed, alone),
		})
	}
	return rows, nil
}

// readNotebook reads the published mean completion times in hours by trace, rate and policy.
func readNotebook(path string) (map[string]float64, error) {
	return readNumbers(path, func(record []string) (key, number string, given bool) {
		return record[0] + "," + record[2] + "," + record[3], record[4], record[1] == "avg_jct_h"
	})
}
