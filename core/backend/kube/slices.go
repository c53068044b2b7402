package kube

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
)

// inventory is the devices that nodes have by name, where claims give devices: those that a DeviceClass selects, from the
// ResourceSlices of drivers, and what claims of others hold of them. Its methods may be called from any goroutine.
//
// A device has the same index on its node for as long as a scheduler leads, also when it comes back after it was gone. The next
// scheduler reads the indices of devices that jobs have from their claims (see pin).
type inventory struct {
	log *slog.Logger

	mutex   sync.Mutex
	class   *class
	slices  map[poolID]map[types.UID]*resourcev1.ResourceSlice
	dirty   map[poolID]bool
	pools   map[poolID]*pool
	away    map[poolID]float64 // pools without slices: since when, in seconds of the run; justNow until somebody looks
	shelves map[string]*shelf
	others  map[poolID]map[types.UID]*otherClaim
	claims  map[types.UID]*otherClaim
}

// poolID names a pool: names of pools are those of their drivers.
type poolID struct{ driver, name string }

// shelf is the devices of one node.
type shelf struct {
	order  []gang.Device // by index; the zero value where none ever was
	pieces []*piece      // the same, as they are offered now; nil for one that is not
	named  []gang.Device // the same by their names; the zero value for one that is not offered. Nobody changes it
	kind   string        // the type of these; empty when they do not say
}

// otherClaim is what a claim of others holds.
type otherClaim struct {
	namespace, name string
	devices         []gang.Device
}

func newInventory(log *slog.Logger) *inventory {
	return &inventory{
		log: log, slices: map[poolID]map[types.UID]*resourcev1.ResourceSlice{}, dirty: map[poolID]bool{}, pools: map[poolID]*pool{},
		away: map[poolID]float64{}, shelves: map[string]*shelf{}, others: map[poolID]map[types.UID]*otherClaim{}, claims: map[types.UID]*otherClaim{},
	}
}

// class is a DeviceClass that can be read.
type class struct {
	selectors []*selector
	config    []resourcev1.DeviceAllocationConfiguration
}

// readClass compiles the selectors of a class.
func readClass(c *resourcev1.DeviceClass) (*class, error) {
	compiler, err := newSelectorCompiler()
	if err != nil {
		return nil, err
	}
	read := new(class)
	for i, s := range c.Spec.Selectors {
		if s.CEL == nil {
			return nil, fmt.Errorf("DeviceClass %q: selector %d is of a kind that this release does not know", c.Name, i)
		}
		compiled, err := compiler.compile(s.CEL.Expression)
		if err != nil {
			return nil, fmt.Errorf("DeviceClass %q: selector %d, %q: %w", c.Name, i, s.CEL.Expression, err)
		}
		read.selectors = append(read.selectors, compiled)
	}
	for _, config := range c.Spec.Config {
		read.config = append(read.config, resourcev1.DeviceAllocationConfiguration{
			Source: resourcev1.AllocationConfigSourceClass, DeviceConfiguration: config.DeviceConfiguration,
		})
	}
	return read, nil
}

// selects reports whether a device is one of the class: one for which all selectors hold.
func (c *class) selects(driver string, d *resourcev1.Device) (bool, error) {
	for _, s := range c.selectors {
		matches, err := s.matches(driver, d)
		if err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}

// choose reads the DeviceClass of the config.
func (v *inventory) choose(ctx context.Context, all *clients, name string) error {
	object, err := all.DeviceClasses().Get(ctx, name, metav1.GetOptions{})
	problem := core.Diagnostic{Path: "backend.config.device_class"}
	switch {
	case apierrors.IsNotFound(err):
		problem.Summary = fmt.Sprintf("there is no DeviceClass %q", name)
		problem.Hint = "`kubectl get deviceclasses` lists those that drivers brought; leave device_class out for extended resources"
		return core.Diagnostics{problem}
	case apierrors.IsForbidden(err):
		problem.Summary, problem.Hint = err.Error(), "`quartet kube manifests --dra` gives the rights"
		return core.Diagnostics{problem}
	case err != nil:
		return fmt.Errorf("read DeviceClass %q: %w", name, err)
	}
	read, err := readClass(object)
	if err != nil {
		problem.Summary, problem.Hint = err.Error(), "name a class whose selectors are CEL that this release can read"
		return core.Diagnostics{problem}
	}
	v.set(read)
	return nil
}

func (v *inventory) set(c *class) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.class = c
	for id := range v.slices {
		v.dirty[id] = true
	}
}

// edited takes in that a class was edited. One that is gone, or cannot be read any more, goes on as it was.
func (v *inventory) edited(c *resourcev1.DeviceClass, gone bool) {
	if gone {
		v.log.Warn("the DeviceClass was deleted; its devices are used as before", "class", c.Name)
		return
	}
	read, err := readClass(c)
	if err != nil {
		v.log.Warn("cannot read the changed DeviceClass; using it as it was", "error", err)
		return
	}
	v.set(read)
}

// slice takes in a ResourceSlice.
func (v *inventory) slice(s *resourcev1.ResourceSlice, gone bool) {
	id := poolID{s.Spec.Driver, s.Spec.Pool.Name}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if gone {
		delete(v.slices[id], s.UID)
	} else {
		if v.slices[id] == nil {
			v.slices[id] = map[types.UID]*resourcev1.ResourceSlice{}
		}
		v.slices[id][s.UID] = s
	}
	v.dirty[id] = true
}

// claim takes in a claim of others, and reports whether it holds other devices than before. One that is gone holds none.
func (v *inventory) claim(c *resourcev1.ResourceClaim, gone bool) bool {
	var devices []gang.Device
	if !gone {
		devices = gang.Allocated(c)
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	was := v.claims[c.UID]
	if was == nil && len(devices) == 0 || was != nil && slices.Equal(was.devices, devices) {
		return false
	}
	if was != nil {
		for _, d := range was.devices {
			delete(v.others[poolOf(d)], c.UID)
		}
		delete(v.claims, c.UID)
	}
	if len(devices) > 0 {
		now := &otherClaim{namespace: c.Namespace, name: c.Name, devices: devices}
		v.claims[c.UID] = now
		for _, d := range devices {
			id := poolOf(d)
			if v.others[id] == nil {
				v.others[id] = map[types.UID]*otherClaim{}
			}
			v.others[id][c.UID] = now
		}
	}
	return true
}

func poolOf(d gang.Device) poolID { return poolID{d.Driver, d.Pool} }

// pin gives the devices of members the indices that the members were given them by: the devices of a claim are in the order of
// their indices. It is for a scheduler that begins to lead, before it asks for anything.
func (v *inventory) pin(pods []*corev1.Pod, claimOf func(*corev1.Pod) *resourcev1.ResourceClaim) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	for _, p := range pods {
		node, indices, ok := gang.Assigned(p)
		c := claimOf(p)
		if !ok || c == nil {
			continue
		}
		devices := gang.Allocated(c)
		if len(devices) != indices.Count() {
			continue
		}
		s := v.shelf(node)
		for i, index := range indices.List() {
			for len(s.order) <= index {
				s.order = append(s.order, gang.Device{})
			}
			if s.order[index] == (gang.Device{}) && !slices.Contains(s.order, devices[i]) {
				s.order[index] = devices[i]
			}
		}
	}
}

func (v *inventory) shelf(node string) *shelf {
	if v.shelves[node] == nil {
		v.shelves[node] = new(shelf)
	}
	return v.shelves[node]
}

// refresh makes anew what slices changed. Until a pool is whole, what was whole last counts.
func (v *inventory) refresh() {
	if len(v.dirty) == 0 || v.class == nil {
		return
	}
	changed := map[poolID]*pool{}
	for id := range v.dirty {
		is, whole := v.newPool(id)
		if whole {
			changed[id] = is
		}
		if _, known := v.away[id]; len(v.slices[id]) > 0 {
			delete(v.away, id)
		} else if delete(v.slices, id); !known && v.pools[id] != nil {
			v.away[id] = justNow
		}
	}
	clear(v.dirty)
	v.replace(changed)
}

const justNow = -1

// expire lets pools go that have been without slices for so many seconds: until then their drivers may only start anew. It tells
// when the next one goes; +Inf for none.
func (v *inventory) expire(now, after float64) (next float64) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.refresh()
	gone := map[poolID]*pool{}
	next = inf
	for id, since := range v.away {
		if since == justNow {
			v.away[id], since = now, now
		}
		if now >= since+after {
			gone[id] = nil
			delete(v.away, id)
		} else {
			next = min(next, since+after)
		}
	}
	v.replace(gone)
	return next
}

// replace replaces pools, or removes those that are nil.
func (v *inventory) replace(changed map[poolID]*pool) {
	stale := map[string]bool{}
	for id, is := range changed {
		for _, p := range [...]*pool{v.pools[id], is} {
			if p != nil {
				for _, node := range p.nodes {
					stale[node] = true
				}
			}
		}
		if v.pools[id] = is; is == nil {
			delete(v.pools, id)
		}
	}
	if len(stale) == 0 {
		return
	}
	offers := map[string][]*piece{}
	for _, p := range v.pools {
		for _, node := range p.nodes {
			if stale[node] {
				offers[node] = append(offers[node], p.offers[node]...)
			}
		}
	}
	for _, node := range slices.Sorted(maps.Keys(stale)) {
		v.shelf(node).fill(offers[node])
	}
}

// fill puts the devices that a node offers now onto its shelf.
func (s *shelf) fill(offered []*piece) {
	sortPieces(offered)
	s.kind, offered = mostly(offered)
	s.pieces = make([]*piece, len(s.order), max(len(s.order), len(offered)))
	free := 0
	for _, p := range offered {
		if i := slices.Index(s.order, p.device); i >= 0 {
			s.pieces[i] = p
		}
	}
	for _, p := range offered {
		if slices.Contains(s.order, p.device) {
			continue
		}
		for free < len(s.order) && s.order[free] != (gang.Device{}) {
			free++
		}
		switch {
		case free < len(s.order):
			s.order[free], s.pieces[free] = p.device, p
		case len(s.order) < core.MaxDevicesPerNode:
			s.order, s.pieces = append(s.order, p.device), append(s.pieces, p)
		}
	}
	s.named = make([]gang.Device, len(s.pieces))
	for i, p := range s.pieces {
		if p != nil {
			s.named[i] = p.device
		}
	}
}

// sortPieces brings devices into the order of their attribute index where all have one, or else of their names.
func sortPieces(list []*piece) {
	indexed := !slices.ContainsFunc(list, func(p *piece) bool { return p.index < 0 })
	slices.SortFunc(list, func(a, b *piece) int {
		byIndex := 0
		if indexed {
			byIndex = cmp.Compare(a.index, b.index)
		}
		return cmp.Or(byIndex, natural(a.device.Name, b.device.Name), strings.Compare(a.device.Driver, b.device.Driver), strings.Compare(a.device.Pool, b.device.Pool))
	})
}

// natural compares names as people count: gpu-9 is before gpu-10.
func natural(a, b string) int {
	isDigit := func(c byte) bool { return '0' <= c && c <= '9' }
	for i, j := 0, 0; ; {
		if i == len(a) || j == len(b) {
			return cmp.Or(cmp.Compare(len(a)-i, len(b)-j), strings.Compare(a, b))
		}
		if !isDigit(a[i]) || !isDigit(b[j]) {
			if a[i] != b[j] {
				return cmp.Compare(a[i], b[j])
			}
			i, j = i+1, j+1
			continue
		}
		from, to := i, j
		for i < len(a) && isDigit(a[i]) {
			i++
		}
		for j < len(b) && isDigit(b[j]) {
			j++
		}
		x, y := strings.TrimLeft(a[from:i], "0"), strings.TrimLeft(b[to:j], "0")
		if order := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); order != 0 {
			return order
		}
	}
}

// mostly keeps the devices of one type: a node has one. It is that of most of them, of the first of these where many are.
func mostly(list []*piece) (kind string, same []*piece) {
	count := map[string]int{}
	for _, p := range list {
		count[p.kind]++
	}
	most := 0
	for _, p := range list {
		if count[p.kind] > most {
			kind, most = p.kind, count[p.kind]
		}
	}
	return kind, slices.DeleteFunc(list, func(p *piece) bool { return p.kind != kind })
}

// devices are those of a node by their indices; the zero value for one that is not there.
func (v *inventory) devices(node string) []gang.Device {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.refresh()
	if s := v.shelves[node]; s != nil {
		return s.named
	}
	return nil
}

// config is what a claim of the class is to be given with its devices.
func (v *inventory) config() []resourcev1.DeviceAllocationConfiguration {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.class == nil {
		return nil
	}
	return v.class.config
}

// offer is what a node has, when jobs hold some of it already.
func (v *inventory) offer(node string, held core.DeviceSet) offer {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.refresh()
	s := v.shelves[node]
	if s == nil {
		return offer{}
	}
	o := offer{devices: len(s.order), accelerator: s.kind, missing: core.FirstDevices(len(s.order))}
	var fit core.DeviceSet
	for _, wanted := range [...]core.DeviceSet{held, ^held} {
		for i, p := range s.pieces {
			one := core.DeviceSet(1) << i
			if p == nil || wanted&one == 0 {
				continue
			}
			o.missing &^= one
			if !p.tainted && len(v.beside(node, fit|one)) == 0 {
				fit |= one
			}
		}
	}
	o.taken = core.FirstDevices(len(s.order)) &^ o.missing &^ fit
	return o
}
