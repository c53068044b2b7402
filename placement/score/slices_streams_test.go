package score_test

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/quartet-sched/quartet/core"
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
	const warm, end = 5.0, 25.0
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

// paired is the mean over seeds of two results, of their difference, and half of its interval of 95 %.
func paired(seeds int, result func(seed uint64) (a, b float64)) (a, b, difference, half float64) {
	var sum, squares float64
	for seed := range seeds {
		x, y := result(uint64(seed)) //nolint:gosec // few
		a, b = a+x/float64(seeds), b+y/float64(seeds)
		sum, squares = sum+x-y, squares+(x-y)*(x-y)
	}
	n := float64(seeds)
	const t19 = 2.093 // of Student's t with 19 degrees of freedom
	return a, b, sum / n, t19 * math.Sqrt(max(0, squares-sum*sum/n)/(n-1)/n)
}

// FGD on slices leaves less idle than best fit, and loses less of what is asked for. The figures of docs/results/sharing.md: -v.
func TestFGDOnSlicesBeatsBestFit(t *testing.T) {
	const seeds = 20
	for _, by := range []string{"fgd", "fragmentation", "packing", "dot product", "clustering"} {
		for _, mix := range mixes {
			row := fmt.Sprintf("%s, %s:", by, mix.name)
			a, b, d, half := paired(seeds, func(seed uint64) (float64, float64) {
				return arrivalsOnly(scorers[by], mix.of, seed), arrivalsOnly(scorers["best fit"], mix.of, seed)
			})
			row += fmt.Sprintf(" idle %.2f against %.2f %% (%.2f ± %.2f);", 100*a, 100*b, 100*d, 100*half)
			for _, load := range []float64{0.9, 1.1, 1.3} {
				a, b, d, half := paired(seeds, func(seed uint64) (float64, float64) {
					lost, _ := arrivalsAndDepartures(scorers[by], mix.of, load, seed)
					other, _ := arrivalsAndDepartures(scorers["best fit"], mix.of, load, seed)
					return lost, other
				})
				row += fmt.Sprintf(" load %.1f lost %.2f against %.2f %% (%.2f ± %.2f);", load, 100*a, 100*b, 100*d, 100*half)
			}
			t.Log(row)
		}
	}
	_ = core.NoSlice
}
