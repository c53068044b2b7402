package advise_test

import (
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/lab/advise"
)

var (
	gridFile = flag.String("grid", "", "runs.csv of a full grid to draw windows from; prints how good what is chosen is")
	draws    = flag.Int("draws", 300, "how many times windows are drawn from it")
)

// TestDraws says how good advice is over windows drawn at random from a full grid of runs, half of them to choose on and half kept
// back: one advice is one draw. docs/results/advise.md shows what it logs.
func TestDraws(t *testing.T) {
	if *gridFile == "" {
		t.Skip("-grid names no runs.csv of a full grid; docs/results/advise.md says how to make one")
	}
	for _, goal := range []struct{ name, value, second string }{
		{"mean", "jct_seconds_mean", "jct_seconds_p99"},
		{"p99", "jct_seconds_p99", "jct_seconds_mean"},
	} {
		table, loads := readGrid(t, *gridFile, goal.value, goal.second)
		for _, windows := range []int{5, 10, 20} {
			if 2*windows > len(loads) {
				continue
			}
			t.Logf("%s, %d windows: %s", goal.name, windows, drawMany(t, table, loads, windows))
		}
	}
}

func drawMany(t *testing.T, table [][]advise.Outcome, loads []float64, windows int) string {
	random := rand.New(rand.NewPCG(1, uint64(windows)))
	within, sum, fullWithin, simpleWithin, simpleSum, runs := 0, 0.0, 0, 0, 0.0, 0
	for range *draws {
		drawn := random.Perm(len(loads))[:2*windows]
		choosing, heldOut := drawn[:windows], drawn[windows:]
		slices.SortStableFunc(choosing, func(a, b int) int { return int(math.Copysign(1, loads[b]-loads[a])) })
		best := math.Inf(1)
		for c := range table {
			best = min(best, logsOver(table[c], heldOut))
		}
		regret := func(c int) float64 { return math.Expm1((logsOver(table[c], heldOut) - best) / float64(windows)) }
		rungs := advise.PlanRungs(len(table), windows, windows)
		r := advise.NewRace(len(table), choosing, rungs, nil)
		_, cells := play(t, r, table)
		chosen, _ := r.Pick()
		runs += len(cells) + len(r.Ranked())*windows
		full := 0
		for c := range table {
			if logsOver(table[c], choosing) < logsOver(table[full], choosing) {
				full = c
			}
		}
		sum += regret(chosen)
		if regret(chosen) <= 0.02 {
			within++
		}
		if regret(full) <= 0.02 {
			fullWithin++
		}
		simple := simplest(t, r)
		simpleSum += regret(simple)
		if regret(simple) <= 0.02 {
			simpleWithin++
		}
	}
	n := float64(*draws)
	return fmt.Sprintf("within 2 %% in %.0f %% of draws (the full grid: %.0f %%), regret %.2f %% in the mean, %.1f %% of the runs; the simplest whose interval holds 0: %.0f %%, %.2f %%",
		100*float64(within)/n, 100*float64(fullWithin)/n, 100*sum/n, 100*float64(runs)/n/float64(2*windows*len(table)), 100*float64(simpleWithin)/n, 100*simpleSum/n)
}

// simplest is the simplest finalist whose change against the best has an interval that holds 0: another rule, to compare with.
func simplest(t *testing.T, r *advise.Race) int {
	values := func(c int) (list []float64) {
		for _, o := range r.Outcomes(c) {
			list = append(list, o.Value)
		}
		return list
	}
	ranked := r.Ranked()
	chosen := ranked[0]
	for _, c := range ranked {
		p, err := stats.Compare(values(c), values(ranked[0]), 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if c < chosen && (p.Equal || p.T.Contains(0)) {
			chosen = c
		}
	}
	return chosen
}

func logsOver(outcomes []advise.Outcome, windows []int) (sum float64) {
	for _, w := range windows {
		sum += math.Log(outcomes[w].Value)
	}
	return sum
}

// readGrid reads the outcomes of every candidate on every window, and the load that each window offers.
func readGrid(t *testing.T, path, value, second string) (table [][]advise.Outcome, loads []float64) {
	text, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	rows, err := csv.NewReader(text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	number := func(row []string, name string) float64 {
		x, err := strconv.ParseFloat(row[column[name]], 64)
		if err != nil {
			t.Fatalf("run %s: %v", row[0], err)
		}
		return x
	}
	known := map[string]int{}
	for _, row := range rows[1:] {
		name := row[column["scheduler"]]
		if _, ok := known[name]; !ok {
			known[name] = len(table)
			table = append(table, nil)
		}
		c := known[name]
		if c == 0 {
			loads = append(loads, number(row, "offered_load"))
		}
		table[c] = append(table[c], advise.Outcome{
			Value: number(row, value), Second: number(row, second), Lost: int(number(row, "jobs_submitted") - number(row, "jobs_completed")),
		})
	}
	return table, loads
}
