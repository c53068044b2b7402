package optim

import "slices"

// Pairing pairs vertices of a graph, each with at most one other, for the largest sum of weights: Edmonds's blossom
// algorithm (Journal of Research of the National Bureau of Standards 69B, 1965) in the primal-dual form of Galil (ACM Computing
// Surveys 18, 1986). Weights are whole numbers, so that the answer is exact; where edges tie, those of earlier vertices are
// looked at first, and the same weights give the same pairs.
//
// O(n³) time and O(n²) memory for n vertices. The zero value is ready. It holds the buffers of its calls: it is reused, by one
// goroutine at a time.
type Pairing struct {
	n    int // vertices, numbered from 0; blossoms are numbered from n
	end  int // behind the last node, a vertex or a blossom, that was used
	most int // nodes that there can be

	edges   []edge  // by two nodes: the edge between them with the least slack
	price   []int64 // of a node, twice the dual variable of a vertex
	mate    []int32 // of an outermost node: the vertex outside at the other end of its matched edge, or none
	outer   []int32 // of a node: the outermost node that holds it; of a blossom that is not in use, none
	parent  []int32 // of a labelled outermost node: the vertex that it was reached from, or none
	label   []int8
	nearest []int32   // of an outermost node: the even vertex whose edge to it has the least slack, or none
	holds   []int32   // by blossom and vertex: the node right below the blossom that holds the vertex, or none
	cycle   [][]int32 // of a blossom: its nodes around, from the one that holds its base
	seen    []int     // of an outermost node: the search for a common root that passed it last
	search  int
	queue   []int32 // even vertices; the edges of the first ones are looked at
	looked  int
	closing []edge // tight edges between even nodes of a tree; the first ones are looked at
	closed  int
	pairs   []int32

	// of SolveAlike
	alike        []int64
	cost         []float64
	costs        [][]float64
	supply, room []int
	transport    Transport
	ships        []shipment
	level        []int64 // by class
	seats        []int32 // by vertex: its partner
	seatedAs     []int32 // by vertex: its shipment, at one end of each pair; none at the other
	some         []int32 // vertices that take part
	at           []int32 // by vertex that takes part: its index among them
}

// An edge between two nodes is one between two vertices that they hold.
type edge struct {
	u, v   int32
	weight int64 // twice what was given, so that prices stay whole; 0 where there is none
}

const none = -1

const (
	free int8 = iota // not reached
	even             // reached by an even number of edges from an unmatched vertex
	odd
)

// Solve pairs n vertices; weight returns the weight of the edge between two, u < v, and is called once for each. Edges of
// weight 0 or less are not used. No weight is above 2^59. It returns the partner of each vertex, -1 where it has none, and the
// sum of the weights of the pairs. The slice belongs to the Pairing and lasts until its next call.
func (m *Pairing) Solve(n int, weight func(u, v int) int64) (mates []int32, total int64) {
	m.ships = m.ships[:0]
	m.begin(n, weight)
	return m.finish()
}

func (m *Pairing) finish() (mates []int32, total int64) {
	for m.grow() {
	}
	m.pairs = grown(m.pairs, m.n)
	for v := range m.n {
		m.pairs[v] = m.mate[v]
		if u := m.mate[v]; u > int32(v) {
			total += m.between(int32(v), u).weight / 2
		}
	}
	return m.pairs, total
}

func (m *Pairing) begin(n int, weight func(u, v int) int64) {
	m.n, m.end, m.most = n, n, n+n/2
	m.edges = grown(m.edges, m.most*m.most)
	m.holds = grown(m.holds, m.most*n)
	m.price, m.seen = grown(m.price, m.most), grown(m.seen, m.most)
	m.mate, m.outer, m.parent = grown(m.mate, m.most), grown(m.outer, m.most), grown(m.parent, m.most)
	m.nearest, m.label = grown(m.nearest, m.most), grown(m.label, m.most)
	for len(m.cycle) < m.most {
		m.cycle = append(m.cycle, nil)
	}
	highest := int64(1)
	for u := range n {
		*m.between(int32(u), int32(u)) = edge{int32(u), int32(u), 0}
		for v := u + 1; v < n; v++ {
			w := 2 * max(weight(u, v), 0)
			*m.between(int32(u), int32(v)), *m.between(int32(v), int32(u)) = edge{int32(u), int32(v), w}, edge{int32(v), int32(u), w}
			highest = max(highest, w)
		}
	}
	for x := range m.most {
		m.price[x], m.mate[x], m.outer[x], m.seen[x] = 0, none, none, 0
		if x < n {
			m.price[x], m.outer[x] = highest, int32(x)
		}
	}
	m.search = 0
}

func (m *Pairing) between(x, y int32) *edge { return &m.edges[int(x)*m.most+int(y)] }

// slack of an edge is twice how far the prices of its ends are above its weight. It means something for edges between different outermost nodes.
func (m *Pairing) slack(e *edge) int64 { return m.price[e.u] + m.price[e.v] - 2*e.weight }

// holder is the node right below a blossom that holds a vertex.
func (m *Pairing) holder(blossom, v int32) *int32 { return &m.holds[int(blossom)*m.n+int(v)] }

func (m *Pairing) outermost(x int32) bool { return m.outer[x] == x }

// grow grows alternating trees from the unmatched vertices that have a price, until there is one less of them: by a path to another one, or by
// one to a vertex without a price, which is left unmatched instead. It is false when there are none: nothing makes the matching heavier.
func (m *Pairing) grow() bool {
	m.queue, m.looked, m.closing, m.closed = m.queue[:0], 0, m.closing[:0], 0
	for x := range int32(m.end) {
		m.label[x], m.nearest[x], m.parent[x] = free, none, none
		if m.outermost(x) && m.mate[x] == none && m.price[m.base(x)] > 0 {
			m.setEven(x)
		}
	}
	if len(m.queue) == 0 {
		return false
	}
	for {
		if m.scan() {
			return true
		}
		if v := m.reprice(); v != none {
			m.unmatch(v)
			return true
		}
		if m.tighten() {
			return true
		}
	}
}

// scan looks at the edges of even vertices. Blossoms are closed last, for most searches end without.
func (m *Pairing) scan() bool {
	for {
		for ; m.looked < len(m.queue); m.looked++ {
			if m.scanFrom(m.queue[m.looked]) {
				return true
			}
		}
		if m.closed == len(m.closing) {
			return false
		}
		e := m.closing[m.closed]
		m.closed++
		if x, y := m.outer[e.u], m.outer[e.v]; x != y {
			m.contract(x, m.root(x, y), y)
		}
	}
}

func (m *Pairing) scanFrom(u int32) bool {
	for v := range int32(m.n) {
		e := m.between(u, v)
		if e.weight == 0 || m.outer[u] == m.outer[v] {
			continue
		}
		if m.slack(e) > 0 {
			m.near(u, m.outer[v])
		} else if m.reach(e) {
			return true
		}
	}
	return false
}

// near notes that an even vertex has an edge to an outermost node.
func (m *Pairing) near(u, x int32) {
	if m.nearest[x] == none || m.slack(m.between(u, x)) < m.slack(m.between(m.nearest[x], x)) {
		m.nearest[x] = u
	}
}

// reach follows a tight edge of an even vertex to another outermost node: a free one joins the tree, together with its mate; an even
// one is to close a blossom, or ends a path between two unmatched nodes, which is true.
func (m *Pairing) reach(e *edge) bool {
	x, y := m.outer[e.u], m.outer[e.v]
	switch m.label[y] {
	case free:
		if m.mate[y] == none { // and without a price
			m.augment(x, y)
			m.match(y, x)
			return true
		}
		next := m.outer[m.mate[y]]
		m.parent[y], m.label[y] = e.u, odd
		m.nearest[y], m.nearest[next] = none, none
		m.setEven(next)
	case even:
		root := m.root(x, y)
		if root == none {
			m.augment(x, y)
			m.augment(y, x)
			return true
		}
		m.closing = append(m.closing, *e)
	}
	return false
}

// above is the even node two edges nearer to the root of the tree; none above the root.
func (m *Pairing) above(x int32) int32 {
	if m.mate[x] == none {
		return none
	}
	return m.outer[m.parent[m.outer[m.mate[x]]]]
}

// root is the first even node that the ways of two nodes to their roots have in common, or none.
func (m *Pairing) root(x, y int32) int32 {
	for m.search++; x != none || y != none; x, y = y, x {
		if x == none {
			continue
		}
		if m.seen[x] == m.search {
			return x
		}
		m.seen[x] = m.search
		x = m.above(x)
	}
	return none
}

// augment matches x with y, and flips the edges on the way from x to its root.
func (m *Pairing) augment(x, y int32) {
	for {
		old := m.mate[x]
		m.match(x, y)
		if old == none {
			return
		}
		y = m.outer[old]
		x = m.outer[m.parent[y]]
		m.match(y, x)
	}
}

// unmatch leaves an even vertex unmatched, and matches the root of its tree in its place.
func (m *Pairing) unmatch(v int32) {
	x := m.outer[v]
	old := m.mate[x]
	m.mate[x] = none
	m.rebase(x, v)
	if old != none {
		y := m.outer[old]
		up := m.outer[m.parent[y]]
		m.match(y, up)
		m.augment(up, y)
	}
}

// base is the vertex of a node that has no partner within.
func (m *Pairing) base(x int32) int32 {
	for int(x) >= m.n {
		x = m.cycle[x][0]
	}
	return x
}

// match makes the edge from x to y the matched one of x, and where that edge leaves a blossom its base.
func (m *Pairing) match(x, y int32) {
	e := *m.between(x, y)
	m.mate[x] = e.v
	m.rebase(x, e.u)
}

// rebase matches the nodes within a blossom so that a vertex is its base.
func (m *Pairing) rebase(x, v int32) {
	if int(x) < m.n {
		return
	}
	base := *m.holder(x, v)
	at, around := m.turn(x, base), m.cycle[x]
	for i := range at {
		m.match(around[i], around[i^1])
	}
	m.mate[base] = m.mate[x]
	m.rebase(base, v)
	slices.Reverse(around[:at])
	slices.Reverse(around[at:])
	slices.Reverse(around)
}

// turn is an even number of steps from the base of a blossom to one of its nodes; it turns the cycle for that.
func (m *Pairing) turn(blossom, x int32) int {
	around := m.cycle[blossom]
	at := slices.Index(around, x)
	if at%2 == 1 {
		slices.Reverse(around[1:])
		at = len(around) - at
	}
	return at
}

// each calls do with the vertices that a node holds.
func (m *Pairing) each(x int32, do func(v int32)) {
	if int(x) < m.n {
		do(x)
		return
	}
	for _, y := range m.cycle[x] {
		m.each(y, do)
	}
}

// setEven labels an outermost node, and queues its vertices.
func (m *Pairing) setEven(x int32) {
	m.label[x] = even
	m.each(x, func(v int32) { m.queue = append(m.queue, v) })
}

// contract makes a blossom of the cycle from a root by x and y back to it.
func (m *Pairing) contract(x, root, y int32) {
	b := int32(m.n)
	for int(b) < m.end && m.outer[b] != none {
		b++
	}
	m.end = max(m.end, int(b)+1)
	around := append(m.cycle[b][:0], root)
	arm := func(x int32) {
		for ; x != root; x = m.above(x) {
			between := m.outer[m.mate[x]]
			around = append(around, x, between)
			m.setEven(between)
		}
	}
	arm(x)
	slices.Reverse(around[1:])
	arm(y)
	m.cycle[b] = around
	m.price[b], m.label[b], m.mate[b], m.parent[b], m.seen[b] = 0, even, m.mate[root], m.parent[root], 0
	for z := range int32(m.end) {
		m.between(b, z).weight, m.between(z, b).weight = 0, 0
	}
	for _, part := range around {
		for z := range int32(m.end) {
			e := m.between(part, z)
			if e.weight > 0 && (m.between(b, z).weight == 0 || m.slack(e) < m.slack(m.between(b, z))) {
				*m.between(b, z), *m.between(z, b) = *e, *m.between(z, part)
			}
		}
		m.each(part, func(v int32) { *m.holder(b, v) = part })
	}
	m.settle(b, b)
	m.findNearest(b)
}

// settle makes a node outermost, or part of an outermost one.
func (m *Pairing) settle(x, outermost int32) {
	m.outer[x] = outermost
	if int(x) >= m.n {
		for _, y := range m.cycle[x] {
			m.settle(y, outermost)
		}
	}
}

func (m *Pairing) findNearest(x int32) {
	m.nearest[x] = none
	for u := range int32(m.n) {
		if o := m.outer[u]; o != x && m.label[o] == even && m.between(u, x).weight > 0 {
			m.near(u, x)
		}
	}
}

// reprice lowers the prices of even vertices and raises those of odd ones, until an edge gets tight, an odd blossom has no price left, or an even
// vertex has none, which is returned.
func (m *Pairing) reprice() int32 {
	change := int64(1) << 62
	for x := range int32(m.end) {
		if !m.outermost(x) {
			continue
		}
		if int(x) >= m.n && m.label[x] == odd {
			change = min(change, m.price[x]/2)
		}
		if u := m.nearest[x]; u != none && m.label[x] != odd {
			slack := m.slack(m.between(u, x))
			if m.label[x] == even {
				slack /= 2
			}
			change = min(change, slack)
		}
	}
	cheapest := int32(none)
	for v := range int32(m.n) {
		if m.label[m.outer[v]] == even && m.price[v] <= change {
			cheapest, change = v, m.price[v]
		}
	}
	for v := range m.n {
		m.price[v] += change * sign(m.label[m.outer[v]])
	}
	for b := int32(m.n); int(b) < m.end; b++ {
		if m.outermost(b) {
			m.price[b] -= 2 * change * sign(m.label[b])
		}
	}
	return cheapest
}

// sign is how the price of a vertex under a label moves.
func sign(label int8) int64 {
	switch label {
	case even:
		return -1
	case odd:
		return 1
	}
	return 0
}

// tighten follows edges that became tight, and opens odd blossoms that have no price left.
func (m *Pairing) tighten() bool {
	m.queue, m.looked = m.queue[:0], 0
	for x := range int32(m.end) {
		u := m.nearest[x]
		if !m.outermost(x) || u == none || m.outer[u] == x {
			continue
		}
		if e := m.between(u, x); m.slack(e) == 0 && m.reach(e) {
			return true
		}
	}
	for b := int32(m.n); int(b) < m.end; b++ {
		if m.outermost(b) && m.label[b] == odd && m.price[b] == 0 {
			m.open(b)
		}
	}
	return false
}

// open takes an odd blossom apart. Its nodes on the even way from where the tree enters to the base stay in the tree.
func (m *Pairing) open(b int32) {
	for _, x := range m.cycle[b] {
		m.settle(x, x)
	}
	entry := *m.holder(b, m.between(b, m.parent[b]).u)
	at, around := m.turn(b, entry), m.cycle[b]
	for i := 0; i < at; i += 2 {
		x, next := around[i], around[i+1]
		m.parent[x], m.label[x], m.nearest[x] = m.between(next, x).u, odd, none
		m.findNearest(next)
		m.setEven(next)
	}
	m.label[entry], m.parent[entry], m.nearest[entry] = odd, m.parent[b], none
	for _, x := range around[at+1:] {
		m.label[x] = free
		m.findNearest(x)
	}
	m.outer[b], m.nearest[b] = none, none
}

// A PairingProof shows that no matching is worth more: the prices of the ends of an edge, and of the sets that hold both, add up to at
// least four times its weight. A set of 2k+1 vertices has at most k pairs inside.
type PairingProof struct {
	Prices []int64     // of the vertices, from 0 up
	Sets   []PricedSet // odd sets of vertices with a price
}

// PricedSet is an odd number of vertices, and a price above 0 of every pair of them.
type PricedSet struct {
	Vertices []int32 // odd in number
	Price    int64   // of every pair inside, above 0
}

// Bound is what any matching is worth at most: a quarter of the prices together.
func (p *PairingProof) Bound() float64 {
	sum := int64(0)
	for _, price := range p.Prices {
		sum += price
	}
	for _, set := range p.Sets {
		sum += set.Price * int64(len(set.Vertices)/2)
	}
	return float64(sum) / 4
}

// Prove returns the proof that the last answer is the best. It is a copy.
func (m *Pairing) Prove() PairingProof {
	p := PairingProof{Prices: slices.Clone(m.price[:m.n])}
	for b := int32(m.n); int(b) < m.end; b++ {
		if m.outer[b] == none || m.price[b] == 0 {
			continue
		}
		set := PricedSet{Price: m.price[b]}
		m.each(b, func(v int32) { set.Vertices = append(set.Vertices, v) })
		slices.Sort(set.Vertices)
		p.Sets = append(p.Sets, set)
	}
	if len(m.ships) > 0 {
		return m.complete(p)
	}
	return p
}
