package operate

import (
	"encoding/json"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core/backend/device"
)

// nodesOf turns the devices of this machine into nodes for a config: one for each type, called "here", or "here-TYPE" when
// there are several types.
func nodesOf(found device.Found) ([]configs.NodeGroup, error) {
	groups := found.Groups()
	if len(groups) == 0 {
		return nil, cli.Problem("this machine", found.String(), "declare devices in cluster.nodes")
	}
	nodes := make([]configs.NodeGroup, len(groups))
	for i, g := range groups {
		name := "here"
		if len(groups) > 1 {
			name += "-" + g.Type
		}
		nodes[i] = configs.NodeGroup{Name: name, Count: 1, Accelerator: g.Type, Devices: len(g.Devices), DeviceMemoryGB: leastMemory(g.Devices)}
	}
	return nodes, nil
}

// leastMemory is the memory in GB that each of some devices has; 0 when one does not tell.
func leastMemory(devices []device.Device) float64 {
	least := devices[0].MemoryMiB
	for _, d := range devices {
		least = min(least, d.MemoryMiB)
	}
	return float64(least) / 1024
}

// discovered has the local backend look for the devices that nodes declare.
var discovered = configs.Flag{Name: "--discover", Set: "backend.config.devices=discovered"}

// clusterFlags are the settings that put nodes in the place of those of a config, and of its pools.
func clusterFlags(nodes []configs.NodeGroup) ([]configs.Flag, error) {
	type node struct {
		Name           string  `json:"name"`
		Accelerator    string  `json:"accelerator"`
		Devices        int     `json:"devices"`
		DeviceMemoryGB float64 `json:"device_memory_gb,omitempty"`
	}
	list := make([]node, len(nodes))
	for i, n := range nodes {
		list[i] = node{n.Name, n.Accelerator, n.Devices, n.DeviceMemoryGB}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	var flags []configs.Flag
	for _, set := range [...]string{"cluster.pools=[]", "cluster.nodes=" + string(text)} {
		flags = append(flags, configs.Flag{Name: discovered.Name, Set: set})
	}
	return flags, nil
}
