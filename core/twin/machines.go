package twin

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// machines are what a run taught of the failures of nodes.
type machines struct {
	known   bool
	at      float64       // moment of the last round
	health  []core.Health // by NodeID
	up      int           // nodes that are up
	since   []float64     // by NodeID: when it went down; NaN for one that is not, or was before anybody looked
	seconds float64       // that nodes were up, all together
	failed  int
	repairs []float64 // seconds that they were down, the latest
}

const (
	mostRepairs      = 200
	mostNodeChanges  = 2000
	usualRepair      = 3600 // seconds, before any was seen
	leastNodeSeconds = 1    // between two failures of all nodes
)

func (m *machines) clone() machines {
	c := *m
	c.health, c.since, c.repairs = slices.Clone(m.health), slices.Clone(m.since), slices.Clone(m.repairs)
	return c
}

// observe takes in the events of a round. O(events), and O(nodes) the first time.
func (m *machines) observe(v *core.View, events []core.Event) {
	if m.known {
		m.seconds += float64(m.up) * (v.NowSeconds - m.at)
	}
	m.at = v.NowSeconds
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case core.NodeChanged:
			m.set(e.Node, e.Health, e.AtSeconds)
		case core.NodeRemoved:
			m.set(e.Node, core.Gone, e.AtSeconds)
		}
	}
	for i := len(m.health); i < len(v.Cluster.Nodes); i++ { // those that are new
		m.health, m.since = append(m.health, core.Gone), append(m.since, math.NaN())
		m.set(core.NodeID(i), v.Cluster.Nodes[i].Health, math.NaN())
	}
	m.known = true
}

// isUp reports whether a node of a health may fail.
func isUp(h core.Health) bool { return h == core.Ready || h == core.Draining }

func (m *machines) set(id core.NodeID, to core.Health, at float64) {
	if int(id) >= len(m.health) {
		return
	}
	from := m.health[id]
	m.health[id] = to
	switch {
	case isUp(from) && !isUp(to):
		m.up--
	case !isUp(from) && isUp(to):
		m.up++
	}
	if from == core.Down && to != core.Down {
		if down := at - m.since[id]; isUp(to) && down > 0 {
			m.repairs = latest(append(m.repairs, down), mostRepairs)
		}
		m.since[id] = math.NaN()
	}
	if from != core.Down && to == core.Down {
		if m.since[id] = at; isUp(from) {
			m.failed++
		}
	}
}

// changes are those to come up to a moment: nodes that are down come back, and with r, which is nil for what is expected, others fail as often as they did.
// O(nodes + changes × log changes).
func (m *machines) changes(v *core.View, until float64, r *rand.Rand) []NodeChange {
	var list []NodeChange
	now, nodes := v.NowSeconds, v.Cluster.Nodes
	free := make([]float64, len(nodes)) // from then on a node may fail
	for i := range nodes {
		switch nodes[i].Health {
		case core.Ready:
			free[i] = now
		case core.Down:
			back := now + m.repairLeft(i, now, r)
			list = append(list, NodeChange{AtSeconds: back, Node: core.NodeID(i), To: core.Ready})
			free[i] = back
		default:
			free[i] = math.Inf(1)
		}
	}
	if r != nil && m.failed > 0 && m.seconds > 0 && len(nodes) > 0 {
		rate := 0.0
		for range m.failed {
			rate += r.ExpFloat64()
		}
		mean := max(m.seconds/rate/float64(len(nodes)), leastNodeSeconds)
		for at := now + mean*r.ExpFloat64(); at <= until && len(list) < mostNodeChanges; at += mean * r.ExpFloat64() {
			i := r.IntN(len(nodes))
			if at <= free[i] {
				continue
			}
			free[i] = at + m.repair(r)
			list = append(list, NodeChange{AtSeconds: at, Node: core.NodeID(i), To: core.Down}, NodeChange{AtSeconds: free[i], Node: core.NodeID(i), To: core.Ready})
		}
	}
	slices.SortStableFunc(list, func(a, b NodeChange) int {
		return cmp.Or(cmp.Compare(a.AtSeconds, b.AtSeconds), cmp.Compare(a.Node, b.Node))
	})
	return list
}

// repair is the seconds of a repair: one that was seen.
func (m *machines) repair(r *rand.Rand) float64 {
	if len(m.repairs) == 0 {
		return usualRepair * r.ExpFloat64()
	}
	return m.repairs[r.IntN(len(m.repairs))]
}

// repairLeft is the seconds until a node comes back that is down: after as long as one of those repairs that took longer so far, or as long again as it is down.
func (m *machines) repairLeft(node int, now float64, r *rand.Rand) float64 {
	down := 0.0
	if node < len(m.since) && !math.IsNaN(m.since[node]) {
		down = max(now-m.since[node], 0)
	}
	var longer []float64
	for _, seconds := range m.repairs {
		if seconds > down {
			longer = append(longer, seconds)
		}
	}
	again := down
	if len(m.repairs) == 0 {
		again = max(down, usualRepair)
	}
	switch {
	case len(longer) == 0 && r == nil:
		return again
	case len(longer) == 0:
		return again / max(1-r.Float64(), 0.01) // half of them take more than twice as long in all
	case r == nil:
		return median(longer) - down
	}
	return longer[r.IntN(len(longer))] - down
}
