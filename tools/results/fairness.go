package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core/metrics"
)

// polluxFairness tells the finish-time fairness of the published objective by the power of its mean, as core/metrics
// defines it: the JCT over what the job takes alone on the replicas its user asked for, times the contention if that is
// above 1. Profiled jobs do not say what they take alone, so that this is measured.
func (b *bench) polluxFairness() ([][]string, error) {
	rows := [][]string{{
		"composition", "mean JCT s", "rho mean", "p50", "p99", "max", "rho ≤ 0.5", "≤ 1", "≤ 1.5", "≤ 2",
	}}
	alone := map[string]map[string]float64{}
	for _, n := range given["1.0"] {
		var err error
		if alone[n], err = b.alone(b.workload("1.0", n)); err != nil {
			return nil, err
		}
	}
	power := func(p string) []string { return []string{"pipeline.allocation.config.fairness_p=" + p} }
	for _, c := range []struct {
		label, config string
		sets          []string
	}{
		{"pollux-exact, p = 1", polluxExact, power("1")},
		{"pollux-exact, p = 0", polluxExact, power("0")},
		{"pollux-exact, p = -1 (published)", polluxExact, power("-1")},
		{"pollux-exact, p = -10", polluxExact, power("-10")},
		{"pollux-best", polluxBest, nil},
		{"pollux-guarded", polluxGuarded, nil},
		{"tiresias", "papers/pollux-osdi21/tiresias.yaml", nil},
		{"optimus", "papers/pollux-osdi21/optimus.yaml", nil},
	} {
		var runs []run
		for _, n := range given["1.0"] {
			runs = append(runs, run{config: c.config, sets: onPath(b.workload("1.0", n), c.sets...)})
		}
		outcomes, err := b.all(runs)
		if err != nil {
			return nil, err
		}
		var means, rhos []float64
		for i, n := range given["1.0"] {
			requested, err := readRows(b.workload("1.0", n), 0)
			if err != nil {
				return nil, err
			}
			r, err := rhosOf(outcomes[i].jobs, requested, alone[n])
			if err != nil {
				return nil, err
			}
			means, rhos = append(means, outcomes[i].meanJCT()), append(rhos, r...)
		}
		slices.Sort(rhos)
		row := []string{
			c.label, decimal(mean(means)), hundredth(mean(rhos)), hundredth(percentile(rhos, 0.5)),
			hundredth(percentile(rhos, 0.99)), hundredth(rhos[len(rhos)-1]),
		}
		for _, bound := range []float64{0.5, 1, 1.5, 2} {
			below, _ := slices.BinarySearchFunc(rhos, bound, func(x, bound float64) int {
				if x <= bound {
					return -1
				}
				return 1
			})
			row = append(row, decimal(100*float64(below)/float64(len(rhos)))+" %")
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func hundredth(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// The columns of a workload of the artifact.
const (
	workloadName, workloadSubmit, workloadApplication, workloadReplicas = 0, 1, 2, 3

	polluxDevices = 64
)

// alone measures how many seconds each job of a workload takes on the replicas and the batch its user asked for, with
// the cluster to itself: it runs the jobs one after another.
func (b *bench) alone(path string) (map[string]float64, error) {
	records, err := readCSV(path)
	if err != nil {
		return nil, err
	}
	const apart = 1_000_000 // seconds, of which no job takes so many
	for i, record := range records[1:] {
		record[workloadSubmit] = strconv.Itoa(i * apart)
	}
	spread := filepath.Join(b.inputs, "alone-"+filepath.Base(path))
	if err := writeCSV(spread, records); err != nil {
		return nil, err
	}
	got, err := b.simulate("pollux-osdi21/tiresias.yaml", onPath(spread, "backend.config.publication={}")...)
	if err != nil {
		return nil, err
	}
	took := map[string]float64{}
	for name, job := range got.jobs {
		start, finish := float64(job.FirstStartSeconds), float64(job.FinishSeconds)
		if !job.JCTSeconds.Known() {
			return nil, fmt.Errorf("job %q did not complete alone", name)
		}
		if took[name] = finish - start; took[name] >= apart {
			return nil, fmt.Errorf("job %q takes %v s alone and meets the next one", name, took[name])
		}
	}
	return took, nil
}

func writeCSV(path string, records [][]string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(f).WriteAll(records), f.Close())
}

// rhosOf is the finish-time fairness of each job.
func rhosOf(jobs map[string]*metrics.Job, requested map[string][]string, alone map[string]float64) ([]float64, error) {
	type job struct{ from, to, devices, alone float64 }
	var all []job
	for name, row := range jobs {
		if !row.JCTSeconds.Known() {
			return nil, fmt.Errorf("job %q did not complete", name)
		}
		devices, err := strconv.ParseFloat(requested[name][workloadReplicas], 64)
		if err != nil {
			return nil, err
		}
		all = append(all, job{row.SubmitSeconds, float64(row.FinishSeconds), devices, alone[name]})
	}
	slices.SortFunc(all, func(a, b job) int { // sums are taken in a fixed order
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.devices, b.devices))
	})
	var rhos []float64
	for _, j := range all {
		demand := 0.0 // device-seconds asked for by all jobs during its life
		for _, o := range all {
			demand += o.devices * max(0, min(j.to, o.to)-max(j.from, o.from))
		}
		jct := j.to - j.from
		rhos = append(rhos, jct/(j.alone*max(1, demand/jct/polluxDevices)))
	}
	return rhos, nil
}
