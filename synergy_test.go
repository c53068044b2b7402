package quartet_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// synergyRun is a run of a config of Synergy's on one of the traces of its artifact.
func synergyRun(t *testing.T, order, mode, trace string, sets ...string) []metrics.Job {
	t.Helper()
	traces := map[string]string{"dyn": "dynamic_100.csv", "multi": "multi_200.csv", "static": "static_100.csv"}
	sets = append(sets, "output.write=[]", "workload.config.path=${QUARTET_DATA}/data/synergy/"+traces[trace])
	if trace == "static" {
		sets = append(sets, "workload.config.delay=299s")
	}
	c, err := quartet.Load(quartet.Builtins(), quartet.Options{
		Files: []string{"papers/synergy-osdi22/" + order + "-" + mode + ".yaml"}, Env: os.LookupEnv, Sets: sets,
	})
	if err != nil {
		t.Fatal(err)
	}
	return simulate(t, c).Jobs
}

// synergyAnswer is what the artifact says of a job, in seconds and device-seconds.
type synergyAnswer struct{ finish, attained float64 }

func synergyAnswers(t *testing.T, path string) map[string]synergyAnswer {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
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
// second 1, and here at 300: every moment is 299 s later, and nothing else differs.
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

// With tune nobody is slower than with the part of CPUs and memory that belongs to its devices, at any time, whatever the order; and a job takes as many
// rounds at most as it would with that.
func TestSynergyTuneIsNeverBelowProportional(t *testing.T) {
	t.Parallel()
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
