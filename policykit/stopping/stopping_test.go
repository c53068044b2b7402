package stopping

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// play tells a rule what happens, a word each, and returns what becomes of the trials that are there:
// "+3" trial 3 enters, "3@4=0.5" it reports 0.5 at step 4, "-3" it ends, "x3" it comes to nothing, "!" settles.
func play(t *testing.T, r Rule, happens string) (goOn, wait, stop []Trial) {
	t.Helper()
	there := map[Trial]bool{}
	for word := range strings.FieldsSeq(happens) {
		var id Trial
		var step, value float64
		var first, last Trial
		switch {
		case word == "!":
			r.Settle()
		case scans(word, "+%d..%d", &first, &last):
			for id := first; id <= last; id++ {
				there[id] = true
				r.Enter(id)
			}
		case scans(word, "+%d", &id):
			there[id] = true
			r.Enter(id)
		case scans(word, "-%d", &id):
			delete(there, id)
			r.Leave(id, false)
		case scans(word, "x%d", &id):
			delete(there, id)
			r.Leave(id, true)
		case scans(word, "%d@%g=%g", &id, &step, &value):
			r.Report(id, step, value)
		default:
			t.Fatalf("what is %q?", word)
		}
		for id := range Trial(100) { // to ask at any time changes nothing but what waits, see TestAskingChangesNothing
			if there[id] {
				r.Decide(id)
			}
		}
	}
	for id := range Trial(100) {
		if !there[id] {
			continue
		}
		switch r.Decide(id).Action {
		case GoOn:
			goOn = append(goOn, id)
		case Wait:
			wait = append(wait, id)
		default:
			stop = append(stop, id)
		}
	}
	return goOn, wait, stop
}

func scans(word, format string, into ...any) bool {
	var rest string
	n, _ := fmt.Sscanf(word+" end", format+" %s", append(into, &rest)...)
	return n == len(into)+1 && rest == "end"
}

func TestRules(t *testing.T) {
	loss := Ladder{First: 1, Eta: 3, Most: 81}
	accuracy := Ladder{First: 4, Eta: 2, Most: 64, Goal: core.Maximize}
	const nine = "+0..8 0@1=0.9 1@1=0.8 2@1=0.7 3@1=0.6 4@1=0.5 5@1=0.4 6@1=0.3 7@1=0.2 "
	for name, tc := range map[string]struct {
		rule             Rule
		happens          string
		goOn, wait, stop []Trial
	}{
		"halving waits for the last":                    {NewSuccessiveHalving(loss, 9), nine, []Trial{8}, []Trial{0, 1, 2, 3, 4, 5, 6, 7}, nil},
		"halving lets the best third go on":             {NewSuccessiveHalving(loss, 9), nine + "8@1=0.1", []Trial{6, 7, 8}, nil, []Trial{0, 1, 2, 3, 4, 5}},
		"of equal results the first go on":              {NewSuccessiveHalving(loss, 3), "+0..2 2@1=1 1@1=1 0@1=1", []Trial{0}, nil, []Trial{1, 2}},
		"NaN is worst":                                  {NewSuccessiveHalving(loss, 3), "+0..2 0@1=NaN 1@1=NaN 2@1=1e9", []Trial{2}, nil, []Trial{0, 1}},
		"where all are NaN the first goes on":           {NewSuccessiveHalving(loss, 3), "+0..2 2@1=NaN 1@1=NaN 0@1=NaN", []Trial{0}, nil, []Trial{1, 2}},
		"greater is better":                             {NewSuccessiveHalving(accuracy, 4), "+0..3 0@4=0.1 1@4=0.4 2@4=0.3 3@4=0.2", []Trial{1, 2}, nil, []Trial{0, 3}},
		"a report before the rung is none":              {NewSuccessiveHalving(accuracy, 1), "+0 0@3.9=1", []Trial{0}, nil, nil},
		"the first report beyond the rung counts":       {NewSuccessiveHalving(accuracy, 2), "+0..1 0@6=1 0@7=0 1@4=0.5", []Trial{0}, nil, []Trial{1}},
		"a step that is told again changes nothing":     {NewSuccessiveHalving(accuracy, 2), "+0..1 0@6=1 0@4=0 0@6=0 1@4=0.5", []Trial{0}, nil, []Trial{1}},
		"one report at two rungs":                       {NewSuccessiveHalving(accuracy, 2), "+0..1 0@9=1 1@4=0.5", []Trial{0}, nil, []Trial{1}},
		"the second rung":                               {NewSuccessiveHalving(accuracy, 4), "+0..3 0@4=1 1@4=2 2@4=3 3@4=4 2@8=9", []Trial{3}, []Trial{2}, []Trial{0, 1}},
		"the second rung is decided":                    {NewSuccessiveHalving(accuracy, 4), "+0..3 0@4=1 1@4=2 2@4=3 3@4=4 2@8=9 3@8=8", []Trial{2}, nil, []Trial{0, 1, 3}},
		"no rung where it is to end":                    {NewSuccessiveHalving(accuracy, 1), "+0 0@4=1 0@8=1 0@16=1 0@32=1 0@64=0", []Trial{0}, nil, nil},
		"one that ended is not waited for":              {NewSuccessiveHalving(loss, 3), "+0..2 0@1=1 1@1=2 -2", []Trial{0}, nil, []Trial{1}},
		"one that ended at the rung is held against":    {NewSuccessiveHalving(loss, 3), "+0..2 0@1=1 -0 1@1=2 2@1=3", nil, nil, []Trial{1, 2}},
		"one that came to nothing is not":               {NewSuccessiveHalving(loss, 3), "+0..2 0@1=1 x0 1@1=2 2@1=3", []Trial{1}, nil, []Trial{2}},
		"a cohort that is not full waits":               {NewSuccessiveHalving(loss, 3), "+0..1 0@1=1 1@1=2", nil, []Trial{0, 1}, nil},
		"until nobody comes":                            {NewSuccessiveHalving(loss, 3), "+0..1 0@1=1 1@1=2 !", []Trial{0}, nil, []Trial{1}},
		"the next ones are a cohort of their own":       {NewSuccessiveHalving(loss, 3), "+0..5 0@1=1 3@1=0 1@1=2 2@1=3", []Trial{0, 4, 5}, []Trial{3}, []Trial{1, 2}},
		"after one that nobody came to":                 {NewSuccessiveHalving(loss, 3), "+0..1 0@1=1 1@1=2 ! +2 2@1=9", []Trial{0}, []Trial{2}, []Trial{1}},
		"a cohort of all that come":                     {NewSuccessiveHalving(loss, 0), "+0..1 0@1=1 +2 1@1=2 2@1=3 +3 3@1=4", []Trial{0, 3}, nil, []Trial{1, 2}},
		"one that comes too late, and is good enough":   {NewSuccessiveHalving(loss, 6), "+0..5 0@1=1 1@1=2 2@1=3 3@1=4 4@1=5 ! 5@1=0.5", []Trial{0, 5}, nil, []Trial{1, 2, 3, 4}},
		"one that comes too late, and is not":           {NewSuccessiveHalving(loss, 6), "+0..5 0@1=1 1@1=2 2@1=3 3@1=4 4@1=5 ! 5@1=1", []Trial{0}, nil, []Trial{1, 2, 3, 4, 5}},
		"asha lets all on before there are eta":         {NewASHA(loss, true), "+0..2 0@1=9 1@1=10", []Trial{0, 1, 2}, nil, nil},
		"asha stops the third that is worse":            {NewASHA(loss, true), "+0..3 0@1=9 1@1=8 2@1=8.5", []Trial{0, 1, 3}, nil, []Trial{2}},
		"asha lets the third on that is best":           {NewASHA(loss, true), "+0..2 0@1=9 1@1=8 2@1=7", []Trial{0, 1, 2}, nil, nil},
		"asha lets a third on":                          {NewASHA(loss, true), "+0..5 0@1=1 1@1=2 2@1=3 3@1=4 4@1=5 5@1=1.5", []Trial{0, 1, 5}, nil, []Trial{2, 3, 4}},
		"asha rounds a third down":                      {NewASHA(loss, true), "+0..4 0@1=1 1@1=2 2@1=0.5 3@1=0.7 4@1=0.4", []Trial{0, 1, 2, 4}, nil, []Trial{3}},
		"asha lets equal values on":                     {NewASHA(loss, true), "+0..4 1@1=1 2@1=1 3@1=1 0@1=1 4@1=1.1", []Trial{0, 1, 2, 3}, nil, []Trial{4}},
		"asha of the reference experiment":              {NewASHA(Ladder{First: 4, Eta: 4, Most: 100, Goal: core.Maximize}, true), "+0..8 0@4=0.5 1@4=0.6 2@4=0.4 3@4=0.6 4@4=0.55 5@4=0.7 6@4=0.65 7@4=0.66 8@4=0.67", []Trial{0, 1, 2, 3, 5, 7, 8}, nil, []Trial{4, 6}},
		"asha counts each rung by itself":               {NewASHA(Ladder{First: 4, Eta: 4, Most: 100, Goal: core.Maximize}, true), "+0..4 0@4=0.1 1@4=0.2 2@4=0.3 3@4=0.4 4@4=0.5 0@16=0.1 1@16=0.9 2@16=0.2", []Trial{0, 1, 2, 3, 4}, nil, nil},
		"asha with eta 2 lets one on":                   {NewASHA(accuracy, true), "+0..3 0@4=0.5 1@4=0.4 2@4=0.45 3@4=0.45", []Trial{0, 3}, nil, []Trial{1, 2}},
		"asha with NaN":                                 {NewASHA(accuracy, true), "+0..3 0@4=NaN 1@4=0.1 2@4=0.2 3@4=NaN", []Trial{0, 1, 2}, nil, []Trial{3}},
		"asha counts those that ended, not lost":        {NewASHA(accuracy, true), "+0..3 0@4=0.5 -0 1@4=0.4 2@4=0.6 x3", []Trial{2}, nil, []Trial{1}},
		"asha at the second rung":                       {NewASHA(loss, true), "+0..3 0@1=4 0@3=1 1@1=3 1@3=1.5 2@1=2 2@3=1.2 3@1=1 3@3=0.9", []Trial{0, 1, 3}, nil, []Trial{2}},
		"asha that promotes waits for enough":           {NewASHA(loss, false), "+0..2 0@1=1 1@1=2", []Trial{2}, []Trial{0, 1}, nil},
		"and promotes the best of them":                 {NewASHA(loss, false), "+0..2 0@1=2 1@1=1 2@1=3", []Trial{1}, []Trial{0, 2}, nil},
		"the promoted wait at the next":                 {NewASHA(loss, false), "+0..2 0@1=2 1@1=1 2@1=3 1@3=1", nil, []Trial{0, 1, 2}, nil},
		"and who came is good enough later":             {NewASHA(loss, false), "+0..5 0@1=2 1@1=1 2@1=3 3@1=4 4@1=5 5@1=6", []Trial{0, 1}, []Trial{2, 3, 4, 5}, nil},
		"when nobody comes the best of each rung go on": {NewASHA(loss, false), "+0..2 0@1=2 1@1=1 2@1=3 1@3=1 !", []Trial{1}, nil, []Trial{0, 2}},
		"those who came to nothing make room":           {NewASHA(loss, false), "+0..3 0@1=1 x0 1@1=2 2@1=3 3@1=4", []Trial{1}, []Trial{2, 3}, nil},
		"hyperband fills one bracket after the other": {
			NewHyperband(Ladder{First: 1, Eta: 2, Most: 2}), "+0..4 0@1=1 1@1=2 2@1=9 3@1=9 4@1=9", []Trial{0, 2, 3}, []Trial{4}, []Trial{1},
		},
		"and begins anew": {
			NewHyperband(Ladder{First: 1, Eta: 2, Most: 2}), "+0..5 0@1=1 1@1=2 4@1=7 5@1=8", []Trial{0, 2, 3, 4}, nil, []Trial{1, 5},
		},
		"the median of too few":           {NewMedian(Median{Others: 3}), "+0..3 0@1=1 1@1=2 2@1=9", []Trial{0, 1, 2, 3}, nil, nil},
		"the median of enough":            {NewMedian(Median{Others: 3}), "+0..4 0@1=1 1@1=2 2@1=3 3@1=2 4@1=2.1", []Trial{0, 1, 2, 3}, nil, []Trial{4}},
		"the best value counts":           {NewMedian(Median{Others: 2}), "+0..2 0@1=1 0@2=1 1@1=2 1@2=2 2@1=1.5 2@2=99", []Trial{0, 1, 2}, nil, nil},
		"against means":                   {NewMedian(Median{Others: 1}), "+0..1 0@1=4 0@2=0 1@2=2.5", []Trial{0}, nil, []Trial{1}},
		"means up to the step":            {NewMedian(Median{Others: 1}), "+0..1 0@1=4 0@3=0 1@2=3.5", []Trial{0, 1}, nil, nil},
		"grace":                           {NewMedian(Median{Others: 1, Grace: 2}), "+0..1 0@1=1 0@2=1 1@1=9 1@1.9=9", []Trial{0, 1}, nil, nil},
		"after it":                        {NewMedian(Median{Others: 1, Grace: 2}), "+0..1 0@1=1 0@2=1 1@1=9 1@2=9", []Trial{0}, nil, []Trial{1}},
		"those that ended count":          {NewMedian(Median{Others: 1}), "+0..1 0@1=1 -0 1@1=2", nil, nil, []Trial{1}},
		"those that broke do not":         {NewMedian(Median{Others: 1}), "+0..1 0@1=1 x0 1@1=2", []Trial{1}, nil, nil},
		"one that diverged is lost":       {NewMedian(Median{Others: 1}), "+0..1 0@1=1 0@2=2 1@1=0.5 1@2=NaN", []Trial{0}, nil, []Trial{1}},
		"for more is better too":          {NewMedian(Median{Others: 1, Goal: core.Maximize}), "+0..1 0@1=1 0@2=2 1@1=9 1@2=NaN", []Trial{0}, nil, []Trial{1}},
		"one that is finite again is not": {NewMedian(Median{Others: 1, Grace: 3}), "+0..1 0@1=1 0@2=2 0@3=2 1@1=NaN 1@2=NaN 1@3=1.5", []Trial{0, 1}, nil, nil},
		"those that diverged are no bar":  {NewMedian(Median{Others: 3}), "+0..3 0@1=0.1 0@2=NaN 1@1=0.1 1@2=NaN 2@1=0.1 2@2=NaN 3@2=7", []Trial{0, 1, 2, 3}, nil, nil},
		"NaN is worse than any median":    {NewMedian(Median{Others: 1}), "+0..1 0@1=1e300 1@1=NaN", []Trial{0}, nil, []Trial{1}},
		"those that have not come so far": {NewMedian(Median{Others: 1}), "+0..1 0@1=1 1@2=2", []Trial{0, 1}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			goOn, wait, stop := play(t, tc.rule, tc.happens)
			if diff := cmp.Diff([][]Trial{tc.goOn, tc.wait, tc.stop}, [][]Trial{goOn, wait, stop}); diff != "" {
				t.Errorf("go on, wait, stop (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecisionsTellWhy(t *testing.T) {
	nan := math.NaN()
	for name, tc := range map[string]struct {
		rule    Rule
		happens string
		of      Trial
		want    Decision
	}{
		"out of a rung":     {NewSuccessiveHalving(Ladder{First: 2, Eta: 2}, 3), "+0..2 0@2=1 1@3=3 2@2=2", 1, Decision{Stop, 3, 3, 0, 3, 3, 1, nan}},
		"waits at a rung":   {NewASHA(Ladder{First: 2, Eta: 2}, false), "+0..2 0@2=1 1@2=3 0@4=1", 0, Decision{Wait, 4, 1, 1, 1, 1, 0, nan}},
		"of its moment":     {NewASHA(Ladder{First: 2, Eta: 2}, true), "+0..3 0@2=1 1@2=3 2@2=2 3@2=0", 1, Decision{Stop, 2, 3, 0, 2, 2, 1, nan}},
		"by the median":     {NewMedian(Median{Others: 2}), "+0..2 0@1=1 1@1=2 2@1=3", 2, Decision{Stop, 1, 3, -1, 0, 2, 0, 1.5}},
		"goes on":           {NewMedian(Median{Others: 2}), "+0", 0, Decision{GoOn, 0, 0, -1, 0, 0, 0, nan}},
		"nobody that it is": {NewASHA(Ladder{First: 2, Eta: 2}, true), "", 7, Decision{GoOn, 0, 0, -1, 0, 0, 0, nan}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, tc.rule, tc.happens)
			if got := tc.rule.Decide(tc.of); fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// The brackets of the publication (JMLR 18, 2018, table 1): R = 81, eta = 3.
func TestBrackets(t *testing.T) {
	for name, tc := range map[string]struct {
		ladder Ladder
		want   []Bracket
	}{
		"of the publication":    {Ladder{First: 1, Eta: 3, Most: 81}, []Bracket{{81, 1}, {34, 3}, {15, 9}, {8, 27}, {5, 81}}},
		"that do not divide":    {Ladder{First: 4, Eta: 3, Most: 100}, []Bracket{{9, 100. / 9}, {5, 100. / 3}, {3, 100}}},
		"one where none fits":   {Ladder{First: 50, Eta: 3, Most: 100}, []Bracket{{1, 100}}},
		"one that is too short": {Ladder{First: 5, Eta: 2, Most: 1}, []Bracket{{1, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Brackets(tc.ladder)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRungs(t *testing.T) {
	inf := math.Inf(1)
	for name, tc := range map[string]struct {
		ladder Ladder
		want   []float64
	}{
		"below the end": {Ladder{First: 1, Eta: 3, Most: 27}, []float64{1, 3, 9, inf, inf}},
		"without one":   {Ladder{First: 0.5, Eta: 4}, []float64{0.5, 2, 8, 32, 128}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []float64
			for i := range tc.want {
				got = append(got, tc.ladder.Step(i))
			}
			if !slices.Equal(got, tc.want) || !math.IsInf(tc.ladder.Step(mostRungs), 1) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// drawRule is a rule, made anew at each call, and its eta.
func drawRule(t *rapid.T) (create func() Rule, eta float64) {
	l := Ladder{
		First: rapid.SampledFrom([]float64{0.5, 1, 4}).Draw(t, "first"), Eta: rapid.SampledFrom([]float64{2, 2.5, 4}).Draw(t, "eta"),
		Most: rapid.SampledFrom([]float64{0, 16, 81}).Draw(t, "most"), Goal: rapid.SampledFrom([]core.Goal{core.Minimize, core.Maximize}).Draw(t, "goal"),
	}
	size := rapid.IntRange(0, 5).Draw(t, "cohort")
	return rapid.SampledFrom([]func() Rule{
		func() Rule { return NewASHA(l, true) },
		func() Rule { return NewASHA(l, false) },
		func() Rule { return NewSuccessiveHalving(l, size) },
		func() Rule { return NewHyperband(l) },
		func() Rule { return NewMedian(Median{Grace: l.First, Others: size, Goal: l.Goal}) },
	}).Draw(t, "rule"), l.Eta
}

// happens draws what happens next and tells each of the rules.
func happens(t *rapid.T, rules ...Rule) {
	id := Trial(rapid.IntRange(0, 9).Draw(t, "trial"))
	switch what := rapid.IntRange(0, 19).Draw(t, "what"); {
	case what < 5:
		for _, r := range rules {
			r.Enter(id)
		}
	case what == 5:
		lost := rapid.Bool().Draw(t, "lost")
		for _, r := range rules {
			r.Leave(id, lost)
		}
	case what == 6:
		for _, r := range rules {
			r.Settle()
		}
	default:
		step := rapid.SampledFrom([]float64{0, 0.5, 1, 2, 3, 4, 8, 9, 16, 30, 64, 81, math.NaN(), math.Inf(1)}).Draw(t, "step")
		value := rapid.SampledFrom([]float64{0, 1, 1, 2, 3, -5, math.NaN(), math.Inf(1), math.Inf(-1)}).Draw(t, "value")
		for _, r := range rules {
			r.Report(id, step, value)
		}
	}
}

func decisions(r Rule) (all []string) {
	for id := range Trial(10) {
		all = append(all, fmt.Sprintf("%+v", r.Decide(id)))
	}
	return all
}

// To ask, whenever and in whichever order, changes nothing, and a rule goes on from its snapshot as if it had never been away.
func TestAskingAndRestoringChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		create, _ := drawRule(t)
		asked, restored := create(), create()
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			happens(t, asked, restored)
			first := decisions(asked)
			for _, id := range rapid.Permutation([]Trial{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).Draw(t, "order") {
				asked.Decide(id)
			}
			if diff := cmp.Diff(first, decisions(asked)); diff != "" {
				t.Fatalf("asked again (-first +again):\n%s", diff)
			}
			snapshot, err := restored.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			restored = create()
			if err := restored.Restore(snapshot); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, decisions(restored)); diff != "" {
				t.Fatalf("restored (-asked all along +restored):\n%s", diff)
			}
		}
	})
}

// Who is to stop is to stop for good, and who goes on below the next rung does not wait.
func TestStoppedForGood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		create, _ := drawRule(t)
		r := create()
		stopped, gone := map[Trial]bool{}, map[Trial]bool{}
		for range rapid.IntRange(0, 80).Draw(t, "events") {
			happens(t, r)
			for id := range Trial(10) {
				a := r.Decide(id).Action
				gone[id] = stopped[id] && a == GoOn && !gone[id] // it left
				if stopped[id] && a == Wait {
					t.Fatalf("trial %d was to stop, and is to wait", id)
				}
				stopped[id] = stopped[id] || a == Stop
			}
		}
	})
}

// When all of a cohort came to a rung, of n trials max(1, ⌊n/eta⌋) go on, and these are the best.
func TestHalvingKeepsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		eta := rapid.SampledFrom([]float64{2, 3, 4, 2.5}).Draw(t, "eta")
		values := rapid.SliceOfN(rapid.SampledFrom([]float64{1, 2, 3, 4, 5, 6, math.NaN()}), 1, 30).Draw(t, "values")
		r := NewSuccessiveHalving(Ladder{First: 1, Eta: eta}, len(values))
		for i := range values {
			r.Enter(Trial(i))
		}
		ranked := make([]Trial, len(values))
		for i := range ranked {
			ranked[i] = Trial(i)
		}
		slices.SortStableFunc(ranked, func(a, b Trial) int { return orderValues(core.Minimize, values[a], values[b]) })
		for _, id := range rapid.Permutation(slices.Clone(ranked)).Draw(t, "order") {
			r.Report(id, 1, values[id])
		}
		keep := max(1, int(math.Floor(float64(len(values))/eta)))
		for rank, id := range ranked {
			if got := r.Decide(id).Action; (got == GoOn) != (rank < keep) || got == Wait {
				t.Fatalf("number %d of %d is to %v, and %d go on", rank+1, len(values), got, keep)
			}
		}
	})
}

// A trial that never reports keeps nobody waiting for good: after it is settled nobody waits who has not come further since.
func TestSettledLeavesNobodyWaitingForNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		create, _ := drawRule(t)
		r := create()
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			happens(t, r)
		}
		for range 2 * mostRungs { // one report may be the result at all rungs
			r.Settle()
		}
		for id := range Trial(10) {
			if d := r.Decide(id); d.Action == Wait {
				t.Fatalf("trial %d waits: %+v", id, d)
			}
		}
	})
}

func FuzzRestore(f *testing.F) {
	f.Add(uint8(0), []byte(`{"Cohorts":[{"Entered":1,"Results":[[{"Trial":0,"Step":"1","Value":"NaN"}]],"Cuts":[]}],"Trials":[{"Trial":0,"Last":"1","Given":1}]}`))
	f.Add(uint8(4), []byte(`[{"Trial":0,"Points":[{"Step":"1","Mean":"2"}],"Count":1,"Best":"2"}]`))
	f.Fuzz(func(t *testing.T, kind uint8, snapshot []byte) {
		l := Ladder{First: 1, Eta: 2, Most: 16}
		r := [...]Rule{NewASHA(l, true), NewASHA(l, false), NewSuccessiveHalving(l, 2), NewHyperband(l), NewMedian(Median{})}[kind%5]
		if r.Restore(snapshot) != nil {
			return
		}
		for id := range Trial(4) {
			r.Enter(id)
			r.Decide(id)
			r.Report(id, 2, 1)
			r.Report(id, 5, float64(id))
			r.Decide(id)
		}
		r.Leave(0, true)
		r.Settle()
		for id := range Trial(4) {
			r.Decide(id)
		}
		if again, err := r.Snapshot(); err != nil {
			t.Fatalf("%v of %s", err, again)
		}
	})
}
