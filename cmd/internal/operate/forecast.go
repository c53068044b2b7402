package operate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/twin"
)

// twinFlags say which run is simulated ahead, from which moment on, and how.
type twinFlags struct {
	*schedulerFlags
	runFlags
	at         time.Duration
	draws      int
	work       string
	arrivals   string
	rehearsals int
}

func (f *twinFlags) registerRehearsals(c *cobra.Command) {
	c.Flags().IntVar(&f.rehearsals, "rehearsals", 16, "how many forecasts of earlier moments of a simulation calibrate the intervals, and how close together they are for a running scheduler; 0 for none")
}

func (f *twinFlags) registerDraws(c *cobra.Command) {
	c.Flags().DurationVar(&f.at, "at", 0, "with -f, moment of the simulation, instead of its first round")
	c.Flags().IntVar(&f.draws, "draws", 0, "how many futures are simulated; 0 for 16, and less where jobs are very many")
	c.Flags().StringVar(&f.work, "work", twin.WorkDeclared, "how much work jobs are believed to have: declared, history, drawn")
	c.Flags().StringVar(&f.arrivals, "arrivals", twin.ArrivalsRecent, "jobs that are believed to arrive: recent, none")
	cli.MustComplete(c, "work", []string{twin.WorkDeclared, twin.WorkHistory, twin.WorkDrawn})
	cli.MustComplete(c, "arrivals", []string{twin.ArrivalsRecent, twin.ArrivalsNone})
}

// mostDraws bounds the futures that are simulated, and the moments of which forecasts are made.
const mostDraws = 1000

// forecasting is how the flags have it, and what is wrong with them.
func (f *twinFlags) forecasting(c *cobra.Command) (quartet.Forecasting, core.Diagnostics) {
	var found core.Diagnostics
	oneOf := func(flag, value string, valid ...string) {
		if !slices.Contains(valid, value) {
			found = append(found, core.Diagnostic{
				Position: core.Position{File: flag}, Summary: fmt.Sprintf("there is no %q", value), Hint: core.SuggestHint(value, "values", valid),
			})
		}
	}
	least := func(flag string, value, least int) {
		if value < least {
			found = append(found, core.Diagnostic{Position: core.Position{File: flag}, Summary: fmt.Sprintf("must be at least %d, got %d", least, value)})
		}
	}
	most := func(flag string, value int) {
		if value > mostDraws {
			found = append(found, core.Diagnostic{
				Position: core.Position{File: flag}, Summary: fmt.Sprintf("must be at most %d, got %d", mostDraws, value),
				Hint: "each is a simulation of its own, and intervals and means hardly change after some hundred",
			})
		}
	}
	oneOf("--work", f.work, twin.WorkDeclared, twin.WorkHistory, twin.WorkDrawn)
	oneOf("--arrivals", f.arrivals, twin.ArrivalsRecent, twin.ArrivalsNone)
	least("--draws", f.draws, 0)
	most("--draws", f.draws)
	least("--rehearsals", f.rehearsals, 0)
	most("--rehearsals", f.rehearsals)
	if f.at < 0 {
		found = append(found, core.Diagnostic{Position: core.Position{File: "--at"}, Summary: "must not be negative"})
	}
	if c.Flags().Changed("at") && len(f.Files) == 0 && !f.Meant() {
		found = append(found, core.Diagnostic{Position: core.Position{File: "--at"}, Summary: "is a moment of a simulation, only with -f", Hint: "a running scheduler is taken as it is now"})
	}
	if c.Flags().Changed("at") && f.Meant() {
		found = append(found, core.Diagnostic{Position: core.Position{File: "--at"}, Summary: "is a moment of a simulation", Hint: "a cluster is taken as it is now: leave it out"})
	}
	if f.at > 0 && f.jobs != "" {
		found = append(found, core.Diagnostic{Position: core.Position{File: "--at"}, Summary: "is a moment of a simulation, and --jobs is for a run that has not begun"})
	}
	return quartet.Forecasting{Model: twin.WorkloadModelOptions{Work: f.work, Arrivals: f.arrivals}, Draws: f.draws, Rehearsals: f.rehearsals}, found
}

// twinning is what is done with a twin.
type twinning struct {
	// named looks at the names of jobs and of nodes before anything is simulated; nil where they are not known. nil for nothing to look at.
	named func(jobs, nodes []string) error
	// do returns what is to be written of it.
	do func(t *quartet.Twin) (write func() error, err error)
}

// twin makes the twin that the flags name, and has something done with it.
func (a *app) twin(ctx context.Context, f *twinFlags, o quartet.Forecasting, by twinning) error {
	of := func(config *configs.Config, snapshot string) error { return a.twinOf(ctx, f, o, by, config, snapshot) }
	switch {
	case f.Meant():
		return f.with(ctx, func(client cluster.Orders) error {
			on, is := client.(cluster.Cluster)
			if !is {
				return a.withSnapshot(ctx, client, of)
			}
			config, err := a.clusterConfig(ctx, on, &f.KubeFlags, &f.runFlags)
			if err != nil {
				return err
			}
			return on.Reads(of(config, ""))
		})
	case len(f.Files) > 0 || f.jobs != "":
		load := f.load
		if f.jobs == "" {
			load = func(ctx context.Context, a *app) (*configs.Config, error) { return f.ConfigFlags.Load(ctx, a.App, "") }
		}
		config, err := load(ctx, a)
		if err != nil {
			return err
		}
		return of(config, "")
	case len(f.Sets) > 0:
		return cli.Problem("--set", "changes a config, only with -f, --jobs or --context", "the running scheduler has its own")
	}
	return f.with(ctx, func(client cluster.Orders) error {
		if by.named != nil {
			if err := by.named(namesNow(ctx, client)); err != nil {
				return err
			}
		}
		return a.withSnapshot(ctx, client, of)
	})
}

// twinOf makes the twin of a config, or of the run of a snapshot, and has something done with it.
func (a *app) twinOf(ctx context.Context, f *twinFlags, o quartet.Forecasting, by twinning, config *configs.Config, snapshot string) error {
	shown := a.StartSimulations()
	defer shown.Stop()
	o.Simulating = shown.Count
	c := &quartet.Composition{Config: config, Log: a.Logger()}
	if by.named != nil && snapshot == "" && !f.Meant() {
		jobs, nodes, err := namesOf(ctx, c)
		if err == nil {
			err = by.named(jobs, nodes)
		}
		if err != nil {
			return err
		}
	}
	t, err := f.open(ctx, c, snapshot, o)
	if err != nil {
		return err
	}
	write, err := by.do(t)
	if err != nil {
		return err
	}
	shown.Stop()
	return write()
}

// open makes the twin at the moment of --at, or of a snapshot.
func (f *twinFlags) open(ctx context.Context, c *quartet.Composition, snapshot string, o quartet.Forecasting) (*quartet.Twin, error) {
	if f.at > 0 {
		return c.TwinAt(ctx, f.at, o)
	}
	return c.Twin(ctx, snapshot, o)
}

// namesNow are the jobs that wait or run, and the nodes; nil where the scheduler does not answer.
func namesNow(ctx context.Context, client cluster.Orders) (jobs, nodes []string) {
	list, _, err := client.Jobs(ctx, false)
	if err != nil {
		return nil, nil // the next request reports it
	}
	jobs = []string{}
	for _, j := range list {
		if !comes(j) {
			jobs = append(jobs, j.GetName())
		}
	}
	if nodes, err = nodeNames(ctx, client); err != nil {
		return jobs, nil
	}
	return jobs, nodes
}

// namesOf are the jobs that a config has and the nodes that it begins with; nil where others may come.
func namesOf(ctx context.Context, c *quartet.Composition) (jobs, nodes []string, err error) {
	if c.Jobs, err = quartet.LoadWorkload(ctx, c.Config, c.Log); err != nil {
		return nil, nil, err
	}
	if !c.Jobs.Open && c.Jobs.React == nil {
		jobs = []string{}
		for i := range c.Jobs.Jobs {
			jobs = append(jobs, c.Jobs.Jobs[i].Spec.Name)
		}
	}
	simulator, simulated := c.Backend.Config.(*sim.Config)
	if cluster := c.BuildCluster(); simulated && len(simulator.JoiningNodes)+len(cluster.Pools) == 0 {
		nodes = []string{}
		for i := range cluster.Nodes {
			nodes = append(nodes, cluster.Nodes[i].Name)
		}
	}
	return jobs, nodes, nil
}

func (a *app) forecastCommand() *cobra.Command {
	f := twinFlags{schedulerFlags: &schedulerFlags{app: a}}
	c := &cobra.Command{
		Use:   "forecast [JOB…]",
		Short: "Show when jobs are expected to start and to end",
		Long: `Simulates the future of a run several times, from its present state on, with its own policies and with
what was learned so far: how long jobs are, how fast they run, how many more arrive. Each time is
shown with an 80 % interval, and with how many earlier intervals were right.

Without -f it asks the running scheduler for all that it knows, as plan does, and simulates in this
process. With -f it is about a simulation, at the moment that --at names: what lies ahead of it is
not looked up. With --context it reads a Kubernetes cluster, as plan does.`,
		Example: `  quartet forecast
  quartet forecast train-7 train-8 -o json
  quartet forecast -f my.yaml --at 6h
  quartet forecast --context prod`,
		RunE: func(c *cobra.Command, names []string) error {
			o, found := f.forecasting(c)
			if err := found.Err(); err != nil {
				return err
			}
			by := twinning{do: func(t *quartet.Twin) (func() error, error) {
				forecast, err := t.Forecast(c.Context(), f.draws)
				return func() error { return a.writeForecast(t, forecast, names) }, err
			}}
			if len(names) > 0 {
				by.named = func(jobs, _ []string) error {
					if jobs == nil {
						return nil
					}
					_, err := chosen(names, jobs)
					return err
				}
			}
			return a.twin(c.Context(), &f, o, by)
		},
	}
	f.ConfigFlags.Register(a.App, c)
	f.registerDraws(c)
	f.registerRehearsals(c)
	f.schedulerFlags.register(c)
	return c
}

// writeForecast writes what is expected of jobs; of all when none is named.
func (a *app) writeForecast(t *quartet.Twin, f *twin.Forecast, names []string) error {
	chosen, err := chosenJobs(f, names)
	if err != nil {
		return err
	}
	table := render.Table{Columns: []render.Column{
		{Name: "job"}, {Name: "state"}, {Name: "position", Numeric: true}, {Name: "start"}, {Name: "start_between"}, {Name: "end"}, {Name: "end_between"}, {Name: "after", Drop: 1},
	}}
	for _, j := range chosen {
		state, position := any("running"), any(math.NaN())
		start, startBand := "", ""
		if !j.Running {
			state, position = "waiting", j.Position
			start, startBand = inText(j.Start.Median-f.AtSeconds), bandText(j.Start, f.AtSeconds)
		}
		table.Rows = append(table.Rows, []any{
			j.Name, state, position, start, startBand, inText(j.End.Median - f.AtSeconds), bandText(j.End, f.AtSeconds), aheadText(t.Names, j.Ahead),
		})
	}
	moment := "at " + render.Span(f.AtSeconds)
	if a.ByCalendar {
		moment = "as the cluster is now"
	}
	a.Note("%s, from %s", moment, render.Count(f.Draws, "simulated future"))
	a.Note("%s", calibrationText(&f.Calibration))
	for _, n := range f.Notes {
		a.Note("%s", n)
	}
	if len(table.Rows) == 0 {
		a.Note("no job is pending or running")
	}
	if a.Format == render.JSON {
		return render.Document(a.Stdout, forecastDocument(t, f, chosen))
	}
	if a.Format == render.CSV {
		return forecastNumbers(t, chosen).Write(a.Stdout, a.Format)
	}
	return table.Write(a.Stdout, a.Format)
}

// chosenJobs are the forecasts of the jobs of some names.
func chosenJobs(f *twin.Forecast, names []string) ([]twin.JobForecast, error) {
	if len(names) == 0 {
		return f.Jobs, nil
	}
	var all []string
	for i := range f.Jobs {
		all = append(all, f.Jobs[i].Name)
	}
	indices, err := chosen(names, all)
	var list []twin.JobForecast
	for _, at := range indices {
		list = append(list, f.Jobs[at])
	}
	return list, err
}

// chosen are where names are in a list of all, and an error for those that are not.
func chosen(names, all []string) (indices []int, err error) {
	var found core.Diagnostics
	for _, name := range names {
		at := slices.Index(all, name)
		if at < 0 { // on a cluster, where no other namespace has a job of that name
			of := func(full string) bool { return strings.HasSuffix(full, "/"+name) }
			if at = slices.IndexFunc(all, of); at >= 0 && slices.ContainsFunc(all[at+1:], of) {
				found = append(found, core.Diagnostic{Summary: fmt.Sprintf("several jobs are named %q", name), Hint: core.SuggestHint("", "jobs", slices.DeleteFunc(slices.Clone(all), func(full string) bool { return !of(full) }))})
				continue
			}
		}
		if at < 0 {
			found = append(found, core.Diagnostic{Summary: fmt.Sprintf("no job %q is pending or running", name), Hint: jobHint(name, all)})
			continue
		}
		indices = append(indices, at)
	}
	return indices, found.Err()
}

// jobHint names the job that may be meant, and all of them where they are few.
func jobHint(name string, all []string) string {
	const few = 10
	switch {
	case len(all) == 0:
		return "none does"
	case len(all) <= few:
		return core.SuggestHint(name, "jobs", all)
	}
	if near := core.Nearest(name, all); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Sprintf("there are %s of other names", render.Count(len(all), "job"))
}

// forecastNumbers gives every moment in seconds of the run, for programs.
func forecastNumbers(t *quartet.Twin, jobs []twin.JobForecast) render.Table {
	table := render.Table{Columns: []render.Column{{Name: "job"}, {Name: "state"}, {Name: "position"}}}
	for _, moment := range [...]string{"start", "end"} {
		for _, part := range [...]string{"low_s", "s", "high_s"} {
			table.Columns = append(table.Columns, render.Column{Name: moment + "_" + part})
		}
	}
	table.Columns = append(table.Columns, render.Column{Name: "after"})
	for i := range jobs {
		j := &jobs[i]
		state, position, start := "running", any(math.NaN()), twin.Band{Low: math.NaN(), Median: math.NaN(), High: math.NaN()}
		if !j.Running {
			state, position, start = "waiting", j.Position, j.Start
		}
		row := []any{j.Name, state, position}
		for _, b := range [...]twin.Band{start, j.End} {
			row = append(row, known(b.Low), known(b.Median), known(b.High))
		}
		var after []string
		for _, id := range j.Ahead {
			after = append(after, t.Names[id])
		}
		table.Rows = append(table.Rows, append(row, strings.Join(after, " ")))
	}
	return table
}

// inText words how long it is until a moment.
func inText(seconds float64) string {
	if math.IsInf(seconds, 1) {
		return "unknown"
	}
	return "in " + render.Span(max(seconds, 0))
}

// bandText words a band, from a moment on.
func bandText(b twin.Band, at float64) string {
	switch {
	case math.IsInf(b.Low, 1):
		return ""
	case math.IsInf(b.High, 1):
		return render.Span(max(b.Low-at, 0)) + " or later"
	}
	return render.Span(max(b.Low-at, 0)) + " to " + render.Span(b.High-at)
}

// aheadText names who is in front of a job.
func aheadText(names map[core.JobID]string, ahead []core.JobID) string {
	const most = 3
	list := make([]string, 0, most)
	for _, id := range ahead[:min(len(ahead), most)] {
		list = append(list, names[id])
	}
	text := strings.Join(list, ", ")
	if len(ahead) > most {
		text += ", …"
	}
	return text
}

// calibrationText says how many earlier intervals were right.
func calibrationText(c *twin.Calibration) string {
	if c.Starts.Resolved+c.Ends.Resolved == 0 {
		return "80 % intervals; no earlier forecast could be checked yet"
	}
	part := func(of string, c *twin.Coverage) string {
		if c.Resolved == 0 {
			return "no " + of + " could be checked yet"
		}
		return fmt.Sprintf("%d of %d %s were right (median error %s)", c.Inside, c.Resolved, of, errorText(c.ErrorRatio))
	}
	return "80 % intervals; so far " + part("starts", &c.Starts) + ", " + part("ends", &c.Ends)
}

// errorText words how far medians were off, over the time to come.
func errorText(ratio float64) string {
	if ratio > 10 {
		return "more than ten times the time to come"
	}
	return render.Percent(ratio) + " of the time to come"
}
