package main

import "path/filepath"

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
			{"and consolidated placement", "pipeline={allocation: {type: las, config: {service: wall_time}}, placement: {type: consolidated}}"},
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
		sets := []string{"workload.config.path=" + c.path}
		published := 0.0
		for _, s := range c.steps {
			if s.set != "" {
				sets = append(sets, s.set)
			}
			got, err := b.simulate(c.config, sets...)
			if err != nil {
				return nil, err
			}
			if published == 0 {
				published = got.JCT.Mean
			}
			rows = append(rows, []string{
				c.label, s.label, decimal(got.JCT.Mean), decimal(got.Queueing.Mean), decimal(got.Makespan), percent(got.JCT.Mean, published),
			})
		}
	}
	return rows, nil
}
