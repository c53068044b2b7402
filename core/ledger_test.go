package core

import "testing"

// A seating that cannot be taken as a whole takes nothing, and devices are free once however often they are given back.
func TestLedgerTakesAllOrNothing(t *testing.T) {
	var l Ledger
	l.Reset(&Cluster{Accelerators: []string{"t4"}, Nodes: []Node{{Devices: 4}, {ID: 1, Devices: 2}}})
	if l.Occupy([]Seat{{Node: 0, Devices: 0b0011}, {Node: 1, Devices: 0b0100}}) {
		t.Fatal("occupied a device that does not exist")
	}
	if l.Total() != 6 || l.Free(0) != 4 || l.Free(1) != 2 {
		t.Errorf("%d free, %d and %d by node, want 6, 4 and 2", l.Total(), l.Free(0), l.Free(1))
	}
	seats := []Seat{{Node: 0, Devices: 0b0011}, {Node: 1, Devices: 0b0001}}
	if !l.Occupy(seats) || l.Total() != 3 {
		t.Errorf("%d free after 3 of 6 were taken", l.Total())
	}
	for range 2 {
		if l.Release(seats); l.Total() != 6 || l.Free(0) != 4 {
			t.Errorf("%d free, %d on the first node, want 6 and 4", l.Total(), l.Free(0))
		}
	}
}

// A ledger looks at the nodes again when the health of one changed, and whatever was taken before is free again.
func TestLedgerFollowsTheHealthOfAView(t *testing.T) {
	c := &Cluster{Accelerators: []string{"t4"}, Nodes: []Node{{Devices: 4}, {ID: 1, Devices: 2}}}
	v := &View{Cluster: c}
	var l Ledger
	want := func(total int) {
		t.Helper()
		if l.ResetTo(v); l.Total() != total {
			t.Errorf("%d free, want %d", l.Total(), total)
		}
		l.Take(0, 3)
	}
	want(6)
	want(6)
	c.Nodes[0].Health, v.HealthChanges = Draining, 1
	want(2)
	c.Nodes[0].Health, v.HealthChanges = Ready, 2
	want(6)
	v.Cluster = &Cluster{Accelerators: []string{"t4"}, Nodes: []Node{{Devices: 8}}}
	want(8)
}

// Reserved devices are nobody's to take but by Occupy, and are reserved again when they are given back, until the next reset.
func TestLedgerReserves(t *testing.T) {
	v := &View{Cluster: &Cluster{Accelerators: []string{"t4"}, Nodes: []Node{{Devices: 4}, {ID: 1, Devices: 2}}}}
	var l Ledger
	want := func(total int, free ...DeviceSet) {
		t.Helper()
		if l.Total() != total || l.FreeDevices(0) != free[0] || l.FreeDevices(1) != free[1] || l.Free(0) != free[0].Count() {
			t.Errorf("%d free, %b and %b by node, want %d, %b", l.Total(), l.FreeDevices(0), l.FreeDevices(1), total, free)
		}
	}
	l.ResetTo(v)
	l.Reserve(nil)
	want(6, 0b1111, 0b11)
	l.Reserve([]Reservation{{Node: 0, Devices: 0b0110}})
	want(4, 0b1001, 0b11)
	if l.Reserved(0) != 0b0110 || l.Reserved(1) != 0 {
		t.Errorf("%b and %b are reserved", l.Reserved(0), l.Reserved(1))
	}
	stays := []Seat{{Node: 0, Devices: 0b0011}}
	if l.Occupy([]Seat{{Node: 0, Devices: 0b0011}, {Node: 1, Devices: 0b100}}) {
		t.Error("a device that there is not was taken")
	}
	want(4, 0b1001, 0b11)
	if !l.Occupy(stays) || l.Occupy(stays) {
		t.Error("who stays has its devices once")
	}
	if l.Occupy([]Seat{{Node: 0, Devices: 0b0010}}) {
		t.Error("a reserved device was taken twice")
	}
	want(3, 0b1000, 0b11)
	if got := l.Take(0, 4); got.Devices != 0b1000 {
		t.Errorf("took %b", got.Devices)
	}
	for range 2 {
		l.Release(stays)
		want(3, 0b0001, 0b11)
	}
	if !l.Occupy(stays) {
		t.Error("who stays has its devices again")
	}
	l.ResetTo(v)
	want(6, 0b1111, 0b11)
	l.Reserve([]Reservation{{Node: 1, Devices: 0b01}})
	l.Reset(v.Cluster)
	want(6, 0b1111, 0b11)
	if l.Release(stays); l.Reserved(1) != 0 {
		t.Error("a reset ends what is reserved")
	}
}
