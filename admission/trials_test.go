package admission

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// experiment is a search on its way through rounds: a world in which all that may run, runs, and a policy that looks at it.
type experiment struct {
	t      *testing.T
	policy core.Admitter
	v      *core.View
}

func newExperiment(t *testing.T, f core.Factory[core.Admitter], raw map[string]any) *experiment {
	t.Helper()
	return &experiment{t: t, policy: coretest.Component(f, raw, nil), v: coretest.MakeView(coretest.MakeCluster().Nodes(8, "t4", 8).Obj()).Obj()}
}

// round lets happen what words say, and tells what the policy decides: "+a" submits a trial of experiment a, "3:loss@4=0.5" has job 3 report, "-3" ends it, "x3" has it
// fail, "c3" cancels it, "s3" suspends it, "p3" pins it, "t1" has the round come a second after the one before, and not a minute.
func (s *experiment) round(happens string) (decided []string) {
	s.t.Helper()
	s.v.Round++
	s.v.NowSeconds += 60
	var over, shown []*core.Job
	for word := range strings.FieldsSeq(happens) {
		var id core.JobID
		var metric string
		var step, value float64
		name, new := strings.CutPrefix(word, "+")
		switch {
		case new:
			j := core.NewJob(&core.JobSpec{ID: core.JobID(len(s.v.Jobs)), Experiment: name, Requested: 1, MinReplicas: 1, MaxReplicas: 1})
			s.v.Jobs = append(s.v.Jobs, j)
			continue
		case strings.Contains(word, ":"):
			if _, err := fmt.Sscanf(strings.NewReplacer(":", " ", "@", " ", "=", " ").Replace(word), "%d %s %g %g", &id, &metric, &step, &value); err != nil {
				s.t.Fatalf("%s: %v", word, err)
			}
			j := s.v.Jobs[id]
			at := slices.IndexFunc(j.Reported, func(r core.Series) bool { return r.Metric == metric })
			if at < 0 {
				at, j.Reported = len(j.Reported), append(j.Reported, core.Series{Metric: metric})
			}
			r := &j.Reported[at]
			for len(r.Points) > 0 && r.Points[len(r.Points)-1].Step >= step {
				r.Points = r.Points[:len(r.Points)-1]
			}
			r.Points = append(r.Points, core.Point{Step: step, Value: value, AtSeconds: s.v.NowSeconds})
			shown = append(shown, j)
			continue
		}
		if _, err := fmt.Sscanf(word[1:], "%d", &id); err != nil {
			s.t.Fatalf("%s: %v", word, err)
		}
		if word[0] == 't' {
			s.v.NowSeconds += float64(id) - 60
			continue
		}
		j := s.v.Jobs[id]
		switch word[0] {
		case 's':
			j.Suspended = true
		case 'p':
			j.Pinned = true
		case 'x':
			j.State = core.Failed
		case 'c':
			j.State = core.Cancelled
		default:
			j.State = core.Completed
		}
		if j.State.Ended() {
			over, s.v.Jobs[id] = append(over, j), nil
		}
	}
	if h, learns := s.policy.(core.Historian); learns && len(over) > 0 {
		if err := h.Ended(s.t.Context(), s.v, over); err != nil {
			s.t.Fatal(err)
		}
	}
	var pending []*core.Job
	for _, j := range s.v.Jobs {
		if j != nil && j.State == core.Pending && !j.Suspended {
			pending = append(pending, j)
		}
		if j != nil && j.State == core.Pending && j.WaitingReason == core.AwaitingResults {
			shown = append(shown, j)
		}
	}
	slices.SortFunc(shown, func(a, b *core.Job) int { return int(a.ID - b.ID) })
	shown = slices.DeleteFunc(slices.Compact(shown), func(j *core.Job) bool { return s.v.Job(j.ID) == nil })
	if len(shown) > 0 {
		verdicts, err := s.policy.(core.Reviewer).Review(s.t.Context(), s.v, shown)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, v := range verdicts {
			j := s.v.Job(v.Job)
			decided = append(decided, fmt.Sprintf("%v %d %v: %s", v.Code, v.Job, v.Reason, v.Message))
			if v.Code == core.End {
				s.v.Jobs[v.Job] = nil
			} else {
				j.State, j.WaitingReason = core.Pending, v.Reason
			}
		}
	}
	pending = slices.DeleteFunc(pending, func(j *core.Job) bool { return s.v.Job(j.ID) == nil })
	if len(pending) == 0 {
		return decided // as a pipeline does
	}
	verdicts, err := s.policy.Admit(s.t.Context(), s.v, pending)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, j := range pending {
		if !slices.ContainsFunc(verdicts, func(v core.Verdict) bool { return v.Job == j.ID }) {
			if len(j.Reported) > 0 {
				decided = append(decided, fmt.Sprintf("admit %d", j.ID))
			}
			j.State, j.WaitingReason = core.Running, core.NoReason
		}
	}
	for _, v := range verdicts {
		if v.Code != core.Defer || v.Reason != core.AwaitingResults || v.Message == "" {
			s.t.Errorf("admission says %+v", v)
		}
	}
	return decided
}

func TestTrials(t *testing.T) {
	halving, half := map[string]any{"first": 2.0, "reduction": 2}, map[string]any{"reduction": 2}
	for name, tc := range map[string]struct {
		factory core.Factory[core.Admitter]
		config  map[string]any
		rounds  []string
		want    []string // of the last round
	}{
		"jobs of no experiment are let alone": {NewASHA(), half, []string{"+ + +", "0:loss@1=1 1:loss@1=2 2:loss@1=3"}, nil},
		"asha ends one that is worse": {
			NewASHA(), half,
			[]string{"+a +a", "0:loss@1=1 1:loss@1=2"},
			[]string{"end 1 pruned: loss of 2 at step 1 is number 2 of 2 at rung 1, and the best 1 continue"},
		},
		"asha lets all on before there are so many": {NewASHA(), nil, []string{"+a +a +a", "0:loss@1=1 1:loss@1=2"}, nil},
		"asha ends one that diverged": {
			NewASHA(), half,
			[]string{"+a +a", "0:loss@1=1 1:loss@1=NaN"},
			[]string{"end 1 pruned: loss is not finite at step 1, which is number 2 of 2 at rung 1, and the best 1 continue"},
		},
		"and where more is better": {
			NewASHA(), half,
			[]string{"+a +a", "0:accuracy@1=1 1:accuracy@1=NaN"},
			[]string{"end 1 pruned: accuracy is not finite at step 1, which is number 2 of 2 at rung 1, and the best 1 continue"},
		},
		"one that diverged waits as others do": {
			NewSuccessiveHalving(), halving,
			[]string{"+a +a", "0:loss@2=NaN"},
			[]string{"defer 0 awaiting_results: loss is not finite at step 2, which is number 1 of 1 at rung 1"},
		},
		"the median of one that diverged": {
			NewMedian(),
			map[string]any{"others": 2},
			[]string{"+a +a +a", "0:loss@1=1 1:loss@1=2 2:loss@1=0.5", "0:loss@2=1 1:loss@2=2", "2:loss@2=NaN"},
			[]string{"end 2 pruned: loss is not finite at step 2, and the median of 2 others is 1.5"},
		},
		"experiments do not meet":    {NewASHA(), half, []string{"+a +b", "0:loss@1=1 1:loss@1=2"}, nil},
		"of accuracy more is better": {NewASHA(), half, []string{"+a +a", "0:accuracy@1=0.25 1:accuracy@1=0.5"}, nil},
		"and less is not": {
			NewASHA(), half,
			[]string{"+a +a", "0:accuracy@1=0.5 1:accuracy@1=0.25"},
			[]string{"end 1 pruned: accuracy of 0.25 at step 1 is number 2 of 2 at rung 1, and the best 1 continue"},
		},
		"a goal that is set": {
			NewASHA(),
			map[string]any{"goal": "minimize", "reduction": 2},
			[]string{"+a +a", "0:accuracy@1=0.25 1:accuracy@1=0.5"},
			[]string{"end 1 pruned: accuracy of 0.5 at step 1 is number 2 of 2 at rung 1, and the best 1 continue"},
		},
		"the first metric that is reported is the experiment's": {
			NewASHA(), half, []string{"+a +a +a", "0:accuracy@1=0.5", "1:loss@1=9 1:accuracy@1=0.25", "2:loss@1=10"}, nil,
		},
		"reports of before, told again":       {NewASHA(), half, []string{"+a +a", "0:loss@1=1", "0:loss@1=9", "1:loss@1=0.5"}, nil},
		"reports of a round are told by time": {NewASHA(), half, []string{"+a +a +a", "t30 2:loss@1=3 t70 1:loss@1=2 t70 0:loss@1=1"}, nil},
		"so are those of one that ended":      {NewASHA(), half, []string{"+a +a +a", "t30 2:loss@1=3 t70 1:loss@1=2 t70 0:loss@1=1 -0"}, nil},
		"what those told that were pruned counts": {
			NewASHA(), nil, []string{"+a +a +a +a +a +a", "0:loss@1=1 1:loss@1=2 2:loss@1=3", "3:loss@1=10", "4:loss@1=11", "5:loss@1=1.5"}, nil,
		},
		"halving has them wait": {
			NewSuccessiveHalving(), halving,
			[]string{"+a +a", "0:loss@2=1"},
			[]string{"defer 0 awaiting_results: loss of 1 at step 2 is number 1 of 1 at rung 1 so far"},
		},
		"and decides": {
			NewSuccessiveHalving(), halving,
			[]string{"+a +a", "0:loss@2=1", "1:loss@3=2"},
			[]string{"end 1 pruned: loss of 2 at step 3 is number 2 of 2 at rung 1, and the best 1 continue", "admit 0"},
		},
		"and ends one that waits": {
			NewSuccessiveHalving(), halving,
			[]string{"+a +a", "0:loss@2=2", "1:loss@3=1"},
			[]string{"end 0 pruned: loss of 2 at step 2 is number 2 of 2 at rung 1, and the best 1 continue"},
		},
		"the last one failed":   {NewSuccessiveHalving(), halving, []string{"+a +a", "0:loss@2=2", "x1"}, []string{"admit 0"}},
		"the last one ended":    {NewSuccessiveHalving(), halving, []string{"+a +a", "0:loss@2=2", "-1"}, []string{"admit 0"}},
		"with a report at last": {NewSuccessiveHalving(), halving, []string{"+a +a", "0:loss@2=2", "1:loss@2=1 -1"}, []string{"end 0 pruned: loss of 2 at step 2 is number 2 of 2 at rung 1, and the best 1 continue"}},
		"which failed":          {NewSuccessiveHalving(), halving, []string{"+a +a", "0:loss@2=2", "1:loss@2=1 x1"}, []string{"admit 0"}},
		"a pinned one goes on":  {NewSuccessiveHalving(), halving, []string{"+a +a", "p0 0:loss@2=2"}, nil},
		"a pinned one may report": {
			NewSuccessiveHalving(), map[string]any{"first": 2.0, "reduction": 2, "trials": 3}, []string{"+a +a", "p0 0:loss@2=2", "1:loss@2=1", ""}, nil,
		},
		"until it ends": {
			NewSuccessiveHalving(), map[string]any{"first": 2.0, "reduction": 2, "trials": 3}, []string{"+a +a", "p0 0:loss@2=2", "1:loss@2=1", "", "-0", ""}, []string{"admit 1"},
		},
		"the last one suspended": {NewSuccessiveHalving(), halving, []string{"+a +a", "0:loss@2=2", "s1"}, []string{"admit 0"}},
		"more are to come": {
			NewSuccessiveHalving(), map[string]any{"first": 2.0, "reduction": 2, "trials": 2}, []string{"+a", "0:loss@2=2", "+a", "", ""}, nil,
		},
		"and do not": {
			NewSuccessiveHalving(), map[string]any{"first": 2.0, "reduction": 2, "trials": 2}, []string{"+a", "0:loss@2=2", ""}, []string{"admit 0"},
		},
		"and are late": {
			NewSuccessiveHalving(), map[string]any{"first": 2.0, "reduction": 2, "trials": 2}, []string{"+a", "0:loss@2=2", "t0", "t9", "t0 +a", "t60"}, nil,
		},
		"and are too late": {
			NewSuccessiveHalving(), map[string]any{"first": 2.0, "reduction": 2, "trials": 2}, []string{"+a", "0:loss@2=2", "t0", "t10"}, []string{"admit 0"},
		},
		"with more patience": {
			NewSuccessiveHalving(), map[string]any{"first": 2.0, "reduction": 2, "trials": 2, "patience": "2m"}, []string{"+a", "0:loss@2=2", "", "t59"}, nil,
		},
		"with none": {
			NewSuccessiveHalving(), map[string]any{"first": 2.0, "reduction": 2, "trials": 2, "patience": "0s"}, []string{"+a", "0:loss@2=2", "t0"}, []string{"admit 0"},
		},
		"promotion is patient": {
			NewASHA(), map[string]any{"variant": "promote", "reduction": 2}, []string{"+a", "0:loss@1=1", "t9"}, nil,
		},
		"and settles": {
			NewASHA(), map[string]any{"variant": "promote", "reduction": 2}, []string{"+a", "0:loss@1=1", "t9", "t1"}, []string{"admit 0"},
		},
		"promotion needs results": {
			NewASHA(),
			map[string]any{"variant": "promote", "reduction": 2},
			[]string{"+a +a +a", "0:loss@1=1 1:loss@1=2"},
			[]string{"defer 1 awaiting_results: loss of 2 at step 1 is number 2 of 2 at rung 1 so far"},
		},
		"and comes later": {
			NewASHA(), map[string]any{"variant": "promote", "reduction": 2}, []string{"+a +a +a +a", "0:loss@1=1", "1:loss@1=2"}, []string{
				"defer 1 awaiting_results: loss of 2 at step 1 is number 2 of 2 at rung 1 so far", "admit 0",
			},
		},
		"a bracket after the other": {
			NewHyperband(),
			map[string]any{"reduction": 2, "max_step": 2.0},
			[]string{"+a +a +a +a", "0:loss@1=1 2:loss@1=9 3:loss@1=9", "1:loss@1=2"},
			[]string{"end 1 pruned: loss of 2 at step 1 is number 2 of 2 at rung 1, and the best 1 continue", "admit 0"},
		},
		"the median": {
			NewMedian(),
			map[string]any{"others": 2},
			[]string{"+a +a +a", "0:loss@1=1 1:loss@1=2", "2:loss@1=1.75"},
			[]string{"end 2 pruned: loss of at best 1.75 up to step 1 is worse than the median of 2 others, 1.5"},
		},
		"the median of accuracies": {
			NewMedian(),
			map[string]any{"others": 2},
			[]string{"+a +a +a", "0:accuracy@1=1 1:accuracy@1=2", "2:accuracy@1=1.25"},
			[]string{"end 2 pruned: accuracy of at best 1.25 up to step 1 is worse than the median of 2 others, 1.5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, restarts := range []bool{false, true} {
				s := newExperiment(t, tc.factory, tc.config)
				var got []string
				for _, happens := range tc.rounds {
					if restarts { // the next scheduler goes on as this one would
						learned, err := s.policy.(core.Snapshotter).Snapshot()
						if err != nil {
							t.Fatal(err)
						}
						s.policy = coretest.Component(tc.factory, tc.config, nil)
						if err := s.policy.(core.Snapshotter).Restore(learned); err != nil {
							t.Fatal(err)
						}
					}
					got = s.round(happens)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("restarts %v, (-want +got):\n%s", restarts, diff)
				}
			}
		})
	}
}

// Trials that all wait are looked at again when patience is over, and others at events only.
func TestStandsUntilTrialsAreSettled(t *testing.T) {
	s := newExperiment(t, NewSuccessiveHalving(), map[string]any{"first": 2.0, "reduction": 2, "trials": 3, "patience": "15s"})
	for i, tc := range []struct {
		happens string
		want    float64
	}{
		{"+a +a", math.Inf(1)}, {"0:loss@2=2", math.Inf(1)}, {"1:loss@2=1", 195}, {"t0", 195}, {"t5 +a", math.Inf(1)}, {"t5 s2", 200}, {"t10", math.Inf(1)},
	} {
		s.round(tc.happens)
		if got := s.policy.(core.Steady).Standing().UntilSeconds; got != tc.want {
			t.Errorf("after round %d stands until %v, want %v", i+1, got, tc.want)
		}
	}
}

// What trials reported before they ended, and how they did, is in a snapshot of a round in which nobody else is asked about.
func TestEndsAreKept(t *testing.T) {
	for name, tc := range map[string]struct{ before, ends, want string }{
		"completed": {"+a", "0:loss@1=1 -0", "end 1 pruned: loss of 2 at step 1 is number 2 of 2 at rung 1, and the best 1 continue"},
		"failed":    {"+a 0:loss@1=1", "x0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := map[string]any{"reduction": 2, "trials": 2}
			s := newExperiment(t, NewSuccessiveHalving(), config)
			s.round(tc.before)
			s.round(tc.ends)
			learned, err := s.policy.(core.Snapshotter).Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			s.policy = coretest.Component(NewSuccessiveHalving(), config, nil)
			if err := s.policy.(core.Snapshotter).Restore(learned); err != nil {
				t.Fatal(err)
			}
			s.round("+a")
			if got := strings.Join(s.round("1:loss@1=2"), "; "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestDirection(t *testing.T) {
	for goal, metrics := range map[string][]string{
		goalMinimize: {"loss", "val_loss", "Val/Loss", "top1_error", "perplexity", "mape", "rmse", "loss2", "err@5"},
		goalMaximize: {"accuracy", "Val_Accuracy", "acc", "acc1", "acc@5", "mIoU", "f1", "macro-f1", "reward", "AUC", "mean score", "map"},
		"":           {"inaccuracy", "cost", "ndcg", "psnr", "top1", "hits@10", "1-accuracy", "accuracy_loss", "closs", "mapped", "", "_", "10"},
	} {
		for _, metric := range metrics {
			if got := direction(metric); got != goal {
				t.Errorf("%q: got %q, want %q", metric, got, goal)
			}
			if more := moreIsBetter(goalAuto, metric); more != (goal == goalMaximize) || moreIsBetter(goalMinimize, metric) || !moreIsBetter(goalMaximize, metric) {
				t.Errorf("%q: more is better: %v, or the goal that is set does not hold", metric, more)
			}
		}
	}
}

func TestMetricsThatNeedAGoal(t *testing.T) {
	for name, f := range map[string]core.Factory[core.Admitter]{"median": NewMedian(), "asha": NewASHA(), "successive_halving": NewSuccessiveHalving(), "hyperband": NewHyperband()} {
		t.Run(name, func(t *testing.T) {
			raw := map[string]any{"metrics": []any{"loss", "cost", "hits@10"}}
			_, problems := f.Decode(raw)
			var got []string
			for _, d := range problems {
				got = append(got, fmt.Sprintf("%s: %s; %s", d.Path, d.Summary, d.Hint))
			}
			if diff := cmp.Diff([]string{
				`metrics[1]: which values of "cost" are better does not follow from its name; set goal to minimize or maximize`,
				`metrics[2]: which values of "hits@10" are better does not follow from its name; set goal to minimize or maximize`,
			}, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			raw["goal"] = goalMaximize
			if _, problems := f.Decode(raw); len(problems) > 0 {
				t.Errorf("with a goal: %v", problems)
			}
		})
	}
}

func TestEarlyStoppingRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		factory core.Factory[core.Admitter]
		raw     map[string]any
		want    string
	}{
		"no metric":             {NewMedian(), map[string]any{"metrics": []any{}}, "no trial could be judged"},
		"a rung at 0":           {NewASHA(), map[string]any{"first": 0.0}, "first: is 0"},
		"an end before a rung":  {NewSuccessiveHalving(), map[string]any{"first": 3.0, "max_step": 2.0}, "max_step: 2 is before the first rung, at 3"},
		"brackets without end":  {NewHyperband(), map[string]any{"max_step": 0.0}, "max_step: is 0"},
		"a variant that is not": {NewASHA(), map[string]any{"variant": "wait"}, "variant"},
		"nothing to divide by":  {NewHyperband(), map[string]any{"reduction": 1}, "reduction"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := tc.factory.Decode(tc.raw)
			if err := problems.Err(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestRestoreRefusesOtherResults(t *testing.T) {
	of := func(config map[string]any) core.Snapshotter {
		return coretest.Component(NewASHA(), config, nil).(core.Snapshotter)
	}
	learned, err := of(map[string]any{"first": 2.0}).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	own, err := of(nil).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	broken := func(groups ...learnedGroup) []byte {
		var l learnedTrials
		if err := json.Unmarshal(own, &l); err != nil {
			t.Fatal(err)
		}
		l.Groups = groups
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	rule := json.RawMessage(`{}`)
	for name, learned := range map[string][]byte{
		"of other rungs":         learned,
		"no JSON":                []byte("{"),
		"a job without a step":   broken(learnedGroup{Name: "a", Jobs: []core.JobID{1}, Rule: rule}),
		"an experiment twice":    broken(learnedGroup{Name: "a", Quiet: 1, Rule: rule}, learnedGroup{Name: "a", Quiet: 1, Rule: rule}),
		"no name":                broken(learnedGroup{Quiet: 1, Rule: rule}),
		"jobs out of order":      broken(learnedGroup{Name: "a", Jobs: []core.JobID{2, 1}, Steps: []float64{0, 0}, Rule: rule}),
		"quiet with a trial":     broken(learnedGroup{Name: "a", Quiet: 1, Jobs: []core.JobID{2}, Steps: []float64{0}, Rule: rule}),
		"a rule that is none":    broken(learnedGroup{Name: "a", Quiet: 1, Rule: json.RawMessage(`7`)}),
		"a rung that nobody has": broken(learnedGroup{Name: "a", Quiet: 1, Rule: json.RawMessage(`{"Trials":[{"Trial":1,"Last":"0"}]}`)}),
	} {
		if err := of(nil).Restore(learned); err == nil {
			t.Errorf("%s: taken up", name)
		}
	}
	if err := of(nil).Restore(own); err != nil {
		t.Error(err)
	}
}

// Of experiments without a trial so many are remembered, the latest ones, and none with a trial is forgotten.
func TestExperimentsAreForgotten(t *testing.T) {
	s := newExperiment(t, NewASHA(), nil)
	s.round("+lives")
	for i := range quietExperiments + 3 {
		s.round(fmt.Sprintf("+e%d", i))
		s.round(fmt.Sprintf("-%d", i+1))
	}
	p := s.policy.(*trials)
	if len(p.groups) != quietExperiments+1 || len(p.byName) != len(p.groups) || p.byName["lives"] == nil || p.byName["e2"] != nil || p.byName["e3"] == nil {
		t.Errorf("%d experiments are remembered", len(p.groups))
	}
}

// A trial that completed at a rung keeps its place there. One that failed or was cancelled came to nothing, and nobody gives way to it.
func TestTrialsGiveWayToThoseThatCompleted(t *testing.T) {
	for how, want := range map[string][]core.JobID{"-0": {1, 2}, "x0": {2}, "c0": {2}} {
		t.Run(how, func(t *testing.T) {
			s := newExperiment(t, NewSuccessiveHalving(), map[string]any{"first": 1.0, "reduction": 3})
			s.round("+a +a +a")
			s.round("0:loss@1=1")
			s.round(how)
			var got []core.JobID
			for _, line := range s.round("1:loss@1=2 2:loss@1=3") {
				var id core.JobID
				if _, err := fmt.Sscanf(line, "end %d", &id); err == nil {
					got = append(got, id)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("ends %v, want %v", got, want)
			}
		})
	}
}
