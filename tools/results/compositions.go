package main

// compositions runs the products of the lists of policies on the workloads of the Pollux artifact, under the semantics
// that are exact, beside Pollux under both.
func (b *bench) compositions() ([][]string, error) {
	rows := [][]string{{"composition", "allocation", "job elasticity", "mean JCT s by workload", "mean JCT s", "against pollux-exact", "p99", "makespan"}}
	var base figures
	for _, c := range []struct {
		config, allocation, elasticity string
		sets                           []string
	}{
		{polluxExact, "pollux", "goodput", nil},
		{polluxExact, "pollux, exact semantics", "goodput", []string{"backend.config.publication={}"}},
		{"compositions/pollux-load-threshold.yaml", "pollux, after load_threshold", "goodput", nil},
		{"compositions/pollux-fixed.yaml", "pollux", "fixed", nil},
		{"compositions/optimus-goodput.yaml", "optimus", "goodput", nil},
		{"compositions/greedy-goodput.yaml", "afs", "goodput", nil},
		{"compositions/srtf-goodput.yaml", "srtf", "goodput", nil},
		{"compositions/tiresias-goodput.yaml", "tiresias", "goodput", nil},
	} {
		got, err := b.measured(c.config, "1.0", c.sets...)
		if err != nil {
			return nil, err
		}
		ours := meanOf(got)
		if base == (figures{}) {
			base = ours
		}
		rows = append(rows, []string{
			c.config, c.allocation, c.elasticity, averages(got), decimal(ours.Avg),
			percent(ours.Avg, base.Avg), percent(ours.P99, base.P99), percent(ours.Makespan, base.Makespan),
		})
	}
	return rows, nil
}
