package metrics

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// What becomes of a deadline is told of those that count, and only what is decided is part of the ratio.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	type job struct {
		due        float64 // seconds after its submission at 10 s
		bestEffort bool
		outcome    outcome
		finish     float64
		admitted   bool
	}
	const end = 200
	nan := math.NaN()
	for name, tc := range map[string]struct {
		jobs     []job
		promised bool
		want     *Deadlines
	}{
		"none":                      {[]job{{0, false, completed, 50, true}}, true, nil},
		"best effort":               {[]job{{10, true, completed, 50, true}}, true, nil},
		"in time":                   {[]job{{40, false, completed, 50, true}}, true, &Deadlines{Met: 1, Ratio: 1, LatenessP99: unknown}},
		"late":                      {[]job{{39, false, completed, 50, true}}, false, &Deadlines{Missed: 1, LatenessP99: 1}},
		"promised, and late":        {[]job{{39, false, completed, 50, true}, {40, false, completed, 50, true}}, true, &Deadlines{Met: 1, Missed: 1, Broken: 1, Ratio: 0.5, LatenessP99: 1}},
		"declined":                  {[]job{{40, false, rejected, nan, false}, {40, false, completed, 20, true}}, true, &Deadlines{Met: 1, Declined: 1, Ratio: 0.5, LatenessP99: unknown}},
		"failed in time":            {[]job{{40, false, failed, 50, true}}, true, &Deadlines{Missed: 1, LatenessP99: unknown}},
		"failed late":               {[]job{{40, false, failed, 51, true}}, true, &Deadlines{Missed: 1, LatenessP99: 1}},
		"cancelled in time":         {[]job{{40, false, cancelled, 50, true}}, true, &Deadlines{Undecided: 1, Ratio: unknown, LatenessP99: unknown}},
		"goes on, in time so far":   {[]job{{190, false, unfinished, nan, true}}, true, &Deadlines{Undecided: 1, Ratio: unknown, LatenessP99: unknown}},
		"goes on, and late already": {[]job{{180, false, unfinished, nan, true}}, true, &Deadlines{Missed: 1, Broken: 1, LatenessP99: 10}},
		"rounding is not lateness":  {[]job{{40, false, completed, 50 + 1e-12, true}}, true, &Deadlines{Met: 1, Ratio: 1, LatenessP99: unknown}},
		"admitted, and rejected":    {[]job{{180, false, rejected, nan, true}}, true, &Deadlines{Missed: 1, Broken: 1, LatenessP99: 10}},
		"the same with time left":   {[]job{{990, false, rejected, nan, true}}, true, &Deadlines{Missed: 1, Broken: 1, LatenessP99: unknown}},
		"late, and never admitted":  {[]job{{180, false, unfinished, nan, false}, {20, false, cancelled, 50, false}}, true, &Deadlines{Missed: 2, LatenessP99: 20}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d deadlines
			for _, j := range tc.jobs {
				d.add(&record{spec: &core.JobSpec{SubmitSeconds: 10, DeadlineSeconds: j.due, BestEffort: j.bestEffort}, outcome: j.outcome, finish: j.finish, admitted: j.admitted}, tc.promised, end)
			}
			alike := cmp.Comparer(func(a, b Number) bool { return a == b || !a.Known() && !b.Known() })
			if diff := cmp.Diff(tc.want, d.describe(), alike); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The column of tiers is there when a job has one, behind that of costs, and is read back.
func TestTierColumn(t *testing.T) {
	t.Parallel()
	var written bytes.Buffer
	c := NewCollector(Components{}, Outputs{Jobs: &written})
	v := &core.View{Cluster: &core.Cluster{}}
	for id, tier := range []string{"", core.Premium} {
		spec := &core.JobSpec{ID: core.JobID(id), Name: "job", Tier: tier}
		v.Jobs = append(v.Jobs, core.NewJob(spec))
		report := &core.Report{View: v, Guarantees: core.UsualGuarantees(), Events: []core.Event{{Kind: core.JobSubmitted, Job: spec.ID, Spec: spec}}}
		if err := c.ObserveRound(report); err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(c.more().header(), "tier"); has != (tier != "") {
			t.Errorf("after job %d there is a column: %v", id, has)
		}
	}
	if _, err := c.Finish(v.Jobs, 1); err != nil {
		t.Fatal(err)
	}
	jobs, err := ReadJobs(strings.NewReader(written.String()))
	if err != nil || len(jobs) != 2 || jobs[0].Tier != "" || jobs[1].Tier != core.Premium {
		t.Errorf("%+v, %v", jobs, err)
	}
	if _, err := ReadJobs(strings.NewReader(strings.ReplaceAll(written.String(), "premium", "gold"))); err == nil || !strings.Contains(err.Error(), "tier") {
		t.Errorf("%v, want an error that names the column", err)
	}
}

// The column of deadlines is there when a job has one, before that of costs, and is read back.
func TestDeadlineColumn(t *testing.T) {
	t.Parallel()
	c := NewCollector(Components{}, Outputs{Jobs: new(bytes.Buffer)})
	c.enter(&core.JobSpec{ID: 0, Name: "whenever"}, 0)
	if c.deadlines {
		t.Fatal("a deadline that no job has")
	}
	c.enter(&core.JobSpec{ID: 1, Name: "due", DeadlineSeconds: 30}, 0)
	if header := (more{deadlines: c.deadlines, pools: &bill{}}).header(); !strings.HasSuffix(header, ",outcome,deadline_s,cost\n") {
		t.Errorf("header %q", header)
	}
	const row = "0,a,,0,,,,,,0,0,rejected,"
	for text, want := range map[string]float64{"": 0, "30": 30} {
		jobs, err := ReadJobs(strings.NewReader((more{deadlines: true}).header() + row + text + "\n"))
		if err != nil || len(jobs) != 1 || jobs[0].DeadlineSeconds != want {
			t.Errorf("%q read as %v, %v: want %v", text, jobs, err, want)
		}
	}
	if _, err := ReadJobs(strings.NewReader((more{deadlines: true}).header() + row + "soon\n")); err == nil || !strings.Contains(err.Error(), "deadline_s") {
		t.Errorf("%v, want an error that names the column", err)
	}
}

// A second is late at any moment, and what rounding does to moments is not.
func TestLate(t *testing.T) {
	t.Parallel()
	for _, deadline := range []float64{1, 1e3, 1e6, 1e9, 1.7e9, 1e11, 2e11, 1e13} {
		spec := &core.JobSpec{DeadlineSeconds: deadline}
		if got := timely(spec); got >= 0.5 {
			t.Errorf("%v s may be added to a deadline at %v s", got, deadline)
		}
		if ends := deadline/7 + deadline/7*6; ends-deadline > timely(spec) {
			t.Errorf("%v s is late for %v s", ends, deadline)
		}
	}
}
