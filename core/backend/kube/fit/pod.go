package fit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	resourcehelpers "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Pod is what a pod asks of nodes besides its devices. It never changes.
type Pod struct {
	namespace   string
	labels      labels.Set
	selects     bool // it has a node selector or a required node affinity
	nodes       nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
	requests    []amount // of resources, by name
	ports       []port
	together    []term // required affinities to other pods
	apart       []term // required anti-affinities
	spreads     []spread
}

// amount is what a pod requests of a resource: thousandths of CPUs, units of anything else.
type amount struct {
	of corev1.ResourceName
	n  int64
}

// port is one of a node. An empty address stands for all of them.
type port struct {
	address  string
	protocol corev1.Protocol
	number   int32
}

// term is an affinity to pods, or an anti-affinity.
type term struct {
	key        string // label of nodes by which they are near to each other
	pods       labels.Selector
	namespaces []string // of those pods; all where it is nil
}

// spread is a topology spread constraint that must hold.
type spread struct {
	key         string
	pods        labels.Selector
	most        int // difference between the domains with the most and the fewest such pods
	least       int // domains that there must be; with fewer, the fewest pods count as 0
	anyNode     bool
	lookAtTaint bool
}

// New is what a pod asks of nodes. Devices is the extended resource of devices, which is not looked at: whoever assigns devices counts
// them. An error names all that cannot be held: the rest of the pod is returned with it.
func New(pod *corev1.Pod, devices corev1.ResourceName) (*Pod, error) {
	spec := &pod.Spec
	p := &Pod{
		namespace: pod.Namespace, labels: pod.Labels, nodes: nodeaffinity.GetRequiredNodeAffinity(pod), tolerations: spec.Tolerations,
		selects:  len(spec.NodeSelector) > 0 || spec.Affinity != nil && spec.Affinity.NodeAffinity != nil && spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil,
		requests: requests(pod, devices), ports: ports(spec),
	}
	var problems []error
	if _, err := p.nodes.Match(&corev1.Node{}); err != nil {
		problems = append(problems, fmt.Errorf("nodeAffinity: %w", err))
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		p.together = p.terms("podAffinity", a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &problems)
	}
	if a := spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		p.apart = p.terms("podAntiAffinity", a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, &problems)
	}
	for i := range spec.TopologySpreadConstraints {
		c := &spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		if s, err := p.spread(c); err != nil {
			problems = append(problems, fmt.Errorf("topologySpreadConstraints[%d]: %w", i, err))
		} else {
			p.spreads = append(p.spreads, s)
		}
	}
	return p, errors.Join(problems...)
}

// requests is what a pod requests as Kubernetes counts it: init containers, sidecars, overhead and limits that stand for requests included.
func requests(pod *corev1.Pod, devices corev1.ResourceName) (list []amount) {
	defaulted := withLimits(pod)
	all := resourcehelpers.PodRequests(defaulted, resourcehelpers.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if n := value(name, all[name]); n > 0 && name != devices {
			list = append(list, amount{name, n})
		}
	}
	return list
}

// withLimits is a pod whose containers request as much as their limit where they request nothing, as the API server fills it in.
func withLimits(pod *corev1.Pod) *corev1.Pod {
	filled := pod.DeepCopy()
	for _, list := range [...][]corev1.Container{filled.Spec.InitContainers, filled.Spec.Containers} {
		for i := range list {
			r := &list[i].Resources
			for name, limit := range r.Limits {
				if _, given := r.Requests[name]; !given {
					if r.Requests == nil {
						r.Requests = corev1.ResourceList{}
					}
					r.Requests[name] = limit
				}
			}
		}
	}
	return filled
}

func value(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// ports are those of its node that a pod takes.
func ports(spec *corev1.PodSpec) (list []port) {
	for _, containers := range [...][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for _, p := range containers[i].Ports {
				number := p.HostPort
				if number == 0 && spec.HostNetwork {
					number = p.ContainerPort
				}
				if number == 0 {
					continue
				}
				taken := port{p.HostIP, p.Protocol, number}
				if taken.protocol == "" {
					taken.protocol = corev1.ProtocolTCP
				}
				if taken.address == "0.0.0.0" || taken.address == "::" {
					taken.address = ""
				}
				list = append(list, taken)
			}
		}
	}
	return list
}

// clash reports whether two ports are the same for a node.
func (p port) clash(o port) bool {
	return p.number == o.number && p.protocol == o.protocol && (p.address == o.address || p.address == "" || o.address == "")
}

func (p *Pod) terms(path string, required []corev1.PodAffinityTerm, problems *[]error) (list []term) {
	for i := range required {
		t := &required[i]
		pods, err := p.selector(t.LabelSelector, t.MatchLabelKeys, t.MismatchLabelKeys)
		if err != nil {
			*problems = append(*problems, fmt.Errorf("%s: term %d: %w", path, i, err))
			continue
		}
		made := term{key: t.TopologyKey, pods: pods, namespaces: t.Namespaces}
		switch s := t.NamespaceSelector; {
		case s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0:
			*problems = append(*problems, fmt.Errorf("%s: term %d: namespaceSelector is not supported: name the namespaces in namespaces, or use {} for all", path, i))
			continue
		case s != nil:
			made.namespaces = nil
		case len(t.Namespaces) == 0:
			made.namespaces = []string{p.namespace}
		}
		list = append(list, made)
	}
	return list
}

// selector selects pods by their labels, some of which are to be those of this pod, or are not to be.
func (p *Pod) selector(by *metav1.LabelSelector, same, other []string) (labels.Selector, error) {
	selects, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		return nil, err
	}
	for k, keys := range [...][]string{same, other} {
		for _, key := range keys {
			of, has := p.labels[key]
			if !has {
				continue
			}
			r, err := labels.NewRequirement(key, [...]selection.Operator{selection.In, selection.NotIn}[k], []string{of})
			if err != nil {
				return nil, err
			}
			selects = selects.Add(*r)
		}
	}
	return selects, nil
}

func (p *Pod) spread(c *corev1.TopologySpreadConstraint) (spread, error) {
	pods, err := p.selector(c.LabelSelector, c.MatchLabelKeys, nil)
	s := spread{key: c.TopologyKey, pods: pods, most: int(c.MaxSkew), least: 1}
	if c.MinDomains != nil {
		s.least = int(*c.MinDomains)
	}
	s.anyNode = c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
	s.lookAtTaint = c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
	return s, err
}

// selectsPod reports whether a term is about a pod.
func (t *term) selectsPod(p *Pod) bool {
	return (t.namespaces == nil || slices.Contains(t.namespaces, p.namespace)) && t.pods.Matches(p.labels)
}

// Plain reports whether a pod asks for nothing of nodes but devices, and repels no other pod.
func (p *Pod) Plain() bool {
	return !p.selects && len(p.requests)+len(p.ports)+len(p.together)+len(p.apart)+len(p.spreads) == 0
}

// Repels reports whether a pod keeps others from the nodes near to it.
func (p *Pod) Repels() bool { return len(p.apart) > 0 }

// Unheeded lists what a pod asks for that makes no difference to where, or when, it is placed, each in a few words that name the field.
func Unheeded(spec *corev1.PodSpec) (list []string) {
	add := func(is bool, what string) {
		if is {
			list = append(list, what)
		}
	}
	if a := spec.Affinity; a != nil {
		add(a.NodeAffinity != nil && len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0, "the preferred nodeAffinity")
		add(a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0, "the preferred podAffinity")
		add(a.PodAntiAffinity != nil && len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0, "the preferred podAntiAffinity")
	}
	add(slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.ScheduleAnyway
	}), "the topologySpreadConstraints with ScheduleAnyway")
	add(spec.PriorityClassName != "", "priorityClassName "+spec.PriorityClassName+" (the queue decides which job is first)")
	add(spec.PreemptionPolicy != nil && *spec.PreemptionPolicy == corev1.PreemptNever, "preemptionPolicy Never (the queue decides which job is preempted)")
	var claims []string
	for i := range spec.Volumes {
		if v := &spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			claims = append(claims, v.Name)
		}
	}
	add(len(claims) > 0, "where the volumes "+strings.Join(claims, ", ")+" are (a claim that waits for its first consumer is never bound: "+
		"use a storage class with volumeBindingMode Immediate, and select the nodes that reach the volume)")
	add(len(spec.ResourceClaims) > 0, "resourceClaims (the pods run only if something else allocates them)")
	add(spec.RuntimeClassName != nil && *spec.RuntimeClassName != "" && spec.Overhead == nil,
		"the overhead and the nodes of the runtimeClassName (select the nodes, and leave room in the requests)")
	return list
}
