package placement

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/coretest/drawn"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// keepers are the placements that look at what is reserved.
func keepers() map[string]struct {
	factory core.Factory[core.Placer]
	config  map[string]any
} {
	return map[string]struct {
		factory core.Factory[core.Placer]
		config  map[string]any
	}{
		"first_fit": {NewFirstFit(), nil}, "consolidated": {NewConsolidated(), nil}, "consolidated strict": {NewConsolidated(), map[string]any{"strict": true}},
		"most_free": {NewMostFree(), nil}, "tiresias_skew": {NewTiresiasSkew(), map[string]any{"skewed": []any{"bert", "ncf"}}}, "proposed": {NewProposed(), nil},
		"matching": {NewMatching(), nil}, "buddy": {NewBuddy(), nil}, "tail_eviction": {NewTailEviction(), nil}, "as released": {NewTailEviction(), map[string]any{"fit": prefixSum}},
	}
}

// Others are seated beside what is reserved, on another type or node, or not at all; who runs there stays.
func TestReservedDevicesAreLeft(t *testing.T) {
	strict := map[string]any{"strict": true}
	for name, tc := range map[string]struct {
		factory core.Factory[core.Placer]
		config  map[string]any
		want    string
	}{
		"first_fit":           {NewFirstFit(), nil, policytest.Lines("0: 0[0,1]", "1: 1[0,1]", "2: 1[2,3]", "3: waiting_for_devices 2/0")},
		"consolidated":        {NewConsolidated(), nil, policytest.Lines("0: 0[0,1]", "1: 1[0,1]", "2: 1[2,3]", "3: waiting_for_devices 2/0")},
		"consolidated strict": {NewConsolidated(), strict, policytest.Lines("0: 0[0,1]", "1: 1[0,1]", "2: 1[2,3]", "3: waiting_for_devices 2/0")},
		"buddy":               {NewBuddy(), nil, policytest.Lines("0: 0[0,1]", "1: 1[0,1]", "2: 1[2,3]", "3: waiting_for_devices 2/0")},
		"matching":            {NewMatching(), nil, policytest.Lines("0: 0[0,1]", "1: 1[0,1]", "2: 1[2,3]", "3: waiting_for_devices 2/0")},
	} {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "k80", 4).Obj()).Jobs(
				policytest.Holds(coretest.Seat(0, 0, 1)), policytest.Waits(2), policytest.Waits(2), policytest.Waits(2)).Obj()
			v.Reserved = []core.Reservation{{Job: 9, Node: 0, Devices: 0b1111}}
			if got := policytest.Place(t, policytest.New(t, tc.factory, tc.config), v, policytest.InOrder(v)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// Whoever is granted what, nobody gets devices that are reserved who does not stay on them, and the next round knows nothing of what was reserved before.
func TestNobodyIsSeatedAnewOnReservedDevices(t *testing.T) {
	for name, tc := range keepers() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v, candidates := drawn.View(t)
				if v.Cluster.CountsShares() {
					t.Skip("nothing is reserved there")
				}
				grants := drawGrants(t, v, candidates)
				placer, fresh := policytest.New(t, tc.factory, tc.config), policytest.New(t, tc.factory, tc.config)
				if !core.AbilitiesOf(placer).ReservedKeeper.KeepsReserved() {
					t.Fatal("it does not look at what is reserved")
				}
				v.Reserved = drawReserved(t, v, 0)
				for _, p := range seated(t, placer, v, grants).Placed {
					if core.SameSeats(p.Seats, v.Jobs[p.Job].Seats) {
						continue
					}
					for _, seat := range p.Seats {
						if seat.Devices&v.ReservedOn(seat.Node) != 0 {
							t.Fatalf("job %d gets %v of %v", p.Job, p.Seats, v.Reserved)
						}
					}
				}
				v.Reserved = nil
				if diff := cmp.Diff(seated(t, fresh, v, grants), seated(t, placer, v, grants), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("without reservations (-fresh +after some):\n%s", diff)
				}
			})
		})
	}
}

// Idle devices that are reserved are to others as if a pinned job had them.
func TestReservedDevicesAreAsIfTaken(t *testing.T) {
	for name, tc := range keepers() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v, candidates := drawn.View(t)
				if v.Cluster.CountsShares() {
					t.Skip("nothing is reserved there")
				}
				grants := drawGrants(t, v, candidates)
				reserved := drawReserved(t, v, 1)
				v.Reserved = reserved
				got := seated(t, policytest.New(t, tc.factory, tc.config), v, grants)
				v.Reserved = nil
				if len(reserved) == 0 {
					t.Skip("nothing is idle")
				}
				holder := &core.Job{JobSpec: &core.JobSpec{ID: core.JobID(len(v.Jobs)), Pinned: true, MixesTypes: true}, State: core.Running}
				for _, r := range reserved {
					holder.Seats = append(holder.Seats, core.Seat{Node: r.Node, Devices: r.Devices})
				}
				holder.Held = core.Replicas(holder.Seats)
				v.Jobs, v.Active = append(slices.Clip(v.Jobs), holder), append(slices.Clip(v.Active), holder.ID)
				v.LookForPinned()
				want := seated(t, policytest.New(t, tc.factory, tc.config), v, append([]core.Grant{{Job: holder.ID, Accelerator: core.AnyAccelerator, Replicas: holder.Held}}, grants...))
				want.Placed = slices.DeleteFunc(want.Placed, func(p core.Placement) bool { return p.Job == holder.ID })
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%v is reserved (-as if taken +got):\n%s", reserved, diff)
				}
			})
		})
	}
}

// seated is a copy of the answer of a placer.
func seated(t *rapid.T, p core.Placer, v *core.View, grants []core.Grant) core.Seating {
	s, err := p.Place(context.Background(), v, grants)
	if err != nil {
		t.Fatal(err)
	}
	return core.Seating{Placed: slices.Clone(s.Placed), Unseated: slices.Clone(s.Unseated)}
}

// drawReserved draws devices of some nodes that are reserved for a job: usable ones, and with idle 1 those that nobody has.
func drawReserved(t *rapid.T, v *core.View, idle int) (of []core.Reservation) {
	var free core.Ledger
	free.ResetTo(v)
	for _, j := range v.Jobs {
		if idle == 1 && j != nil {
			free.Occupy(j.Seats)
		}
	}
	for i := range v.Cluster.Nodes {
		n := core.NodeID(i)
		if devices := free.FreeDevices(n) & core.DeviceSet(rapid.Uint64().Draw(t, "reserved")); devices != 0 && rapid.Bool().Draw(t, "of the node") {
			of = append(of, core.Reservation{Job: -1, Node: n, Devices: devices})
		}
	}
	return of
}
