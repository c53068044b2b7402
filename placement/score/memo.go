package score

import "github.com/quartet-sched/quartet/core"

// memo remembers scores of states of a node and a task, those of two that meet in a place one at a time.
type memo []scored

type scored struct {
	digest
	score int32
}

func newMemo() memo { return make(memo, 1<<memoBits) }

// score is what best gives a node, or gave it in this state: with as many CPUs before and after the task, as far as they matter.
func (m memo) score(n *Node, t *Task, before, after uint64, best func(*Node, *Task) (int32, int)) int32 {
	if n.countsMemory(t) { // which no digest tells of
		score, _ := best(n, t)
		return score
	}
	sum := n.digest
	sum.add(digestOf(beforeState<<56 | before<<16 | uint64(n.Accelerator)))
	sum.add(digestOf(afterState<<56 | after))
	sum.add(digestOf(taskState<<56 | uint64(t.Slice)<<32 | uint64(t.Devices)<<12 | uint64(t.Milli)))
	known := &m[sum.low>>(64-memoBits)]
	if known.digest != sum {
		score, _ := best(n, t)
		*known = scored{sum, score}
	}
	return known.score
}

// devicesOf is the devices that a score is of, as best chooses for a task that takes a part of one.
func devicesOf(n *Node, t *Task, best func(*Node, *Task) (int32, int)) core.DeviceSet {
	if !t.shares() {
		return n.first(t)
	}
	_, device := best(n, t)
	return 1 << uint(device)
}
