package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/engine"
)

// restless is an allocator that does not say how long its answers stand, and so is asked in every round, as all stages are then.
type restless struct{ allocator core.Allocator }

func (r restless) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	return r.allocator.Allocate(ctx, v, candidates)
}

// Guarantees are those of the allocator.
func (r restless) Guarantees() core.Guarantees {
	if g, ok := r.allocator.(core.Guarantor); ok {
		return g.Guarantees()
	}
	return core.UsualGuarantees()
}

// AskedOnce and Precedes are those of the allocator.
func (r restless) AskedOnce() bool {
	can := core.AbilitiesOf(r.allocator)
	return !can.AskedAgain()
}

func (r restless) Precedes() bool {
	can := core.AbilitiesOf(r.allocator)
	return can.Precedes()
}

// A round that is not held has no number, and gives nobody who waits another reason.
var (
	roundNumber = regexp.MustCompile(`"round":\d+,`)
	verdictLine = regexp.MustCompile(`(?m)^.*"verdict":.*\n`)
)

// A simulation that sleeps while nothing changes decides what one decides that holds each round, however devices are shared.
func TestRoundsThatAreNotHeldWouldChangeNothing(t *testing.T) {
	seed := uint64(0)
	for _, sharing := range []core.Sharing{core.Exclusive, core.Fractional, core.Mig, core.TimeSlice} {
		for _, allocation := range catalog().Allocation {
			if len(allocation.Sharing) > 0 && !slices.Contains(allocation.Sharing, sharing) {
				continue
			}
			queues := []string{""}
			for _, field := range allocation.Fields() {
				if field.Name == "queue" {
					queues = field.Enum
				}
			}
			for _, placement := range catalog().Placement {
				if sharing == core.Exclusive && !placement.Counts || sharing != core.Exclusive && !slices.Contains(placement.Sharing, sharing) {
					continue
				}
				seed++
				trace, queue := seed, queues[seed%uint64(len(queues))]
				t.Run(strings.TrimSpace(fmt.Sprintf("%v/%s/%s %s", sharing, allocation.Type, placement.Type, queue)), func(t *testing.T) {
					t.Parallel()
					c := sharingAtRandom(t, trace, sharing, placement.Counts, allocation.Type, queue, placement.Type)
					jobs, err := quartet.LoadWorkload(t.Context(), c, nil)
					if err != nil {
						t.Fatal(err)
					}
					var runs [2][3]string
					for i := range runs {
						stages, err := engine.BuildStages(c, nil)
						if err != nil {
							t.Fatal(err)
						}
						if i > 0 {
							stages.Allocation.Policy = restless{stages.Allocation.Policy}
						}
						runs[i] = filesOf(t, c, jobs, stages)
					}
					if diff := cmp.Diff(strings.Split(runs[1][0], "\n"), strings.Split(runs[0][0], "\n")); diff != "" {
						t.Errorf("jobs.csv (-every round +as it stands)\n%s", diff)
					}
					decisions := func(run int) []string {
						return strings.Split(roundNumber.ReplaceAllString(verdictLine.ReplaceAllString(runs[run][2], ""), ""), "\n")
					}
					if diff := cmp.Diff(decisions(1), decisions(0)); diff != "" {
						t.Errorf("decisions.jsonl (-every round +as it stands)\n%s", diff)
					}
				})
			}
		}
	}
}

// sharingAtRandom is a config of a small cluster whose nodes fail, and of jobs drawn at random: parts of devices, pinned ones, elastic ones, with CPUs and memory. There is no more than
// one type of device for two seeds of three.
func sharingAtRandom(t *testing.T, seed uint64, sharing core.Sharing, counts bool, allocation, queue, placement string) *configs.Config {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	var rows strings.Builder
	rows.WriteString("name,submit_s,duration_s,replicas,min_replicas,max_replicas,share_milli,pinned,cpus,memory_gb,utilisation,device_memory_gb,best_effort\n")
	for i := range 6 + random.IntN(8) {
		replicas := 1 + random.IntN(3)
		least, most := replicas, replicas
		if random.IntN(2) == 0 {
			least, most = 1, replicas+2
		}
		fmt.Fprintf(&rows, "j%d,%d,%d,%d,%d,%d,%s,%v,%d,%d,0.%d,%d,%v\n", i, random.IntN(900), 120+random.IntN(3000), replicas, least, most,
			pick("", "250", "250", "500", "700", "0"), random.IntN(3) == 0, 1+random.IntN(3), 4*(1+random.IntN(3)), 1+random.IntN(9), 2+random.IntN(4), random.IntN(4) == 0)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "jobs.csv")
	if err := os.WriteFile(path, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := ""
	if queue != "" {
		settings = ", config: {queue: " + queue + "}"
	}
	second := ""
	if seed%3 == 0 {
		second = ", {name: m, count: 1, accelerator: v100, devices: 4, cpus: 12, memory_gb: 64, device_memory_gb: 32}"
	}
	text := fmt.Sprintf(`version: 1
name: standing
seed: %d
cluster:
  sharing: %v
  count_resources: %v
  nodes: [{name: n, count: 2, accelerator: t4, devices: 3, cpus: 10, memory_gb: 48, device_memory_gb: 16}%s]
workload: {type: csv, config: {path: %s}}
round: {interval: 60s, on_events: %v}
pipeline:
  allocation: {type: %s%s}
  placement: {type: %s}
  elasticity: {job: {type: fixed, config: {replicas: %s}}}
backend: {type: simulator, config: {restart_overhead: 10s, failures: {mtbf: 3h, repair: 10m}}}
`, seed, sharing, counts && seed%2 == 0 || sharing == core.Exclusive, second, path, seed%4 == 1, allocation, settings, placement, pick("requested", "elastic"))
	c, err := configs.Parse(catalog(), "standing.yaml", []byte(text), configs.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}
