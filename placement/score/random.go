package score

import (
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
)

// Random draws a node among those on which a task fits, and then devices among those with enough left.
//
// Source: baseline of FGD (ATC'23), whose draws cannot be repeated. O(nodes) for each placement.
type Random struct{ rand *rand.Rand }

// NewRandom draws from a stream.
func NewRandom(r *rand.Rand) *Random { return &Random{r} }

// Score is the same for all nodes.
func (*Random) Score(*Node, *Task) int32 { return 0 }

func (r *Random) draw(n int) int { return r.rand.IntN(n) }

// Devices draws, each set with the same chance.
func (r *Random) Devices(n *Node, t *Task) core.DeviceSet {
	var enough, chosen core.DeviceSet
	if !t.needsDevices() {
		return 0
	}
	all := n.devices()
	for i := range n.Left {
		if all.enough(i, t) {
			enough |= 1 << uint(i)
		}
	}
	for need := int(t.Devices); need > 0 && enough != 0; need-- {
		one := enough &^ enough.Lowest(r.rand.IntN(enough.Count()))
		one = one.Lowest(1)
		chosen |= one
		enough &^= one
	}
	return chosen
}
