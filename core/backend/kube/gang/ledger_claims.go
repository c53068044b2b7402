package gang

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// Claimant is the pod of ours that a claim is for; empty for a claim of others. Anybody can write an owner reference: a claim is
// ours if it has the name of its pod, and that pod names it and is a member. A claim may be seen before its pod, and after it: then
// nothing but that pod may have it reserved. Pods are found by their UIDs, nil for one that is not known; ours says which of them
// are members, nil for all.
func Claimant(claim *resourcev1.ResourceClaim, find func(types.UID) *corev1.Pod, ours func(*corev1.Pod) bool) types.UID {
	owner := metav1.GetControllerOfNoCopy(claim)
	if owner == nil || owner.Kind != podKind || owner.Name != claim.Name {
		return ""
	}
	pod := find(owner.UID)
	switch {
	case pod == nil:
		if claim.Labels[JobLabel] == "" || slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
			return r.UID != owner.UID
		}) {
			return ""
		}
	case pod.Namespace != claim.Namespace, pod.Spec.SchedulerName != trainingjob.SchedulerName, !claims(pod), ours != nil && !ours(pod):
		return ""
	}
	return owner.UID
}

// claims reports whether a pod asks for devices by the claim that its gang makes for it, which has its name.
func claims(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool {
		return c.ResourceClaimName != nil && *c.ResourceClaimName == pod.Name
	})
}

// place is where a device is.
type place struct {
	node  string
	index int
}

// claimed is what is allocated to claims, each by node. The devices of a claim whose pod is gone are free only when somebody freed
// them.
type claimed struct {
	ours   map[types.UID][]Holder // by pod
	others []Holder
}

// claimed looks at claims.
func (b *Book) claimed(c Cluster, names map[Device]place) claimed {
	to := claimed{ours: map[types.UID][]Holder{}}
	if b.options.Class == "" {
		return to
	}
	pods := make(map[types.UID]*corev1.Pod, len(c.Pods))
	for _, pod := range c.Pods {
		pods[pod.UID] = pod
	}
	for _, claim := range c.Claims {
		pod := Claimant(claim, func(uid types.UID) *corev1.Pod { return pods[uid] }, c.Ours)
		var held []Holder // on one node as a rule
		for _, d := range Allocated(claim) {
			at, ok := names[d]
			if !ok {
				continue
			}
			i := slices.IndexFunc(held, func(h Holder) bool { return h.Node == at.node })
			if i < 0 {
				i, held = len(held), append(held, Holder{
					Namespace: claim.Namespace, Name: claim.Name, Node: at.node, UID: claim.UID, Claim: true, Foreign: pod == "",
				})
			}
			held[i].Devices |= core.FirstDevices(at.index+1) &^ core.FirstDevices(at.index)
		}
		if pod == "" {
			to.others = append(to.others, held...)
		} else if len(held) > 0 {
			to.ours[pod] = append(to.ours[pod], held...)
		}
	}
	return to
}

// on are the devices of its node that the claim of a bound pod holds.
func (c claimed) on(pod *corev1.Pod) (devices core.DeviceSet) {
	for _, h := range c.ours[pod.UID] {
		if h.Node == pod.Spec.NodeName {
			devices |= h.Devices
		}
	}
	return devices
}
