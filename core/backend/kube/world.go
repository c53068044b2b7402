package kube

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// world is what informers keep of the cluster, and what of it changed since somebody looked. Its methods may be called from any
// goroutine.
type world struct {
	config   *Config
	selector labels.Selector
	devices  *inventory // nil without claims

	nodes, pods, jobs, services cache.SharedIndexInformer
	claims, slices, classes     cache.SharedIndexInformer // nil without claims
	handlers                    []handler
	adopted                     *adoptions // nil where pods of others are left alone
	heard                       []cache.InformerSynced
	happened                    chan struct{} // holds an item when there is something to look at
	stirred                     chan struct{} // the same, for those that drive pods

	mutex        sync.Mutex
	nodesChanged bool
	jobsChanged  map[types.UID]bool
	arrived      []types.UID        // those of jobsChanged, in the order in which they were told of
	driven       map[types.UID]bool // jobs whose state is another
	podsChanged  map[types.UID]bool // jobs whose pods are others
	repelling    map[types.UID]bool // pods on nodes that keep others away
	roomier      bool               // nodes, or pods on them, are others
	freed        bool               // somebody may have let go of devices
	version      string             // of the pods: of the last event on one
	claimed      string             // the same, of the claims
	byUID        map[types.UID]*trainingjob.TrainingJob
	others       map[types.UID]use // pods that are none of ours
	foreignOn    map[string]int
	trouble      error
}

// use is what a pod of others holds.
type use struct {
	node    string
	devices int
}

const (
	jobIndex  = "job"
	unitIndex = "unit"
)

func newWorld(c *Config, all *clients, log *slog.Logger, adopts bool) (*world, error) {
	selector, err := labels.Parse(c.Nodes)
	if err != nil {
		return nil, err
	}
	w := &world{
		config: c, selector: selector, nodes: informerOf(all.Nodes()), pods: informerOf(all.Pods(metav1.NamespaceAll).Objects),
		services: kubeclient.NewInformer(all.Services(metav1.NamespaceAll), "metadata.name="+gang.Names, cache.Indexers{}),
		jobs:     trainingjob.NewInformer(all.jobs, c.Watch),
		happened: make(chan struct{}, 1), stirred: make(chan struct{}, 1),
		jobsChanged: map[types.UID]bool{}, driven: map[types.UID]bool{}, podsChanged: map[types.UID]bool{},
		byUID: map[types.UID]*trainingjob.TrainingJob{}, others: map[types.UID]use{}, repelling: map[types.UID]bool{}, foreignOn: map[string]int{},
	}
	if err := w.pods.AddIndexers(cache.Indexers{jobIndex: w.indexByJob, unitIndex: w.indexByUnit}); err != nil {
		return nil, err
	}
	w.handlers = []handler{
		{w.nodes, handle(func(*corev1.Node, bool) { w.note(w.otherNodes) })},
		{w.pods, handle(w.pod)},
		{w.jobs, handle(w.trainingJob)},
	}
	if c.DeviceClass != "" {
		more, err := w.withClaims(all, log)
		if err != nil {
			return nil, err
		}
		w.handlers = append(w.handlers, more...)
	}
	if adopts {
		w.adopted = newAdoptions(informerOf(all.Jobs(metav1.NamespaceAll)))
		w.handlers = append(w.handlers, handler{w.adopted.jobs, handle(w.batchJob)})
	}
	for _, h := range w.handlers {
		registered, err := h.informer.AddEventHandler(h.handler)
		if err != nil {
			return nil, err
		}
		w.heard = append(w.heard, registered.HasSynced)
		if err := h.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			cache.DefaultWatchErrorHandler(ctx, r, err) // logs it
			w.broken(err)
		}); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// informerOf is a cache of objects without what nobody reads, indexed by namespace.
func informerOf[T kubeclient.Object, L runtime.Object](objects *kubeclient.Objects[T, L]) cache.SharedIndexInformer {
	informer := kubeclient.NewInformer(objects, "", cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	_ = informer.SetTransform(slim) // an error is of one that runs
	return informer
}

type handler struct {
	informer cache.SharedIndexInformer
	handler  cache.ResourceEventHandler
}

// stir has all jobs driven that wait for others.
func (w *world) stir() {
	w.mutex.Lock()
	w.freed = true
	w.mutex.Unlock()
	wake(w.stirred)
}

// otherNodes notes that nodes, or what others hold of them, are to be looked at.
func (w *world) otherNodes() { w.nodesChanged, w.freed, w.roomier = true, true, true }

// slim drops what nobody reads.
func slim(object any) (any, error) {
	if m, err := meta.Accessor(object); err == nil {
		m.SetManagedFields(nil)
	}
	if n, is := object.(*corev1.Node); is {
		n.Status.Images = nil
	}
	if j, is := object.(*batchv1.Job); is && j.Spec.Template.Spec.SchedulerName != trainingjob.SchedulerName {
		j.Spec, j.Status = batchv1.JobSpec{}, batchv1.JobStatus{} // it is none of ours
	}
	return object, nil
}

// indexByJob finds the pods of a job by its UID.
func (w *world) indexByJob(object any) ([]string, error) {
	p, is := object.(*corev1.Pod)
	if !is {
		return nil, nil
	}
	if uid := w.jobOf(p); uid != "" {
		return []string{string(uid)}, nil
	}
	return nil, nil
}

// jobOf is the job whose member a pod is; empty for none. Pods of jobs that another scheduler looks after are like those of
// anybody else.
func (w *world) jobOf(p *corev1.Pod) types.UID {
	if p.Spec.SchedulerName != trainingjob.SchedulerName || w.config.Watch != "" && p.Namespace != w.config.Watch {
		return ""
	}
	if owner := metav1.GetControllerOfNoCopy(p); owner != nil && owner.Kind == trainingjob.Kind && owner.APIVersion == trainingjob.GroupVersion().String() {
		return owner.UID
	}
	return gang.AdoptedBy(p)
}

// memberOf is the same, and empty for a pod that says it is of a job of another namespace: anybody can write that.
func (w *world) memberOf(p *corev1.Pod) types.UID {
	uid := w.jobOf(p)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if t := w.byUID[uid]; t != nil && t.Namespace != p.Namespace {
		return ""
	}
	return uid
}

// handle calls for each object that is there, or was and is gone.
func handle[T any](do func(object T, gone bool)) cache.ResourceEventHandler {
	call := func(object any, gone bool) {
		if lost, is := object.(cache.DeletedFinalStateUnknown); is {
			object = lost.Obj
		}
		if t, is := object.(T); is {
			do(t, gone)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { call(o, false) },
		UpdateFunc: func(was, is any) {
			x, err1 := meta.Accessor(was)
			y, err2 := meta.Accessor(is)
			if err1 == nil && err2 == nil && x.GetUID() != y.GetUID() { // another one under the same name
				call(was, true)
			}
			call(is, false)
		},
		DeleteFunc: func(o any) { call(o, true) },
	}
}

// note notes that something changed.
func (w *world) note(do func()) {
	w.mutex.Lock()
	do()
	w.trouble = nil
	w.mutex.Unlock()
	wake(w.happened)
	wake(w.stirred)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // there is a note already
	}
}

func (w *world) pod(p *corev1.Pod, gone bool) {
	uid := w.memberOf(p)
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	held := 0
	if w.devices == nil && uid == "" && !gone && !ended && p.Spec.NodeName != "" {
		held = gang.Requested(p, corev1.ResourceName(w.config.Resource))
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if !gang.Older(p.ResourceVersion, w.version) {
		w.version = p.ResourceVersion
	}
	w.trouble = nil
	w.countRoom(p, uid == "" || gone || ended, gone || ended)
	w.unitPod(p)
	if uid != "" {
		w.podsChanged[uid] = true
		w.freed = w.freed || gone || ended || p.DeletionTimestamp != nil
		wake(w.stirred)
		return
	}
	w.foreignPod(p, held)
}

// countRoom notes what a pod on a node leaves to others there. The mutex is held.
func (w *world) countRoom(p *corev1.Pod, differs, over bool) {
	if p.Spec.NodeName == "" {
		return
	}
	if differs && !w.roomier {
		w.roomier = true
		wake(w.happened)
	}
	if a := p.Spec.Affinity; over {
		delete(w.repelling, p.UID)
	} else if a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		w.repelling[p.UID] = true
	}
}

// repels reports whether there is a pod on a node that keeps others away.
func (w *world) repels() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.repelling) > 0
}

// roomChanged reports whether nodes, or pods on them, are others than when this was last asked.
func (w *world) roomChanged() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	was := w.roomier
	w.roomier = false
	return was
}

// foreignPod counts how many devices a pod of others holds.
func (w *world) foreignPod(p *corev1.Pod, held int) {
	was, counted := w.others[p.UID]
	now := use{p.Spec.NodeName, held}
	if now == was && counted || held == 0 && !counted {
		return
	}
	w.foreignOn[was.node] -= was.devices
	delete(w.others, p.UID)
	if held > 0 {
		w.others[p.UID] = now
		w.foreignOn[now.node] += now.devices
	}
	w.nodesChanged, w.freed = true, true
	wake(w.happened)
	wake(w.stirred)
}

func (w *world) trainingJob(t *trainingjob.TrainingJob, gone bool) {
	w.note(func() {
		if !w.jobsChanged[t.UID] {
			w.arrived = append(w.arrived, t.UID)
		}
		w.jobsChanged[t.UID] = true
		if gone {
			delete(w.byUID, t.UID)
		} else {
			w.byUID[t.UID] = t
		}
		w.mirrored(t, gone)
	})
}

// broken notes that a watch does not go on.
func (w *world) broken(err error) {
	w.mutex.Lock()
	w.trouble = err
	w.mutex.Unlock()
	wake(w.happened)
}

// troubled is why nothing may be known at present; nil when something was heard since.
func (w *world) troubled() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.trouble
}

// recovered notes that the watches work again.
func (w *world) recovered() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.trouble = nil
}

// run lets the informers work as long as life goes on, and waits until they know what there is.
func (w *world) run(ctx, life context.Context, group *sync.WaitGroup) error {
	all := []cache.SharedIndexInformer{w.nodes, w.pods, w.jobs, w.services}
	if w.devices != nil {
		all = append(all, w.claims, w.slices, w.classes)
	}
	if w.adopted != nil {
		all = append(all, w.adopted.jobs)
	}
	synced := make([]cache.InformerSynced, len(all))
	for i, informer := range all {
		group.Go(func() { informer.RunWithContext(life) })
		synced[i] = informer.HasSynced
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("list what is in the cluster: %w", context.Cause(ctx))
	}
	if !cache.WaitForCacheSync(ctx.Done(), w.heard...) { // who looked earlier would see a part
		return fmt.Errorf("look at what is in the cluster: %w", context.Cause(ctx))
	}
	w.pin()
	return nil
}

// news is what changed since the last time.
type news struct {
	nodes  bool
	jobs   []types.UID
	driven []types.UID
}

func (w *world) changes() news {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	n := news{nodes: w.nodesChanged, jobs: w.arrived, driven: keys(w.driven)}
	w.nodesChanged, w.arrived = false, nil
	clear(w.jobsChanged)
	clear(w.driven)
	return n
}

func keys(set map[types.UID]bool) []types.UID {
	list := make([]types.UID, 0, len(set))
	for uid := range set {
		list = append(list, uid)
	}
	slices.Sort(list)
	return list
}

// drove notes that the state of a job is another.
func (w *world) drove(uid types.UID) {
	w.mutex.Lock()
	w.driven[uid] = true
	w.mutex.Unlock()
	wake(w.happened)
}

func (w *world) nodeList() []*corev1.Node {
	var list []*corev1.Node
	for _, object := range w.nodes.GetStore().List() {
		if n, is := object.(*corev1.Node); is && w.selector.Matches(labels.Set(n.Labels)) {
			list = append(list, n)
		}
	}
	return list
}

func (w *world) node(name string) *corev1.Node {
	object, there, err := w.nodes.GetStore().GetByKey(name)
	if err != nil || !there {
		return nil
	}
	n, _ := object.(*corev1.Node)
	return n
}

// foreign is how many devices of a node pods of others have.
func (w *world) foreign(node string) int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.foreignOn[node]
}

func (w *world) job(uid types.UID) *trainingjob.TrainingJob {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.byUID[uid]
}

// decided is when the last decision was, in seconds of the run; 0 for none.
func (w *world) decided() (last float64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, t := range w.byUID {
		if d := t.Status.Decision; d != nil {
			last = max(last, d.AtSeconds)
		}
	}
	return last
}

// nodesOfJobs are the names of the nodes that jobs have devices of by what is written.
func (w *world) nodesOfJobs() map[string]bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	names := map[string]bool{}
	for _, t := range w.byUID {
		if d := t.Status.Decision; d != nil && !d.Stop && !t.Status.State.Ended() {
			for _, s := range d.Seats {
				names[s.Node] = true
			}
		}
	}
	return names
}

// podsOf are the pods of a job.
func (w *world) podsOf(uid types.UID) []*corev1.Pod {
	objects, err := w.pods.GetIndexer().ByIndex(jobIndex, string(uid))
	if err != nil {
		return nil // there is such an index
	}
	list := make([]*corev1.Pod, 0, len(objects))
	for _, object := range objects {
		if p, is := object.(*corev1.Pod); is && w.memberOf(p) == uid {
			list = append(list, p)
		}
	}
	return list
}

// podOf is a pod by its name; nil for one that is not known.
func (w *world) podOf(namespace, name string) *corev1.Pod {
	object, there, err := w.pods.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !there {
		return nil
	}
	p, _ := object.(*corev1.Pod)
	return p
}

// hasNames reports whether the members of jobs of a namespace can find each other by name.
func (w *world) hasNames(namespace string) bool {
	_, there, err := w.services.GetStore().GetByKey(namespace + "/" + gang.Names)
	return err == nil && there
}

// all is what holds devices.
func (w *world) all() gang.Cluster {
	w.mutex.Lock()
	c := gang.Cluster{Version: w.version} // no newer than the pods that follow
	w.mutex.Unlock()
	c.Pods = every[*corev1.Pod](w.pods.GetStore())
	c.Ours = func(p *corev1.Pod) bool { return w.memberOf(p) != "" }
	c.Nodes = w.nodeList()
	if w.devices != nil {
		c.Claims, c.Devices, c.Beside = every[*resourcev1.ResourceClaim](w.claims.GetStore()), w.devices.devices, w.devices.Beside
	}
	return c
}

// every is all objects of a store.
func every[T any](store cache.Store) []T {
	objects := store.List()
	list := make([]T, 0, len(objects))
	for _, object := range objects {
		if t, is := object.(T); is {
			list = append(list, t)
		}
	}
	return list
}
