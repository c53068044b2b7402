package workload

import (
	"context"
	"encoding/csv"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/refdata"
)

const elasticHeader = "submit_s,application,work_s,random_batch\n"

func loadElastic(t testing.TB, rows string, settings map[string]any) (*Workload, error) {
	t.Helper()
	all := map[string]any{"path": writeFile(t, elasticHeader+rows, t.TempDir(), "stream.csv"), "profiles": toyProfile(t), "most_devices": 3}
	maps.Copy(all, settings)
	return loadFrom(t, NewElastic(), all)
}

// On one device the toy application does 20 samples in 2.5 s and needs 1.1 times the samples of a batch of 10 then.
func TestElasticJob(t *testing.T) {
	on := func(devices, batch int) Running {
		return Running{Shape: []int{devices}, Replicas: devices, Tuning: core.Tuning{BatchPerDevice: batch}}
	}
	cases := map[string]struct {
		settings map[string]any
		runs     Running
		batch    int     // requested
		seconds  float64 // that it then takes for 640 samples, 80 s of 8 a second
	}{
		"the best batch":                     {nil, on(1, 20), 10, 80},
		"the batch from the start":           {nil, on(1, 0), 10, 640 / 7.2},
		"two devices":                        {nil, on(2, 10), 10, 640 / 20.0 * 1.5},
		"an uneven batch":                    {nil, Running{Shape: []int{2}, Replicas: 2, Tuning: core.Tuning{BatchPerDevice: 10, BatchByReplica: []int{10, 6}}}, 10, 640 / 16.0 * 1.5},
		"passes":                             {nil, Running{Shape: []int{2}, Replicas: 2, Tuning: core.Tuning{BatchPerDevice: 2, AccumulationSteps: 2}}, 10, 640 / 12.0 * (0.75 + 2*0.5)},
		"the largest batch":                  {map[string]any{"batch": "largest"}, on(1, 20), 20, 80},
		"the smallest batch":                 {map[string]any{"batch": "smallest"}, on(1, 10), 10, 640 / 7.2},
		"the batch of its row":               {map[string]any{"batch": "random"}, on(1, 15), 15, 640 / 15.0 * (0.5 + 13*2.0/18)},
		"its batch from the start":           {map[string]any{"batch": "random"}, on(1, 0), 15, 640 / 16.0 * 2 * (0.5 + 6*2.0/18)}, // two passes of 8, as alone above the initial batch
		"progress at the best batch":         {map[string]any{"truth": "progress"}, on(1, 20), 10, 88},
		"progress at the largest batch":      {map[string]any{"truth": "progress", "batch": "largest"}, on(1, 20), 20, 88},
		"progress at the smallest":           {map[string]any{"truth": "progress", "batch": "smallest"}, on(1, 10), 10, 640 / 7.2},
		"spread over nodes":                  {nil, Running{Shape: []int{1, 2}, Replicas: 3, Tuning: core.Tuning{BatchPerDevice: 2}}, 10, 640 / 6.0 * 2},
		"spread, and taken for consolidated": {map[string]any{"placed": "consolidated"}, Running{Shape: []int{1, 1}, Replicas: 2, Tuning: core.Tuning{BatchPerDevice: 10}}, 10, 640 / 20.0 * 1.5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, err := loadElastic(t, "60,toy,80,15\n", tc.settings)
			if err != nil {
				t.Fatal(err)
			}
			job := w.Jobs[0]
			want := core.JobSpec{
				Name: "job-000000", Application: "toy", Weight: 1, SubmitSeconds: 60, Requested: 1, MinReplicas: 1, MaxReplicas: 3, TotalWork: 64,
				Batch: core.BatchSpec{Requested: tc.batch, Initial: 10, Max: 20, MinPerDevice: 2, MaxPerDevice: 20},
			}
			about := cmpopts.EquateApprox(1e-12, 0)
			if diff := cmp.Diff(want, job.Spec, about, cmpopts.IgnoreFields(core.JobSpec{}, "StepTimes", "Truth")); diff != "" {
				t.Errorf("job (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.seconds, job.Model.PhaseEnd(0)/job.Model.Rate(0, tc.runs), about); diff != "" || job.Model.Phases() != 1 {
				t.Errorf("seconds that it takes (-want +got):\n%s", diff)
			}
		})
	}
}

// What is told of a job is what the simulator runs it by.
func TestElasticTruth(t *testing.T) {
	for _, truth := range []string{truthSamples, truthProgress} {
		w, err := loadElastic(t, "60,toy,80,15\n", map[string]any{"truth": truth})
		if err != nil {
			t.Fatal(err)
		}
		job := w.Jobs[0]
		told := job.Spec.Truth
		if len(told.Measurements) == 0 || len(told.Steps) != map[string]int{truthSamples: 0, truthProgress: 2}[truth] {
			t.Fatalf("%s: %d measurements, steps of %d batches", truth, len(told.Measurements), len(told.Steps))
		}
		for _, m := range told.Measurements {
			runs := Running{Shape: consolidated(m.Replicas, 4), Replicas: m.Replicas, Tuning: core.Tuning{BatchPerDevice: m.PerDevice}}
			got, gradients, ok := job.Model.(Measurer).Measure(0, runs)
			if !ok || got != m || gradients != told.Gradients {
				t.Errorf("%s: measures %+v and %+v, told %+v and %+v", truth, got, gradients, m, told.Gradients)
			}
		}
		gain := (told.Gradients.Variance + told.Gradients.SquaredNorm) / (told.Gradients.Variance/2 + told.Gradients.SquaredNorm)
		if want := map[string]float64{truthSamples: 2, truthProgress: 2 / 1.1}[truth]; math.Abs(gain-want) > 1e-12 {
			t.Errorf("%s: by the statistics a step of the largest batch gains %v, want %v", truth, gain, want)
		}
		times := job.Spec.StepTimes
		for i, seconds := range times.OneNode {
			rate := job.Model.Rate(0, Running{Shape: []int{i + 1}, Replicas: i + 1})
			if seconds > 0 && math.Abs(rate*seconds-1) > 1e-12 || seconds == 0 && rate != 0 {
				t.Errorf("%s: a step on %d devices takes %v s, and %v of it is done a second", truth, i+1, seconds, rate)
			}
		}
		if left := job.Model.StepsLeft(0); left != job.Spec.TotalWork {
			t.Errorf("%s: %v steps left of %v", truth, left, job.Spec.TotalWork)
		}
		for name, c := range map[string]Running{
			"too large a batch": {Shape: []int{2}, Replicas: 2, Tuning: core.Tuning{BatchPerDevice: 10, AccumulationSteps: 1}},
			"never measured":    {Shape: []int{3}, Replicas: 3, Tuning: core.Tuning{BatchPerDevice: 5}},
			"passes below none": {Shape: []int{1}, Replicas: 1, Tuning: core.Tuning{BatchPerDevice: 10, AccumulationSteps: -1}},
		} {
			if _, _, ok := job.Model.(Measurer).Measure(0, c); ok || job.Model.Rate(0, c) != 0 {
				t.Errorf("%s: %s: it runs", truth, name)
			}
		}
	}
}

func TestElasticProblems(t *testing.T) {
	cases := map[string]struct {
		stream   string
		settings map[string]any
		want     []string
	}{
		"cells": {elasticHeader + "-1,toys,0,15\n", nil, []string{
			`stream.csv:2:1: submit_s is "-1"; expected a number of seconds from 0 to 1e11`,
			`stream.csv:2:9: work_s is "0"; expected a number of seconds above 0, at most 1e11`,
		}},
		"an application": {elasticHeader + "1,toys,1,15\n", nil, []string{
			`stream.csv:2:3: application is "toys"; expected an application with a profile: did you mean "toy"? valid names: toy`,
		}},
		"a batch out of range": {elasticHeader + "1,toy,1,21\n", map[string]any{"batch": "random"}, []string{
			`stream.csv:2:9: random_batch is "21"; expected a batch from 10 to 20, as toy may have`,
		}},
		"no batch": {"submit_s,application,work_s\n1,toy,1\n", map[string]any{"batch": "random"}, []string{
			`stream.csv:1: missing column "random_batch"`,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			settings := map[string]any{"path": writeFile(t, tc.stream, t.TempDir(), "stream.csv")}
			maps.Copy(settings, tc.settings)
			_, err := loadElastic(t, "", settings)
			if err == nil {
				t.Fatal("accepted")
			}
			positioned(t, err)
			got := strings.Split(strings.ReplaceAll(err.Error(), filepath.Dir(settings["path"].(string))+string(filepath.Separator), ""), "\n")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
	if w, err := loadElastic(t, "", map[string]any{"path": writeFile(t, "work_s,application,submit_s\n1,toy,2\n", t.TempDir(), "stream.csv")}); err != nil || len(w.Jobs) != 1 {
		t.Errorf("without a batch that nobody asks for: %v", err)
	}
}

func TestElasticConfigs(t *testing.T) {
	for name, tc := range map[string]struct {
		config ElasticConfig
		want   string
	}{
		"a stream":       {ElasticConfig{Path: "a.csv", Profiles: "p", Arrivals: arrivalsNone}, ""},
		"one drawn":      {ElasticConfig{Profiles: "p", Arrivals: arrivalsLow}, ""},
		"both":           {ElasticConfig{Path: "a.csv", Profiles: "p", Arrivals: arrivalsHigh}, "arrivals: must be none where a stream is read from path"},
		"nothing at all": {ElasticConfig{Arrivals: arrivalsNone}, "profiles: is empty\npath: is empty; name a stream, or draw one with arrivals low, high or bursty"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.config.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("problems %q, want %q", got, tc.want)
			}
		})
	}
}

// The order of the rows changes nothing.
func TestElasticRowsInAnyOrder(t *testing.T) {
	folder := toyProfile(t)
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SliceOfN(rapid.SampledFrom([]string{"5,toy,80,15", "5,toy,80,12", "5,toy,81,15", "0.5,toy,3,20", "7,toy,80,15"}), 1, 8).Draw(rt, "rows")
		load := func(rows []string) []core.JobSpec {
			in, err := newInput("s.csv", []byte(elasticHeader+strings.Join(rows, "\n")+"\n"))
			if err != nil {
				rt.Fatal(err)
			}
			c := ElasticConfig{Profiles: folder, Batch: batchRandom, Truth: truthSamples, Placed: placedMeasured, MostDevices: 3}
			w, err := newElasticLoader(c, []string{"toy"}).read(context.Background(), in)
			if err != nil {
				rt.Fatal(err)
			}
			var specs []core.JobSpec
			for _, j := range w.Jobs {
				specs = append(specs, j.Spec)
			}
			return specs
		}
		if diff := cmp.Diff(load(rows), load(rapid.Permutation(rows).Draw(rt, "permuted"))); diff != "" {
			rt.Fatalf("jobs (-as given +permuted):\n%s", diff)
		}
	})
}

// The streams that are drawn are those of the reference, as is how many jobs each seed draws.
func TestElasticDraws(t *testing.T) {
	profiles := refdata.Path(t, "data", "pollux-osdi21")
	draw := func(arrivals string, seed uint64) *Workload {
		config := mustDecode(t, NewElastic(), map[string]any{"arrivals": arrivals, "batch": "random", "profiles": profiles})
		source, err := NewElastic().New(config, core.Settings{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		w, err := source.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for arrivals, total := range map[string]int{"low": 529, "bursty": 2114, "high": 2965} {
		w := draw(arrivals, 1)
		file, err := os.Open(refdata.Path(t, "reference", "elastic-batch-dp", "stream_"+arrivals+"_seed1.csv"))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(file).ReadAll()
		if err != nil || file.Close() != nil {
			t.Fatal(err)
		}
		if len(rows)-1 != len(w.Jobs) {
			t.Fatalf("%s: %d jobs, want %d", arrivals, len(w.Jobs), len(rows)-1)
		}
		for i, row := range rows[1:] {
			spec, model := &w.Jobs[i].Spec, w.Jobs[i].Model.(*elasticModel)
			work := spec.TotalWork * float64(spec.Batch.Initial) / model.alone
			got := []string{strconv.FormatFloat(spec.SubmitSeconds, 'f', 6, 64), spec.Application, strconv.FormatFloat(work, 'f', 6, 64), strconv.Itoa(spec.Batch.Requested)}
			if diff := cmp.Diff(row, got); diff != "" {
				t.Fatalf("%s, job %d (-want +got):\n%s", arrivals, i, diff)
			}
		}
		if got := len(w.Jobs) + len(draw(arrivals, 2).Jobs) + len(draw(arrivals, 3).Jobs); got != total {
			t.Errorf("%s: three seeds draw %d jobs, want %d", arrivals, got, total)
		}
	}
}

func TestElasticRateDoesNotAllocate(t *testing.T) {
	for _, placed := range []string{placedMeasured, placedConsolidated} {
		w, err := loadElastic(t, "0,toy,80,15\n", map[string]any{"placed": placed, "truth": "progress"})
		if err != nil {
			t.Fatal(err)
		}
		c := Running{Shape: []int{2}, Replicas: 2, Tuning: core.Tuning{BatchPerDevice: 9, BatchByReplica: []int{9, 8}}}
		if n := testing.AllocsPerRun(10, func() { w.Jobs[0].Model.Rate(0, c) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", placed, n)
		}
	}
}
