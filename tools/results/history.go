package main

import (
	"os"
	"path/filepath"
	"regexp"
)

// polluxHistory runs each workload with what the other four have taught, and with the same under the names of other
// applications.
func (b *bench) polluxHistory() ([][]string, error) {
	rows := [][]string{{"workload", "learned, mean JCT s", "history", "difference", "wrong history", "difference"}}
	var sums [3][]figures
	for _, n := range given["1.0"] {
		pool := filepath.Join(b.out, "pool-"+n+".yaml")
		for _, other := range given["1.0"] {
			if other == n {
				continue
			}
			if _, err := b.again(run{polluxBest, onPath(b.workload("1.0", other), withHistory(pool, "false")...)}); err != nil {
				return nil, err
			}
		}
		wrong := filepath.Join(b.out, "wrong-"+n+".yaml")
		if err := confuse(pool, wrong); err != nil {
			return nil, err
		}
		got, err := b.figures([]run{
			{polluxBest, onPath(b.workload("1.0", n))},
			{polluxBest, onPath(b.workload("1.0", n), withHistory(pool, "true")...)},
			{polluxBest, onPath(b.workload("1.0", n), withHistory(wrong, "true")...)},
		})
		if err != nil {
			return nil, err
		}
		for i := range got {
			sums[i] = append(sums[i], got[i])
		}
		rows = append(rows, historyRow(n, got))
	}
	return append(rows, historyRow("mean", []figures{meanOf(sums[0]), meanOf(sums[1]), meanOf(sums[2])})), nil
}

func historyRow(label string, got []figures) []string {
	learned, right, wrong := got[0].Avg, got[1].Avg, got[2].Avg
	return []string{label, decimal(learned), decimal(right), percent(right, learned), decimal(wrong), percent(wrong, learned)}
}

func withHistory(pool, frozen string) []string {
	return []string{
		"pipeline.elasticity.job.config.knowledge=history",
		"pipeline.elasticity.job.config.history_path=" + pool,
		"pipeline.elasticity.job.config.history_frozen=" + frozen,
	}
}

var applicationName = regexp.MustCompile(`(?m)^(\s*-\s*name:\s*)(\S+)$`)

// confuse copies a pool, each application carrying the name of the next one in the file, the last that of the first.
func confuse(pool, wrong string) error {
	text, err := os.ReadFile(pool)
	if err != nil {
		return err
	}
	names := applicationName.FindAllSubmatch(text, -1)
	i := 0
	text = applicationName.ReplaceAllFunc(text, func(line []byte) []byte {
		i++
		return append(append([]byte{}, names[i-1][1]...), names[i%len(names)][2]...)
	})
	return os.WriteFile(wrong, text, 0o644)
}
