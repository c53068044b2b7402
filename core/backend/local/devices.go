package local

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/device"
)

// The ways to come by devices.
const (
	declaredDevices   = "declared"
	discoveredDevices = "discovered"
)

// deviceNames is what CUDA_VISIBLE_DEVICES calls the devices, numbered through over all nodes: their numbers, or the UUIDs of
// those that were found on this machine. Before are the names that a scheduler before this one gave, nil if there was none:
// they stay, since its replicas may still run.
func (o *Opener) deviceNames(ctx context.Context, c *core.Cluster, before []string) ([]string, error) {
	if o.config.Devices != discoveredDevices {
		names := make([]string, c.Devices())
		for i := range names {
			names[i] = strconv.Itoa(i)
		}
		return names, nil
	}
	found, err := device.Discover(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	var problems core.Diagnostics
	if before == nil {
		names, problems = deal(c, found)
	} else {
		names, problems = before, missing(c, found, before)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return names, nil
}

// deal gives the nodes, in their order, the next devices of their type.
func deal(c *core.Cluster, found device.Found) (names []string, problems core.Diagnostics) {
	left := map[string][]device.Device{}
	for _, g := range found.Groups() {
		left[g.Type] = g.Devices
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		kind := c.Accelerators[n.Accelerator]
		have := left[kind]
		if len(have) < n.Devices {
			problems = append(problems, core.Diagnostic{
				Path:    "cluster.nodes",
				Summary: fmt.Sprintf("node %q wants %d of type %q, this machine has %d left", n.Name, n.Devices, kind, len(have)),
				Hint:    "found on this machine: " + found.String(),
			})
		}
		for _, d := range have[:min(n.Devices, len(have))] {
			names = append(names, d.UUID)
		}
		left[kind] = have[min(n.Devices, len(have)):]
	}
	return names, problems
}

// missing reports devices that were dealt and are not found any more.
func missing(c *core.Cluster, found device.Found, names []string) (problems core.Diagnostics) {
	if len(names) != c.Devices() {
		return core.Diagnostics{{Path: "backend.config.devices", Summary: fmt.Sprintf("the unfinished run has %d devices, the cluster declares %d", len(names), c.Devices()), Hint: "begin anew with --fresh"}}
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		for _, name := range names[:n.Devices] {
			if !slices.ContainsFunc(found.Devices, func(d device.Device) bool { return d.UUID == name && !d.MIG }) {
				problems = append(problems, core.Diagnostic{
					Path: "cluster.nodes", Summary: fmt.Sprintf("device %s of node %q is gone from this machine", name, n.Name),
					Hint: "bring it back, or begin anew with --fresh; found on this machine: " + found.String(),
				})
			}
		}
		names = names[n.Devices:]
	}
	return problems
}
