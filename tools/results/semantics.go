package main

import (
	"path/filepath"
	"slices"
)

// semantics runs policies under the published semantics, and then takes these away one after another.
func (b *bench) semantics() ([][]string, error) {
	rows := [][]string{{"composition", "semantics", "mean JCT s", "queueing s", "makespan s", "JCT against published"}}
	blox := filepath.Join(b.data, "reference", "blox", "ref_s1000_Las.csv")
	pollux := filepath.Join(b.data, "data", "pollux-osdi21", "workloads", "workload-6.csv")
	type step struct{ label, set string }
	for _, c := range []struct {
		label, config, path string
		steps               []step
	}{
		{"Blox LAS, s1000", "blox-eurosys24/las.yaml", blox, []step{
			{"published", ""},
			{"completions at their moment", "backend.config.publication.completion=exact"},
			{"and consolidated placement", "pipeline={allocation: {type: las, config: {service: wall_time, quantum_seconds: 0}}, placement: {type: consolidated}}"},
			{"and rounds on events", "round.on_events=true"},
		}},
		{"Pollux Tiresias, workload 6", "pollux-osdi21/tiresias.yaml", pollux, []step{
			{"published", ""},
			{"epochs end at their moment", "backend.config.publication.epoch_ends=exact"},
			{"and event-driven progress", "backend.config.publication.progress=exact"},
			{"and a first round at second 0", "backend.config.publication.first_round=start"},
			{"and rounds on events", "round.on_events=true"},
		}},
		{"Pollux Optimus, workload 6", "pollux-osdi21/optimus.yaml", pollux, []step{
			{"published", ""},
			{"remaining steps without the epoch too many", "workload.config.remaining=exact"},
			{"and epochs end at their moment", "backend.config.publication.epoch_ends=exact"},
			{"and event-driven progress", "backend.config.publication={first_round: one_interval}"},
			{"and a first round at second 0", "backend.config.publication={first_round: start}"},
		}},
	} {
		sets := onPath(c.path)
		var runs []run
		for _, s := range c.steps {
			if s.set != "" {
				sets = append(slices.Clone(sets), s.set)
			}
			runs = append(runs, paper(c.config, sets...))
		}
		outcomes, err := b.all(runs)
		if err != nil {
			return nil, err
		}
		published := outcomes[0].meanJCT()
		for i, got := range outcomes {
			s := c.steps[i]
			rows = append(rows, []string{
				c.label, s.label, decimal(got.meanJCT()), decimal(float64(got.QueueingSeconds.Mean)), decimal(got.makespan()), percent(got.meanJCT(), published),
			})
		}
	}
	return rows, nil
}
