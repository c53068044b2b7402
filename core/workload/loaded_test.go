package workload

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

var update = flag.Bool("update", false, "write the golden files anew")

// loadedCluster has the accelerators that the small workloads name.
func loadedCluster() *core.Cluster {
	return &core.Cluster{
		Accelerators: []string{"t4", "a100", "v100", "k80", "T4", "G2"},
		Nodes: []core.Node{
			{Name: "a", Accelerator: 0, Devices: 4},
			{Name: "b", Accelerator: 1, Devices: 8},
			{Name: "c", Accelerator: 2, Devices: 4},
			{Name: "d", Accelerator: 2, Devices: 4},
			{Name: "e", Accelerator: 3, Devices: 2},
			{Name: "f", Accelerator: 4, Devices: 4},
			{Name: "g", Accelerator: 5, Devices: 4},
		},
	}
}

// describeLoaded tells what a workload holds and how its first jobs run.
func describeLoaded(w *Workload, cluster *core.Cluster) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d jobs, %.8g device-seconds, load %.8g\n", len(w.Jobs), DeviceSeconds(w, cluster), OfferedLoad(w, cluster))
	alone := NewExclusiveTimes(cluster, w)
	const submissions, whole = 40, 6
	for i := range w.Jobs[:min(submissions, len(w.Jobs))] {
		job := &w.Jobs[i]
		s := job.Spec
		fmt.Fprintf(&b, "%s %s %s: %.8g s, %d of %d to %d, weight %v, batch %+v %v, work %.8g, on %v, %v CPUs, %v GB, limit %v, estimate %v\n", s.Name, s.Application, s.Tenant,
			s.SubmitSeconds, s.Requested, s.MinReplicas, s.MaxReplicas, s.Weight, s.Batch, s.BatchByType, s.TotalWork, s.Accelerators, s.CPUs, s.MemoryGB, job.LimitSeconds, job.EstimateSeconds)
		if i >= whole {
			continue
		}
		fmt.Fprintf(&b, " alone on its request %.8g s;", job.requestSeconds())
		for t := range cluster.Accelerators {
			fmt.Fprintf(&b, " %.6g", alone.Seconds(core.JobID(i), core.AcceleratorID(t), s.Requested))
		}
		b.WriteString("\n phases")
		last := job.Model.Phases() - 1
		for _, phase := range []int{0, last / 2, last} {
			fmt.Fprintf(&b, " %d: %.8g, %.8g left;", phase, job.Model.PhaseEnd(phase), job.StepsLeft(phase))
		}
		b.WriteString("\n")
		if s.StepTimes != nil {
			fmt.Fprintf(&b, " step times %.6v %.6v %.6v\n", s.StepTimes.OneNode, s.StepTimes.ManyNodes, s.StepTimes.Types)
			if u := s.StepTimes.MixedTypes; u != nil {
				fmt.Fprintf(&b, " of several types %+.6v\n", *u)
			}
		}
		if s.Truth != nil {
			fmt.Fprintf(&b, " truth %+.6v\n", s.Truth.Gradients)
			for _, m := range s.Truth.Measurements {
				fmt.Fprintf(&b, "  %s %d nodes, %d replicas of %d: %.6g, %.6g\n", m.Accelerator, m.Nodes, m.Replicas, m.PerDevice, m.PassSeconds, m.StepSeconds)
			}
		}
		types := s.Accelerators
		if types == nil {
			types = []string{"v100"}
		}
		for _, accelerator := range types[:min(3, len(types))] {
			fmt.Fprintf(&b, " on %s", accelerator)
			for _, shape := range [][]int{{1}, {2}, {1, 1}, {4}, {2, 2}, {3, 1}, {8}, {4, 4}} {
				c := on(accelerator, shape...)
				fmt.Fprintf(&b, " %v %.6g %.6g;", shape, job.Model.Rate(0, c), job.Model.Rate(last, c))
				c.Tuning = core.Tuning{BatchPerDevice: max(s.Batch.Initial/c.Replicas, s.Batch.MinPerDevice, 1), AccumulationSteps: 1}
				fmt.Fprintf(&b, " %.6g", job.Model.Rate(0, c))
				if m, ok := job.Model.(Measurer); ok {
					measured, g, ok := m.Measure(0, c)
					fmt.Fprintf(&b, " %.5v %.5v %v", measured, g, ok)
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// What every source loads, of small inputs and of its own, is as it was: jobs, how fast they run where, and what is told of them.
func TestLoaded(t *testing.T) {
	load := func(f core.Factory[Source], settings map[string]any) func(t *testing.T) *Workload {
		return func(t *testing.T) *Workload { return mustLoad(t, f, settings) }
	}
	cases := map[string]func(t *testing.T) *Workload{
		"generated":        load(NewGenerated(), map[string]any{"jobs": 40}),
		"applications":     load(NewGenerated(), map[string]any{"jobs": 12, "applications": true}),
		"bursts":           load(NewGenerated(), map[string]any{"jobs": 40, "arrivals": "bursty", "replicas": "philly", "durations": "philly", "span": "48h"}),
		"days":             load(NewGenerated(), map[string]any{"jobs": 40, "arrivals": "diurnal", "replicas": "gavel", "durations": "gavel", "span": "48h", "diurnal_amplitude": 0.9}),
		"at once":          load(NewGenerated(), map[string]any{"jobs": 10, "span": "0s", "replicas": "one"}),
		"unlike":           load(NewMixedTypes(), map[string]any{"jobs": 8}),
		"unlike, one type": load(NewMixedTypes(), map[string]any{"jobs": 4, "mixes_types": false, "slowest_link_gbps": 1.0, "max_replicas": 4}),
		"pollux": func(t *testing.T) *Workload {
			return loaded(t)(loadToy(t, "toy-1,60,toy,2,10\ntoy-0,60,toy,1,15\ntoy-2,90,toy,2,20\n", remainingExact))
		},
		"pollux, published": func(t *testing.T) *Workload {
			return loaded(t)(loadToy(t, "toy-1,60,toy,2,10\ntoy-0,60,toy,1,15\n", remainingPublished))
		},
		"sia": func(t *testing.T) *Workload {
			return loaded(t)(loadToySia(t, "toy-0,60,toy,1,10,\ntoy-1,70,toy,2,20,strong_scaling\ntoy-2,80,toy,2,20,rigid\nslow-3,90,slow,1,10,elastic\n",
				map[string]any{"slowdown": []any{map[string]any{"application": "slow", "factor": 2}}}))
		},
	}
	for name, r := range readers {
		cases[name] = func(t *testing.T) *Workload { return loaded(t)(readString(r.read, r.example)) }
	}
	for name, replicas := range map[string]string{"gavel, one": "one", "gavel, mixed": "mixed"} {
		cases[name] = func(t *testing.T) *Workload {
			speeds := madeUpSpeeds(t)
			return mustLoad(t, NewGavelGenerated(), map[string]any{"throughputs_path": speeds, "jobs": 30, "jobs_per_hour": 3.0, "replicas": replicas, "priorities": replicas == "one"})
		}
	}
	for _, format := range []string{gavelStream, gavelTrace, gavelPhilly} {
		cases["gavel "+format] = func(t *testing.T) *Workload {
			content := map[string]string{gavelStream: toyStream, gavelTrace: toyTrace, gavelPhilly: toyPhilly}[format]
			return loaded(t)(readString(func(in *input) (*Workload, error) {
				return GavelConfig{Format: format, Sizes: "measured", JobsPerHour: 2}.read(in, toyGavel(t, toySpeeds))
			}, content))
		}
	}
	for name, of := range cases {
		t.Run(name, func(t *testing.T) {
			got := describeLoaded(of(t), loadedCluster())
			path := filepath.Join("testdata", "loaded", strings.NewReplacer(" ", "-", ",", "").Replace(name)+".golden")
			if *update {
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// loaded is a workload without an error.
func loaded(t *testing.T) func(*Workload, error) *Workload {
	return func(w *Workload, err error) *Workload {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
}

// madeUpSpeeds writes a table of speeds of all jobs that Gavel's generator draws.
func madeUpSpeeds(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("worker_type,job_type,scale_factor,partner_job_type,partner_scale_factor,tput_self,tput_partner\n")
	for i, jobType := range gavelTemplates() {
		for _, replicas := range []int{1, 2, 4, 8} {
			fmt.Fprintf(&b, "v100,%s,%d,,,%v,\nk80,%s,%d,,,%v,\n", jobType, replicas, float64(i+3)*float64(replicas), jobType, replicas, float64(i+1)/2)
		}
	}
	return writeFile(t, b.String(), t.TempDir(), "speeds.csv")
}
