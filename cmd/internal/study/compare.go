package study

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/interrupt"
	"github.com/quartet-sched/quartet/lab/compare"
)

// compareFlags are the flags of compare.
type compareFlags struct {
	metrics   []string
	jobs      int
	unequal   bool
	failAbove []string
	strict    bool
}

func (a *app) compareCommand() *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   "compare A B...",
		Short: "Compare runs, folders of runs or studies: what differs, how much, and how sure that is",
		Long: `Compares each B with A. They are folders of runs; folders that hold several runs of one
composition, which are paired by their inputs; or folders of studies, whose cells are paired by
their axes. STUDY@ITEM is one scheduler of a study, or another item of an axis.

A change is shown where its 95 % interval leaves out 0; others begin with ~. Of two single runs
the interval is that within one trace. Runs of other inputs are refused. docs/compare.md says
what each figure is, and how the command guards a build.

Exit codes: 0 compared, 2 wrong usage, inputs that are broken or not the same, 6 a change is
above its --fail-above.`,
		Example: `  quartet compare runs/fifo runs/srtf
  quartet compare baseline/studies/five studies/five --fail-above jct_seconds.mean=2%
  quartet compare studies/five@fifo studies/five@srtf -o markdown`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			thresholds, err := f.check()
			if err != nil {
				return err
			}
			r, err := interrupt.Call(c.Context(), func() (*compare.Result, error) { return f.compare(c.Context(), a, args, thresholds) })
			if err != nil {
				return err
			}
			verdicts, err := r.Judge(thresholds, f.strict)
			if err != nil {
				return err
			}
			if err := a.printComparison(r, verdicts); err != nil {
				return err
			}
			return gateError(r, verdicts)
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&f.metrics, "metric", nil, "numbers of summary.json to compare, by path such as jct_seconds.p90; may be repeated (default: the usual ones)")
	flags.IntVar(&f.jobs, "jobs", 3, "how many of the jobs that gained most, and of those that lost most, are listed")
	flags.BoolVar(&f.unequal, "unequal-inputs", false, "compare also runs of other jobs, inputs or clusters")
	flags.StringArrayVar(&f.failAbove, "fail-above", nil, "fail when a metric is worse than in A by more than this: METRIC=2%, or METRIC=30s or METRIC=0.5 in its unit; may be repeated")
	flags.BoolVar(&f.strict, "strict", false, "with --fail-above, judge by the change alone, though its interval holds 0")
	cli.MustComplete(c, "metric", compare.Metrics())
	return c
}

// check reads the thresholds and completes the metrics: what is judged is shown.
func (f *compareFlags) check() ([]compare.Threshold, error) {
	var found core.Diagnostics
	add := func(flag, summary, hint string) {
		found = append(found, core.Diagnostic{Position: core.Position{File: flag}, Summary: summary, Hint: hint})
	}
	for _, name := range f.metrics {
		if !slices.Contains(compare.Metrics(), name) {
			add("--metric", fmt.Sprintf("unknown metric %q", name), core.SuggestHint(name, "metrics", compare.Metrics()))
		}
	}
	if f.jobs < 0 {
		add("--jobs", fmt.Sprintf("must be at least 0, got %d", f.jobs), "")
	}
	var thresholds []compare.Threshold
	for _, text := range f.failAbove {
		t, err := compare.ParseThreshold(text)
		if err != nil {
			add("--fail-above", err.Error(), "")
			continue
		}
		thresholds = append(thresholds, t)
	}
	if f.strict && len(f.failAbove) == 0 {
		add("--strict", "judges nothing", "give --fail-above too")
	}
	return thresholds, found.Err()
}

// compare reads the sides and compares them. What is wrong with any of them is reported together.
func (f *compareFlags) compare(ctx context.Context, a *app, args []string, thresholds []compare.Threshold) (*compare.Result, error) {
	var sides []*compare.Side
	var found core.Diagnostics
	for _, path := range args {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		side, err := compare.ReadSide(path, compare.Options{Resolve: resolveAnew(a.Catalog())})
		if err != nil {
			found = append(found, cli.AsDiagnostics(path, err)...)
			continue
		}
		sides = append(sides, side)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	choice := compare.Choice{Metrics: f.metrics, Unequal: f.unequal, Jobs: f.jobs}
	for _, t := range thresholds {
		choice.Judged = append(choice.Judged, t.Metric)
	}
	return compare.Compare(sides[0], sides[1:], choice)
}

// resolveAnew fills in the settings that a resolved config of an earlier version does not have.
func resolveAnew(c quartet.Catalog) func(text []byte) ([]byte, error) {
	return func(text []byte) ([]byte, error) {
		config, err := configs.Parse(c, "config", text, configs.Options{})
		if err != nil {
			return nil, err
		}
		return config.Resolved()
	}
}

// gateError is the error of a comparison with changes above their thresholds.
func gateError(r *compare.Result, verdicts []compare.Verdict) error {
	var failed []string
	for _, v := range verdicts {
		if v.Failed {
			failed = append(failed, fmt.Sprintf("%s of %s: %s", v.Text, shown(r.Others[v.Row.Against].Label), v.Why+worseText(v)))
		}
	}
	if failed == nil {
		return nil
	}
	return &cli.ExitError{Code: cli.ExitWorse, Err: fmt.Errorf("%d of %d thresholds are not kept\n  %s", len(failed), len(verdicts), strings.Join(failed, "\n  "))}
}
