package kube

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// gpu is a device that a driver publishes.
func gpu(name string, edit ...func(*resourcev1.Device)) resourcev1.Device {
	d := resourcev1.Device{Name: name}
	for _, e := range edit {
		e(&d)
	}
	return d
}

func deviceTaint(effect resourcev1.DeviceTaintEffect) func(*resourcev1.Device) {
	return func(d *resourcev1.Device) {
		d.Taints = append(d.Taints, resourcev1.DeviceTaint{Key: "example.com/broken", Effect: effect})
	}
}

func counterSet(name string, units int64) resourcev1.CounterSet {
	return resourcev1.CounterSet{Name: name, Counters: map[string]resourcev1.Counter{"units": {Value: *resource.NewQuantity(units, resource.DecimalSI)}}}
}

func consumes(set string, units int64) func(*resourcev1.Device) {
	return func(d *resourcev1.Device) {
		d.ConsumesCounters = append(d.ConsumesCounters, resourcev1.DeviceCounterConsumption{
			CounterSet: set, Counters: counterSet("", units).Counters,
		})
	}
}

// says gives a device an attribute, which is a string or an int64.
func says(name resourcev1.QualifiedName, value any) func(*resourcev1.Device) {
	return func(d *resourcev1.Device) {
		if d.Attributes == nil {
			d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
		}
		switch v := value.(type) {
		case string:
			d.Attributes[name] = resourcev1.DeviceAttribute{StringValue: &v}
		case int64:
			d.Attributes[name] = resourcev1.DeviceAttribute{IntValue: &v}
		}
	}
}

const (
	driverA = "gpu.example.com"
	driverB = "nic.example.com"
)

// part is a slice of a pool of node a.
func part(name, driver string, generation, of int64, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	node := "a"
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Devices: devices,
			Pool: resourcev1.ResourcePool{Name: "a", Generation: generation, ResourceSliceCount: of},
		},
	}
}

func counters(s *resourcev1.ResourceSlice, sets ...resourcev1.CounterSet) *resourcev1.ResourceSlice {
	s.Spec.SharedCounters = sets
	return s
}

// taking is a claim that has devices of the pool of node a.
func taking(name string, devices ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "else", Name: name, UID: types.UID(name)}}
	c.Status.Allocation = &resourcev1.AllocationResult{}
	for _, d := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Driver: driverA, Pool: "a", Device: d,
		})
	}
	return c
}

// inventoryOf is one of the class of the devices of driverA, or of what other selectors say.
func inventoryOf(t interface{ Fatal(...any) }, selectors ...string) *inventory {
	if len(selectors) == 0 {
		selectors = []string{fmt.Sprintf("device.driver == %q", driverA)}
	}
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	for _, s := range selectors {
		c.Spec.Selectors = append(c.Spec.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: s}})
	}
	v := newInventory(slog.New(slog.DiscardHandler))
	read, err := readClass(c)
	if err != nil {
		t.Fatal(err)
	}
	v.set(read)
	return v
}

// summary is what node a offers: its devices by index, each with a letter when it is missing (m) or taken (t).
func (v *inventory) summary(held core.DeviceSet) (list []string) {
	o := v.offer("a", held)
	for i, d := range v.shelves["a"].order {
		text := d.Name
		if one := core.DeviceSet(1) << i; o.missing&one != 0 {
			text += " m"
		} else if o.taken&one != 0 {
			text += " t"
		}
		list = append(list, text)
	}
	return list
}

func TestInventory(t *testing.T) {
	yes, everywhere := true, func(s *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
		all := true
		s.Spec.NodeName, s.Spec.AllNodes = nil, &all
		return s
	}
	partitioned := []*resourcev1.ResourceSlice{
		counters(part("c", driverA, 1, 2), counterSet("c0", 4), counterSet("c1", 4)),
		part("d", driverA, 1, 2,
			gpu("gpu-0", consumes("c0", 4), says("type", "gpu")), gpu("gpu-1", consumes("c1", 4), says("type", "gpu")),
			gpu("mig-0-0", consumes("c0", 1), says("type", "mig")), gpu("mig-0-1", consumes("c0", 1), says("type", "mig")),
			gpu("half-0", consumes("c0", 2), says("type", "half")), gpu("most-0", consumes("c0", 3), says("type", "most"))),
	}
	migOnly := `device.attributes["` + driverA + `"].type == "mig"`
	for name, tc := range map[string]struct {
		selectors []string
		slices    []*resourcev1.ResourceSlice
		claims    []*resourcev1.ResourceClaim
		held      core.DeviceSet
		want      []string
		kind      string
	}{
		"by their names, as people count": {
			slices: []*resourcev1.ResourceSlice{part("s", driverA, 1, 1, gpu("gpu-10"), gpu("gpu-9"), gpu("gpu-09"), gpu("a"))},
			want:   []string{"a", "gpu-09", "gpu-9", "gpu-10"},
		},
		"by their index": {
			slices: []*resourcev1.ResourceSlice{part("s", driverA, 1, 1, gpu("x", says(driverA+"/index", int64(1))), gpu("y", says("index", int64(0))))},
			want:   []string{"y", "x"},
		},
		"by their names, if one has no index": {
			slices: []*resourcev1.ResourceSlice{part("s", driverA, 1, 1, gpu("y", says("index", int64(0))), gpu("x"))},
			want:   []string{"x", "y"},
		},
		"of the class alone": {
			slices: []*resourcev1.ResourceSlice{part("s", driverA, 1, 1, gpu("gpu-0")), part("n", driverB, 1, 1, gpu("nic-0"))},
			want:   []string{"gpu-0"},
		},
		"of several drivers, without selectors of the driver": {
			selectors: []string{`"model" in device.attributes["` + driverA + `"]`},
			slices: []*resourcev1.ResourceSlice{
				part("s", driverA, 1, 1, gpu("gpu-0", says("model", "H200")), gpu("gpu-1")), part("n", driverB, 1, 1, gpu("nic-0", says(driverA+"/model", "H200"))),
			},
			want: []string{"gpu-0", "nic-0"}, kind: "H200",
		},
		"but not those for which a selector fails": {
			selectors: []string{`device.attributes["` + driverA + `"].type == "gpu"`},
			slices:    []*resourcev1.ResourceSlice{part("s", driverA, 1, 1, gpu("gpu-0"), gpu("gpu-1", says("type", "gpu")))},
			want:      []string{"gpu-1"},
		},
		"of a pool that is whole": {
			slices: []*resourcev1.ResourceSlice{part("s", driverA, 1, 2, gpu("gpu-0")), part("t", driverA, 1, 2, gpu("gpu-1"))},
			want:   []string{"gpu-0", "gpu-1"},
		},
		"of the newest generation": {
			slices: []*resourcev1.ResourceSlice{part("s", driverA, 2, 1, gpu("gpu-0")), part("t", driverA, 1, 2, gpu("gpu-1"))},
			want:   []string{"gpu-0"},
		},
		"not of a pool in pieces": {slices: []*resourcev1.ResourceSlice{part("s", driverA, 1, 2, gpu("gpu-0"))}},
		"not those of no one node": {
			slices: []*resourcev1.ResourceSlice{everywhere(part("s", driverA, 1, 1, gpu("gpu-0")))},
		},
		"but those that name their nodes themselves": {
			slices: []*resourcev1.ResourceSlice{everywhere(part("s", driverA, 1, 1, gpu("gpu-0", func(d *resourcev1.Device) {
				node := "a"
				d.NodeName = &node
			}), gpu("gpu-1")))},
			want: []string{"gpu-0"},
		},
		"not those that ask more of a scheduler": {
			slices: []*resourcev1.ResourceSlice{part("s", driverA, 1, 1, gpu("gpu-0"), gpu("gpu-1", func(d *resourcev1.Device) {
				d.BindingConditions = []string{"attached"}
			}))},
			want: []string{"gpu-0"},
		},
		"of the type of most": {
			slices: []*resourcev1.ResourceSlice{part("s", driverA, 1, 1,
				gpu("gpu-0", says("productName", "NVIDIA A100")), gpu("gpu-1", says("productName", "NVIDIA H200")), gpu("gpu-2", says("productName", "NVIDIA H200")))},
			want: []string{"gpu-1", "gpu-2"}, kind: "NVIDIA-H200",
		},
		"with taints": {
			slices: []*resourcev1.ResourceSlice{part("s", driverA, 1, 1,
				gpu("gpu-0", deviceTaint(resourcev1.DeviceTaintEffectNoSchedule)), gpu("gpu-1", deviceTaint(resourcev1.DeviceTaintEffectNoExecute)),
				gpu("gpu-2", deviceTaint(resourcev1.DeviceTaintEffectNone)))},
			want: []string{"gpu-0 t", "gpu-1 t", "gpu-2"},
		},
		"that others have": {
			slices: []*resourcev1.ResourceSlice{part("s", driverA, 1, 1, gpu("gpu-0"), gpu("gpu-1"))},
			claims: []*resourcev1.ResourceClaim{taking("f", "gpu-1", "gpu-7")}, want: []string{"gpu-0", "gpu-1 t"},
		},
		"that others share": {
			slices: []*resourcev1.ResourceSlice{part("s", driverA, 1, 1, gpu("gpu-0", func(d *resourcev1.Device) { d.AllowMultipleAllocations = &yes }))},
			claims: []*resourcev1.ResourceClaim{taking("f", "gpu-0"), taking("g", "gpu-0")}, want: []string{"gpu-0 t"},
		},
		"that others only watch": {
			slices: []*resourcev1.ResourceSlice{part("s", driverA, 1, 1, gpu("gpu-0"))},
			claims: []*resourcev1.ResourceClaim{func() *resourcev1.ResourceClaim {
				c := taking("f", "gpu-0")
				c.Status.Allocation.Devices.Results[0].AdminAccess = &yes
				return c
			}()},
			want: []string{"gpu-0"},
		},
		"whole, and no parts":            {slices: partitioned, want: []string{"gpu-0", "gpu-1"}},
		"whole, and others have a part":  {slices: partitioned, claims: []*resourcev1.ResourceClaim{taking("f", "mig-0-1")}, want: []string{"gpu-0 t", "gpu-1"}},
		"parts, where the class says so": {selectors: []string{migOnly}, slices: partitioned, want: []string{"mig-0-0", "mig-0-1"}},
		"parts, and others have the whole": {
			selectors: []string{migOnly}, slices: partitioned, claims: []*resourcev1.ResourceClaim{taking("f", "gpu-0")},
			want: []string{"mig-0-0 t", "mig-0-1 t"},
		},
		"parts, and others have another part": {
			selectors: []string{migOnly}, slices: partitioned, claims: []*resourcev1.ResourceClaim{taking("f", "half-0")},
			want: []string{"mig-0-0", "mig-0-1"},
		},
		"parts, of which one fits beside others": {
			selectors: []string{migOnly}, slices: partitioned, claims: []*resourcev1.ResourceClaim{taking("f", "most-0")},
			want: []string{"mig-0-0", "mig-0-1 t"},
		},
		"parts, of which that fits which a job has": {
			selectors: []string{migOnly}, slices: partitioned, claims: []*resourcev1.ResourceClaim{taking("f", "most-0")}, held: 1 << 1,
			want: []string{"mig-0-0 t", "mig-0-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := inventoryOf(t, tc.selectors...)
			for _, s := range tc.slices {
				v.slice(s, false)
			}
			for _, c := range tc.claims {
				if !v.claim(c, false) && name != "that others only watch" {
					t.Errorf("claim %s changes nothing", c.Name)
				}
			}
			if o := v.offer("a", 0); len(tc.want) == 0 {
				if o.there() {
					t.Errorf("the node has %+v, want nothing", o)
				}
				return
			} else if o.accelerator != tc.kind {
				t.Errorf("the type is %q, want %q", o.accelerator, tc.kind)
			}
			if diff := cmp.Diff(tc.want, v.summary(tc.held)); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
			for _, c := range tc.claims {
				v.claim(c, true)
			}
			if len(v.claims) > 0 || len(v.others[poolID{driverA, "a"}]) > 0 {
				t.Errorf("claims that are gone hold %v", v.claims)
			}
		})
	}
}

// Devices that come and go keep their index; new ones get the next.
func TestIndicesStay(t *testing.T) {
	v := inventoryOf(t)
	for i, tc := range []struct {
		devices []resourcev1.Device
		want    []string
	}{
		{[]resourcev1.Device{gpu("b"), gpu("d")}, []string{"b", "d"}},
		{[]resourcev1.Device{gpu("d")}, []string{"b m", "d"}},
		{[]resourcev1.Device{gpu("a"), gpu("d"), gpu("c")}, []string{"b m", "d", "a", "c"}},
		{[]resourcev1.Device{gpu("b")}, []string{"b", "d m", "a m", "c m"}},
	} {
		v.slice(part("s", driverA, int64(i), 1, tc.devices...), false)
		if diff := cmp.Diff(tc.want, v.summary(0)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

// Devices whose driver published them, and publishes nothing any more, are there for a while: it may only start anew.
func TestDriverGone(t *testing.T) {
	v := inventoryOf(t)
	s := part("s", driverA, 1, 1, gpu("b"), gpu("d"))
	for i, tc := range []struct {
		now  float64
		do   func()
		next float64 // when the devices go
		want []string
	}{
		{now: 10, do: func() { v.slice(s, false) }, next: inf, want: []string{"b", "d"}},
		{now: 20, do: func() { v.slice(s, true) }, next: 60, want: []string{"b", "d"}},
		{now: 50, next: 60, want: []string{"b", "d"}},
		{now: 55, do: func() { v.slice(s, false) }, next: inf, want: []string{"b", "d"}},
		{now: 60, do: func() { v.slice(s, true) }, next: 100, want: []string{"b", "d"}},
		{now: 99, do: func() { v.slice(part("t", driverA, 1, 2, gpu("x")), false) }, next: inf, want: []string{"b", "d"}}, // it began to publish
		{now: 101, do: func() { v.slice(part("t", driverA, 1, 2), true) }, next: 141, want: []string{"b", "d"}},
		{now: 141, next: inf, want: []string{"b m", "d m"}},
		{now: 150, do: func() { v.slice(s, false) }, next: inf, want: []string{"b", "d"}},
	} {
		if tc.do != nil {
			tc.do()
		}
		if next := v.expire(tc.now, 40); next != tc.next {
			t.Errorf("step %d: the next look is due at %v, want %v", i, next, tc.next)
		}
		if diff := cmp.Diff(tc.want, v.summary(0)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

// A scheduler that begins to lead gives the devices of members the indices that members have them by.
func TestPin(t *testing.T) {
	member := func(name, devices string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{gang.NodeAnnotation: "a", gang.DevicesAnnotation: devices}}}
	}
	for name, tc := range map[string]struct {
		pods   []*corev1.Pod
		claims map[string]*resourcev1.ResourceClaim
		want   []string
	}{
		"nobody": {want: []string{"gpu-0", "gpu-1", "gpu-2"}},
		"in another order": {
			pods:   []*corev1.Pod{member("x", "1,3"), member("y", "0")},
			claims: map[string]*resourcev1.ResourceClaim{"x": taking("x", "gpu-2", "gpu-0"), "y": taking("y", "gpu-9")},
			want:   []string{"gpu-9 m", "gpu-2", "gpu-1", "gpu-0"},
		},
		"without a claim, or what it is to hold": {
			pods:   []*corev1.Pod{member("x", "0"), member("y", "0-1"), member("z", "")},
			claims: map[string]*resourcev1.ResourceClaim{"y": taking("y", "gpu-2"), "z": taking("z", "gpu-2")},
			want:   []string{"gpu-0", "gpu-1", "gpu-2"},
		},
		"that contradict each other": {
			pods:   []*corev1.Pod{member("x", "0"), member("y", "0"), member("z", "1")},
			claims: map[string]*resourcev1.ResourceClaim{"x": taking("x", "gpu-2"), "y": taking("y", "gpu-1"), "z": taking("z", "gpu-2")},
			want:   []string{"gpu-2", "gpu-0", "gpu-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := inventoryOf(t)
			v.pin(tc.pods, func(p *corev1.Pod) *resourcev1.ResourceClaim { return tc.claims[p.Name] })
			v.slice(part("s", driverA, 1, 1, gpu("gpu-0"), gpu("gpu-1"), gpu("gpu-2")), false)
			if diff := cmp.Diff(tc.want, v.summary(0)); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever slices and claims come and go, in whatever order: an index means one device for good, jobs are offered nothing that
// overlaps with what others hold or with each other, and what is offered is what there is.
func TestInventoryInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := inventoryOf(t)
		const sets, units = 3, 4
		consumed := map[string]map[string]int64{} // by device and set, as last published
		theirs := map[string][]string{}           // by claim
		known := map[int]string{}
		published := map[string]bool{}
		v.slice(counters(part("c", driverA, 0, 2), counterSet("c0", units), counterSet("c1", units), counterSet("c2", units)), false)
		for step := range int64(rapid.IntRange(1, 12).Draw(t, "steps")) {
			if rapid.Bool().Draw(t, "slice") {
				var devices []resourcev1.Device
				clear(consumed)
				clear(published)
				for _, i := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "devices")[:rapid.IntRange(0, 8).Draw(t, "count")] {
					name := "gpu-" + strconv.Itoa(i)
					var edits []func(*resourcev1.Device)
					consumed[name], published[name] = map[string]int64{}, true
					if amount := rapid.Int64Range(0, units).Draw(t, "units"); amount > 0 {
						set := "c" + strconv.Itoa(rapid.IntRange(0, sets-1).Draw(t, "set"))
						edits = append(edits, consumes(set, amount))
						consumed[name][set] = amount
					}
					devices = append(devices, gpu(name, edits...))
				}
				v.slice(counters(part("c", driverA, step+1, 2), counterSet("c0", units), counterSet("c1", units), counterSet("c2", units)), false)
				v.slice(part("d", driverA, step+1, 2, devices...), false)
			} else {
				name := rapid.SampledFrom([]string{"f", "g"}).Draw(t, "claim")
				devices := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-8"}), 0, 3, rapid.ID).Draw(t, "theirs")
				gone := rapid.Bool().Draw(t, "gone")
				if v.claim(taking(name, devices...), gone); gone {
					devices = nil
				}
				theirs[name] = devices
			}
			held := core.DeviceSet(rapid.Uint64Range(0, 255).Draw(t, "held"))
			o := v.offer("a", held)
			usable := core.FirstDevices(o.devices) &^ o.missing &^ o.taken
			used, taken := map[string]int64{}, map[string]bool{}
			for _, devices := range theirs {
				for _, d := range devices {
					if !taken[d] {
						for set, amount := range consumed[d] {
							used[set] += amount
						}
					}
					taken[d] = true
				}
			}
			beside := maps.Clone(used)
			for i, d := range v.devices("a") {
				if was := known[i]; was != "" && d.Name != "" && was != d.Name {
					t.Fatalf("index %d was %s and is %s", i, was, d.Name)
				}
				if d.Name != "" {
					known[i] = d.Name
				}
				if d.Name != "" != (o.missing&(1<<i) == 0) || d.Name != "" && !published[d.Name] {
					t.Fatalf("device %d is %q, and %v are missing", i, d.Name, o.missing.List())
				}
				if usable&(1<<i) == 0 {
					continue
				}
				if taken[d.Name] {
					t.Fatalf("%s is offered, and others have it", d.Name)
				}
				for set, amount := range consumed[d.Name] {
					if used[set] += amount; used[set] > units {
						t.Fatalf("of %s more is given away than there is", set)
					}
				}
			}
			// All that fits beside it is offered: one more that is there never does.
			for _, i := range o.taken.List() {
				name := v.devices("a")[i].Name
				fits := !taken[name]
				for set, amount := range consumed[name] {
					fits = fits && used[set]+amount <= units
				}
				if fits {
					t.Fatalf("%s is not offered, and fits beside %v", name, beside)
				}
			}
			if blocked := v.Beside("a", usable); len(blocked) > 0 {
				t.Fatalf("what is offered is kept from us by %v", blocked)
			}
		}
		// Who sees it all at once sees the same devices.
		again := inventoryOf(t)
		for _, s := range v.slices[poolID{driverA, "a"}] {
			again.slice(s, false)
		}
		names := func(v *inventory) []string {
			var list []string
			for _, d := range v.devices("a") {
				if d.Name != "" {
					list = append(list, d.Name)
				}
			}
			slices.Sort(list)
			return list
		}
		if diff := cmp.Diff(names(v), names(again)); diff != "" {
			t.Fatalf("devices (-in turn +at once):\n%s", diff)
		}
	})
}

func TestNaturalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-b0-2]{0,5}`)
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		if natural(a, b) != -natural(b, a) || (natural(a, b) == 0) != (a == b) {
			t.Fatalf("natural(%q, %q) is %d, the other way %d", a, b, natural(a, b), natural(b, a))
		}
		if natural(a, b) <= 0 && natural(b, c) <= 0 && natural(a, c) > 0 {
			t.Fatalf("%q, %q and %q have no order", a, b, c)
		}
	})
}

// A cluster of 1,000 nodes of eight devices: all slices read, and then a look at every node and at all that holds devices.
func BenchmarkInventory(b *testing.B) {
	v := inventoryOf(b)
	var nodes []*corev1.Node
	publish := func() {
		for i := range 1000 {
			name := "node-" + strconv.Itoa(i)
			s := part(name, driverA, 1, 1)
			s.Spec.NodeName, s.Spec.Pool.Name = &name, name
			for k := range 8 {
				s.Spec.Devices = append(s.Spec.Devices, gpu("gpu-"+strconv.Itoa(k), says("model", "H200")))
			}
			v.slice(s, false)
			if len(nodes) < 1000 {
				nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}})
			}
		}
	}
	publish()
	b.Run("slices", func(b *testing.B) {
		for range b.N {
			publish()
			v.devices("node-0")
		}
	})
	b.Run("nodes", func(b *testing.B) {
		for range b.N {
			for _, n := range nodes {
				if o := v.offer(n.Name, 3); !o.there() {
					b.Fatal("no devices")
				}
			}
		}
	})
	b.Run("holders", func(b *testing.B) {
		c := gang.Cluster{Version: "1", Nodes: nodes, Devices: v.devices, Beside: v.Beside}
		for i := range 5000 {
			name := "pod-" + strconv.Itoa(i)
			yes := true
			claim := taking(name, "gpu-"+strconv.Itoa(i%5))
			claim.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: name, UID: types.UID(name), Controller: &yes}}
			claim.Status.Allocation.Devices.Results[0].Pool = "node-" + strconv.Itoa(i/5)
			c.Claims = append(c.Claims, claim)
			c.Pods = append(c.Pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Annotations: map[string]string{
					gang.NodeAnnotation: "node-" + strconv.Itoa(i/5), gang.DevicesAnnotation: strconv.Itoa(i % 5),
				}},
				Spec: corev1.PodSpec{SchedulerName: trainingjob.SchedulerName, NodeName: "node-" + strconv.Itoa(i/5)},
			})
		}
		book := gang.NewBook(gang.Options{Class: "gpu"})
		for range b.N {
			book.See(c)
		}
	})
}
