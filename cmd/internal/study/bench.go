package study

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/internal/inputfile"
	"github.com/quartet-sched/quartet/internal/interrupt"
	"github.com/quartet-sched/quartet/lab/report"
	"github.com/quartet-sched/quartet/lab/study"
)

// benchFlags are the flags of bench.
type benchFlags struct {
	files, sets []string
	schedulers  []string
	workloads   []string
	loads       []string
	seeds       int
	baseline    string
	unequal     bool
	name        string
	out         string
	workers     int
	shard       string
	engine      engineFlags
}

func (a *app) benchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench [STUDY]",
		Short: "Run a matrix of compositions over workloads, loads and seeds, and compare them",
		Long: `Runs every cell of a study: each item of every axis, with each seed or window. All schedulers see
the same jobs and the same random numbers, so that they are compared in pairs.

Finished runs are kept: the same study again runs only what is new, and an interrupted one
resumes. It writes study.yaml, runs.csv, jobs.csv.gz, stats.csv, warnings.csv and report.html into a
folder named after the study; docs/studies.md defines every column.

STUDY is a file, "-" for standard input, the folder of a study, or one that comes with Quartet:
` + "  " + strings.Join(configs.StudyNames(), ", ") + `.

Exit codes: 0 done, 1 some runs failed, 2 wrong usage or study, 3 some runs are missing,
130 interrupted.`,
		Example: `  quartet bench study.yaml
  quartet bench --scheduler fifo,srtf,mixed.yaml --workload default,jobs.csv --load 0.5,1 --seeds 10
  quartet bench study.yaml --shard 1/4
  quartet bench estimates
  quartet bench merge studies/five /mnt/other/studies/five`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			names := slices.DeleteFunc(configs.StudyNames(), func(name string) bool { return !strings.HasPrefix(name, typed) })
			return names, cobra.ShellCompDirectiveDefault
		},
		RunE: func(c *cobra.Command, args []string) error {
			s, err := f.study(c.Context(), a, args)
			if err != nil {
				return err
			}
			return f.execute(c.Context(), a, s, args)
		},
	}
	a.RegisterPluginDirs(c)
	flags := c.Flags()
	flags.StringArrayVarP(&f.files, "file", "f", nil, "config file that every run begins with, or name of an embedded config; may be repeated (default: the embedded default.yaml)")
	flags.StringArrayVar(&f.sets, "set", nil, "change one value of the config of every run; may be repeated")
	flags.StringSliceVar(&f.schedulers, "scheduler", nil, "types of allocation, or config files, to compare; the first is the baseline")
	flags.StringSliceVar(&f.workloads, "workload", nil, `workloads: "default" for that of the config, traces in CSV, config files, or types`)
	flags.StringSliceVar(&f.loads, "load", nil, "factors of the load, such as 0.5,1")
	flags.IntVar(&f.seeds, "seeds", 1, "seeds of each cell, from 1 on")
	flags.BoolVar(&f.unequal, "unequal-inputs", false, "compare also schedulers whose config has other jobs than that of the baseline")
	flags.StringVar(&f.baseline, "baseline", "", "scheduler that the others are compared with, instead of the first")
	flags.StringVar(&f.name, "name", "", "name of the study, instead of that of its file")
	flags.StringVar(&f.out, "out", "studies", "folder of studies; each has a folder named after it")
	flags.IntVarP(&f.workers, "jobs", "j", runtime.GOMAXPROCS(0), "runs at a time")
	flags.StringVar(&f.shard, "shard", "", "run one part of the study only, such as 1/4, and write no tables")
	f.engine.register(a, c)
	c.AddCommand(a.benchMergeCommand())
	return c
}

// study reads the study file, or makes a study of the flags.
func (f *benchFlags) study(ctx context.Context, a *app, args []string) (*study.Study, error) {
	if f.workers < 1 {
		return nil, cli.Problem("-j", fmt.Sprintf("must be at least 1, got %d", f.workers), "")
	}
	if len(args) == 0 {
		return f.small()
	}
	if len(f.schedulers)+len(f.workloads)+len(f.loads)+len(f.files)+len(f.sets) > 0 || f.baseline != "" || f.seeds != 1 || f.unequal {
		return nil, cli.Problem(args[0], "a study file says what is compared", "leave out --scheduler, --workload, --load, --seeds, --baseline, --unequal-inputs, -f and --set")
	}
	if args[0] == "-" && f.engine.on != "" {
		return nil, cli.Problem("--on", "shards are of a study file, and this one is standard input", "write it to a file")
	}
	return a.readStudy(ctx, args[0], f.name)
}

// readStudy reads a study file, the one in the folder of a study, or where there is neither the embedded study of that name; "-" is
// standard input, as if it were a file where the process runs.
func (a *app) readStudy(ctx context.Context, path, name string) (*study.Study, error) {
	named, place := path, ""
	if info, err := os.Stat(path); err == nil && info.IsDir() && path != "-" {
		path = filepath.Join(path, study.StudyFile)
	}
	var text []byte
	var err error
	if path == "-" {
		path = "stdin"
		text, err = a.ReadStdin(ctx)
	} else {
		text, err = interrupt.Call(ctx, func() ([]byte, error) { return inputfile.Read(path, inputfile.Document) })
	}
	if errors.Is(err, fs.ErrNotExist) {
		if embedded, missing := configs.Study(named); missing == nil {
			text, err, place = embedded, nil, "(built-in) studies/"
			path = strings.TrimSuffix(filepath.Base(named), ".yaml") + ".yaml"
		}
	}
	if pathError, ok := errors.AsType[*os.PathError](err); ok {
		hint := ""
		if errors.Is(err, fs.ErrNotExist) {
			hint = studyHint(named)
		}
		return nil, cli.Problem(path, "cannot read the study: "+pathError.Err.Error(), hint)
	} else if err != nil {
		return nil, err
	}
	s, err := study.Parse(place+path, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), text)
	if err != nil {
		return nil, err
	}
	if name != "" {
		if err := s.Rename(name); err != nil {
			return nil, cli.Problem("--name", err.Error(), "")
		}
	}
	if place == "" {
		s.Locate(filepath.Dir(path))
	}
	return s, nil
}

// studyHint names embedded studies where a name may have been meant to be one of theirs.
func studyHint(name string) string {
	short := strings.TrimSuffix(strings.TrimPrefix(name, "studies/"), ".yaml")
	if short != name && core.Nearest(short, configs.StudyNames()) == "" || strings.ContainsRune(short, filepath.Separator) {
		return ""
	}
	return core.SuggestHint(short, "embedded studies", configs.StudyNames())
}

// small is the study of the flags.
func (f *benchFlags) small() (*study.Study, error) {
	if len(f.schedulers) == 0 {
		return nil, cli.Problem("--scheduler", "says what to compare", "for example --scheduler fifo,srtf, or give a study file")
	}
	b := study.Builder{Name: f.name, Base: f.files, Sets: f.sets, Seeds: f.seeds, Baseline: f.baseline, UnequalInputs: f.unequal}
	if b.Name == "" {
		b.Name = "bench"
	}
	b.Axis("--scheduler", "scheduler", f.schedulers)
	b.Axis("--workload", "workload", f.workloads)
	b.Axis("--load", "load", f.loads)
	return b.Study()
}

// studyOptions are what a study of this program is run with.
func (a *app) studyOptions(ctx context.Context, dir string, workers int) (study.Options, error) {
	build, err := buildIdentity()
	if err != nil {
		return study.Options{}, err
	}
	var env cli.Environment
	o := study.Options{
		Catalog: a.Catalog(), Dir: dir, Workers: workers, Build: build, Log: a.Logger(),
		Config: configs.Options{Env: env.Lookup},
		Environment: func(ctx context.Context) study.Environment {
			own := a.InSilence()
			return study.Environment{
				Outside: own.Outside(ctx), Plugins: own.Plugins(),
				Close: func() error { own.ClosePlugins(); return nil },
			}
		},
	}
	if !a.Quiet {
		o.Progress = a.studyProgress()
	}
	return o, nil
}

// studyProgress says how many runs ended and how long the others may take, on one line of a terminal.
func (a *app) studyProgress() func(done, total int) {
	if !cli.IsTerminal(a.Stderr) {
		return nil
	}
	started, drawn := time.Now(), time.Time{}
	return func(done, total int) {
		now := time.Now()
		if done < total && now.Sub(drawn) < cli.RedrawEvery {
			return
		}
		drawn = now
		left := time.Duration(float64(now.Sub(started)) / float64(done) * float64(total-done))
		fmt.Fprintf(a.Stderr, "\r\x1b[K%d of %d runs, %s left", done, total, render.Span(left.Seconds()))
		if done == total {
			fmt.Fprint(a.Stderr, "\r\x1b[K")
		}
	}
}

// buildIdentity identifies this program: by its commit or, where it was built from none, by its content.
func buildIdentity() (string, error) {
	b := cli.ReadBuild()
	if b.Commit != "unknown" && !strings.HasSuffix(b.Commit, "-modified") {
		return b.Commit + " " + b.Go, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := inputfile.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (f *benchFlags) execute(ctx context.Context, a *app, s *study.Study, args []string) error {
	dir := filepath.Join(f.out, s.Name)
	if f.engine.kube.Meant() && f.engine.on == "" {
		return cli.Problem("--context, --kubeconfig", "are for --on kubernetes", "add it")
	}
	if f.engine.on != "" {
		return f.engine.submit(ctx, a, s, dir, args, f.name != "")
	}
	o, err := a.studyOptions(ctx, dir, f.workers)
	if err != nil {
		return err
	}
	if o.Shard, o.Shards, err = parseShard(f.shard); err != nil {
		return err
	}
	r, err := study.Execute(ctx, s, o)
	if r == nil {
		return err
	}
	if o.Shards <= 1 {
		err = a.showStudy(r, dir, err)
	}
	return a.studyVerdict(r, dir, o.Shards > 1, err)
}

// parseShard reads a shard such as 1/4.
func parseShard(text string) (shard, shards int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	first, second, ok := strings.Cut(text, "/")
	shard, firstErr := strconv.Atoi(first)
	shards, secondErr := strconv.Atoi(second)
	if !ok || firstErr != nil || secondErr != nil || shard < 1 || shard > shards {
		return 0, 0, cli.Problem("--shard", fmt.Sprintf("%q is no part of a study", text), "write 1/4 to 4/4 for four parts")
	}
	return shard, shards, nil
}

// studyVerdict says what a study came to, and is the error that it ends with.
func (a *app) studyVerdict(r *study.Result, dir string, part bool, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return &cli.ExitError{Code: cli.ExitInterrupted, Err: fmt.Errorf("interrupted: %d of %d runs are kept in %s; the same command resumes it", len(r.Rows)-r.Missing, len(r.Rows), dir)}
	case err != nil:
		return err
	case part:
		a.Note("%s (%d reused): join the shards with \"%s\"", render.Count(r.Ran+r.Reused, "run"), r.Reused, study.Shards{Dir: dir}.Join())
		if r.Failed > 0 {
			return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("runs that failed: %d", r.Failed)}
		}
		return nil
	}
	of := ""
	if r.Missing > 0 {
		of = fmt.Sprintf("%d of ", len(r.Rows)-r.Missing)
	}
	a.Note("wrote %s: %s%s (%d reused)", dir, of, render.Count(len(r.Rows), "run"), r.Reused)
	switch {
	case !r.Known:
		a.Note("the interval of %s is not known in every cell after %s: a value of zero, jobs that did not complete and fewer than %d seeds leave none",
			r.Study.Seeds.Until.Metric, render.Count(r.Looks, "look"), stats.MinSample)
	case !r.Narrow:
		a.Note("the intervals are wider than was asked for after %s", render.Count(r.Looks, "look"))
	}
	if r.Failed > 0 {
		return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("runs that failed: %d of %d; %s says why", r.Failed, len(r.Rows), filepath.Join(dir, study.WarningsFile))}
	}
	if r.Missing > 0 {
		return &cli.ExitError{Code: cli.ExitIncomplete, Err: fmt.Errorf("runs that are missing: %d of %d", r.Missing, len(r.Rows))}
	}
	return nil
}

// showStudy writes the page of a study and prints its comparisons. One that was interrupted, as err says, has a page of what was
// run until then, and prints nothing; so does one of which every run failed.
func (a *app) showStudy(r *study.Result, dir string, err error) error {
	path := filepath.Join(dir, reportFile)
	d, pageErr := report.Read(dir, nil)
	if pageErr == nil {
		var page bytes.Buffer
		if pageErr = d.Write(&page); pageErr == nil {
			pageErr = writeWhole(path, page.Bytes())
		}
	}
	if err = errors.Join(err, pageErr); err == nil && r.Failed < len(r.Rows) {
		err = a.printStudy(r)
	}
	if pageErr == nil {
		a.Note("report: %s", path)
	}
	return err
}

// printStudy prints the comparisons that pool most.
func (a *app) printStudy(r *study.Result) error {
	if a.Format == render.JSON || a.Format == render.YAML || a.Format == render.CSV {
		return studyData(r).Write(a.Stdout, a.Format)
	}
	s := r.Study
	compared := s.Axes[s.Compared].Name
	t := render.Table{Columns: []render.Column{{Name: "metric"}, {Name: compared}}}
	if s.Baseline >= 0 {
		t.Columns = append(t.Columns, render.Column{Name: "n", Numeric: true}, render.Column{Name: "baseline", Numeric: true})
	}
	t.Columns = append(t.Columns, render.Column{Name: "mean", Numeric: true})
	if s.Baseline >= 0 {
		t.Columns = append(t.Columns, render.Column{Name: "change", Numeric: true}, render.Column{Name: "interval"})
	}
	otherJobs, left := false, false
	for _, c := range r.Pooled() {
		left = left || c.LeftOut > 0
		otherJobs = otherJobs || c.OtherJobs
		row := []any{c.Metric, s.Axes[s.Compared].Items[c.Items[s.Compared]].Name}
		if s.Baseline >= 0 {
			row = append(row, c.N, amountText(c.Metric, c.BaselineMean))
		}
		row = append(row, amountText(c.Metric, c.Mean))
		if s.Baseline >= 0 {
			change, interval := changeText(c)
			if c.OtherJobs {
				interval = otherJobsText(s, c)
			}
			row = append(row, change, interval)
		}
		t.Rows = append(t.Rows, row)
	}
	if otherJobs && !slices.Contains(s.Metrics, study.RestrictedMean) {
		a.Note("jobs that did not complete are counted by %s: name it in the metrics of a study file", study.RestrictedMean)
	}
	if left {
		a.Note("workloads with a run that is missing, failed or has no value are left out with all their runs: left_out of %s counts them", study.StatsFile)
	}
	return t.Write(a.Stdout, a.Format)
}

// metricText is a number of a summary with four digits.
func metricText(x float64) string {
	if x != x {
		return ""
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// studyData is the same as numbers: changes and intervals are parts of the baseline.
func studyData(r *study.Result) render.Table {
	s := r.Study
	t := render.Table{Columns: []render.Column{{Name: "metric"}, {Name: s.Axes[s.Compared].Name}}}
	for _, name := range []string{"n", "baseline_mean", "mean", "change", "low", "high", "level", "method"} {
		t.Columns = append(t.Columns, render.Column{Name: name})
	}
	for _, c := range r.Pooled() {
		between, change := c.Interval(), math.NaN()
		if c.Known {
			change = c.Change
		}
		t.Rows = append(t.Rows, []any{
			c.Metric, s.Axes[s.Compared].Items[c.Items[s.Compared]].Name, c.N, c.BaselineMean, c.Mean, change, between.Low, between.High, c.Level, c.Method,
		})
	}
	return t
}

// changeText is a change with its interval, and "~" for one that may as well be none.
func changeText(c *study.Comparison) (change, interval string) {
	if !c.Known {
		return "", ""
	}
	percent := func(x float64) string { return fmt.Sprintf("%+.1f %%", 100*x) }
	between := c.Interval()
	if between.Known() {
		if interval = percent(between.Low) + " to " + percent(between.High); c.Method == stats.MethodBlocks {
			interval += ", within one trace"
		}
		if level := stats.LevelText(c.Level); level != "95" {
			interval += ", at " + level + " %"
		}
	}
	switch {
	case c.Equal:
		return "=", ""
	case between.Known() && between.Contains(0):
		return "~ " + percent(c.Change), interval
	}
	return percent(c.Change), interval
}

// otherJobsText says why what is of the jobs that completed is not compared.
func otherJobsText(s *study.Study, c *study.Comparison) string {
	items := s.Axes[s.Compared].Items
	var left []string
	for _, of := range []struct{ jobs, item int }{{c.NotCompleted, c.Items[s.Compared]}, {c.BaselineNotCompleted, s.Baseline}} {
		if of.jobs > 0 {
			left = append(left, fmt.Sprintf("%s of %s", render.Count(of.jobs, "job"), items[of.item].Name))
		}
	}
	return "not compared: " + strings.Join(left, " and ") + " did not complete"
}

func (a *app) benchMergeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "merge DIR [FROM...]",
		Short: "Join the shards of a study and write its tables",
		Long: `Takes what the folders FROM keep of the runs of the study in DIR, and writes the tables and the page of DIR.
Runs whose input file is here with another content count as missing, and runs that read one file with two
contents are refused, as is a folder that keeps runs of other studies only. It runs nothing: it ends with 3 when runs are missing.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "-" {
				return cli.Problem("-", "is no folder of a study", "")
			}
			s, err := a.readStudy(c.Context(), args[0], "")
			if err != nil {
				return err
			}
			for _, folder := range args[1:] {
				if info, err := os.Stat(folder); err != nil || !info.IsDir() {
					return cli.Problem(folder, "is no folder of a study", "")
				}
			}
			o, err := a.studyOptions(c.Context(), args[0], runtime.GOMAXPROCS(0))
			if err != nil {
				return err
			}
			r, err := study.Merge(c.Context(), s, o, args[1:])
			if r == nil {
				return err
			}
			return a.studyVerdict(r, args[0], false, a.showStudy(r, args[0], err))
		},
	}
}
