package core_test

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
)

func TestDevicesAreCountedOnce(t *testing.T) {
	seats := []core.Seat{{Node: 0, Devices: 0b0110}, {Node: 0, Devices: 0b0011}, {Node: 1, Devices: 0b0011}, {Node: 0, Devices: 0b0110}, {Node: 0}}
	for sharing, want := range map[core.Sharing][]int{
		core.Exclusive:  {2, 2, 2, 2, 0}, // nobody shares, and nothing is looked up
		core.Fractional: {2, 1, 2, 0, 0},
		core.Mig:        {2, 1, 2, 0, 0},
		core.TimeSlice:  {2, 1, 2, 0, 0},
	} {
		t.Run(sharing.String(), func(t *testing.T) {
			var once core.Once
			for range 2 { // the second time after a reset
				once.Reset(&core.Cluster{Sharing: sharing, Nodes: make([]core.Node, 2)})
				for i, s := range seats {
					if got := once.Count(s); got != want[i] {
						t.Errorf("seat %d, %v, has %d devices that were not counted before, want %d", i, s, got, want[i])
					}
				}
			}
		})
	}
}
