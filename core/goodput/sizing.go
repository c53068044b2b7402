package goodput

import "math"

// Ramp is the rule by which Pollux sizes a cluster: more nodes while a device still yields more than a part of what an ideal one
// does, and then so many that a device yields about another, smaller part.
//
// Source: Pollux (OSDI'21), section 5.4.1, with parts of 2/3 and 1/2; it says nothing of fewer nodes.
type Ramp struct {
	Up float64 // part of the ideal above which the cluster grows
	To float64 // part at which it is aimed
}

// Nodes is how many nodes, from least to most, the rule wants where there are n. Part is what a device of so many nodes yields over
// what an ideal one does. Of sizes that are as near, the smaller one, or the larger one where devices yield more than is aimed at.
// O(most - least).
func (r Ramp) Nodes(n, least, most int, part func(nodes int) float64) int {
	if part(n) <= r.Up {
		return n
	}
	best, distance := n, math.Inf(1)
	for m := least; m <= most; m++ {
		is := part(m)
		if d := math.Abs(is - r.To); d < distance || d == distance && is > r.To {
			best, distance = m, d
		}
	}
	return max(best, n)
}

// Marginal is how many nodes, from least to most, are the cheapest for work that goes at a rate by nodes, when an hour of those who
// wait for it is worth the hours of so many nodes. At each moment of a run this is the choice that costs the least together with the
// time, for what is left of the work is the same whatever is chosen.
//
// Hours are the node hours of an hour by nodes, which is their number where all cost the same.
//
// A change from n nodes pauses the work: the seconds of the pause are charged against those for which the size stands; 0 for both
// charges nothing. Of sizes that cost the same, the smaller one. O(most - least).
func Marginal(n, least, most int, valueOfTime, pause, stands float64, hours, rate func(nodes int) float64) int {
	best, cost := n, math.Inf(1)
	for m := least; m <= most; m++ {
		g := rate(m)
		if !(g > 0) {
			continue
		}
		c := (hours(m) + valueOfTime) / g
		if m != n && stands > 0 {
			c *= 1 + pause/stands
		}
		if c < cost {
			best, cost = m, c
		}
	}
	return best
}
