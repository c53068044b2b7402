package main

import "path/filepath"

func (b *bench) tiresias() ([][]string, error) {
	rows := [][]string{{"policy", "published mean JCT s", "ours", "difference"}}
	compared := []struct {
		config    string
		published float64
	}{{"fifo", 1556.5}, {"dlas", 715.3}, {"shortest", 519.9}}
	var runs []run
	for _, c := range compared {
		runs = append(runs, paper("tiresias-nsdi19/"+c.config+".yaml", onPath(filepath.Join(b.data, "data", "tiresias", "60_job.csv"))...))
	}
	outcomes, err := b.all(runs)
	if err != nil {
		return nil, err
	}
	for i, got := range outcomes {
		c := compared[i]
		rows = append(rows, []string{c.config, decimal(c.published), decimal(got.meanJCT()), percent(got.meanJCT(), c.published)})
	}
	return rows, nil
}
