package twin

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"pgregory.net/rapid"
)

// stream is a run of jobs that come one after another, and are forecast every so many seconds by somebody who believes that the logarithms of their lengths are normal.
type stream struct {
	sigma float64                                // that is believed
	error func(r *rand.Rand, at float64) float64 // of the logarithm of the length of a job that comes at a part 0..1 of the run
}

const (
	streamJobs  = 2300
	streamGap   = 120.0
	streamEvery = 1800.0
	streamDraws = 16
)

// above is a draw of a normal variable that is more than a bound.
func above(r *rand.Rand, bound float64) float64 {
	if bound < 5 {
		for range 1000 {
			if x := r.NormFloat64(); x > bound {
				return x
			}
		}
	}
	return bound + r.ExpFloat64()/max(bound, 1)
}

// judged is how the bands of a stream held.
type judged struct {
	all, allInside  int
	shown, inside   int // since something is known
	lasting, lasted int // of jobs that take longer than most; those that held
	coverage        Coverage
	jobs            int
}

// run has the ends of the jobs of a stream forecast.
func (s *stream) run(seed uint64, check func(now float64, j *JobForecast)) judged {
	type job struct {
		id           core.JobID
		come, median float64
		end          float64
		bands        []Band
	}
	r := core.NewRand(seed, "stream")
	f := NewForecaster(seed)
	v := &core.View{IntervalSeconds: 60}
	var there []*job
	var g judged
	come, next := 0, 0.0
	for now := 0.0; come < streamJobs || len(there) > 0; now += 60 {
		v.NowSeconds = now
		for ; come < streamJobs && next <= now; next += streamGap * r.ExpFloat64() {
			median := 1800 * math.Exp(1.2*r.NormFloat64())
			j := &job{id: core.JobID(come), come: now, median: median}
			j.end = now + 1 + median*math.Exp(s.error(r, float64(come)/streamJobs))
			there = append(there, j)
			come++
		}
		report := &core.Report{View: v}
		var left []*job
		for _, j := range there {
			if j.end > now {
				left = append(left, j)
				continue
			}
			report.Ended = append(report.Ended, &core.Job{JobSpec: &core.JobSpec{ID: j.id}, State: core.Completed, FinishSeconds: j.end})
			g.jobs++
			for _, b := range j.bands {
				g.all++
				if b.Holds(j.end) {
					g.allInside++
				}
				if g.jobs < 200 {
					continue // while little is known
				}
				g.shown++
				if b.Holds(j.end) {
					g.inside++
				}
				if j.end-j.come > 7200 {
					g.lasting++
					if b.Holds(j.end) {
						g.lasted++
					}
				}
			}
		}
		there = left
		_ = f.ObserveRound(report)
		if math.Mod(now, streamEvery) != 0 || len(there) == 0 {
			continue
		}
		forecast := &Forecast{AtSeconds: now}
		for _, j := range there {
			var draws [streamDraws]float64
			least := math.Log(max(now-j.come, 1)/j.median) / s.sigma
			for k := range draws {
				draws[k] = max(j.come+j.median*math.Exp(s.sigma*above(r, least)), now)
			}
			forecast.Jobs = append(forecast.Jobs, JobForecast{ID: j.id, Running: true, rawEnd: bandOf(draws[:])})
		}
		f.show(forecast, v)
		for i, j := range there {
			j.bands = append(j.bands, forecast.Jobs[i].End)
			if check != nil {
				check(now, &forecast.Jobs[i])
			}
		}
	}
	g.coverage = f.Calibration().Ends
	return g
}

func normal(sigma float64) func(*rand.Rand, float64) float64 {
	return func(r *rand.Rand, _ float64) float64 { return sigma * r.NormFloat64() }
}

var streams = map[string]struct {
	stream
	least, most float64
}{
	"well specified": {stream{0.5, normal(0.5)}, 0.75, 0.85},
	// Nine of ten jobs lie between a quarter and four times of what they declare, and the draws know nothing of it.
	"misdeclared": {stream{0.2, normal(math.Log(4) / 1.645)}, 0.70, 0.85},
	"timid":       {stream{1, normal(0.3)}, 0.70, 0.85},
	"biased":      {stream{0.5, func(r *rand.Rand, _ float64) float64 { return 0.7 + 0.5*r.NormFloat64() }}, 0.70, 0.85},
	"drifting": {stream{0.5, func(r *rand.Rand, part float64) float64 {
		return math.Log(4)*(part-0.5) + 0.5*r.NormFloat64()
	}}, 0.70, 0.85},
	"changing at once": {stream{0.5, func(r *rand.Rand, part float64) float64 {
		if part < 0.5 {
			return 0.2 * r.NormFloat64()
		}
		return 0.7 + 0.8*r.NormFloat64()
	}}, 0.70, 0.85},
	"heavy tails": {stream{0.5, func(r *rand.Rand, _ float64) float64 { // Student's t with two degrees of freedom, but no job is more than 16 times as long
		x, y := r.NormFloat64(), r.NormFloat64()
		return min(0.4*r.NormFloat64()/math.Sqrt((x*x+y*y)/2), math.Log(16))
	}}, 0.70, 0.85},
}

// Bands hold as often as they say, whatever is wrong with the draws: over all forecasts, and over those of jobs that last.
func TestCoverage(t *testing.T) {
	for name, tc := range streams {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				g := tc.run(seed, nil)
				part := float64(g.inside) / float64(g.shown)
				t.Logf("seed %d: %d jobs, %.3f of %d bands hold, %.3f of %d of jobs that last; told %.3f of %d, %.3f of %d are, error %.3f", seed, g.jobs, part, g.shown,
					float64(g.lasted)/float64(g.lasting), g.lasting, g.coverage.Ratio(), g.coverage.Resolved, float64(g.allInside)/float64(g.all), g.all, g.coverage.ErrorRatio)
				if g.jobs < 2000 || part < tc.least || part > tc.most {
					t.Errorf("seed %d: %.3f of the bands of %d jobs hold, want %v to %v", seed, part, g.jobs, tc.least, tc.most)
				}
				if told, really := g.coverage.Ratio(), float64(g.allInside)/float64(g.all); math.Abs(told-really) > 0.05 {
					t.Errorf("seed %d: %.3f of the bands are said to hold, %.3f do", seed, told, really)
				}
			}
		})
	}
}

// A band has an order, is never in the past, and never a single moment.
func TestBandsAreNeverCertain(t *testing.T) {
	for name, tc := range streams {
		t.Run(name, func(t *testing.T) {
			tc.run(1, func(now float64, j *JobForecast) {
				if b := j.End; !(now <= b.Low && b.Low <= b.Median && b.Median <= b.High && b.High-b.Low >= 30) {
					t.Fatalf("at %v s: %+v", now, b)
				}
			})
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		moment := rapid.OneOf(rapid.Float64Range(100, 1e9), rapid.Just(math.Inf(1)), rapid.Just(100.0))
		draws := rapid.SliceOfN(moment, 1, 40).Draw(t, "draws")
		reach := rapid.Float64Range(0, 50).Draw(t, "reach")
		floor := rapid.Float64Range(1, 600).Draw(t, "floor")
		raw := bandOf(draws)
		b := stretched(raw, reach, 100, floor)
		if !(100 <= b.Low && b.Low <= b.Median && b.Median <= b.High) {
			t.Fatalf("%+v of %+v", b, raw)
		}
		if !math.IsInf(b.Median, 1) && b.High-b.Low < floor/2 {
			t.Fatalf("%+v of %+v is certain", b, raw)
		}
	})
}

// No band is narrower than a round; where rounds are held at events, too, an interval of hours makes none of hours.
func TestLeastBand(t *testing.T) {
	for name, tc := range map[string]struct {
		interval float64
		onEvents bool
		want     float64
	}{
		"a round":             {300, false, 300},
		"rounds of an hour":   {3600, false, 3600},
		"at events alone":     {0, true, 1},
		"a second and events": {1, true, 1},
		"at events, too":      {60, true, 60},
		"an hour and events":  {3600, true, 60},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leastBand(&core.View{IntervalSeconds: tc.interval, OnEvents: tc.onEvents}); got != tc.want {
				t.Errorf("%v s, want %v", got, tc.want)
			}
		})
	}
}

// A job that completes or fails ends by itself, and tells whether the forecasts of its end held; one that was cancelled or rejected tells nothing, and
// its forecasts are forgotten.
func TestEndsThatCount(t *testing.T) {
	for name, tc := range map[string]struct {
		state          core.JobState
		end            float64
		inside, missed int
	}{
		"completed within the band": {core.Completed, 500, 1, 0},
		"completed after it":        {core.Completed, 1e5, 0, 1},
		"failed within the band":    {core.Failed, 500, 1, 0},
		"cancelled":                 {core.Cancelled, 500, 0, 0},
		"rejected":                  {core.Rejected, 500, 0, 0},
		"still running":             {core.Running, 0, 0, 1}, // its band is over
	} {
		t.Run(name, func(t *testing.T) {
			f := NewForecaster(1)
			v := &core.View{IntervalSeconds: 60}
			f.show(&Forecast{Jobs: []JobForecast{{ID: 3, Running: true, rawEnd: Band{400, 500, 600}}}}, v)
			if v.NowSeconds = 1e5; tc.state.Ended() {
				_ = f.ObserveRound(&core.Report{View: v, Ended: []*core.Job{{JobSpec: &core.JobSpec{ID: 3}, State: tc.state, FinishSeconds: tc.end}}})
			}
			later := &Forecast{AtSeconds: v.NowSeconds}
			f.show(later, v)
			if got := later.Calibration.Ends; got.Inside != tc.inside || got.Resolved != tc.inside+tc.missed {
				t.Errorf("%d of %d held, want %d of %d", got.Inside, got.Resolved, tc.inside, tc.inside+tc.missed)
			}
		})
	}
}

// The score of a moment is its distance from the median in half widths of its own side, in logarithms of the time to come.
func TestScore(t *testing.T) {
	const ln2, ln4 = math.Ln2, 2 * math.Ln2
	inf := math.Inf(1)
	early, late := math.Hypot(ln2, leastHalf), math.Hypot(ln4, leastHalf)
	for name, tc := range map[string]struct {
		high, at float64
		want     float64
		known    bool
	}{
		"the median":                          {1400, 1100, 0, true},
		"half the time":                       {1400, 1050, -ln2 / early, true},
		"a quarter of it":                     {1400, 1025, -ln4 / early, true},
		"twice the time":                      {1400, 1200, ln2 / late, true},
		"four times the time":                 {1400, 1400, ln4 / late, true},
		"before the forecast":                 {1400, 900, -math.Log(10) / early, true}, // as the floor, 10 s
		"four times, of a band without end":   {inf, 1400, ln4 / math.Hypot(1, leastHalf), true},
		"a quarter, of a band without end":    {inf, 1025, -ln4 / early, true},
		"nothing is known without a median":   {-1, 1400, 0, false},
		"nothing before it, either, is known": {-1, 1010, 0, false},
	} {
		s := shown{at: 1000, floor: 10, raw: Band{1050, 1100, tc.high}}
		if tc.high < 0 {
			s.raw = Band{1050, inf, inf}
		}
		if got, known := s.score(tc.at); known != tc.known || !(math.Abs(got-tc.want) < 1e-12) {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, known, tc.want, tc.known)
		}
	}
}

// A forecast that is open counts as a miss once its band is over, for as many forecasts as it stands for.
func TestOpenForecastsThatMissed(t *testing.T) {
	s := scale{resolved: 5, inside: 3}
	for name, tc := range map[string]struct {
		now  float64
		want int
	}{
		"all bands go on":       {99, 5},
		"at the end of a band":  {100, 5},
		"after it":              {100.5, 5 + 4},
		"after another as well": {201, 5 + 4 + 2},
	} {
		o := open{now: tc.now}
		o.add([]shown{{band: Band{10, 50, 100}, weight: 4}, {band: Band{10, 50, 200}, weight: 2}, {band: Band{10, 50, math.Inf(1)}, weight: 1}})
		if got := s.coverage(o); got.Resolved != tc.want || got.Inside != 3 {
			t.Errorf("%s: %d of %d held, want 3 of %d", name, got.Inside, got.Resolved, tc.want)
		}
	}
}
