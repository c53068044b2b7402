package market

import (
	"container/heap"
	"math/rand/v2"
)

// equal is the category of equal sizes: workers are dealt out one by one in the order of the queue.
func (p *problem) equal() []int {
	return p.deal(func(s *seats, sizes []int) {
		for dealt := true; dealt; {
			dealt = false
			for i := range p.agents {
				if sizes[i] < p.agents[i].most && s.add(i, 1) {
					sizes[i]++
					dealt = true
				}
			}
		}
	})
}

// base is the category of marginal gains: every worker goes to the job it saves most time, communication counted, as
// long as it saves any. A job's workers are taken to be as fast as the mean of those it can use.
func (p *problem) base() []int {
	return p.deal(func(s *seats, sizes []int) {
		queue := make(gains, 0, len(p.agents))
		for i := range p.agents {
			queue = append(queue, gain{i, p.agents[i].gain(sizes[i])})
		}
		heap.Init(&queue)
		for len(queue) > 0 && queue[0].saves > 0 {
			i := queue[0].agent
			if !s.add(i, 1) { // nor later: room only shrinks
				heap.Pop(&queue)
				continue
			}
			sizes[i]++
			queue[0].saves = p.agents[i].gain(sizes[i])
			heap.Fix(&queue, 0)
		}
	})
}

// deal gives every agent its least, and the rest as told.
func (p *problem) deal(rest func(*seats, []int)) []int {
	s := p.newSeats()
	sizes := make([]int, len(p.agents))
	for i := range p.agents {
		sizes[i] = p.agents[i].least
		s.add(i, sizes[i])
	}
	rest(s, sizes)
	return sizes
}

// estimate is the time at a size, on mean workers.
func (a *agent) estimate(size int) float64 {
	return a.seconds(a.mean*float64(size), size)
}

// gain is what one more mean worker saves.
func (a *agent) gain(size int) float64 {
	if size >= a.most {
		return 0
	}
	return a.estimate(size) - a.estimate(size+1)
}

type gain struct {
	agent int
	saves float64
}

// gains is a heap, largest first, ties in the order of the queue.
type gains []gain

func (g gains) Len() int { return len(g) }
func (g gains) Less(i, j int) bool {
	return g[i].saves > g[j].saves || g[i].saves == g[j].saves && g[i].agent < g[j].agent
}
func (g gains) Swap(i, j int) { g[i], g[j] = g[j], g[i] }
func (g *gains) Push(x any)   { *g = append(*g, x.(gain)) }
func (g *gains) Pop() any {
	last := (*g)[len(*g)-1]
	*g = (*g)[:len(*g)-1]
	return last
}

// A sampler draws categories uniformly among those between the agents' limits, workers idle included.
type sampler struct {
	agents []agent
	total  int
	// ways[i][r] is proportional to the number of categories of agents i and on with at most r workers. Rows that grow
	// beyond floats have a scale of their own.
	ways [][]float64
}

func (p *problem) newSampler() *sampler {
	s := &sampler{agents: p.agents, total: p.total, ways: make([][]float64, len(p.agents)+1)}
	s.ways[len(p.agents)] = make([]float64, p.total+1)
	for r := range s.ways[len(p.agents)] {
		s.ways[len(p.agents)][r] = 1
	}
	for i := len(p.agents) - 1; i >= 0; i-- {
		s.ways[i] = make([]float64, p.total+1)
		a, next := &p.agents[i], s.ways[i+1]
		sum := 0.0
		for r := a.least; r <= p.total; r++ { // of next[r-most..r-least]
			sum += next[r-a.least]
			if r > a.most {
				sum -= next[r-a.most-1]
			}
			s.ways[i][r] = max(sum, 0)
		}
		if most := s.ways[i][p.total]; most > 1e200 { // rows never fall, and below that are whole as long as they can be
			for r := range s.ways[i] {
				s.ways[i][r] /= most
			}
		}
	}
	return s
}

// draw fills sizes with a category.
func (s *sampler) draw(rng *rand.Rand, sizes []int) {
	room := s.total
	for i := range s.agents {
		a, next := &s.agents[i], s.ways[i+1]
		top := min(a.most, room)
		sum := 0.0
		for size := a.least; size <= top; size++ {
			sum += next[room-size]
		}
		sizes[i] = a.least
		for at := rng.Float64() * sum; sizes[i] < top; sizes[i]++ {
			if at -= next[room-sizes[i]]; at < 0 {
				break
			}
		}
		room -= sizes[i]
	}
}

// near changes a category by a few moves of one worker, from or to idling as well: half of the
// times by one, a quarter by two, and so on.
func (p *problem) near(rng *rand.Rand, sizes []int) {
	idle := p.total
	for _, size := range sizes {
		idle -= size
	}
	for {
		from, to := rng.IntN(len(sizes)+1), rng.IntN(len(sizes)+1)
		gives := from == len(sizes) && idle > 0 || from < len(sizes) && sizes[from] > p.agents[from].least
		takes := to == len(sizes) || sizes[to] < p.agents[to].most
		if gives && takes && from != to {
			if from < len(sizes) {
				sizes[from]--
			} else {
				idle--
			}
			if to < len(sizes) {
				sizes[to]++
			} else {
				idle++
			}
		}
		if rng.IntN(2) == 0 {
			return
		}
	}
}
