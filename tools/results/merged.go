package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
)

// polluxMerged compares our objectives with the published one under loads for which no workload is given: each workload
// is the jobs of two given ones. Pools are filled on the workloads that are neither of the two.
func (b *bench) polluxMerged() ([][]string, error) {
	rows := [][]string{{"load", "composition", "mean JCT s by workload", "mean JCT s", "against pollux-exact", "p99", "makespan"}}
	type pair struct{ one, loadOfOther, other string }
	for _, load := range []struct {
		label string
		pairs []pair
	}{
		{"1.5x", []pair{{"1", "0.5", "2"}, {"2", "0.5", "3"}, {"3", "0.5", "4"}, {"4", "0.5", "1"}, {"6", "0.5", "2"}, {"6", "0.5", "3"}}},
		{"2.0x", []pair{{"1", "1.0", "2"}, {"3", "1.0", "4"}, {"6", "1.0", "2"}, {"6", "1.0", "1"}}},
	} {
		var paths []string
		for i, p := range load.pairs {
			path := filepath.Join(b.inputs, fmt.Sprintf("merged-%s-%d.csv", load.label, i))
			if err := merge(path, b.workload("1.0", p.one), b.workload(p.loadOfOther, p.other)); err != nil {
				return nil, err
			}
			paths = append(paths, path)
		}
		var base figures
		for _, c := range []struct{ label, config string }{
			{"pollux-exact", polluxExact},
			{"pollux-best", polluxBest},
			{"pollux-guarded", polluxGuarded},
			{"pollux-unknown", polluxUnknown},
			{"pollux-known", polluxKnown},
			{"pollux-known-fast", polluxKnownFast},
			{"pollux-history", polluxHistory},
		} {
			var runs []run
			for i, path := range paths {
				sets := onPath(path)
				if restsOnAPool(c.config) {
					pool, err := b.poolWithout(c.config, load.pairs[i].one, load.pairs[i].other)
					if err != nil {
						return nil, err
					}
					sets = append(sets, withHistory(pool, "true")...)
				}
				runs = append(runs, run{config: c.config, sets: sets})
			}
			got, err := b.figures(runs)
			if err != nil {
				return nil, err
			}
			ours := meanOf(got)
			if base == (figures{}) {
				base = ours
			}
			rows = append(rows, []string{
				load.label, c.label, averages(got), decimal(ours.Avg),
				percent(ours.Avg, base.Avg), percent(ours.P99, base.P99), percent(ours.Makespan, base.Makespan),
			})
		}
	}
	return rows, nil
}

// merge writes the jobs of several workloads into one, by the second at which they are submitted, and numbers them anew.
func merge(path string, workloads ...string) error {
	var header []string
	var jobs [][]string
	for _, w := range workloads {
		records, err := readCSV(w)
		if err != nil {
			return err
		}
		header, jobs = records[0], append(jobs, records[1:]...)
	}
	var failed error
	slices.SortStableFunc(jobs, func(a, b []string) int {
		x, errX := strconv.Atoi(a[workloadSubmit])
		y, errY := strconv.Atoi(b[workloadSubmit])
		failed = cmp.Or(failed, errX, errY)
		return x - y
	})
	if failed != nil {
		return failed
	}
	for i, job := range jobs {
		job[workloadName] = fmt.Sprintf("%s-%d", job[workloadApplication], i)
	}
	return writeCSV(path, append([][]string{header}, jobs...))
}
