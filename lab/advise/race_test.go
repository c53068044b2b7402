package advise_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/lab/advise"
)

// play runs a race on a table of outcomes, by candidate and window. It returns the candidates from the best to the worst of those
// left, and the cells that were run.
func play(t rapid.TB, r *advise.Race, table [][]advise.Outcome) (ranked []int, cells []advise.Cell) {
	t.Helper()
	for {
		ask := r.Ask()
		if len(ask) == 0 {
			return r.Ranked(), cells
		}
		for _, c := range ask {
			if slices.Contains(cells, c) {
				t.Fatalf("cell %v is run twice", c)
			}
		}
		cells = append(cells, ask...)
		r.Report(func(c advise.Cell) advise.Outcome { return table[c.Candidate][c.Window] })
	}
}

// tableOf makes outcomes of candidates of known effect on windows of known size, with noise of a standard deviation in logarithms.
func tableOf(effects, windows []float64, noise float64, random *rand.Rand) [][]advise.Outcome {
	table := make([][]advise.Outcome, len(effects))
	for c, effect := range effects {
		for _, window := range windows {
			table[c] = append(table[c], advise.Outcome{Value: window * math.Exp(effect+noise*random.NormFloat64()), Second: 1})
		}
	}
	return table
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func least(x []float64) int { return slices.Index(x, slices.Min(x)) }

// Without noise the best candidate is never dropped, and is the first of those left; of equal ones, the simplest.
func TestTheBestIsNeverDroppedWithoutNoise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		effects := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 20), func(x int) float64 { return float64(x) / 50 }), 1, 80).Draw(t, "effects")
		windows := rapid.SliceOfN(rapid.Float64Range(1, 1e6), 1, 12).Draw(t, "windows")
		table := tableOf(effects, windows, 0, rand.New(rand.NewPCG(1, 1)))
		rungs := advise.PlanRungs(len(effects), len(windows), len(windows))
		ranked, cells := play(t, advise.NewRace(len(effects), upTo(len(windows)), rungs, nil), table)
		if ranked[0] != least(effects) {
			t.Errorf("chose %d of effects %v, want %d", ranked[0], effects, least(effects))
		}
		if got, most := len(cells)+len(ranked)*len(windows), advise.Runs(len(effects), len(windows), rungs); got > most {
			t.Errorf("%d runs, planned were at most %d", got, most)
		}
	})
}

// With noise between candidates of a tenth of the effects, what is chosen is almost as good as the best.
func TestNoiseCostsLittle(t *testing.T) {
	const candidates, windows = 36, 10
	total, worst := 0.0, 0.0
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 7))
		effects, sizes := make([]float64, candidates), make([]float64, windows)
		for c := range effects {
			effects[c] = 0.3 * random.Float64()
		}
		for w := range sizes {
			sizes[w] = math.Exp(random.NormFloat64())
		}
		ranked, _ := play(t, advise.NewRace(candidates, upTo(windows), advise.PlanRungs(candidates, windows, windows), nil), tableOf(effects, sizes, 0.03, random))
		regret := effects[ranked[0]] - slices.Min(effects)
		total, worst = total+regret, max(worst, regret)
	}
	if mean := total / 500; mean > 0.01 || worst > 0.06 {
		t.Errorf("regret %.4f in the mean and %.4f at worst, want at most 0.01 and 0.06", mean, worst)
	}
}

func TestPlanRungs(t *testing.T) {
	cases := map[string]struct {
		candidates, windows int
		want                []advise.Rung
	}{
		"one":          {1, 10, []advise.Rung{{Windows: 10, Keep: 1}}},
		"four":         {4, 10, []advise.Rung{{Windows: 10, Keep: 4}}},
		"thirty-six":   {36, 10, []advise.Rung{{1, 18}, {2, 9}, {4, 5}, {8, 4}, {10, 4}}},
		"one window":   {36, 1, []advise.Rung{{1, 2}}},
		"five windows": {36, 5, []advise.Rung{{1, 12}, {2, 4}, {4, 4}, {5, 4}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, advise.PlanRungs(tc.candidates, tc.windows, tc.windows)); diff != "" {
				t.Errorf("rungs (-want +got):\n%s", diff)
			}
		})
	}
}

// A race takes at most a quarter of the runs of the full grid, where there are candidates and windows enough for it.
func TestRunsAreAQuarterOfTheGrid(t *testing.T) {
	for candidates := 1; candidates <= 300; candidates++ {
		for windows := 1; windows <= 30; windows++ {
			rungs := advise.PlanRungs(candidates, windows, windows)
			runs, grid := advise.Runs(candidates, windows, rungs), 2*candidates*windows
			if runs > grid {
				t.Fatalf("%d candidates, %d windows: %d runs of %d", candidates, windows, runs, grid)
			}
			if candidates >= 12 && windows >= 5 && 4*runs > grid {
				t.Errorf("%d candidates, %d windows: %d runs of %d: %v", candidates, windows, runs, grid, rungs)
			}
			for i, r := range rungs {
				if r.Windows < 1 || r.Windows > windows || r.Keep < 1 || i > 0 && (r.Windows <= rungs[i-1].Windows || r.Keep > rungs[i-1].Keep) {
					t.Fatalf("%d candidates, %d windows: rungs %v", candidates, windows, rungs)
				}
			}
		}
	}
}

// What comes first: that jobs complete, that limits hold, and then the goal.
func TestOrder(t *testing.T) {
	limit := []advise.Limit{{Metric: "fairness.rho_max", Below: true, Bound: 2}}
	value := func(v, rho float64, lost int) []advise.Outcome {
		return []advise.Outcome{{Value: v, Limits: []float64{rho}, Lost: lost}}
	}
	cases := map[string]struct {
		table [][]advise.Outcome
		want  []int
	}{
		"goal":                    {[][]advise.Outcome{value(3, 1, 0), value(1, 1, 0), value(2, 1, 0)}, []int{1, 2, 0}},
		"equal":                   {[][]advise.Outcome{value(3, 1, 0), value(3, 1, 0), value(2, 1, 0)}, []int{2, 0, 1}},
		"lost jobs":               {[][]advise.Outcome{value(3, 9, 0), value(1, 1, 2), value(2, 1, 1)}, []int{0, 2, 1}},
		"limit":                   {[][]advise.Outcome{value(3, 1.9, 0), value(1, 2, 0), value(2, 5, 0)}, []int{0, 1, 2}},
		"nothing keeps the limit": {[][]advise.Outcome{value(1, 9, 0), value(1, 3, 0), value(1, 4, 0)}, []int{1, 2, 0}},
		"unknown metric":          {[][]advise.Outcome{value(1, math.NaN(), 0), value(1, 9, 0)}, []int{1, 0}},
		"unknown goal":            {[][]advise.Outcome{value(math.NaN(), 1, 0), value(9, 1, 0)}, []int{1, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ranked, _ := play(t, advise.NewRace(len(tc.table), []int{0}, []advise.Rung{{Windows: 1, Keep: 9}}, limit), tc.table)
			if diff := cmp.Diff(tc.want, ranked); diff != "" {
				t.Errorf("ranked (-want +got):\n%s", diff)
			}
		})
	}
}

// A candidate whose run failed leaves; candidates that are equal take one place; the windows are taken in the order given.
func TestLeaving(t *testing.T) {
	table := tableOf([]float64{0.1, 0, 0, 0.2, 0.3}, []float64{5, 7}, 0, rand.New(rand.NewPCG(1, 1)))
	table[1][1].Failed, table[2] = "broken", table[0]
	r := advise.NewRace(5, []int{1, 0}, []advise.Rung{{Windows: 1, Keep: 2}, {Windows: 2, Keep: 1}}, nil)
	ranked, cells := play(t, r, table)
	if diff := cmp.Diff([]int{0}, ranked); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	want := []advise.Leaving{
		{Candidate: 1, Windows: 1, Same: -1, Failed: "broken"}, {Candidate: 4, Windows: 1, Same: -1}, {Candidate: 2, Windows: 1, Same: 0}, {Candidate: 3, Windows: 2, Same: -1},
	}
	if diff := cmp.Diff(want, r.Out); diff != "" {
		t.Errorf("out (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]advise.Cell{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {0, 0}, {3, 0}}, cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

func TestAllFailed(t *testing.T) {
	table := [][]advise.Outcome{{{Failed: "a"}}, {{Failed: "b"}}}
	ranked, _ := play(t, advise.NewRace(2, []int{0}, []advise.Rung{{Windows: 1, Keep: 2}}, nil), table)
	if len(ranked) != 0 {
		t.Errorf("left %v", ranked)
	}
}

func TestParseLimit(t *testing.T) {
	cases := map[string]struct {
		text, want, wrong string
		holds, broken     float64
	}{
		"end of a path": {text: "rho_max<2", want: "fairness.rho_max<2", holds: 1.99, broken: 2},
		"or equal":      {text: "fairness.rho_max <= 2", want: "fairness.rho_max<=2", holds: 2, broken: 2.01},
		"above":         {text: "utilization_ratio>0.6", want: "utilization_ratio>0.6", holds: 0.61, broken: 0.6},
		"at least":      {text: "utilization_ratio>=0.6", want: "utilization_ratio>=0.6", holds: 0.6, broken: math.NaN()},
		"no sign":       {text: "rho_max=2", wrong: "is no limit"},
		"no number":     {text: "rho_max<two", wrong: `"two" is no bound`},
		"infinite":      {text: "rho_max<inf", wrong: "is no bound"},
		"ambiguous":     {text: "mean<2", wrong: "jct_seconds.mean, queueing_seconds.mean"},
		"unknown":       {text: "rho_maximum<2", wrong: "unknown metric"},
		"nothing":       {text: "<2", wrong: "unknown metric"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limit, err := advise.ParseLimit(tc.text)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("error %v, want one with %q", err, tc.wrong)
				}
				return
			}
			if err != nil || limit.String() != tc.want || !limit.Holds(tc.holds) || limit.Holds(tc.broken) {
				t.Errorf("limit %v, error %v", limit, err)
			}
		})
	}
}
