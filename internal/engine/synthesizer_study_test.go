package engine_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/synthesizer"
	"github.com/quartet-sched/quartet/core/twin"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/refdata"
)

var (
	synthesizeWrite   = flag.String("synthesize.write", "", "file for the table of the study of the synthesizer; empty for not to run it")
	synthesizeOnly    = flag.String("synthesize.only", "", "workloads of that study, by a part of their names")
	synthesizeSigma   = flag.Float64("synthesize.sigma", -1, "errors of declared work of that study; -1 for all")
	synthesizeFirst   = flag.String("synthesize.first", "", "candidates that decide first in that study, by a part of their names")
	synthesizeMargin  = flag.Float64("synthesize.margin", 0.02, "switch_margin in that study")
	synthesizeHorizon = flag.Duration("synthesize.horizon", 12*time.Hour, "horizon in that study")
	synthesizeTruth   = flag.Bool("synthesize.truth", false, "the synthesizer knows what is to come")
)

// twelve are the candidates of the study, the first the one that decides first.
func twelve(s *configs.File, first string) {
	s.Pipeline.Allocation = configs.Policy{Type: first}
	s.Synthesizer.Own = first
	for _, admission := range []string{"", "1.2", "1.5"} {
		for _, allocation := range []string{"fifo", "las", "srtf", "tiresias"} {
			name, pipeline := allocation, map[string]any{"allocation": map[string]any{"type": allocation}}
			if admission != "" {
				name += "-" + admission
				factor := 1.2
				if admission == "1.5" {
					factor = 1.5
				}
				pipeline["admission"] = []any{map[string]any{"type": "load_threshold", "config": map[string]any{"factor": factor}}}
			}
			if name != first {
				s.Synthesizer.Candidates = append(s.Synthesizer.Candidates, configs.Candidate{Name: name, Pipeline: pipeline})
			}
		}
	}
}

// studied is a workload of the study.
type studied struct {
	name  string
	spec  configs.File
	jobs  *workload.Workload
	waves bool // the load changes
}

// wave makes the load 0.5 times what it is in the first and the last third of the jobs, and twice what it is in the second.
func wave(w *workload.Workload) *workload.Workload {
	changed := *w
	changed.Jobs = slices.Clone(w.Jobs)
	n, at, was := len(w.Jobs), 0.0, 0.0
	for i := range changed.Jobs {
		spec := &changed.Jobs[i].Spec
		factor := 2.0
		if i >= n/3 && i < 2*n/3 {
			factor = 0.5
		}
		at += (spec.SubmitSeconds - was) * factor
		was = spec.SubmitSeconds
		spec.SubmitSeconds = at
	}
	return &changed
}

// toLoad stretches the times of submission until what jobs need is so many times what the devices give until the last is submitted.
func toLoad(w *workload.Workload, devices int, load float64) *workload.Workload {
	changed := *w
	changed.Jobs = slices.Clone(w.Jobs)
	first, work := w.Jobs[0].Spec.SubmitSeconds, 0.0
	for i := range changed.Jobs {
		work += changed.Jobs[i].Spec.TotalWork * float64(changed.Jobs[i].Spec.Requested)
	}
	span := w.Jobs[len(w.Jobs)-1].Spec.SubmitSeconds - first
	factor := work / (float64(devices) * load) / span
	for i := range changed.Jobs {
		spec := &changed.Jobs[i].Spec
		spec.SubmitSeconds = (spec.SubmitSeconds - first) * factor
	}
	return &changed
}

// polluxWorkloads are those that are published in full.
var polluxWorkloads = [...]int{1, 2, 3, 4, 6}

// studiedWorkloads are windows of Philly's trace at load 1, and Pollux's workloads, and each again with a load that changes.
func studiedWorkloads(t *testing.T, first string) (list []studied) {
	load := func(s configs.File) *workload.Workload {
		c, err := configs.Build(quartet.Builtins(), s, quartet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := quartet.LoadWorkload(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	add := func(name string, s configs.File, w *workload.Workload) {
		list = append(list, studied{name, s, w, false}, studied{name + ", load 0.5, 2, 0.5", s, wave(w), true})
	}
	for i := range 5 {
		s := quartet.NewSpec()
		s.Name = "study"
		s.Round.Interval, s.Round.OnEvents = 5*time.Minute, true
		s.Cluster.Nodes = []configs.NodeGroup{{Name: "n", Count: 16, Accelerator: "v100", Devices: 8}}
		s.Workload = configs.Part{Type: "philly", Config: map[string]any{"path": refdata.Path(t, "data", "pollux-osdi21", "philly.csv.gz")}}
		s.Sample.Window.FirstJob, s.Sample.Window.Jobs = 10000+15000*i, 600
		s.Backend.Config = map[string]any{"restart_overhead": "30s"}
		twelve(&s, first)
		add(fmt.Sprintf("philly from %d", 10000+15000*i), s, toLoad(load(s), 128, 1))
	}
	for i := range 5 {
		s := quartet.NewSpec()
		s.Name = "study"
		s.Round.Interval = time.Minute
		s.Cluster.Nodes = []configs.NodeGroup{{Name: "n", Count: 16, Accelerator: "t4", Devices: 4}}
		s.Workload = configs.Part{Type: "pollux", Config: map[string]any{
			"path": refdata.Path(t, "data", "pollux-osdi21", "workloads", fmt.Sprintf("workload-%d.csv", polluxWorkloads[i])), "profiles": refdata.Path(t, "data", "pollux-osdi21"),
		}}
		s.Backend.Config = map[string]any{"restart_overhead": "30s"}
		twelve(&s, first)
		add(fmt.Sprintf("pollux %d", polluxWorkloads[i]), s, load(s))
	}
	return list
}

// truth knows what is to come.
type truth struct {
	jobs   *workload.Workload
	config sim.Config
}

func (o *truth) Draw(v *core.View, _ uint64, draw int, _ float64) *twin.World {
	w := &twin.World{Config: o.config, Seed: uint64(draw)}
	for i := range o.jobs.Jobs {
		switch j := v.Job(core.JobID(i)); {
		case j != nil:
			w.Jobs = append(w.Jobs, twin.Job{ID: j.ID, Model: as(&o.jobs.Jobs[i])})
		case i >= len(v.Jobs):
			w.Arrivals = append(w.Arrivals, o.jobs.Jobs[i])
		}
	}
	return w
}

// as is the model of a job of which policies are told as much as in the run.
func as(job *workload.Job) workload.Model {
	if m, measures := job.Model.(workload.Measurer); measures {
		return measuredAs{toldAs{job.Model, job}, m}
	}
	return toldAs{job.Model, job}
}

type toldAs struct {
	workload.Model
	job *workload.Job
}

func (m toldAs) StepsLeft(phase int) float64 { return m.job.StepsLeft(phase) }

type measuredAs struct {
	toldAs
	workload.Measurer
}

// run simulates a spec of the study on its jobs.
func (s *studied) run(t *testing.T, spec configs.File) *quartet.Result {
	t.Helper()
	config, err := configs.Build(quartet.Builtins(), spec, quartet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := quartet.SelectJobs(&configs.Config{Seed: config.Seed, Sample: workload.DefaultSample(), Estimate: config.Estimate}, s.jobs)
	if err != nil {
		t.Fatal(err)
	}
	c := &quartet.Composition{Config: config, Jobs: jobs}
	if *synthesizeTruth {
		c.SetWorkloadModel(func(w *workload.Workload) synthesizer.WorkloadModel {
			return &truth{w, *config.Backend.Config.(*sim.Config)}
		})
	}
	r, err := c.Simulate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// static is a spec of one candidate alone.
func static(s configs.File, i int) (name string, alone configs.File) {
	c := s.Synthesizer
	s.Synthesizer = configs.DefaultSynthesizer()
	if i == 0 {
		return c.Own, s
	}
	candidate := c.Candidates[i-1]
	s.Pipeline.Allocation.Type = candidate.Pipeline["allocation"].(map[string]any)["type"].(string)
	if list, gates := candidate.Pipeline["admission"].([]any); gates {
		gate := list[0].(map[string]any)
		s.Pipeline.Admission = []configs.Policy{{Type: gate["type"].(string), Config: gate["config"].(map[string]any)}}
	}
	return candidate.Name, s
}

// setting is what a part of the study is about.
type setting struct {
	sigma  float64 // error of what policies are told of the work of jobs: the standard deviation of its logarithm
	first  string  // candidate that decides first
	method string
}

var parts = [...]setting{
	{0, "fifo", "twin"}, {0.7, "fifo", "twin"}, {0.7, "las", "twin"}, {0.7, "srtf", "twin"}, {1.4, "las", "twin"}, {1.4, "srtf", "twin"}, {0, "fifo", "bandit"}, {1.4, "las", "bandit"},
}

// TestSynthesizerStudy measures the synthesizer beside each of its candidates.
func TestSynthesizerStudy(t *testing.T) {
	if *synthesizeWrite == "" {
		t.Skip("the study takes minutes: make synthesize")
	}
	alone := map[string]float64{}
	var b strings.Builder
	b.WriteString("# A choice between twelve compositions\n\nWritten by `make synthesize`. Mean JCT in seconds; the best candidate is the best of the twelve alone, known afterwards. See [the synthesizer](../synthesizer.md).\n")
	for _, is := range parts {
		if only := *synthesizeSigma; only >= 0 && only != is.sigma || !strings.Contains(is.first, *synthesizeFirst) {
			continue
		}
		by := ""
		if is.method == "bandit" {
			by = ", by a bandit"
		}
		fmt.Fprintf(&b, "\n## Declared work off by sigma %v, %s first%s\n\n", is.sigma, is.first, by)
		b.WriteString("| workload | best candidate, mean JCT | first | synthesizer | to the best | to the first | looks | switches | taken back |\n")
		b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
		for _, s := range studiedWorkloads(t, is.first) {
			if strings.Contains(s.name, *synthesizeOnly) {
				if is.sigma > 0 {
					s.spec.Estimate = workload.Estimate{Source: workload.EstimateNoisy, Sigma: is.sigma}
				}
				s.spec.Synthesizer.Method = is.method
				b.WriteString(s.row(t, alone))
			}
		}
	}
	if err := os.WriteFile(filepath.Clean(*synthesizeWrite), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// row is what came of a workload. alone has what came of candidates alone, of which each is simulated once.
func (s *studied) row(t *testing.T, alone map[string]float64) string {
	best, bestName, first, all := math.Inf(1), "", 0.0, ""
	for i := range len(s.spec.Synthesizer.Candidates) + 1 {
		name, spec := static(s.spec, i)
		of := fmt.Sprintf("%s, sigma %v, %s", s.name, s.spec.Estimate.Sigma, name)
		jct, known := alone[of]
		if !known {
			jct = float64(s.run(t, spec).Summary.JCTSeconds.Mean)
			alone[of] = jct
		}
		if i == 0 {
			first = jct
		}
		if jct < best {
			best, bestName = jct, name
		}
		all += fmt.Sprintf(" %s %.0f", name, jct)
	}
	t.Log(s.name + all)
	spec := s.spec
	spec.Synthesizer.SwitchMargin, spec.Synthesizer.Horizon = *synthesizeMargin, *synthesizeHorizon
	r := s.run(t, spec)
	m, jct := r.Summary.Synthesizer, float64(r.Summary.JCTSeconds.Mean)
	t.Logf("%s: best %s %.0f, first %.0f, synthesizer %.0f (%+.1f %%, %+.1f %%), %d looks, %d switches",
		s.name, bestName, best, first, jct, 100*(jct/best-1), 100*(jct/first-1), m.Looks, m.Switches)
	for _, l := range m.Log {
		t.Logf("   %.0f h: %s", float64(l.AtSeconds)/3600, l.Why)
	}
	return fmt.Sprintf("| %s | %s %.0f | %.0f | %.0f | %+.1f %% | %+.1f %% | %d | %d | %d |\n",
		s.name, bestName, best, first, jct, 100*(jct/best-1), 100*(jct/first-1), m.Looks, m.Switches, m.TakenBack)
}
