package main

import (
	"fmt"
	"path/filepath"
	"strconv"
)

func (b *bench) polluxBaselines() ([][]string, error) {
	rows := [][]string{{"policy", "workload", "published mean JCT s", "ours", "difference", "jobs equal"}}
	for _, policy := range []string{"tiresias", "optimus"} {
		for _, w := range []struct{ load, file string }{
			{"", "1"}, {"", "2"}, {"", "3"}, {"", "4"}, {"", "6"}, {"-0.5", "1"}, {"-0.5", "2"}, {"-0.5", "3"}, {"-0.5", "4"},
		} {
			file := "workload-" + w.file + ".csv"
			want, err := readRows(filepath.Join(b.data, "reference", "pollux-osdi21", policy+w.load, file), 0)
			if err != nil {
				return nil, err
			}
			got, err := b.simulate("pollux-osdi21/"+policy+".yaml",
				"workload.config.path="+filepath.Join(b.data, "data", "pollux-osdi21", "workloads"+w.load, file))
			if err != nil {
				return nil, err
			}
			equal, sum := 0, 0.0
			for name, row := range want {
				published, err := strconv.ParseFloat(row[polluxJCT], 64)
				if err != nil {
					return nil, err
				}
				sum += published
				if job := got.jobs[name]; job != nil && job[jobJCT] == row[polluxJCT] {
					equal++
				}
			}
			mean := sum / float64(len(want))
			load := "1.0x"
			if w.load != "" {
				load = "0.5x"
			}
			rows = append(rows, []string{
				policy, load + " " + w.file, decimal(mean), decimal(got.JCT.Mean), percent(got.JCT.Mean, mean), fmt.Sprintf("%d of %d", equal, len(want)),
			})
		}
	}
	return rows, nil
}
