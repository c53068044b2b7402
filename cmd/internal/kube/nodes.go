package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// resources are the extended resources that count accelerators, the first of which a node has is listed. Which one the scheduler
// goes by is in its config.
var resources = []corev1.ResourceName{
	"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/xe", "gpu.intel.com/i915", "habana.ai/gaudi", "google.com/tpu", "aws.amazon.com/neuron",
}

// accelerators are the labels that name the type of a node's devices.
var accelerators = []string{"nvidia.com/gpu.product", "quartet.sched/accelerator", "amd.com/gpu.product-name"}

// Nodes lists the nodes that have devices, with how many of them jobs hold by what was decided.
func (c *Cluster) Nodes(ctx context.Context) ([]*controlv1.Node, error) {
	list, err := c.api.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, c.words("list nodes", err)
	}
	used, err := c.used(ctx)
	if err != nil {
		return nil, err
	}
	nodes := []*controlv1.Node{}
	for i := range list.Items {
		n := &list.Items[i]
		if devices := devicesOf(n); devices > 0 || used[n.Name] > 0 {
			nodes = append(nodes, &controlv1.Node{
				Name: n.Name, Accelerator: acceleratorOf(n), Rack: n.Labels[corev1.LabelTopologyZone], Devices: count(devices),
				Used: count(used[n.Name]), Health: healthOf(n),
			})
		}
	}
	slices.SortFunc(nodes, func(a, b *controlv1.Node) int { return strings.Compare(a.GetName(), b.GetName()) })
	return nodes, nil
}

// used is how many devices of each node jobs hold. Who may not see all jobs is told of those that he may.
func (c *Cluster) used(ctx context.Context) (map[string]int, error) {
	objects, err := c.Everywhere().list(ctx)
	if apierrors.IsForbidden(err) {
		c.note("you may not list the training jobs of all namespaces: used counts those of namespace %q only", c.namespace)
		objects, err = c.list(ctx)
	}
	if err != nil {
		return nil, c.words("list training jobs", err)
	}
	used := map[string]int{}
	for i := range objects {
		d := objects[i].Status.Decision
		if d == nil || d.Stop {
			continue
		}
		for _, s := range d.Seats {
			if devices, err := trainingjob.ParseDevices(s.Devices); err == nil {
				used[s.Node] += devices.Count()
			}
		}
	}
	return used, nil
}

// devicesOf is how many devices a node has: those of the first resource of which it has any.
func devicesOf(n *corev1.Node) int {
	for _, r := range resources {
		if q := n.Status.Allocatable[r]; q.Value() > 0 {
			return int(q.Value())
		}
	}
	return 0
}

func acceleratorOf(n *corev1.Node) string {
	for _, label := range accelerators {
		if name := n.Labels[label]; name != "" {
			return name
		}
	}
	return "gpu"
}

// healthOf is what a node is good for as far as the node says. The scheduler waits a while before it takes one for down.
func healthOf(n *corev1.Node) string {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case !ready:
		return core.Down.String()
	case n.DeletionTimestamp != nil || n.Spec.Unschedulable && n.Annotations[gang.DrainAnnotation] == "true" ||
		len(taintsOf(n, corev1.TaintEffectNoExecute)) > 0:
		return core.Draining.String()
	case n.Spec.Unschedulable || len(taintsOf(n, corev1.TaintEffectNoSchedule)) > 0:
		return closed
	default:
		return core.Ready.String()
	}
}

// closed is the health of a node that takes no new jobs, and keeps those that it has.
const closed = "cordoned"

// taintsOf are the taints of some effects by which a node is kept from jobs, unless the config of the scheduler tolerates them.
func taintsOf(n *corev1.Node, effects ...corev1.TaintEffect) (keys []string) {
	for _, t := range n.Spec.Taints {
		if slices.Contains(effects, t.Effect) && t.Key != corev1.TaintNodeUnschedulable && t.Key != gang.NodesTaint {
			keys = append(keys, t.Key)
		}
	}
	return keys
}

// SetHealth cordons a node and has its jobs moved, or ends that.
func (c *Cluster) SetHealth(ctx context.Context, name string, h core.Health) error {
	drain := h != core.Ready
	attempt, annotation := fmt.Sprintf("undrain node %q", name), "null"
	if drain {
		attempt, annotation = fmt.Sprintf("drain node %q", name), `"true"`
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}},"spec":{"unschedulable":%t}}`, gang.DrainAnnotation, annotation, drain)
	n, err := c.api.Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		list, err := c.api.Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return c.words("list nodes", err)
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return core.UnknownName("node", name, "", names)
	}
	if err != nil {
		return c.words(attempt, err)
	}
	if keys := taintsOf(n, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute); !drain && len(keys) > 0 {
		c.note("node %q has taints that keep jobs from it, unless the scheduler tolerates them: %s", name, strings.Join(keys, ", "))
	}
	return nil
}

// orNone names a node for people.
func orNone(name string) string { return cmp.Or(name, "-") }
