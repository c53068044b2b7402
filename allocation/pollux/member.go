package pollux

import "slices"

// rows is a matrix of replicas by job, in order of rank, and node, without its zeros.
type rows struct {
	ends   []int32 // by rank: where its row ends in shares
	shares []share
}

func (r *rows) clear() { r.ends, r.shares = r.ends[:0], r.shares[:0] }

func (r *rows) add(row []share) {
	r.shares = append(r.shares, row...)
	r.ends = append(r.ends, int32(len(r.shares)))
}

func (r *rows) row(rank int) []share {
	from := int32(0)
	if rank > 0 {
		from = r.ends[rank-1]
	}
	return r.shares[from:r.ends[rank]:r.ends[rank]]
}

// member is a seating of the population and its worth.
type member struct {
	rows
	hash     uint64
	cost     float64 // of all jobs
	fitness  float64 // first objective: the power mean of the jobs' values
	utility  float64 // second: value without restarts for each device of the nodes in use
	front    int     // how many fronts dominate it
	distance float64 // to its neighbours on the front
}

func (m *member) same(o *member) bool {
	return slices.Equal(m.ends, o.ends) && slices.Equal(m.shares, o.shares)
}

func (m *member) dominates(o *member) bool {
	return m.fitness >= o.fitness && m.utility >= o.utility && (m.fitness > o.fitness || m.utility > o.utility)
}
