package elasticity

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// A history that knows nothing is told when the run begins, and one that does is not.
func TestAHistoryThatKnowsNothingIsTold(t *testing.T) {
	known := filepath.Join(t.TempDir(), "known.yaml")
	first := remembering(t, known, nil)
	trained(t, first, "app", truth, limits, 1)
	closed(t, first)
	for path, want := range map[string]string{filepath.Join(t.TempDir(), "absent.yaml"): "there is no such file yet", known: ""} {
		var log bytes.Buffer
		config, problems := NewGoodput().Decode(map[string]any{"knowledge": history, "history_path": path})
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := NewGoodput().New(config, core.Settings{ID: "elasticity", Log: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
			t.Fatal(err)
		}
		if got := log.String(); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: said %q, want %q in it", filepath.Base(path), got, want)
		}
	}
}

// Where nobody tells how jobs end, that is said once; not of a history that stays as it is, nor where it is told.
func TestEndsThatNobodyTellsAreNoted(t *testing.T) {
	for name, tc := range map[string]struct {
		settings map[string]any
		told     bool
		want     int
	}{
		"not told": {nil, false, 1},
		"told":     {nil, true, 0},
		"frozen":   {map[string]any{"history_frozen": true}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, log := remembering(t, filepath.Join(t.TempDir(), "pool.yaml"), tc.settings), &bytes.Buffer{}
			p.log = slog.New(slog.NewTextHandler(log, nil))
			if tc.told {
				if err := p.Ended(t.Context(), &core.View{}, nil); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				trained(t, p, "app", truth, limits, 1)
			}
			if got := strings.Count(log.String(), "ends of jobs are not reported"); got != tc.want {
				t.Errorf("said %d times, want %d:\n%s", got, tc.want, log)
			}
		})
	}
}

// Where reports differ, more of them make another fit; where they agree, their number makes none.
func TestFitsCountReportsThatDiffer(t *testing.T) {
	for spread, want := range map[float64]int{0: 1, 0.2: 2} {
		keys := map[string]bool{}
		j := trainingJob()
		ran(j, truth, 1, 1, 64)
		ran(j, slower, 1, 2, 64)
		for _, count := range []int{1, 8} {
			j.Measured[1].Count, j.Measured[1].Spread = count, spread
			keys[fitKey(j.Measured)] = true
			if got, want := fit(j.Measured), goodput.Fit(j.Measured); got != want {
				t.Errorf("spread %v, %d reports: %+v, want %+v", spread, count, got, want)
			}
		}
		if len(keys) != want {
			t.Errorf("spread %v: %d fits, want %d", spread, len(keys), want)
		}
	}
}

// A batch of a single sample is one.
func TestFixedTunesABatchOfOne(t *testing.T) {
	j := trainingJob()
	j.Batch = core.BatchSpec{Requested: 1, Initial: 1, Max: 1}
	if got := tune(t, newFixed(t, FixedConfig{Replicas: requested}), j, coretest.Seat(0, 0)); got.BatchPerDevice != 1 || got.LearningRateFactor != 1 {
		t.Errorf("tuned to %+v, want one sample", got)
	}
}

// On several nodes a job has the batch that is best there.
func TestGoodputTunesAcrossNodes(t *testing.T) {
	p, j := newGoodput(t, nil), trainingJob()
	j.Gradients = core.Gradients{SquaredNorm: 1, Variance: 5}
	costly := truth
	costly.AlphaNode = 20
	for _, batch := range []int{64, 200} {
		ran(j, costly, 1, 1, batch)
		ran(j, costly, 1, 2, batch)
		ran(j, costly, 2, 2, batch)
	}
	respond(t, p, j)
	m := goodput.Model{Performance: goodput.Fit(j.Measured), Gradients: goodput.Gradients(j.Gradients), Limits: j.Batch}
	near, far := m.Best(1, 2), m.Best(2, 2)
	if near.PerDevice == far.PerDevice && near.Accumulation == far.Accumulation {
		t.Fatalf("%+v is best on one node and on two", near)
	}
	for _, tc := range []struct {
		seats []core.Seat
		want  goodput.Choice
	}{{[]core.Seat{coretest.Seat(0, 0, 1)}, near}, {[]core.Seat{coretest.Seat(0, 0), coretest.Seat(1, 0)}, far}} {
		if got := tune(t, p, j, tc.seats...); got.BatchPerDevice != tc.want.PerDevice || got.AccumulationSteps != tc.want.Accumulation {
			t.Errorf("on %d nodes tuned to %+v, want %+v", len(tc.seats), got, tc.want)
		}
	}
}

// What a job proved wrong stays so for it after a handover, though most jobs found it right.
func TestWhatAJobRefutedIsHandedOn(t *testing.T) {
	before := remembering(t, "", nil)
	for range 4 { // all but the first find right what those before measured
		trained(t, before, "app", truth, limits, 1, 2, 4)
		begins(t, before, "app", limits)
	}
	j := trainingJob()
	j.ID = 1
	respond(t, before, j)
	ran(j, slower, 1, 1, 64)
	want := respond(t, before, j)
	learned, err := before.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	after := remembering(t, "", nil)
	if err := after.Restore(learned); err != nil {
		t.Fatal(err)
	}
	if got := begins(t, after, "app", limits); got.MaxReplicas != 8 {
		t.Fatalf("a job that proved nothing begins with %d replicas, want 8", got.MaxReplicas)
	}
	if diff := cmp.Diff(want, respond(t, after, j), cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("the job that refuted it (-before +after):\n%s", diff)
	}
	if was, is := before.pool.proofs[before.pool.live["app"]].refuted, after.pool.proofs[after.pool.live["app"]].refuted; was != 1 || is != 1 {
		t.Errorf("refuted %d times before and %d after, want once", was, is)
	}
}

// What is borrowed is refuted for all jobs of the borrower, whatever batch they ask for, and stays so after a handover.
func TestARefutedLoanIsHandedOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.yaml")
	first := remembering(t, path, nil)
	trained(t, first, "owner", truth, limits, 1, 2)
	closed(t, first)
	before, after := remembering(t, path, nil), remembering(t, path, nil)
	j := trainingJob()
	j.Application = "borrower"
	if got := respond(t, before, j); got.MaxReplicas != 4 {
		t.Fatalf("begins with %d replicas, want the 4 of the owner", got.MaxReplicas)
	}
	ran(j, slower, 1, 1, 64)
	respond(t, before, j)
	learned, err := before.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := after.Restore(learned); err != nil {
		t.Fatal(err)
	}
	other := limits
	other.Requested = 300
	for name, p := range map[string]*goodputAgent{"before": before, "after": after} {
		for _, batch := range []core.BatchSpec{limits, other} {
			if got := begins(t, p, "borrower", batch); got.MaxReplicas != 1 {
				t.Errorf("%s: with a batch of %d it begins with %d replicas, want 1", name, batch.Requested, got.MaxReplicas)
			}
		}
	}
}

// A job that is known to report nothing goes on to be, after a handover.
func TestSilenceIsHandedOn(t *testing.T) {
	before, after := newGoodput(t, nil), newGoodput(t, nil)
	j := trainingJob()
	j.ID, j.Held, j.State, j.ProgressRate = 2, 1, core.Running, 1
	v := viewOf(j)
	v.Jobs, v.NowSeconds = []*core.Job{nil, nil, j}, 60
	if _, err := before.Respond(t.Context(), v, []*core.Job{j}); err != nil {
		t.Fatal(err)
	}
	learned, err := before.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := after.Restore(learned); err != nil {
		t.Fatal(err)
	}
	v.NowSeconds = 0 // nothing of it shows yet
	got, err := after.Respond(t.Context(), v, []*core.Job{j})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].MaxReplicas != 16 {
		t.Errorf("may use %d replicas, want the 16 of a job that reports nothing", got[0].MaxReplicas)
	}
}

// A file of the greatest size is read.
func TestTheLargestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool.yaml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, inputfile.Document); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readPool(path); err == nil || strings.Contains(err.Error(), "MiB") {
		t.Errorf("error %v, want one of its content", err)
	}
}

// What is left of an application that was never seen is time on one device, of which a faster job has done more work.
func TestWorkLeftOfAnUnseenApplication(t *testing.T) {
	p := workPool{unmeasured: 600}
	p.read("other", []ending{{work: 10, seconds: 1000, finished: true}})
	if got := p.left("new", false, 300, 2); math.Abs(got-2*850) > 1e-9 {
		t.Errorf("%v is left, want 1700", got)
	}
}

// A type without a profile is taken for as fast as the one that was measured, and so is any where that one has none.
func TestGoodputWithoutAProfile(t *testing.T) {
	for _, lacking := range []string{"t4", "a100"} {
		p, j := newGoodput(t, map[string]any{"profiled": true}), trainingJob()
		for accelerator, faster := range map[string]float64{"t4": 1, "a100": 4} {
			if accelerator != lacking {
				j.Truth = &core.Truth{Measurements: []core.Measurement{{Accelerator: accelerator, Nodes: 1, Replicas: 1, PerDevice: 256, StepSeconds: 1 / faster}}}
			}
		}
		ranOn(j, "t4", 1, 1, 1, 64)
		r := respondTo(t, p, threeTypes(j))
		if got := r.Rate(1, 1, 8) / r.Rate(0, 1, 8); got != 1 {
			t.Errorf("without a profile of a %s, an a100 is taken for %v times a t4", lacking, got)
		}
	}
}

// A job that was measured without names of types is tuned to the bounds of the type that it runs on: in fewer passes where the
// least batch of a device there makes as many too large.
func TestGoodputTunesWithinTheLeastBatchOfAType(t *testing.T) {
	for least, want := range map[int]core.Tuning{
		16:  {BatchPerDevice: 16, AccumulationSteps: 3},
		32:  {BatchPerDevice: 16, AccumulationSteps: 1},
		100: {BatchPerDevice: 16},
	} {
		p, j := newGoodput(t, nil), trainingJob()
		j.Batch = core.BatchSpec{Requested: 128, Initial: 128, Max: 256, MinPerDevice: 1, MaxPerDevice: 16}
		j.BatchByType = []core.TypeBatch{{Accelerator: "t4", MinPerDevice: least, MaxPerDevice: 128}}
		for _, replicas := range []int{1, 2, 4} {
			ran(j, truth, 1, replicas, 16)
		}
		respond(t, p, j)
		got := tune(t, p, j, coretest.Seat(0, 0, 1, 2, 3))
		if got.BatchPerDevice != want.BatchPerDevice || got.AccumulationSteps != want.AccumulationSteps {
			t.Errorf("of %d at least on a device, tuned to %+v, want %+v", least, got, want)
		}
	}
}

// A job that mixes types is tuned when its replicas change, and not by a move.
func TestFixedLeavesAMoveAlone(t *testing.T) {
	j := trainingJob()
	j.MixesTypes, j.Held, j.State = true, 2, core.Running
	j.Seats = []core.Seat{coretest.Seat(0, 0, 1)}
	j.Tuning = core.Tuning{Job: j.ID, BatchPerDevice: 300, LearningRateFactor: 1}
	if got := tune(t, newFixed(t, FixedConfig{Replicas: elastic}), j, coretest.Seat(1, 0, 1)); !got.Equal(j.Tuning) {
		t.Errorf("moved, it is tuned to %+v", got)
	}
}

// A history without a file starts from what a job is taken to need before anything is known.
func TestHistoryWithoutAFileKnowsNoWork(t *testing.T) {
	p := remembering(t, "", map[string]any{"declared_work": false, "unmeasured_seconds": 900.0})
	if got := respond(t, p, trainingJob()); got.RemainingWork != 900 {
		t.Errorf("%v is left, want 900", got.RemainingWork)
	}
}

// A path is of no use to those that need no history.
func TestAHistoryThatIsNotUsed(t *testing.T) {
	p := newGoodput(t, map[string]any{"history_path": filepath.Join(t.TempDir(), "absent.yaml")})
	if got := respond(t, p, trainingJob()); got.MaxReplicas != 1 {
		t.Errorf("may use %d replicas, want 1", got.MaxReplicas)
	}
	closed(t, p)
}

// A job of which either bound of the batch is unknown has no batch to tune.
func TestGoodputNeedsBothBoundsOfABatch(t *testing.T) {
	for name, spoil := range map[string]func(*core.BatchSpec){
		"initial": func(b *core.BatchSpec) { b.Initial = 0 },
		"most":    func(b *core.BatchSpec) { b.Max = 0 },
	} {
		j := trainingJob()
		spoil(&j.Batch)
		want := respond(t, newFixed(t, FixedConfig{Replicas: elastic}), j)
		if diff := cmp.Diff(want, respond(t, newGoodput(t, nil), j), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("without the %s batch (-fixed +goodput):\n%s", name, diff)
		}
	}
}

// Jobs without gradient statistics are counted once each. Each grows by its throughput at the batch that its user asked for, or
// else at the initial one, and is tuned to what was asked for.
func TestUngradedJobsAreCounted(t *testing.T) {
	for _, jobs := range []int{1, 2} {
		p, log := noting(t, nil)
		for id := range jobs {
			j := trainingJob()
			j.ID, j.Gradients = core.JobID(id), core.Gradients{}
			if id > 0 {
				j.Batch.Requested = 0
			}
			for _, batch := range []int{64, 128, 256} {
				ran(j, truth, 1, 1, batch)
			}
			ran(j, truth, 1, 2, 256)
			got := respond(t, p, j)
			m := goodput.Model{Performance: goodput.Fit(j.Measured), Limits: j.Batch}
			m.Limits.Initial, m.Limits.Max = 512, 512
			if id > 0 {
				m.Limits.Initial, m.Limits.Max = 128, 128
			}
			if want := m.Best(1, 2).Goodput / 128; math.Abs(got.Curves[0].OneNode[1]/want-1) > 1e-12 {
				t.Errorf("job %d: two replicas do %v, want %v", id, got.Curves[0].OneNode[1], want)
			}
			v := viewOf(j)
			v.Jobs = append(make([]*core.Job, id), j)
			tuned, err := p.Tune(t.Context(), v, []core.Placement{{Job: j.ID, Seats: []core.Seat{coretest.Seat(0, 0, 1, 2)}}})
			if err != nil || len(tuned) != 1 {
				t.Fatal(tuned, err)
			}
			if want := []int{171, 43}[id]; tuned[0].BatchPerDevice != want || tuned[0].AccumulationSteps != 0 {
				t.Errorf("job %d: three replicas train with %+v, want %d each", id, tuned[0], want)
			}
		}
		closed(t, p)
		if got := log.String(); strings.Contains(got, "jobs=2") != (jobs == 2) || strings.Contains(got, "jobs=") != (jobs == 2) {
			t.Errorf("of %d jobs said:\n%s", jobs, got)
		}
	}
}

// The statistics that a history keeps of a job are those that it reported with its first measurement.
func TestTheFirstStatisticsAreKept(t *testing.T) {
	p, j := remembering(t, "", nil), trainingJob()
	want := core.Gradients{SquaredNorm: 2, Variance: 3}
	for i, g := range []core.Gradients{want, {SquaredNorm: 5, Variance: 7}, {SquaredNorm: 11, Variance: 13}} {
		j.Gradients = g
		ran(j, truth, 1, 1<<i, 64)
		respond(t, p, j)
	}
	p.pool.add(p.agents[j.ID])
	if got := p.pool.fresh["app"].gradients; got != want {
		t.Errorf("keeps %+v, want %+v", got, want)
	}
}

// Where reports differ, one that was made once counts only for a job of which nothing else is known.
func TestASingleReportCountsWhereNothingElseIsKnown(t *testing.T) {
	p := remembering(t, "", nil)
	before := trainingJob()
	ran(before, truth, 1, 1, 64)
	before.Measured[0].Count, before.Measured[0].Spread = 5, 0.2
	respond(t, p, before)
	j := trainingJob()
	j.ID, j.Application = 1, "other"
	ran(j, truth, 1, 1, 64)
	j.Measured[0].Count = 1
	respond(t, p, j)
	if got := p.agents[1].seen; len(got) != 1 {
		t.Errorf("of a job of which nothing else is known %d measurements count, want 1", len(got))
	}
	p.pool.add(p.agents[0])
	known := trainingJob()
	known.ID = 2
	respond(t, p, known)
	ran(known, truth, 1, 1, 64)
	known.Measured[0].Count = 1
	respond(t, p, known)
	if got := p.agents[2].seen; len(got) != 0 {
		t.Errorf("of a job that is known %d measurements count, want none", len(got))
	}
}

// A warm-up goes on where jobs are placed, and nowhere else.
func TestNoWarmUpWithoutPlacements(t *testing.T) {
	p := newGoodput(t, map[string]any{"scaling_rule": "legew", "warmup_iterations": 100.0})
	v := viewOf(trainingJob())
	v.NowSeconds = 60
	if _, err := p.Tune(t.Context(), v, nil); err != nil {
		t.Fatal(err)
	}
	if got := p.Standing().UntilSeconds; !math.IsInf(got, 1) {
		t.Errorf("stands until %v, want for ever", got)
	}
}

// A job that proved earlier measurements wrong does not have the work that earlier jobs had, though others still do.
func TestAChangedJobHasOtherWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool.yaml")
	settings := map[string]any{"declared_work": false}
	first := remembering(t, path, settings)
	ends(t, first, "app", 500, core.Completed)
	closed(t, first)
	p := remembering(t, path, settings)
	confirms, refutes := trainingJob(), trainingJob()
	confirms.Progress, refutes.Progress = 100, 100
	refutes.ID = 1
	ran(confirms, truth, 1, 1, 64)
	ran(refutes, slower, 1, 1, 64)
	if got := respond(t, p, confirms); got.RemainingWork != 400 {
		t.Errorf("%v is left of a job like those before, want 400", got.RemainingWork)
	}
	got := respond(t, p, refutes)
	if want := p.pool.work.left("app", true, 100, p.agents[1].single()); got.RemainingWork != want || math.Abs(want-400) < 1 {
		t.Errorf("%v is left of a job unlike those before, want %v", got.RemainingWork, want)
	}
	if got := respond(t, p, confirms); got.RemainingWork != 400 {
		t.Errorf("%v is left of the first, want 400 still", got.RemainingWork)
	}
}
