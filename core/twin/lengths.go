package twin

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// distribution is how much there is to do in all, in a unit of its own.
type distribution interface {
	survival(x float64) float64 // probability of more than x, 1 at 0
	quantile(s float64) float64 // amount that is exceeded with probability s, 0 < s < 1
}

// watched is an amount that somebody did: all that there was to do, or only the first part of it.
type watched struct {
	amount float64
	all    bool
}

func compareWatched(a, b watched) int {
	if c := cmp.Compare(a.amount, b.amount); c != 0 || a.all == b.all {
		return c
	}
	if a.all {
		return -1
	}
	return 1
}

// lengths are estimated from what was watched, by the product limit up to the longest of which the end is known. From there on it is as if one more had been
// watched, who knows nothing; and beyond the longest of all a quarter of those that are left do twice as much, for with half of them the work of a queue would have no mean.
//
// Sources: Kaplan and Meier, Nonparametric estimation from incomplete observations, JASA 53 (1958); beyond, Hjort, Nonparametric Bayes estimators based on beta
// processes, Annals of Statistics 18 (1990).
type lengths struct {
	at, after []float64 // amounts that were all, ascending, and the probability of more
	tail      []stretch
	weight    float64 // amounts that are known to be all
}

// stretch begins at an amount that the given part has more than, from which on survival falls with a power.
type stretch struct{ from, survive, power float64 }

// newLengths takes the amounts in order, each with its weight; nil for 1. O(n).
func newLengths(sorted []watched, weights []float64) *lengths {
	l := &lengths{}
	left := float64(len(sorted))
	if weights != nil {
		left = 0
		for _, w := range weights {
			left += w
		}
	}
	survive, beyond := 1.0, 0
	for i, w := range sorted {
		weight := weightOf(weights, i)
		if w.all {
			if beyond = i + 1; beyond == len(sorted) {
				survive = 0 // exactly
			} else {
				survive *= max(1-weight/left, 0)
			}
			l.weight++
			if n := len(l.at); n > 0 && l.at[n-1] == w.amount {
				l.after[n-1] = survive
			} else {
				l.at, l.after = append(l.at, w.amount), append(l.after, survive)
			}
		}
		left = max(left-weight, math.SmallestNonzeroFloat64)
	}
	l.goOn(sorted, weights, beyond, survive)
	return l
}

func weightOf(weights []float64, i int) float64 {
	if weights == nil {
		return 1
	}
	return weights[i]
}

// goOn estimates the tail from those that were watched for longer than any of which the end is known.
func (l *lengths) goOn(sorted []watched, weights []float64, first int, survive float64) {
	left := 0.0
	for i := first; i < len(sorted); i++ {
		left += weightOf(weights, i)
	}
	from := sorted[max(first-1, 0)].amount
	for i := first; i < len(sorted); i++ {
		power := 1 / (max(left, 0) + 1)
		l.tail = append(l.tail, stretch{from, survive, power})
		survive *= math.Pow(from/sorted[i].amount, power)
		from = sorted[i].amount
		left -= weightOf(weights, i)
	}
	l.tail = append(l.tail, stretch{from, survive, 2})
}

func (l *lengths) survival(x float64) float64 {
	if x > l.tail[0].from {
		i, _ := slices.BinarySearchFunc(l.tail, x, func(s stretch, x float64) int { return cmp.Compare(s.from, x) })
		s := &l.tail[i-1]
		return s.survive * math.Pow(s.from/x, s.power)
	}
	if i := upTo(l.at, x); i > 0 {
		return l.after[i-1]
	}
	return 1
}

func (l *lengths) quantile(s float64) float64 {
	i, _ := slices.BinarySearchFunc(l.after, s, func(after, s float64) int { return cmp.Compare(s, after) })
	if i < len(l.at) {
		return l.at[i]
	}
	i, _ = slices.BinarySearchFunc(l.tail, s, func(of stretch, s float64) int { return cmp.Compare(s, of.survive) })
	of := &l.tail[max(i-1, 0)]
	return of.from * math.Pow(max(of.survive/s, 1), 1/of.power)
}

// upTo is how many of ascending values are not above x.
func upTo(values []float64, x float64) int {
	i, _ := slices.BinarySearchFunc(values, x, func(v, x float64) int {
		if v > x {
			return 1
		}
		return -1
	})
	return i
}

// logNormal has a median, and a standard deviation of its logarithm. With 0 it is exactly the median.
type logNormal struct{ median, sigma float64 }

func (l logNormal) survival(x float64) float64 {
	switch {
	case x <= 0:
		return 1
	case l.sigma == 0 && x < l.median:
		return 1
	case l.sigma == 0:
		return 0
	}
	return math.Erfc(math.Log(x/l.median)/(l.sigma*math.Sqrt2)) / 2
}

func (l logNormal) quantile(s float64) float64 {
	if l.sigma == 0 {
		return l.median
	}
	z := math.Sqrt2 * math.Erfcinv(2*s)
	if s < 1e-9 { // its inverse is not exact there
		low, high := 5.0, 39.0
		for range 50 {
			if z = (low + high) / 2; math.Erfc(z/math.Sqrt2)/2 > s {
				low = z
			} else {
				high = z
			}
		}
	}
	return l.median * math.Exp(l.sigma*z)
}

// learn is the prior of how long jobs are after some ended, as if one had ended before them that was off its median by its sigma. That the next job may be like none of those is
// believed as long as runs last; that it is of the scale of the prior, all the less the more of them were of another: many that wait would have one of them otherwise.
func (l logNormal) learn(ended []ending) logNormal {
	n, sum := 1.0, math.Log(l.median)
	for i := range ended {
		if e := &ended[i]; e.all && e.seconds > 0 {
			n, sum = n+1, sum+math.Log(e.seconds)
		}
	}
	mean := sum / n
	off := func(log float64) float64 { return (log - mean) * (log - mean) }
	squares := l.sigma*l.sigma + off(math.Log(l.median))
	for i := range ended {
		if e := &ended[i]; e.all && e.seconds > 0 {
			squares += off(math.Log(e.seconds))
		}
	}
	return logNormal{math.Exp(mean), math.Sqrt(squares / n)}
}

// opinion is what one distribution says of a job that did so much of it. Unit is what one of its amounts is worth in the work of the job.
type opinion struct {
	distribution
	weight, done, unit float64
}

// left is the mixture of opinions on what a job has left to do, given what it did. They are weighed by how far each foresaw that the job comes so far.
type left []opinion

// weights are those of the opinions, and their sum; 0 where none of them foresaw it.
func (l left) weights(into []float64) (sum float64) {
	for i := range l {
		into[i] = l[i].weight * l[i].survival(l[i].done)
		sum += into[i]
	}
	return sum
}

// asMuchAgain is what is left of a job of which nobody foresaw that it comes so far.
func (l left) asMuchAgain() float64 {
	o := &l[len(l)-1]
	return max(o.done*o.unit, least)
}

// least is the work that a job has left at least, as a part of what it did: it has not ended.
const least = 1e-9

// draw is work that may be left; positive and finite. O(opinions × log n).
func (l left) draw(r *rand.Rand) float64 {
	var room [8]float64
	weights := room[:len(l)]
	sum := l.weights(weights)
	at, u := r.Float64()*sum, max(r.Float64(), 1e-12)
	if sum < math.SmallestNonzeroFloat64*1e16 {
		return l.asMuchAgain()
	}
	i := 0
	for i < len(l)-1 && (at >= weights[i] || weights[i] == 0) {
		at -= weights[i]
		i++
	}
	o := &l[i]
	return l.positive((o.quantile(u*o.survival(o.done)) - o.done) * o.unit)
}

// median is the work that is left with probability 1/2, to within a millionth. O(opinions × log n).
func (l left) median() float64 {
	var room [8]float64
	sum := l.weights(room[:len(l)])
	if sum < math.SmallestNonzeroFloat64*1e16 {
		return l.asMuchAgain()
	}
	more := func(work float64) bool {
		s := 0.0
		for i := range l {
			s += l[i].weight * l[i].survival(l[i].done+work/l[i].unit)
		}
		return s > sum/2
	}
	low, high := 0.0, 0.0
	for i := range l {
		if room[i] > 0 {
			high = max(high, (l[i].quantile(l[i].survival(l[i].done)/2)-l[i].done)*l[i].unit)
		}
	}
	for high = l.positive(high); more(high) && high < 1e300; high *= 2 {
		low = high
	}
	for range 200 {
		middle := high / 1024
		if low > 0 {
			middle = math.Sqrt(low) * math.Sqrt(high)
		}
		if more(middle) {
			low = middle
		} else {
			high = middle
		}
		if high-low <= 1e-6*high {
			break
		}
	}
	return l.positive(high)
}

// positive keeps what is left of a job above nothing, and finite.
func (l left) positive(work float64) float64 {
	for i := range l {
		work = max(work, least*(1+l[i].done)*l[i].unit)
	}
	return min(work, 1e300)
}
