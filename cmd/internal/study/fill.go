package study

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/placement/score"
	"github.com/quartet-sched/quartet/placement/score/inflation"
)

// fillers are the placements that a cluster is filled by.
var fillers = []struct {
	name   string
	scorer func(y *score.Typical, seed int64) score.Scorer
}{
	{"random", func(_ *score.Typical, seed int64) score.Scorer {
		return score.NewRandom(core.NewRand(uint64(seed), "placement/random")) //nolint:gosec // any bits do
	}},
	{"dot_product", func(*score.Typical, int64) score.Scorer { return score.DotProduct{} }},
	{"clustering", func(*score.Typical, int64) score.Scorer { return score.Clustering{} }},
	{"packing", func(*score.Typical, int64) score.Scorer { return score.Packing{} }},
	{"best_fit", func(*score.Typical, int64) score.Scorer { return score.BestFit{} }},
	{"fgd", func(y *score.Typical, _ int64) score.Scorer { return score.NewFGD(y) }},
	{"fragmentation", func(y *score.Typical, _ int64) score.Scorer { return score.NewFragmentation(y) }},
}

// filling is how a cluster is filled.
type filling struct {
	tasks, nodes string
	placements   []string
	seeds        string
	percent      int
	out          string
	covered      bool
	mig          bool
	lifetimes    float64
}

func (a *app) fillCommand() *cobra.Command {
	f := filling{seeds: "42..51", percent: 130}
	for i := range fillers {
		f.placements = append(f.placements, fillers[i].name)
	}
	c := &cobra.Command{
		Use:   "fill",
		Short: "Fill a cluster with tasks, and see how much of it each placement leaves idle",
		Long: `Lets the tasks of a list arrive on the nodes of another, in an order that a seed draws, with clones of them or without some, until they
ask for a part of all devices. None leaves, and one that fits nowhere is dropped: the experiment of FGD (ATC'23), draw by draw. With --lifetimes tasks come and go.
Both lists are those of Alibaba's openb trace. docs/sharing.md has more.`,
		Example: "  quartet fill --tasks openb_pod_list_default.csv --nodes openb_node_list_gpu_node.csv --seeds 42..47",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.fill(c, f)
		},
	}
	c.Flags().StringVar(&f.tasks, "tasks", "", "list of tasks: name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec; gzip or not")
	c.Flags().StringVar(&f.nodes, "nodes", "", "list of nodes: sn, cpu_milli, memory_mib, gpu, model; gzip or not")
	c.Flags().StringSliceVar(&f.placements, "placement", f.placements, "placements to fill by")
	c.Flags().StringVar(&f.seeds, "seeds", f.seeds, "a seed, or the first and the last one")
	c.Flags().IntVar(&f.percent, "percent", f.percent, "how much the tasks ask for, in percent of all devices")
	c.Flags().StringVar(&f.out, "out", "", "folder to write curves.csv and placements.csv to")
	c.Flags().BoolVar(&f.covered, "parts-of-covered", false, "divide how often a typical task occurs by those covered, instead of by all and then by the part that is covered: the last bit, which decides between nodes that are the same")
	c.Flags().BoolVar(&f.mig, "mig", false, "divide devices into slices as MIG does: a part of a device is the smallest slice with as much compute")
	c.Flags().Float64Var(&f.lifetimes, "lifetimes", 0, "let tasks leave as well, after times that are drawn, and count over so many mean times; one that fits nowhere is lost. 0: none leaves")
	cli.MustRequire(c, "tasks", "openb_pod_list_default.csv")
	cli.MustRequire(c, "nodes", "openb_node_list_gpu_node.csv")
	return c
}

// maxPercent bounds how much tasks may ask for: they are drawn one by one.
const maxPercent = 10_000

// seedsOf are the seeds of "42" or "42..51".
func seedsOf(text string) (first, last int64, err error) {
	from, to, many := strings.Cut(text, "..")
	if !many {
		to = from
	}
	first, err = strconv.ParseInt(from, 10, 64)
	if err == nil {
		last, err = strconv.ParseInt(to, 10, 64)
	}
	if err != nil || last < first || last-first >= 1000 {
		return 0, 0, cli.Problem("--seeds", fmt.Sprintf("%q is neither a seed nor a first and a last one, at most 1000 of them", text), "for example 42, or 42..51")
	}
	return first, last, nil
}

// check refuses numbers out of range, and flags that do not go together.
func (f *filling) check() error {
	switch {
	case f.percent < 1 || f.percent > maxPercent:
		return cli.Problem("--percent", fmt.Sprintf("must be between 1 and %d, got %d", maxPercent, f.percent), "")
	case math.IsNaN(f.lifetimes) || f.lifetimes < 0 || f.lifetimes > maxLifetimes:
		return cli.Problem("--lifetimes", fmt.Sprintf("must be between 0 and %d, got %v", maxLifetimes, f.lifetimes), "")
	case f.lifetimes > 0 && f.out != "":
		return cli.Problem("--out", "has no curves of tasks that come and go", "leave --lifetimes out")
	}
	return nil
}

// fill places tasks until the cluster is full, once for each placement and seed.
func (a *app) fill(c *cobra.Command, f filling) error {
	first, last, err := seedsOf(f.seeds)
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	chosen, err := fillersOf(f.placements)
	if err != nil {
		return err
	}
	trace, err := f.trace(c)
	if err != nil {
		return err
	}
	if f.lifetimes > 0 {
		return a.turnOver(c, &f, trace, chosen, first, last)
	}
	report, err := newFillReport(f.out)
	if err != nil {
		return err
	}
	results := make([][]inflation.Curves, len(chosen))
	for seed := first; seed <= last; seed++ {
		draw := trace.Draw(seed, f.percent)
		for i, k := range chosen {
			if err := c.Context().Err(); err != nil {
				return err
			}
			results[i] = append(results[i], draw.Run(fillers[k].scorer(trace.Typical(), seed), report.placed(draw, fillers[k].name, seed)))
			report.curves(fillers[k].name, seed, &results[i][len(results[i])-1])
		}
	}
	if err := report.close(); err != nil {
		return err
	}
	return fillTable(chosen, results).Write(a.Stdout, a.Format)
}

// maxLifetimes bounds how long tasks come and go.
const maxLifetimes = 1000

// turnOver lets tasks come and go.
func (a *app) turnOver(c *cobra.Command, f *filling, trace *inflation.Trace, chosen []int, first, last int64) error {
	results := make([][]inflation.Turnover, len(chosen))
	for seed := first; seed <= last; seed++ {
		draw := trace.Draw(seed, f.percent)
		for i, k := range chosen {
			if err := c.Context().Err(); err != nil {
				return err
			}
			results[i] = append(results[i], draw.Turnover(fillers[k].scorer(trace.Typical(), seed), seed, f.percent, f.lifetimes))
		}
	}
	t := render.Table{Columns: []render.Column{
		{Name: "placement"},
		{Name: "seeds", Numeric: true},
		{Name: "lost_percent", Numeric: true},
		{Name: "sd", Numeric: true},
		{Name: "allocated_percent", Numeric: true},
		{Name: "fragments_percent", Numeric: true},
	}}
	for i, k := range chosen {
		var lost, allocated, fragments []float64
		for _, r := range results[i] {
			lost, allocated, fragments = append(lost, r.Lost), append(allocated, r.Allocated), append(fragments, r.Fragments)
		}
		away, sd := meanOf(lost)
		used, _ := meanOf(allocated)
		broken, _ := meanOf(fragments)
		t.Rows = append(t.Rows, []any{fillers[k].name, len(lost), digits(away), digits(sd), digits(used), digits(broken)})
	}
	return t.Write(a.Stdout, a.Format)
}

// trace reads the lists.
func (f *filling) trace(c *cobra.Command) (*inflation.Trace, error) {
	var found core.Diagnostics
	tasks, err := workload.ReadOpenBTasks(c.Context(), f.tasks)
	if !collect(&found, err) {
		return nil, err
	}
	nodes, err := workload.ReadOpenBNodeList(c.Context(), f.nodes)
	if !collect(&found, err) {
		return nil, err
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	division := score.OfAll
	if f.covered {
		division = score.OfCovered
	}
	trace, err := inflation.FromOpenB(tasks, nodes, division)
	switch {
	case err != nil:
		return nil, cli.Problem("--nodes", err.Error(), "")
	case trace.Capacity() == 0:
		return nil, cli.Problem("--nodes", "no node has a device", "")
	case !slices.ContainsFunc(tasks, func(t workload.OpenBTask) bool { return t.Devices > 0 }):
		return nil, cli.Problem("--tasks", "no task asks for a device: they never ask for so much", "")
	case f.mig:
		return trace.Sliced(division), nil
	}
	return trace, nil
}

// collect adds diagnostics to others. It reports false for an error of another kind.
func collect(found *core.Diagnostics, err error) bool {
	if err == nil {
		return true
	}
	more, positioned := err.(core.Diagnostics) //nolint:errorlint // readers return them as they are
	*found = append(*found, more...)
	return positioned
}

// fillersOf are the indices of placements by name.
func fillersOf(names []string) (chosen []int, err error) {
	var valid []string
	for i := range fillers {
		valid = append(valid, fillers[i].name)
	}
	for _, name := range names {
		i := slices.Index(valid, name)
		if i < 0 {
			return nil, cli.Problem("--placement", fmt.Sprintf("unknown placement %q", name), core.SuggestHint(name, "placements", valid))
		}
		if slices.Contains(chosen, i) {
			return nil, cli.Problem("--placement", fmt.Sprintf("%q is given twice", name), "")
		}
		chosen = append(chosen, i)
	}
	return chosen, nil
}

// fillTable is the means over the seeds.
func fillTable(chosen []int, results [][]inflation.Curves) render.Table {
	t := render.Table{Columns: []render.Column{
		{Name: "placement"},
		{Name: "seeds", Numeric: true},
		{Name: "allocated_percent", Numeric: true},
		{Name: "sd", Numeric: true},
		{Name: "allocated_at_100_percent", Numeric: true},
		{Name: "fragments_percent", Numeric: true},
		{Name: "fragments_at_100_percent", Numeric: true},
	}}
	for i, k := range chosen {
		var end, at100, fragments, fragmentsAt100 []float64
		for n := range results[i] {
			r := &results[i][n]
			last := len(r.Allocated) - 1
			end, fragments = append(end, r.Allocated[last]), append(fragments, r.Fragments[last])
			if last >= 100 {
				at100, fragmentsAt100 = append(at100, r.Allocated[100]), append(fragmentsAt100, r.Fragments[100])
			}
		}
		all, sd := meanOf(end)
		hundred, _ := meanOf(at100)
		broken, _ := meanOf(fragments)
		brokenAt100, _ := meanOf(fragmentsAt100)
		t.Rows = append(t.Rows, []any{fillers[k].name, len(end), digits(all), digits(sd), digits(hundred), digits(broken), digits(brokenAt100)})
	}
	return t
}

// digits rounds to those that are told.
func digits(x float64) float64 { return math.Round(x*1000) / 1000 }

// meanOf is the mean and the standard deviation; NaN for nothing, and for one value.
func meanOf(x []float64) (mean, sd float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sd += (v - mean) * (v - mean) / float64(len(x)-1)
	}
	if len(x) == 0 {
		return math.NaN(), math.NaN()
	}
	return mean, math.Sqrt(sd)
}
