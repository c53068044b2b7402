package kube

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// acceleratorLabel names the type of a node's devices where no vendor's label does.
const acceleratorLabel = "quartet.sched/accelerator"

// someAccelerator is the type of devices that nobody names.
const someAccelerator = "gpu"

// node is a node that the pipeline was told of.
type node struct {
	id       core.NodeID
	uid      types.UID
	name     string
	devices  int
	health   core.Health
	unusable core.DeviceSet
	closed   string         // why it takes no new work; empty if it does
	silent   bool           // nothing was heard of it for long
	bare     float64        // since when it offers none of the devices that it has, in seconds of the run; +Inf if it does
	missing  core.DeviceSet // of these, devices that are not there any more; none are known where devices have no names

	accelerator string
}

// nodes are the nodes, as the pipeline was told of them.
type nodes struct {
	config    *Config
	told      []*node             // by NodeID
	byUID     map[types.UID]*node // those that are not gone
	byName    map[string]*node    // of those
	unready   map[string]float64  // when a node was first seen to be not ready
	held      func(core.NodeID) core.DeviceSet
	tolerates func(*corev1.Taint) bool         // whether a taint is one for single jobs
	kept      func(name string) core.DeviceSet // devices of pods that were to end long ago
	ran       map[string]bool                  // nodes that jobs have devices of by what is written, for who begins to lead
	devices   *inventory                       // nil where nodes offer devices by an extended resource
	expires   float64                          // when devices are gone that nobody publishes any more; +Inf for none
}

// largest is how many devices the largest node has.
func (n *nodes) largest() (most int) {
	for _, t := range n.byUID {
		most = max(most, t.devices)
	}
	return most
}

// offer is what a node has.
type offer struct {
	devices     int            // those that it has or had, the most that a node may have at most
	missing     core.DeviceSet // of these not there any more
	taken       core.DeviceSet // of these held by others, or broken
	idle        core.DeviceSet // of these not allocatable at present
	closed      string         // why nothing new may use any; empty when it may
	foreign     int            // others hold so many besides, and nobody knows which
	accelerator string         // type of the devices; empty when they do not say
}

// there reports whether a node has devices at present.
func (o *offer) there() bool { return core.FirstDevices(o.devices)&^(o.missing|o.idle) != 0 }

// offerOf is what a node has. The identity is that of one that jobs may run on; nil for one that is new.
func (n *nodes) offerOf(object *corev1.Node, t *node, foreign func(string) int) offer {
	if n.devices == nil {
		all, allocatable := devicesOf(object, n.config.Resource)
		return offer{devices: all, idle: core.FirstDevices(all) &^ core.FirstDevices(allocatable), foreign: foreign(object.Name)}
	}
	if t == nil {
		return n.devices.offer(object.Name, 0)
	}
	return n.devices.offer(object.Name, n.held(t.id))
}

func newNodes(c *Config, held func(core.NodeID) core.DeviceSet) *nodes {
	return &nodes{config: c, byUID: map[types.UID]*node{}, byName: map[string]*node{}, unready: map[string]float64{}, held: held, kept: func(string) core.DeviceSet { return 0 }, tolerates: func(*corev1.Taint) bool { return false }, expires: inf}
}

// compare says what is different of the nodes at a moment.
func (n *nodes) compare(now float64, list []*corev1.Node, foreign func(name string) int) (events []core.Event) {
	slices.SortFunc(list, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	there := make(map[types.UID]bool, len(list))
	for _, object := range list {
		there[object.UID] = true
	}
	for _, t := range n.told {
		if t.health != core.Gone && !there[t.uid] {
			events = append(events, n.remove(t, now))
		}
	}
	believable := n.silence(now, list)
	if n.devices != nil {
		n.expires = n.devices.expire(now, n.config.SilentAfter.Seconds())
	}
	for _, object := range list {
		events = append(events, n.compareNode(object, foreign, believable, now)...)
	}
	return events
}

// compareNode says what is different of one node. Believable is for how many seconds a node may be silent.
func (n *nodes) compareNode(object *corev1.Node, foreign func(name string) int, believable, now float64) (events []core.Event) {
	t := n.byUID[object.UID]
	has := n.offerOf(object, t, foreign)
	has.closed = n.closed(object)
	if t != nil && has.devices > t.devices { // another node, as far as policies go
		events = append(events, n.remove(t, now))
		t = nil
	}
	restarts := n.restarts(t, &has, now)
	if t == nil && n.devices == nil && n.ran[object.Name] && has.devices > 0 && !has.there() {
		restarts, has.idle = true, 0 // which of its devices jobs hold is known soon
	}
	health := n.healthOf(object, has.there(), believable, now)
	if t == nil {
		if has.there() {
			if events = append(events, n.add(object, has, health, now)); restarts {
				n.byName[object.Name].bare = now
			}
		}
		return events
	}
	t.closed = has.closed
	unusable := n.unusable(t, has)
	if t.missing = has.missing; has.there() && !restarts {
		t.bare = inf
	}
	since, unready := n.unready[object.Name]
	t.silent = unready && (t.silent || now-since >= believable)
	return append(events, t.becomes(health, unusable, now)...)
}

// becomes tells of a node whose health, or whose devices that can be used, are others.
func (t *node) becomes(health core.Health, unusable core.DeviceSet, now float64) []core.Event {
	if health == t.health && unusable == t.unusable {
		return nil
	}
	t.health, t.unusable = health, unusable
	return []core.Event{{Kind: core.NodeChanged, AtSeconds: now, Node: t.id, Health: health, Unusable: unusable}}
}

// restarts reports whether a node offers none of its devices for a moment only, as while its device plugin starts anew. What runs there
// runs on: those that jobs hold count as offered.
func (n *nodes) restarts(t *node, has *offer, now float64) bool {
	if t == nil || n.devices != nil || has.there() || has.devices < t.devices || t.health == core.Down {
		return false // it may be so for good, or the devices are gone from its capacity too
	}
	if t.bare = min(t.bare, now); now-t.bare >= n.config.SilentAfter.Seconds() {
		return false
	}
	has.idle &^= n.held(t.id)
	return true
}

// down are the names of the nodes that are taken for down because they are silent: whether anything runs there nobody knows. One that
// only lacks devices is heard of, and so are its pods.
func (n *nodes) down() map[string]bool {
	names := map[string]bool{}
	for name, t := range n.byName {
		if t.health == core.Down && t.silent {
			names[name] = true
		}
	}
	return names
}

func (n *nodes) remove(t *node, now float64) core.Event {
	t.health = core.Gone
	delete(n.byUID, t.uid)
	delete(n.unready, t.name)
	if n.byName[t.name] == t {
		delete(n.byName, t.name)
	}
	return core.Event{Kind: core.NodeRemoved, AtSeconds: now, Node: t.id}
}

func (n *nodes) add(object *corev1.Node, has offer, health core.Health, now float64) core.Event {
	t := &node{
		id: core.NodeID(len(n.told)), uid: object.UID, name: object.Name, devices: has.devices, health: health, bare: inf, closed: has.closed,
		accelerator: cmp.Or(has.accelerator, acceleratorOf(object, n.config.Accelerator)),
	}
	t.unusable = n.unusable(t, has)
	n.told = append(n.told, t)
	n.byUID[t.uid], n.byName[t.name] = t, t
	cpus, memory := object.Status.Allocatable.Cpu(), object.Status.Allocatable.Memory()
	return core.Event{Kind: core.NodeAdded, AtSeconds: now, Node: t.id, Added: &core.AddedNode{
		Name: t.name, Accelerator: t.accelerator, Devices: t.devices, CPUs: cpus.AsApproximateFloat64(),
		MemoryGB: memory.AsApproximateFloat64() / (1 << 30), Rack: object.Labels[corev1.LabelTopologyZone], Health: health, Unusable: t.unusable,
	}}
}

// unusable is which devices of a node jobs cannot have: the last ones, where a node has fewer than it had; those that are missing,
// or taken by name, or by a pod of ours that does not end; and as many as pods of others have, of those that no job holds. Which ones these are, nobody knows: those that
// were taken for theirs before stay so.
func (n *nodes) unusable(t *node, has offer) core.DeviceSet {
	all := core.FirstDevices(t.devices)
	gone := all&^core.FirstDevices(min(has.devices, t.devices)) | all&(has.missing|has.idle|has.taken|n.kept(t.name))
	free := all &^ gone &^ n.held(t.id)
	if has.closed != "" {
		return gone | free
	}
	theirs := (free & t.unusable).Lowest(has.foreign)
	for rest := free &^ theirs; rest != 0 && theirs.Count() < has.foreign; {
		list := rest.List()
		last := core.DeviceSet(1) << list[len(list)-1]
		theirs, rest = theirs|last, rest&^last
	}
	return gone | theirs
}

// devicesOf is how many devices a node has, and how many of them it offers: those that are broken it does not. Devices beyond the
// most that a node may have are left alone.
func devicesOf(n *corev1.Node, resource string) (all, allocatable int) {
	count := func(list corev1.ResourceList) int {
		quantity := list[corev1.ResourceName(resource)]
		return int(min(max(quantity.Value(), 0), core.MaxDevicesPerNode))
	}
	allocatable = count(n.Status.Allocatable)
	return max(count(n.Status.Capacity), allocatable), allocatable
}

func acceleratorOf(n *corev1.Node, label string) string {
	return cmp.Or(n.Labels[label], n.Labels[acceleratorLabel], someAccelerator)
}

// severalTypes reports whether there ever were devices of more than one type.
func (n *nodes) severalTypes() bool {
	return len(n.told) > 0 && slices.ContainsFunc(n.told, func(t *node) bool { return t.accelerator != n.told[0].accelerator })
}

// healthOf is what policies make of a node. One that is not ready any more is taken for ready for a while, since its pods run on.
func (n *nodes) healthOf(object *corev1.Node, devices bool, believable float64, now float64) core.Health {
	t := n.byUID[object.UID]
	since, unready := n.unready[object.Name]
	switch {
	case gang.OutOfService(object) || !devices:
		return core.Down
	case unready && (t == nil && !lostContact(object) && !n.ran[object.Name] || t != nil && t.health == core.Provisioning):
		return core.Provisioning // it never was
	case unready && (t != nil && t.health == core.Down || now-since >= believable):
		return core.Down
	case n.drained(object) != "":
		return core.Draining
	default:
		return core.Ready
	}
}

// drained says why jobs are to leave a node; empty when they need not.
func (n *nodes) drained(object *corev1.Node) string {
	switch {
	case object.DeletionTimestamp != nil:
		return "is being deleted"
	case object.Spec.Unschedulable && object.Annotations[gang.DrainAnnotation] == "true":
		return "is being drained"
	default:
		return n.taint(object, corev1.TaintEffectNoExecute)
	}
}

// closed says why a node takes no new work, while what runs there runs on; empty when it does.
func (n *nodes) closed(object *corev1.Node) string {
	if object.Spec.Unschedulable {
		return "is cordoned"
	}
	return n.taint(object, corev1.TaintEffectNoSchedule)
}

// unfit says why jobs cannot stay on devices of a node; empty when they can.
func (n *nodes) unfit(t *node, devices core.DeviceSet, object func(name string) *corev1.Node) (reason, message string) {
	now := object(t.name)
	switch {
	case t.health == core.Gone || now == nil:
		return gang.ReasonNodeGone, "the node " + t.name + " is gone"
	case gang.OutOfService(now):
		return gang.ReasonNodeGone, "the node " + t.name + " is out of service"
	case t.health == core.Draining:
		return "NodeDrained", "the node " + t.name + " " + n.drained(now)
	case t.health == core.Down && t.silent:
		return "NodeSilent", "nothing was heard of the node " + t.name + " for too long"
	case t.health == core.Down:
		return "DevicesGone", "the node " + t.name + " offers no devices"
	case t.unusable&devices != 0:
		return "DevicesGone", "devices of the node " + t.name + " are broken, missing or held by others: " + trainingjob.FormatDevices(t.unusable&devices)
	}
	return "", ""
}

// taint names a taint of an effect that keeps jobs from a node; empty for none. One that a job tolerates is left to what the pods of each
// ask for. Those by which Kubernetes itself reports a node that is not ready are looked at elsewhere.
func (n *nodes) taint(object *corev1.Node, effect corev1.TaintEffect) string {
	for _, t := range object.Spec.Taints {
		switch t.Key {
		case gang.NodesTaint, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable:
			continue
		}
		if t.Effect == effect && !slices.Contains(n.config.Tolerate, t.Key) && !n.tolerates(&t) {
			return "has the taint " + t.ToString()
		}
	}
	return ""
}

// When more than a part of the nodes turn silent at once, it is the control plane that was away: they are believed later.
const (
	manySilent  = 1.0 / 3
	laterByThis = 4 // times
)

// silence notes since when nodes are not ready, and tells after how many seconds that is believed.
func (n *nodes) silence(now float64, list []*corev1.Node) float64 {
	count := 0
	for _, object := range list {
		if ready(object) {
			delete(n.unready, object.Name)
			continue
		}
		if t := n.byUID[object.UID]; t != nil && t.health != core.Down && t.health != core.Provisioning {
			count++
		}
		if _, known := n.unready[object.Name]; !known {
			n.unready[object.Name] = now
		}
	}
	if count > 1 && float64(count) > manySilent*float64(len(list)) {
		return laterByThis * n.config.SilentAfter.Seconds()
	}
	return n.config.SilentAfter.Seconds()
}

// lostContact reports whether a node was heard of, and is not any more.
func lostContact(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown && c.Reason == "NodeStatusUnknown"
	})
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// wake is when a node that is silent is to be taken for down; +Inf for none.
func (n *nodes) wake(now float64) float64 {
	next := inf
	if n.expires > now {
		next = n.expires
	}
	for _, t := range n.byName {
		if at := t.bare + n.config.SilentAfter.Seconds(); t.health != core.Down && at > now {
			next = min(next, at)
		}
	}
	for name, since := range n.unready {
		if t := n.byName[name]; t != nil && (t.health != core.Down || !t.silent) {
			for _, times := range [...]float64{1, laterByThis} {
				if at := since + times*n.config.SilentAfter.Seconds(); at > now {
					next = min(next, at)
				}
			}
		}
	}
	return next
}
