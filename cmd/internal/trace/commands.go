package trace

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/outcome"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/core/workload/exchange"
	"github.com/quartet-sched/quartet/core/workload/generators"
)

func (a *app) traceCommand() *cobra.Command {
	return cli.Group("trace", "Describe, convert and generate workloads",
		a.traceInfoCommand(), a.traceImportCommand(), a.traceConvertCommand(), a.traceGenerateCommand(),
		a.traceSliceCommand(), a.traceScaleCommand(), a.traceCalibrateCommand(), a.traceNodesCommand())
}

// traceFlags choose a workload: that of a config, or one by type and settings.
type traceFlags struct {
	files []string
	kind  string
	sets  []string
	seed  uint64

	sampling []*sampleFlag
}

func (f *traceFlags) register(c *cobra.Command) {
	var types []string
	for _, source := range quartet.Builtins().Workload {
		types = append(types, source.Type)
	}
	c.Flags().StringArrayVarP(&f.files, "file", "f", nil, "take the workload of this config; may be repeated (default: the embedded default.yaml)")
	c.Flags().StringVarP(&f.kind, "type", "t", "", "type of the workload, instead of a config")
	f.registerSettings(c)
	c.MarkFlagsMutuallyExclusive("file", "type")
	cli.CompleteConfigs(c)
	cli.MustComplete(c, "type", types)
}

func (f *traceFlags) registerSettings(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.sets, "set", nil, "change a setting of the workload, such as path=trace.csv; may be repeated")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "seed of a generated workload")
}

// load returns the workload, and the config it stands in.
func (f *traceFlags) load(c *cobra.Command, a *app) (*workload.Workload, *configs.Config, error) {
	var sets []string
	if f.kind != "" {
		sets = append(sets, fmt.Sprintf("workload={type: %q}", f.kind))
	}
	for _, set := range f.sets {
		if !strings.Contains(set, "=") {
			return nil, nil, cli.Problem("--set", fmt.Sprintf("%q is not of the form setting=value", set), "for example jobs=100")
		}
		sets = append(sets, workloadConfig+set)
	}
	if c.Flags().Changed("seed") {
		sets = append(sets, "seed="+strconv.FormatUint(f.seed, 10))
	}
	config, err := a.LoadConfig(c.Context(), configs.Options{Files: f.files, Sets: sets, Flags: f.sampleSets(c)})
	if err != nil {
		return nil, nil, asGiven(err)
	}
	w, err := quartet.LoadWorkload(c.Context(), config, a.Logger())
	if err == nil && w.React != nil {
		err = cli.Problem("workload", fmt.Sprintf("%q has no list of jobs: it submits them by what becomes of earlier ones", config.Workload.Factory.Type), "simulate it, and read jobs.csv")
	}
	return w, config, asGiven(err)
}

// workloadConfig begins the paths of the settings that --set gives here without it.
const workloadConfig = "workload.config."

// asGiven names the flags of these commands in problems with what they gave.
func asGiven(err error) error {
	ds, ok := errors.AsType[core.Diagnostics](err)
	if !ok {
		return err
	}
	for i := range ds {
		switch d := &ds[i]; {
		case d.Position.File != "--set":
			if strings.HasPrefix(d.Position.File, "--") {
				d.Path = "" // the flag says it
			}
		case d.Path == "workload.type":
			d.Position.File, d.Path = "--type", ""
		default:
			d.Path = strings.TrimPrefix(d.Path, workloadConfig)
		}
	}
	return ds
}

func (a *app) traceInfoCommand() *cobra.Command {
	var f traceFlags
	var devices int
	c := &cobra.Command{
		Use:   "info",
		Short: "Describe a workload: jobs, span, sizes, durations, load",
		Example: `  quartet trace info --type philly --set path=philly.csv.gz --devices 2400
  quartet trace info -f my.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("devices") && devices < 1 {
				return cli.Problem("--devices", fmt.Sprintf("%d is not positive", devices), "")
			}
			w, config, err := f.load(c, a)
			if err != nil {
				return err
			}
			if devices > 0 || f.kind != "" {
				return describeTrace(w, devices, nil).write(a)
			}
			cluster := config.BuildCluster()
			return describeTrace(w, cluster.Devices(), cluster).write(a)
		},
	}
	f.register(c)
	c.Flags().IntVar(&devices, "devices", 0, "devices to compute the load on (default: those of the config)")
	return c
}

func (a *app) traceConvertCommand() *cobra.Command {
	var f traceFlags
	to := exchange.CSV
	c := &cobra.Command{
		Use:   "convert",
		Short: "Write a workload as a trace in Quartet's own CSV, in SWF or for Batsim",
		Long: `Writes the trace to stdout. docs/trace-format.md defines the columns, docs/traces.md says what the other
formats cannot hold. Only jobs of known duration can be written: those of a pollux or sia workload are refused.`,
		Example: `  quartet trace convert --type philly --set path=philly.csv.gz > philly.csv
  quartet trace convert --type csv --set path=trace.csv --to swf > trace.swf`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !slices.Contains(written, to) {
				return cli.Problem("--to", fmt.Sprintf("unknown format %q", to), core.SuggestHint(to, "formats", written))
			}
			if to == exchange.CSV {
				return a.writeTrace(c, &f)
			}
			return a.exportTrace(c, &f, to)
		},
	}
	f.register(c)
	c.Flags().StringVar(&to, "to", to, "format to write: "+strings.Join(written, ", "))
	cli.MustComplete(c, "to", written)
	return c
}

func (a *app) traceGenerateCommand() *cobra.Command {
	f := traceFlags{kind: "generated"}
	var like likeFlags
	c := &cobra.Command{
		Use:   "generate",
		Short: "Generate a trace in Quartet's own CSV",
		Long: `Writes the trace to stdout. "quartet policy describe workload/generated" lists the settings. With --like,
jobs are drawn as a known cluster got them, in size, duration, hour of the week and tenant; its settings are
jobs and span. docs/traces.md says what was fitted to what.`,
		Example: `  quartet trace generate --set jobs=1000 --set span=24h --seed 7 > trace.csv
  quartet trace generate --like helios --set jobs=5000 --compare mine.csv > trace.csv`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if like.like == "" {
				if like.compare != "" {
					return cli.Problem("--compare", "needs --like", "valid clusters: "+strings.Join(generators.Names, ", "))
				}
				return a.writeTrace(c, &f)
			}
			if err := a.RefuseOtherFormats(c, "CSV", render.CSV); err != nil {
				return err
			}
			return like.write(c.Context(), a, f.sets, f.seed)
		},
	}
	f.registerSettings(c)
	c.Flags().StringVar(&like.like, "like", "", "cluster that the trace resembles: "+strings.Join(generators.Names, ", "))
	c.Flags().StringVar(&like.compare, "compare", "", "trace in Quartet's own CSV to print the distances to, on stderr")
	cli.MustComplete(c, "like", generators.Names)
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		unknown, ok := errors.AsType[*pflag.NotExistError](err)
		if !ok {
			return cli.FlagError(c, err)
		}
		return settingError(err, unknown.GetSpecifiedName())
	})
	return c
}

// settingError says how the settings of a generated workload are given when one is taken for a flag.
func settingError(err error, name string) error {
	for _, source := range quartet.Builtins().Workload {
		if source.Type != "generated" {
			continue
		}
		for _, field := range source.Fields() {
			if field.Name == name {
				return fmt.Errorf("%w; it is a setting: --set %s=%s", err, name, cmp.Or(field.Default, "…"))
			}
		}
	}
	return err
}

func (a *app) writeTrace(c *cobra.Command, f *traceFlags) error {
	if err := a.RefuseOtherFormats(c, "CSV", render.CSV); err != nil {
		return err
	}
	w, _, err := f.load(c, a)
	if err != nil {
		return err
	}
	return workload.WriteCSV(a.Stdout, w)
}

// written lists the formats that traces are written in.
var written = []string{exchange.CSV, exchange.SWF, exchange.Batsim}

// exportTrace writes a workload in the format of another system, and notes what that cannot hold.
func (a *app) exportTrace(c *cobra.Command, f *traceFlags, to string) error {
	if err := a.RefuseOtherFormats(c, to); err != nil {
		return err
	}
	w, config, err := f.load(c, a)
	if err != nil {
		return err
	}
	trace, err := exchange.FromWorkload(w)
	if err != nil {
		return err
	}
	var losses []exchange.Loss
	if to == exchange.SWF {
		losses, err = exchange.WriteSWF(a.Stdout, trace)
	} else {
		devices := 0
		if f.kind == "" {
			devices = config.BuildCluster().Devices()
		}
		losses, err = exchange.WriteBatsim(a.Stdout, trace, devices)
	}
	for _, l := range losses {
		a.Note("%s of %d jobs", l.What, l.Jobs)
	}
	return err
}

// traceInfo describes a workload.
type traceInfo struct {
	Jobs            int                  `json:"jobs"`
	FirstSubmit     metrics.Number       `json:"first_submit_seconds"`
	LastSubmit      metrics.Number       `json:"last_submit_seconds"`
	Requested       []requestCount       `json:"requested"`
	DurationSeconds metrics.Distribution `json:"duration_seconds"`
	GPUHours        metrics.Number       `json:"gpu_hours"`
	Devices         int                  `json:"devices"`
	LoadRatio       metrics.Number       `json:"load_ratio"`
}

// requestCount is how many jobs ask for so many replicas.
type requestCount struct {
	Replicas int `json:"replicas"`
	Jobs     int `json:"jobs"`
}

// describeTrace leaves durations unknown for jobs whose length is not declared in seconds, and GPU hours and load where there is
// no cluster either, where jobs that ask for parts of devices count as those. The load is the device-time that arrives over the device-time there is between the first and the last
// submission.
func describeTrace(w *workload.Workload, devices int, cluster *core.Cluster) traceInfo {
	info := traceInfo{Jobs: len(w.Jobs), Devices: devices, FirstSubmit: metrics.Number(math.NaN()), LastSubmit: metrics.Number(math.NaN())}
	if len(w.Jobs) > 0 {
		info.FirstSubmit = metrics.Number(w.Jobs[0].Spec.SubmitSeconds)
		info.LastSubmit = metrics.Number(w.Jobs[len(w.Jobs)-1].Spec.SubmitSeconds)
	}
	counts := map[int]int{}
	var durations []float64
	deviceSeconds := 0.0
	for i := range w.Jobs {
		spec := &w.Jobs[i].Spec
		counts[spec.Requested]++
		if seconds, known := metrics.ExclusiveSeconds(spec); known {
			durations = append(durations, seconds)
			deviceSeconds += seconds * float64(spec.Requested) * spec.Part()
		}
	}
	for replicas, jobs := range counts {
		info.Requested = append(info.Requested, requestCount{replicas, jobs})
	}
	slices.SortFunc(info.Requested, func(a, b requestCount) int { return a.Replicas - b.Replicas })
	switch {
	case cluster != nil:
		deviceSeconds = workload.DeviceSeconds(w, cluster)
	case len(durations) < len(w.Jobs):
		deviceSeconds = math.NaN()
	}
	info.DurationSeconds = metrics.Describe(durations)
	info.GPUHours = metrics.Number(deviceSeconds / 3600)
	info.LoadRatio = metrics.Number(deviceSeconds / (float64(devices) * float64(info.LastSubmit-info.FirstSubmit)))
	return info
}

func (t traceInfo) write(a *app) error {
	switch a.Format {
	case render.JSON:
		return render.Document(a.Stdout, t)
	case render.CSV:
		var document bytes.Buffer
		if err := render.Document(&document, t); err != nil {
			return err
		}
		return outcome.PrintNumbers(a.App, document.Bytes())
	}
	table := render.Table{Columns: []render.Column{{Name: "what"}, {Name: "value"}}}
	add := func(name, value string) { table.Rows = append(table.Rows, []any{name, value}) }
	add("jobs", strconv.Itoa(t.Jobs))
	add("span", render.Span(float64(t.LastSubmit-t.FirstSubmit)))
	for _, r := range t.Requested {
		add(fmt.Sprintf("jobs on %d", r.Replicas), fmt.Sprintf("%d (%s)", r.Jobs, render.Percent(float64(r.Jobs)/float64(t.Jobs))))
	}
	d := t.DurationSeconds
	for _, q := range []struct {
		name  string
		value metrics.Number
	}{{"mean", d.Mean}, {"p50", d.P50}, {"p90", d.P90}, {"p99", d.P99}, {"longest", d.Max}} {
		add("duration, "+q.name, render.Span(float64(q.value)))
	}
	add("GPU time", render.DeviceTime(float64(t.GPUHours)*3600))
	if t.Devices > 0 {
		add("load on "+strconv.Itoa(t.Devices)+" devices", render.Percent(float64(t.LoadRatio)))
	}
	return table.Write(a.Stdout, a.Format)
}
