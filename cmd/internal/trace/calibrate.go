package trace

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/outcome"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/core/workload/generators"
)

type calibrateFlags struct {
	cli.ConfigFlags
	tries []string
}

func (a *app) traceCalibrateCommand() *cobra.Command {
	var f calibrateFlags
	c := &cobra.Command{
		Use:   "calibrate",
		Short: "Compare simulated waits with those that a trace observed",
		Long: `Simulates the workload of a config, a trace with column observed_start_s, under each composition to try,
and compares how long jobs wait with how long they waited: by the queue that a job met, which is how
many jobs before it had not started, as observed. Compositions are listed from the closest to the
farthest, by the mean over jobs of the distance at their depth of the queue, in powers of ten of
1 s + wait. A job that never starts waits until the end of the run. The first start of a job costs it
nothing: the duration that was observed holds that pause. KS is the greatest difference
between the two distribution functions.`,
		Example: `  quartet trace calibrate -f cluster.yaml --set workload.config.path=trace.csv --try pipeline.allocation.type=fifo --try las.yaml`,
		Args:    cli.ByFlag,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c.Context(), a)
		},
	}
	f.Register(a.App, c)
	c.Flags().StringArrayVar(&f.tries, "try", nil, "composition to try: a config file over the others, or settings such as pipeline.allocation.type=las; may be repeated (default: the config as it is)")
	return c
}

func (f *calibrateFlags) run(ctx context.Context, a *app) error {
	if err := f.Discover(a.App); err != nil {
		return err
	}
	tries := f.tries
	if len(tries) == 0 {
		tries = []string{"as configured"}
	}
	var results []calibration
	for _, try := range tries {
		result, err := f.simulate(ctx, a, try)
		if err != nil {
			return err
		}
		results = append(results, result)
	}
	slices.SortStableFunc(results, func(x, y calibration) int { return cmp.Compare(x.Distance, y.Distance) })
	if a.Format == render.JSON {
		return render.Document(a.Stdout, results)
	}
	if err := calibrationTable(results).Write(a.Stdout, a.Format); err != nil {
		return err
	}
	if len(results) > 1 {
		a.Note("closest to what was observed: %s", strings.Join(closest(results), ", "))
	}
	return nil
}

// simulate runs one composition to try on the trace, and compares its waits with those observed.
func (f *calibrateFlags) simulate(ctx context.Context, a *app, try string) (calibration, error) {
	o := configs.Options{Files: f.Files, Sets: f.Sets}
	switch {
	case len(f.tries) == 0:
	case strings.Contains(try, "="):
		o.Sets = append(slices.Clone(f.Sets), try)
	default:
		o.Files = append(slices.Clone(f.Files), try)
	}
	config, err := a.LoadConfig(ctx, o)
	if err != nil {
		return calibration{}, err
	}
	if settings, ok := config.Backend.Config.(*sim.Config); ok {
		settings.FreeFirstStart = true // an observed duration holds it
	}
	c := outcome.Composition(a.App, config, nil)
	c.Brief = false
	var jobs []workload.Job
	attach := c.Attach
	c.Attach = func(s quartet.Session) (quartet.Attachment, error) {
		jobs = s.Workload.Jobs
		return attach(s)
	}
	r, err := c.Simulate(ctx)
	if err != nil {
		return calibration{}, err
	}
	return calibrate(try, jobs, r.Jobs, r.EndSeconds)
}

// closest names the compositions of the least distance in a sorted list: the trace cannot tell those of one distance apart.
func closest(results []calibration) (names []string) {
	for _, c := range results {
		if c.Distance != results[0].Distance {
			continue
		}
		name := c.Composition
		if n := c.neverRan(); n > 0 {
			name += fmt.Sprintf(" (%s never started)", render.Count(n, "job"))
		}
		names = append(names, name)
	}
	return names
}

// calibration is how far the simulated waits of a composition are from those observed.
type calibration struct {
	Composition string  `json:"composition"`
	Distance    float64 `json:"distance"` // mean over jobs of the Wasserstein distance at their depth
	Depths      []depth `json:"depths"`
}

// depth is the waits of the jobs that met a queue of Least to Most jobs.
type depth struct {
	Least       int            `json:"least"`
	Most        int            `json:"most"` // -1 for any
	Jobs        int            `json:"jobs"`
	NeverRan    int            `json:"never_started"` // in the simulation
	Observed    metrics.Number `json:"observed_p50_seconds"`
	Simulated   metrics.Number `json:"simulated_p50_seconds"`
	KS          metrics.Number `json:"ks"`
	Wasserstein metrics.Number `json:"wasserstein"`
	observed    []float64
	simulated   []float64
}

// neverRan is how many jobs did not start in the simulation.
func (c *calibration) neverRan() int {
	n := 0
	for _, d := range c.Depths {
		n += d.NeverRan
	}
	return n
}

// calibrate compares the waits of a simulation, which ended at a moment, with those of its trace. Jobs that never started waited until
// then: without them a composition that starves the jobs that are hard to place would come closer.
func calibrate(name string, jobs []workload.Job, simulated []metrics.Job, end float64) (calibration, error) {
	c := calibration{Composition: name}
	queue := queueMet(jobs)
	for k, least := range depthsFrom {
		most := -1
		if k+1 < len(depthsFrom) {
			most = depthsFrom[k+1] - 1
		}
		c.Depths = append(c.Depths, depth{Least: least, Most: most})
	}
	for i := range simulated {
		s := &simulated[i]
		job := &jobs[s.ID]
		if !job.Observed.Started {
			continue
		}
		k := len(depthsFrom) - 1
		for depthsFrom[k] > queue[s.ID] {
			k--
		}
		d, wait := &c.Depths[k], float64(s.QueueingSeconds)
		if d.Jobs++; math.IsNaN(wait) {
			d.NeverRan++
			wait = max(end-s.SubmitSeconds, 0)
		}
		d.observed = append(d.observed, job.Observed.WaitSeconds())
		d.simulated = append(d.simulated, wait)
	}
	total, count := 0.0, 0
	for k := range c.Depths {
		d := &c.Depths[k]
		ks, wasserstein := generators.Apart(logs(d.observed), logs(d.simulated))
		d.KS, d.Wasserstein = metrics.Number(ks), metrics.Number(wasserstein)
		d.Observed, d.Simulated = metrics.Describe(d.observed).P50, metrics.Describe(d.simulated).P50
		if n := len(d.observed); n > 0 {
			total, count = total+wasserstein*float64(n), count+n
		}
	}
	if count == 0 {
		return c, cli.Problem("workload", "no job has an observed start that is simulated too", "a trace has it in column observed_start_s")
	}
	c.Distance = total / float64(count)
	c.Depths = slices.DeleteFunc(c.Depths, func(d depth) bool { return d.Jobs == 0 })
	return c, nil
}

// depthsFrom are where ranges of the queue begin.
var depthsFrom = []int{0, 1, 4, 16, 64, 256}

// logs turns waits into powers of ten, with a second added so that a wait of none has one.
func logs(waits []float64) []float64 {
	l := make([]float64, len(waits))
	for i, w := range waits {
		l[i] = math.Log10(1 + w)
	}
	return l
}

// queueMet is how many jobs each job found waiting when it was submitted, as observed. Jobs are in submission order.
func queueMet(jobs []workload.Job) []int {
	type moment struct {
		at  float64
		job int // -1 for a start
	}
	var moments []moment
	for i := range jobs {
		if o := &jobs[i].Observed; o.Started {
			submit := jobs[i].Spec.SubmitSeconds
			moments = append(moments, moment{submit, i}, moment{o.StartOn(submit), -1})
		}
	}
	slices.SortStableFunc(moments, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.job, -1)-cmp.Compare(a.job, -1))
	})
	met, waiting := make([]int, len(jobs)), 0
	for _, m := range moments {
		if m.job < 0 {
			waiting--
			continue
		}
		met[m.job] = max(waiting, 0)
		waiting++
	}
	return met
}

func calibrationTable(results []calibration) render.Table {
	t := render.Table{Columns: []render.Column{
		{Name: "composition"},
		{Name: "distance", Numeric: true},
		{Name: "queue_met"},
		{Name: "jobs", Numeric: true},
		{Name: "never_started", Numeric: true, Drop: 1},
		{Name: "observed_p50_s", Numeric: true},
		{Name: "simulated_p50_s", Numeric: true},
		{Name: "ks", Numeric: true},
		{Name: "wasserstein", Numeric: true},
	}}
	for _, c := range results {
		for _, d := range c.Depths {
			met := fmt.Sprintf("%d to %d", d.Least, d.Most)
			if d.Most < 0 {
				met = fmt.Sprintf("%d and more", d.Least)
			} else if d.Least == d.Most {
				met = strconv.Itoa(d.Least)
			}
			round := func(x metrics.Number) float64 { return math.Round(float64(x)*1000) / 1000 }
			t.Rows = append(t.Rows, []any{
				c.Composition, round(metrics.Number(c.Distance)), met, d.Jobs, d.NeverRan, round(d.Observed), round(d.Simulated), round(d.KS), round(d.Wasserstein),
			})
		}
	}
	return t
}
