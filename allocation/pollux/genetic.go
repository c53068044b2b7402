package pollux

import (
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
)

// The published rates of the genetic search.
const (
	crossoverRate = 0.9
	resetRate     = 0.1 // of rows, to what the job holds
	thinRate      = 0.1 // of rows
	dropRate      = 0.1 // of the nodes of a thinned row
	matings       = 100 // tries to fill a generation with new seatings
	widestRow     = 16  // nodes of a job
)

// geneticSearch is NSGA-II over seatings (Pollux's artifact, on the algorithm of Deb et al., 2002). Its population lives
// from round to round.
type geneticSearch struct {
	rand       *rand.Rand
	size       int
	avoid      bool   // jobs that span nodes do not meet
	jobs       []*job // by rank, so that earlier ones win conflicts
	ids        []core.JobID
	population []*member // the Pareto front first
	front      int       // members on it
	offspring  []*member
	spare      []*member
	variation  variation
	pareto     pareto
	draws      []int32 // what is left of the permutation that parents are drawn by
	known      map[uint64]*member
}

// genetic finds the plan as published: the fittest seating on the Pareto front of the last generation.
func (p *allocator) genetic() {
	p.plan.reset(len(p.jobs))
	if len(p.jobs) == 0 {
		return
	}
	g := p.evolution[p.accelerator]
	if g == nil {
		g = new(geneticSearch)
		p.evolution[p.accelerator] = g
	}
	g.rand, g.size, g.avoid = p.rand, p.config.Population, p.config.InterferenceAvoiding
	g.seed(p)
	for range p.config.Generations - 1 {
		g.breed()
		g.survive()
	}
	best := g.population[0]
	for _, m := range g.population[1:g.front] {
		if m.fitness > best.fitness {
			best = m
		}
	}
	for rank, j := range g.jobs {
		p.plan.rows[j.index] = best.row(rank)
	}
	p.plan.cost = best.cost
}

// seed makes the first population: the front of the round before, without the jobs that are gone, or else what the
// jobs hold.
func (g *geneticSearch) seed(p *allocator) {
	rankOf := make(map[core.JobID]int, len(g.ids))
	for rank, id := range g.ids {
		rankOf[id] = rank
	}
	g.jobs = append(g.jobs[:0], make([]*job, len(p.jobs))...)
	g.ids = append(g.ids[:0], make([]core.JobID, len(p.jobs))...)
	for i := range p.jobs {
		j := &p.jobs[i]
		g.jobs[j.rank], g.ids[j.rank] = j, j.id
	}
	g.variation.begin(p, g)
	g.known = make(map[uint64]*member, 2*g.size)
	g.offspring = g.offspring[:0]
	for _, old := range g.population[:g.front] {
		g.variation.draft.clear()
		for _, id := range g.ids {
			var row []share
			if rank, here := rankOf[id]; here {
				row = old.row(rank)
			}
			g.variation.draft.add(row)
		}
		g.admit(false)
	}
	if g.front == 0 {
		g.variation.draft.clear()
		for _, j := range g.jobs {
			g.variation.draft.add(j.row)
		}
		g.admit(false)
	}
	g.spare = append(g.spare, g.population...)
	g.population = g.population[:0]
	g.survive()
}

// breed fills the offspring with seatings that are new.
func (g *geneticSearch) breed() {
	clear(g.known)
	for _, m := range g.population {
		g.known[m.hash] = m
	}
	g.offspring = g.offspring[:0]
	for range matings {
		missing := g.size - len(g.offspring)
		if missing == 0 {
			return
		}
		g.draws = g.draws[:0]
		for range (missing + 1) / 2 {
			a, b, cut := g.tournament(), g.tournament(), 0
			if g.rand.Float64() < crossoverRate {
				cut = g.rand.IntN(len(g.jobs))
			}
			g.variation.mutate(b, a, cut)
			g.admit(true)
			if len(g.offspring) < g.size {
				g.variation.mutate(a, b, cut)
				g.admit(true)
			}
		}
	}
}

// admit repairs the draft, lets it grow if told so, and takes it in if there is none like it.
func (g *geneticSearch) admit(grow bool) {
	var m *member
	if last := len(g.spare) - 1; last >= 0 {
		m, g.spare = g.spare[last], g.spare[:last]
	} else {
		m = &member{}
	}
	g.variation.finish(m, grow)
	if twin := g.known[m.hash]; twin != nil && twin.same(m) {
		g.spare = append(g.spare, m)
		return
	}
	g.known[m.hash] = m
	g.offspring = append(g.offspring, m)
}

// tournament is the better of two members drawn, by dominance, then by how lonely it is, then by lot.
func (g *geneticSearch) tournament() *member {
	a, b := g.draw(), g.draw()
	switch {
	case a.dominates(b):
		return a
	case b.dominates(a):
		return b
	case a.distance != b.distance:
		if a.distance > b.distance {
			return a
		}
		return b
	case g.rand.Uint64()&1 == 0:
		return a
	default:
		return b
	}
}

// draw takes members in the order of one permutation after the other.
func (g *geneticSearch) draw() *member {
	if len(g.draws) == 0 {
		for i := range g.population {
			g.draws = append(g.draws, int32(i))
		}
		for i := len(g.draws) - 1; i > 0; i-- {
			k := g.rand.IntN(i + 1)
			g.draws[i], g.draws[k] = g.draws[k], g.draws[i]
		}
	}
	last := len(g.draws) - 1
	i := g.draws[last]
	g.draws = g.draws[:last]
	return g.population[i]
}

// survive leaves the best of the population and its offspring.
func (g *geneticSearch) survive() {
	all := append(g.population, g.offspring...)
	g.offspring = g.offspring[:0]
	kept := g.pareto.best(all, min(g.size, len(all)), g.rand)
	g.spare = append(g.spare, all[kept:]...)
	g.population = all[:kept]
	g.front = 0
	for g.front < kept && g.population[g.front].front == 0 {
		g.front++
	}
}
