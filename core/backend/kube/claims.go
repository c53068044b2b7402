package kube

import (
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// withClaims has the world look at ResourceClaims, ResourceSlices and DeviceClasses, too.
func (w *world) withClaims(cluster *clients, log *slog.Logger) ([]handler, error) {
	w.devices = newInventory(log)
	w.claims, w.slices, w.classes = informerOf(cluster.ResourceClaims(metav1.NamespaceAll)), informerOf(cluster.ResourceSlices()), informerOf(cluster.DeviceClasses())
	if err := w.claims.AddIndexers(cache.Indexers{jobIndex: indexByLabel}); err != nil {
		return nil, err
	}
	return []handler{
		{w.claims, handle(w.claim)},
		{w.slices, handle(func(s *resourcev1.ResourceSlice, gone bool) {
			w.devices.slice(s, gone)
			w.note(w.otherNodes)
		})},
		{w.classes, handle(func(c *resourcev1.DeviceClass, gone bool) {
			if c.Name == w.config.DeviceClass {
				w.devices.edited(c, gone)
				w.note(w.otherNodes)
			}
		})},
	}, nil
}

// indexByLabel finds claims by the namespace and the name of their job, and so those of other jobs of this name, too.
func indexByLabel(object any) ([]string, error) {
	c, is := object.(*resourcev1.ResourceClaim)
	if !is || c.Labels[gang.JobLabel] == "" {
		return nil, nil
	}
	return []string{c.Namespace + "/" + c.Labels[gang.JobLabel]}, nil
}

// claimsOf are the claims of the members of a job.
func (w *world) claimsOf(job *gang.Job) []*resourcev1.ResourceClaim {
	objects, err := w.claims.GetIndexer().ByIndex(jobIndex, job.Namespace+"/"+job.Labels()[gang.JobLabel])
	if err != nil {
		return nil // there is such an index
	}
	var list []*resourcev1.ResourceClaim
	for _, object := range objects {
		if c, is := object.(*resourcev1.ResourceClaim); is {
			list = append(list, c)
		}
	}
	return list
}

// claim takes in a claim: one of ours calls for its job, and one of others may take devices away.
func (w *world) claim(c *resourcev1.ResourceClaim, gone bool) {
	job, ours := w.claimant(c)
	others := w.devices.claim(c, gone || ours)
	free := gone || c.Status.Allocation == nil
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if !gang.Older(c.ResourceVersion, w.claimed) {
		w.claimed = c.ResourceVersion
	}
	w.trouble = nil
	if others {
		w.otherNodes()
		wake(w.happened)
	}
	if job != "" {
		w.podsChanged[job] = true
	}
	w.freed = w.freed || free
	if others || job != "" || free {
		wake(w.stirred)
	}
}

// claimant is the job whose member a claim is for, empty where it is not known, and whether it is one of ours at all.
func (w *world) claimant(c *resourcev1.ResourceClaim) (job types.UID, ours bool) {
	if w.config.Watch != "" && c.Namespace != w.config.Watch {
		return "", false
	}
	ours = gang.Claimant(c, func(uid types.UID) *corev1.Pod {
		if p := w.podOf(c.Namespace, c.Name); p != nil && p.UID == uid { // it has the name of its pod
			return p
		}
		return nil
	}, func(p *corev1.Pod) bool {
		job = w.memberOf(p)
		return job != ""
	}) != ""
	return job, ours
}

// pin has devices keep the indices by which members have them. It is for a scheduler that begins to lead.
func (w *world) pin() {
	if w.devices == nil {
		return
	}
	var members []*corev1.Pod
	for _, p := range every[*corev1.Pod](w.pods.GetStore()) {
		if w.memberOf(p) != "" && !gang.Freed(p, w.node) {
			members = append(members, p)
		}
	}
	w.devices.pin(members, func(p *corev1.Pod) *resourcev1.ResourceClaim {
		object, there, err := w.claims.GetStore().GetByKey(p.Namespace + "/" + p.Name)
		c, is := object.(*resourcev1.ResourceClaim)
		if err != nil || !there || !is || !metav1.IsControlledBy(c, p) {
			return nil
		}
		return c
	})
}

// deprive tells of jobs that a device of theirs is not there any more. What else keeps them from a device takes them off it in the
// next round.
func (b *Backend) deprive(e *core.Event, now float64) {
	if e.Kind != core.NodeChanged {
		return
	}
	n := b.nodes.told[e.Node]
	for _, j := range b.byID {
		if j == nil || j.ended || j.losing {
			continue
		}
		for _, s := range b.holds[j.uid] {
			if lost := s.Devices & n.missing; s.Node == n.id && lost != 0 {
				b.lose(j, now, core.CauseDeviceLost, gang.ReasonDeviceGone,
					fmt.Sprintf("no ResourceSlice has the devices %s of the node %s any more", trainingjob.FormatDevices(lost), n.name))
				break
			}
		}
	}
}
