package main

import (
	"fmt"
	"strconv"
	"strings"
)

// polluxNeighbours runs our objectives where nobody asked for a figure: on generated jobs, on a cluster twice as large, and
// with jobs that come all at once. Differences are of means over seeds.
func (b *bench) polluxNeighbours() ([][]string, error) {
	rows := [][]string{{"workload", "composition", "mean JCT s", "against pollux-exact", "p99", "makespan"}}
	for _, w := range []struct {
		label       string
		jobs        int
		span, nodes string // of 4 devices
		first, last int    // seeds
	}{
		{"160 jobs in 8 h, seeds 41 to 53", 160, "8h", "16", 41, 53},
		{"320 jobs in 8 h on 128 devices, seeds 41 to 53", 320, "8h", "32", 41, 53},
		{"40 jobs at once, seeds 41 to 53", 40, "1s", "16", 41, 53},
	} {
		var base figures
		for _, config := range []string{polluxExact, polluxBest, polluxGuarded, polluxUnknown, polluxKnown, polluxHistory} {
			var runs []run
			for seed := w.first; seed <= w.last; seed++ {
				sets := []string{
					"seed=" + strconv.Itoa(seed), "cluster.nodes=[{name: t4, count: " + w.nodes + ", accelerator: t4, devices: 4}]",
					fmt.Sprintf("workload={type: generated, config: {jobs: %d, span: %s, applications: true}}", w.jobs, w.span),
				}
				if restsOnAPool(config) {
					pool, err := b.poolWithout(config)
					if err != nil {
						return nil, err
					}
					sets = append(sets, withHistory(pool, "true")...)
				}
				runs = append(runs, run{config: config, sets: sets})
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
				w.label, strings.TrimSuffix(strings.TrimPrefix(config, "papers/pollux-osdi21/"), ".yaml"), decimal(ours.Avg),
				percent(ours.Avg, base.Avg), percent(ours.P99, base.P99), percent(ours.Makespan, base.Makespan),
			})
		}
	}
	return rows, nil
}
