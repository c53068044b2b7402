package main

import "fmt"

// polluxPause runs pollux-best with jobs that are resized in place at several costs, on the grid and on events.
func (b *bench) polluxPause() ([][]string, error) {
	rows := [][]string{{"rounds", "horizon s", "resize 30 s (a restart)", "10 s", "5 s", "0 s"}}
	const allocation = "pipeline.allocation.config."
	for _, c := range []struct {
		label, horizon string
		sets           []string
	}{
		{"every 60 s, published simulator", "200", nil},
		{"every 60 s, exact simulator", "200", []string{"backend.config.publication={}"}},
		{"and on events", "150", []string{"backend.config.publication={}", "round.on_events=true"}},
		{"and on events", "175", []string{"backend.config.publication={}", "round.on_events=true"}},
	} {
		row := []string{c.label, c.horizon}
		for _, seconds := range []int{30, 10, 5, 0} {
			sets := append([]string{allocation + "horizon=" + c.horizon + "s"}, c.sets...)
			if seconds < 30 {
				resize := fmt.Sprintf("{in_place: true, overhead: %ds}", seconds)
				sets = append(sets, "backend.config.resize="+resize, allocation+"resize="+resize)
			}
			got, err := b.measured(polluxBest, "1.0", sets...)
			if err != nil {
				return nil, err
			}
			row = append(row, decimal(meanOf(got).Avg))
		}
		rows = append(rows, row)
	}
	return rows, nil
}
