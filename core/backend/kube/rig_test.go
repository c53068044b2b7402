//go:build linux

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/lead"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/internal/kubecluster"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

// realClock is the clock of this machine.
type realClock struct{}

func (realClock) Now() time.Time                         { return time.Now() } //nolint:forbidigo // a clock is what it is
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// plane is the control plane of all tests that do it no harm: it takes seconds to start.
var plane struct {
	sync.Once
	cluster *kubecluster.Cluster
	dir     string
	err     error
}

func TestMain(m *testing.M) {
	scheduleIfAsked()
	flag.Parse()
	code := m.Run()
	if plane.cluster != nil {
		if err := plane.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if plane.dir != "" {
		_ = os.RemoveAll(plane.dir) // of this run alone
	}
	os.Exit(code)
}

// shared is the control plane of all tests.
func shared(t testing.TB) *kubecluster.Cluster {
	bin := kubetest.Programs(t)
	plane.Do(func() {
		if plane.dir, plane.err = os.MkdirTemp("", "quartet-kube-"); plane.err != nil {
			return
		}
		plane.cluster, plane.err = start(context.Background(), bin, filepath.Join(plane.dir, "kube"))
	})
	if plane.err != nil {
		t.Fatal(plane.err)
	}
	return plane.cluster
}

// sharedOrStandIn is the control plane of all tests, or a stand-in where no programs are named.
func sharedOrStandIn(t testing.TB) *kubecluster.Cluster {
	if kubetest.Real() {
		return shared(t)
	}
	return startStandIn(t)
}

// sharedFor is the control plane of all tests where jobs get their devices by claims, which a stand-in has no controller for.
func sharedFor(t testing.TB, claims bool) *kubecluster.Cluster {
	if claims {
		return shared(t)
	}
	return sharedOrStandIn(t)
}

// own is a control plane of one test, which does it harm.
func own(t testing.TB) *kubecluster.Cluster {
	c := kubetest.Start(t, kubecluster.Options{})
	if err := define(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// start starts a control plane that knows TrainingJobs.
func start(ctx context.Context, bin, dir string) (*kubecluster.Cluster, error) {
	c, err := kubecluster.Start(ctx, kubecluster.Options{Bin: bin, Dir: dir, Tied: true})
	if err != nil {
		return nil, err
	}
	if err := define(ctx, c); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// define has TrainingJobs served.
func define(ctx context.Context, c *kubecluster.Cluster) error {
	definition, err := yaml.YAMLToJSON(trainingjob.Definition())
	if err == nil {
		_, err = c.Do(ctx, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json.RawMessage(definition))
	}
	for range patience {
		if err != nil {
			break
		}
		if _, err := c.Do(ctx, "GET", "/apis/quartet.sched/v1alpha1/trainingjobs", nil); err == nil {
			return nil
		}
		time.Sleep(look)
	}
	return errors.Join(err, errors.New("TrainingJobs are not served"))
}

// A test looks so often for what must come.
const (
	look     = 20 * time.Millisecond
	patience = 3000
)

// rig is a cluster of its own as far as a scheduler can tell: it looks at some nodes and one namespace.
type rig struct {
	testing.TB
	cluster   *kubecluster.Cluster
	config    *rest.Config // of an administrator
	admin     *clients
	namespace string
	settings  Config
	driver    string     // that publishes devices, of the class of the same name; empty where nodes offer an extended resource
	clock     lead.Clock // of the schedulers that are opened
	logs      func(line string)
	settle    core.Settling // of the rounds of its schedulers
}

// made counts rigs, for names.
var made atomic.Int64

// newRig makes nodes a and b, of two devices each.
func newRig(t testing.TB, c *kubecluster.Cluster) *rig { return newRigOf(t, c, false) }

// newRigOf makes a rig whose devices are given by claims, or by an extended resource.
func newRigOf(t testing.TB, c *kubecluster.Cluster, claims bool) *rig {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	if !kubetest.Real() {
		config.ContentType = runtime.ContentTypeJSON // a stand-in knows no protobuf
	}
	r := &rig{TB: t, cluster: c, config: config, namespace: fmt.Sprintf("t%d", made.Add(1)), clock: realClock{}}
	if r.admin, err = newClients(config, 64); err != nil {
		t.Fatal(err)
	}
	f := New(realClock{})
	made, ds := f.Decode(map[string]any{"namespace": r.namespace, "watch": r.namespace, "nodes": "rig=" + r.namespace, "lease": "30s"})
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	r.settings = *made.(*Config)
	r.ask("POST", "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}, nil)
	if claims {
		r.useClaims()
	}
	r.addNode("a", 2)
	r.addNode("b", 2)
	r.awaitAccount(r.namespace)
	return r
}

// ask asks the API server for what the client of a scheduler does not know, and decodes the answer if it is asked for.
func (r *rig) ask(method, path string, object, answer any) {
	r.Helper()
	body, err := r.cluster.Do(r.Context(), method, path, object)
	if err == nil && answer != nil {
		err = json.Unmarshal(body, answer)
	}
	if err != nil {
		r.Fatal(err)
	}
}

// awaitAccount waits until pods can be created in a namespace.
func (r *rig) awaitAccount(namespace string) {
	r.Helper()
	r.await("the service account is there", func() bool {
		_, err := r.cluster.Do(r.Context(), "GET", "/api/v1/namespaces/"+namespace+"/serviceaccounts/default", nil)
		return err == nil
	})
}

// newToken asks for a token of a service account.
func (r *rig) newToken(namespace, account string, spec *authenticationv1.TokenRequestSpec) string {
	r.Helper()
	var answer authenticationv1.TokenRequest
	r.ask("POST", "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+account+"/token", &authenticationv1.TokenRequest{Spec: *spec}, &answer)
	return answer.Status.Token
}

// evict evicts a pod.
func (r *rig) evict(pod string) {
	r.Helper()
	path := "/api/v1/namespaces/" + r.namespace + "/pods/" + pod + "/eviction"
	r.ask("POST", path, &policyv1.Eviction{
		TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"}, ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: r.namespace},
	}, nil)
}

// node is the name of a node of the rig in the cluster.
func (r *rig) node(name string) string { return name + "-" + r.namespace + "-0" }

func (r *rig) addNode(name string, devices int) {
	r.Helper()
	offered := devices
	if r.driver != "" {
		offered = 0
	}
	if err := r.cluster.AddNodes(r.Context(), kubecluster.Pool{
		Name: name + "-" + r.namespace, Count: 1, Devices: offered, Labels: map[string]string{"rig": r.namespace},
	}); err != nil {
		r.Fatal(err)
	}
	r.await("node "+name+" is ready", func() bool {
		n, err := r.admin.Nodes().Get(r.Context(), r.node(name), metav1.GetOptions{})
		return err == nil && ready(n) && len(n.Spec.Taints) == 0
	})
	if r.driver != "" {
		r.publish(name, gpus(devices)...)
	}
}

func (r *rig) await(what string, ask func() bool) {
	r.Helper()
	for range patience {
		if ask() {
			return
		}
		time.Sleep(look)
	}
	r.Fatalf("never: %s", what)
}

// asked is how a test wants a job.
type asked struct {
	replicas, max int
	run, fail     time.Duration // 0 for endless, and for not at all
	annotations   map[string]string
	edit          func(*trainingjob.TrainingJob)
}

// submit creates a job.
func (r *rig) submit(name string, a asked) *trainingjob.TrainingJob {
	r.Helper()
	created, err := r.admin.jobs.Of(r.namespace).Create(context.Background(), r.object(name, a), metav1.CreateOptions{})
	if err != nil {
		r.Errorf("submit %s: %v", name, err)
	}
	return created
}

// object is a job as it is submitted.
func (r *rig) object(name string, a asked) *trainingjob.TrainingJob {
	r.Helper()
	annotations := map[string]string{}
	maps.Copy(annotations, a.annotations)
	if a.run > 0 {
		annotations["quartet.sched/run"] = a.run.String()
	}
	if a.fail > 0 {
		annotations["quartet.sched/fail"] = a.fail.String()
	}
	template, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": annotations},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": "none"}}},
	})
	if err != nil {
		r.Fatal(err)
	}
	job := &trainingjob.TrainingJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: trainingjob.GroupVersion().String(), Kind: trainingjob.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace},
		Spec: trainingjob.Spec{
			Replicas: trainingjob.Replicas{Min: max(a.replicas, 1), Max: max(a.max, a.replicas, 1)},
			Template: runtime.RawExtension{Raw: template},
		},
	}
	if a.edit != nil {
		a.edit(job)
	}
	return job
}

func (r *rig) job(name string) *trainingjob.TrainingJob {
	r.Helper()
	job, err := r.admin.jobs.Of(r.namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return job
}

// pods are those of the rig that are there.
func (r *rig) pods() []corev1.Pod {
	r.Helper()
	list, err := r.admin.Pods(r.namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	return list.Items
}

func (r *rig) podsOf(job string) []corev1.Pod {
	r.Helper()
	return slices.DeleteFunc(r.pods(), func(p corev1.Pod) bool { return p.Labels[gang.JobLabel] != job })
}

// patch changes a pod.
func (r *rig) patch(p *corev1.Pod, change string, subresources ...string) {
	r.Helper()
	if _, err := r.admin.Pods(p.Namespace).Patch(context.Background(), p.Name, types.MergePatchType, []byte(change), metav1.PatchOptions{}, subresources...); err != nil {
		r.Fatal(err)
	}
}

// patchNode changes a node.
func (r *rig) patchNode(name, change string, subresources ...string) {
	r.Helper()
	if _, err := r.admin.Nodes().Patch(context.Background(), r.node(name), types.MergePatchType, []byte(change), metav1.PatchOptions{}, subresources...); err != nil {
		r.Fatal(err)
	}
}

// edit changes a job.
func (r *rig) edit(name, change string) {
	r.Helper()
	if _, err := r.admin.jobs.Of(r.namespace).Patch(context.Background(), name, types.MergePatchType, []byte(change), metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
}

// open opens a backend by a transport of its own, nil for the usual one, and has it lead.
func (r *rig) open(wrap func(http.RoundTripper) http.RoundTripper) *Backend {
	r.Helper()
	b, err := r.tryOpen(r.Context(), wrap)
	if err != nil {
		r.Fatal(err)
	}
	return b
}

func (r *rig) tryOpen(ctx context.Context, wrap func(http.RoundTripper) http.RoundTripper) (*Backend, error) {
	config := rest.CopyConfig(r.config)
	if wrap != nil {
		config.Wrap(wrap)
	}
	log := slog.New(slog.NewTextHandler(testWriter{r}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := open(ctx, &Opener{config: r.settings, log: log, clock: r.clock}, config, "test")
	if err != nil {
		return nil, err
	}
	r.Cleanup(func() { _ = b.Close() }) // it may be closed already
	return b, b.lead(ctx)               // as the first Next does
}

// testWriter is the log of a test. Nothing is logged when the test is over.
type testWriter struct{ *rig }

func (w testWriter) Write(line []byte) (int, error) {
	if w.logs != nil {
		w.logs(string(line))
	}
	w.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}

var (
	_ backend.Opener = (*Opener)(nil)
	_ core.Backend   = (*Backend)(nil)
)
