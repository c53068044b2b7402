package stats_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/stats"
)

// autoregressive is a series with the correlation phi between neighbours, mean 0 and variance 1.
func autoregressive(n int, phi float64, seed uint64) []float64 {
	x := sample(n, seed)
	for i := 1; i < n; i++ {
		x[i] = phi*x[i-1] + math.Sqrt(1-phi*phi)*x[i]
	}
	return x
}

func TestBlocks(t *testing.T) {
	for n, want := range map[int]int{0: 0, 19: 0, 20: 1, 39: 1, 40: 2, 100: 5, 2000: 13, 82_247: 43, 1_000_000: 100} {
		if got := stats.Blocks(n); got != want {
			t.Errorf("Blocks(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestBlockLength(t *testing.T) {
	growing := make([]float64, 400)
	for i := range growing {
		growing[i] = float64(i)
	}
	for name, tc := range map[string]struct {
		x        []float64
		from, to int
	}{
		"none":                 {nil, 0, 0},
		"too few":              {make([]float64, 19), 0, 0},
		"constant":             {make([]float64, 2000), 13, 13},
		"independent":          {sample(2000, 1), 13, 16},
		"never in equilibrium": {growing, 20, 20},
		"NaN":                  {append(sample(1999, 1), nan), 13, 13},
		"alternating":          {balanced(1000), 10, 50},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stats.BlockLength(tc.x); got < tc.from || got > tc.to {
				t.Errorf("BlockLength = %d, want %d to %d", got, tc.from, tc.to)
			}
		})
	}
}

// How long values depend on each other does not rest on where their zero is, nor on their unit.
func TestBlockLengthOfOtherUnits(t *testing.T) {
	for _, phi := range []float64{0, 0.5, 0.9} {
		x := autoregressive(400, phi, 1)
		want := stats.BlockLength(x)
		for name, change := range map[string]func(float64) float64{
			"shifted up":     func(v float64) float64 { return v + 100 },
			"shifted down":   func(v float64) float64 { return v - 100 },
			"in other units": func(v float64) float64 { return 1024 * v },
		} {
			y := make([]float64, len(x))
			for i, v := range x {
				y[i] = change(v)
			}
			if got := stats.BlockLength(y); got != want {
				t.Errorf("%s, correlated by %v: blocks of %d, want %d", name, phi, got, want)
			}
		}
	}
}

// In the mean, the length chosen is the best one by the true spectrum.
func TestBlockLengthOfCorrelatedSeries(t *testing.T) {
	const n, times = 5000, 16
	for _, phi := range []float64{0.5, 0.9} {
		ratio := 2 * phi / (1 - phi*phi)
		best := math.Cbrt(1.5*ratio*ratio) * math.Cbrt(n)
		var mean float64
		for seed := range uint64(times) {
			mean += float64(stats.BlockLength(autoregressive(n, phi, seed))) / times
		}
		if mean < 0.85*best || mean > 1.15*best {
			t.Errorf("correlation %v: length %v in the mean, want %v", phi, mean, best)
		}
	}
}

func TestCompareWithin(t *testing.T) {
	const n = 2000
	a, b := make([]float64, n), make([]float64, n)
	x, y := sample(n, 6), sample(n, 7)
	for i := range a {
		a[i], b[i] = 90+10*x[i], 100+10*y[i]
	}
	got, err := stats.CompareWithin(a, b, 1, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if got.Method != stats.MethodBlocks || got.N != n || got.Block != 1 || got.Values != nil || !math.IsNaN(got.Wilcoxon) ||
		got.Change != got.RatioOfMeans || math.Abs(got.Change+0.1) > 0.01 || got.Wins < 1300 || got.Equal || got.Degenerate ||
		got.T.Known() || got.BCa.Known() || got.Unpaired.Known() || got.Interval() != got.Expanded {
		t.Errorf("got %+v", got)
	}
	// Independent jobs: the interval is that of the delta method.
	half := 1.96 * math.Sqrt(10*10*(1/(100.*100)+0.9*0.9/(100*100))/n)
	if math.Abs(got.Percentile.Width()/2/half-1) > 0.08 || math.Abs(got.Percentile.Low+half-got.Change) > 0.1*half {
		t.Errorf("interval %v of %v, want ± %v", got.Percentile, got.Change, half)
	}
	// With few blocks the level is wider: by Student's quantile of 19 degrees of freedom for 20 blocks.
	few, err := stats.CompareWithin(a, b, n/20, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if wider := few.Expanded.Width() / few.Percentile.Width(); math.Abs(wider-math.Sqrt(20./19)*2.093/1.96) > 0.03 {
		t.Errorf("with 20 blocks: expanded %v, percentile %v", few.Expanded, few.Percentile)
	}
	chosen, err := stats.CompareWithin(a, b, 0, 0.95)
	if err != nil || chosen.Block < stats.Blocks(n) || chosen.Block > n/20 {
		t.Errorf("chose %d, %v", chosen.Block, err)
	}
}

// Of jobs that repeat with the period of the blocks every resample has the same mean, and half a block more has not.
func TestBlocksAreCircular(t *testing.T) {
	period := []float64{1, 5, 2, 0, 7}
	repeated := func(n int) []float64 {
		var x []float64
		for i := range n {
			x = append(x, period[i%len(period)])
		}
		return x
	}
	ones := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = 1
		}
		return x
	}
	for _, tc := range []struct {
		n, block   int
		degenerate bool
	}{{100, 5, true}, {200, 10, true}, {100, 4, false}, {1002, 5, false}} {
		got, err := stats.CompareWithin(repeated(tc.n), ones(tc.n), tc.block, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if got.Degenerate != tc.degenerate || !got.Percentile.Contains(got.Change) && !tc.degenerate {
			t.Errorf("%d jobs in blocks of %d: %+v", tc.n, tc.block, got)
		}
		if tc.degenerate {
			same(t, stats.Interval{Low: 2, High: 2}, got.Percentile)
		}
	}
	// The rest of two jobs varies by itself: a resample of 1002 jobs differs by those two.
	got, err := stats.CompareWithin(repeated(1002), ones(1002), 5, 0.95)
	if err != nil || got.Percentile.Width() > 0.05 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// One job in a thousand is a thousand times as long and is the first: of 20 blocks of 50, each holds it with a chance of 0.05,
// most of them around the end. The binomial distribution is 0 at 2.5 % and 3 at 97.5 %.
func TestBlocksGoAroundTheEnd(t *testing.T) {
	const n = 1000
	a, b := make([]float64, n), make([]float64, n)
	for i := range a {
		a[i], b[i] = 1, 1
	}
	a[0] = 1 + n
	got, err := stats.CompareWithin(a, b, 50, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	same(t, 1.0, got.Change)
	same(t, stats.Interval{Low: 0, High: 3}, got.Percentile)
}

// Where most jobs of b are zero, many resamples of it are, too.
func TestCompareWithinMostlyZero(t *testing.T) {
	a, b := sampleOf(100), make([]float64, 100)
	b[50] = 1
	got, err := stats.CompareWithin(a, b, 1, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if !(got.Percentile.Low > 10 && got.Percentile.Low < got.Change) || got.Percentile.High != inf || got.Degenerate {
		t.Errorf("got %+v", got)
	}
	got, err = stats.CompareWithin(b, b, 1, 0.95)
	if err != nil || got.Percentile.Low != 0 || got.Percentile.High != inf {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The length of block follows what the schedulers do not share: what they share is no part of the change.
func TestCompareWithinChoosesByTheDifference(t *testing.T) {
	const n = 2000
	queue, noise := autoregressive(n, 0.95, 8), sample(n, 9)
	a, b, c := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range a {
		a[i], b[i], c[i] = 200+20*queue[i]+noise[i], 100+10*queue[i], 100
	}
	shared, err := stats.CompareWithin(a, b, 0, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := stats.CompareWithin(a, c, 0, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if shared.Block > 20 || alone.Block < 50 {
		t.Errorf("blocks of %d where the queue is shared, %d where it is not", shared.Block, alone.Block)
	}
	if alone.Percentile.Width() < 10*shared.Percentile.Width() {
		t.Errorf("intervals %v where the queue is shared, %v where it is not", shared.Percentile, alone.Percentile)
	}
	// The other way round, with the same blocks, is the inverse but for which draw a quantile is.
	back, err := stats.CompareWithin(b, a, shared.Block, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if off := math.Abs(1/(1+back.Percentile.High) - 1 - shared.Percentile.Low); off > 0.02*shared.Percentile.Width() {
		t.Errorf("there %v, back %v", shared.Percentile, back.Percentile)
	}
}

func TestCompareWithinFewAndOdd(t *testing.T) {
	few := []float64{1, 2, 3}
	zeros := make([]float64, 40)
	for name, tc := range map[string]struct {
		a, b   []float64
		change float64
		equal  bool
		known  bool
	}{
		"none":          {nil, nil, nan, false, false},
		"few":           {scaled(few, 2), few, 1, false, false},
		"all zero":      {zeros, zeros, nan, false, false},
		"base zero":     {sampleOf(40), zeros, nan, false, false},
		"other zero":    {zeros, sampleOf(40), nan, false, false},
		"equal":         {sampleOf(40), sampleOf(40), 0, true, true},
		"twenty":        {scaled(sampleOf(20), 0.5), sampleOf(20), -0.5, false, true},
		"a rest of one": {scaled(sampleOf(41), 0.5), sampleOf(41), -0.5, false, true},
		"nineteen":      {scaled(sampleOf(19), 0.5), sampleOf(19), -0.5, false, false},
		"zeros in both": {append([]float64{0}, sampleOf(39)...), append([]float64{0}, sampleOf(39)...), 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := stats.CompareWithin(tc.a, tc.b, 0, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			same(t, tc.change, got.Change)
			same(t, tc.change, got.RatioOfMeans)
			same(t, tc.known, got.Percentile.Known())
			same(t, tc.known, got.Expanded.Known())
			same(t, tc.known, got.Degenerate) // all of these are proportional
			same(t, tc.equal, got.Equal)
			if tc.equal {
				same(t, len(tc.a), got.Ties)
			}
		})
	}
}

// sampleOf is n values between 1 and 3.
func sampleOf(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = 2 + math.Sin(float64(i))
	}
	return x
}

func TestCompareWithinRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		a     []float64
		block int
		want  string
	}{
		"negative":        {append(sampleOf(99), -1), 0, "compare: a[99] is -1: want a value that is at least 0 and finite"},
		"NaN":             {append(sampleOf(99), nan), 0, "compare: a[99] is NaN: want a value that is at least 0 and finite"},
		"too long":        {sampleOf(100), 6, "compare: blocks of 6 jobs: 100 jobs allow 1 to 5, for at least 20 blocks; 0 chooses"},
		"negative length": {sampleOf(100), -1, "compare: blocks of -1 jobs: 100 jobs allow 1 to 5, for at least 20 blocks; 0 chooses"},
		"longest":         {sampleOf(100), 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := stats.CompareWithin(tc.a, sampleOf(100), tc.block, 0.95)
			if got := ""; err != nil && err.Error() != tc.want || err == nil && tc.want != got {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// The rule as White, Cobb and Spratt write it.
func TestMSER5ByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(0, 40).Draw(t, "v")) }), 0, 120).Draw(t, "x")
		var means []float64
		for i := 0; i+5 <= len(x); i += 5 {
			means = append(means, (x[i]+x[i+1]+x[i+2]+x[i+3]+x[i+4])/5)
		}
		at := func(first int) float64 {
			rest := means[first:]
			var mean, squares float64
			for _, v := range rest {
				mean += v / float64(len(rest))
			}
			for _, v := range rest {
				squares += (v - mean) * (v - mean)
			}
			return squares / float64(len(rest)) / float64(len(rest))
		}
		got := stats.MSER5(x)
		if len(means) < 4 {
			if got != 0 {
				t.Errorf("MSER5 = %d of %d batches", got, len(means))
			}
			return
		}
		if got%5 != 0 || got/5 > len(means)/2 {
			t.Fatalf("MSER5 = %d of %d batches", got, len(means))
		}
		for first := range len(means)/2 + 1 {
			if e := at(first); e < at(got/5)-1e-9 || first < got/5 && e <= at(got/5)-1e-12 {
				t.Errorf("MSER5 = %d (%v), but %d has %v", got, at(got/5), 5*first, e)
			}
		}
	})
}

func TestMSER5(t *testing.T) {
	warm := slices.Concat(slices.Repeat([]float64{50}, 100), slices.Repeat([]float64{1, 2, 3, 4, 5}, 80)) // 20 % of warm-up
	growing := make([]float64, 200)
	for i := range growing {
		growing[i] = float64(i)
	}
	for name, tc := range map[string]struct {
		x    []float64
		want int
	}{
		"warm-up, then steady":            {warm, 100},
		"steady from the beginning":       {slices.Repeat([]float64{1, 2, 3, 4, 5}, 20), 0},
		"constant":                        {slices.Repeat([]float64{0.1}, 100), 0},
		"never steady":                    {growing, 100},
		"few":                             {warm[80:129], 20},
		"just enough":                     {warm[80:130], 20},
		"three batches":                   {[]float64{9, 9, 9, 9, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 0},
		"four batches":                    {[]float64{9, 9, 9, 9, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 5},
		"none":                            {nil, 0},
		"NaN":                             {append(slices.Clone(warm), nan), 0},
		"what is left over of a batch":    {append(slices.Clone(warm), 1e6), 100},
		"large values that differ little": {slices.Concat(slices.Repeat([]float64{1e9 + 9}, 50), slices.Repeat([]float64{1e9, 1e9 + 1}, 100)), 50},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, tc.want, stats.MSER5(tc.x))
		})
	}
}

// The remissions under 6-mercaptopurine of Freireich and others (1963), as in every textbook of survival analysis.
func TestKaplanMeier(t *testing.T) {
	weeks := []float64{10, 7, 32, 23, 22, 6, 16, 34, 32, 25, 11, 20, 19, 6, 17, 35, 6, 13, 9, 6, 10, nan}
	ended := []bool{
		true, true, false, true, true, true, true, false, false, false, false, false, false, true, false, false, true, true, false, false, false, true,
	}
	got := stats.KaplanMeier(weeks, ended)
	want := []stats.Step{
		{At: 6, AtRisk: 21, Ended: 3, Survival: 6. / 7},
		{At: 7, AtRisk: 17, Ended: 1, Survival: 6. / 7 * 16 / 17},
		{At: 10, AtRisk: 15, Ended: 1, Survival: 6. / 7 * 16 / 17 * 14 / 15},
		{At: 13, AtRisk: 12, Ended: 1, Survival: 6. / 7 * 16 / 17 * 14 / 15 * 11 / 12},
		{At: 16, AtRisk: 11, Ended: 1, Survival: 6. / 7 * 16 / 17 * 14 / 15 * 11 / 12 * 10 / 11},
		{At: 22, AtRisk: 7, Ended: 1, Survival: 6. / 7 * 16 / 17 * 14 / 15 * 11 / 12 * 10 / 11 * 6 / 7},
		{At: 23, AtRisk: 6, Ended: 1, Survival: 6. / 7 * 16 / 17 * 14 / 15 * 11 / 12 * 10 / 11 * 6 / 7 * 5 / 6},
	}
	same(t, want, got)
	if math.Abs(got[6].Survival-0.448) > 0.0005 {
		t.Errorf("survival at 23 weeks %v, published 0.448", got[6].Survival)
	}
	if got := stats.KaplanMeier([]float64{1, 2}, []bool{false, false}); got != nil {
		t.Errorf("nobody ended: %v", got)
	}
	same(t, []stats.Step{{At: 1, AtRisk: 1, Ended: 1}}, stats.KaplanMeier([]float64{1, 2}, []bool{true}))
}

func TestRestrictedMean(t *testing.T) {
	for name, tc := range map[string]struct {
		t       []float64
		ended   []bool
		horizon float64
		want    float64
	}{
		"all end":                       {[]float64{3, 1, 2}, []bool{true, true, true}, 10, 2},
		"all end, no horizon":           {[]float64{3, 1, 2}, []bool{true, true, true}, inf, 2},
		"the horizon cuts":              {[]float64{3, 1, 2}, []bool{true, true, true}, 1.5, 4. / 3},
		"the horizon is an end":         {[]float64{3, 1, 2}, []bool{true, true, true}, 2, 5. / 3},
		"one unfinished":                {[]float64{1, 4}, []bool{true, false}, 4, 2.5},
		"one unfinished before":         {[]float64{4, 2, 1}, []bool{true, false, true}, 4, 1 + 3*2./3},
		"watched less than the horizon": {[]float64{1, 2}, []bool{true, false}, 4, 2.5},
		"nobody ended":                  {[]float64{1, 2}, []bool{false, false}, 4, 4},
		"unfinished, no horizon":        {[]float64{1, 2}, []bool{true, false}, inf, inf},
		"none":                          {nil, nil, 4, nan},
		"no ends":                       {[]float64{1}, nil, 4, nan},
		"no horizon":                    {[]float64{1}, []bool{true}, 0, nan},
		"NaN as horizon":                {[]float64{1}, []bool{true}, nan, nan},
		"negative":                      {[]float64{-1}, []bool{true}, 4, nan},
		"NaN":                           {[]float64{1, nan}, []bool{true, true}, 4, nan},
		"zero":                          {[]float64{0, 2}, []bool{true, true}, 4, 1},
	} {
		t.Run(name, func(t *testing.T) { same(t, tc.want, stats.RestrictedMean(tc.t, tc.ended, tc.horizon)) })
	}
}
