package main

import (
	"path/filepath"
	"strconv"
)

func (b *bench) blox() ([][]string, error) {
	rows := [][]string{{"run", "placement", "mean JCT s", "makespan s", "preemptions", "completions that differ", "first runs that differ"}}
	for _, run := range []struct{ name, config, fit string }{
		{"s500_Las", "las", "prefix_sum"},
		{"s1000_Fifo", "fifo", "prefix_sum"},
		{"s1000_Las", "las", "prefix_sum"},
		{"s1000_Srtf", "srtf", "prefix_sum"},
		{"m500_Fifo", "fifo", "prefix_sum"},
		{"m500fix_Fifo", "fifo", "scattered"},
		{"m500fix_Las", "las", "scattered"},
		{"m500fix_Srtf", "srtf", "scattered"},
	} {
		path := filepath.Join(b.data, "reference", "blox", "ref_"+run.name+".csv")
		want, err := readRows(path, 0)
		if err != nil {
			return nil, err
		}
		got, err := b.simulate("blox-eurosys24/"+run.config+".yaml", "workload.config.path="+path, "pipeline.placement.config.fit="+run.fit)
		if err != nil {
			return nil, err
		}
		completions, firstRuns := 0, 0
		for id, row := range want {
			job := got.jobs[id]
			if job == nil || !same(job[jobFinish], row[bloxCompletion], 0) {
				completions++
			}
			if job == nil || !same(job[jobFirstStart], row[bloxFirstRun], 300) { // Blox sees a job run one round late
				firstRuns++
			}
		}
		rows = append(rows, []string{
			run.name, run.fit, decimal(got.JCT.Mean), decimal(got.Makespan), strconv.Itoa(got.Preemptions), strconv.Itoa(completions), strconv.Itoa(firstRuns),
		})
	}
	return rows, nil
}
