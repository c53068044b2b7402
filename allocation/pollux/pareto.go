package pollux

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// pareto ranks seatings by two objectives, as NSGA-II does. Its buffers serve all generations.
type pareto struct {
	tops []objectives // by front: of its member with the highest utility
	ends []int        // by front: where it ends among the members
}

type objectives struct{ fitness, utility float64 }

// best brings so many members to the start: front by front, and of the front that is cut the loneliest.
func (p *pareto) best(members []*member, count int, r *rand.Rand) int {
	p.sort(members)
	from := 0
	for _, end := range p.ends {
		front := members[from:end]
		crowd(front)
		if end >= count {
			if end > count {
				r.Shuffle(len(front), func(a, b int) { front[a], front[b] = front[b], front[a] })
				slices.SortStableFunc(front, func(a, b *member) int { return cmp.Compare(b.distance, a.distance) })
			}
			break
		}
		from = end
	}
	return count
}

// sort orders members by front, and inside one by descending fitness.
func (p *pareto) sort(members []*member) {
	slices.SortStableFunc(members, func(a, b *member) int {
		return cmp.Or(cmp.Compare(b.fitness, a.fitness), cmp.Compare(b.utility, a.utility))
	})
	p.tops, p.ends = p.tops[:0], p.ends[:0]
	for _, m := range members {
		m.front, _ = slices.BinarySearchFunc(p.tops, m, func(top objectives, m *member) int {
			if top.utility > m.utility || top.utility == m.utility && top.fitness > m.fitness {
				return -1 // somebody on that front dominates it
			}
			return 1
		})
		if m.front == len(p.tops) {
			p.tops, p.ends = append(p.tops, objectives{}), append(p.ends, 0)
		}
		if top := &p.tops[m.front]; p.ends[m.front] == 0 || m.utility > top.utility {
			*top = objectives{m.fitness, m.utility}
		}
		p.ends[m.front]++
	}
	for i := 1; i < len(p.ends); i++ {
		p.ends[i] += p.ends[i-1]
	}
	slices.SortStableFunc(members, func(a, b *member) int { return a.front - b.front })
}

// crowd measures how far the members of a front, by descending fitness, are from their neighbours. Those alike another
// one have no distance at all, the ends an infinite one.
func crowd(front []*member) {
	last := len(front) - 1
	widest := objectives{front[0].fitness - front[last].fitness, front[last].utility - front[0].utility}
	before := 0
	for i, m := range front {
		m.distance = 0
		if i > 0 && m.fitness == front[i-1].fitness && m.utility == front[i-1].utility {
			continue
		}
		after := i + 1
		for after <= last && front[after].fitness == m.fitness && front[after].utility == m.utility {
			after++
		}
		if i == 0 || after > last {
			m.distance = math.Inf(1)
		} else {
			m.distance = (front[before].fitness-front[after].fitness)/widest.fitness + (front[after].utility-front[before].utility)/widest.utility
		}
		before = i
	}
}
