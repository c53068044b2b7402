package wire

import (
	"fmt"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// Reservations encodes what is reserved.
func Reservations(of []core.Reservation) (m []*stagev1.Reservation) {
	for _, r := range of {
		m = append(m, &stagev1.Reservation{Job: int32(r.Job), Node: int32(r.Node), Devices: uint64(r.Devices)})
	}
	return m
}

// ReservationsFrom decodes what is reserved in a cluster. It fails for devices that no node of it has.
func ReservationsFrom(m []*stagev1.Reservation, c *core.Cluster) (of []core.Reservation, err error) {
	for _, r := range m {
		n, devices := r.GetNode(), core.DeviceSet(r.GetDevices())
		if n < 0 || int(n) >= len(c.Nodes) || devices&^core.FirstDevices(c.Nodes[n].Devices) != 0 {
			return nil, fmt.Errorf("devices %v of node %d are reserved, which are not there", devices, n)
		}
		of = append(of, core.Reservation{Job: core.JobID(r.GetJob()), Node: core.NodeID(n), Devices: devices})
	}
	return of, nil
}
