package main

import (
	"fmt"
	"path/filepath"
	"strconv"
)

func (b *bench) polluxBaselines() ([][]string, error) {
	rows := [][]string{{"policy", "workload", "published mean JCT s", "ours", "difference", "jobs equal"}}
	policies := []string{"tiresias", "optimus"}
	workloads := []struct{ load, file string }{
		{"", "1"}, {"", "2"}, {"", "3"}, {"", "4"}, {"", "6"}, {"-0.5", "1"}, {"-0.5", "2"}, {"-0.5", "3"}, {"-0.5", "4"},
	}
	var runs []run
	for _, policy := range policies {
		for _, w := range workloads {
			path := filepath.Join(b.data, "data", "pollux-osdi21", "workloads"+w.load, "workload-"+w.file+".csv")
			runs = append(runs, paper("pollux-osdi21/"+policy+".yaml", onPath(path)...))
		}
	}
	outcomes, err := b.all(runs)
	if err != nil {
		return nil, err
	}
	for i, policy := range policies {
		for k, w := range workloads {
			file := "workload-" + w.file + ".csv"
			want, err := readRows(filepath.Join(b.data, "reference", "pollux-osdi21", policy+w.load, file), 0)
			if err != nil {
				return nil, err
			}
			got := outcomes[i*len(workloads)+k]
			equal, sum := 0, 0.0
			for name, row := range want {
				published, err := strconv.ParseFloat(row[polluxJCT], 64)
				if err != nil {
					return nil, err
				}
				sum += published
				if job := got.jobs[name]; job != nil && float64(job.JCTSeconds) == published {
					equal++
				}
			}
			mean := sum / float64(len(want))
			load := "1.0x"
			if w.load != "" {
				load = "0.5x"
			}
			rows = append(rows, []string{
				policy, load + " " + w.file, decimal(mean), decimal(got.meanJCT()), percent(got.meanJCT(), mean), fmt.Sprintf("%d of %d", equal, len(want)),
			})
		}
	}
	return rows, nil
}
