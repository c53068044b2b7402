package core

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestKeepDevices(t *testing.T) {
	seats := func(list ...uint64) (out []Seat) { // node, devices, node, devices, …
		for i := 0; i < len(list); i += 2 {
			out = append(out, Seat{Node: NodeID(list[i]), Devices: DeviceSet(list[i+1])})
		}
		return out
	}
	for name, tc := range map[string]struct {
		held, placed, want [][]Seat // by job
		unusable           DeviceSet
		reserved           []Reservation
	}{
		"grows":                         {held: [][]Seat{seats(0, 0b100)}, placed: [][]Seat{seats(0, 0b11)}, want: [][]Seat{seats(0, 0b101)}},
		"shrinks":                       {held: [][]Seat{seats(0, 0b1100)}, placed: [][]Seat{seats(0, 0b1)}, want: [][]Seat{seats(0, 0b100)}},
		"shuffled for nothing":          {held: [][]Seat{seats(0, 0b1100)}, placed: [][]Seat{seats(0, 0b11)}, want: [][]Seat{seats(0, 0b1100)}},
		"on another node, too":          {held: [][]Seat{seats(0, 0b1000)}, placed: [][]Seat{seats(1, 0b1, 0, 0b1)}, want: [][]Seat{seats(1, 0b1, 0, 0b1000)}},
		"in another order":              {held: [][]Seat{seats(0, 0b1000, 1, 0b1)}, placed: [][]Seat{seats(1, 0b1, 0, 0b1)}, want: [][]Seat{seats(0, 0b1000, 1, 0b1)}},
		"elsewhere":                     {held: [][]Seat{seats(0, 0b1000)}, placed: [][]Seat{seats(1, 0b1)}, want: [][]Seat{seats(1, 0b1)}},
		"begins":                        {held: [][]Seat{nil}, placed: [][]Seat{seats(0, 0b10)}, want: [][]Seat{seats(0, 0b10)}},
		"another begins in between":     {held: [][]Seat{seats(0, 0b10), nil}, placed: [][]Seat{seats(0, 0b1100), seats(0, 0b11)}, want: [][]Seat{seats(0, 0b11), seats(0, 0b1100)}},
		"its device is gone":            {held: [][]Seat{seats(0, 0b11)}, placed: [][]Seat{seats(0, 0b110)}, want: [][]Seat{seats(0, 0b110)}, unusable: 0b1},
		"two swap":                      {held: [][]Seat{seats(0, 0b11), seats(0, 0b1100)}, placed: [][]Seat{seats(0, 0b1100), seats(0, 0b11)}, want: [][]Seat{seats(0, 0b11), seats(0, 0b1100)}},
		"grows beside what is reserved": {held: [][]Seat{seats(0, 0b1)}, placed: [][]Seat{seats(0, 0b1010)}, want: [][]Seat{seats(0, 0b1001)}, reserved: []Reservation{{Node: 0, Devices: 0b110}}},
		"holds what is reserved":        {held: [][]Seat{seats(0, 0b10)}, placed: [][]Seat{seats(0, 0b1001)}, want: [][]Seat{seats(0, 0b11)}, reserved: []Reservation{{Node: 0, Devices: 0b110}}},
		"only what is reserved is left": {held: [][]Seat{seats(0, 0b1), nil}, placed: [][]Seat{seats(0, 0b11), seats(0, 0b1100)}, want: [][]Seat{seats(0, 0b11), seats(0, 0b1100)}, reserved: []Reservation{{Node: 0, Devices: 0b1110}}},
		"makes no sense: overlap":       {held: [][]Seat{seats(0, 0b11), nil}, placed: [][]Seat{seats(0, 0b110), seats(0, 0b100)}, want: [][]Seat{seats(0, 0b110), seats(0, 0b100)}},
		"makes no sense: no device":     {held: [][]Seat{seats(0, 0b11)}, placed: [][]Seat{seats(0, 0b10000)}, want: [][]Seat{seats(0, 0b10000)}},
		"makes no sense: no node":       {held: [][]Seat{seats(0, 0b11)}, placed: [][]Seat{seats(7, 0b1)}, want: [][]Seat{seats(7, 0b1)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &state{}
			s.view.Cluster = &Cluster{Nodes: []Node{{Devices: 4, Unusable: tc.unusable}, {Devices: 4}}}
			s.view.Reserved = tc.reserved
			var placed []Placement
			for i, held := range tc.held {
				j := &Job{JobSpec: &JobSpec{ID: JobID(i)}, Seats: held}
				if len(held) > 0 {
					j.State = Running
				}
				s.view.Jobs = append(s.view.Jobs, j)
				placed = append(placed, Placement{Job: JobID(i), Seats: tc.placed[i]})
			}
			s.keepDevices(placed)
			for i := range placed {
				if diff := cmp.Diff(tc.want[i], placed[i].Seats); diff != "" {
					t.Errorf("job %d (-want +got):\n%s", i, diff)
				}
			}
		})
	}
}

// Whatever a placer answers that makes sense, each job keeps what it can of a node that it stays on, has as many devices of each node as
// it was given, and no device is given twice.
func TestKeepDevicesKeepsWhatItCan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, nodes := &state{}, rapid.IntRange(1, 3).Draw(t, "nodes")
		s.view.Cluster = &Cluster{}
		held, given := make([]DeviceSet, nodes), make([]DeviceSet, nodes)
		for range nodes {
			s.view.Cluster.Nodes = append(s.view.Cluster.Nodes, Node{Devices: 6, Unusable: DeviceSet(rapid.Uint64Range(0, 15).Draw(t, "unusable"))})
		}
		draw := func(taken []DeviceSet, usable bool) (seats []Seat) {
			for n := range nodes {
				free := FirstDevices(6) &^ taken[n]
				if usable {
					free &= s.view.Cluster.Nodes[n].Usable()
				}
				if d := free & DeviceSet(rapid.Uint64Range(0, 63).Draw(t, "devices")); d != 0 {
					taken[n] |= d
					seats = append(seats, Seat{NodeID(n), d})
				}
			}
			return seats
		}
		var placed []Placement
		for i := range rapid.IntRange(1, 4).Draw(t, "jobs") {
			j := &Job{JobSpec: &JobSpec{ID: JobID(i)}}
			if j.Seats = draw(held, false); len(j.Seats) > 0 && rapid.Bool().Draw(t, "runs") {
				j.State = Running
			}
			s.view.Jobs = append(s.view.Jobs, j)
			if seats := draw(given, true); len(seats) > 0 {
				placed = append(placed, Placement{Job: JobID(i), Seats: seats})
			}
		}
		before := make([][]Seat, len(placed))
		for i := range placed {
			before[i] = slices.Clone(placed[i].Seats)
		}
		s.keepDevices(placed)
		after := make([]DeviceSet, nodes)
		for i, p := range placed {
			for _, seat := range p.Seats {
				j := s.view.Jobs[p.Job]
				usable, had := s.view.Cluster.Nodes[seat.Node].Usable(), heldOn(j, seat.Node)
				if seat.Devices&^usable != 0 || seat.Devices&after[seat.Node] != 0 {
					t.Fatalf("job %d has %v of node %d, of which not all is free", p.Job, seat.Devices, seat.Node)
				}
				after[seat.Node] |= seat.Devices
				was := before[i][slices.IndexFunc(before[i], func(b Seat) bool { return b.Node == seat.Node })].Devices
				if seat.Devices.Count() != was.Count() {
					t.Fatalf("job %d was given %v of node %d, and has %v", p.Job, was, seat.Node, seat.Devices)
				}
				if kept := (seat.Devices & had).Count(); kept != min((had&usable).Count(), was.Count()) {
					t.Fatalf("job %d keeps %d of %v on node %d, and has %v", p.Job, kept, had, seat.Node, seat.Devices)
				}
			}
			if len(p.Seats) != len(before[i]) {
				t.Fatalf("job %d has %v, was given %v", p.Job, p.Seats, before[i])
			}
		}
	})
}
