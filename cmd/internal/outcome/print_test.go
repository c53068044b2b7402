package outcome

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

// full is the summary of a run with something of everything that a person is shown.
func full() *metrics.Summary {
	distribution := metrics.Distribution{Mean: 60, P50: 50, P90: 90, P99: 99, Max: 120}
	components := metrics.Components{
		Admission: []string{"admission/accept_all", "admission/quota"}, Allocation: "allocation/las", Placement: "placement/first_fit", Elasticity: "elasticity/fixed",
	}
	return &metrics.Summary{
		Name: "full", Seed: 7, Components: components,
		Jobs:       metrics.JobCounts{Submitted: 10, Completed: 4, Rejected: 1, Failed: 2, Cancelled: 1, Unfinished: 2},
		JCTSeconds: distribution, QueueingSeconds: metrics.Distribution{Mean: 1, P50: 2, P90: 3, P99: 4, Max: 5},
		MakespanSeconds: 3600, UtilizationRatio: 0.5, GPUHours: 2, Restarts: metrics.Restarts{Total: 3, Mean: 0.75}, Preemptions: 1,
		Fairness: metrics.Fairness{
			RhoMean: 1.25, RhoMax: 2, UnfairRatio: 0.25, Themis: metrics.Rho{Mean: 1.5, Max: 3, UnfairRatio: 0.5},
			Sia: &metrics.Rho{Mean: 1.75, Max: 4, UnfairRatio: 0.75},
		},
		Rounds: 12, WallSeconds: 2, DecisionSeconds: metrics.DecisionTimes{Mean: 0.001},
		Plugins: []metrics.Trouble{{Component: "allocation/ours", Restarts: 2}, {Component: "placement/ours", Fallback: true}},
		Earlier: []metrics.EarlierComponents{{Components: components, UntilRound: 5}},
		Accelerators: []metrics.AcceleratorUse{{
			Accelerator: "t4", Devices: 8, UtilizationRatio: 0.25, GPUHours: 1, Jobs: 3, QueueingSecondsMean: 10, BoundJobs: 2, BoundQueueingSecondsMean: 20,
		}},
		Pools:     []metrics.PoolUse{{Pool: "spot", MostNodes: 3, NodeHours: 1.5, IdleNodeHours: 0.5, Cost: 4, IdleCost: 1}},
		Deadlines: &metrics.Deadlines{Ratio: 0.25, Met: 1, Missed: 2, Declined: 1, Broken: 1},
		Tiers: &metrics.Tiers{
			Premium: &metrics.TierUse{Guaranteed: 1, Ratio: 0.5, Met: 1, Hours: 2, JobsMet: 1, Jobs: 3}, Standard: &metrics.TierUse{},
			OversoldSeconds: 60, GuaranteedDevicesMax: 9,
		},
		Tuning: &metrics.Tuning{
			Experiment: "grid", Metric: "loss", Trials: 6, Finished: 3, Stopped: 1, Failed: 1, Unfinished: 1,
			Best: &metrics.BestTrial{Trial: 4, Job: "grid-4", Value: 0.5, Step: 100, AtSeconds: 60},
		},
		EndedEarly: &metrics.EndedEarly{Converged: 2, Pruned: 1},
	}
}

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata")

// What a person is shown of a run, in testdata/print.
func TestPrint(t *testing.T) {
	unknown := metrics.Number(math.NaN())
	plain := func() *metrics.Summary {
		s := &metrics.Summary{
			Name: "plain", Jobs: metrics.JobCounts{Submitted: 2, Completed: 2}, JCTSeconds: full().JCTSeconds, QueueingSeconds: full().QueueingSeconds,
			Components: metrics.Components{Allocation: "allocation/fifo", Placement: "placement/first_fit", Elasticity: "elasticity/fixed"},
		}
		s.Fairness.RhoMean, s.Fairness.Themis.Mean = unknown, unknown
		return s
	}
	cases := map[string]func(*metrics.Summary){
		"everything": func(s *metrics.Summary) { *s = *full() },
		"plain":      func(*metrics.Summary) {},
		"kept": func(s *metrics.Summary) {
			s.Deadlines = &metrics.Deadlines{Ratio: 1, Met: 3}
			s.Tiers = &metrics.Tiers{Basic: &metrics.TierUse{Guaranteed: 1, Ratio: 1, Met: 2, Hours: 2, JobsMet: 1, Jobs: 1}}
		},
		"unreported": func(s *metrics.Summary) {
			s.Tuning = &metrics.Tuning{Experiment: "grid", Metric: "loss", Trials: 2, Finished: 2}
		},
		"no trial ended": func(s *metrics.Summary) {
			s.Tuning = &metrics.Tuning{Experiment: "grid", Metric: "loss", Trials: 2, Unfinished: 2}
		},
		"rounds": func(s *metrics.Summary) { s.Fairness.RhoMean, s.Fairness.RhoMax = 3, 4 },
		"chosen": func(s *metrics.Summary) {
			s.Earlier = full().Earlier
			s.Synthesizer = &metrics.Synthesizer{
				Method: "twin", Looks: 4, Switches: 2, TakenBack: 1,
				InForce: []metrics.InForce{{Name: "fair", Seconds: 600}, {Name: "never", Seconds: 0}},
				Log:     []metrics.Switch{{AtSeconds: 60, Round: 3, From: "start", To: "fair", Why: "less waiting"}},
			}
		},
		"never switched": func(s *metrics.Summary) {
			s.Synthesizer = &metrics.Synthesizer{Method: "twin", InForce: []metrics.InForce{{Name: "start", Seconds: 60}}}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			out, s, config := new(bytes.Buffer), plain(), new(configs.Config)
			change(s)
			config.Round.Interval = time.Minute
			if err := Print(&cli.App{Stdout: out, Format: render.Text}, &quartet.Result{Summary: s}, config); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "print", strings.ReplaceAll(name, " ", "_")+".txt")
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// For programs a run is its document as it is, or the numbers in it as a list.
func TestPrintForPrograms(t *testing.T) {
	const document = `{"a": {"b": 1.50, "c": null}, "d": [true, "x"], "e": []}`
	for format, want := range map[render.Format]string{
		render.JSON: document, render.CSV: "metric,value\na.b,1.50\na.c,\nd[0],true\nd[1],x\n",
	} {
		out := new(bytes.Buffer)
		if err := Print(&cli.App{Stdout: out, Format: format}, &quartet.Result{Text: []byte(document)}, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
	for _, broken := range []string{"", `{`, `{"a": `, `[1, `, `{"a": [}`} {
		if err := PrintNumbers(&cli.App{Stdout: io.Discard, Format: render.CSV}, []byte(broken)); err == nil || !strings.HasPrefix(err.Error(), "list the numbers: ") {
			t.Errorf("%q: %v", broken, err)
		}
	}
}

// What a command says at the end of a run, and its exit code.
func TestComplete(t *testing.T) {
	failure := errors.New("the disk is full")
	waiting := []*core.Job{{State: core.Waiting, WaitingReason: core.Fragmented}}
	whole := func(change func(*quartet.Result)) *quartet.Result {
		r := &quartet.Result{Dir: "runs/r", Summary: full(), EndSeconds: 60, Text: []byte("{}")}
		r.Summary.Jobs = metrics.JobCounts{Submitted: 3, Completed: 3}
		change(r)
		return r
	}
	cases := map[string]struct {
		result *quartet.Result
		err    error
		strict bool
		code   int // of an ExitError; 0 for none
		fails  string
		stderr string
	}{
		"nothing came of it":      {err: failure, fails: "the disk is full"},
		"up to a failure":         {result: whole(func(*quartet.Result) {}), err: failure, fails: "the disk is full", stderr: "wrote runs/r: the results up to the failure\n"},
		"interrupted":             {result: whole(func(r *quartet.Result) { r.Interrupted = true }), err: failure, code: cli.ExitInterrupted, fails: "interrupted at 1m 00s; the results are those up to then", stderr: "wrote runs/r\n"},
		"whole":                   {result: whole(func(*quartet.Result) {}), strict: true, stderr: "wrote runs/r\n"},
		"again":                   {result: whole(func(r *quartet.Result) { r.ReplacedRun = true }), stderr: "wrote runs/r, in the place of the same run\n"},
		"left over":               {result: whole(func(r *quartet.Result) { r.Unfinished, r.Summary.Jobs.Unfinished = waiting, 1 }), stderr: "wrote runs/r\n1 job did not finish, for reason \"fragmented\"\n"},
		"left over, strict":       {result: whole(func(r *quartet.Result) { r.Summary.Jobs.Unfinished = 1 }), strict: true, code: cli.ExitIncomplete, fails: "jobs rejected: 0, failed: 0, unfinished: 1", stderr: "wrote runs/r\n"},
		"rejected, strict":        {result: whole(func(r *quartet.Result) { r.Summary.Jobs.Rejected = 2 }), strict: true, code: cli.ExitIncomplete, fails: "jobs rejected: 2, failed: 0, unfinished: 0", stderr: "wrote runs/r\n"},
		"failed, strict":          {result: whole(func(r *quartet.Result) { r.Summary.Jobs.Failed = 3 }), strict: true, code: cli.ExitIncomplete, fails: "jobs rejected: 0, failed: 3, unfinished: 0", stderr: "wrote runs/r\n"},
		"rejected and not strict": {result: whole(func(r *quartet.Result) { r.Summary.Jobs.Rejected = 2 }), stderr: "wrote runs/r\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			errs := new(bytes.Buffer)
			config := &configs.Config{Name: "r"}
			config.Output.Dir = "runs"
			c := &quartet.Composition{Config: config}
			f := CompositionFlags{Strict: tc.strict}
			err := f.Complete(t.Context(), &cli.App{Stdout: io.Discard, Stderr: errs, Format: render.JSON}, c, func(context.Context) (*quartet.Result, error) {
				return tc.result, tc.err
			})
			exit, _ := errors.AsType[*cli.ExitError](err)
			code, fails := 0, ""
			if exit != nil {
				code = exit.Code
			}
			if err != nil {
				fails = err.Error()
			}
			if diff := cmp.Diff([]any{tc.code, tc.fails, tc.stderr, filepath.Join("runs", "r")}, []any{code, fails, errs.String(), c.Dir}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
