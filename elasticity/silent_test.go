package elasticity

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// noting makes an agent that logs into a buffer.
func noting(t testing.TB, settings map[string]any) (*goodputAgent, *bytes.Buffer) {
	t.Helper()
	p, b := newGoodput(t, settings), &bytes.Buffer{}
	p.log = slog.New(slog.NewTextHandler(b, nil))
	return p, b
}

// A job that worked and reported nothing is not kept on one device, and that is said once with how many there were.
func TestSilentJobsGrow(t *testing.T) {
	p, log := noting(t, nil)
	for id := range 2 {
		j := trainingJob()
		j.JobSpec.ID = core.JobID(id)
		if got := respond(t, p, j); got.MaxReplicas != 1 {
			t.Fatalf("may use %d replicas before it ran, want 1", got.MaxReplicas)
		}
		j.Held, j.State, j.ProgressRate = 1, core.Running, 1
		v := viewOf(j)
		v.NowSeconds = 60
		got, err := p.Respond(t.Context(), v, []*core.Job{j})
		if err != nil {
			t.Fatal(err)
		}
		if got[0].MaxReplicas != 16 { // as many as the batch asked for has shares
			t.Errorf("may use %d replicas, want 16", got[0].MaxReplicas)
		}
	}
	closed(t, p)
	if got := log.String(); strings.Count(got, "a job reports no measurements") != 1 || !strings.Contains(got, "jobs=2") {
		t.Errorf("said:\n%s", got)
	}
}

// An oracle that does not know a job says so, and takes its step times.
func TestOracleWithoutATruth(t *testing.T) {
	p, log := noting(t, map[string]any{"knowledge": oracle})
	j := trainingJob()
	j.StepTimes = &core.StepTimes{OneNode: []float64{1, 0.6, 0.5, 0.4}, ManyNodes: []float64{1, 0.6, 0.5, 0.4}}
	if got := respond(t, p, j); got.MaxReplicas != 4 || got.Curves[0].OneNode[3] != 1/0.4 {
		t.Errorf("responds %+v, want the rates of its step times", got)
	}
	if !strings.Contains(log.String(), "as its true step times say") {
		t.Errorf("said:\n%s", log)
	}
}

// A job without gradient statistics keeps its batch, and grows by its throughput.
func TestUngradedJobsKeepTheirBatch(t *testing.T) {
	p, log := noting(t, nil)
	j := trainingJob()
	j.Gradients = core.Gradients{}
	ran(j, truth, 1, 1, 256)
	ran(j, truth, 1, 2, 256)
	got := respond(t, p, j)
	if rates := got.Curves[0].OneNode; got.MaxReplicas != 4 || !(rates[3] > rates[1] && rates[1] > rates[0]) {
		t.Errorf("may use %d replicas at %v, want 4 at growing rates", got.MaxReplicas, rates)
	}
	if got := tune(t, p, j, core.Seat{Devices: 0xf}); got.BatchPerDevice != 128 {
		t.Errorf("trains with %d a device on 4, want 128 of the 512 asked for", got.BatchPerDevice)
	}
	if !strings.Contains(log.String(), "no gradient statistics") {
		t.Errorf("said:\n%s", log)
	}
}

// A report that is too slow neither freezes a job small nor is believed alone.
func TestOutliersDoNotFreezeAJob(t *testing.T) {
	p, clean := newGoodput(t, nil), newGoodput(t, nil)
	j, sure := trainingJob(), trainingJob()
	for _, replicas := range []int{1, 2} {
		ran(j, truth, 1, replicas, 64)
		ran(sure, truth, 1, replicas, 64)
	}
	for i := range j.Measured {
		j.Measured[i].Count, j.Measured[i].Spread = 5, 0.2
	}
	want := respond(t, clean, sure)
	ran(j, truth, 1, 4, 64)
	slow := &j.Measured[2]
	slow.PassSeconds, slow.StepSeconds = 3*slow.PassSeconds, 3*slow.StepSeconds
	got := respond(t, p, j)
	if got.MaxReplicas != 8 {
		t.Errorf("may use %d replicas, want twice those it ran on", got.MaxReplicas)
	}
	if a, b := got.Curves[0].OneNode[3], want.Curves[0].OneNode[3]; a != b {
		t.Errorf("a single slow report makes four replicas %v, want %v as before", a, b)
	}
}

// silent lets a job work without a report, and returns the answer.
func silent(t *testing.T, p *goodputAgent, j *core.Job) core.Response {
	t.Helper()
	j.Held, j.State, j.ProgressRate = 1, core.Running, 1
	v := viewOf(j)
	v.NowSeconds = 60
	got, err := p.Respond(t.Context(), v, []*core.Job{j})
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

// A job that reports nothing is noted once, has the batch that it asked for, and is learned once it reports something.
func TestSilenceEnds(t *testing.T) {
	p, log := noting(t, nil)
	j := trainingJob()
	respond(t, p, j)
	for range 4 {
		if got := silent(t, p, j); got.MaxReplicas != 16 {
			t.Errorf("silent, it may use %d replicas, want 16", got.MaxReplicas)
		}
	}
	if got := tune(t, p, j, core.Seat{Devices: 0xf}); got.BatchPerDevice != 128 {
		t.Errorf("silent, it trains with %d a device on 4, want 128 of the 512 asked for", got.BatchPerDevice)
	}
	ran(j, truth, 1, 1, 64)
	if got := silent(t, p, j); got.MaxReplicas != 2 {
		t.Errorf("it may use %d replicas, want twice the one it reports", got.MaxReplicas)
	}
	closed(t, p)
	if got := log.String(); strings.Count(got, "reports no measurements") != 1 || strings.Contains(got, "jobs reported") {
		t.Errorf("said:\n%s", got)
	}
}

// What is said of how a silent job scales is so.
func TestHowSilentJobsScaleIsSaid(t *testing.T) {
	times := &core.StepTimes{OneNode: []float64{1, 0.6}}
	for name, tc := range map[string]struct {
		settings map[string]any
		times    *core.StepTimes
		want     string
	}{
		"learned":                   {nil, times, "linearly"},
		"an oracle":                 {map[string]any{"knowledge": oracle}, times, "as its true step times say"},
		"an oracle that knows none": {map[string]any{"knowledge": oracle}, nil, "linearly"},
	} {
		t.Run(name, func(t *testing.T) {
			p, log := noting(t, tc.settings)
			j := trainingJob()
			j.StepTimes = tc.times
			silent(t, p, j)
			if got := log.String(); !strings.Contains(got, "is taken to scale "+tc.want) {
				t.Errorf("said, want %q in it:\n%s", tc.want, got)
			}
		})
	}
}

// The silence of a job that stays where it is begins with its last change.
func TestSilenceBeginsWithTheLastChange(t *testing.T) {
	p, j := newGoodput(t, nil), trainingJob()
	respond(t, p, j)
	j.Held, j.State, j.LastChange, j.ProgressAsOf = 1, core.Running, 30, 20
	j.Seats = []core.Seat{{Devices: 1}}
	v := viewOf(j)
	v.NowSeconds = 60
	for devices, want := range map[core.DeviceSet]float64{1: 90, 2: 120} {
		if _, err := p.Tune(t.Context(), v, []core.Placement{{Job: j.ID, Seats: []core.Seat{{Devices: devices}}}}); err != nil {
			t.Fatal(err)
		}
		if got := p.Standing().UntilSeconds; got != want {
			t.Errorf("on devices %b it stands until %v, want %v", devices, got, want)
		}
	}
}
