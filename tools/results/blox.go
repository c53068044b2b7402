package main

import (
	"path/filepath"
	"strconv"
)

func (b *bench) blox() ([][]string, error) {
	rows := [][]string{{"run", "placement", "mean JCT s", "makespan s", "preemptions", "completions that differ", "first runs that differ"}}
	compared := []struct{ name, config, fit string }{
		{"s500_Las", "las", "prefix_sum"},
		{"s1000_Fifo", "fifo", "prefix_sum"},
		{"s1000_Las", "las", "prefix_sum"},
		{"s1000_Srtf", "srtf", "prefix_sum"},
		{"m500_Fifo", "fifo", "prefix_sum"},
		{"m500fix_Fifo", "fifo", "scattered"},
		{"m500fix_Las", "las", "scattered"},
		{"m500fix_Srtf", "srtf", "scattered"},
	}
	reference := func(name string) string { return filepath.Join(b.data, "reference", "blox", "ref_"+name+".csv") }
	var runs []run
	for _, c := range compared {
		runs = append(runs, paper("blox-eurosys24/"+c.config+".yaml", onPath(reference(c.name), "pipeline.placement.config.fit="+c.fit)...))
	}
	outcomes, err := b.all(runs)
	if err != nil {
		return nil, err
	}
	for i, c := range compared {
		want, err := readRows(reference(c.name), 0)
		if err != nil {
			return nil, err
		}
		got := outcomes[i]
		completions, firstRuns := 0, 0
		for id, row := range want {
			job := got.jobs[id]
			if job == nil || !same(job.FinishSeconds, row[bloxCompletion], 0) {
				completions++
			}
			if job == nil || !same(job.FirstStartSeconds, row[bloxFirstRun], 300) { // Blox sees a job run one round late
				firstRuns++
			}
		}
		rows = append(rows, []string{
			c.name, c.fit, decimal(got.meanJCT()), decimal(got.makespan()), strconv.Itoa(got.Preemptions), strconv.Itoa(completions), strconv.Itoa(firstRuns),
		})
	}
	return rows, nil
}
