package kube

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
)

// pool is a pool of which all slices were seen.
type pool struct {
	devices map[string]*piece   // all of them, by name
	offers  map[string][]*piece // by node: those of the class that can be given away all together
	nodes   []string
	totals  map[counter]resource.Quantity
}

// piece is a device of a pool. One that consumes counters overlaps with others: it is a part of a device, or a device of which
// there are parts.
type piece struct {
	device   gang.Device
	node     string // empty for one that no one node has
	index    int64  // its attribute of that name; -1 when it has none
	kind     string
	tainted  bool
	consumes map[counter]resource.Quantity
}

// counter is a number of things of which a pool has so many.
type counter struct{ set, name string }

// newPool makes a pool of its slices; whole is false while some of the newest generation are missing.
func (v *inventory) newPool(id poolID) (p *pool, whole bool) {
	var list []*resourcev1.ResourceSlice
	newest, count := int64(math.MinInt64), int64(0)
	for _, s := range v.slices[id] {
		newest = max(newest, s.Spec.Pool.Generation)
	}
	for _, s := range v.slices[id] {
		if s.Spec.Pool.Generation == newest {
			list = append(list, s)
			count = max(count, s.Spec.Pool.ResourceSliceCount)
		}
	}
	if len(list) == 0 || int64(len(list)) != count {
		return nil, false
	}
	slices.SortFunc(list, func(a, b *resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	return v.assemble(id, list), true
}

// assemble is the pool that slices of one generation make.
func (v *inventory) assemble(id poolID, list []*resourcev1.ResourceSlice) *pool {
	p := &pool{devices: map[string]*piece{}, offers: map[string][]*piece{}, totals: map[counter]resource.Quantity{}}
	for _, s := range list {
		for _, set := range s.Spec.SharedCounters {
			for name, c := range set.Counters {
				p.totals[counter{set.Name, name}] = c.Value
			}
		}
	}
	var faulty error
	for _, s := range list {
		for i := range s.Spec.Devices {
			d := &s.Spec.Devices[i]
			made := newPiece(id, &s.Spec, d)
			p.devices[d.Name] = made
			if made.node == "" || unsupported(d) {
				continue
			}
			selected, err := v.class.selects(id.driver, d)
			if faulty = cmp.Or(faulty, err); selected {
				p.offers[made.node] = append(p.offers[made.node], made)
			}
		}
	}
	if faulty != nil {
		v.log.Warn("skipping devices for which a selector of the DeviceClass fails", "driver", id.driver, "pool", id.name, "error", faulty)
	}
	p.nodes = slices.Sorted(maps.Keys(p.offers))
	for _, node := range p.nodes {
		p.offers[node] = p.apart(p.offers[node])
	}
	return p
}

// unsupported reports whether a device asks of schedulers what this one does not do: to wait for conditions before a pod is bound,
// to keep parts of some kinds apart, or to account for what the node itself has.
func unsupported(d *resourcev1.Device) bool {
	return len(d.BindingConditions) > 0 || len(d.NodeAllocatableResources) > 0 ||
		slices.ContainsFunc(d.ConsumesCounters, func(c resourcev1.DeviceCounterConsumption) bool { return len(c.CompatibilityGroups) > 0 })
}

func newPiece(id poolID, s *resourcev1.ResourceSliceSpec, d *resourcev1.Device) *piece {
	p := &piece{
		device: gang.Device{Driver: id.driver, Pool: id.name, Name: d.Name}, index: -1, kind: kindOf(d), consumes: map[counter]resource.Quantity{},
		tainted: slices.ContainsFunc(d.Taints, func(t resourcev1.DeviceTaint) bool {
			return t.Effect == resourcev1.DeviceTaintEffectNoSchedule || t.Effect == resourcev1.DeviceTaintEffectNoExecute
		}),
	}
	switch {
	case s.NodeName != nil:
		p.node = *s.NodeName
	case d.NodeName != nil:
		p.node = *d.NodeName
	}
	if a := attribute(d, "index"); a != nil && a.IntValue != nil && *a.IntValue >= 0 {
		p.index = *a.IntValue
	}
	for _, c := range d.ConsumesCounters {
		for name, value := range c.Counters {
			p.consumes[counter{c.CounterSet, name}] = value.Value
		}
	}
	return p
}

// attribute is that of a name, in whatever domain; that without one first.
func attribute(d *resourcev1.Device, name string) *resourcev1.DeviceAttribute {
	if a, ok := d.Attributes[resourcev1.QualifiedName(name)]; ok {
		return &a
	}
	for _, full := range slices.Sorted(maps.Keys(d.Attributes)) {
		if _, last, found := strings.Cut(string(full), "/"); found && last == name {
			a := d.Attributes[full]
			return &a
		}
	}
	return nil
}

// kindOf is the accelerator type that a device says it is of, as labels of nodes write it.
func kindOf(d *resourcev1.Device) string {
	for _, name := range [...]string{"productName", "model"} {
		if a := attribute(d, name); a != nil && a.StringValue != nil && *a.StringValue != "" {
			return strings.ReplaceAll(*a.StringValue, " ", "-")
		}
	}
	return ""
}

// apart keeps devices that can be given away all together: of those that overlap the largest, that is whole devices rather than
// their parts.
func (p *pool) apart(list []*piece) []*piece {
	sortPieces(list)
	largest := slices.Clone(list)
	slices.SortStableFunc(largest, func(a, b *piece) int { return cmp.Compare(p.share(b), p.share(a)) })
	used := map[counter]resource.Quantity{}
	kept := map[*piece]bool{}
	for _, d := range largest {
		if len(p.exceeded(used, d)) == 0 {
			d.consume(used)
			kept[d] = true
		}
	}
	return slices.DeleteFunc(list, func(d *piece) bool { return !kept[d] })
}

// share is how much of its pool a device consumes, as a sum over counters.
func (p *pool) share(d *piece) (sum float64) {
	for _, c := range slices.SortedFunc(maps.Keys(d.consumes), compareCounters) {
		total, used := p.totals[c], d.consumes[c]
		if t := total.AsApproximateFloat64(); t > 0 {
			sum += used.AsApproximateFloat64() / t
		}
	}
	return sum
}

func compareCounters(a, b counter) int {
	return cmp.Or(strings.Compare(a.set, b.set), strings.Compare(a.name, b.name))
}

// exceeded are the counters of which there is not enough for one more device.
func (p *pool) exceeded(used map[counter]resource.Quantity, d *piece) (list []counter) {
	for c, wants := range d.consumes {
		sum, total := used[c].DeepCopy(), p.totals[c]
		if sum.Add(wants); sum.Cmp(total) > 0 {
			list = append(list, c)
		}
	}
	return list
}

// consume counts a device.
func (d *piece) consume(used map[counter]resource.Quantity) {
	for c, wants := range d.consumes {
		sum := used[c].DeepCopy()
		sum.Add(wants)
		used[c] = sum
	}
}

// Beside are the claims of others because of which these devices of a node cannot be held: they hold one of them, or what
// overlaps with it.
func (v *inventory) Beside(node string, devices core.DeviceSet) []gang.Holder {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.refresh()
	return v.beside(node, devices)
}

func (v *inventory) beside(node string, devices core.DeviceSet) (holders []gang.Holder) {
	s := v.shelves[node]
	if s == nil {
		return nil
	}
	wanted := map[poolID]core.DeviceSet{}
	for _, i := range devices.List() {
		if i < len(s.order) && len(v.others[poolOf(s.order[i])]) > 0 {
			wanted[poolOf(s.order[i])] |= core.DeviceSet(1) << i
		}
	}
	for id, set := range wanted {
		holders = append(holders, v.besideIn(id, node, s, set)...)
	}
	slices.SortFunc(holders, func(a, b gang.Holder) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return holders
}

// besideIn is beside for the devices of one pool.
func (v *inventory) besideIn(id poolID, node string, s *shelf, set core.DeviceSet) (holders []gang.Holder) {
	p, over := v.pools[id], v.exceeded(id, s, set)
	for uid, c := range v.others[id] {
		var exact core.DeviceSet
		overlaps := false
		for _, d := range c.devices {
			if i := slices.Index(s.order, d); i >= 0 && set&(core.DeviceSet(1)<<i) != 0 {
				exact |= core.DeviceSet(1) << i
			}
			if p != nil && poolOf(d) == id && p.devices[d.Name] != nil {
				for k := range p.devices[d.Name].consumes {
					overlaps = overlaps || over[k]
				}
			}
		}
		if exact != 0 || overlaps {
			holders = append(holders, gang.Holder{
				Namespace: c.namespace, Name: c.name, Node: node, UID: uid, Claim: true, Foreign: true, Devices: exact,
			})
		}
	}
	return holders
}

// exceeded are the counters of a pool that devices of a node would exceed, beside what claims of others hold.
func (v *inventory) exceeded(id poolID, s *shelf, set core.DeviceSet) map[counter]bool {
	p, over := v.pools[id], map[counter]bool{}
	if p == nil {
		return over
	}
	used, ofOthers := map[counter]resource.Quantity{}, map[gang.Device]bool{}
	for _, c := range v.others[id] {
		for _, d := range c.devices {
			if poolOf(d) != id || ofOthers[d] {
				continue // one that is shared consumes once
			}
			if ofOthers[d] = true; p.devices[d.Name] != nil {
				p.devices[d.Name].consume(used)
			}
		}
	}
	for _, i := range set.List() {
		if i >= len(s.pieces) || s.pieces[i] == nil || ofOthers[s.order[i]] {
			continue
		}
		for _, c := range p.exceeded(used, s.pieces[i]) {
			over[c] = true
		}
		s.pieces[i].consume(used)
	}
	return over
}
