package gang_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

func quantity(n int) resource.Quantity { return *resource.NewQuantity(int64(n), resource.DecimalSI) }

// rig is a scheduler that does nothing but drive, on an API in memory.
type rig struct {
	*api
	t       testing.TB
	options gang.Options
	client  *client
	book    *gang.Book
	driver  *gang.Driver
	seen    int // index of the look that was taken last
	now     time.Time
	fence   error
}

// problem is what rapid and testing both can be told.
type problem interface {
	Fatalf(format string, args ...any)
}

func newRig(t testing.TB, nodes, devices int, o gang.Options) *rig {
	r := &rig{api: newAPI(nodes, devices), t: t, options: o, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	r.restart()
	return r
}

// restart is what a scheduler does that knows nothing but what is in the API.
func (r *rig) restart() {
	r.client, r.book = r.api.client(), gang.NewBook(r.options)
	r.driver = &gang.Driver{
		Client: r.client.kubernetes(r.t), Ledger: r.book, Options: r.options, Workers: 1,
		Now: func() time.Time { return r.now }, Fence: func() error { return r.fence },
	}
	r.seen = -1
	r.look(0)
}

// names are those of the devices of a node in claims.
func (r *rig) names(node string) []gang.Device {
	if r.options.Class == "" {
		return nil
	}
	devices := make([]gang.Device, r.devices)
	for i := range devices {
		devices[i] = gang.Device{Driver: "gpu.example.com", Pool: node, Name: "gpu-" + strconv.Itoa(i)}
	}
	return devices
}

// look takes a look that is so many changes behind, and never before the last one.
func (r *rig) look(behind int) gang.Look {
	r.Lock()
	defer r.Unlock()
	last := len(r.history) - 1
	if r.seen < 0 {
		behind = 0 // the first list is what there is
	}
	r.seen = max(r.seen, last-behind)
	s := r.history[r.seen]
	var nodes []*corev1.Node
	for _, n := range r.nodes {
		nodes = append(nodes, n)
	}
	r.book.See(gang.Cluster{Version: s.version, Pods: s.pods, Claims: s.claims, Nodes: nodes, Devices: r.names})
	return gang.Look{
		Version: s.version, Pods: s.pods, ClaimsVersion: s.version, Claims: s.claims, Devices: r.names,
		Node: func(name string) *corev1.Node { return r.nodes[name] },
	}
}

func (r *rig) drive(job *gang.Job) (gang.State, error) {
	return r.driver.Drive(r.t.Context(), *job, r.look(0))
}

// settle drives and ticks until nothing changes any more.
func (r *rig) settle(p problem, jobs ...*gang.Job) []gang.State {
	quiet := 0
	for range 200 {
		before := r.version
		var states []gang.State
		for _, job := range jobs {
			s, err := r.drive(job)
			if err != nil && !errors.Is(err, gang.ErrAgain) {
				p.Fatalf("%v", err)
			}
			states = append(states, s)
		}
		r.tick()
		if quiet++; r.version != before {
			quiet = 0
		}
		if quiet == 2 {
			return states
		}
	}
	p.Fatalf("it does not settle: %q", r.summary())
	return nil
}

func (r *rig) must(p problem) {
	if len(r.problems) > 0 {
		p.Fatalf("%s", r.problems[0])
	}
}

// newJob is a job without seats.
func newJob(name string) *gang.Job {
	return &gang.Job{
		Namespace: "team", Name: name, UID: types.UID("job-" + name), Run: 1,
		Owner:    metav1.OwnerReference{APIVersion: "quartet.sched/v1alpha1", Kind: "TrainingJob", Name: name},
		Grace:    10 * time.Second,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "trainer:1"}}}},
	}
}

// way is one in which members come by their devices, and into being.
type way struct {
	gang.Options
	others bool // a batch Job makes them
}

// ways are all of them.
var ways = map[string]way{"extended resource": {}, "claims": {Options: gang.Options{Class: "gpu"}}, "pods of others": {others: true}}

// newJobs are jobs without seats.
func (r *rig) newJobs(w way, names ...string) (jobs []*gang.Job) {
	for _, name := range names {
		job := newJob(name)
		if w.others {
			job.Grace = 0
			job.Adopts = &gang.Adoption{Unit: gang.Unit{Kind: gang.JobUnit, Namespace: job.Namespace, Name: name, UID: batchUID(job)}, Wants: 1000}
			r.batches = append(r.batches, job)
		}
		jobs = append(jobs, job)
	}
	return jobs
}

// decide gives a job seats. A new run replaces all of its members. Pods of others ask for one device each: theirs are of one.
func decide(job *gang.Job, restart bool, seats ...gang.Seat) {
	if job.Adopts != nil {
		var split []gang.Seat
		for _, s := range seats {
			for _, d := range s.Devices.List() {
				split = append(split, gang.Seat{Node: s.Node, Devices: 1 << d})
			}
		}
		seats = split
	}
	before, next := job.Seats, 0
	for _, s := range before {
		next = max(next, s.Member+1)
	}
	next = max(next, int(job.Round)*100) // numbers that a run used are not to be known from its seats
	if job.Round++; restart {
		job.Run++
		before = nil
	}
	job.Seats, _ = gang.Number(before, seats, next)
}

func seat(node int, devices ...int) gang.Seat {
	s := gang.Seat{Node: "node-" + strconv.Itoa(node)}
	for _, d := range devices {
		s.Devices |= 1 << d
	}
	return s
}

// holds checks that the pods of a job are those of its seats, that they run, and that nothing else of it is left.
func (r *rig) holds(p problem, job *gang.Job) {
	var want, got []string
	for _, s := range job.Seats {
		want = append(want, fmt.Sprint(job.Run, s.Member, s.Node, trainingjob.FormatDevices(s.Devices), corev1.PodRunning))
	}
	for _, pod := range r.pods {
		owner := metav1.GetControllerOf(pod)
		// A pod of others counts while it has a seat.
		if owner.UID == job.UID || gang.AdoptedBy(pod) == job.UID && slices.Contains(pod.Finalizers, gang.Finalizer) {
			got = append(got, fmt.Sprint(pod.Labels[gang.RunLabel], " ", pod.Labels[gang.MemberLabel], pod.Spec.NodeName, pod.Annotations[gang.DevicesAnnotation], pod.Status.Phase))
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		p.Fatalf("pods of %s (-want +got):\n%s", job.Name, diff)
	}
}
