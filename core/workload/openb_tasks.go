package workload

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// OpenBTask is a row of openb's task lists as it stands.
type OpenBTask struct {
	// Name: name of the task.
	Name string
	// CPUMilli: CPU that it asks for, in thousandths of a core.
	CPUMilli int64
	// MemoryMiB: memory that it asks for, in MiB.
	MemoryMiB int64
	// Devices: number of devices that it asks for.
	Devices int
	Milli   int    // thousandths of each device
	Types   string // accelerator types with | between them, which may name one twice; empty for any
	// The moments in seconds, NaN where the list has none: Scheduled also where the task never was.
	Created, Deleted, Scheduled float64
}

// OpenBNode is a row of openb's node lists as it stands.
type OpenBNode struct {
	// Name: serial number of the node.
	Name string
	// CPUMilli: CPU of the node, in thousandths of a core.
	CPUMilli int64
	// MemoryMiB: memory of the node, in MiB.
	MemoryMiB int64
	// Devices: number of devices of the node.
	Devices int
	Model   string // empty for a node without devices
}

var openbTaskColumns = columns{required: openbColumns.required[:openbTypes], optional: openbColumns.required[openbTypes:]}

// ReadOpenBTasks reads a task list, in its order, which some variants of the list cut down to its first five columns. A broken file is
// core.Diagnostics with the position of every problem.
func ReadOpenBTasks(ctx context.Context, path string) ([]OpenBTask, error) {
	in, err := openInput(ctx, path)
	if err != nil {
		return nil, err
	}
	return readOpenBTasks(in)
}

func readOpenBTasks(in *input) ([]OpenBTask, error) {
	t := openTable(in, openbTaskColumns)
	var tasks []OpenBTask
	lines := map[string]int{}
	for t.next() {
		task := OpenBTask{
			Name:      strings.Clone(t.unique(openbName, "a task", lines)),
			CPUMilli:  int64(t.whole(openbCPU, maxCount*1000, "thousandths of a CPU")),
			MemoryMiB: int64(t.whole(openbMemory, maxCount*1024, "a number of MiB")),
			Devices:   int(t.whole(openbDevices, core.MaxDevicesPerNode, "a number of devices")),
			Milli:     int(t.whole(openbMilli, 1000, "thousandths of a device")),
			Types:     t.openbTypes(),
			Created:   t.momentOrNaN(openbCreated),
			Deleted:   t.momentOrNaN(openbDeleted),
			Scheduled: t.momentOrNaN(openbScheduled),
		}
		switch {
		case !t.accepted(openbDevices) || !t.accepted(openbMilli):
		case task.Devices > 1 && task.Milli != 1000:
			t.reject(openbMilli, fmt.Sprintf("1000, as the task takes %d devices", task.Devices))
		case (task.Devices == 0) != (task.Milli == 0):
			t.reject(openbMilli, "0 without devices, and more with one")
		}
		if task.Deleted < task.Created {
			t.reject(openbDeleted, "a moment not before the task was created")
		}
		tasks = append(tasks, task)
	}
	if err := t.finish().Err(); err != nil {
		return nil, err
	}
	return tasks, nil
}

// openbTypes is the types of a row as they are written, each of them a name.
func (t *table) openbTypes() string {
	if !t.has(openbTypes) {
		return ""
	}
	types := t.label(openbTypes)
	if slices.Contains(strings.Split(types, acceleratorSeparator), "") {
		t.reject(openbTypes, "accelerator types with | between them")
	}
	return types
}

// ReadOpenBNodeList reads a node list, in its order. A broken file is core.Diagnostics with the position of every problem.
func ReadOpenBNodeList(ctx context.Context, path string) ([]OpenBNode, error) {
	in, err := openInput(ctx, path)
	if err != nil {
		return nil, err
	}
	return readOpenBNodeList(in)
}

func readOpenBNodeList(in *input) ([]OpenBNode, error) {
	t := openTable(in, openbNodeColumns)
	var nodes []OpenBNode
	lines := map[string]int{}
	for t.next() {
		node := OpenBNode{
			Name:      strings.Clone(t.unique(openbNodeName, "a node", lines)),
			CPUMilli:  int64(t.whole(openbNodeCPU, maxCount*1000, "thousandths of a CPU")),
			MemoryMiB: int64(t.whole(openbNodeMemory, maxCount*1024, "a number of MiB")),
			Devices:   int(t.whole(openbNodeDevices, core.MaxDevicesPerNode, "a number of devices")),
		}
		if node.Devices > 0 || t.has(openbNodeModel) {
			node.Model = t.label(openbNodeModel)
		}
		nodes = append(nodes, node)
	}
	if err := t.finish().Err(); err != nil {
		return nil, err
	}
	return nodes, nil
}

// unique is a name that no row before has; lines are those of the names so far.
func (t *table) unique(column int, what string, lines map[string]int) string {
	name := t.text(column)
	if first, twice := lines[name]; twice {
		t.reject(column, fmt.Sprintf("%s of its own; it is on line %d too", what, first))
		return name
	}
	lines[name] = t.declaration().Line
	return name
}

// momentOrNaN is a moment, NaN where there is none.
func (t *table) momentOrNaN(column int) float64 {
	if !t.has(column) {
		return math.NaN()
	}
	return t.moment(column)
}
