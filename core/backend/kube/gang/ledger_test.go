package gang_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// ours is a member with devices, on a node once it is bound.
func ours(name, node, devices string, bound bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, UID: types.UID(name), ResourceVersion: "10", Finalizers: []string{gang.Finalizer},
		Annotations: map[string]string{gang.NodeAnnotation: node, gang.DevicesAnnotation: devices},
	}}
	if pod.Spec.SchedulerName = trainingjob.SchedulerName; bound {
		pod.Spec.NodeName = node
	}
	set, _ := trainingjob.ParseDevices(devices)
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{gang.DefaultResource: quantity(set.Count())},
	}}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimName: &pod.Name}}
	return pod
}

// theirs is a pod that asks for devices by their number.
func theirs(name, node string, devices int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "else", Name: name, UID: types.UID(name)}}
	pod.Spec.NodeName = node
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{gang.DefaultResource: quantity(devices)},
	}}}
	return pod
}

func with(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(pod)
	return pod
}

// asks has a pod ask for so many devices, whatever it carries.
func asks(pod *corev1.Pod, devices int) *corev1.Pod {
	pod.Spec.Containers[0].Resources.Limits[gang.DefaultResource] = quantity(devices)
	return pod
}

func need(name string, devices string) gang.Need {
	set, _ := trainingjob.ParseDevices(devices)
	return gang.Need{Namespace: "team", Name: name, UID: types.UID(name), Version: "20", Node: "node-0", Devices: set}
}

func deleted(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{} }

// claim has devices of node-0, for a pod unless that is empty.
func claim(name, of string, devices ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("claim-" + name)}}
	if of != "" {
		yes := true
		c.Labels = map[string]string{gang.JobLabel: of}
		c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: of, UID: types.UID(of), Controller: &yes}}
	}
	c.Status.Allocation = &resourcev1.AllocationResult{}
	for _, device := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Driver: "gpu.example.com", Pool: "node-0", Device: device,
		})
	}
	return c
}

// watches makes a claim one that holds nothing.
func watches(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	yes := true
	c.Status.Allocation.Devices.Results[0].AdminAccess = &yes
	return c
}

// overlaps is a claim of others that leaves room for so many devices of node-0.
func overlaps(name string, room int) func(string, core.DeviceSet) []gang.Holder {
	return func(node string, devices core.DeviceSet) []gang.Holder {
		if node != "node-0" || devices.Count() <= room {
			return nil
		}
		return []gang.Holder{{Namespace: "team", Name: name, Node: node, UID: types.UID("claim-" + name), Claim: true, Foreign: true}}
	}
}

// A member is kept from devices that others have or may come to have, and by there being too few of them.
func TestBlockers(t *testing.T) {
	for name, tc := range map[string]struct {
		options gang.Options
		pods    []*corev1.Pod
		claims  []*resourcev1.ResourceClaim
		node    func(*corev1.Node)
		beside  func(string, core.DeviceSet) []gang.Holder
		of      func(*corev1.Pod) bool
		want    []string
	}{
		"nobody":                {},
		"other devices":         {pods: []*corev1.Pod{ours("x", "node-0", "2-3", true)}},
		"other node":            {pods: []*corev1.Pod{ours("x", "node-1", "0-3", true)}},
		"one of two":            {pods: []*corev1.Pod{ours("x", "node-0", "1-3", true)}, want: []string{"pod team/x on node-0 1"}},
		"one that is not bound": {pods: []*corev1.Pod{ours("x", "node-0", "0", false)}, want: []string{"pod team/x on node-0 0"}},
		"itself":                {pods: []*corev1.Pod{ours("me", "node-0", "0-1", false)}},
		"deleted and not bound": {pods: []*corev1.Pod{with(ours("x", "node-0", "0", false), deleted)}},
		"deleted and bound":     {pods: []*corev1.Pod{with(ours("x", "node-0", "0", true), deleted)}, want: []string{"pod team/x on node-0 0"}},
		"ended":                 {pods: []*corev1.Pod{with(ours("x", "node-0", "0", true), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}},
		"on a node out of service": {
			pods: []*corev1.Pod{ours("x", "node-0", "0", true)},
			node: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService}} },
		},
		"foreign, enough left": {pods: []*corev1.Pod{theirs("f", "node-0", 2)}},
		"foreign, too few":     {pods: []*corev1.Pod{theirs("f", "node-0", 3)}, want: []string{"pod else/f"}},
		"foreign and ours, too few": {
			pods: []*corev1.Pod{theirs("f", "node-0", 2), ours("x", "node-0", "3", true)}, want: []string{"pod else/f"},
		},
		"foreign that ended": {pods: []*corev1.Pod{with(theirs("f", "node-0", 4), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}},
		"foreign on no node": {pods: []*corev1.Pod{theirs("f", "", 4), theirs("f", "node-9", 4)}},
		"somebody who writes our annotations": {
			pods: []*corev1.Pod{with(theirs("f", "node-0", 1), func(p *corev1.Pod) { p.Annotations = ours("", "node-0", "0-3", true).Annotations })},
		},
		"somebody whose pod looks like ours": {
			pods: []*corev1.Pod{ours("x", "node-0", "0-3", false), with(ours("y", "node-0", "0-3", true), func(p *corev1.Pod) { p.Spec.Containers = nil })},
			of:   func(*corev1.Pod) bool { return false },
		},
		"a member among them": {
			pods: []*corev1.Pod{ours("x", "node-0", "0", false), ours("y", "node-0", "1", false)},
			of:   func(p *corev1.Pod) bool { return p.Name == "y" }, want: []string{"pod team/y on node-0 1"},
		},
		"devices that left the node": {
			node: func(n *corev1.Node) { n.Status.Allocatable = corev1.ResourceList{gang.DefaultResource: quantity(1)} },
			want: []string{"too few devices of node-0"},
		},
		"claim of its own": {
			options: gang.Options{Class: "gpu"}, pods: []*corev1.Pod{ours("me", "node-0", "0-1", false)},
			claims: []*resourcev1.ResourceClaim{claim("me", "me", "gpu-0")},
		},
		"claim of another name that says it is its own": {
			options: gang.Options{Class: "gpu"}, pods: []*corev1.Pod{ours("me", "node-0", "0-1", false)},
			claims: []*resourcev1.ResourceClaim{claim("forged", "me", "gpu-0")}, want: []string{"claim team/forged on node-0 0"},
		},
		"claim that its pod does not name": {
			options: gang.Options{Class: "gpu"}, pods: []*corev1.Pod{with(ours("me", "node-0", "0-1", false), func(p *corev1.Pod) { p.Spec.ResourceClaims = nil })},
			claims: []*resourcev1.ResourceClaim{claim("me", "me", "gpu-0")}, want: []string{"claim team/me on node-0 0"},
		},
		"bound, with claims, and none": {options: gang.Options{Class: "gpu"}, pods: []*corev1.Pod{ours("x", "node-0", "0-3", true)}},
		"more written than asked for":  {pods: []*corev1.Pod{asks(ours("x", "node-0", "0-3", true), 1)}},
		"less written than asked for":  {pods: []*corev1.Pod{asks(ours("x", "node-0", "3", true), 3)}, want: []string{"pod team/x"}},
		"not bound, and more written":  {pods: []*corev1.Pod{asks(ours("x", "node-0", "0-3", false), 1)}},
		"claim of a pod that is gone": {
			options: gang.Options{Class: "gpu"}, claims: []*resourcev1.ResourceClaim{claim("x", "x", "gpu-0")},
			want: []string{"claim team/x on node-0 0"},
		},
		"foreign claim": {
			options: gang.Options{Class: "gpu"}, claims: []*resourcev1.ResourceClaim{claim("f", "", "gpu-1")},
			want: []string{"claim team/f on node-0 1"},
		},
		"foreign claim that only watches": {
			options: gang.Options{Class: "gpu"}, claims: []*resourcev1.ResourceClaim{watches(claim("f", "", "gpu-1"))},
		},
		"foreign claim of a part of a device": {
			options: gang.Options{Class: "gpu"}, beside: overlaps("f", 0), want: []string{"claim team/f"},
		},
		"foreign claim of a part, beside devices of ours": { // what they hold leaves room for two of three
			options: gang.Options{Class: "gpu"}, pods: []*corev1.Pod{ours("x", "node-0", "3", true)}, beside: overlaps("f", 2),
			claims: []*resourcev1.ResourceClaim{claim("x", "x", "gpu-3")}, want: []string{"claim team/f"},
		},
		"foreign claim of a part, with room beside it": {
			options: gang.Options{Class: "gpu"}, pods: []*corev1.Pod{ours("x", "node-0", "3", false)}, beside: overlaps("f", 2),
		},
		"foreign claim that took a device of ours": {
			options: gang.Options{Class: "gpu"}, pods: []*corev1.Pod{ours("x", "node-0", "3", true)},
			claims: []*resourcev1.ResourceClaim{claim("f", "", "gpu-3"), claim("x", "x", "gpu-3")},
			beside: func(_ string, devices core.DeviceSet) []gang.Holder {
				return []gang.Holder{{Name: "f", UID: "claim-f", Claim: true, Devices: devices & (1 << 3)}}
			},
		},
		"foreign claim of a device that overlaps with itself": { // it is told of once
			options: gang.Options{Class: "gpu"}, claims: []*resourcev1.ResourceClaim{claim("f", "", "gpu-1")}, beside: overlaps("f", 0),
			want: []string{"claim team/f on node-0 1"},
		},
		"foreign claim of another device": {options: gang.Options{Class: "gpu"}, claims: []*resourcev1.ResourceClaim{claim("f", "", "gpu-2")}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, 4, tc.options)
			if tc.node != nil {
				tc.node(r.nodes["node-0"])
			}
			book := gang.NewBook(tc.options)
			book.See(gang.Cluster{
				Version: "30", Pods: tc.pods, Claims: tc.claims, Nodes: []*corev1.Node{r.nodes["node-0"], r.nodes["node-1"]}, Devices: r.names,
				Beside: tc.beside, Ours: tc.of,
			})
			var got []string
			for _, h := range book.Blockers([]gang.Need{need("me", "0-1")}) {
				got = append(got, h.To(h.Namespace))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("blockers (-want +got):\n%s", diff)
			}
			if took := book.Take([]gang.Need{need("me", "0-1")}); took != (len(got) == 0) {
				t.Errorf("taken: %v, behind %v", took, got)
			}
		})
	}
}

// Devices count once that were taken for a pod and are in its claim by now: two gangs that come to a node together both begin.
func TestTakenAndClaimed(t *testing.T) {
	o := gang.Options{Class: "gpu"}
	r, book := newRig(t, 1, 4, o), gang.NewBook(o)
	see := func(claims ...*resourcev1.ResourceClaim) {
		pods := []*corev1.Pod{ours("me", "node-0", "0-1", false), ours("you", "node-0", "2-3", false)}
		book.See(gang.Cluster{Version: "30", Pods: pods, Claims: claims, Nodes: []*corev1.Node{r.nodes["node-0"]}, Devices: r.names})
	}
	mine, yours := []gang.Need{need("me", "0-1")}, []gang.Need{need("you", "2-3")}
	see()
	if !book.Take(mine) || !book.Take(yours) {
		t.Fatal("half of a node each, and not taken")
	}
	see(claim("me", "me", "gpu-0", "gpu-1"), claim("you", "you", "gpu-2", "gpu-3"))
	if got := append(book.Blockers(mine), book.Blockers(yours)...); len(got) > 0 || !book.Take(mine) || !book.Take(yours) {
		t.Errorf("behind %v", got)
	}
}

// A claim may be seen after its pod is bound: what was taken stays so until then.
func TestClaimSeenLate(t *testing.T) {
	o := gang.Options{Class: "gpu"}
	r, book := newRig(t, 1, 4, o), gang.NewBook(o)
	see := func(bound bool, claims ...*resourcev1.ResourceClaim) {
		pods := []*corev1.Pod{ours("me", "node-0", "0-1", bound)}
		book.See(gang.Cluster{Version: "30", Pods: pods, Claims: claims, Nodes: []*corev1.Node{r.nodes["node-0"]}, Devices: r.names})
	}
	see(false)
	if !book.Take([]gang.Need{need("me", "0-1")}) {
		t.Fatal("nobody has it, and it is not taken")
	}
	see(true)
	if book.Take([]gang.Need{need("you", "1-2")}) {
		t.Error("taken twice while its claim is not seen")
	}
	see(true, claim("me", "me", "gpu-0", "gpu-1"))
	if book.Take([]gang.Need{need("you", "1-2")}) {
		t.Error("taken twice when its claim is seen")
	}
}

// What was taken stays taken until a look that is new enough tells what became of it.
func TestTake(t *testing.T) {
	r := newRig(t, 1, 4, gang.Options{})
	see := func(version string, pods ...*corev1.Pod) func(*gang.Book) {
		return func(b *gang.Book) {
			b.See(gang.Cluster{Version: version, Pods: pods, Nodes: []*corev1.Node{r.nodes["node-0"]}})
		}
	}
	for name, tc := range map[string]struct {
		then func(*gang.Book)
		want bool // somebody else can have it
	}{
		"nothing new":              {then: func(*gang.Book) {}},
		"an old look without it":   {then: see("19")},
		"a look with it":           {then: see("20", ours("me", "node-0", "0-1", false))},
		"it is bound":              {then: see("21", ours("me", "node-0", "0-1", true))},
		"it was deleted, unbound":  {then: see("21", with(ours("me", "node-0", "0-1", false), deleted)), want: true},
		"a new look without it":    {then: see("20"), want: true},
		"somebody saw it go":       {then: func(b *gang.Book) { b.Release("me") }, want: true},
		"bound, and somebody saw":  {then: func(b *gang.Book) { see("21", ours("me", "node-0", "0-1", true))(b); b.Release("me") }, want: true},
		"bound, then gone":         {then: func(b *gang.Book) { see("21", ours("me", "node-0", "0-1", true))(b); see("22")(b) }, want: true},
		"others took what is left": {then: func(b *gang.Book) { b.Take([]gang.Need{need("other", "2-3")}) }},
	} {
		t.Run(name, func(t *testing.T) {
			book := gang.NewBook(gang.Options{})
			see("20")(book)
			mine := []gang.Need{need("me", "0-1")}
			for i := range 2 {
				if !book.Take(mine) {
					t.Fatalf("not taken, time %d", i+1)
				}
			}
			tc.then(book)
			if got := book.Take([]gang.Need{need("you", "1-2")}); got != tc.want {
				t.Errorf("taken by another: %v, want %v", got, tc.want)
			}
		})
	}
	book := gang.NewBook(gang.Options{})
	see("20")(book)
	book.Take([]gang.Need{need("me", "0")})
	if book.Take([]gang.Need{need("a", "3"), need("b", "0")}) || !book.Take([]gang.Need{need("you", "3")}) {
		t.Error("part of a gang was taken")
	}
}
