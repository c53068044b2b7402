//go:build linux

package gang_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
	"github.com/quartet-sched/quartet/internal/kubecluster"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

// counter counts writes by what they do.
type counter struct {
	http.RoundTripper
	mu    sync.Mutex
	calls map[string]int
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		_, path, _ := strings.Cut(r.URL.Path, "/namespaces/")
		parts := append(strings.Split(path, "/"), "", "", "")
		c.mu.Lock()
		c.calls[strings.TrimSuffix(r.Method+" "+parts[1]+"/"+parts[3], "/")]++
		c.mu.Unlock()
	}
	return c.RoundTripper.RoundTrip(r)
}

// live drives jobs on a real API server. Every look is a list.
type live struct {
	t       *testing.T
	cluster *kubecluster.Cluster
	client  *kubeclient.Client // of the test
	counter *counter           // of the driver
	driver  *gang.Driver
	book    *gang.Book
	options gang.Options
}

func startCluster(t *testing.T) *kubecluster.Cluster {
	c := kubetest.Start(t, kubecluster.Options{})
	return c
}

func newLive(t *testing.T, c *kubecluster.Cluster, o gang.Options) *live {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	l := &live{t: t, cluster: c, options: o, book: gang.NewBook(o), client: must[*kubeclient.Client](t)(kubeclient.New(config))}
	counted := rest.CopyConfig(config)
	counted.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		l.counter = &counter{RoundTripper: rt, calls: map[string]int{}}
		return l.counter
	})
	l.driver = &gang.Driver{Client: must[*kubeclient.Client](t)(kubeclient.New(counted)), Ledger: l.book, Options: o, Now: func() time.Time { return time.Unix(0, 0) }}
	return l
}

// names are those of the devices of a node in claims.
func names(node string) []gang.Device {
	devices := make([]gang.Device, 8)
	for i := range devices {
		devices[i] = gang.Device{Driver: "gpu.example.com", Pool: node, Name: fmt.Sprint("gpu-", i)}
	}
	return devices
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (l *live) drive(job *gang.Job) gang.State {
	ctx := l.t.Context()
	pods := must[*corev1.PodList](l.t)(l.client.Pods("").List(ctx, metav1.ListOptions{}))
	nodes := must[*corev1.NodeList](l.t)(l.client.Nodes().List(ctx, metav1.ListOptions{}))
	claims := must[*resourcev1.ResourceClaimList](l.t)(l.client.ResourceClaims("").List(ctx, metav1.ListOptions{}))
	look := gang.Look{Version: pods.ResourceVersion, ClaimsVersion: claims.ResourceVersion, Devices: names}
	all := gang.Cluster{Version: pods.ResourceVersion, Devices: names}
	byName := map[string]*corev1.Node{}
	for i := range pods.Items {
		look.Pods = append(look.Pods, &pods.Items[i])
	}
	for i := range claims.Items {
		look.Claims = append(look.Claims, &claims.Items[i])
	}
	for i := range nodes.Items {
		byName[nodes.Items[i].Name] = &nodes.Items[i]
		all.Nodes = append(all.Nodes, &nodes.Items[i])
	}
	look.Node = func(name string) *corev1.Node { return byName[name] }
	all.Pods, all.Claims = look.Pods, look.Claims
	l.book.See(all)
	state, err := l.driver.Drive(ctx, *job, look)
	if err != nil && !errors.Is(err, gang.ErrAgain) {
		l.t.Fatal(err)
	}
	return state
}

// until drives until a job is in a phase and has nothing left that leaves.
func (l *live) until(phase gang.Phase, jobs ...*gang.Job) {
	l.t.Helper()
	var states []gang.State
	for range 3000 {
		states = nil
		there := true
		for _, job := range jobs {
			s := l.drive(job)
			states = append(states, s)
			there = there && s.Phase == phase && s.Leaving == 0
		}
		if there {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	l.t.Fatalf("not %s: %+v", phase, states)
}

func (l *live) uids() map[string]string {
	uids := map[string]string{}
	for _, pod := range must[*corev1.PodList](l.t)(l.client.Pods("").List(l.t.Context(), metav1.ListOptions{})).Items {
		uids[pod.Spec.NodeName+" "+pod.Annotations[gang.DevicesAnnotation]] = string(pod.UID)
	}
	return uids
}

// owned is a job whose object is a ConfigMap: a custom resource is not needed here.
func (l *live) owned(name string) *gang.Job {
	job := newJob(name)
	job.Namespace = "default"
	job.Template.Spec.Containers[0].Image = "none"
	object := must[*corev1.ConfigMap](l.t)(l.client.ConfigMaps("default").Create(l.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}, metav1.CreateOptions{}))
	job.UID, job.Owner = object.UID, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name}
	return job
}

// On a real API server, with real controllers, a gang starts, grows, moves, makes way for another one and stops, with two writes
// a member that starts, four with claims, and two when it stops. Nothing is left, also of one that never got its devices.
func TestRealControlPlane(t *testing.T) {
	c := startCluster(t)
	if err := c.AddNodes(t.Context(), kubecluster.Pool{Name: "node", Count: 3, Devices: 8}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		options gang.Options
		want    map[string]int
	}{
		"extended resource": {want: map[string]int{
			"POST services": 2, "POST pods": 9, "POST pods/binding": 8, "DELETE pods": 9, "PATCH pods": 9,
		}},
		"claims": {options: gang.Options{Class: "gpu"}, want: map[string]int{
			"POST services": 2, "POST pods": 9, "POST pods/binding": 8, "DELETE pods": 9, "PATCH pods": 9,
			"POST resourceclaims": 9, "PUT resourceclaims/status": 8,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLive(t, c, tc.options)
			if tc.options.Class != "" {
				must[*resourcev1.DeviceClass](t)(l.client.DeviceClasses().Create(t.Context(),
					&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: tc.options.Class}}, metav1.CreateOptions{}))
			}
			must := func(text string, jobs ...*gang.Job) { t.Helper(); l.until(gang.Phase(text), jobs...) }
			prefix := strings.ReplaceAll(name, " ", "-")
			a, b := l.owned(prefix+".a"), l.owned(prefix+".b")
			l.nodesReady()
			decide(a, true, seat(0, 0, 1), seat(1, 0, 1))
			must("Running", a)
			first := l.uids()
			decide(a, false, seat(0, 0, 1), seat(1, 0, 1), seat(2, 0))
			must("Running", a)
			decide(a, false, seat(0, 0, 1), seat(2, 0), seat(2, 1))
			decide(b, true, seat(0, 2, 3), seat(1, 0, 1, 2))
			must("Running", a, b)
			if now := l.uids(); now["node-0 0-1"] != first["node-0 0-1"] {
				t.Errorf("a member that stays is another one: %v, was %v", now, first)
			}
			decide(a, true, seat(0, 2, 3, 4))
			decide(b, false, seat(1, 0, 1, 2), seat(2, 7))
			must("Running", a, b)
			waits := l.owned(prefix + ".c") // behind a, until it is not wanted any more
			decide(waits, true, seat(0, 4, 5))
			must("Queued", waits)
			decide(waits, false)
			must("Gone", waits)
			decide(a, false)
			decide(b, false)
			must("Gone", a, b)
			l.await("pods are left", func() bool { return len(l.uids()) == 0 }) // their kubelets let them go
			if diff := cmp.Diff(tc.want, l.counter.calls); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			l.claimsGone()
		})
	}
}

func (l *live) await(what string, ask func() bool) {
	l.t.Helper()
	for range 3000 {
		if ask() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	l.t.Fatal(what)
}

func (l *live) nodesReady() {
	l.await("nodes are not ready", func() bool {
		nodes := must[*corev1.NodeList](l.t)(l.client.Nodes().List(l.t.Context(), metav1.ListOptions{}))
		ready := 0
		for _, n := range nodes.Items {
			if slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
		return ready == 3
	})
	l.await("there is no service account", func() bool {
		_, err := l.cluster.Do(l.t.Context(), "GET", "/api/v1/namespaces/default/serviceaccounts/default", nil)
		return err == nil
	})
}

// claimsGone waits until the garbage collector and the controller of claims have done their work.
func (l *live) claimsGone() {
	l.await("claims are left", func() bool {
		return len(must[*resourcev1.ResourceClaimList](l.t)(l.client.ResourceClaims("").List(l.t.Context(), metav1.ListOptions{})).Items) == 0
	})
}
