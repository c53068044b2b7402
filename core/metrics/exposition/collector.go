package exposition

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

const namespace = "quartet_"

// collector asks for a snapshot at every scrape. It describes nothing in advance: which series there are depends on the
// run.
type collector struct{ source Source }

// Describe makes it an unchecked collector.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends every number of the snapshot. The figures of a summary are taken from that very summary.
func (c collector) Collect(out chan<- prometheus.Metric) {
	snapshot, w := c.source.Snapshot(), writer{out}
	b := c.source.Build
	w.gauge("build_info", "Always 1: what the program was built from.", 1, "version", b.Version, "commit", b.Commit, "go", b.Go)
	w.standing(snapshot)
	w.run(snapshot.Summary)
	w.jobs(snapshot.Summary, snapshot.Started)
	w.use(snapshot.Summary)
	w.fairness(&snapshot.Summary.Fairness)
	w.decisions(snapshot.Summary)
	w.accelerators(snapshot.Summary.Accelerators)
	w.pools(snapshot.Summary)
	w.deadlines(snapshot.Summary.Deadlines)
	w.tiers(snapshot.Summary.Tiers)
	w.tuning(snapshot.Summary.Tuning)
	w.quality(snapshot.Summary)
	w.synthesizer(snapshot.Summary.Synthesizer)
	w.plugins(snapshot.Summary.Plugins)
	w.reported(snapshot.Reported)
	w.forecast(snapshot.Forecast)
}

func (w writer) standing(s *metrics.Snapshot) {
	w.gauge("time_seconds", "Time of the run: the figures are as if it ended now.", s.NowSeconds)
	w.gauge("last_round_seconds", "Time of the run at its last round.", s.RoundSeconds)
	w.gauge("running_jobs", "Jobs that hold devices.", float64(s.Running))
	for _, reason := range slices.Sorted(maps.Keys(s.Pending)) {
		w.gauge("pending_jobs", "Jobs that hold no devices, by why.", float64(s.Pending[reason]), "reason", reason)
	}
	w.gauge("devices_used", "Devices that jobs hold.", float64(s.DevicesUsed))
	w.gauge("devices_usable", "Devices of ready nodes.", float64(s.DevicesUsable))
}

func (w writer) run(s *metrics.Summary) {
	c := &s.Components
	w.gauge("run_info", "Always 1: the run and its components.", 1,
		"name", s.Name, "seed", strconv.FormatUint(s.Seed, 10), "workload", c.Workload, "admission", strings.Join(c.Admission, "+"),
		"allocation", c.Allocation, "placement", c.Placement, "elasticity", c.Elasticity, "scaler", c.Scaler, "backend", c.Backend)
	if s.Measured != nil {
		w.gauge("measured_first_job", "First job that the figures of jobs are about.", float64(s.Measured.First))
		w.gauge("measured_last_job", "Last of them; -1 for an open end.", float64(s.Measured.Last))
	}
	w.counter("rounds_total", "Rounds held.", float64(s.Rounds))
	w.number("wall_seconds", "Time that the run has taken.", s.WallSeconds)
}

func (w writer) jobs(s *metrics.Summary, started int) {
	w.counter("jobs_submitted_total", "Jobs submitted.", float64(s.Jobs.Submitted))
	for _, outcome := range []struct {
		name  string
		count int
	}{
		{"completed", s.Jobs.Completed},
		{"rejected", s.Jobs.Rejected},
		{"failed", s.Jobs.Failed},
		{"cancelled", s.Jobs.Cancelled},
	} {
		w.counter("jobs_total", "Jobs that ended, by how.", float64(outcome.count), "outcome", outcome.name)
	}
	w.gauge("jobs_unfinished", "Jobs that have not ended.", float64(s.Jobs.Unfinished))
	w.distribution("job_completion", "time from submission to completion, of completed jobs", s.JCTSeconds, s.Jobs.Completed)
	w.distribution("queueing_delay", "time from submission to the first start, of jobs that started", s.QueueingSeconds, started)
	w.counter("restarts_total", "Starts and moves of jobs after their first start.", float64(s.Restarts.Total))
	w.number("restarts_mean", "Restarts per job that started.", s.Restarts.Mean)
	w.counter("preemptions_total", "Times that a job's devices were taken away before it ended.", float64(s.Preemptions))
}

func (w writer) use(s *metrics.Summary) {
	w.number("makespan_seconds", "Time from the first submission to the last end, or to now while jobs are unfinished.", s.MakespanSeconds)
	w.number("utilization_ratio", "Device time held, of the device time there was.", s.UtilizationRatio)
	w.number("gpu_hours", "Device-hours held.", s.GPUHours)
}

func (w writer) fairness(f *metrics.Fairness) {
	w.rho("requested", metrics.Rho{Mean: f.RhoMean, Max: f.RhoMax, UnfairRatio: f.UnfairRatio})
	w.rho("themis", f.Themis)
	if f.Sia != nil {
		w.rho("sia", *f.Sia)
	}
}

// rho tells one measure of finish-time fairness. Fairness by the devices requested has no name in a summary.
func (w writer) rho(measure string, r metrics.Rho) {
	w.number("fairness_rho_mean", "Mean finish-time fairness rho of completed jobs.", r.Mean, "measure", measure)
	w.number("fairness_rho_max", "Largest rho.", r.Max, "measure", measure)
	w.number("fairness_unfair_ratio", "Completed jobs with a rho above 1, of those with a known one.", r.UnfairRatio, "measure", measure)
}

func (w writer) decisions(s *metrics.Summary) {
	d := &s.DecisionSeconds
	w.summary("round_duration_seconds", "Time that the stages took in a round.", s.Rounds, d.Mean, map[float64]metrics.Number{0.99: d.P99})
	w.number("round_duration_max_seconds", "Longest time that the stages took in a round.", d.Max)
	for i := range d.ByComponent {
		c := &d.ByComponent[i]
		labels := []string{"component", c.Component, "stage", c.Stage}
		w.summary("stage_duration_seconds", "Time that a step of the round took.", s.Rounds, c.Mean, nil, labels...)
		w.number("stage_duration_max_seconds", "Longest time that a step of the round took.", c.Max, labels...)
	}
	w.number("gap_mean_ratio", "Mean certified gap of the allocator's answers.", s.GapRatio.Mean)
	w.number("gap_max_ratio", "Largest certified gap of the allocator's answers.", s.GapRatio.Max)
}

func (w writer) accelerators(use []metrics.AcceleratorUse) {
	for i := range use {
		u := &use[i]
		gauge := func(name, help string, value metrics.Number) {
			w.number("accelerator_"+name, help, value, "type", u.Accelerator)
		}
		gauge("devices", "Devices of a type, those of failed nodes too.", metrics.Number(u.Devices))
		gauge("device_seconds", "Device time held of a type.", u.DeviceSeconds)
		gauge("gpu_hours", "Device-hours held of a type.", u.GPUHours)
		gauge("utilization_ratio", "Device time held of a type, of what there was.", u.UtilizationRatio)
		gauge("jobs", "Jobs that ever held a device of a type.", metrics.Number(u.Jobs))
		gauge("starts", "Starts and moves that gave a job devices of a type.", metrics.Number(u.Starts))
		gauge("first_jobs", "Jobs that first ran on a type.", metrics.Number(u.FirstJobs))
		gauge("queueing_seconds_mean", "Mean queueing delay of those jobs.", u.QueueingSecondsMean)
		gauge("bound_jobs", "Jobs that can run on no other type.", metrics.Number(u.BoundJobs))
		gauge("bound_queueing_seconds_mean", "Mean queueing delay of those that started.", u.BoundQueueingSecondsMean)
	}
}

func (w writer) pools(s *metrics.Summary) {
	for i := range s.Pools {
		p := &s.Pools[i]
		gauge := func(name, help string, value metrics.Number) { w.number("pool_"+name, help, value, "pool", p.Pool) }
		gauge("most_nodes", "Nodes of a pool that were paid for at once.", metrics.Number(p.MostNodes))
		gauge("changes", "Times that a node of a pool became ready or left.", metrics.Number(p.Changes))
		gauge("node_hours", "Node-hours of a pool that are paid for.", p.NodeHours)
		gauge("idle_node_hours", "Part of those in which no job held the devices.", p.IdleNodeHours)
		gauge("cost", "What the nodes of a pool cost.", p.Cost)
		gauge("idle_cost", "What of that was idle.", p.IdleCost)
	}
	if b := s.Bill; b != nil {
		w.number("bill_node_hours", "Node-hours of all pools that are paid for.", b.NodeHours)
		w.number("bill_idle_node_hours", "Part of those in which no job held the devices.", b.IdleNodeHours)
		w.number("bill_cost", "What the nodes of all pools cost.", b.Cost)
		w.number("bill_idle_cost", "What of that was idle.", b.IdleCost)
	}
}

func (w writer) deadlines(d *metrics.Deadlines) {
	if d == nil {
		return
	}
	for _, c := range [...]struct {
		name, help string
		value      int
	}{
		{"met", "Jobs that were done by their deadline.", d.Met},
		{"missed", "Jobs that were not, though not rejected.", d.Missed},
		{"declined", "Jobs with a deadline that were rejected.", d.Declined},
		{"undecided", "Jobs with a deadline that did not miss it so far.", d.Undecided},
		{"broken", "Missed deadlines that had been promised.", d.Broken},
	} {
		w.number("deadlines_"+c.name, c.help, metrics.Number(c.value))
	}
	w.number("deadlines_ratio", "Deadlines met, of those met, missed and declined.", d.Ratio)
	w.number("deadlines_lateness_p99", "99th percentile of the lateness of those missed, in seconds.", d.LatenessP99)
}

func (w writer) tiers(t *metrics.Tiers) {
	if t == nil {
		return
	}
	for _, tier := range [...]struct {
		name string
		use  *metrics.TierUse
	}{{core.Premium, t.Premium}, {core.Standard, t.Standard}, {core.Basic, t.Basic}} {
		if u := tier.use; u != nil {
			gauge := func(name, help string, value metrics.Number) { w.number("tier_"+name, help, value, "tier", tier.name) }
			gauge("guaranteed", "Part of the device time they request that jobs of a tier are guaranteed.", u.Guaranteed)
			gauge("jobs", "Jobs of a tier that were not rejected.", metrics.Number(u.Jobs))
			gauge("jobs_met", "Jobs of a tier that had what they are guaranteed in all hours of their lives.", metrics.Number(u.JobsMet))
			gauge("hours", "Hours of the lives of jobs of a tier.", metrics.Number(u.Hours))
			gauge("met", "Hours in which a job of a tier had what it is guaranteed.", metrics.Number(u.Met))
			gauge("ratio", "Hours met, of all.", u.Ratio)
		}
	}
	w.number("tiers_guaranteed_devices_max", "Most devices that guarantees came to at once.", t.GuaranteedDevicesMax)
	w.number("tiers_oversold_seconds", "Time for which guarantees came to more devices than there were.", t.OversoldSeconds)
}

// synthesizer says how often a run looked for a better composition, and which ones decided.
func (w writer) synthesizer(s *metrics.Synthesizer) {
	if s == nil {
		return
	}
	w.number("synthesizer_looks", "Looks for a better composition.", metrics.Number(s.Looks))
	w.number("synthesizer_switches", "Times that another composition took over.", metrics.Number(s.Switches))
	w.number("synthesizer_taken_back", "Those of them that went back to the one before.", metrics.Number(s.TakenBack))
	for _, in := range s.InForce {
		w.gauge("synthesizer_in_force_seconds", "How long a composition decided.", float64(in.Seconds), "composition", in.Name)
	}
}

func (w writer) tuning(t *metrics.Tuning) {
	if t == nil {
		return
	}
	for _, c := range [...]struct {
		name, help string
		value      int
	}{
		{"trials", "Trials that a search for hyper-parameters submitted.", t.Trials},
		{"finished", "Trials that came to their end.", t.Finished},
		{"stopped", "Trials that were ended early.", t.Stopped},
		{"failed", "Trials that failed, were cancelled or were rejected.", t.Failed},
		{"unfinished", "Trials that have not ended.", t.Unfinished},
	} {
		w.number("tuning_"+c.name, c.help, metrics.Number(c.value))
	}
	if b := t.Best; b != nil {
		w.number("tuning_best_trial", "The trial with the best value, from 0.", metrics.Number(b.Trial))
		w.number("tuning_best_value", "The best value that a trial reported.", b.Value)
		w.number("tuning_best_step", "Step at which it reported that.", b.Step)
		w.number("tuning_best_at_seconds", "Moment at which it did.", b.AtSeconds)
	}
}

func (w writer) quality(s *metrics.Summary) {
	if q := s.Quality; q != nil {
		w.number("quality_jobs", "Completed jobs that reported, and got better after their first report.", metrics.Number(q.Jobs))
		w.number("quality_loss_area_seconds", "Mean area under the normalised loss of those.", q.LossAreaSeconds)
		w.number("quality_to_90_seconds", "Mean time until 90 % of the loss was gone.", q.To90Seconds)
		w.number("quality_to_95_seconds", "Mean time until 95 % of the loss was gone.", q.To95Seconds)
	}
	if e := s.EndedEarly; e != nil {
		w.number("ended_early", "Jobs that were ended before they had done their work, by why.", metrics.Number(e.Converged), "reason", "converged")
		w.number("ended_early", "Jobs that were ended before they had done their work, by why.", metrics.Number(e.Pruned), "reason", "pruned")
	}
}

// plugins tells of each component once, whatever the number of its troubles.
func (w writer) plugins(troubles []metrics.Trouble) {
	restarts, fallback := map[string]float64{}, map[string]float64{}
	for _, t := range troubles {
		restarts[t.Component] += float64(t.Restarts)
		fallback[t.Component] += 0
		if t.Fallback {
			fallback[t.Component] = 1
		}
	}
	for _, component := range slices.Sorted(maps.Keys(restarts)) {
		w.counter("plugin_restarts_total", "Restarts of a policy in another process.", restarts[component], "plugin", component)
		w.gauge("plugin_fallback", "1 when the built-in policy took over.", fallback[component], "plugin", component)
	}
}

// told says what jobs reported of themselves: at most as many series as jobs that have not ended times metrics.MostReportedMetrics.
func (w writer) reported(list []metrics.ReportedValue) {
	type labels struct{ job, metric string }
	seen := make(map[labels]bool, len(list))
	for _, t := range list {
		of := labels{strings.ToValidUTF8(t.Job, "\uFFFD"), strings.ToValidUTF8(t.Metric, "\uFFFD")}
		if seen[of] {
			continue // names that differ in what no label can hold
		}
		seen[of] = true
		w.gauge("job_metric", "Latest value that a job reported of a metric, of jobs that have not ended: the first 4 metrics of each.", t.Value, "name", of.job, "metric", of.metric)
	}
}

// forecast says what is expected of jobs, at most of metrics.MostForecastJobs of them, and how well that held so far.
func (w writer) forecast(f *metrics.Forecast) {
	if f == nil {
		return
	}
	w.gauge("forecast_seconds", "Time of the run at its latest forecast.", f.AtSeconds)
	for _, moment := range [...]struct {
		name   string
		judged metrics.Judged
	}{{"start", f.Starts}, {"end", f.Ends}} {
		w.gauge("forecast_bands_judged", "Intervals of earlier forecasts of which it is known whether they were right.", float64(moment.judged.Bands), "moment", moment.name)
		w.gauge("forecast_bands_held", "Those of them that were right: four of five should be.", float64(moment.judged.Held), "moment", moment.name)
	}
	type labels struct{ job, moment string }
	seen := make(map[labels]bool, len(f.Jobs))
	for i := range f.Jobs {
		e := &f.Jobs[i]
		of := labels{strings.ToValidUTF8(e.Job, "\uFFFD"), e.Moment}
		if seen[of] {
			continue // names that differ in what no label can hold
		}
		seen[of] = true
		for _, bound := range [...]struct {
			name    string
			seconds float64
		}{{"low", e.Low}, {"median", e.Median}, {"high", e.High}} {
			if !math.IsNaN(bound.seconds) {
				w.gauge("job_expected_seconds", "When a job is expected to start or to end: four of five between low and high. Of the first 200 jobs that have not ended.",
					bound.seconds, "name", of.job, "moment", e.Moment, "bound", bound.name)
			}
		}
	}
}
