package wire_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

func TestReservationsTravel(t *testing.T) {
	cluster := &core.Cluster{Nodes: []core.Node{{Devices: 4}, {ID: 1, Devices: 64}}}
	for name, reserved := range map[string][]core.Reservation{
		"none":            nil,
		"of one node":     {{Job: 3, Node: 0, Devices: 0b1111}},
		"of several":      {{Job: 0, Node: 1, Devices: 1 << 63}, {Job: 0, Node: 0, Devices: 1}},
		"without devices": {{Job: 2, Node: 1}},
	} {
		got, err := wire.ReservationsFrom(wire.Reservations(reserved), cluster)
		if diff := cmp.Diff(reserved, got); diff != "" || err != nil {
			t.Errorf("%s: %v, (-sent +received)\n%s", name, err, diff)
		}
	}
	for name, of := range map[string]*stagev1.Reservation{
		"a node before the first":        {Node: -1, Devices: 1},
		"a node after the last":          {Node: 2, Devices: 1},
		"a device that the node has not": {Node: 0, Devices: 0b10000},
	} {
		if got, err := wire.ReservationsFrom([]*stagev1.Reservation{of}, cluster); err == nil {
			t.Errorf("%s: %v, want an error", name, got)
		}
	}
}
