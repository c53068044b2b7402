package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// reportingJob is a job of phases that reports its phase at the end of each, in two metrics.
type reportingJob struct{ phased }

func (reportingJob) Reports(phase int) []workload.Reported {
	return []workload.Reported{{Metric: "other", Step: 9, Value: 9}, {Metric: "loss", Step: float64(phase + 1), Value: 1 / float64(phase+1)}}
}

// scripted answers by a function, and notes what it is told.
type scripted struct {
	answer func(what string) []workload.Answer
	fails  error
	log    []string
	closed int
}

var kindNames = [...]string{"reported", "finished", "ended early", "failed", "paused", "resumed"}

func (s *scripted) Metric() string { return "loss" }
func (s *scripted) Close() error   { s.closed++; return nil }

func (s *scripted) Tell(_ context.Context, now float64, results []workload.Result) (answers []workload.Answer, err error) {
	if s.fails != nil {
		return nil, s.fails
	}
	if len(results) == 0 {
		s.log = append(s.log, fmt.Sprintf("%v begin", now))
		return s.answer("begin"), nil
	}
	for _, r := range results {
		what := fmt.Sprintf("%s %s", r.Job, kindNames[r.Kind])
		if r.Kind == workload.JobReported {
			what += fmt.Sprintf(" %v", r.Step)
		}
		if r.Reason != core.NoReason {
			what += " " + r.Reason.String()
		}
		s.log = append(s.log, fmt.Sprintf("%v %s at %v", now, what, r.AtSeconds))
		answers = append(answers, s.answer(what)...)
	}
	return answers, nil
}

// submitOf makes a job of phases.
func submitOf(name string, phases ...float64) workload.Answer {
	job := workload.Job{Spec: core.JobSpec{Name: name, SubmitSeconds: 1e9, Requested: 1, MinReplicas: 1, MaxReplicas: 1, TotalWork: phases[len(phases)-1]}, Model: reportingJob{phases}}
	return workload.Answer{Submit: &job}
}

// submitted is that at the begin.
func atBegin(jobs ...workload.Answer) func(string) []workload.Answer {
	return func(what string) []workload.Answer {
		if what == "begin" {
			return jobs
		}
		return nil
	}
}

func openReacting(t *testing.T, c Config, s *scripted) *Simulator {
	t.Helper()
	if c.StallAfter == 0 {
		c.StallAfter = time.Hour
	}
	cluster := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "n0", Devices: 4}}}
	w := &workload.Workload{React: func(context.Context, string) (workload.Reacting, error) { return s, nil }}
	b, err := (&opener{config: c, settings: core.Settings{ID: "backend/simulator"}}).Open(t.Context(), cluster, w)
	if err != nil {
		t.Fatal(err)
	}
	return b.(*Simulator)
}

// observed is what a round is told but for progress, one text each.
func observed(t *testing.T, s *Simulator, w core.Wake) string {
	t.Helper()
	o, err := s.Next(t.Context(), w)
	if errors.Is(err, io.EOF) {
		return "over"
	}
	if err != nil {
		t.Fatal(err)
	}
	list := []string{fmt.Sprintf("%v:", o.NowSeconds)}
	for i := range o.Events {
		e := &o.Events[i]
		text := fmt.Sprintf("%v %d at %v", e.Kind, e.Job, e.AtSeconds)
		switch {
		case e.Kind == core.JobProgressed || e.Kind == core.JobReported:
			continue
		case e.Early != core.NoReason:
			text += fmt.Sprintf(" %v with %v", e.Early, e.Progress)
		case e.Kind == core.JobSubmitted && (e.Spec.ID != e.Job || e.Spec.SubmitSeconds != e.AtSeconds):
			text += " with another specification"
		case e.Kind == core.JobChanged && e.Spec.Suspended:
			text += " suspended"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

// oneAfterAnother submits b when a has finished.
func oneAfterAnother(what string) []workload.Answer {
	switch what {
	case "begin":
		return []workload.Answer{submitOf("a", 10)}
	case "a finished":
		return []workload.Answer{submitOf("b", 1)}
	}
	return nil
}

func TestReacting(t *testing.T) {
	seat := func(i int) core.Seat { return seats(0, core.DeviceSet(1)<<i) }
	end := func(job string) []workload.Answer {
		return []workload.Answer{{Action: workload.EndJob, Job: job, Reason: core.Pruned}}
	}
	type step struct {
		want  string        // that the round is told
		apply []core.Change // what it decides
	}
	rounds := Publication{Progress: perRound}
	cases := map[string]struct {
		config Config
		wake   core.Wake
		answer func(what string) []workload.Answer
		steps  []step
		log    []string
	}{
		"nothing is proposed": {
			wake: every(30), answer: atBegin(), steps: []step{{want: "over"}}, log: []string{"0 begin"},
		},
		"jobs come as others end, at that moment": {
			wake: every(30),
			answer: func(what string) []workload.Answer {
				switch what {
				case "begin":
					return []workload.Answer{submitOf("a", 10), submitOf("b", 40)}
				case "a finished":
					return []workload.Answer{submitOf("c", 5)}
				}
				return nil
			},
			steps: []step{
				{"0: job_submitted 0 at 0 job_submitted 1 at 0", []core.Change{start(0, seat(0)), start(1, seat(1))}},
				{"30: job_finished 0 at 10 job_submitted 2 at 10", []core.Change{start(2, seat(0))}},
				{"60: job_finished 2 at 35 job_finished 1 at 40", nil},
				{"over", nil},
			},
			log: []string{
				"0 begin", "10 a reported 1 at 10", "10 a finished at 10", "35 c reported 1 at 35", "35 c finished at 35", "40 b reported 1 at 40", "40 b finished at 40",
			},
		},
		"a job is ended at its report": {
			wake: every(30),
			answer: func(what string) []workload.Answer {
				switch what {
				case "begin":
					return []workload.Answer{submitOf("a", 10, 20, 100), submitOf("b", 20)}
				case "a reported 2":
					return append(end("a"), submitOf("c", 1))
				}
				return nil
			},
			steps: []step{
				{"0: job_submitted 0 at 0 job_submitted 1 at 0", []core.Change{start(0, seat(0)), start(1, seat(1))}},
				{"30: job_finished 1 at 20 job_finished 0 at 20 pruned with 20 job_submitted 2 at 20", nil},
			},
			log: []string{
				"0 begin", "10 a reported 1 at 10", "20 a reported 2 at 20", "20 b reported 1 at 20", "20 b finished at 20", "20 a ended early pruned at 20",
			},
		},
		"what a round decides is told before time goes on": {
			wake: every(30),
			answer: func(what string) []workload.Answer {
				switch what {
				case "begin":
					return []workload.Answer{submitOf("a", 10, 100), submitOf("b", 100), submitOf("c", 100)}
				case "a ended early converged":
					return []workload.Answer{submitOf("d", 1)}
				}
				return nil
			},
			steps: []step{
				{"0: job_submitted 0 at 0 job_submitted 1 at 0 job_submitted 2 at 0", []core.Change{start(0, seat(0)), start(1, seat(1)), {Action: core.Discard, Job: 2, Reason: core.ExceedsCluster}}},
				{"30:", []core.Change{{Action: core.Finish, Job: 0, Reason: core.Converged}, {Action: core.Pause, Job: 1, Reason: core.AwaitingResults}}},
				{"30: job_submitted 3 at 30", []core.Change{start(3, seat(0)), start(1, seat(1))}},
				{"60: job_finished 3 at 31", nil},
				{"120: job_finished 1 at 100", nil},
			},
			log: []string{
				"0 begin", "0 c failed exceeds_cluster at 0", "10 a reported 1 at 10", "30 a ended early converged at 30", "30 b paused awaiting_results at 30",
				"30 b resumed at 30", "31 d reported 1 at 31", "31 d finished at 31", "100 b reported 1 at 100", "100 b finished at 100",
			},
		},
		"its owner holds a job back": {
			wake: every(0),
			answer: func(what string) []workload.Answer {
				switch what {
				case "begin":
					return []workload.Answer{submitOf("a", 10, 20), submitOf("b", 15)}
				case "a reported 1":
					return []workload.Answer{{Action: workload.SuspendJob, Job: "a"}, {Action: workload.SuspendJob, Job: "a"}}
				case "b finished":
					return []workload.Answer{{Action: workload.ResumeJob, Job: "a"}, {Action: workload.ResumeJob, Job: "b"}}
				}
				return nil
			},
			steps: []step{
				{"0: job_submitted 0 at 0 job_submitted 1 at 0", []core.Change{start(0, seat(0)), start(1, seat(1))}},
				{"10: job_changed 0 at 10 suspended", []core.Change{stop(0)}},
				{"15: job_finished 1 at 15 job_changed 0 at 15", []core.Change{start(0, seat(0))}},
				{"25: job_finished 0 at 25", nil},
			},
			log: []string{"0 begin", "10 a reported 1 at 10", "15 b reported 1 at 15", "15 b finished at 15", "25 a reported 2 at 25", "25 a finished at 25"},
		},
		"by rounds: at the end of each": {
			config: Config{Publication: rounds}, wake: every(30),
			answer: func(what string) []workload.Answer {
				switch what {
				case "begin":
					return []workload.Answer{submitOf("a", 10, 20, 100), submitOf("b", 15)}
				case "a reported 2":
					return append(end("a"), submitOf("c", 1))
				}
				return nil
			},
			steps: []step{
				{"30: job_submitted 0 at 0 job_submitted 1 at 0", []core.Change{start(0, seat(0)), start(1, seat(1))}},
				{"60: job_finished 1 at 45 job_finished 0 at 60 pruned with 30 job_submitted 2 at 60", []core.Change{start(2, seat(0))}},
				{"90: job_finished 2 at 61", nil},
				{"over", nil},
			},
			log: []string{
				"0 begin", "60 a reported 1 at 40", "60 b reported 1 at 45", "60 b finished at 45", "60 a reported 2 at 50", "60 a ended early pruned at 60",
				"90 c reported 1 at 61", "90 c finished at 61",
			},
		},
		"in whole steps": {
			config: Config{Publication: Publication{Progress: wholeSteps, FirstRound: atStart}}, wake: every(30),
			answer: oneAfterAnother,
			steps: []step{
				{"0: job_submitted 0 at 0", []core.Change{start(0, seat(0))}},
				{"30: job_finished 0 at 30 job_submitted 1 at 30", []core.Change{start(1, seat(0))}},
				{"60: job_finished 1 at 60", nil},
				{"over", nil},
			},
			log: []string{"0 begin", "30 a reported 1 at 30", "30 a finished at 30", "60 b reported 1 at 60", "60 b finished at 60"},
		},
		"back to back": {
			config: Config{Publication: Publication{Progress: backToBack, FirstRound: atStart}}, wake: every(30),
			answer: oneAfterAnother,
			steps: []step{
				{"0: job_submitted 0 at 0", []core.Change{start(0, seat(0))}},
				{"10: job_finished 0 at 10 job_submitted 1 at 10", []core.Change{start(1, seat(0))}},
				{"11: job_finished 1 at 11", nil},
				{"over", nil},
			},
			log: []string{"0 begin", "10 a reported 1 at 10", "10 a finished at 10", "11 b reported 1 at 11", "11 b finished at 11"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			script := &scripted{answer: tc.answer}
			if tc.config.Publication.Progress == perRound {
				tc.config.Publication.FirstRound = oneInterval
			}
			s := openReacting(t, tc.config, script)
			for i, step := range tc.steps {
				if got := observed(t, s, tc.wake); got != step.want {
					t.Fatalf("step %d: told %q, want %q", i, got, step.want)
				}
				if err := s.Apply(t.Context(), step.apply); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.log, script.log); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// What cannot be carried out ends the run.
func TestReactingRefuses(t *testing.T) {
	never := submitOf("a", math.Inf(1))
	cases := map[string]struct {
		answers []workload.Answer
		want    string
	}{
		"a name twice":       {[]workload.Answer{submitOf("a", 1), submitOf("a", 1)}, `job "a", and there was one of that name`},
		"no name":            {[]workload.Answer{submitOf("", 1)}, `job ""`},
		"a job without end":  {[]workload.Answer{never}, `job "a" does not say how long it takes`},
		"a job of nobody":    {[]workload.Answer{{Action: workload.EndJob, Job: "b"}}, `about job "b", which it never submitted`},
		"another is resumed": {[]workload.Answer{{Action: workload.ResumeJob, Job: "b"}}, `about job "b", which it never submitted`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := openReacting(t, Config{}, &scripted{answer: atBegin(tc.answers...)}).Next(t.Context(), every(30))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// A workload that could not be told is told again: nothing is lost when the context of a call ends.
func TestReactingIsToldAgain(t *testing.T) {
	for name, progress := range map[string]string{"exact": exact, "whole steps": wholeSteps, "per round": perRound, "back to back": backToBack} {
		t.Run(name, func(t *testing.T) {
			script := &scripted{answer: atBegin(submitOf("a", 10)), fails: context.Canceled}
			s := openReacting(t, Config{Publication: Publication{Progress: progress, FirstRound: atStart}}, script)
			fail := func() {
				script.fails = context.Canceled
				if _, err := s.Next(t.Context(), every(30)); !errors.Is(err, context.Canceled) {
					t.Fatalf("error %v, want %v", err, context.Canceled)
				}
				script.fails = nil
			}
			fail()
			if got := observed(t, s, every(30)); !strings.Contains(got, "job_submitted 0 at 0") {
				t.Fatalf("got %q, want the job", got)
			}
			if err := s.Apply(t.Context(), []core.Change{start(0, seats(0, 1))}); err != nil {
				t.Fatal(err)
			}
			fail()
			told := ""
			for observation := ""; observation != "over"; observation = observed(t, s, every(30)) {
				told += observation
			}
			if strings.Count(told, "job_finished 0") != 1 {
				t.Errorf("got %q, want one end", told)
			}
			if n := len(script.log); n != 3 {
				t.Errorf("got %d times, want 3: %q", n, script.log)
			}
		})
	}
}

// Ends that are told before their time, and a list of jobs besides, are refused when the backend is opened.
func TestReactingIsRefused(t *testing.T) {
	react := func(context.Context, string) (workload.Reacting, error) { return &scripted{}, nil }
	cases := map[string]struct {
		config Config
		jobs   []workload.Job
		react  func(context.Context, string) (workload.Reacting, error)
		want   string
	}{
		"ends at the next round": {Config{Publication: Publication{Completion: nextRound}}, nil, react, "next_round does not go with a workload that reacts"},
		"jobs besides":           {Config{}, []workload.Job{{Model: phased{1}}}, react, "no list of jobs"},
		"it does not begin":      {Config{}, nil, func(context.Context, string) (workload.Reacting, error) { return nil, errors.New("no search") }, "no search"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := (&opener{config: tc.config}).Open(t.Context(), &core.Cluster{}, &workload.Workload{Jobs: tc.jobs, React: tc.react})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}
