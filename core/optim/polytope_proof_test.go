package optim

import "math"

// Excess is by how much the shares break the polytope: the largest of the relative overload of a type, of
// the time beyond 1 of a row, and of the negative shares. It is 0 or below the rounding for shares inside.
// Shares of another shape are infinitely far out.
func (p Polytope) Excess(x [][]float64) float64 {
	if len(x) != len(p.Jobs) {
		return math.Inf(1)
	}
	used := make([]float64, len(p.Capacity))
	var worst float64
	for i, job := range p.Jobs {
		if len(x[i]) != len(p.Capacity) {
			return math.Inf(1)
		}
		var time float64
		for j, share := range x[i] {
			if share > 0 && job.Rates[j] == 0 {
				worst = max(worst, share)
			}
			worst = max(worst, -share)
			time += share
			used[j] += job.members() * job.Devices * share
		}
		worst = max(worst, time-1)
	}
	for j, u := range used {
		if w := p.Capacity[j]; u > w {
			worst = max(worst, (u-w)/max(w, 1e-300))
		}
	}
	return worst
}

// Budget is what the cluster is worth at the prices per device.
func (p Polytope) Budget(prices []float64) float64 { return p.budget(prices) }

// Cost is the least that the jobs pay, at the prices per device, for every member of row i to progress at demand[i]; it
// is infinite where a job cannot. Prices >= 0 with Cost above Budget prove that no shares reach the demand.
func (p Polytope) Cost(prices, demand []float64) float64 {
	var sum float64
	for i, job := range p.Jobs {
		sum += job.members() * job.cost(p.Capacity, prices, demand[i])
	}
	return sum
}
