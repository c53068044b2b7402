package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/stats"
)

// WriteRun writes the page of a run.
func WriteRun(w io.Writer, r *Run) error {
	return r.page().write(w, r.pack(), dataScript, figuresScript, timelineScript, runScript, startScript)
}

func (r *Run) page() *page {
	p := &page{Title: r.Name(), Notes: r.Notes()}
	p.Sections = append(p.Sections, r.figures(), r.composition())
	if signs := r.signs(); len(signs) > 0 {
		p.Sections = append(p.Sections, section{ID: "signs", Title: "Before you compare", List: signs})
	}
	if r.rounds.rows > 0 || r.usage != nil && r.usage.rows > 0 {
		s := section{ID: "time", Title: "Over time", Plots: []string{"over"}}
		if r.usage == nil {
			s.Text = []string{"Sampled once per round. With usage in output.write the curves are also exact between rounds."}
		}
		p.Sections = append(p.Sections, s)
	}
	if len(r.stays) > 0 {
		s := section{ID: "devices", Title: "Device timeline", Canvas: true}
		s.Text = []string{"A row is a device, a colour a job. Drag to move, zoom with the buttons, with + and − or with Ctrl and the wheel; choose a job by a click. Nodes that were down or draining are shaded."}
		if r.Jobs.shared != nil {
			s.Text = append(s.Text, "Jobs that are on a device at the same time divide its row evenly, whatever part of it they have.")
		}
		if n := r.Jobs.countOnCPUs(); n > 0 {
			s.Text = append(s.Text, fmt.Sprintf("Not shown: %s on CPUs alone.", counted(n, "job")))
		}
		if !r.exact {
			s.Text = append(s.Text, "Reconstructed from decisions.jsonl.")
		}
		p.Sections = append(p.Sections, s)
	}
	if list := r.distributions(); len(list) > 0 {
		p.Sections = append(p.Sections, section{ID: "distributions", Title: "Distributions", Plots: []string{"cdfs"}, Tables: []grid{quantiles(list)}})
	}
	if reasons := r.reasons(); len(reasons) > 0 {
		p.Sections = append(p.Sections, section{ID: "waiting", Title: "Why jobs waited", Plots: []string{"reasons"}, Tables: []grid{reasonTable(reasons)}})
	}
	p.Sections = append(p.Sections, r.experiments()...)
	if len(r.Jobs.name) > 0 {
		p.Sections = append(p.Sections, section{ID: "job", Title: "One job", Search: true})
	}
	p.Sections = append(p.Sections, r.groups()...)
	p.Sections = append(p.Sections, r.deciding()...)
	if r.Manifest.Config != "" {
		p.Sections = append(p.Sections, section{ID: "config", Title: "Config", Text: []string{"Resolved: every value that was in force."}, Pre: r.Manifest.Config, More: "Show the config"})
	}
	return p
}

// Notes say what is wrong with the run or its files, a sentence each.
func (r *Run) Notes() []string {
	list := slices.Clone(r.Problems)
	if r.Manifest.Interrupted {
		list = append(list, "The run was interrupted: its files are those of a part of it.")
	}
	if r.Manifest.Failed != "" {
		list = append(list, "The run failed, and its files are those up to then: "+r.Manifest.Failed)
	}
	return list
}

func (r *Run) composition() section {
	s := section{ID: "composition", Title: "Composition"}
	add := func(name, value string) {
		if value != "" {
			s.Facts = append(s.Facts, fact{name, value})
		}
	}
	real := false
	if r.Summary != nil {
		c := r.Summary.Components
		real = c.Backend != "" && c.Backend != "backend/simulator"
		for _, slot := range components(c) {
			add(slot.Name, slot.Value)
		}
		for _, e := range r.Summary.Earlier {
			add(fmt.Sprintf("until round %d", e.UntilRound), strings.Join([]string{strings.Join(e.Admission, ", "), e.Allocation, e.Placement, e.Elasticity}, ", "))
		}
	}
	add("cluster", r.cluster())
	add("seed", strconv.FormatUint(r.Manifest.Seed, 10))
	add("program", strings.Join(slices.DeleteFunc([]string{r.Manifest.Quartet, "commit " + r.Manifest.Commit, r.Manifest.Go}, func(s string) bool { return s == "" || s == "commit " }), ", "))
	var digests strings.Builder
	for _, p := range r.Manifest.Plugins {
		add("plugin "+p.Name, p.Version)
		fmt.Fprintf(&digests, "%s  plugin %s\n", p.SHA256, p.Name)
	}
	for _, file := range slices.Concat(r.Manifest.Inputs, r.Manifest.Outputs) {
		fmt.Fprintf(&digests, "%s  %s\n", file.SHA256, file.File)
	}
	s.Pre, s.More = digests.String(), "Show the digests (SHA-256) of inputs and outputs"
	if r.Manifest.Config != "" && !real && !r.Unended {
		add("to repeat it", "quartet simulate --from "+shellQuoted(path.Join(r.Dir, "manifest.json")))
	}
	return s
}

func components(c metrics.Components) []fact {
	return []fact{
		{"workload", c.Workload},
		{"admission", strings.Join(c.Admission, ", ")},
		{"allocation", c.Allocation},
		{"placement", c.Placement},
		{"elasticity", c.Elasticity},
		{"scaler", c.Scaler},
		{"backend", c.Backend},
	}
}

// cluster tells the nodes of each type.
func (r *Run) cluster() string {
	type kind struct{ nodes, devices int }
	var order []string
	kinds := map[string]kind{}
	for _, n := range r.nodes {
		if _, known := kinds[n.accelerator]; !known {
			order = append(order, n.accelerator)
		}
		k := kinds[n.accelerator]
		kinds[n.accelerator] = kind{k.nodes + 1, k.devices + n.devices}
	}
	var parts []string
	for _, name := range order {
		k := kinds[name]
		parts = append(parts, fmt.Sprintf("%s %s on %s", grouped(itoa(k.devices)), cmp.Or(name, "devices"), counted(k.nodes, "node")))
	}
	return strings.Join(parts, ", ")
}

// figures are the key figures.
func (r *Run) figures() section {
	s := section{ID: "figures", Title: "Key figures"}
	if r.Unended {
		s.Title = "Key figures so far"
	}
	if r.Summary == nil && r.Unended {
		s.Text = []string{"They come when the run has ended."}
		return s
	}
	if r.Summary == nil {
		s.Text = []string{"They are those of summary.json, which cannot be read."}
		return s
	}
	for _, f := range figuresOf(r.Summary) {
		s.Cards = append(s.Cards, fact{f.name, f.text()})
	}
	if w := r.Summary.Measured; w != nil {
		s.Text = append(s.Text, fmt.Sprintf("The figures of jobs are about jobs %d to %d.", w.First, w.Last))
	}
	return s
}

// A figure is a number of a summary; of those that can be better, less is unless more is set.
type figure struct {
	name  string
	value float64
	write func(float64) string
	sense int // -1 when less is better, 1 when more is, 0 when neither
}

func (f figure) text() string { return f.write(f.value) }

func figuresOf(s *metrics.Summary) []figure {
	list := []figure{
		{"jobs", float64(s.Jobs.Submitted), digits, 0},
		{"completed", float64(s.Jobs.Completed), digits, 0},
		{"completion time, mean", float64(s.JCTSeconds.Mean), span, -1},
		{"completion time, median", float64(s.JCTSeconds.P50), span, -1},
		{"completion time, p99", float64(s.JCTSeconds.P99), span, -1},
		{"wait for devices, mean", float64(s.QueueingSeconds.Mean), span, -1},
		{"wait for devices, p99", float64(s.QueueingSeconds.P99), span, -1},
		{"makespan", float64(s.MakespanSeconds), span, -1},
		{"devices held", float64(s.UtilizationRatio), percent, 0},
		{"device hours", float64(s.GPUHours), digits, 0},
		{"restarts a job", float64(s.Restarts.Mean), digits, -1},
		{"preemptions", float64(s.Preemptions), digits, -1},
		{"rho, mean", float64(s.Fairness.RhoMean), digits, -1},
		{"rho, largest", float64(s.Fairness.RhoMax), digits, -1},
		{"rounds", float64(s.Rounds), digits, 0},
	}
	for _, c := range [...]struct {
		name  string
		count int
	}{{"rejected", s.Jobs.Rejected}, {"failed", s.Jobs.Failed}, {"cancelled", s.Jobs.Cancelled}, {"unfinished", s.Jobs.Unfinished}} {
		if c.count > 0 {
			list = append(list, figure{c.name, float64(c.count), digits, -1})
		}
	}
	return list
}

var shares = [...]struct {
	name string
	p    float64
}{{"p10", .1}, {"p25", .25}, {"p50", .5}, {"p75", .75}, {"p90", .9}, {"p99", .99}, {"largest", 1}}

func quantiles(list []distribution) grid {
	g := grid{Caption: "Quantiles", Head: []string{"quantity", "jobs", "mean"}}
	for _, share := range shares {
		g.Head = append(g.Head, share.name)
	}
	for _, d := range list {
		write := digits
		if d.seconds {
			write = span
		}
		row := []string{d.title, digits(float64(len(d.values))), write(d.mean())}
		for _, share := range shares {
			row = append(row, write(d.quantile(share.p)))
		}
		g.Rows = append(g.Rows, plain(row...))
	}
	return g
}

func reasonTable(reasons []reason) grid {
	g := grid{Caption: "Pending time of all jobs by reason", Head: []string{"reason", "waits", "time", "share"}}
	total := 0.0
	for _, r := range reasons {
		total += r.seconds
	}
	for _, r := range reasons {
		g.Rows = append(g.Rows, plain(r.name, digits(float64(r.waits)), span(r.seconds), percent(r.seconds/total)))
	}
	return g
}

// mostGroups is how many rows a table of applications or tenants shows.
const mostGroups = 200

// groups are the jobs by tenant and by application, and the devices by type.
func (r *Run) groups() (list []section) {
	if g := r.tenantTable(); len(g.Rows) > 0 {
		list = append(list, section{ID: "tenants", Title: "Tenants", Tables: []grid{g}})
	}
	if g := r.applicationTable(); len(g.Rows) > 0 {
		list = append(list, section{ID: "applications", Title: "Applications", Tables: []grid{g}})
	}
	if r.Summary != nil && len(r.Summary.Accelerators) > 0 {
		g := grid{Caption: "By accelerator type", Head: []string{"type", "devices", "held", "device hours", "jobs", "starts", "wait of jobs that first ran here, mean"}}
		for _, a := range r.Summary.Accelerators {
			g.Rows = append(g.Rows, plain(a.Accelerator, digits(float64(a.Devices)), percent(float64(a.UtilizationRatio)), digits(float64(a.GPUHours)),
				digits(float64(a.Jobs)), digits(float64(a.Starts)), span(float64(a.QueueingSecondsMean))))
		}
		list = append(list, section{ID: "types", Title: "Accelerator types", Tables: []grid{g}})
	}
	return list
}

// tenantTable is tenants.csv, of runs that wrote it.
func (r *Run) tenantTable() grid {
	if r.tenants == nil {
		return grid{}
	}
	number := func(column string) []float64 {
		list, _ := r.tenants.numbers(column) // the page tells of what is no number
		return list
	}
	jobs, usage, jct, tail, wait := number("jobs"), number("gpu_seconds"), number("jct_mean_s"), number("jct_p99_s"), number("queueing_mean_s")
	restarts, rho := number("restarts_mean"), number("rho_mean")
	order := make([]int, r.tenants.rows)
	total := 0.0
	for i := range order {
		order[i] = i
		total += zeroed(usage[i])
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(zeroed(usage[b]), zeroed(usage[a])) })
	out := grid{Caption: "By tenant, most device time first", Head: []string{"tenant", "jobs", "device time", "share", "completion time, mean", "p99", "wait, mean", "restarts a job", "rho, mean"}}
	if even := stats.Jain(slices.DeleteFunc(slices.Clone(rho), math.IsNaN)); !math.IsNaN(even) && len(order) > 1 {
		out.Caption += fmt.Sprintf("; Jain's index of rho %.2f", even)
	}
	if len(order) > mostGroups {
		out.Caption += fmt.Sprintf(", the first %d of %d", mostGroups, len(order))
		order = order[:mostGroups]
	}
	for _, i := range order {
		name := cmp.Or(r.tenants.text("tenant")[i], "none")
		out.Rows = append(out.Rows, plain(name, digits(jobs[i]), span(usage[i]), percent(usage[i]/total), span(jct[i]), span(tail[i]), span(wait[i]), digits(restarts[i]), digits(rho[i])))
	}
	return out
}

func (r *Run) applicationTable() grid {
	type group struct {
		name                string
		jobs                int
		usage               float64
		jct, wait, restarts []float64
	}
	at, all := map[string]int{}, []group{}
	for i, name := range r.Jobs.application {
		if name == "" {
			continue
		}
		k, known := at[name]
		if !known {
			k = len(all)
			at[name], all = k, append(all, group{name: name})
		}
		g := &all[k]
		g.jobs++
		g.jct, g.wait, g.restarts = append(g.jct, r.Jobs.jct[i]), append(g.wait, r.Jobs.queueing[i]), append(g.restarts, r.Jobs.restarts[i])
		if u := r.Jobs.usage[i]; !math.IsNaN(u) {
			g.usage += u
		}
	}
	slices.SortStableFunc(all, func(a, b group) int { return cmp.Or(cmp.Compare(b.usage, a.usage), cmp.Compare(a.name, b.name)) })
	out := grid{Caption: "By application, most device time first", Head: []string{"application", "jobs", "device time", "completion time, mean", "p99", "wait, mean", "restarts a job"}}
	if len(all) > mostGroups {
		out.Caption += fmt.Sprintf(", the first %d of %d", mostGroups, len(all))
		all = all[:mostGroups]
	}
	for _, g := range all {
		jct := newDistribution("", "", true, g.jct)
		out.Rows = append(out.Rows, plain(g.name, digits(float64(g.jobs)), span(g.usage), span(jct.mean()), span(jct.quantile(.99)),
			span(newDistribution("", "", true, g.wait).mean()), digits(newDistribution("", "", false, g.restarts).mean())))
	}
	return out
}

// deciding is how well and how fast the stages decided.
func (r *Run) deciding() []section {
	if r.Summary == nil {
		return nil
	}
	s := section{ID: "deciding", Title: "Decisions"}
	d := r.Summary.DecisionSeconds
	s.Cards = []fact{
		{"decision time a round, mean", span(float64(d.Mean))},
		{"decision time, p99", span(float64(d.P99))},
		{"decision time, largest", span(float64(d.Max))},
		{"certified gap, mean", percent(float64(r.Summary.GapRatio.Mean))},
		{"gap, largest", percent(float64(r.Summary.GapRatio.Max))},
	}
	if gap, err := r.rounds.numbers("gap_ratio"); err == nil && slices.ContainsFunc(gap, func(v float64) bool { return !math.IsNaN(v) }) {
		s.Plots = []string{"gap"}
	}
	g := grid{Caption: "Time a round, by component", Head: []string{"component", "stage", "mean", "largest"}}
	for _, c := range d.ByComponent {
		g.Rows = append(g.Rows, plain(c.Component, c.Stage, span(float64(c.Mean)), span(float64(c.Max))))
	}
	if len(g.Rows) > 0 {
		s.Tables = []grid{g}
	}
	return []section{s}
}
