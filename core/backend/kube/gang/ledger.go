package gang

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// Need is the devices that a member is to be bound to.
type Need struct {
	Namespace, Name string         // of the pod
	UID             types.UID      // of the pod
	Version         string         // resource version of the pod as it was seen
	Node            string         // to bind it to
	Devices         core.DeviceSet // indices of the devices on that node
}

// Holder is who keeps devices from a member.
type Holder struct {
	Namespace, Name string         // of the pod or, with Claim, of the claim; empty for the node itself, which has too few
	Node            string         // whose devices are held
	UID             types.UID      // of the pod or the claim
	Claim, Foreign  bool           // foreign ones are none of ours
	Devices         core.DeviceSet // those in question; none where only their number is known
}

// To names the owner to those of its namespace. What others have in theirs is not for them to know.
func (h Holder) To(namespace string) string {
	what := "pod"
	if h.Claim {
		what = "claim"
	}
	switch {
	case h.Name == "":
		return "too few devices of " + h.Node
	case h.Namespace == namespace:
		what += " " + h.Namespace + "/" + h.Name
	default:
		what = "a " + what + " of another namespace"
	}
	if h.Devices != 0 {
		what += " on " + h.Node + " " + trainingjob.FormatDevices(h.Devices)
	}
	return what
}

// Ledger says who holds which devices. It is asked by many at the same time.
type Ledger interface {
	// Blockers are those because of whom these members of one job cannot be bound now. With none they can.
	Blockers(needs []Need) []Holder
	// Take keeps devices for members that are about to be bound, for all of them or for none, and reports whether it did. It
	// does again what it did.
	Take(needs []Need) bool
	// Release says that a pod has no devices any more, and gets none.
	Release(pod types.UID)
}

// Book is a ledger that is made anew of every look at the cluster. What was taken since then, or is not in that look yet, it
// remembers. All of it can be lost: then the next look must be no older than the last write of who had it before.
type Book struct {
	options Options

	mu     sync.Mutex
	nodes  map[string]*page
	beside func(node string, devices core.DeviceSet) []Holder
	taken  map[types.UID]Need
}

// page is what is known of a node.
type page struct {
	capacity int // number of devices
	entries  []entry
}

// entry is a holder, or a member that is to become one.
type entry struct {
	Holder
	count int
	waits bool // it is not bound yet
	need  types.UID
}

// NewBook returns an empty ledger, of a cluster without nodes.
func NewBook(o Options) *Book { return &Book{options: o, taken: map[types.UID]Need{}} }

// Cluster is a look at all that holds devices.
type Cluster struct {
	Version string                      // resource version of the list of pods, or of the last event on it
	Pods    []*corev1.Pod               // of all namespaces
	Claims  []*resourcev1.ResourceClaim // of all namespaces; none without claims
	Nodes   []*corev1.Node              // to schedule on
	Devices func(node string) []Device  // for claims: what the ResourceSlices say, by index
	// Ours says which of the pods that look like members are: anybody can write what members carry. Nil: all of them.
	Ours func(*corev1.Pod) bool
	// Beside are the claims of others because of which these devices of a node cannot be held all together, for they overlap with
	// what those hold. Nil where no devices overlap. The ledger keeps it, and asks at any time.
	Beside func(node string, devices core.DeviceSet) []Holder
}

// usualDevices is how many a node has, as a guess.
const usualDevices = 8

// See takes a look. Looks come in their order.
func (b *Book) See(c Cluster) {
	nodes, names := b.pages(&c)
	byName := make(map[string]*corev1.Node, len(c.Nodes))
	for _, n := range c.Nodes {
		byName[n.Name] = n
	}
	held := b.claimed(c, names)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seePods(&c, nodes, byName, held)
	for pod, holders := range held.ours {
		for _, h := range holders {
			nodes[h.Node].entries = append(nodes[h.Node].entries, entry{Holder: h, need: pod})
		}
	}
	for _, h := range held.others {
		nodes[h.Node].entries = append(nodes[h.Node].entries, entry{Holder: h})
	}
	b.nodes, b.beside = nodes, c.Beside
}

// seePods enters what pods hold, and forgets what was taken for pods that a look tells of.
func (b *Book) seePods(c *Cluster, nodes map[string]*page, byName map[string]*corev1.Node, held claimed) {
	seen := map[types.UID]bool{}
	for _, pod := range c.Pods {
		freed := Freed(pod, func(name string) *corev1.Node { return byName[name] })
		if seen[pod.UID] = true; freed || bound(pod) && (b.options.Class == "" || held.ours[pod.UID] != nil) {
			delete(b.taken, pod.UID) // from now on the look tells; a claim may be seen after its pod
		}
		if freed {
			continue
		}
		if e, ok := b.entryOf(pod, held, c.Ours); ok && nodes[e.Node] != nil {
			nodes[e.Node].entries = append(nodes[e.Node].entries, e)
		}
	}
	for uid, n := range b.taken {
		if !seen[uid] && !Older(c.Version, n.Version) {
			delete(b.taken, uid) // it was there, and is gone
		}
	}
}

// pages are the nodes of a look, without what is held of them, and where named devices are.
func (b *Book) pages(c *Cluster) (nodes map[string]*page, names map[Device]place) {
	nodes, names = make(map[string]*page, len(c.Nodes)), map[Device]place{}
	if b.options.Class == "" {
		for _, n := range c.Nodes {
			allocatable := n.Status.Allocatable[b.options.resource()]
			nodes[n.Name] = &page{capacity: int(allocatable.Value())}
		}
		return nodes, names
	}
	names = make(map[Device]place, usualDevices*len(c.Nodes))
	for _, n := range c.Nodes {
		devices := c.Devices(n.Name)
		nodes[n.Name] = &page{capacity: len(devices)}
		for i, d := range devices {
			names[d] = place{n.Name, i}
		}
	}
	return nodes, names
}

// entryOf is what a pod holds, or is to hold; not ok for nothing. Anybody can write what members carry: what is written counts only
// where it is what the pod asks for, and what a claim gave is in the claim.
func (b *Book) entryOf(pod *corev1.Pod, claimed claimed, ours func(*corev1.Pod) bool) (e entry, ok bool) {
	e.Holder = Holder{Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName, UID: pod.UID}
	requested := Requested(pod, b.options.resource())
	node, devices, assigned := Assigned(pod)
	member := assigned && pod.Spec.SchedulerName == trainingjob.SchedulerName && (ours == nil || ours(pod))
	byClaims, as := b.options.Class != "", requested == devices.Count() // as is whether it asks for what it carries
	switch {
	case byClaims && !(member && claims(pod)):
		return e, false
	case member && !bound(pod) && (byClaims || as):
		e.Node, e.waits = node, true
	case byClaims:
		devices = claimed.on(pod)
	case member && as: // and bound
	case bound(pod):
		e.Foreign, e.count = true, requested
		return e, requested > 0
	default:
		return e, false
	}
	e.Devices, e.count, e.need = devices, devices.Count(), pod.UID
	return e, devices != 0
}

// Requested is how many of an extended resource the containers of a pod ask for at the same time. Sidecars run on beside the
// others, and init containers beside the sidecars before them.
func Requested(pod *corev1.Pod, resource corev1.ResourceName) int {
	sum, most := int64(0), int64(0)
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		limit := c.Resources.Limits[resource]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sum += limit.Value()
			most = max(most, sum)
			continue
		}
		most = max(most, sum+limit.Value())
	}
	for i := range pod.Spec.Containers {
		limit := pod.Spec.Containers[i].Resources.Limits[resource]
		sum += limit.Value()
	}
	return int(max(sum, most))
}

// Blockers is part of [Ledger].
func (b *Book) Blockers(needs []Need) []Holder {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.blockers(needs)
}

func (b *Book) blockers(needs []Need) []Holder {
	var holders []Holder
	mine := map[types.UID]bool{}
	for _, n := range needs {
		mine[n.UID] = true
	}
	wanted := map[string]int{} // by node
	sets := map[string]core.DeviceSet{}
	for _, n := range needs {
		p := b.nodes[n.Node]
		if p == nil {
			holders = append(holders, Holder{Node: n.Node})
			continue
		}
		wanted[n.Node] += n.Devices.Count()
		sets[n.Node] |= n.Devices
		holders = append(holders, b.holdersOf(p, &n, mine)...)
	}
	for node, set := range sets {
		holders = append(holders, b.overlapping(node, set, holders)...)
	}
	for node, count := range wanted {
		known := slices.ContainsFunc(holders, func(h Holder) bool { return h.Node == node })
		if short, foreign := b.shortOf(node, count, mine); len(foreign) > 0 {
			holders = append(holders, foreign...)
		} else if short && !known {
			holders = append(holders, Holder{Node: node})
		}
	}
	slices.SortFunc(holders, func(a, b Holder) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), cmp.Compare(a.Devices, b.Devices))
	})
	return slices.CompactFunc(holders, func(a, b Holder) bool {
		return a.Node == b.Node && a.UID == b.UID && a.Name == b.Name && !a.Claim && !b.Claim
	})
}

// holdersOf are those who have devices that a member needs, but for mine.
func (b *Book) holdersOf(p *page, n *Need, mine map[types.UID]bool) (holders []Holder) {
	for _, e := range p.entries {
		if both := e.Devices & n.Devices; both != 0 && !mine[e.need] {
			e.Devices = both
			holders = append(holders, e.Holder)
		}
	}
	for uid, t := range b.taken {
		if both := t.Devices & n.Devices; both != 0 && !mine[uid] && t.Node == n.Node {
			holders = append(holders, Holder{Namespace: t.Namespace, Name: t.Name, Node: t.Node, UID: uid, Devices: both})
		}
	}
	return holders
}

// overlapping are claims of others that hold a part of what members are to hold, beside what members hold already. Those that hold
// the very devices are known.
func (b *Book) overlapping(node string, set core.DeviceSet, known []Holder) []Holder {
	if b.beside == nil {
		return nil
	}
	all := set
	for _, e := range b.nodes[node].entries {
		if !e.Foreign && (!e.waits || e.Claim) {
			all |= e.Devices
		}
	}
	for _, t := range b.taken {
		if t.Node == node {
			all |= t.Devices
		}
	}
	return slices.DeleteFunc(b.beside(node, all), func(h Holder) bool {
		return h.Devices != 0 && h.Devices&set == 0 || slices.ContainsFunc(known, func(k Holder) bool { return k.UID == h.UID })
	})
}

// shortOf reports whether there are too few devices on a node, and which foreign pods have a part in that. With none, the node
// has less than it had.
func (b *Book) shortOf(node string, count int, mine map[types.UID]bool) (short bool, foreign []Holder) {
	p := b.nodes[node]
	held, known := 0, map[types.UID]bool{}
	for _, e := range p.entries {
		if e.waits || mine[e.need] || e.Claim && b.knows(p, e.need) {
			continue
		}
		known[e.UID] = true
		if e.Claim {
			known[e.need] = true // what was taken for its pod counts once, too
			held += e.Devices.Count()
			continue
		}
		held += e.count
		if e.Foreign {
			foreign = append(foreign, e.Holder)
		}
	}
	for uid, t := range b.taken {
		if t.Node == node && !mine[uid] && !known[uid] {
			held += t.Devices.Count()
		}
	}
	if held+count <= p.capacity {
		return false, nil
	}
	return true, foreign
}

// knows reports whether the pod of a claim is on the page too, bound: it counts once.
func (b *Book) knows(p *page, pod types.UID) bool {
	return pod != "" && slices.ContainsFunc(p.entries, func(e entry) bool { return e.UID == pod && !e.waits })
}

// Take is part of [Ledger].
func (b *Book) Take(needs []Need) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.blockers(needs)) > 0 {
		return false
	}
	for _, n := range needs {
		b.taken[n.UID] = n
	}
	return true
}

// Release is part of [Ledger].
func (b *Book) Release(pod types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.taken, pod)
	for _, p := range b.nodes {
		p.entries = slices.DeleteFunc(p.entries, func(e entry) bool { return e.UID == pod })
	}
}
