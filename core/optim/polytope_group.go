package optim

import (
	"math"
	"slices"
)

// Groups maps the jobs of a polytope to the rows of a smaller one that stands for it.
type Groups struct {
	// Of is the row of each job, Members are the jobs of each row in rising order.
	Of      []int
	Members [][]int // jobs of each row, ascending
}

// Group puts jobs with equal devices, equal rates and equal values in every one of the alike lists (floors, slopes,
// whatever else the problem knows of a job) in one row, in the order in which the first of each appears. The problems
// of this package are convex and do not distinguish such jobs, so the small problem has the same optimum. Lists and
// rates must have a value for each job and type; what lies beyond is ignored.
func (p Polytope) Group(alike ...[]float64) (Polytope, Groups) {
	small := Polytope{Capacity: p.Capacity}
	groups := Groups{Of: make([]int, len(p.Jobs))}
	rows := map[uint64][]int{}
	same := func(a, b int) bool {
		return p.Jobs[a].Devices == p.Jobs[b].Devices && slices.Equal(p.Jobs[a].Rates, p.Jobs[b].Rates) &&
			!slices.ContainsFunc(alike, func(list []float64) bool { return list[a] != list[b] })
	}
	for i, job := range p.Jobs {
		key := fold(14695981039346656037, job.Devices)
		for _, a := range job.Rates {
			key = fold(key, a)
		}
		for _, list := range alike {
			key = fold(key, list[i])
		}
		row := -1
		for _, k := range rows[key] {
			if same(groups.Members[k][0], i) {
				row = k
				break
			}
		}
		if row < 0 {
			row = len(small.Jobs)
			rows[key] = append(rows[key], row)
			small.Jobs = append(small.Jobs, ShareJob{Devices: job.Devices, Rates: job.Rates})
			groups.Members = append(groups.Members, nil)
		}
		groups.Of[i] = row
		groups.Members[row] = append(groups.Members[row], i)
		small.Jobs[row].Count += max(job.Count, 1)
	}
	return small, groups
}

// fold mixes a value into an FNV-1a hash; the two zeros are one value.
func fold(hash uint64, v float64) uint64 {
	bits := math.Float64bits(v + 0)
	for range 8 {
		hash = (hash ^ bits&0xff) * 1099511628211
		bits >>= 8
	}
	return hash
}

// Pick is the value of each row's first member.
func (g Groups) Pick(perJob []float64) []float64 {
	perRow := make([]float64, len(g.Members))
	for k, members := range g.Members {
		perRow[k] = perJob[members[0]]
	}
	return perRow
}

// Spread gives each job its row's shares. Jobs of one row share one slice: treat it as read-only.
func (g Groups) Spread(rows [][]float64) [][]float64 {
	perJob := make([][]float64, len(g.Of))
	for i, k := range g.Of {
		perJob[i] = rows[k]
	}
	return perJob
}
