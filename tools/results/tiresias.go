package main

import "path/filepath"

func (b *bench) tiresias() ([][]string, error) {
	rows := [][]string{{"policy", "published mean JCT s", "ours", "difference"}}
	for _, run := range []struct {
		config    string
		published float64
	}{{"fifo", 1556.5}, {"dlas", 715.3}, {"shortest", 519.9}} {
		got, err := b.simulate("tiresias-nsdi19/"+run.config+".yaml", "workload.config.path="+filepath.Join(b.data, "data", "tiresias", "60_job.csv"))
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{run.config, decimal(run.published), decimal(got.JCT.Mean), percent(got.JCT.Mean, run.published)})
	}
	return rows, nil
}
