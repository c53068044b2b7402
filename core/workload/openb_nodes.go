package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

const (
	openbNodeName = iota
	openbNodeCPU
	openbNodeMemory
	openbNodeDevices
	openbNodeModel
)

var openbNodeColumns = columns{required: []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}}

// NodeCount is how many nodes of a cluster have so many devices of a type.
type NodeCount struct {
	// Accelerator: accelerator type.
	Accelerator string
	// Devices: number of devices on each node.
	Devices int
	// Nodes: number of such nodes.
	Nodes int
}

// ReadOpenBNodes counts the nodes that openb lists, those of the type with most devices first. CPUs and memory are
// checked to be numbers and not used; nodes without devices are left out.
func ReadOpenBNodes(ctx context.Context, path string) ([]NodeCount, error) {
	in, err := openInput(ctx, path)
	if err != nil {
		return nil, err
	}
	return readOpenBNodes(in)
}

func readOpenBNodes(in *input) ([]NodeCount, error) {
	t := openTable(in, openbNodeColumns)
	var counts []NodeCount
	byType, lines := map[string]int{}, map[string]int{}
	for t.next() {
		name, devices := t.text(openbNodeName), int(t.whole(openbNodeDevices, core.MaxDevicesPerNode, "a number of devices"))
		t.number(openbNodeCPU, 0, maxCount*1000, "a number")
		t.number(openbNodeMemory, 0, maxCount*1024, "a number")
		if first, twice := lines[name]; twice {
			t.reject(openbNodeName, fmt.Sprintf("a node of its own; it is on line %d too", first))
		}
		lines[name] = t.declaration().Line
		if !t.ok() || devices == 0 {
			continue
		}
		accelerator := t.label(openbNodeModel)
		byType[accelerator] += devices
		i := slices.IndexFunc(counts, func(c NodeCount) bool { return c.Accelerator == accelerator && c.Devices == devices })
		if i < 0 {
			i, counts = len(counts), append(counts, NodeCount{accelerator, devices, 0})
		}
		counts[i].Nodes++
	}
	problems := t.finish()
	if len(counts) == 0 && len(problems) == 0 {
		problems = core.Diagnostics{{Position: core.Position{File: in.Path}, Summary: "no node has a device"}}
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(counts, func(a, b NodeCount) int {
		return cmp.Or(
			cmp.Compare(byType[b.Accelerator], byType[a.Accelerator]), cmp.Compare(a.Accelerator, b.Accelerator),
			cmp.Compare(b.Devices, a.Devices),
		)
	})
	return counts, nil
}
