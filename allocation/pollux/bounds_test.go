package pollux

import (
	"testing"

	"pgregory.net/rapid"
)

// TestBoundsHold compares the bounds that let the search skip offers with every offer that there is: no job loses less by
// giving replicas away than lossOn says, and none gains more by taking some than takers say, after replicas were passed on too.
func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, candidates := drawJobs(t, rapid.IntRange(1, takerBlock+8).Draw(t, "jobs"), rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(1, 6).Draw(t, "devices"))
		config := Default
		if config.Resize.InPlace = rapid.Bool().Draw(t, "in place"); config.Resize.InPlace {
			config.Resize.Overhead = 5e9
		}
		p := searchWith(t, config, v, candidates)
		p.search.occupancy.empty(p)
		for i, row := range p.plan.rows {
			p.search.occupancy.seat(int32(i), row)
		}
		p.search.takers.list(p)
		checkLosses(t, p)
		p.boundGains()
		checkGains(t, p)
		for n, jobs := range p.search.occupancy.onNode[:len(p.usable)] {
			if len(jobs) < 2 {
				continue
			}
			from, to := jobs[0], jobs[len(jobs)-1]
			if left := int(p.search.occupancy.has[from]) - 1; left > 0 && left < p.jobs[from].least || int(p.search.occupancy.has[to]) == p.jobs[to].most {
				continue
			}
			p.accept(&offer{from: from, to: to, node: int32(n), give: 1, take: 1})
		}
		checkLosses(t, p)
		checkGains(t, p)
	})
}

// checkLosses tries every number of replicas that a job could give on every node.
func checkLosses(t *rapid.T, p *allocator) {
	s := &p.search
	for n, jobs := range s.occupancy.onNode[:len(p.usable)] {
		least := p.lossOn(int32(n))
		for _, from := range jobs {
			j, row := &p.jobs[from], s.occupancy.rows[from]
			if s.leastLoss[from] < least {
				t.Errorf("node %d: losses are at least %v, of job %d %v", n, least, from, s.leastLoss[from])
			}
			for k := int32(1); k <= replicasOn(row, int32(n)); k++ {
				if left := int(s.occupancy.has[from] - k); left > 0 && left < j.least {
					continue
				}
				if loss := p.costAfter(from, int32(n), -k) - j.costOf(row); loss < s.leastLoss[from] {
					t.Errorf("job %d loses %v by giving %d replicas, said to be %v at least", from, loss, k, s.leastLoss[from])
				}
			}
		}
	}
}

// checkGains tries every number of replicas that a job could take on every node.
func checkGains(t *rapid.T, p *allocator) {
	s := &p.search
	for at, to := range s.takers.jobs {
		j := &p.jobs[to]
		now := j.costOf(s.occupancy.rows[to])
		for n := range p.usable {
			for k := int32(1); int(k) <= p.perNode && int(s.occupancy.has[to]+k) <= j.most; k++ {
				if int(s.occupancy.has[to]+k) < j.least || int(replicasOn(s.occupancy.rows[to], int32(n))+k) > p.perNode {
					continue
				}
				gain, bound := now-p.costAfter(to, int32(n), k), s.takers.gains[k][at]
				if gain > bound || bound > s.takers.most[k][at/takerBlock] || bound > s.gainBound[k] || bound > s.mostGain[to] {
					t.Errorf("job %d gains %v from %d replicas, said to be %v at most, of its block %v, of all %v", to, gain, k, bound, s.takers.most[k][at/takerBlock], s.gainBound[k])
				}
			}
		}
	}
}

// TestEveryRoundIsBounded lets a round pass its limits, which are far beyond any published workload: it ends early, with a
// plan that is within its gap.
func TestEveryRoundIsBounded(t *testing.T) {
	v, candidates := busyNodes(t, 2000, 500, 16, 1)
	p := component(t, New(), nil).(*allocator)
	if _, err := p.Allocate(t.Context(), v, candidates); err != nil {
		t.Fatal(err)
	}
	if limit := forceLimit + 2*len(v.Cluster.Nodes)*len(v.Cluster.Nodes) + len(candidates)*len(v.Cluster.Nodes)*8; p.search.forced < forceLimit || p.search.forced > limit {
		t.Errorf("forced rows times nodes: %d, want %d to %d", p.search.forced, forceLimit, limit)
	}
	if gap := p.GapRatio(); !(gap < 0.01) {
		t.Errorf("certified gap %v", gap)
	}
	if grants, err := p.Allocate(t.Context(), v, nil); err != nil || len(grants) != 0 || p.search.forced != 0 {
		t.Errorf("without jobs: grants %v, error %v, %d rows forced", grants, err, p.search.forced)
	}
}
