//go:build linux

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// gpus are gpu-0 and so on.
func gpus(count int) (list []resourcev1.Device) {
	for i := range count {
		list = append(list, gpu(fmt.Sprint("gpu-", i)))
	}
	return list
}

// useClaims has a driver of its own give the devices of the rig.
func (r *rig) useClaims() {
	r.Helper()
	r.driver = r.namespace + ".example.com"
	r.settings.DeviceClass = r.driver
	r.class(fmt.Sprintf("device.driver == %q", r.driver))
}

// class makes the class of the rig one of these selectors.
func (r *rig) class(selectors ...string) {
	r.Helper()
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: r.driver}}
	c.Spec.Config = []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{
		Opaque: &resourcev1.OpaqueDeviceConfiguration{Driver: r.driver, Parameters: runtime.RawExtension{Raw: []byte(`{"strategy":"exclusive"}`)}},
	}}}
	for _, s := range selectors {
		c.Spec.Selectors = append(c.Spec.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: s}})
	}
	classes := r.admin.DeviceClasses()
	_, err := classes.Create(r.Context(), c, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = classes.Update(r.Context(), c, metav1.UpdateOptions{})
	}
	if err != nil {
		r.Fatal(err)
	}
}

// publish has the driver tell which devices a node has.
func (r *rig) publish(node string, devices ...resourcev1.Device) {
	r.Helper()
	r.publishPart(node, "", 0, 1, nil, devices)
}

// publishPart publishes one of several slices of the pool of a node: in a generation, or in the next one of this slice.
func (r *rig) publishPart(node, part string, generation, of int64, counters []resourcev1.CounterSet, devices []resourcev1.Device) {
	r.Helper()
	name := r.node(node)
	all := r.admin.ResourceSlices()
	s := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name + part},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: r.driver, NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, Generation: max(generation, 1), ResourceSliceCount: of},
			Devices: devices, SharedCounters: counters,
		},
	}
	was, err := all.Get(r.Context(), s.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		if s.ResourceVersion = was.ResourceVersion; generation == 0 {
			s.Spec.Pool.Generation = was.Spec.Pool.Generation + 1
		}
		_, err = all.Update(r.Context(), s, metav1.UpdateOptions{})
	case apierrors.IsNotFound(err):
		_, err = all.Create(r.Context(), s, metav1.CreateOptions{})
	}
	if err != nil {
		r.Fatal(err)
	}
}

// take allocates devices of a node to a claim of others, as kube-scheduler would.
func (r *rig) take(name, node string, devices ...string) {
	r.Helper()
	claims := r.admin.ResourceClaims(r.namespace)
	c, err := claims.Create(r.Context(), &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "theirs", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: r.driver, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(len(devices)),
			},
		}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		r.Fatal(err)
	}
	c.Status.Allocation = &resourcev1.AllocationResult{}
	for _, d := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "theirs", Driver: r.driver, Pool: r.node(node), Device: d,
		})
	}
	if _, err := claims.UpdateStatus(r.Context(), c, metav1.UpdateOptions{}); err != nil {
		r.Fatal(err)
	}
}

// release deletes a claim of others.
func (r *rig) release(name string) {
	r.Helper()
	if err := r.admin.ResourceClaims(r.namespace).Delete(r.Context(), name, metav1.DeleteOptions{}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) claims() []resourcev1.ResourceClaim {
	r.Helper()
	list, err := r.admin.ResourceClaims(r.namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return list.Items
}

// holds is what the members of a job hold by their claims, as node/device, in the order of the seats.
func (r *rig) holds(job string) (list []string) {
	r.Helper()
	pods := slices.DeleteFunc(r.podsOf(job), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return strings.Compare(a.Labels[gang.MemberLabel], b.Labels[gang.MemberLabel])
	})
	for _, p := range pods {
		c, err := r.admin.ResourceClaims(r.namespace).Get(context.Background(), p.Name, metav1.GetOptions{})
		if err != nil {
			r.Fatal(err)
		}
		for _, d := range gang.Allocated(c) {
			list = append(list, strings.TrimSuffix(d.Pool, "-"+r.namespace+"-0")+"/"+d.Name)
		}
	}
	return list
}

// decided are the devices of the decision on a job, as node/gpu-INDEX.
func (r *rig) decided(job string) (list []string) {
	r.Helper()
	for _, s := range r.job(job).Status.Decision.Seats {
		devices, err := trainingjob.ParseDevices(s.Devices)
		if err != nil || devices == 0 {
			r.Fatalf("a seat has the devices %q", s.Devices)
		}
		for _, i := range devices.List() {
			list = append(list, fmt.Sprintf("%s/gpu-%d", strings.TrimSuffix(s.Node, "-"+r.namespace+"-0"), i))
		}
	}
	return list
}

func (r *rig) wantHeld(job string, want ...string) {
	r.Helper()
	if got := r.holds(job); !slices.Equal(got, want) {
		r.Errorf("job %s holds %q, want %q", job, got, want)
	}
}

// notary looks at the claim of each pod before it is bound, as the kubelet would afterwards: the simulated nodes do not.
type notary struct {
	http.RoundTripper
	rig   *rig
	mutex sync.Mutex
	bound int
}

func (n *notary) through(rt http.RoundTripper) http.RoundTripper {
	n.RoundTripper = rt
	return n
}

func (n *notary) RoundTrip(request *http.Request) (*http.Response, error) {
	path, isBinding := strings.CutSuffix(request.URL.Path, "/binding")
	if !isBinding || request.Method != http.MethodPost {
		return n.RoundTripper.RoundTrip(request)
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.bound++
	name := path[strings.LastIndex(path, "/")+1:]
	held := map[gang.Device]string{}
	for _, c := range n.rig.claims() {
		for _, d := range gang.Allocated(&c) {
			if other := held[d]; other != "" {
				n.rig.Errorf("when %s is bound the claims %s and %s both have %v", name, other, c.Name, d)
			}
			held[d] = c.Name
		}
		if c.Name != name {
			continue
		}
		if has := gang.Allocated(&c); len(has) == 0 || len(has) != int(c.Spec.Devices.Requests[0].Exactly.Count) {
			n.rig.Errorf("the claim of %s has %v when it is bound", name, has)
			return n.RoundTripper.RoundTrip(request)
		}
		p, err := n.rig.admin.Pods(n.rig.namespace).Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			continue // somebody deleted it
		}
		_, indices, _ := gang.Assigned(p)
		for i, d := range gang.Allocated(&c) {
			if of := indices.List()[i]; strings.HasPrefix(d.Name, "gpu-") && d.Name != fmt.Sprint("gpu-", of) {
				n.rig.Errorf("the claim of %s has %s for device %d", name, d.Name, of)
			}
		}
		if config := c.Status.Allocation.Devices.Config; len(config) != 1 || config[0].Source != resourcev1.AllocationConfigSourceClass {
			n.rig.Errorf("the claim of %s has the config %+v, want that of the class", name, config)
		}
		if len(c.Status.ReservedFor) != 1 || c.Status.ReservedFor[0].UID != p.UID {
			n.rig.Errorf("the claim of %s is reserved for %v when it is bound", name, c.Status.ReservedFor)
		}
		name = ""
	}
	if name != "" { // with a pod that somebody deleted its claim may be gone, too
		if p, err := n.rig.admin.Pods(n.rig.namespace).Get(context.Background(), name, metav1.GetOptions{}); err == nil && p.DeletionTimestamp == nil {
			n.rig.Errorf("%s has no claim when it is bound", name)
		}
	}
	return n.RoundTripper.RoundTrip(request)
}

// scheduleChecked is schedule with a notary.
func (r *rig) scheduleChecked() (*scheduler, *notary) {
	r.Helper()
	r.witness()
	n := &notary{rig: r}
	s := r.schedule(n.through)
	s.hears("node_added a")
	s.hears("node_added b")
	s.news()
	return s, n
}

// Jobs that share a node hold the very devices that the plan says, also after a move, and with four writes a pod. What is stopped
// is free.
func TestExactDevices(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, shared(t), true)
	c := new(counted)
	n := &notary{rig: r}
	r.witness()
	s := r.schedule(func(rt http.RoundTripper) http.RoundTripper {
		c.RoundTripper = n.through(rt)
		return c
	})
	s.hears("node_added b")
	for _, name := range []string{"one", "two", "three"} {
		r.submit(name, asked{})
		s.hears("job_started " + name)
	}
	r.wantHeld("one", "a/gpu-0")
	r.wantHeld("two", "a/gpu-1")
	r.wantHeld("three", "b/gpu-0")
	for _, name := range []string{"one", "two", "three"} {
		r.wantHeld(name, r.decided(name)...)
		if writes := c.about("/pods/"+r.podsOf(name)[0].Name) + c.about("/resourceclaims/"+r.podsOf(name)[0].Name); writes != 2 {
			t.Errorf("%d writes about the pod and claim of job %s beside their creation", writes, name)
		}
	}
	if pods, claims := c.created("/pods"), c.created("/resourceclaims"); pods != 3 || claims != 3 {
		t.Errorf("%d pods and %d claims are created for 3 jobs of one pod", pods, claims)
	}
	if err := r.admin.jobs.Of(r.namespace).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.hears("job_cancelled one")
	r.submit("wide", asked{replicas: 2})
	s.hears("job_started wide")
	r.wantHeld("wide", r.decided("wide")...)
	r.wantHeld("two", "a/gpu-1")
	r.patchNode("a", `{"spec":{"unschedulable":true},"metadata":{"annotations":{"quartet.sched/drain":"true"}}}`)
	s.hears("node_changed a draining 0")
	r.await("a job moves", func() bool {
		return !slices.ContainsFunc(r.podsOf("two"), func(p corev1.Pod) bool { return p.Spec.NodeName == r.node("a") })
	})
	for _, name := range []string{"two", "three", "wide"} {
		if err := r.admin.jobs.Of(r.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.await("the claims are gone", func() bool { return len(r.claims()) == 0 })
	r.quiet()
	if n.bound == 0 {
		t.Error("nobody looked at a binding")
	}
}

// created counts objects that were created.
func (c *counted) created(kind string) (count int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, p := range c.paths {
		if strings.HasPrefix(p, http.MethodPost) && strings.HasSuffix(p, kind) {
			count++
		}
	}
	return count
}

// What befalls single devices is told, and nobody gets them.
func TestDeviceFaults(t *testing.T) {
	t.Parallel()
	c := shared(t)
	for name, befall := range map[string]func(*rig){
		"others take a device":                   foreignClaim,
		"others take a part of a device":         foreignPart,
		"a device gets a taint":                  deviceTainted,
		"the jobs of a device are to go":         deviceEvicted,
		"a device is not there any more":         deviceGone,
		"a device is there that was not":         deviceNew,
		"a driver starts anew":                   driverAnew,
		"a driver is gone":                       driverGone,
		"a pool is not whole":                    poolInPieces,
		"the class is edited":                    classEdited,
		"the next scheduler counts from another": takeoverOfDevices,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			befall(newRigOf(t, c, true))
		})
	}
}

func foreignClaim(r *rig) {
	s, _ := r.scheduleChecked()
	r.take("theirs", "a", "gpu-0")
	s.hears("node_changed a ready 1")
	r.submit("one", asked{replicas: 3})
	s.hears("job_started one")
	r.wantHeld("one", "a/gpu-1", "b/gpu-0", "b/gpu-1")
	r.submit("two", asked{})
	r.becomes("two", trainingjob.Waiting)
	s.news()
	r.release("theirs")
	s.hears("job_started two")
	r.wantHeld("two", "a/gpu-0")
	s.wantNews("node_changed a ready 0")
}

// divided are two devices of a pool with counters, and halves of the first.
func (r *rig) divided(node string) {
	counters := []resourcev1.CounterSet{counterSet("c0", 2), counterSet("c1", 2)}
	r.publishPart(node, "-counters", 2, 2, counters, nil)
	r.publishPart(node, "", 2, 2, nil, []resourcev1.Device{
		gpu("gpu-0", consumes("c0", 2)), gpu("gpu-1", consumes("c1", 2)), gpu("half-0", consumes("c0", 1)), gpu("half-1", consumes("c0", 1)),
	})
}

func foreignPart(r *rig) {
	r.unpublish("a")
	r.divided("a")
	s, _ := r.scheduleChecked()
	r.take("theirs", "a", "half-1")
	s.hears("node_changed a ready 1")
	r.submit("one", asked{replicas: 3})
	s.hears("job_started one")
	r.wantHeld("one", "a/gpu-1", "b/gpu-0", "b/gpu-1")
	r.submit("two", asked{})
	r.becomes("two", trainingjob.Waiting)
	r.release("theirs")
	s.hears("job_started two")
	r.wantHeld("two", "a/gpu-0")
}

func deviceTainted(r *rig) {
	s, _ := r.scheduleChecked()
	r.submit("one", asked{})
	s.hears("job_started one")
	s.news()
	r.publish("a", gpu("gpu-0", deviceTaint(resourcev1.DeviceTaintEffectNoSchedule)), gpu("gpu-1"))
	r.await("the job moves", func() bool { return r.job("one").Status.Decision.Run == 2 })
	r.becomes("one", trainingjob.Running)
	r.wantHeld("one", "a/gpu-1")
	s.wantNews("node_changed a ready 1")
	r.publish("a", gpus(2)...)
	s.hears("node_changed a ready 0")
}

// deviceEvicted: Kubernetes itself ends the pods.
func deviceEvicted(r *rig) {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	s := r.schedule(g.through)
	r.submit("one", asked{})
	s.hears("job_started one")
	g.shut()
	r.publish("a", gpu("gpu-0", deviceTaint(resourcev1.DeviceTaintEffectNoExecute)), gpu("gpu-1"))
	r.await("the pod is evicted", func() bool {
		return slices.ContainsFunc(r.podsOf("one")[0].Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget && c.Reason == "DeletionByDeviceTaintManager"
		})
	})
	g.unlock()
	r.await("the job runs elsewhere", func() bool {
		j := r.job("one")
		return j.Status.Decision.Run >= 2 && j.Status.State == trainingjob.Running
	})
	r.wantHeld("one", "a/gpu-1")
}

func deviceGone(r *rig) {
	s, _ := r.scheduleChecked()
	r.submit("one", asked{})
	r.submit("two", asked{})
	s.hears("job_started two")
	s.news()
	r.publish("a", gpu("gpu-1"))
	s.hears("job_interrupted one device_lost")
	s.hears("job_started one")
	r.wantHeld("one", "b/gpu-0")
	r.wantHeld("two", "a/gpu-1")
	s.wantNews("node_changed a ready 1", "job_interrupted one device_lost")
	if d := r.job("two").Status.Decision; d.Run != 1 || d.Seats[0].Devices != "1" {
		r.Errorf("the other job is decided as %+v, want as before", d)
	}
	r.publish("a", gpu("gpu-0"), gpu("gpu-1"))
	s.hears("node_changed a ready 0")
	r.submit("three", asked{})
	s.hears("job_started three")
	r.wantHeld("three", "a/gpu-0")
}

// unpublish has the driver of a node tell of no devices any more.
func (r *rig) unpublish(node string) {
	r.Helper()
	if err := r.admin.ResourceSlices().Delete(r.Context(), r.node(node), metav1.DeleteOptions{}); err != nil {
		r.Fatal(err)
	}
}

func driverAnew(r *rig) {
	s, _ := r.scheduleChecked()
	r.submit("one", asked{})
	s.hears("job_started one")
	s.news()
	r.unpublish("a")
	r.submit("two", asked{})
	s.hears("job_started two")
	r.publish("a", gpus(2)...)
	r.submit("three", asked{replicas: 2})
	s.hears("job_started three")
	s.wantNews("job_submitted two", "job_submitted three")
	r.wantHeld("one", "a/gpu-0")
	r.wantHeld("two", "a/gpu-1")
}

func driverGone(r *rig) {
	r.settings.SilentAfter = time.Second
	s, _ := r.scheduleChecked()
	r.submit("one", asked{})
	s.hears("job_started one")
	s.news()
	r.unpublish("a")
	s.hears("job_started one")
	s.wantNews("node_changed a down 2", "job_interrupted one device_lost")
	r.wantHeld("one", "b/gpu-0")
}

func deviceNew(r *rig) {
	s, _ := r.scheduleChecked()
	r.submit("one", asked{replicas: 5})
	r.becomes("one", trainingjob.Pending)
	r.publish("b", gpus(3)...)
	s.hears("job_started one")
	r.wantHeld("one", r.decided("one")...)
}

func poolInPieces(r *rig) {
	s, _ := r.scheduleChecked()
	r.publishPart("b", "-more", 2, 2, nil, []resourcev1.Device{gpu("gpu-2")})
	r.submit("one", asked{replicas: 5})
	r.becomes("one", trainingjob.Pending)
	r.publishPart("b", "", 2, 2, nil, gpus(2))
	s.hears("job_started one")
	r.wantHeld("one", r.decided("one")...)
}

func classEdited(r *rig) {
	s, _ := r.scheduleChecked()
	r.class(fmt.Sprintf("device.driver == %q", r.driver), `!("lab" in device.attributes) || !device.attributes["lab"].reserved`)
	r.publish("a", gpu("gpu-0", func(d *resourcev1.Device) {
		yes := true
		d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"lab/reserved": {BoolValue: &yes}}
	}), gpu("gpu-1"))
	s.hears("node_changed a ready 1")
	r.submit("one", asked{replicas: 3})
	s.hears("job_started one")
	r.wantHeld("one", "a/gpu-1", "b/gpu-0", "b/gpu-1")
}

// takeoverOfDevices: what the next scheduler sees of a node has another order. Jobs keep the devices that they have.
func takeoverOfDevices(r *rig) {
	l := &line{cut: make(chan struct{})}
	first := r.schedule(l.through)
	first.hears("node_added b")
	r.submit("one", asked{})
	first.hears("job_started one")
	r.submit("two", asked{})
	first.hears("job_started two")
	r.becomes("two", trainingjob.Running)
	uid := r.podsOf("two")[0].UID
	l.sever()
	_ = first.stop()
	for _, p := range r.podsOf("one") {
		r.patch(&p, `{"status":{"phase":"Succeeded"}}`, "status")
	}
	r.publish("a", gpu("before"), gpu("gpu-1")) // gpu-1 is the second, and gpu-0 is gone
	r.bury()
	r.witness()
	second := r.schedule((&notary{rig: r}).through)
	second.hears("job_started two")
	r.submit("three", asked{})
	second.hears("job_started three")
	r.wantHeld("two", "a/gpu-1")
	r.wantHeld("three", "a/before")
	if p := r.podsOf("two")[0]; p.UID != uid {
		r.Error("the pod of a job that runs on is another one")
	}
	if d := r.job("two").Status.Decision; d.Run != 1 {
		r.Errorf("the job is decided as %+v, want as before", d)
	}
}

// A class that is not there, or of which nobody knows what it selects, is refused before anything is scheduled.
func TestUnreadableClass(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, sharedOrStandIn(t), true)
	r.settings.DeviceClass = "none"
	_, err := r.tryOpen(t.Context(), nil)
	if ds, is := errors.AsType[core.Diagnostics](err); !is || ds[0].Path != "backend.config.device_class" || !strings.Contains(ds[0].Summary, `no DeviceClass "none"`) {
		t.Errorf("opened with %v, want that there is no such class", err)
	}
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
		{CEL: &resourcev1.CELDeviceSelector{Expression: `device.later("x")`}},
	}}}
	if _, err := readClass(c); err == nil || !strings.Contains(err.Error(), `DeviceClass "x": selector 0`) {
		t.Errorf("a selector of a later release: %v", err)
	}
	c.Spec.Selectors = []resourcev1.DeviceSelector{{}}
	if _, err := readClass(c); err == nil {
		t.Error("a selector of another kind is taken for CEL")
	}
}
