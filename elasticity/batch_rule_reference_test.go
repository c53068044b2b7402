package elasticity

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// aloneJob is a job of a profiled application on so many devices, of which nobody else wants any, on nodes of four.
type aloneJob struct {
	job   workload.Job
	seats []core.Seat
	shape []int
}

func newAloneJob(job workload.Job, replicas int) *aloneJob {
	a := &aloneJob{job: job}
	for node := 0; replicas > 0; node++ {
		on := min(replicas, 4)
		a.seats = append(a.seats, coretest.Seat(core.NodeID(node), []int{0, 1, 2, 3}[:on]...))
		a.shape = append(a.shape, on)
		replicas -= on
	}
	return a
}

func (a *aloneJob) replicas() int { return core.Replicas(a.seats) }

func (a *aloneJob) running(t core.Tuning) workload.Running {
	return workload.Running{Shape: a.shape, Replicas: a.replicas(), Tuning: t}
}

// begins is the work done when an epoch begins.
func (a *aloneJob) begins(epoch int) float64 {
	if epoch == 0 {
		return 0
	}
	return a.job.Model.PhaseEnd(epoch - 1)
}

// seconds is how long an epoch takes; +Inf when the job cannot run so.
func (a *aloneJob) seconds(epoch int, t core.Tuning) float64 {
	return (a.begins(epoch+1) - a.begins(epoch)) / a.job.Model.Rate(epoch, a.running(t))
}

// split is a total batch, raised to the least that all devices take.
func (a *aloneJob) split(batch int) core.Tuning {
	b := a.job.Spec.Batch
	t := core.Tuning{LearningRateFactor: 1}
	t.BatchPerDevice, t.AccumulationSteps = goodput.SplitBatch(max(batch, b.MinPerDevice*a.replicas()), a.replicas(), b)
	return t
}

func (a *aloneJob) total(t core.Tuning) int {
	return a.replicas() * t.BatchPerDevice * (t.AccumulationSteps + 1)
}

// with is how long the training takes with one batch.
func (a *aloneJob) with(batch int) float64 {
	sum := 0.0
	for epoch := range a.job.Model.Phases() {
		sum += a.seconds(epoch, a.split(batch))
	}
	return sum
}

// grid are 50 batches in geometric steps, the reference's.
func (a *aloneJob) grid() (batches []int) {
	b := a.job.Spec.Batch
	from, to := float64(max(b.Initial, b.MinPerDevice*a.replicas())), float64(b.Max)
	for i := range 50 {
		batches = append(batches, min(int(math.Ceil(from*math.Pow(to/from, float64(i)/49)-1e-8)), b.Max))
	}
	return batches
}

// best is how long the training takes if each epoch has the batch of the grid that is the best for it.
func (a *aloneJob) best() float64 {
	sum := 0.0
	for epoch := range a.job.Model.Phases() {
		least := math.Inf(1)
		for _, batch := range a.grid() {
			least = min(least, a.seconds(epoch, a.split(batch)))
		}
		sum += least
	}
	return sum
}

// fastest is the batch of the grid with the most samples a second.
func (a *aloneJob) fastest() (batch int) {
	most := 0.0
	for _, b := range a.grid() {
		t := a.split(b)
		m, _, ok := a.job.Model.(workload.Measurer).Measure(0, a.running(t))
		if rate := float64(a.total(t)) / (m.StepSeconds + float64(t.AccumulationSteps)*m.PassSeconds); ok && rate > most {
			most, batch = rate, b
		}
	}
	return batch
}

// ruled is how long the training takes with the batches that an elasticity gives it. The job reports in each epoch.
func (a *aloneJob) ruled(t *testing.T, settings map[string]any) float64 {
	t.Helper()
	spec := a.job.Spec
	spec.ID = 0
	settings["knowledge"] = oracle
	settings["epochs_of"] = []any{map[string]any{"application": spec.Application, "epochs": a.job.Model.Phases()}}
	p := newBatchRule(t, settings)
	j := core.NewJob(&spec)
	v := &core.View{Jobs: []*core.Job{j}, Changed: []core.JobID{j.ID}, Cluster: coretest.MakeCluster().Nodes(4, "t4", 4).Obj()}
	ask := func() {
		if _, err := p.Respond(t.Context(), v, v.Jobs); err != nil {
			t.Fatal(err)
		}
		tunings, err := p.Tune(t.Context(), v, []core.Placement{{Job: j.ID, Seats: a.seats}})
		if err != nil {
			t.Fatal(err)
		}
		for _, tuning := range tunings {
			j.Tuning = tuning
		}
	}
	for epoch := range a.job.Model.Phases() {
		j.Progress = a.begins(epoch)
		ask()
		j.State, j.Seats, j.Held = core.Running, a.seats, a.replicas()
		m, g, ok := a.job.Model.(workload.Measurer).Measure(epoch, a.running(j.Tuning))
		if !ok {
			return math.Inf(1)
		}
		m.Accelerator = "t4"
		if !slices.ContainsFunc(j.Measured, m.SameConfiguration) {
			j.Measured = append(j.Measured, m)
		}
		j.Gradients = g
		tuned := j.Tuning
		v.NowSeconds += a.seconds(epoch, tuned) / 2
		j.Progress = (a.begins(epoch) + a.begins(epoch+1)) / 2
		if ask(); !tuned.Equal(j.Tuning) {
			if tuned.LearningRateFactor = j.Tuning.LearningRateFactor; !tuned.Equal(j.Tuning) {
				t.Fatalf("in the midst of epoch %d the batch changes from %+v to %+v", epoch, tuned, j.Tuning)
			}
		}
		v.NowSeconds += a.seconds(epoch, tuned) / 2
	}
	return v.NowSeconds
}

// profiled are jobs of applications with a profile, at their initial batch.
func profiled(t *testing.T, applications []string) map[string]workload.Job {
	t.Helper()
	profiles := refdata.Path(t, "data", "pollux-osdi21")
	trainings, err := filepath.Glob(filepath.Join(profiles, "traces", "*", "validation-*.csv"))
	if err != nil {
		t.Fatal(err)
	}
	initial := map[string]int{}
	for _, path := range trainings {
		batch, application := 0, filepath.Base(filepath.Dir(path))
		if _, err := fmt.Sscanf(filepath.Base(path), "validation-%d.csv", &batch); err != nil {
			t.Fatal(err)
		}
		if before, known := initial[application]; !known || batch < before {
			initial[application] = batch
		}
	}
	var text strings.Builder
	text.WriteString("name,time,application,num_replicas,batch_size\n")
	for i, application := range applications {
		fmt.Fprintf(&text, "%s-%d,0,%s,1,%d\n", application, i, application, initial[application])
	}
	path := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	config, problems := workload.NewPollux().Decode(map[string]any{"path": path, "profiles": profiles})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	source, err := workload.NewPollux().New(config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := source.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jobs := map[string]workload.Job{}
	for _, j := range w.Jobs {
		jobs[j.Spec.Application] = j
	}
	return jobs
}

// referenceRules are the settings of the columns of the reference.
var referenceRules = map[string]map[string]any{
	"adabatch x2/20%":     {"rule": ruleSchedule, "parts": 5, "factor": 2.0},
	"smith x5 at 1/3,2/3": {"rule": ruleSchedule, "parts": 3, "factor": 5.0},
	"gns":                 {"rule": ruleNoise},
	"gns_double":          {"rule": ruleNoiseDoubling},
	"accordion":           {"rule": ruleCriticalRegime, "checks": 10, "change": 0.5},
}

// Each cell of the reference comes out of the rules and the profiles to half a per cent; one that cannot run is null there.
func TestBatchRulesReference(t *testing.T) {
	text, err := os.ReadFile(refdata.Path(t, "reference", "adaptive-batch", "run_times.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	var applications []string
	for _, row := range rows {
		applications = append(applications, row["application"].(string))
	}
	applications = slices.Compact(applications)
	jobs := profiled(t, applications)
	worst, cells := 0.0, 0
	for _, row := range rows {
		application, replicas := row["application"].(string), int(row["replicas"].(float64))
		a := newAloneJob(jobs[application], replicas)
		got := map[string]float64{"goodput": a.best(), "B0": a.with(a.job.Spec.Batch.Initial), "throughput": a.with(a.fastest())}
		for column, settings := range referenceRules {
			got[column] = a.ruled(t, settings)
		}
		got["best_fixed"] = math.Inf(1)
		for batch := a.job.Spec.Batch.Initial; batch <= a.job.Spec.Batch.Max; batch *= 2 {
			if seconds := a.with(batch); seconds < got["best_fixed"] {
				got["best_fixed"], got["B_best_fixed"] = seconds, float64(batch)
			}
		}
		for column, want := range row {
			if column == "application" || column == "replicas" {
				continue
			}
			have, known := got[column]
			if !known {
				t.Errorf("nothing tells %q", column)
				continue
			}
			cells++
			if want == nil {
				if !math.IsInf(have, 1) {
					t.Errorf("%s on %d devices, %s: %.1f, want none", application, replicas, column, have)
				}
				continue
			}
			off := math.Abs(have/want.(float64) - 1)
			if worst = max(worst, off); !(off <= 0.005) {
				t.Errorf("%s on %d devices, %s: %.1f, want %.1f", application, replicas, column, have, want)
			}
		}
	}
	t.Logf("%d cells, the worst off by %.4f %%", cells, 100*worst)
}
