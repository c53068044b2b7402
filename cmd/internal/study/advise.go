package study

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/inputfile"
	"github.com/quartet-sched/quartet/lab/advise"
	"github.com/quartet-sched/quartet/lab/study"
)

// The files that advice leaves beside those of its study.
const (
	advisedConfig = "advised.yaml"
	adviceFile    = "advice.json"
)

type adviseFlags struct {
	cli.ConfigFlags
	trace, from string
	goal        string
	limits      []string
	candidates  []string
	windows     int
	jobs        int
	firstJob    int
	seed        uint64
	estimate    string
	out         string
	workers     int
}

func (a *app) adviseCommand() *cobra.Command {
	var f adviseFlags
	c := &cobra.Command{
		Use:   "advise",
		Short: "Choose a composition for a cluster and a trace, and write its config",
		Long: `Compares compositions of built-in policies on windows of a trace, on the cluster, the rounds and the
backend of a config: all of them on one or a few windows, the better ones on more. The finalists are judged
on held-out windows, of which nothing was seen before.

Policies know of the work of jobs what the trace says: its limits or estimates, or nothing. They do not
know the truth, unless --estimate declared asks for it.

It writes the config of the chosen composition, advised.yaml, with the evidence as comments, and the
study it rests on (runs.csv, stats.csv) into a folder. The same advice again runs only what is new.
docs/advise.md says how it chooses.

Exit codes: 0 done, 1 every run failed, 2 wrong usage or config, 3 the chosen composition does not keep a
limit, 130 interrupted.`,
		Example: `  quartet advise -f cluster.yaml --trace trace.csv
  quartet advise -f cluster.yaml --trace philly.csv.gz --from philly --goal p99 --limit 'utilization_ratio>0.6'
  quartet advise -f cluster.yaml --trace trace.csv --candidates fifo-backfill,las,tiresias --estimate limit`,
		Args: cli.ByFlag,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), a) },
	}
	f.Register(a.App, c)
	flags := c.Flags()
	flags.StringVar(&f.trace, "trace", "", "trace to choose on (default: the workload of the config)")
	flags.StringVar(&f.from, "from", "csv", "type of workload that reads the trace: "+strings.Join(traceTypes(), ", "))
	flags.StringVar(&f.goal, "goal", "mean", "what to minimise: "+goalList())
	flags.StringArrayVar(&f.limits, "limit", nil, "what must hold in every window, such as rho_max<2; may be repeated")
	flags.StringSliceVar(&f.candidates, "candidates", nil, "candidates by name, config files over the others, or a study file whose schedulers they are, simplest first (default: those that fit the cluster and the trace)")
	flags.IntVar(&f.windows, "windows", 10, "windows to choose on, and as many to judge on")
	flags.IntVar(&f.jobs, "jobs", 300, "jobs of a window")
	flags.IntVar(&f.firstJob, "first-job", 0, "rank of the first job that belongs to a window")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of every run")
	flags.StringVar(&f.estimate, "estimate", "", "what policies know about the work of a job, as in a config: declared (the truth), limit, estimate, none, or {source: noisy, sigma: 0.5} (default: what the config says, or what the trace says)")
	flags.StringVar(&f.out, "out", "advice", "folder for the config and the evidence")
	flags.IntVarP(&f.workers, "workers", "j", runtime.GOMAXPROCS(0), "runs at a time")
	cli.MustComplete(c, "from", traceTypes())
	cli.MustComplete(c, "goal", advise.GoalNames())
	cli.MustComplete(c, "estimate", []string{"declared", "limit", "estimate", "none"})
	return c
}

func goalList() string {
	var list []string
	for _, g := range advise.Goals {
		list = append(list, fmt.Sprintf("%s (%s)", g.Name, g.Metric))
	}
	return strings.Join(list, ", ")
}

// traceTypes are the types of workload that need a path and nothing else, but for job files: commands cannot be simulated.
func traceTypes() []string {
	var types []string
	for _, source := range quartet.Builtins().Workload {
		var required []string
		for _, field := range source.Fields() {
			if field.Required {
				required = append(required, field.Name)
			}
		}
		if slices.Equal(required, []string{"path"}) && source.Type != "jobs" {
			types = append(types, source.Type)
		}
	}
	return types
}

func (f *adviseFlags) run(ctx context.Context, a *app) error {
	if err := f.Discover(a.App); err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	if o.Study, err = a.studyOptions(ctx, f.out, f.workers); err != nil {
		return err
	}
	advice, err := advise.Advise(ctx, o)
	if errors.Is(err, context.Canceled) {
		return &cli.ExitError{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted: what was run is kept in %s; the same command resumes it", f.out)}
	} else if err != nil {
		return err
	}
	config, document := filepath.Join(f.out, advisedConfig), bytes.Buffer{}
	if err := render.Document(&document, advice); err != nil {
		return err
	}
	if err := errors.Join(writeWhole(config, advice.Config), writeWhole(filepath.Join(f.out, adviceFile), document.Bytes())); err != nil {
		return err
	}
	if err := a.printAdvice(advice); err != nil {
		return err
	}
	for _, note := range advice.Notes {
		a.Note("note: %s", note)
	}
	a.Note("wrote %s and its evidence: %s (%d reused)", config, render.Count(advice.Runs, "run"), advice.Reused)
	if !advice.LimitsHold() {
		nearest := advice.Nearest()
		return &cli.ExitError{Code: cli.ExitIncomplete, Err: fmt.Errorf("%s does not keep every limit; the nearest of the finalists is %s: %s", advice.Chosen, nearest.Name, limitText(nearest.Limits, advice.Windows))}
	}
	return nil
}

// options checks the flags, all of them.
func (f *adviseFlags) options() (advise.Options, error) {
	var found core.Diagnostics
	wrong := func(flag string, err error) {
		if ds, ok := errors.AsType[core.Diagnostics](err); ok {
			found = append(found, ds...)
		} else if err != nil {
			found = append(found, core.Diagnostic{Position: core.Position{File: flag}, Summary: err.Error()})
		}
	}
	o := advise.Options{Files: f.Files, Windows: f.windows, Jobs: f.jobs, FirstJob: f.firstJob, Seed: f.seed, Name: filepath.Base(f.out)}
	if len(o.Files) == 0 {
		o.Files = []string{"default.yaml"}
	}
	for flag, n := range map[string]int{"--windows": f.windows, "--jobs": f.jobs, "-j": f.workers} {
		if n < 1 {
			wrong(flag, fmt.Errorf("must be at least 1, got %d", n))
		}
	}
	if f.firstJob < 0 {
		wrong("--first-job", fmt.Errorf("must be at least 0, got %d", f.firstJob))
	}
	slices.SortFunc(found, func(a, b core.Diagnostic) int { return strings.Compare(a.Position.File, b.Position.File) })
	var err error
	o.Goal, err = advise.ParseGoal(f.goal)
	wrong("--goal", err)
	for _, text := range f.limits {
		limit, err := advise.ParseLimit(text)
		wrong("--limit", err)
		o.Limits = append(o.Limits, limit)
	}
	b := study.Builder{Name: "advice", Sets: f.Sets, Seeds: 1}
	s, err := b.Study()
	wrong("--set", err)
	o.Set = s.Set
	if !slices.Contains(traceTypes(), f.from) {
		wrong("--from", fmt.Errorf("unknown type %q of trace; %s; other logs become traces by \"quartet trace import\"", f.from, core.SuggestHint(f.from, "types", traceTypes())))
	} else if f.trace != "" {
		o.Trace.Set = []study.Setting{{Path: "workload", Value: map[string]any{"type": f.from, "config": map[string]any{"path": f.trace}}, At: core.Position{File: "--trace"}}}
	}
	if f.estimate != "" {
		o.Estimate, err = estimateValue(f.estimate)
		wrong("--estimate", err)
	}
	wrong("--candidates", f.choose(&o))
	return o, found.Err()
}

// estimateValue is the section estimate of a config, or a source alone.
func estimateValue(text string) (any, error) {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return nil, fmt.Errorf("%q is no estimate; write a source such as limit, or {source: noisy, sigma: 0.5}", text)
	}
	if source, ok := value.(string); ok {
		return map[string]any{"source": source}, nil
	}
	return value, nil
}

// choose reads the candidates: names of the default ones, config files, or a study file.
func (f *adviseFlags) choose(o *advise.Options) error {
	for _, value := range f.candidates {
		if !strings.HasSuffix(value, ".yaml") && !strings.HasSuffix(value, ".yml") {
			o.Named = append(o.Named, value)
			continue
		}
		text, err := inputfile.Read(value, inputfile.Document)
		var form struct {
			Axes map[string]any `yaml:"axes"`
		}
		if err != nil || yaml.Unmarshal(text, &form) != nil || form.Axes == nil {
			item, err := study.Short("scheduler", value, "")
			if err != nil {
				return err
			}
			item.At = core.Position{File: "--candidates"}
			o.Candidates = append(o.Candidates, item)
			continue
		}
		s, err := study.Parse(value, "candidates", text)
		if err != nil {
			return err
		}
		s.Locate(filepath.Dir(value))
		o.Candidates = append(o.Candidates, s.Axes[s.Compared].Items...)
	}
	if len(o.Named) > 0 && len(o.Candidates) > 0 {
		return errors.New("names of candidates and files of candidates do not go together")
	}
	return nil
}

// printAdvice prints the verdict and the candidates; in a format for programs, the candidates alone.
func (a *app) printAdvice(advice *advise.Advice) error {
	if a.Format == render.JSON {
		return render.Document(a.Stdout, advice)
	}
	if a.Format != render.CSV {
		verdict := render.Table{Columns: []render.Column{{Name: "what"}, {Name: "value"}}}
		add := func(what, value string) { verdict.Rows = append(verdict.Rows, []any{what, value}) }
		add("chosen", advice.Chosen)
		add("goal", fmt.Sprintf("least %s (%s)", advice.Goal.Name, advice.Goal.Metric))
		add("why", advice.Why)
		add("regret, held-out", advice.RegretText())
		if len(advice.NoDifference) > 0 {
			add("no difference", strings.Join(advice.NoDifference, ", "))
		}
		for _, l := range advice.Limits {
			add("limit", limitText([]advise.LimitResult{l}, advice.Windows))
		}
		add("known work", advice.Declared.String())
		add("runs", fmt.Sprintf("%d of %d of the full grid (%s): %d candidates, %d + %d windows of %d jobs", advice.Runs, advice.Grid,
			render.Percent(float64(advice.Runs)/float64(advice.Grid)), len(advice.Candidates), advice.Windows, advice.Windows, advice.Jobs))
		if err := verdict.Write(a.Stdout, a.Format); err != nil {
			return err
		}
		fmt.Fprintln(a.Stdout)
	}
	if len(advice.Left)+len(advice.Invalid) > 0 && a.Format == render.Text {
		a.Note("%s", othersText(len(advice.Left), len(advice.Invalid)))
	}
	return adviceTable(advice, a.Format == render.Text).Write(a.Stdout, a.Format)
}

// othersText says how many candidates the table of finalists leaves out, and how to list them.
func othersText(eliminated, invalid int) string {
	text := ""
	if eliminated > 0 {
		text = otherCandidates(eliminated) + " eliminated earlier"
	}
	switch {
	case invalid > 0 && text == "":
		text = otherCandidates(invalid) + " invalid here"
	case invalid > 0:
		text += fmt.Sprintf(" and %d invalid here", invalid)
	}
	return text + " (-o wide lists them)."
}

// otherCandidates is the subject of a sentence with its verb.
func otherCandidates(n int) string {
	if n == 1 {
		return "1 other candidate was"
	}
	return fmt.Sprintf("%d other candidates were", n)
}

func limitText(limits []advise.LimitResult, windows int) string {
	var list []string
	for _, l := range limits {
		held := "holds"
		if !l.Held {
			held = "does not hold"
		}
		list = append(list, fmt.Sprintf("%s %s: in %d of %d windows of choosing and %d of %d held out, at worst %.4g", l.Limit, held, l.Choosing, windows, l.HeldOut, windows, float64(l.Worst)))
	}
	return strings.Join(list, "; ")
}

// adviceTable lists the finalists by what they came to on held-out windows, then the others unless finalists
// alone are asked for.
func adviceTable(advice *advise.Advice, finalists bool) render.Table {
	t := render.Table{Columns: []render.Column{
		{Name: "composition"}, {Name: "windows", Numeric: true}, {Name: "mean", Numeric: true}, {Name: "change"}, {Name: "change_choosing"}, {Name: "remark"},
	}}
	for i := range advice.Finalists {
		f := &advice.Finalists[i]
		change, choosing, remark := f.HeldOut.Text(), f.Choosing.Text(), ""
		switch {
		case f.Name == advice.Chosen:
			change, choosing, remark = "", "", "chosen"
		case f.HeldOut.Undecided():
			remark = "too close to call"
		}
		if f.Lost > 0 {
			remark = strings.TrimPrefix(remark+"; "+render.Count(f.Lost, "job")+" did not complete", "; ")
		}
		t.Rows = append(t.Rows, []any{f.Name, f.Choosing.Windows + f.HeldOut.Windows, metricText(float64(f.Mean)), change, choosing, remark})
	}
	if finalists {
		return t
	}
	for _, l := range advice.Left {
		t.Rows = append(t.Rows, []any{l.Name, l.Windows, "", "", "", l.Reason})
	}
	for _, d := range advice.Invalid {
		t.Rows = append(t.Rows, []any{d.Name, 0, "", "", "", "not run: " + d.Reason})
	}
	return t
}
