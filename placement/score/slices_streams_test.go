package score_test

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/quartet-sched/quartet/core/mig"
	"github.com/quartet-sched/quartet/placement/score"
)

// mixes are how often tasks ask for a slice of each profile, of a hundred.
var mixes = []struct {
	name string
	of   [5]int // 1g, 2g, 3g, 4g, 7g
}{
	{"even", [5]int{20, 20, 20, 20, 20}},
	{"small", [5]int{50, 25, 15, 5, 5}},
	{"large", [5]int{10, 15, 25, 25, 25}},
	{"halves", [5]int{30, 20, 30, 20, 0}},
	{"extremes", [5]int{60, 0, 0, 0, 40}},
	{"openb", [5]int{1, 4, 5, 14, 76}}, // of its tasks with one device or a part of one, the smallest profile with as much compute
}

// drawMix draws a task of a mix.
func drawMix(r *rand.Rand, of [5]int) score.Task {
	k := r.IntN(100)
	for p, n := range of {
		if k < n {
			return sliced(1000, mig.Profile(p), 1)
		}
		k -= n
	}
	return sliced(1000, mig.SevenG, 1)
}

const (
	streamNodes   = 16
	streamDevices = 8 // of a node
	streamMilli   = streamNodes * streamDevices * score.Whole
)

func newStream(scorer func(*score.Typical) score.Scorer, of [5]int) *score.Placer {
	nodes := make([]score.Node, streamNodes)
	for i := range nodes {
		nodes[i] = layouts(1<<40, make([]mig.Layout, streamDevices)...)
	}
	var seen []score.Task
	for p, n := range of {
		for range n {
			seen = append(seen, sliced(1000, mig.Profile(p), 1))
		}
	}
	return score.NewPlacer(nodes, scorer(score.NewTypical(seen, nil, score.OfAll)))
}

// arrivalsOnly lets tasks of a mix arrive until they asked for 1.3 times the memory slices. It returns the part that is not allocated.
func arrivalsOnly(scorer func(*score.Typical) score.Scorer, of [5]int, seed uint64) float64 {
	r, p := rand.New(rand.NewPCG(seed, 1)), newStream(scorer, of) //nolint:gosec // an experiment
	used := 0
	for asked := 0; asked < streamMilli*13/10; {
		task := drawMix(r, of)
		asked += int(task.Milli)
		if seat, found := p.Choose(&task); found {
			p.Take(&task, seat)
			used += int(task.Milli)
		}
	}
	return 1 - float64(used)/streamMilli
}

// departure is a task that leaves at a moment.
type departure struct {
	at float64
	held
}

type departures []departure

func (d departures) Len() int           { return len(d) }
func (d departures) Less(a, b int) bool { return d[a].at < d[b].at }
func (d departures) Swap(a, b int)      { d[a], d[b] = d[b], d[a] }
func (d *departures) Push(x any)        { *d = append(*d, x.(departure)) }
func (d *departures) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

// arrivalsAndDepartures lets tasks of a mix arrive at random moments that ask for so many times the memory slices, and leave after times of mean 1; one that fits
// nowhere is lost. It returns which part of what was asked for is lost, and which part is not allocated, after a warm-up.
func arrivalsAndDepartures(scorer func(*score.Typical) score.Scorer, of [5]int, load float64, seed uint64) (lost, idle float64) {
	const warm, end = 5.0, 15.0
	r, p := rand.New(rand.NewPCG(seed, 2)), newStream(scorer, of) //nolint:gosec // an experiment
	mean := 0.0
	for profile, n := range of {
		mean += float64(n) / 100 * float64(sliced(0, mig.Profile(profile), 1).Milli)
	}
	var leaving departures
	now, used, asked, refused, area := 0.0, 0.0, 0.0, 0.0, 0.0
	pass := func(to float64) {
		area += used * max(0, min(to, end)-max(now, warm))
		now = to
	}
	for {
		next := now + r.ExpFloat64()*mean/(load*streamMilli)
		task, life := drawMix(r, of), r.ExpFloat64() // whether it fits or not: the stream is the same for every scorer
		for len(leaving) > 0 && leaving[0].at <= next {
			d := heap.Pop(&leaving).(departure)
			pass(d.at)
			p.ReleaseSlices(&d.task, d.seat, d.starts)
			used -= float64(d.task.Milli)
		}
		if pass(next); next >= end {
			return refused / asked, 1 - area/(end-warm)/streamMilli
		}
		seat, found := p.Choose(&task)
		if next >= warm {
			asked += float64(task.Milli)
			if !found {
				refused += float64(task.Milli)
			}
		}
		if found {
			starts := p.Starts(nil, &task, seat)
			p.Take(&task, seat)
			used += float64(task.Milli)
			heap.Push(&leaving, departure{next + life, held{task, seat, starts}})
		}
	}
}

// change is the mean of differences, and half of its interval of 95 %.
func change(differences []float64) (mean, half float64) {
	var sum, squares float64
	for _, d := range differences {
		sum, squares = sum+d, squares+d*d
	}
	n := float64(len(differences))
	const t19 = 2.093 // of Student's t with 19 degrees of freedom
	return sum / n, t19 * math.Sqrt(max(0, squares-sum*sum/n)/(n-1)/n)
}

// Over mixes of profiles, FGD on slices leaves less idle than best fit when tasks only come, and loses less of what is asked for when they come and go; so does
// ours. Not so on each of them: with -v the test prints the figures of docs/results/sharing.md.
func TestFGDOnSlicesBeatsBestFit(t *testing.T) {
	const seeds = 20
	results := map[string]func(scorer func(*score.Typical) score.Scorer, of [5]int, seed uint64) float64{
		"idle": arrivalsOnly,
		"lost at load 0.9": func(scorer func(*score.Typical) score.Scorer, of [5]int, seed uint64) float64 {
			lost, _ := arrivalsAndDepartures(scorer, of, 0.9, seed)
			return lost
		},
		"lost at load 1.1": func(scorer func(*score.Typical) score.Scorer, of [5]int, seed uint64) float64 {
			lost, _ := arrivalsAndDepartures(scorer, of, 1.1, seed)
			return lost
		},
	}
	for name, result := range results {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := map[string][]float64{"fgd": make([]float64, seeds), "fragmentation": make([]float64, seeds)}
			for _, mix := range mixes {
				row, mean := "", 0.0
				differences := map[string][]float64{}
				for seed := range seeds {
					other := result(scorers["best fit"], mix.of, uint64(seed)) //nolint:gosec // few
					mean += other / seeds
					for by := range all {
						d := result(scorers[by], mix.of, uint64(seed)) - other //nolint:gosec // few
						differences[by] = append(differences[by], d)
						all[by][seed] += d / float64(len(mixes))
					}
				}
				for _, by := range []string{"fgd", "fragmentation"} {
					d, half := change(differences[by])
					row += fmt.Sprintf(", %s %+.2f ± %.2f", by, 100*d, 100*half)
				}
				t.Logf("%s: best fit %.2f %%%s", mix.name, 100*mean, row)
			}
			for _, by := range []string{"fgd", "fragmentation"} {
				d, half := change(all[by])
				t.Logf("mean: %s %+.2f ± %.2f", by, 100*d, 100*half)
				if d+half >= 0 {
					t.Errorf("%s is no better than best fit: %+.2f ± %.2f points", by, 100*d, 100*half)
				}
			}
		})
	}
}
