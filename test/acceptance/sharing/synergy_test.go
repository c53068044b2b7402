package sharing_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/optim"
	"github.com/quartet-sched/quartet/internal/doortest"
	"github.com/quartet-sched/quartet/internal/refdata"
	"github.com/quartet-sched/quartet/policykit/synergy"
)

// synergyRun is a run of a config of Synergy's on one of the traces of its artifact.
func synergyRun(t *testing.T, order, mode, trace string, sets ...string) []metrics.Job {
	t.Helper()
	traces := map[string]string{"dyn": "dynamic_100.csv", "multi": "multi_200.csv", "static": "static_100.csv"}
	sets = append(sets, "output.write=[]", "workload.config.path=${QUARTET_DATA}/data/synergy/"+traces[trace])
	c, err := quartet.Load(quartet.Builtins(), quartet.Options{
		Files: []string{"papers/synergy-osdi22/" + order + "-" + mode + ".yaml"}, Env: os.LookupEnv, Sets: sets,
	})
	if err != nil {
		t.Fatal(err)
	}
	return doortest.Simulate(t, c).Jobs
}

// synergyAnswer is what the artifact says of a job, in seconds and device-seconds.
type synergyAnswer struct{ finish, attained float64 }

func synergyAnswers(t *testing.T, path string) map[string]synergyAnswer {
	t.Helper()
	records := refdata.Rows(t, path)
	number := func(record []string, column string) float64 {
		x, err := strconv.ParseFloat(record[slices.Index(records[0], column)], 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	answers := map[string]synergyAnswer{}
	for _, record := range records[1:] {
		answers[record[0]] = synergyAnswer{number(record, "finish_s"), number(record, "attained_s") * number(record, "gpus")}
	}
	return answers
}

// Every job ends when the simulator of the Synergy artifact says so, and has run for as long: the order, the division of CPUs and memory and the
// seats are those of the artifact, composed of an allocator and a placer. Where all jobs are there within the first second the artifact begins at
// second 1, and here at 300, for the reader submits them later: every moment is 299 s later, and nothing else differs.
func TestSynergyArtifact(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(refdata.Path(t, "reference", "synergy"), "*.csv"))
	if err != nil || len(files) == 0 {
		t.Fatal("no answers", err)
	}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".csv")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := append(strings.Split(strings.ToLower(name), "_"), "greedy")
			trace, order, mode := parts[0], parts[1], parts[2]
			begins := 0.0
			if trace == "static" {
				begins = 299
			}
			answers := synergyAnswers(t, path)
			jobs := synergyRun(t, order, mode, trace)
			if len(jobs) != len(answers) {
				t.Fatalf("%d jobs, want %d", len(jobs), len(answers))
			}
			for i := range jobs {
				j := &jobs[i]
				got, want := synergyAnswer{float64(j.FinishSeconds) - begins, float64(j.GPUSeconds)}, answers[j.Name]
				if got != want {
					t.Errorf("job %s of %d ends at %v s after %v device-seconds, want %v s and %v", j.Name, j.ID, got.finish, got.attained, want.finish, want.attained)
				}
			}
		})
	}
}

// With tune no job is slower than with the part of CPUs and memory that belongs to its devices, at any time, whatever the order; and a job takes as many
// rounds at most as it would with that.
func TestSynergyTuneIsNeverBelowProportional(t *testing.T) {
	t.Parallel()
	refdata.Path(t, "data", "synergy")
	for _, trace := range []string{"dyn", "multi", "static"} {
		for _, order := range []string{"fifo", "srtf", "las", "drf", "tetris", "ftf"} {
			t.Run(trace+" "+order, func(t *testing.T) {
				t.Parallel()
				fair, tuned := map[string]float64{}, synergyRun(t, order, "tune", trace)
				for _, j := range synergyRun(t, order, "fair", trace) {
					fair[j.Name] = float64(j.GPUSeconds)
				}
				faster := 0
				for _, j := range tuned {
					switch got := float64(j.GPUSeconds); {
					case got > fair[j.Name]:
						t.Errorf("job %s takes %v device-seconds, and %v with its part of CPUs and memory", j.Name, got, fair[j.Name])
					case got < fair[j.Name]:
						faster++
					}
				}
				if faster == 0 {
					t.Error("nobody is faster")
				}
			})
		}
	}
}

// divided watches how CPUs and memory are divided: how fast jobs are together, and what the bound is of it, in every tenth round.
type divided struct {
	t      *testing.T
	solver optim.Bundles
	fleet  synergy.Fleet

	rounds, jobs          int
	speeds, fair          float64 // sums over jobs and rounds, of all
	sampled, bound, worst float64 // of the rounds with a bound: speeds, bounds and the largest certified gap
}

func (d *divided) ObserveRound(r *core.Report) error {
	d.fleet.CountIn(r.View)
	d.rounds++
	var together []synergy.Measured
	sum := 0.0
	for _, j := range r.View.Jobs {
		if j == nil || j.State != core.Running {
			continue
		}
		job := d.fleet.Job(j.JobSpec, j.Held, core.AnyAccelerator)
		speed, fair := synergy.SpeedOf(j.JobSpec, j.Has()), synergy.SpeedOf(j.JobSpec, job.Fair.Times(1/float64(j.Held)))
		if speed < fair-1e-9 {
			d.t.Errorf("round %d: job %q is %v fast with %+v, and %v with its part", r.View.Round, j.Name, speed, j.Has(), fair)
		}
		sum, d.fair, d.jobs = sum+speed, d.fair+fair, d.jobs+1
		together = append(together, synergy.Measured{Job: job, Table: j.Sensitivity})
	}
	d.speeds += sum
	if d.rounds%10 != 0 || len(together) == 0 {
		return nil
	}
	best, err := synergy.Optimum(context.Background(), &d.solver, d.fleet.Capacity, together)
	if err != nil {
		return err
	}
	if sum > best.Bound+1e-6 {
		d.t.Errorf("round %d: speeds add up to %v, above the bound %v", r.View.Round, sum, best.Bound)
	}
	d.sampled, d.bound, d.worst = d.sampled+sum, d.bound+best.Bound, max(d.worst, best.Gap())
	return nil
}

// With tune nobody is below the part of its devices at any time, whether jobs are seated anew or stay, and the speeds come near to what the best division among
// those that run could reach on one machine, which is proven. The paper tells of 10 %.
func TestSynergyTuneAgainstTheBound(t *testing.T) {
	t.Parallel()
	measured := []string{"workload.config.speeds=measured", "workload.config.path=${QUARTET_DATA}/data/synergy/dynamic_100.csv"}
	for name, tc := range map[string]struct {
		file  string
		sets  []string
		least float64 // part of the bound
	}{
		"the artifact's jobs":                    {"papers/synergy-osdi22/fifo-tune.yaml", measured, 0.89},
		"the artifact's jobs, which stay":        {"papers/synergy-osdi22/fifo-tune.yaml", append([]string{"pipeline.placement.config.replan=false"}, measured...), 0.88},
		"jobs of several devices":                {"papers/synergy-osdi22/fifo-tune.yaml", []string{"workload.config.path=${QUARTET_DATA}/data/synergy/multi_200.csv"}, 0.85},
		"generated jobs, by remaining time":      {"compositions/cpus-and-memory.yaml", nil, 0.95},
		"generated jobs, consolidated":           {"compositions/cpus-and-memory.yaml", []string{"pipeline.placement.config.consolidate=true"}, 0.95},
		"generated jobs, least attained service": {"compositions/cpus-and-memory.yaml", []string{"pipeline.allocation={type: las, config: {queue: all}}"}, 0.95},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.file != "compositions/cpus-and-memory.yaml" {
				refdata.Path(t, "data", "synergy")
			}
			c, err := quartet.Load(quartet.Builtins(), quartet.Options{Files: []string{tc.file}, Env: os.LookupEnv, Sets: append(tc.sets, "output.write=[]")})
			if err != nil {
				t.Fatal(err)
			}
			d := &divided{t: t}
			c.Observers = append(c.Observers, d)
			doortest.Simulate(t, c)
			t.Logf("%d rounds: speeds %.3f of the bound, which is proven to %.2f %% at worst; %.3f times as fast as with their parts", d.rounds, d.sampled/d.bound, 100*d.worst, d.speeds/d.fair)
			if d.worst > 0.08 || d.sampled < tc.least*d.bound || d.speeds <= d.fair {
				t.Errorf("speeds %v, with their parts %v; of those with a bound %v, bound %v, gap %v", d.speeds, d.fair, d.sampled, d.bound, d.worst)
			}
		})
	}
}

// A run of the artifact's 100 jobs, with and without what it takes to load it.
func BenchmarkSynergy(b *testing.B) {
	b.Setenv("QUARTET_DATA", filepath.Dir(refdata.Path(b, "data")))
	for _, name := range []string{"fifo-fair", "fifo-tune", "srtf-tune", "tetris-greedy"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c, err := quartet.Load(quartet.Builtins(), quartet.Options{Files: []string{"papers/synergy-osdi22/" + name + ".yaml"}, Env: os.LookupEnv, Sets: []string{"output.write=[]"}})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := c.Simulate(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
