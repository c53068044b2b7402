package twin

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

func near(got, want, within float64) bool {
	return got == want || math.Abs(got-want) <= within*math.Max(math.Abs(got), math.Abs(want))
}

func lengthsOf(list ...watched) *lengths {
	slices.SortFunc(list, compareWatched)
	return newLengths(list, nil)
}

func TestLengthsOfWhatWasWatched(t *testing.T) {
	ten, twenty, forty := watched{10, true}, watched{20, true}, watched{40, true}
	cases := map[string]struct {
		of   []watched
		x    float64
		want float64 // survival
		s    float64
		then float64 // quantile
	}{
		"before all":                    {[]watched{ten, twenty}, 5, 1, 0.75, 10},
		"at the first":                  {[]watched{ten, twenty}, 10, 0.5, 0.5, 10},
		"at the last":                   {[]watched{ten, twenty}, 20, 0, 0.25, 20},
		"one went on beyond the first":  {[]watched{ten, {15, false}, twenty, forty}, 20, 0.75 * 0.5, 0.74, 20},
		"as much as others ended with":  {[]watched{ten, {10, false}, twenty}, 10, 2.0 / 3, 0.6, 20},
		"the longest went on":           {[]watched{ten, {40, false}}, 80, 0.0625, 0.25, 40},
		"nobody knows more than a part": {[]watched{{40, false}}, 20, 1, 0.25, 80},
		"many ended together":           {[]watched{ten, ten, ten, twenty}, 10, 0.25, 0.2, 20},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := lengthsOf(tc.of...)
			if got := l.survival(tc.x); !near(got, tc.want, 1e-9) {
				t.Errorf("survival(%v) = %v, want %v", tc.x, got, tc.want)
			}
			if got := l.quantile(tc.s); !near(got, tc.then, 1e-9) {
				t.Errorf("quantile(%v) = %v, want %v", tc.s, got, tc.then)
			}
		})
	}
}

func TestWhatIsLeft(t *testing.T) {
	exact := opinion{logNormal{100, 0}, 1, 0, 1}
	cases := map[string]struct {
		of   left
		want float64
	}{
		"all of it":               {left{exact}, 100},
		"the rest":                {left{{logNormal{100, 0}, 1, 30, 1}}, 70},
		"in a unit of its own":    {left{{logNormal{100, 0}, 1, 30, 5}}, 350},
		"it did more than all":    {left{{logNormal{100, 0}, 1, 150, 1}}, 150},
		"others know better":      {left{{logNormal{100, 0}, 10, 150, 1}, {lengthsOf(watched{400, true}), 1, 150, 1}}, 250},
		"the median of a prior":   {left{{logNormal{100, 2}, 1, 0, 1}}, 100},
		"the longer of two kinds": {left{{lengthsOf(watched{10, true}, watched{90, true}, watched{95, true}), 1, 0, 1}}, 90},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.median(); !near(got, tc.want, 1e-5) {
				t.Errorf("median %v, want %v", got, tc.want)
			}
			r, more, n := core.NewRand(1, name), 0, 2000
			for range n {
				work := tc.of.draw(r)
				if !(work > 0) || math.IsInf(work, 1) {
					t.Fatalf("drew %v", work)
				}
				if work > tc.want*1.000001 {
					more++
				}
			}
			if more > n*55/100 {
				t.Errorf("%d of %d draws are above the median", more, n)
			}
		})
	}
}

// The median of what is drawn is the median, and what was done has no share in it.
func TestDrawsAreWhatIsExpected(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l left
		amounts := rapid.Float64Range(0.1, 1e6)
		for range rapid.IntRange(1, 4).Draw(t, "opinions") {
			o := opinion{weight: rapid.Float64Range(0.1, 20).Draw(t, "weight"), done: rapid.OneOf(rapid.Just(0.0), amounts).Draw(t, "done"), unit: rapid.Float64Range(0.01, 100).Draw(t, "unit")}
			if rapid.Bool().Draw(t, "prior") {
				o.distribution = logNormal{amounts.Draw(t, "median"), rapid.Float64Range(0, 3).Draw(t, "sigma")}
			} else {
				var list []watched
				for range rapid.IntRange(1, 20).Draw(t, "watched") {
					list = append(list, watched{amounts.Draw(t, "amount"), rapid.Bool().Draw(t, "all")})
				}
				o.distribution = lengthsOf(list...)
			}
			l = append(l, o)
		}
		r, median, below, above := core.NewRand(rapid.Uint64().Draw(t, "seed"), "draws"), l.median(), 0, 0
		const n = 400
		for range n {
			switch work := l.draw(r); {
			case !(work > 0) || math.IsInf(work, 1):
				t.Fatalf("drew %v", work)
			case work < median*0.99:
				below++
			case work > median*1.01:
				above++
			}
		}
		if most := n/2 + 70; below > most || above > most { // 7 standard deviations
			t.Fatalf("of %d draws %d are below the median %v and %d above", n, below, median, above)
		}
	})
}

// Before anything ended the prior is as it was said; then it is of the scale of what ended, the more the more did.
func TestPriorLearns(t *testing.T) {
	of := func(n int, seconds float64) (list []ending) {
		for range n {
			list = append(list, ending{seconds: seconds, all: true})
		}
		return list
	}
	prior := logNormal{math.Exp(8), 2}
	for name, tc := range map[string]struct {
		ended []ending
		want  logNormal
	}{
		"nothing ended":     {nil, prior},
		"some go on":        {[]ending{{seconds: 5}, {all: true}}, prior},
		"one of its median": {of(1, math.Exp(8)), logNormal{math.Exp(8), math.Sqrt(2)}},
		"one far off":       {of(1, 1), logNormal{math.Exp(4), math.Sqrt((4. + 16 + 16) / 2)}},
		"three far off":     {of(3, 1), logNormal{math.Exp(2), math.Sqrt((4. + 36 + 3*4) / 4)}},
		"two that differ":   {append(of(1, math.Exp(7)), of(1, math.Exp(9))...), logNormal{math.Exp(8), math.Sqrt((4. + 1 + 1) / 3)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := prior.learn(tc.ended); !near(got.median, tc.want.median, 1e-9) || !near(got.sigma, tc.want.sigma, 1e-9) {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

// From jobs that end and others that go on, how far off declarations are is found, though the short ones end first.
func TestDeclarationsAreCorrected(t *testing.T) {
	for name, sigma := range map[string]float64{"by a factor of 2": 0.7, "by a factor of 4": 1.4, "exact": 0} {
		t.Run(name, func(t *testing.T) {
			r := core.NewRand(1, name)
			s := newSurvey()
			for range 600 {
				real, seen := 100*math.Exp(sigma*r.NormFloat64()), 400*r.Float64()
				e := ending{work: min(real, seen), declared: 100, all: real <= seen}
				s.add(&e)
			}
			s.sort()
			e := &estimates{survey: s, made: map[group]*lengths{}}
			l := e.declared(nil, &core.JobSpec{TotalWork: 50}, 0)
			var logs []float64
			for range 4000 {
				logs = append(logs, math.Log(l.draw(r)/50))
			}
			slices.Sort(logs)
			for _, q := range []struct{ at, z float64 }{{0.1, -1.2816}, {0.5, 0}, {0.9, 1.2816}} {
				if got, want := logs[int(q.at*float64(len(logs)))], q.z*sigma; math.Abs(got-want) > 0.15 {
					t.Errorf("quantile %v of the logarithm is %.3f, want %.3f", q.at, got, want)
				}
			}
		})
	}
}

// Where declarations are wrong at random and jobs are alike, those that declared much or little are like the others, and it is found though the short ones end first.
func TestDeclarationsOfAlikeJobs(t *testing.T) {
	const sigmaWork, sigmaDeclared, most = 0.3, 1.0, 150.0
	r := core.NewRand(1, "alike")
	s := newSurvey()
	for range 2000 {
		work := 100 * math.Exp(sigmaWork*r.NormFloat64())
		e := ending{work: min(work, most), declared: work * math.Exp(sigmaDeclared*r.NormFloat64()), all: work <= most}
		s.add(&e)
	}
	s.sort()
	for _, random := range []func(group) *rand.Rand{nil, func(g group) *rand.Rand { return core.NewRand(2, g.String()) }} {
		e := &estimates{survey: s, made: map[group]*lengths{}, random: random}
		for _, declared := range []float64{20, 100, 500} {
			want := 100 * math.Pow(declared/100, sigmaWork*sigmaWork/(sigmaWork*sigmaWork+sigmaDeclared*sigmaDeclared))
			if got := e.declared(nil, &core.JobSpec{TotalWork: declared}, 0).median(); math.Abs(math.Log(got/want)) > 0.15 {
				t.Errorf("%v declared are believed to be %.1f, want %.1f", declared, got, want)
			}
		}
	}
}

func TestArrivalsToCome(t *testing.T) {
	at := func(seconds ...float64) (s submissions) {
		for _, x := range seconds {
			s.add(&core.JobSpec{SubmitSeconds: x}, math.NaN(), 100)
		}
		return s
	}
	even := at(0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
	for name, tc := range map[string]struct {
		of         submissions
		now, until float64
		want       []float64
		like       []int
	}{
		"nothing came":                {submissions{}, 100, 130, nil, nil},
		"all came together":           {at(0, 0, 0), 100, 130, nil, nil},
		"one in 10 s":                 {even, 100, 130, []float64{110, 120, 130}, []int{1, 2, 3}},
		"pairs":                       {at(0, 0, 50, 50), 100, 210, []float64{200, 200}, []int{2, 3}},
		"a little late":               {even, 120, 140, []float64{132}, []int{1}},
		"silent for longer than that": {even, 160, 290, []float64{220, 280}, []int{1, 2}}, // one in 60 s
		"silent for ten times longer": {even, 700, 2000, []float64{1300, 1900}, []int{1, 2}},
		"no more for long":            {at(0, 1, 2), 100, 130, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			like, got := tc.of.coming(tc.now, tc.until, 100, nil)
			if !slices.Equal(got, tc.want) || !slices.Equal(like, tc.like) {
				t.Errorf("come at %v like %v, want %v like %v", got, like, tc.want, tc.like)
			}
		})
	}
}

// The longer nothing came, the fewer are drawn; a silence that is not longer than others tells nothing.
func TestDrawnArrivalsCease(t *testing.T) {
	var s submissions
	for i := range 20 {
		s.add(&core.JobSpec{SubmitSeconds: float64(10 * i)}, math.NaN(), 20) // the last one at 190 s
	}
	mean := func(now float64) float64 {
		total, draws := 0, 400
		for i := range draws {
			_, at := s.coming(now, now+1000, mostArrivals, core.NewRand(uint64(i), "arrivals"))
			total += len(at)
		}
		return float64(total) / float64(draws)
	}
	for name, tc := range map[string]struct{ now, low, high float64 }{
		"just now":    {191, 95, 115},
		"two gaps":    {210, 75, 105},
		"eight gaps":  {270, 13, 45}, // one in 80 s or in 14
		"twenty gaps": {390, 3, 9},
		"for a day":   {86400, 0, 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mean(tc.now); got < tc.low || got > tc.high {
				t.Errorf("%v arrivals in 1000 s, want %v to %v", got, tc.low, tc.high)
			}
		})
	}
}

// As many come as came, but for the draws in which it is believed that they cease.
func TestDrawnArrivalsAreAsOften(t *testing.T) {
	var s submissions
	for i := range 20 {
		s.add(&core.JobSpec{SubmitSeconds: float64(10 * i)}, math.NaN(), 20)
	}
	total, draws := 0, 400
	for i := range draws {
		_, at := s.coming(200, 1200, mostArrivals, core.NewRand(uint64(i), "arrivals"))
		if total += len(at); !slices.IsSorted(at) || len(at) > 0 && at[0] <= 200 {
			t.Fatalf("arrivals at %v", at)
		}
	}
	if mean := float64(total) / float64(draws); mean < 85 || mean > 105 { // 95 and 19/18 of it, and less in one of eight
		t.Errorf("%v arrivals in a time in which some 95 to 100 are to come", mean)
	}
}

func TestNodesFailAsTheyDid(t *testing.T) {
	v := &core.View{Cluster: &core.Cluster{Nodes: make([]core.Node, 10)}}
	for i := range v.Cluster.Nodes {
		v.Cluster.Nodes[i].ID = core.NodeID(i)
	}
	var m machines
	m.observe(v, nil)
	if got := m.changes(v, 1e6, core.NewRand(1, "none")); got != nil {
		t.Fatalf("without failures %v are to come", got)
	}
	change := func(node core.NodeID, to core.Health, at float64) {
		v.NowSeconds, v.Cluster.Nodes[node].Health = at, to
		m.observe(v, []core.Event{{Kind: core.NodeChanged, Node: node, Health: to, AtSeconds: at}})
	}
	for i := range 20 { // one of ten nodes fails every 1,000 s, and is down for 100 s
		change(core.NodeID(i%10), core.Down, float64(1000*i))
		change(core.NodeID(i%10), core.Ready, float64(1000*i+100))
	}
	failures, seconds := 0, 100_000.0
	for draw := range 100 {
		down := map[core.NodeID]float64{}
		last := v.NowSeconds
		for _, c := range m.changes(v, v.NowSeconds+seconds, core.NewRand(uint64(draw), "machines")) {
			if c.AtSeconds < last {
				t.Fatal("changes are not in order")
			}
			last = c.AtSeconds
			since, isDown := down[c.Node]
			switch {
			case c.To == core.Down && !isDown:
				down[c.Node] = c.AtSeconds
				failures++
			case c.To == core.Ready && isDown && near(c.AtSeconds-since, 100, 1e-6):
				delete(down, c.Node)
			default:
				t.Fatalf("node %d becomes %v at %v", c.Node, c.To, c.AtSeconds)
			}
		}
	}
	if mean := float64(failures) / 100; mean < 90 || mean > 115 {
		t.Errorf("%v failures in 100,000 s in which 100 are to come", mean)
	}
	change(3, core.Down, v.NowSeconds+40)
	v.NowSeconds += 30
	if got := m.changes(v, math.Inf(1), nil); len(got) != 1 || got[0] != (NodeChange{AtSeconds: v.NowSeconds + 70, Node: 3, To: core.Ready}) {
		t.Errorf("a node that is down for 30 s of 100 s: %v", got)
	}
}
