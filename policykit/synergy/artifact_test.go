package synergy_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/refdata"
	. "github.com/quartet-sched/quartet/policykit/synergy"
)

const (
	artifactRound   = 300.0 // seconds
	artifactStatic  = 1.0   // when the first round of a trace without arrivals is
	artifactServers = 4
	artifactDevices = 8 // of a server
	// artifactFloor is the memory for a device, in GB, of models that need no more than the least measured. The answers of
	// Tetris hold for 20, and not for the 20.83 of the table.
	artifactFloor = 20
)

var (
	artifactServer = Server{Devices: artifactDevices, Resources: core.Resources{CPUs: 24, MemoryGB: 500}}
	artifactFair   = artifactServer.Times(1.0 / artifactDevices)
	artifactAll    = Capacity{artifactServers * artifactDevices, artifactServer.Times(artifactServers)}
)

var (
	orders = map[string]artifactOrder{
		"FIFO":   func(j *artifactJob, _ float64) float64 { return j.ArrivalSeconds },
		"SRTF":   func(j *artifactJob, _ float64) float64 { return j.RemainingSeconds },
		"LAS":    func(j *artifactJob, _ float64) float64 { return j.attained * float64(j.Job.Devices) },
		"FTF":    by(MisreadFTF),
		"DRF":    by(DRF),
		"TETRIS": by(Tetris),
	}
	modes  = map[string]Mode{"fair": Fair, "tune": Tune, "greedy": Greedy}
	traces = map[string]string{"dyn": "dynamic_100.csv", "multi": "multi_200.csv", "static": "static_100.csv"}
)

// artifactOrder is the key of a job at a moment, in seconds: the smallest runs first.
type artifactOrder func(j *artifactJob, now float64) float64

func by(key func(s *State, now float64, of Capacity) float64) artifactOrder {
	return func(j *artifactJob, now float64) float64 { return key(&j.State, now, artifactAll) }
}

// artifactJob is a job as the simulator of the Synergy artifact has it.
type artifactJob struct {
	Job
	State
	id        int
	iteration float64 // seconds at the proportional share
	left      float64 // iterations
	attained  float64 // seconds in which it ran
	last      float64 // speed of the round before, 0 when it did not run
	key       float64
	finish    float64
}

// artifact repeats the simulator of the Synergy artifact: every round is planned from nothing, a job's iterations are whole in each,
// and it finishes at the end of one.
type artifact struct {
	packer  Packer
	order   artifactOrder
	servers []Server
	jobs    []artifactJob // by arrival
	active  []*artifactJob
	round   []Job
	watch   func(now float64, jobs []*artifactJob, grants []Grant) // nil for nobody
}

// reckoned is the speed by which the remaining time is reckoned: that of the round before for a job that ran in it, else that of its demand.
func (j *artifactJob) reckoned(mode Mode) float64 {
	switch {
	case mode == Fair:
		return 1
	case j.last > 0:
		return j.last
	}
	return j.Job.Demand.Speed
}

func newArtifact(order artifactOrder, mode Mode, rows []workload.SynergyRow, models map[string]*core.Sensitivity) *artifact {
	a := &artifact{order: order, packer: Packer{Mode: mode}, servers: slices.Repeat([]Server{artifactServer}, artifactServers)}
	for _, row := range rows {
		table := *models[row.Model]
		j := artifactJob{id: row.ID, iteration: table.IterationSeconds, left: row.Iterations}
		table.Ideal.MemoryGB = table.Memory(artifactFloor)
		table.CPUs, table.MemoryGB, table.Speeds = nil, nil, nil // as published, on a line up to the ideal
		j.Job.Devices = row.Devices
		j.Fair, j.Job.Demand = Want(&core.JobSpec{Sensitivity: &table}, row.Devices, artifactDevices, artifactFair, artifactServer.Resources)
		j.State = State{
			ArrivalSeconds: row.ArrivalSeconds, Devices: row.Devices, Demand: j.Job.Demand.Resources,
			DurationSeconds: table.IterationSeconds * row.Iterations,
		}
		a.jobs = append(a.jobs, j)
	}
	slices.SortStableFunc(a.jobs, func(x, y artifactJob) int { return cmp.Compare(x.ArrivalSeconds, y.ArrivalSeconds) })
	return a
}

func (a *artifact) run() {
	now := math.Ceil(a.jobs[0].ArrivalSeconds/artifactRound) * artifactRound
	if a.jobs[len(a.jobs)-1].ArrivalSeconds < artifactStatic {
		now = artifactStatic
	}
	next := 0
	a.active = a.active[:0]
	for ; next < len(a.jobs) || len(a.active) > 0; now += artifactRound {
		for ; next < len(a.jobs) && a.jobs[next].ArrivalSeconds <= now; next++ {
			a.active = append(a.active, &a.jobs[next])
		}
		for _, j := range a.active {
			j.RemainingSeconds = j.iteration * j.left / j.reckoned(a.packer.Mode)
			j.key = a.order(j, now)
		}
		slices.SortStableFunc(a.active, func(x, y *artifactJob) int {
			return cmp.Or(cmp.Compare(x.key, y.key), cmp.Compare(x.ArrivalSeconds, y.ArrivalSeconds))
		})
		a.round = a.round[:0]
		for _, j := range a.active {
			a.round = append(a.round, j.Job)
		}
		grants := a.packer.Round(a.servers, a.round)
		if a.watch != nil {
			a.watch(now, a.active, grants)
		}
		for i, grant := range grants {
			j := a.active[i]
			if j.last = grant.Speed; grant.Speed == 0 {
				continue
			}
			j.left -= math.Floor(artifactRound / (j.iteration / grant.Speed))
			j.attained += artifactRound
			if j.left <= 0 {
				j.finish = now + artifactRound
			}
		}
		a.active = slices.DeleteFunc(a.active, func(j *artifactJob) bool { return j.left <= 0 })
	}
}

// artifactInput reads a trace, and the models of one device on servers with three CPUs for a device.
func artifactInput(t testing.TB, trace string) ([]workload.SynergyRow, map[string]*core.Sensitivity) {
	t.Helper()
	folder := refdata.Path(t, "data", "synergy")
	rows, err := workload.ReadSynergy(context.Background(), filepath.Join(folder, traces[trace]))
	if err != nil {
		t.Fatal(err)
	}
	list, err := workload.ReadSynergyModels(context.Background(), filepath.Join(folder, "models.csv"))
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]*core.Sensitivity{}
	for i := range list {
		if m := &list[i]; m.CPUsPerDevice == artifactFair.CPUs && m.Devices == 1 {
			models[m.Model] = &m.Sensitivity
		}
	}
	return rows, models
}

// summary is the mean, the 99th percentile as the artifact counts, and the end.
func (a *artifact) summary() string {
	var jct []float64
	end, sum := 0.0, 0.0
	for i := range a.jobs {
		j := &a.jobs[i]
		jct = append(jct, j.finish-j.ArrivalSeconds)
		sum += j.finish - j.ArrivalSeconds
		end = max(end, j.finish)
	}
	slices.Sort(jct)
	p99 := jct[int(0.99*float64(len(jct)))]
	return fmt.Sprintf("mean %.1f s, p99 %.1f s, makespan %.0f s", sum/float64(len(jct)), p99, end)
}

// Every job finishes when the artifact says so, and has attained as much.
func TestArtifactJobs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(refdata.Path(t, "reference", "synergy"), "*.csv"))
	if err != nil || len(files) == 0 {
		t.Fatal("no answers", err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(strings.TrimSuffix(name, ".csv"), func(t *testing.T) {
			t.Parallel()
			parts := append(strings.Split(strings.TrimSuffix(name, ".csv"), "_"), "greedy")
			rows, models := artifactInput(t, parts[0])
			a := newArtifact(orders[parts[1]], modes[parts[2]], rows, models)
			a.run()
			finish, attained := answers(t, path)
			for i := range a.jobs {
				if j := &a.jobs[i]; j.finish != finish[j.id] || j.attained != attained[j.id] {
					t.Errorf("job %d finishes at %v s after %v s of running, want %v s and %v s", j.id, j.finish, j.attained, finish[j.id], attained[j.id])
				}
			}
			t.Log(a.summary())
		})
	}
}

// answers reads when jobs finished and how long they ran, by job.
func answers(t *testing.T, path string) (finish, attained map[int]float64) {
	t.Helper()
	records := refdata.Rows(t, path)
	finish, attained = map[int]float64{}, map[int]float64{}
	for _, record := range records[1:] {
		id, err := strconv.Atoi(record[0])
		if err != nil {
			t.Fatal(err)
		}
		for column, of := range map[string]map[int]float64{"finish_s": finish, "attained_s": attained} {
			if of[id], err = strconv.ParseFloat(record[slices.Index(records[0], column)], 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return finish, attained
}

// Every combination ends, and nobody runs below the proportional share.
func TestArtifactCombinations(t *testing.T) {
	t.Parallel()
	for trace := range traces {
		rows, models := artifactInput(t, trace)
		for order := range orders {
			for mode := range modes {
				a := newArtifact(orders[order], modes[mode], rows, models)
				a.run()
				for i := range a.jobs {
					j := &a.jobs[i]
					most := math.Ceil(j.DurationSeconds/j.iteration/math.Floor(artifactRound/j.iteration)) * artifactRound
					if j.finish == 0 || j.attained > most {
						t.Errorf("%s %s %s: job %d finished at %v s after %v s of running, want at most %v s", trace, order, mode, j.id, j.finish, j.attained, most)
					}
				}
				t.Logf("%-6s %-6s %-6s %s", trace, order, mode, a.summary())
			}
		}
	}
}

// Tune stays near the bound, which is certified to be near what can be reached on one machine. The paper tells of 10 %.
func TestTuneAgainstTheBound(t *testing.T) {
	t.Parallel()
	rows, models := artifactInput(t, "dyn")
	model := map[int]string{}
	for _, row := range rows {
		model[row.ID] = row.Model
	}
	a := newArtifact(orders["FIFO"], Tune, rows, models)
	var solver optim.Bundles
	rounds, tuned, bound, gap := 0, 0.0, 0.0, 0.0
	a.watch = func(now float64, jobs []*artifactJob, grants []Grant) {
		var together []Measured
		speeds := 0.0
		for i, j := range jobs {
			if grants[i].Speed > 0 {
				together = append(together, Measured{j.Job, models[model[j.id]]})
				speeds += grants[i].Speed
			}
		}
		if math.Mod(now, 10*artifactRound) != 0 || len(together) == 0 {
			return
		}
		best, err := Optimum(context.Background(), &solver, artifactAll, together)
		if err != nil || best.Bound < speeds-1e-6 {
			t.Errorf("at %v s: speeds %v, bound %v, error %v", now, speeds, best.Bound, err)
		}
		rounds++
		tuned += speeds
		bound += best.Bound
		gap = max(gap, best.Gap())
	}
	a.run()
	t.Logf("%d rounds: tune %.1f %% of the bound, which is proven to %.2f %% at worst", rounds, 100*tuned/bound, 100*gap)
	if rounds == 0 || gap > 0.05 {
		t.Errorf("%d rounds, gap %v", rounds, gap)
	}
}

// A run of the artifact's 100 jobs.
func BenchmarkArtifact(b *testing.B) {
	rows, models := artifactInput(b, "dyn")
	for _, name := range []string{"FIFO_fair", "FIFO_tune", "SRTF_tune", "TETRIS_greedy"} {
		b.Run(name, func(b *testing.B) {
			order, mode, _ := strings.Cut(name, "_")
			for b.Loop() {
				newArtifact(orders[order], modes[mode], rows, models).run()
			}
		})
	}
}
