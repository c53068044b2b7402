package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// mostRuns is how many runs fit beside each other on a page.
const mostRuns = 16

// WriteRuns writes the page of several runs beside each other. The first is what the others are held against.
func WriteRuns(w io.Writer, runs []*Run) error {
	if len(runs) < 2 || len(runs) > mostRuns {
		return fmt.Errorf("%s: a page takes 2 to %d beside each other", counted(len(runs), "run"), mostRuns)
	}
	data, labels := newPack(), labelled(runs)
	data.value("kind", "several")
	data.value("runs", labels)
	p := &page{Title: fmt.Sprintf("%d runs", len(runs))}
	for i, r := range runs {
		for _, note := range r.Notes() {
			p.Notes = append(p.Notes, labels[i]+": "+note)
		}
		r.packOver(data, itoa(i)+".")
	}
	packTogether(data, runs)
	p.Sections = []section{
		{ID: "composition", Title: "Compositions", Tables: []grid{compositions(runs, labels)}},
		{ID: "figures", Title: "Key figures", Text: []string{"In brackets the change against " + labels[0] + ". These are single runs: only a study over several workloads shows which differences are chance."}, Tables: []grid{sideBySide(runs, labels)}},
		{ID: "time", Title: "Over time", Plots: []string{"over"}},
		{ID: "distributions", Title: "Distributions", Plots: []string{"cdfs"}},
	}
	if signs := signsOf(runs, labels); len(signs) > 0 {
		p.Sections = slices.Insert(p.Sections, 2, section{ID: "signs", Title: "Before you compare", List: signs})
	}
	return p.write(w, data, dataScript, severalScript, startScript)
}

// labelled names each run so that no two have one name.
func labelled(runs []*Run) []string {
	count, labels := map[string]int{}, make([]string, len(runs))
	for _, r := range runs {
		count[r.Name()]++
	}
	for i, r := range runs {
		if labels[i] = r.Name(); count[labels[i]] > 1 {
			labels[i] = fmt.Sprintf("%s (%d: %s)", labels[i], i+1, r.Dir)
		}
	}
	return labels
}

func packTogether(data *pack, runs []*Run) {
	type together struct {
		curve
		Low  []float64 `json:"low"`
		High []float64 `json:"high"`
	}
	var list []together
	for i, r := range runs {
		for _, d := range r.distributions() {
			at := slices.IndexFunc(list, func(t together) bool { return t.Key == d.key })
			if at < 0 {
				at = len(list)
				list = append(list, together{curve{Key: d.key, Title: d.title, Seconds: d.seconds}, make([]float64, len(runs)), make([]float64, len(runs))})
			}
			points, low, high := d.curve()
			list[at].Low[i], list[at].High[i] = low, high
			data.ratios(fmt.Sprintf("%d.cdf.%s", i, d.key), points)
		}
	}
	data.value("cdfs", list)
}

func compositions(runs []*Run, labels []string) grid {
	g := grid{Caption: "What differs is bold", Head: append([]string{"slot"}, labels...), Words: true}
	var slots [][]string
	add := func(name string, of func(*Run) string) {
		row := []string{name}
		for _, r := range runs {
			row = append(row, cmp.Or(of(r), unknownText))
		}
		slots = append(slots, row)
	}
	for i, slot := range [...]string{"workload", "admission", "allocation", "placement", "elasticity", "scaler", "backend"} {
		add(slot, func(r *Run) string {
			if r.Summary == nil {
				return ""
			}
			return components(r.Summary.Components)[i].Value
		})
	}
	add("cluster", (*Run).cluster)
	add("seed", func(r *Run) string { return strconv.FormatUint(r.Manifest.Seed, 10) })
	add("jobs", func(r *Run) string { return digits(float64(len(r.Jobs.name))) })
	for _, row := range slots {
		cells := plain(row...)
		for i := 2; i < len(cells); i++ {
			if cells[i].Text != cells[1].Text {
				cells[i].Class = "differs"
			}
		}
		g.Rows = append(g.Rows, cells)
	}
	return g
}

func sideBySide(runs []*Run, labels []string) grid {
	g := grid{Caption: "Key figures beside each other", Head: append([]string{"figure"}, labels...)}
	var names []string
	all := make([]map[string]figure, len(runs))
	for i, r := range runs {
		all[i] = map[string]figure{}
		if r.Summary == nil {
			continue
		}
		for _, f := range figuresOf(r.Summary) {
			if all[i][f.name] = f; !slices.Contains(names, f.name) {
				names = append(names, f.name)
			}
		}
	}
	for _, name := range names {
		row := plain(name)
		base, known := all[0][name]
		for i := range runs {
			f, here := all[i][name]
			if !here {
				row = append(row, cell{Text: unknownText})
				continue
			}
			c := cell{Text: f.text()}
			if change := f.value/base.value - 1; i > 0 && known && !math.IsNaN(change) && !math.IsInf(change, 0) && f.value != base.value {
				c.Text += fmt.Sprintf(" (%+.3g %%)", 100*change)
				switch v := change * float64(f.sense); {
				case v > 0:
					c.Class = "better"
				case v < 0:
					c.Class = "worse"
				}
			}
			row = append(row, c)
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}

// signsOf says what makes the runs unequal, and the signs of each.
func signsOf(runs []*Run, labels []string) (list []string) {
	for i, r := range runs[1:] {
		switch base := runs[0]; {
		case !slices.Equal(r.Jobs.name, base.Jobs.name) || !slices.EqualFunc(r.Jobs.submit, base.Jobs.submit, same):
			list = append(list, labels[i+1]+" has other jobs than "+labels[0]+": their figures are not of one workload.")
		case r.cluster() != base.cluster():
			list = append(list, labels[i+1]+" has another cluster than "+labels[0]+".")
		}
	}
	for i, r := range runs {
		for _, sign := range r.signs() {
			list = append(list, labels[i]+": "+sign)
		}
	}
	return list
}

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
