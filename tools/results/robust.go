package main

import "strconv"

// polluxRestart compares our objectives with the published one at several costs of a restart, of which all are told.
func (b *bench) polluxRestart() ([][]string, error) {
	rows := [][]string{{
		"a restart costs", "pollux-exact, mean JCT s", "pollux-best", "difference", "makespan", "pollux-guarded", "difference", "makespan",
	}}
	for _, seconds := range []int{0, 15, 30, 60, 120, 150, 200, 300, 600} {
		cost := strconv.Itoa(seconds) + "s"
		sets := []string{"backend.config.restart_overhead=" + cost, "pipeline.allocation.config.restart_overhead=" + cost}
		got, err := b.measured(polluxExact, "1.0", sets...)
		if err != nil {
			return nil, err
		}
		exact := meanOf(got)
		row := []string{strconv.Itoa(seconds) + " s", decimal(exact.Avg)}
		for _, config := range []string{polluxBest, polluxGuarded} {
			got, err := b.measured(config, "1.0", sets...)
			if err != nil {
				return nil, err
			}
			ours := meanOf(got)
			row = append(row, decimal(ours.Avg), percent(ours.Avg, exact.Avg), percent(ours.Makespan, exact.Makespan))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// polluxNoise disturbs what jobs report of their times.
func (b *bench) polluxNoise() ([][]string, error) {
	rows := [][]string{{"composition", "reports", "mean JCT s by workload", "mean JCT s", "difference"}}
	for _, c := range []struct{ label, config string }{
		{"pollux-exact", polluxExact}, {"pollux-best", polluxBest},
	} {
		undisturbed := 0.0
		for _, n := range []struct {
			label string
			sets  []string
		}{
			{"as they are", nil},
			{"5 % three times too slow", []string{"backend.config.measurement_noise={outliers: 0.05, outlier_factor: 3}"}},
			{"the first of each configuration twice too slow", []string{"backend.config.measurement_noise={first_factor: 2}"}},
			{"both", []string{"backend.config.measurement_noise={outliers: 0.05, outlier_factor: 3, first_factor: 2}"}},
		} {
			got, err := b.measured(c.config, "1.0", n.sets...)
			if err != nil {
				return nil, err
			}
			ours := meanOf(got).Avg
			if n.sets == nil {
				undisturbed = ours
			}
			rows = append(rows, []string{c.label, n.label, averages(got), decimal(ours), percent(ours, undisturbed)})
		}
	}
	return rows, nil
}
