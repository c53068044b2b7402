package report

import "slices"

// Figures are the pictures of a run: devices and jobs over time, how well devices were used, and distributions over its jobs.
func (r *Run) Figures() []Figure {
	var list []Figure
	for _, f := range [...]struct {
		name, title string
		y           Unit
		columns     []string
	}{
		{"devices-over-time", "Devices", Plain, []string{"devices_used", "devices_ready"}},
		{"jobs-over-time", "Jobs", Plain, []string{"running", "waiting"}},
		{"efficiency-over-time", "Statistical efficiency", Share, []string{"efficiency"}},
		{"goodput-over-time", "Goodput", Plain, []string{"goodput"}},
		{"nodes-over-time", "Nodes of pools", Plain, []string{"pool_nodes"}},
		{"cost-over-time", "Cost of pools", Plain, []string{"pool_cost"}},
	} {
		one := Figure{Name: f.name, Title: f.title, XLabel: "time", X: Seconds, Y: f.y}
		for k, column := range f.columns {
			one.over(r, column, column, k)
		}
		list = append(list, one)
	}
	for _, d := range r.distributions() {
		one := d.figure()
		one.Lines = append(one.Lines, cdf("jobs", 0, d))
		list = append(list, one)
	}
	return drawn(append(append(list, r.lifeFigures()...), r.experimentFigures()...))
}

// FiguresOfRuns are the pictures of several runs over each other.
func FiguresOfRuns(runs []*Run) []Figure {
	if len(runs) == 1 {
		return runs[0].Figures()
	}
	labels := labelled(runs)
	var list []Figure
	for _, f := range [...]struct {
		name, title, column string
		y                   Unit
	}{
		{"devices-over-time", "Devices held", "devices_used", Plain},
		{"waiting-over-time", "Waiting jobs", "waiting", Plain},
		{"efficiency-over-time", "Statistical efficiency", "efficiency", Share},
		{"nodes-over-time", "Nodes of pools", "pool_nodes", Plain},
		{"cost-over-time", "Cost of pools", "pool_cost", Plain},
	} {
		one := Figure{Name: f.name, Title: f.title, XLabel: "time", X: Seconds, Y: f.y}
		for i, r := range runs {
			one.over(r, f.column, labels[i], i)
		}
		list = append(list, one)
	}
	for i, r := range runs {
		for _, d := range r.distributions() {
			one := d.figure()
			at := slices.IndexFunc(list, func(f Figure) bool { return f.Name == one.Name })
			if at < 0 {
				at = len(list)
				list = append(list, one)
			}
			list[at].Lines = append(list[at].Lines, cdf(labels[i], i, d))
		}
	}
	return drawn(list)
}

// drawn leaves out figures without lines.
func drawn(list []Figure) []Figure {
	return slices.DeleteFunc(list, func(f Figure) bool { return len(f.Lines) == 0 })
}

// figure is that of a distribution, without lines.
func (d distribution) figure() Figure {
	f := Figure{Name: fileName(d.key, "cdf"), Title: d.title, XLabel: d.title, YLabel: "jobs", X: Plain, Y: Share, LogX: true}
	if d.seconds {
		f.X = Seconds
	}
	return f
}

// over adds the column of a run over time, if there is one.
func (f *Figure) over(r *Run, column, label string, colour int) {
	if x, y := r.over(column); known(y) {
		f.Lines = append(f.Lines, Line{Label: label, Colour: colour, Step: column != "pool_cost", X: x, Y: y})
	}
}

// over is a column over time: of usage.csv, or of rounds.csv where that was not written.
func (r *Run) over(column string) (x, y []float64) {
	t, at := r.rounds, "time_s"
	if r.usage != nil {
		t, at = r.usage, "at_s"
	} else if column == "devices_ready" {
		column = "devices_usable"
	}
	x, errX := t.numbers(at)
	y, errY := t.numbers(column)
	if errX != nil || errY != nil || !t.has(column) || !t.has(at) {
		return nil, nil
	}
	return thinned(x, y)
}
