package advise

import (
	"maps"
	"slices"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/lab/study"
)

// Configured names the candidate that is the composition of the config, unchanged.
const Configured = "as-configured"

// Facts are what decides which candidates make sense.
type Facts struct {
	Jobs      int  // jobs of the trace
	WorkKnown bool // policies know the declared work of a job
	Elastic   bool // some jobs can run on other numbers of replicas than they ask for
	Adaptive  bool // some jobs measure themselves, and can train with other batches
	Seated    bool // the speed of some jobs depends on where their replicas are
	Mixing    bool // the replicas of some jobs may run on several types at once
	Types     int  // of accelerators
}

// factsOf looks at the jobs of a workload and the types of a cluster.
func factsOf(w *workload.Workload, cluster *core.Cluster, told bool) Facts {
	f := Facts{Jobs: len(w.Jobs), WorkKnown: told, Types: len(cluster.Accelerators)}
	for i := range w.Jobs {
		spec := &w.Jobs[i].Spec
		_, measures := w.Jobs[i].Model.(workload.Measurer)
		f.Elastic = f.Elastic || spec.MinReplicas < spec.MaxReplicas
		f.Adaptive = f.Adaptive || measures && spec.Batch.Max > spec.Batch.Requested
		f.Seated = f.Seated || !w.Jobs[i].CountsSeconds()
		f.Mixing = f.Mixing || spec.MixesTypes
	}
	return f
}

// part is one choice for a stage.
type part struct {
	name   string // as it appears in the name of a candidate; empty for the usual choice
	kind   string
	config map[string]any
}

func (p *part) value() map[string]any {
	v := map[string]any{"type": p.kind}
	if len(p.config) > 0 {
		v["config"] = p.config
	}
	return v
}

type settings = map[string]any

// The choices for the stages, simplest first. Those that know nothing of jobs come first, then those that are told of their work.
var (
	orders = []part{
		{"fifo", "fifo", nil},
		{"fifo-backfill", "fifo", settings{"queue": "backfill"}},
		{"las", "las", settings{"quantum_seconds": 0}},
		{"las-1h", "las", settings{"quantum_seconds": 3600}},
		{"las-8h", "las", settings{"quantum_seconds": 8 * 3600}},
		{"las-wall", "las", settings{"service": "wall_time", "quantum_seconds": 0}},
		{"las-wall-1h", "las", settings{"service": "wall_time", "quantum_seconds": 3600}},
		{"las-day", "las", settings{"starvation_after": "24h", "quantum_seconds": 0}},
		{"tiresias", "tiresias", nil},
		{"tiresias-1h", "tiresias", settings{"thresholds": []any{3600}}},
		{"tiresias-3", "tiresias", settings{"thresholds": []any{3600, 57600}}},
		{"tiresias-promote", "tiresias", settings{"thresholds": []any{3600, 57600}, "promote_factor": 8}},
	}
	tellingOrders = []part{
		{"srtf", "srtf", nil},
		{"srtf-stay", "srtf", settings{"preemptive": false}},
		{"srtf-devices", "srtf", settings{"weigh_by_devices": true}},
		{"themis", "themis", nil},
		{"themis-all", "themis", settings{"offered_to": 1}},
	}
	greedy = []part{{"optimus", "optimus", nil}, {"afs", "afs", nil}}
	curves = []part{
		{"pollux", "pollux", nil},
		{"pollux-sum", "pollux", settings{"fairness_p": 1}},
		{"pollux-attained", "pollux", settings{"weights": "attained"}},
	}
	tellingCurves = []part{{"pollux-remaining", "pollux", settings{"weights": "remaining"}}}

	overTypes = []part{
		{"gavel-max-min", "gavel_max_min", nil},
		{"gavel-max-sum", "gavel_max_sum", nil},
		{"fifo-perf", "fifo_perf", nil},
		{"isolated", "isolated", nil},
		{"best-sum", "best_normalised_sum", nil},
	}
	tellingTypes = []part{{"allox", "allox", nil}, {"gavel-makespan", "gavel_makespan", nil}, {"finish-time", "finish_time_fairness", nil}}

	usualPlace   = part{"", "consolidated", nil}
	rigidPlaces  = []part{usualPlace, {"first-fit", "first_fit", nil}, {"strict", "consolidated", settings{"strict": true}}}
	usualAdmit   = part{"", "accept_all", nil}
	rigidAdmits  = []part{usualAdmit, {"admit-2", "load_threshold", settings{"factor": 2}}, {"admit-4", "load_threshold", settings{"factor": 4}}}
	elasticAdmit = []part{usualAdmit, {"admit-4", "load_threshold", settings{"factor": 4}}}

	proposed = part{"", "proposed", nil}
)

// Grid lists the compositions of built-in policies that fit a cluster and its jobs, simplest first: rigid orders for all; where jobs
// are elastic, those that divide devices by curves; where there are several types, those that know them.
func Grid(f Facts) []study.Item {
	g := grid{facts: f}
	places := []part{usualPlace}
	if f.Seated {
		places = rigidPlaces
	}
	rigid := orders
	if f.WorkKnown {
		rigid = append(slices.Clip(rigid), tellingOrders...)
	}
	for _, admit := range rigidAdmits {
		for _, place := range places {
			if admit.name != "" && place.name != "" {
				continue // one stage at a time is varied besides the order
			}
			for _, order := range rigid {
				if order.name == "fifo" && admit.name != "" {
					continue // it holds back the same jobs
				}
				g.add(order, place, part{"", "fixed", nil}, admit)
			}
		}
	}
	if f.Types > 1 {
		list := overTypes
		if f.WorkKnown {
			list = append(slices.Clip(list), tellingTypes...)
		}
		for _, p := range list {
			g.add(p, usualPlace, part{"", "fixed", nil}, usualAdmit)
		}
	}
	if f.Elastic || f.Adaptive {
		g.elastic()
	}
	return g.items
}

type grid struct {
	facts Facts
	items []study.Item
}

// elastic adds the compositions for jobs that run on other numbers of replicas than they ask for.
func (g *grid) elastic() {
	goodput := part{"goodput", "goodput", settings{"declared_work": g.facts.WorkKnown}}
	stretch := part{"elastic", "fixed", settings{"replicas": "elastic"}}
	for _, admit := range elasticAdmit {
		if g.facts.Adaptive {
			for _, order := range orders[:9] {
				g.add(order, usualPlace, goodput, admit)
			}
		}
		for _, job := range []part{stretch, goodput} {
			if job.kind == goodput.kind && !g.facts.Adaptive || job.kind == stretch.kind && !g.facts.WorkKnown {
				continue
			}
			if g.facts.WorkKnown {
				for _, p := range greedy {
					g.add(p, usualPlace, job, admit)
				}
				for _, p := range tellingCurves {
					g.add(p, proposed, job, admit)
				}
			}
			for _, p := range curves {
				g.add(p, proposed, job, admit)
			}
			if g.facts.Types > 1 && g.facts.Adaptive {
				g.add(part{"sia", "sia", nil}, proposed, job, admit)
			}
			if g.facts.Types > 1 && g.facts.Mixing && g.facts.WorkKnown && job.kind == stretch.kind {
				g.add(part{"matching", "matching", nil}, proposed, part{"", "fixed", settings{"replicas": "elastic", "split": "proportional"}}, admit)
			}
		}
	}
}

func (g *grid) add(order, place, job, admit part) {
	name := order.name
	for _, p := range []part{job, place, admit} {
		if p.name != "" {
			name += "-" + p.name
		}
	}
	set := []study.Setting{
		{Path: "pipeline.admission", Value: []any{admit.value()}},
		{Path: "pipeline.allocation", Value: order.value()},
		{Path: "pipeline.placement", Value: place.value()},
		{Path: "pipeline.elasticity.job.type", Value: job.kind}, // the settings of the config stay
	}
	for _, key := range slices.Sorted(maps.Keys(job.config)) {
		set = append(set, study.Setting{Path: "pipeline.elasticity.job.config." + key, Value: job.config[key]})
	}
	at := core.Position{File: "candidate " + name}
	for i := range set {
		set[i].At = at
	}
	g.items = append(g.items, study.Item{Name: name, Set: set, At: at})
}

// checked keeps the candidates whose config is valid and unlike those before.
func (a *adviser) checked(items []study.Item) (kept []study.Item, out []Dropped, first error) {
	known := map[string]string{} // resolved pipelines
	for _, item := range items {
		c, err := a.load(item.Files, item.Set)
		if err != nil {
			if first == nil {
				first = err
			}
			out = append(out, Dropped{item.Name, reasonOf(err)})
			continue
		}
		key := pipelineOf(c)
		if twin, twice := known[key]; twice {
			out = append(out, Dropped{item.Name, "the same as " + twin})
			continue
		}
		known[key] = item.Name
		kept = append(kept, item)
	}
	return kept, out, first
}

// pipelineOf identifies what decides in a config.
func pipelineOf(c *configs.Config) string {
	text, err := c.Resolved()
	if err != nil {
		return ""
	}
	return string(text)
}
