package gang_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// api is a small API server in memory, with a kubelet and the controllers that matter here. Objects have UIDs, versions and
// finalizers; pods are deleted with grace; a pod's process is another thing than its object, and outlives it when somebody deletes
// that by force. It checks at every change that no device has two processes, none two claims, and that no job runs twice.
type api struct {
	sync.Mutex
	version, uids uint64
	pods          map[string]*corev1.Pod
	claims        map[string]*resourcev1.ResourceClaim
	services      map[string]*corev1.Service
	nodes         map[string]*corev1.Node
	processes     map[types.UID]process
	devices       int // of each node
	history       []snapshot
	problems      []string
	late          []func() // calls that reached nobody yet
	stuck         func(*corev1.Pod) bool
	refuse        func(method, path string) *metav1.Status

	batches []*gang.Job // whose pods a controller of others makes

	calls  map[string]int // by what they do
	reused map[string]types.UID
}

// process is what a kubelet runs.
type process struct {
	node    string
	devices core.DeviceSet
	job     types.UID
	run     string
}

// snapshot is what an informer of some moment would see.
type snapshot struct {
	version string
	pods    []*corev1.Pod
	claims  []*resourcev1.ResourceClaim
}

func newAPI(nodes, devices int) *api {
	a := &api{
		pods: map[string]*corev1.Pod{}, claims: map[string]*resourcev1.ResourceClaim{}, services: map[string]*corev1.Service{},
		nodes: map[string]*corev1.Node{}, processes: map[types.UID]process{}, devices: devices, calls: map[string]int{},
		reused: map[string]types.UID{},
	}
	for i := range nodes {
		a.addNode("node-" + strconv.Itoa(i))
	}
	a.changed()
	return a
}

func (a *api) addNode(name string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = corev1.ResourceList{gang.DefaultResource: quantity(a.devices)}
	a.nodes[name] = n
}

// changed checks what must hold at every change, and keeps what is to be seen.
func (a *api) changed() {
	s := snapshot{version: strconv.FormatUint(a.version, 10)}
	for _, name := range slices.Sorted(maps.Keys(a.pods)) {
		s.pods = append(s.pods, a.pods[name])
	}
	for _, name := range slices.Sorted(maps.Keys(a.claims)) {
		s.claims = append(s.claims, a.claims[name])
	}
	a.history = append(a.history, s)
	type device struct {
		node  string
		index int
	}
	holders := map[device][]string{}
	for uid, p := range a.processes {
		for _, i := range p.devices.List() {
			holders[device{p.node, i}] = append(holders[device{p.node, i}], string(uid))
		}
	}
	for d, by := range holders {
		if len(by) > 1 {
			a.problems = append(a.problems, fmt.Sprintf("version %d: device %d of %s runs %v", a.version, d.index, d.node, by))
		}
	}
	runs := map[types.UID]string{}
	for _, p := range a.processes {
		if run, runsToo := runs[p.job]; runsToo && run != p.run {
			a.problems = append(a.problems, fmt.Sprintf("version %d: job %s runs twice: runs %s and %s", a.version, p.job, run, p.run))
		}
		runs[p.job] = p.run
	}
	given := map[string]string{}
	for name, c := range a.claims {
		if pod := a.pods[name]; c.Status.Allocation == nil || pod == nil || pod.DeletionTimestamp != nil && pod.Spec.NodeName == "" {
			continue // what is allocated to a pod that never gets to a node is given to nobody
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			if other, taken := given[r.Pool+"/"+r.Device]; taken {
				a.problems = append(a.problems, fmt.Sprintf("version %d: %s/%s is given to %s and %s", a.version, r.Pool, r.Device, name, other))
			}
			given[r.Pool+"/"+r.Device] = name
		}
	}
}

// touch gives an object its next version.
func (a *api) touch(o metav1.Object) {
	a.version++
	o.SetResourceVersion(strconv.FormatUint(a.version, 10))
}

// save keeps a pod that changed, or lets it go when nothing holds it any more.
func (a *api) save(pod *corev1.Pod) {
	a.touch(pod)
	key := pod.Namespace + "/" + pod.Name
	a.pods[key] = pod
	if pod.DeletionTimestamp != nil && *pod.DeletionGracePeriodSeconds == 0 && len(pod.Finalizers) == 0 {
		delete(a.pods, key)
	}
	a.changed()
}

func (a *api) remove(pod *corev1.Pod, grace int64) {
	pod = pod.DeepCopy()
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		grace = 0
	}
	if pod.DeletionTimestamp == nil {
		now := metav1.Now()
		pod.DeletionTimestamp = &now
		pod.DeletionGracePeriodSeconds = &grace
	}
	grace = min(grace, *pod.DeletionGracePeriodSeconds)
	pod.DeletionGracePeriodSeconds = &grace
	a.save(pod)
}

// bind puts a pod on a node, where its process begins.
func (a *api) bind(pod *corev1.Pod, node string) {
	pod = pod.DeepCopy()
	pod.Spec.NodeName = node
	if a.nodes[node] != nil {
		_, devices, _ := gang.Assigned(pod)
		a.processes[pod.UID] = process{node, devices, metav1.GetControllerOf(pod).UID, pod.Labels[gang.RunLabel]}
	}
	a.save(pod)
}

// tick lets kubelets and controllers do one thing for each object.
func (a *api) tick() {
	a.Lock()
	defer a.Unlock()
	for _, call := range a.late {
		call()
	}
	a.late = nil
	alive := map[types.UID]bool{}
	for _, key := range slices.Sorted(maps.Keys(a.pods)) {
		pod := a.pods[key].DeepCopy()
		alive[pod.UID] = true
		phase, gone := pod.Status.Phase, a.nodes[pod.Spec.NodeName] == nil
		switch final := phase == corev1.PodFailed || phase == corev1.PodSucceeded; {
		case pod.Spec.NodeName == "":
		case gone && !final:
			delete(a.processes, pod.UID)
			pod.Status.Phase = corev1.PodFailed
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists",
			})
			a.save(pod)
		case gone && pod.DeletionTimestamp == nil:
			a.remove(pod, 0)
		case pod.DeletionTimestamp != nil && !final:
			a.end(pod, 143, "")
		case pod.DeletionTimestamp != nil && *pod.DeletionGracePeriodSeconds > 0:
			a.remove(pod, 0)
		case phase == corev1.PodPending && (a.stuck == nil || !a.stuck(pod)):
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
			a.save(pod)
		}
	}
	for uid := range a.processes {
		if !alive[uid] {
			delete(a.processes, uid) // its kubelet saw by now that the object is gone
		}
	}
	a.freeClaims(alive)
	for _, job := range a.batches {
		a.makePods(job)
	}
}

// batchUID is that of the batch Job whose pods a job has.
func batchUID(job *gang.Job) types.UID { return types.UID("batch-" + job.Name) }

// makePods does what the controller of a batch Job does, which wants a pod for each seat, and one where there is none.
func (a *api) makePods(job *gang.Job) {
	missing := max(len(job.Seats), 1)
	for _, key := range slices.Sorted(maps.Keys(a.pods)) {
		pod := a.pods[key]
		owner := metav1.GetControllerOf(pod)
		switch final := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded; {
		case owner.UID != batchUID(job):
		case slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) && (final || pod.DeletionTimestamp != nil):
			pod = pod.DeepCopy() // it counts it
			pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(f string) bool { return f == batchv1.JobTrackingFinalizer })
			a.save(pod)
		case pod.DeletionTimestamp != nil:
		case final && len(pod.Finalizers) == 0:
			delete(a.pods, key) // nobody looks at its logs
			a.version++
			a.changed()
		case final:
		case missing > 0:
			missing--
		case pod.Spec.NodeName == "":
			a.remove(pod, 0)
		}
	}
	for range missing {
		yes := true
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", job.Name, a.uids), Namespace: job.Namespace, Finalizers: []string{batchv1.JobTrackingFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: batchUID(job), Controller: &yes}},
		}}
		pod.Spec.SchedulerName = trainingjob.SchedulerName
		pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{gang.DefaultResource: quantity(1)},
		}}}
		a.createPod(job.Namespace, pod)
	}
}

// end ends the process of a pod.
func (a *api) end(pod *corev1.Pod, code int32, reason string) {
	pod = pod.DeepCopy()
	delete(a.processes, pod.UID)
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, reason
	if code == 0 {
		pod.Status.Phase = corev1.PodSucceeded
	}
	if pod.Status.ContainerStatuses != nil {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"},
		}}}
	}
	a.save(pod)
}

// freeClaims frees and deletes the claims of pods that are gone.
func (a *api) freeClaims(alive map[types.UID]bool) {
	for _, key := range slices.Sorted(maps.Keys(a.claims)) {
		claim := a.claims[key].DeepCopy()
		if alive[claim.OwnerReferences[0].UID] {
			continue
		}
		if claim.Status.Allocation != nil {
			claim.Status = resourcev1.ResourceClaimStatus{}
			a.touch(claim)
			a.claims[key] = claim
		} else {
			delete(a.claims, key)
			a.version++
		}
		a.changed()
	}
}

func failure(code int, reason metav1.StatusReason, format string, args ...any) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: fmt.Sprintf(format, args...),
	}
}

var (
	errCut = errors.New("the connection was cut")
	// cuts are what may become of a call that its caller hears nothing of.
	cuts = []string{"before", "after", "late"}
)

// client is one of those who use the API: it can be cut.
type client struct {
	*api
	count int
	cutAt int    // number of the call, from 1; 0 for none
	how   string // one of cuts
	dead  bool   // nothing reaches the API any more
	dies  bool   // with the cut
}

func (a *api) client() *client { return &client{api: a} }

func (c *client) kubernetes(t testing.TB) *kubeclient.Client { return over(t, c) }

func over(t testing.TB, transport http.RoundTripper) *kubeclient.Client {
	k, err := kubeclient.New(&rest.Config{
		Host: "http://api", Transport: transport, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// RoundTrip answers a call.
func (c *client) RoundTrip(request *http.Request) (*http.Response, error) {
	c.Lock()
	defer c.Unlock()
	var body []byte
	if request.Body != nil {
		body, _ = io.ReadAll(request.Body)
	}
	if c.dead {
		return nil, errCut
	}
	c.count++
	do := func() any { return c.answer(request.Method, request.URL.Path, body) }
	if c.count == c.cutAt {
		c.dead = c.dies
		switch c.how {
		case "after":
			do()
		case "late":
			c.late = append(c.late, func() { do() })
		}
		return nil, errCut
	}
	answer := do()
	code := http.StatusOK
	if status, ok := answer.(*metav1.Status); ok && status.Status == metav1.StatusFailure {
		code = int(status.Code)
	}
	content, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(content)), Request: request,
	}, nil
}

// answer carries out a call. Paths are /api/v1/namespaces/NS/KIND/NAME/SUB and /apis/GROUP/v1/namespaces/….
func (a *api) answer(method, path string, body []byte) any {
	_, rest, _ := strings.Cut(path, "/namespaces/")
	parts := append(strings.Split(rest, "/"), "", "")
	namespace, kind, name, sub := parts[0], parts[1], parts[2], parts[3]
	a.calls[strings.TrimSuffix(method+" "+kind+"/"+sub, "/")]++
	if a.refuse != nil && method != http.MethodGet {
		if status := a.refuse(method, path); status != nil {
			return status
		}
	}
	switch kind {
	case "pods":
		return a.pod(method, namespace, name, sub, body)
	case "services":
		return a.service(namespace, body)
	case "resourceclaims":
		return a.claim(method, namespace, name, body)
	default:
		return failure(404, metav1.StatusReasonNotFound, "no such kind: %s", kind)
	}
}

func read[T any](body []byte) T {
	var out T
	if err := json.Unmarshal(body, &out); err != nil {
		panic(err)
	}
	return out
}

func (a *api) newMeta(o metav1.Object) {
	a.uids++
	o.SetUID(types.UID("uid-" + strconv.FormatUint(a.uids, 10)))
	o.SetCreationTimestamp(metav1.Now())
}

func (a *api) service(namespace string, body []byte) any {
	s := read[*corev1.Service](body)
	if a.services[namespace+"/"+s.Name] != nil {
		return failure(409, metav1.StatusReasonAlreadyExists, "services %q already exists", s.Name)
	}
	a.newMeta(s)
	a.touch(s)
	a.services[namespace+"/"+s.Name] = s
	return s
}

func (a *api) pod(method, namespace, name, sub string, body []byte) any {
	if method == http.MethodPost && name == "" {
		return a.createPod(namespace, read[*corev1.Pod](body))
	}
	pod := a.pods[namespace+"/"+name]
	if pod == nil {
		return failure(404, metav1.StatusReasonNotFound, "pods %q not found", name)
	}
	switch method + sub {
	case http.MethodGet:
		return pod
	case http.MethodPost + "binding":
		return a.binding(pod, read[*corev1.Binding](body))
	case http.MethodDelete:
		options := read[metav1.DeleteOptions](body)
		if p := options.Preconditions; p == nil || p.UID == nil || *p.UID != pod.UID || p.ResourceVersion != nil && *p.ResourceVersion != pod.ResourceVersion {
			return failure(409, metav1.StatusReasonConflict, "Precondition failed")
		}
		grace := int64(30)
		if options.GracePeriodSeconds != nil {
			grace = *options.GracePeriodSeconds
		}
		a.remove(pod, grace)
		return &metav1.Status{Status: metav1.StatusSuccess}
	case http.MethodPatch, http.MethodPatch + "status":
		return a.patch(pod, sub, body)
	default:
		return failure(405, metav1.StatusReasonMethodNotAllowed, "%s %s", method, sub)
	}
}

// patch changes a pod as strategic merge patches do.
func (a *api) patch(pod *corev1.Pod, sub string, body []byte) any {
	all := read[struct {
		Metadata struct {
			UID                 types.UID
			ResourceVersion     string
			Labels, Annotations map[string]*string
			Finalizers          []string
			Removed             []string `json:"$deleteFromPrimitiveList/finalizers"`
		}
		Status corev1.PodStatus
	}](body)
	patch := all.Metadata
	switch {
	case patch.UID != pod.UID:
		return failure(422, metav1.StatusReasonInvalid, "metadata.uid: field is immutable")
	case patch.ResourceVersion != "" && patch.ResourceVersion != pod.ResourceVersion:
		return failure(409, metav1.StatusReasonConflict, "the object has been modified")
	case len(patch.Finalizers) > 0 && pod.DeletionTimestamp != nil:
		return failure(422, metav1.StatusReasonInvalid, "no new finalizers can be added if the object is being deleted")
	}
	pod = pod.DeepCopy()
	if sub == "status" {
		pod.Status.Conditions = append(pod.Status.Conditions, all.Status.Conditions...)
		a.save(pod)
		return pod
	}
	pod.Labels, pod.Annotations = merged(pod.Labels, patch.Labels), merged(pod.Annotations, patch.Annotations)
	pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(f string) bool { return slices.Contains(patch.Removed, f) })
	for _, f := range patch.Finalizers {
		if !slices.Contains(pod.Finalizers, f) {
			pod.Finalizers = append(pod.Finalizers, f)
		}
	}
	a.save(pod)
	return pod
}

func merged(was map[string]string, patch map[string]*string) map[string]string {
	is := map[string]string{}
	maps.Copy(is, was)
	for key, value := range patch {
		if delete(is, key); value != nil {
			is[key] = *value
		}
	}
	return is
}

func (a *api) createPod(namespace string, pod *corev1.Pod) any {
	key := namespace + "/" + pod.Name
	if a.pods[key] != nil {
		return failure(409, metav1.StatusReasonAlreadyExists, "pods %q already exists", pod.Name)
	}
	if pod.Spec.NodeName != "" || pod.Spec.SchedulerName != trainingjob.SchedulerName {
		a.problems = append(a.problems, "pod "+pod.Name+" was not created for us to bind")
	}
	a.newMeta(pod)
	pod.Status.Phase = corev1.PodPending
	a.save(pod)
	return pod
}

func (a *api) binding(pod *corev1.Pod, b *corev1.Binding) any {
	switch {
	case b.UID != pod.UID:
		return failure(409, metav1.StatusReasonConflict, "Precondition failed: UID")
	case b.ResourceVersion != "" && b.ResourceVersion != pod.ResourceVersion:
		return failure(409, metav1.StatusReasonConflict, "Precondition failed: ResourceVersion")
	case pod.DeletionTimestamp != nil:
		return failure(409, metav1.StatusReasonConflict, "pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return failure(409, metav1.StatusReasonConflict, "pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	}
	if was, known := a.reused[pod.Namespace+"/"+pod.Name]; known && was != pod.UID {
		a.problems = append(a.problems, "the name "+pod.Name+" was bound before")
	}
	a.reused[pod.Namespace+"/"+pod.Name] = pod.UID
	if claims := pod.Spec.ResourceClaims; len(claims) > 0 {
		claim := a.claims[pod.Namespace+"/"+*claims[0].ResourceClaimName]
		if claim == nil || claim.Status.Allocation == nil || len(claim.Status.ReservedFor) != 1 || claim.Status.ReservedFor[0].UID != pod.UID {
			a.problems = append(a.problems, "pod "+pod.Name+" was bound without its claim")
		}
	}
	a.bind(pod, b.Target.Name)
	return &metav1.Status{Status: metav1.StatusSuccess}
}

func (a *api) claim(method, namespace, name string, body []byte) any {
	if method == http.MethodGet {
		if claim := a.claims[namespace+"/"+name]; claim != nil {
			return claim
		}
		return failure(404, metav1.StatusReasonNotFound, "resourceclaims %q not found", name)
	}
	claim := read[*resourcev1.ResourceClaim](body)
	key := namespace + "/" + claim.Name
	was := a.claims[key]
	if method == http.MethodPost {
		if was != nil {
			return failure(409, metav1.StatusReasonAlreadyExists, "resourceclaims %q already exists", claim.Name)
		}
		a.newMeta(claim)
		claim.Status = resourcev1.ResourceClaimStatus{}
	} else {
		switch {
		case was == nil:
			return failure(404, metav1.StatusReasonNotFound, "resourceclaims %q not found", name)
		case was.ResourceVersion != claim.ResourceVersion:
			return failure(409, metav1.StatusReasonConflict, "the object has been modified")
		case was.Status.Allocation != nil:
			return failure(422, metav1.StatusReasonInvalid, "status.allocation: field is immutable")
		case !slices.Contains(was.Finalizers, gang.ClaimFinalizer):
			a.problems = append(a.problems, "the claim "+name+" would stay allocated for ever")
		}
	}
	a.touch(claim)
	a.claims[key] = claim
	a.changed()
	return claim
}

// summary is what matters of the pods that are there.
func (a *api) summary() []string {
	a.Lock()
	defer a.Unlock()
	var out []string
	for _, pod := range a.pods {
		text := fmt.Sprintf("%s %s %s", pod.Name, cmp.Or(pod.Spec.NodeName, "-"), pod.Annotations[gang.DevicesAnnotation])
		if pod.DeletionTimestamp != nil {
			text += " deleted"
		}
		out = append(out, text+" "+string(pod.Status.Phase))
	}
	slices.Sort(out)
	return out
}
