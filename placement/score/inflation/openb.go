package inflation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/placement/score"
)

// FromOpenB is the trace of openb's lists. Types are numbered in the order of the nodes, then of the tasks; there are score.MaxTypes of them at most.
func FromOpenB(rows []workload.OpenBTask, machines []workload.OpenBNode, division score.Division) (*Trace, error) {
	var types []string
	id := func(name string) core.AcceleratorID {
		if !slices.Contains(types, name) {
			types = append(types, name)
		}
		return core.AcceleratorID(slices.Index(types, name))
	}
	nodes := make([]Node, 0, len(machines))
	for _, m := range machines {
		nodes = append(nodes, Node{Name: m.Name, CPU: m.CPUMilli, Memory: m.MemoryMiB, Devices: m.Devices, Accelerator: id(m.Model)})
	}
	tasks := make([]Task, 0, len(rows))
	for _, r := range rows {
		task := Task{Name: r.Name, Written: r.Types, Task: score.Task{
			CPU: r.CPUMilli, Memory: r.MemoryMiB, Devices: int32(r.Devices), Milli: int32(r.Milli),
		}}
		if r.Types != "" {
			for name := range strings.SplitSeq(r.Types, "|") {
				task.Types |= 1 << uint(id(name))
			}
		}
		tasks = append(tasks, task)
	}
	if len(types) > score.MaxTypes {
		return nil, fmt.Errorf("the lists name %d accelerator types; at most %d are possible", len(types), score.MaxTypes)
	}
	return NewTrace(tasks, nodes, division), nil
}
