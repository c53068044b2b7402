package fit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corehelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// Cluster is the nodes and the pods on them. It is for one goroutine.
type Cluster struct {
	tolerated []corev1.Toleration // by every pod
	nodes     map[string]*room
	names     []string // sorted
	near      map[*Pod]*nearby
	repelling int // pods that keep others away
}

// room is a node with what is left of it.
type room struct {
	node  *corev1.Node
	left  map[corev1.ResourceName]int64
	pods  map[*Pod]int
	ports []port
}

// nearby is how many pods there are near to a node that a pod asks about, by domain of each of its terms.
type nearby struct {
	together, apart, spreads []map[string]int
	repelled                 map[[2]string]int // by key and domain: pods there that keep it away
}

// NewCluster is nodes without pods. Every pod tolerates the taints with these keys.
func NewCluster(nodes []*corev1.Node, tolerate []string) *Cluster {
	c := &Cluster{nodes: make(map[string]*room, len(nodes)), near: map[*Pod]*nearby{}}
	for _, key := range tolerate {
		c.tolerated = append(c.tolerated, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	for _, n := range nodes {
		r := &room{node: n, left: make(map[corev1.ResourceName]int64, len(n.Status.Allocatable)), pods: map[*Pod]int{}}
		for name, q := range n.Status.Allocatable {
			r.left[name] = value(name, q)
		}
		c.nodes[n.Name] = r
	}
	c.names = slices.Sorted(maps.Keys(c.nodes))
	return c
}

// Add puts n more pods like p on a node, or takes some away where n is negative. A node that is not known is left out.
func (c *Cluster) Add(p *Pod, node string, n int) {
	r := c.nodes[node]
	if r == nil || n == 0 {
		return
	}
	if r.pods[p] += n; r.pods[p] == 0 {
		delete(r.pods, p)
	}
	if p.Repels() {
		c.repelling += n
	}
	r.left[corev1.ResourcePods] -= int64(n)
	for _, a := range p.requests {
		r.left[a.of] -= a.n * int64(n)
	}
	for _, taken := range p.ports {
		for range n {
			r.ports = append(r.ports, taken)
		}
		for range -n {
			if i := slices.Index(r.ports, taken); i >= 0 {
				r.ports = slices.Delete(r.ports, i, i+1)
			}
		}
	}
	for of, counts := range c.near { // each by itself: their order makes no difference
		counts.add(of, p, r.node, n)
	}
}

// add counts pods near to a node.
func (s *nearby) add(of, p *Pod, node *corev1.Node, n int) {
	count := func(lists []map[string]int, i int, key string) {
		if domain, has := node.Labels[key]; has {
			lists[i][domain] += n
		}
	}
	for i := range of.together {
		if of.together[i].selectsPod(p) {
			count(s.together, i, of.together[i].key)
		}
	}
	for i := range of.apart {
		if of.apart[i].selectsPod(p) {
			count(s.apart, i, of.apart[i].key)
		}
	}
	for i := range of.spreads {
		if p.namespace == of.namespace && of.spreads[i].pods.Matches(p.labels) {
			count(s.spreads, i, of.spreads[i].key)
		}
	}
	for i := range p.apart {
		if t := &p.apart[i]; t.selectsPod(of) {
			if domain, has := node.Labels[t.key]; has {
				s.repelled[[2]string{t.key, domain}] += n
			}
		}
	}
}

// nearbyOf is what is near to nodes that a pod asks about. O(pods) the first time, then O(1).
func (c *Cluster) nearbyOf(p *Pod) *nearby {
	if s := c.near[p]; s != nil {
		return s
	}
	counts := func(n int) []map[string]int {
		list := make([]map[string]int, n)
		for i := range list {
			list[i] = map[string]int{}
		}
		return list
	}
	s := &nearby{counts(len(p.together)), counts(len(p.apart)), counts(len(p.spreads)), map[[2]string]int{}}
	for _, r := range c.nodes {
		for of, n := range r.pods {
			s.add(p, of, r.node, n)
		}
	}
	c.near[p] = s
	return s
}

// Most is how many more pods like p a node takes.
func (c *Cluster) Most(p *Pod, node string) int {
	n, _ := c.most(p, node)
	return n
}

// Why says in a few words why a node takes no pod like p; empty where it takes one.
func (c *Cluster) Why(p *Pod, node string) string {
	_, why := c.most(p, node)
	return why
}

// Room is how many pods like p a node takes that has none, as it is now, and where it takes none why not in a few words. Other pods are not
// looked at: what keeps all away stays so until somebody changes the node or the pod.
func (c *Cluster) Room(p *Pod, node string) (n int, why string) {
	r := c.nodes[node]
	if r == nil {
		return 0, "gone"
	}
	if why := c.refuses(p, r.node); why != "" {
		return 0, why
	}
	n = math.MaxInt32
	if len(p.ports) > 0 {
		n = 1
	}
	for _, a := range p.requests {
		q := r.node.Status.Allocatable[a.of]
		if n = min(n, int(min(value(a.of, q)/a.n, math.MaxInt32))); n <= 0 {
			return 0, "with too little " + string(a.of)
		}
	}
	return n, ""
}

// refuses says what of a node's labels and taints keeps a pod away.
func (c *Cluster) refuses(p *Pod, n *corev1.Node) string {
	if p.selects {
		if matches, err := p.nodes.Match(n); err != nil || !matches {
			return "not matching its nodeSelector or required nodeAffinity"
		}
	}
	if t := c.taint(p, n); t != nil {
		return "with the taint " + Taint(t)
	}
	for i := range p.together {
		if _, has := n.Labels[p.together[i].key]; !has {
			return "without the label " + p.together[i].key + " of its podAffinity"
		}
	}
	for i := range p.spreads {
		if _, has := n.Labels[p.spreads[i].key]; !has {
			return "without the label " + p.spreads[i].key + " of its topologySpreadConstraints"
		}
	}
	return ""
}

// Keeps reports whether a taint keeps pods away that do not tolerate it. Those by which Kubernetes says that a node is not ready, or cordoned, say
// how the node is, and are left to whoever looks at its health.
func Keeps(t *corev1.Taint) bool {
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable:
		return false
	}
	return t.Effect != corev1.TaintEffectPreferNoSchedule
}

// Tolerated reports whether a taint is tolerated.
func Tolerated(t *corev1.Taint, by []corev1.Toleration) bool {
	return corehelpers.TolerationsTolerateTaint(klog.Background(), by, t, true)
}

// taint is one of a node that a pod does not tolerate; nil for none.
func (c *Cluster) taint(p *Pod, n *corev1.Node) *corev1.Taint {
	t, is := corehelpers.FindMatchingUntoleratedTaint(klog.Background(), n.Spec.Taints, slices.Concat(c.tolerated, p.tolerations), Keeps, true)
	if !is {
		return nil
	}
	return &t
}

// Taint writes a taint as kubectl takes it, such as nvidia.com/gpu=present:NoSchedule.
func Taint(t *corev1.Taint) string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	return text + ":" + string(t.Effect)
}

func (c *Cluster) most(p *Pod, node string) (n int, why string) {
	r := c.nodes[node]
	if r == nil {
		return 0, "gone"
	}
	if why := c.refuses(p, r.node); why != "" {
		return 0, why
	}
	if n, why = r.most(p); n == 0 || len(p.together)+len(p.apart)+len(p.spreads) == 0 && c.repelling == 0 {
		return n, why
	}
	near := c.nearbyOf(p)
	if most, why := near.apartOf(p, r.node); most < n {
		if n = most; n == 0 {
			return 0, why
		}
	}
	if !near.togetherWith(p, r.node) {
		return 0, "with no pod near that its podAffinity requires"
	}
	for i := range p.spreads {
		if n = min(n, c.spreadOver(p, i, near.spreads[i], r.node)); n == 0 {
			return 0, "where its topologySpreadConstraints would not hold"
		}
	}
	return n, ""
}

// most is how many more pods a node takes by what is left of its resources and ports.
func (r *room) most(p *Pod) (n int, why string) {
	n = math.MaxInt32
	if _, counted := r.node.Status.Allocatable[corev1.ResourcePods]; counted {
		if n = int(max(r.left[corev1.ResourcePods], 0)); n == 0 {
			return 0, "full of pods"
		}
	}
	for _, a := range p.requests {
		if n = min(n, int(min(max(r.left[a.of], 0)/a.n, math.MaxInt32))); n == 0 {
			return 0, "with too little " + string(a.of)
		}
	}
	if len(p.ports) > 0 {
		if n = 1; slices.ContainsFunc(p.ports, func(want port) bool { return slices.ContainsFunc(r.ports, want.clash) }) {
			return 0, "with its host port taken"
		}
	}
	return n, ""
}

// apartOf is how many more pods a node takes by the anti-affinities of the pod and of others.
func (s *nearby) apartOf(p *Pod, n *corev1.Node) (most int, why string) {
	for at, count := range s.repelled { // each answers alone: their order makes no difference
		if domain, has := n.Labels[at[0]]; has && domain == at[1] && count > 0 {
			return 0, "near to a pod whose podAntiAffinity keeps it away"
		}
	}
	most = math.MaxInt32
	for i := range p.apart {
		domain, has := n.Labels[p.apart[i].key]
		if !has {
			continue
		}
		if s.apart[i][domain] > 0 {
			return 0, "near to a pod that its podAntiAffinity excludes"
		}
		if p.apart[i].selectsPod(p) {
			most = 1
		}
	}
	return most, ""
}

// togetherWith reports whether the affinities of a pod hold on a node. The first pod of those that are to be together may be anywhere.
func (s *nearby) togetherWith(p *Pod, n *corev1.Node) bool {
	all, none := true, true
	for i := range p.together {
		all = all && s.together[i][n.Labels[p.together[i].key]] > 0
		for _, count := range s.together[i] {
			none = none && count <= 0
		}
	}
	return all || none && !slices.ContainsFunc(p.together, func(t term) bool { return !t.selectsPod(p) })
}

// spreadOver is how many more pods a node takes by a topology spread constraint.
func (c *Cluster) spreadOver(p *Pod, i int, counts map[string]int, n *corev1.Node) int {
	s := &p.spreads[i]
	fewest, domains := math.MaxInt, map[string]bool{}
	for _, name := range c.names {
		r := c.nodes[name]
		if domain, counted := r.node.Labels[s.key]; counted && c.eligible(p, s, r.node) {
			domains[domain] = true
			fewest = min(fewest, counts[domain])
		}
	}
	if len(domains) < s.least {
		fewest = 0
	}
	left := s.most + fewest - counts[n.Labels[s.key]]
	if s.pods.Matches(p.labels) {
		return max(left, 0)
	}
	if left >= 0 {
		return math.MaxInt32
	}
	return 0
}

// eligible reports whether the pods of a node count for a topology spread constraint.
func (c *Cluster) eligible(p *Pod, s *spread, n *corev1.Node) bool {
	for i := range p.spreads {
		if _, has := n.Labels[p.spreads[i].key]; !has {
			return false
		}
	}
	if matches, err := p.nodes.Match(n); !s.anyNode && (err != nil || !matches) {
		return false
	}
	return !s.lookAtTaint || c.taint(p, n) == nil
}

// Explain says why nodes take no pod like p, each reason with how many nodes it is true of, the most first. Why is asked of each node; empty
// stands for one that takes one.
func Explain(nodes []string, why func(node string) string) string {
	counts := map[string]int{}
	for _, n := range nodes {
		counts[why(n)]++
	}
	fits := counts[""]
	delete(counts, "")
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	text := fmt.Sprintf("%d of %d nodes fit", fits, len(nodes))
	for i, reason := range reasons {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		text += fmt.Sprintf("%s%d %s", separator, counts[reason], reason)
	}
	return text
}
