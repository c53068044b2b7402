package elastic_test

import (
	"encoding/csv"
	"flag"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var autoscalingRuns = flag.String("autoscaling.runs", "", "runs.csv of \"quartet bench autoscaling\"; empty to leave the figures out")

// sized is what jobs took and nodes cost in a run.
type sized struct{ jct, cost float64 }

// readSized reads what came of each scheduler on each workload, both in the order of the file.
func readSized(t *testing.T, path string) (of map[string]map[string]sized, schedulers, workloads []string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	column := func(name string) int {
		i := slices.Index(rows[0], name)
		if i < 0 {
			t.Fatalf("%s has no column %q", path, name)
		}
		return i
	}
	scheduler, workload, jct, cost := column("scheduler"), column("workload"), column("jct_seconds_mean"), column("bill_cost")
	number := func(text string) float64 {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	of = map[string]map[string]sized{}
	for _, r := range rows[1:] {
		if of[r[scheduler]] == nil {
			of[r[scheduler]] = map[string]sized{}
			schedulers = append(schedulers, r[scheduler])
		}
		of[r[scheduler]][r[workload]] = sized{number(r[jct]), number(r[cost])}
		if !slices.Contains(workloads, r[workload]) {
			workloads = append(workloads, r[workload])
		}
	}
	return of, schedulers, workloads
}

// sum is what a scheduler comes to on all workloads but one; "" for all.
func sum(of map[string]sized, but string) (s sized) {
	for workload, one := range of {
		if workload != but {
			s.jct, s.cost = s.jct+one.jct, s.cost+one.cost
		}
	}
	return s
}

// leaveOneOut chooses, for each workload, the cheapest of some settings that is no slower than another scheduler on the others, and returns how much
// longer jobs take and how much dearer the nodes are on the workloads that were left out. It is false where on some four no setting is as fast.
func leaveOneOut(of map[string]map[string]sized, settings, workloads []string, against string) (jct, cost float64, chosen []string, ok bool) {
	var got sized
	for _, out := range workloads {
		limit, best := sum(of[against], out), ""
		for _, s := range settings {
			if four := sum(of[s], out); four.jct <= limit.jct && (best == "" || four.cost < sum(of[best], out).cost) {
				best = s
			}
		}
		if best == "" {
			return 0, 0, nil, false
		}
		chosen = append(chosen, best)
		got.jct, got.cost = got.jct+of[best][out].jct, got.cost+of[best][out].cost
	}
	all := sum(of[against], "")
	return got.jct/all.jct - 1, got.cost/all.cost - 1, chosen, true
}

// The value of an hour that is chosen on four workloads holds on the fifth, to the figures of docs/results/elastic.md.
func TestScalerChosenOnOtherWorkloads(t *testing.T) {
	if *autoscalingRuns == "" {
		t.Skip("-autoscaling.runs names no runs.csv of `quartet bench autoscaling`; docs/results/elastic.md says how to make one")
	}
	of, schedulers, workloads := readSized(t, *autoscalingRuns)
	var marginal []string
	for _, s := range schedulers {
		if strings.HasPrefix(s, "marginal, ") {
			marginal = append(marginal, s)
		}
	}
	for _, want := range []struct {
		against   string
		jct, cost float64 // per cent
	}{
		{"goodput", 0.6, -8.8},
		{"goodput, from 0.8 to 0.6", -0.8, -8.7},
		{"goodput, from 0.9 to 0.8", -2.5, -3.5},
		{"throughput, 0.3", -0.2, -4.1},
		{"throughput, 0.5", -1.9, -1.2},
		{"always 16 nodes", -17.9, -0.2},
	} {
		jct, cost, chosen, ok := leaveOneOut(of, marginal, workloads, want.against)
		t.Logf("against %s: mean JCT %+.1f %%, cost %+.1f %%, chosen %q", want.against, 100*jct, 100*cost, chosen)
		if !ok || math.Abs(100*jct-want.jct) > 0.05 || math.Abs(100*cost-want.cost) > 0.05 {
			t.Errorf("against %s: want %+.1f and %+.1f %%", want.against, want.jct, want.cost)
		}
	}
	for _, faster := range []string{"throughput", "always 32 nodes"} {
		if _, _, chosen, ok := leaveOneOut(of, marginal, workloads, faster); ok {
			t.Errorf("%q are as fast as %s on four workloads", chosen, faster)
		}
	}
}

// The choice is made without the workload that is left out: a dearer setting is chosen where the cheaper one is too slow on the others.
func TestLeaveOneOut(t *testing.T) {
	of := map[string]map[string]sized{
		"other": {"1": {10, 10}, "2": {10, 10}, "3": {10, 10}},
		"cheap": {"1": {8, 5}, "2": {10, 5}, "3": {12, 5}},
		"dear":  {"1": {9, 8}, "2": {9, 8}, "3": {9, 8}},
	}
	// Without 1 the cheap one takes 22, which is more than 20, and without 2 and 3 it takes 20 and 18.
	jct, cost, chosen, ok := leaveOneOut(of, []string{"dear", "cheap"}, []string{"1", "2", "3"}, "other")
	if want := []string{"dear", "cheap", "cheap"}; !ok || !slices.Equal(chosen, want) || math.Abs(jct-1./30) > 1e-12 || math.Abs(cost+12./30) > 1e-12 {
		t.Errorf("chosen %q, %v and %v", chosen, jct, cost)
	}
	if _, _, _, ok := leaveOneOut(of, []string{"cheap"}, []string{"1", "2", "3"}, "other"); ok {
		t.Error("one that is too slow is chosen")
	}
}
