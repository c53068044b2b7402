package stopping_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stopping"
)

var names = map[stopping.Decision]string{stopping.Go: "go", stopping.Wait: "wait", stopping.Stop: "stop"}

// told is what a rule is told: a report of a trial, or, with another what, that it joins, leaves, or that all is settled.
type told struct {
	what        string
	trial       int
	step, value float64
}

func report(trial int, step, value float64) told { return told{"", trial, step, value} }

func tell(r stopping.Rule, list []told) {
	for _, x := range list {
		switch x.what {
		case "join":
			r.Join(x.trial)
		case "leave":
			r.Leave(x.trial)
		case "settle":
			r.Settle()
		default:
			r.Report(x.trial, x.step, x.value)
		}
	}
}

func decisions(r stopping.Rule, trials int) (list []string) {
	for i := range trials {
		d, _ := r.Decision(i)
		list = append(list, names[d])
	}
	return list
}

func TestRules(t *testing.T) {
	by3 := stopping.Rungs{First: 1, Eta: 3, Most: 9}
	by2 := stopping.Rungs{First: 2, Eta: 2, Most: math.Inf(1)}
	nan := math.NaN()
	for name, tc := range map[string]struct {
		rule   stopping.Rule
		trials int
		told   []told
		want   []string
	}{
		"halving: all wait for the last": {
			stopping.NewHalving(by3, core.Minimize, 3), 3, []told{report(0, 1, 5), report(1, 1, 4)}, []string{"wait", "wait", "go"},
		},
		"halving: one of three goes on": {
			stopping.NewHalving(by3, core.Minimize, 3), 3, []told{report(0, 1, 5), report(1, 1, 4), report(2, 1, 6)}, []string{"stop", "go", "stop"},
		},
		"halving: high values are better": {
			stopping.NewHalving(by3, core.Maximize, 3), 3, []told{report(0, 1, 5), report(1, 1, 4), report(2, 1, 6)}, []string{"stop", "stop", "go"},
		},
		"halving: of equals the first goes on": {
			stopping.NewHalving(by3, core.Minimize, 3), 3, []told{report(2, 1, 1), report(1, 1, 1), report(0, 1, 1)}, []string{"go", "stop", "stop"},
		},
		"halving: no number is worst": {
			stopping.NewHalving(by3, core.Minimize, 3), 3, []told{report(0, 1, nan), report(1, 1, 9), report(2, 1, math.Inf(1))}, []string{"stop", "go", "stop"},
		},
		"halving: the cohort is awaited": {
			stopping.NewHalving(by3, core.Minimize, 4), 3, []told{report(0, 1, 5), report(1, 1, 4), report(2, 1, 6)}, []string{"wait", "wait", "wait"},
		},
		"halving: or settled without the rest": {
			stopping.NewHalving(by3, core.Minimize, 4), 3, []told{report(0, 1, 5), report(1, 1, 4), report(2, 1, 6), {what: "settle"}}, []string{"stop", "go", "stop"},
		},
		"halving: without a size, it is settled": {
			stopping.NewHalving(by3, core.Minimize, 0), 3, []told{report(0, 1, 5), report(1, 1, 4), report(2, 1, 6)}, []string{"wait", "wait", "wait"},
		},
		"halving: nobody waits for one that ended": {
			stopping.NewHalving(by3, core.Minimize, 3), 3, []told{report(0, 1, 5), {what: "leave", trial: 1}, report(2, 1, 6)}, []string{"go", "go", "stop"},
		},
		"halving: what one reached before it ended counts": {
			stopping.NewHalving(by3, core.Minimize, 3), 3, []told{report(1, 1, 4), {what: "leave", trial: 1}, report(0, 1, 5), report(2, 1, 6)}, []string{"stop", "go", "stop"},
		},
		"halving: a report may reach two rungs": {
			stopping.NewHalving(by3, core.Minimize, 3), 3, []told{report(0, 4, 5), report(1, 1, 7), report(2, 1, 6)}, []string{"go", "stop", "stop"},
		},
		"halving: one that was ahead waits at the next rung": {
			stopping.NewHalving(by2, core.Minimize, 4), 4,
			[]told{report(0, 4, 1), report(1, 2, 2), report(2, 2, 3), report(3, 2, 4)}, []string{"wait", "go", "stop", "stop"},
		},
		"halving: a step that is told again changes nothing": {
			stopping.NewHalving(by3, core.Minimize, 3), 3, []told{report(0, 1, 5), report(0, 1, 1), report(1, 1, 4), report(2, 1, 6)}, []string{"stop", "go", "stop"},
		},
		"halving: one that comes late runs to its end": {
			stopping.NewHalving(by3, core.Minimize, 2), 3,
			[]told{{what: "leave", trial: 2}, report(0, 1, 5), report(1, 1, 4), {what: "join", trial: 3}, report(3, 1, 9)}, []string{"stop", "go", "go"},
		},
		"asha: the first goes on": {
			stopping.NewASHA(by3, core.Minimize, false), 2, []told{report(0, 1, 5)}, []string{"go", "go"},
		},
		"asha: a worse one stops at once, a better one goes on": {
			stopping.NewASHA(by3, core.Minimize, false), 3, []told{report(0, 1, 5), report(1, 1, 6), report(2, 1, 4)}, []string{"go", "stop", "go"},
		},
		"asha: it is compared at each rung that it reached": {
			stopping.NewASHA(by3, core.Minimize, false), 2, []told{report(0, 3, 5), report(1, 1, 4), report(1, 3, 6)}, []string{"go", "stop"},
		},
		"asha: a rung beyond the last compares nobody": {
			stopping.NewASHA(by3, core.Minimize, false), 2, []told{report(0, 9, 5), report(1, 1, 4), report(1, 3, 4), report(1, 9, 6)}, []string{"go", "go"},
		},
		"asha: what one told that was stopped is nothing": {
			stopping.NewASHA(by3, core.Minimize, false), 2, []told{report(0, 1, 5), report(1, 1, 6), report(1, 2, 0)}, []string{"go", "stop"},
		},
		"asha: nobody is promoted from a rung of two": {
			stopping.NewASHA(by3, core.Minimize, true), 2, []told{report(0, 1, 5), report(1, 1, 6)}, []string{"wait", "wait"},
		},
		"asha: one of three is promoted": {
			stopping.NewASHA(by3, core.Minimize, true), 3, []told{report(0, 1, 5), report(1, 1, 6), report(2, 1, 7)}, []string{"go", "wait", "wait"},
		},
		"asha: the next best when more came": {
			stopping.NewASHA(by3, core.Minimize, true), 6,
			[]told{report(0, 1, 5), report(1, 1, 6), report(2, 1, 7), report(3, 1, 8), report(4, 1, 9), report(5, 1, 10)}, []string{"go", "go", "wait", "wait", "wait", "wait"},
		},
		"asha: one that was promoted waits at the next rung": {
			stopping.NewASHA(by3, core.Minimize, true), 3, []told{report(0, 1, 5), report(1, 1, 6), report(2, 1, 7), report(0, 3, 1)}, []string{"wait", "wait", "wait"},
		},
		"asha: settled, the best of the highest rung goes on": {
			stopping.NewASHA(by3, core.Minimize, true), 3,
			[]told{report(0, 1, 5), report(1, 1, 6), report(2, 1, 7), report(0, 3, 1), {what: "settle"}}, []string{"go", "stop", "stop"},
		},
		"median: nobody is stopped while few came so far": {
			stopping.NewMedian(core.Minimize, 0, 2), 2, []told{report(0, 1, 1), report(1, 1, 9)}, []string{"go", "go"},
		},
		"median: worse than the middle of the others": {
			stopping.NewMedian(core.Minimize, 0, 2), 3, []told{report(0, 1, 1), report(1, 1, 3), report(2, 1, 2.5)}, []string{"go", "go", "stop"},
		},
		"median: as good as the middle": {
			stopping.NewMedian(core.Minimize, 0, 2), 3, []told{report(0, 1, 1), report(1, 1, 3), report(2, 1, 2)}, []string{"go", "go", "go"},
		},
		"median: the best so far counts, against averages": {
			stopping.NewMedian(core.Maximize, 0, 1), 2, []told{report(0, 1, 4), report(0, 2, 6), report(1, 1, 5), report(1, 2, 0)}, []string{"go", "go"},
		},
		"median: not before its grace is over": {
			stopping.NewMedian(core.Minimize, 2, 1), 2, []told{report(0, 2, 1), report(1, 1, 9)}, []string{"go", "go"},
		},
		"median: others that are not so far do not count": {
			stopping.NewMedian(core.Minimize, 0, 1), 2, []told{report(0, 1, 1), report(1, 2, 9)}, []string{"go", "go"},
		},
		"hyperband: a bracket is decided without the others": {
			stopping.NewHyperband(stopping.Rungs{First: 1, Eta: 3, Most: 3}, core.Minimize), 5,
			[]told{report(0, 1, 3), report(1, 1, 2), report(2, 1, 1), report(3, 1, 9), report(4, 2, 9)}, []string{"stop", "stop", "go", "go", "go"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range tc.trials {
				tc.rule.Join(i)
			}
			tell(tc.rule, tc.told)
			if diff := cmp.Diff(tc.want, decisions(tc.rule, tc.trials)); diff != "" {
				t.Error("(-want +got)", diff)
			}
		})
	}
}

func TestBracketsAreThoseOfThePaper(t *testing.T) {
	// Li et al., JMLR 2018, table 1: R = 81, eta = 3.
	trials, first := stopping.NewHyperband(stopping.Rungs{First: 1, Eta: 3, Most: 81}, core.Minimize).Brackets()
	if diff := cmp.Diff([]int{81, 34, 15, 8, 5}, trials); diff != "" {
		t.Error("trials (-want +got)", diff)
	}
	if diff := cmp.Diff([]float64{1, 3, 9, 27, 81}, first); diff != "" {
		t.Error("first rungs (-want +got)", diff)
	}
}

// play has trials report in a random order until all have ended, with rules that are obeyed at once, and returns the steps that each computed.
func play(t *rapid.T, rule func() stopping.Rule, trials, steps int) (done []int, stopped []bool) {
	r, twin := rule(), rule()
	done, stopped = make([]int, trials), make([]bool, trials)
	value := func(trial, step int) float64 { return float64((trial*7919+step*104729)%1000) / float64(step+1) }
	for i := range trials {
		r.Join(i)
		twin.Join(i)
	}
	left := make([]bool, trials)
	for {
		var can, waits []int
		for i := range trials {
			d, why := r.Decision(i)
			other, whyOther := twin.Decision(i)
			if d != other || why != whyOther {
				t.Fatalf("trial %d: %v %q and %v %q, told alike", i, d, why, other, whyOther)
			}
			switch {
			case left[i]:
			case d == stopping.Stop:
				if why == "" {
					t.Fatalf("trial %d is stopped without a reason", i)
				}
				stopped[i], left[i] = true, true
				r.Leave(i)
				twin.Leave(i)
			case d == stopping.Wait:
				waits = append(waits, i)
			case done[i] == steps:
				left[i] = true
				r.Leave(i)
				twin.Leave(i)
			default:
				can = append(can, i)
			}
		}
		open := false
		for i := range trials {
			d, _ := r.Decision(i)
			open = open || !left[i] && d != stopping.Wait
		}
		switch {
		case len(can) > 0:
			i := rapid.SampledFrom(can).Draw(t, "next")
			done[i]++
			r.Report(i, float64(done[i]), value(i, done[i]))
			twin.Report(i, float64(done[i]), value(i, done[i]))
		case open:
		case len(waits) > 0:
			r.Settle()
			twin.Settle()
			after := 0
			for _, i := range waits {
				if d, _ := r.Decision(i); d == stopping.Wait {
					after++
				}
			}
			if after == len(waits) {
				t.Fatalf("trials %v wait for nobody, and nothing was settled", waits)
			}
		default:
			return done, stopped
		}
	}
}

func TestNobodyWaitsForEver(t *testing.T) {
	rungs := stopping.Rungs{First: 1, Eta: 2, Most: 16}
	for name, rule := range map[string]func(trials int) stopping.Rule{
		"halving":              func(n int) stopping.Rule { return stopping.NewHalving(rungs, core.Minimize, n) },
		"halving without size": func(int) stopping.Rule { return stopping.NewHalving(rungs, core.Maximize, 0) },
		"halving of more":      func(n int) stopping.Rule { return stopping.NewHalving(rungs, core.Minimize, n+3) },
		"halving of fewer":     func(n int) stopping.Rule { return stopping.NewHalving(rungs, core.Minimize, max(n/2, 1)) },
		"asha":                 func(int) stopping.Rule { return stopping.NewASHA(rungs, core.Minimize, false) },
		"asha that promotes":   func(int) stopping.Rule { return stopping.NewASHA(rungs, core.Minimize, true) },
		"hyperband":            func(int) stopping.Rule { return stopping.NewHyperband(rungs, core.Minimize) },
		"median":               func(int) stopping.Rule { return stopping.NewMedian(core.Minimize, 2, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				trials := rapid.IntRange(1, 20).Draw(t, "trials")
				done, stopped := play(t, func() stopping.Rule { return rule(trials) }, trials, 16)
				whole := 0
				for i := range trials {
					if !stopped[i] {
						whole++
						if done[i] != 16 {
							t.Fatalf("trial %d did %d steps and was not stopped", i, done[i])
						}
					}
				}
				if whole == 0 {
					t.Fatal("nobody ran to the end")
				}
			})
		})
	}
}

// A whole cohort of successive halving computes exactly what the paper counts.
func TestHalvingComputesWhatItIsToCompute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		done, _ := play(t, func() stopping.Rule {
			return stopping.NewHalving(stopping.Rungs{First: 1, Eta: 3, Most: 27}, core.Minimize, 27)
		}, 27, 27)
		count := map[int]int{}
		for _, steps := range done {
			count[steps]++
		}
		if diff := cmp.Diff(map[int]int{1: 18, 3: 6, 9: 2, 27: 1}, count); diff != "" {
			t.Fatal("trials by steps (-want +got)", diff)
		}
	})
}

func ExampleASHA() {
	r := stopping.NewASHA(stopping.Rungs{First: 1, Eta: 4, Most: 100}, core.Maximize, false)
	r.Join(0)
	r.Join(1)
	r.Report(0, 1, 0.5)
	r.Report(1, 1, 0.4)
	_, why := r.Decision(1)
	fmt.Println(why)
	// Output: 0.4 at step 1 is number 2 of 2 at rung 1, of which 1 go on
}
