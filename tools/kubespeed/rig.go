//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/internal/kubecluster"
)

const (
	namespace = "speed"
	scheduler = "kube-scheduler"
	warmUp    = "warm-up" // a pod

	namespacePath = "/api/v1/namespaces/" + namespace // in the API
)

// rig is a control plane, and a client.
type rig struct {
	*settings
	cluster *kubecluster.Cluster
	client  *kubeclient.Client
	jobs    *trainingjob.Objects
	models  []corev1.Pod // those of the first turn, as they were created

	mutex   sync.Mutex
	running map[types.UID]bool
	there   map[types.UID]bool
	changed chan struct{}
}

func (s *settings) start(ctx context.Context, dir string) (*rig, error) {
	c, err := kubecluster.Start(ctx, kubecluster.Options{Bin: s.bin, Dir: filepath.Join(dir, "kube"), Tied: true, Scheduler: true})
	if err != nil {
		return nil, err
	}
	r := &rig{settings: s, cluster: c, running: map[types.UID]bool{}, there: map[types.UID]bool{}, changed: make(chan struct{}, 1)}
	if err := r.furnish(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return r, nil
}

// furnish brings nodes, the definition of jobs, and a namespace.
func (r *rig) furnish(ctx context.Context) error {
	if err := r.cluster.Kill(scheduler); err != nil { // until it is its turn
		return err
	}
	if err := r.connect(); err != nil {
		return err
	}
	definition, err := yaml.YAMLToJSON(trainingjob.Definition())
	if err != nil {
		return err
	}
	if _, err := r.cluster.Do(ctx, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json.RawMessage(definition)); err != nil {
		return err
	}
	if _, err := r.cluster.Do(ctx, "POST", "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	pool := kubecluster.Pool{Name: "node", Count: r.nodes, Devices: r.devices, Accelerator: "a100"}
	if r.claims {
		pool.Devices = 0
	}
	if err := r.cluster.AddNodes(ctx, pool); err != nil {
		return err
	}
	if r.claims {
		if err := r.publish(ctx); err != nil {
			return err
		}
	}
	if err := await(ctx, "the cluster is ready", func() bool {
		if _, err := r.cluster.Do(ctx, "GET", namespacePath+"/serviceaccounts/default", nil); err != nil {
			return false
		}
		if _, err := r.jobs.List(ctx, metav1.ListOptions{}); err != nil {
			return false
		}
		list, err := r.client.Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(list.Items, func(n corev1.Node) bool { return len(n.Spec.Taints) > 0 })
	}); err != nil {
		return err
	}
	go r.look(ctx)
	return nil
}

// connect makes the clients of the control plane.
func (r *rig) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", r.cluster.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	if r.client, err = kubeclient.New(config); err != nil {
		return err
	}
	jobs, err := trainingjob.NewClient(config)
	if err != nil {
		return err
	}
	r.jobs = jobs.Of(namespace)
	return nil
}

// await asks until an answer is yes.
func await(ctx context.Context, what string, ask func() bool) error {
	const most = 10 * time.Minute
	began := now()
	for now().Sub(began) < most {
		if ask() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-after(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("%v passed, and never: %s", most, what)
}

// look watches pods: it is the stop-watch.
func (r *rig) look(ctx context.Context) {
	version := ""
	for ctx.Err() == nil {
		w, err := r.client.Pods(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			if version = ""; ctx.Err() == nil && !apierrors.IsGone(err) && !apierrors.IsResourceExpired(err) {
				<-after(50 * time.Millisecond)
			}
			continue
		}
		for e := range w.ResultChan() {
			p, is := e.Object.(*corev1.Pod)
			if !is {
				version = ""
				break
			}
			version = p.ResourceVersion
			r.mutex.Lock()
			if e.Type == watch.Deleted {
				delete(r.there, p.UID)
				delete(r.running, p.UID)
			} else if p.Name != warmUp {
				r.there[p.UID] = true
				if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
					r.running[p.UID] = true
				}
			}
			r.mutex.Unlock()
			select {
			case r.changed <- struct{}{}:
			default:
			}
		}
		w.Stop()
	}
}

func (r *rig) counts() (there, running int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.there), len(r.running)
}

// until waits until so many pods run, or none is there for 0.
func (r *rig) until(ctx context.Context, wanted int) error {
	limit := after(10 * time.Minute)
	for {
		there, running := r.counts()
		if wanted == running && (wanted > 0 || there == 0) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.changed:
		case <-limit:
			return fmt.Errorf("%d pods are there and %d run, want %d", there, running, wanted)
		}
	}
}

// each does something n times, many at a time.
func (r *rig) each(ctx context.Context, n int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var group sync.WaitGroup
	for range r.workers {
		group.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}

func (r *rig) job(turn, i int) *trainingjob.TrainingJob {
	template := `{"spec":{"containers":[{"name":"main","image":"none","resources":{"requests":{"cpu":"1","memory":"1Gi"}}}]}}`
	return &trainingjob.TrainingJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: trainingjob.GroupVersion().String(), Kind: trainingjob.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("t%d-gang-%04d", turn, i), Namespace: namespace},
		Spec: trainingjob.Spec{
			Replicas: trainingjob.Replicas{Min: r.size, Max: r.size}, Template: runtime.RawExtension{Raw: []byte(template)},
		},
	}
}

// ours is a turn of Quartet.
func (r *rig) ours(ctx context.Context, turn int) error {
	c, err := r.spawn(turn)
	if err != nil {
		return err
	}
	defer func() { _ = c.Process.Kill() }() // it may have ended
	before, err := r.writes(ctx)
	if err != nil {
		return err
	}
	pods := r.gangs * r.size
	began, taken := now(), takenAway()
	if err := r.each(ctx, r.gangs, func(i int) error {
		_, err := r.jobs.Create(ctx, r.job(turn, i), metav1.CreateOptions{})
		return err
	}); err != nil {
		return err
	}
	if err := r.until(ctx, pods); err != nil {
		return err
	}
	took, lost := now().Sub(began), takenAway().since(taken)
	<-after(5 * time.Second) // statuses are written behind
	then, err := r.writes(ctx)
	if err != nil {
		return err
	}
	if turn == 0 {
		if err := r.learn(ctx); err != nil {
			return err
		}
		if err := r.still(ctx); err != nil {
			return err
		}
	}
	peak, err := peakOf(c.Process.Pid)
	if err != nil {
		return err
	}
	f, err := c.end()
	if err != nil {
		return err
	}
	ofPods, all := then.since(before, r.gangs)
	fmt.Printf("| %d | Quartet | %.0f | %.1f | %.0f | %d | %.2f, %.2f | %.4f, %.3f of %d | %.2f |\n", turn+1, float64(pods)/took.Seconds(), took.Seconds(), lost, peak,
		float64(ofPods)/float64(pods), float64(all)/float64(pods), f.Median, f.Max, f.Rounds, f.API)
	fmt.Fprintf(os.Stderr, "writes of turn %d: %s\n", turn+1, then.text(before))
	return r.empty(ctx, turn)
}

// empty deletes jobs and their pods, with a controller that lets go of them.
func (r *rig) empty(ctx context.Context, turn int) error {
	c, err := r.spawn(-1)
	if err != nil {
		return err
	}
	defer func() { _ = c.Process.Kill() }()
	how := metav1.DeletePropagationBackground
	if err := r.each(ctx, r.gangs, func(i int) error {
		return r.jobs.Delete(ctx, r.job(turn, i).Name, metav1.DeleteOptions{PropagationPolicy: &how})
	}); err != nil {
		return err
	}
	if err := r.until(ctx, 0); err != nil {
		return err
	}
	_, err = c.end()
	return err
}

// learn remembers the pods of a turn, for kube-scheduler.
func (r *rig) learn(ctx context.Context) error {
	list, err := r.client.Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		p := &list.Items[i]
		r.models = append(r.models, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: namespace, Labels: p.Labels, Annotations: p.Annotations}, Spec: p.Spec,
		})
		s := &r.models[i].Spec
		s.NodeName, s.SchedulerName = "", corev1.DefaultSchedulerName
		s.ResourceClaims = nil // they are named after their pods
	}
	return nil
}

// still counts the writes of a time in which nothing happens.
func (r *rig) still(ctx context.Context) error {
	before, err := r.writes(ctx)
	if err != nil {
		return err
	}
	leases := r.client.Leases(namespace)
	w, err := leases.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	renewals := 0
	for limit := after(r.quiet); ; {
		select {
		case <-w.ResultChan():
			renewals++
			continue
		case <-limit:
		case <-ctx.Done():
			return ctx.Err()
		}
		break
	}
	then, err := r.writes(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "writes in %v in which nothing happens, with %d pods that run: %d renewals of the lease; of anybody, leases and nodes apart: %q\n",
		r.quiet, r.gangs*r.size, renewals-1, then.text(before)) // the first event is the lease as it is
	return nil
}

// theirs is a turn of kube-scheduler.
func (r *rig) theirs(ctx context.Context, turn int) error {
	if err := r.cluster.Restart(scheduler); err != nil {
		return err
	}
	if err := r.warmUp(ctx); err != nil {
		return err
	}
	before, err := r.writes(ctx)
	if err != nil {
		return err
	}
	began, taken := now(), takenAway()
	if err := r.each(ctx, len(r.models), func(i int) error {
		p := r.models[i].DeepCopy()
		p.Name = fmt.Sprintf("s%d-%s", turn, p.Name) // a name is never used again: what plays nodes takes the new pod for the old
		return r.create(ctx, p)
	}); err != nil {
		return err
	}
	if err := r.until(ctx, len(r.models)); err != nil {
		return err
	}
	took, lost := now().Sub(began), takenAway().since(taken)
	then, err := r.writes(ctx)
	if err != nil {
		return err
	}
	peak, err := peakOf(r.cluster.Processes[scheduler].PID)
	if err != nil {
		return err
	}
	ofPods, all := then.since(before, 0)
	fmt.Printf("| %d | kube-scheduler | %.0f | %.1f | %.0f | %d | %.2f, %.2f | | |\n", turn+1, float64(len(r.models))/took.Seconds(), took.Seconds(), lost, peak,
		float64(ofPods)/float64(len(r.models)), float64(all)/float64(len(r.models)))
	if err := r.cluster.Kill(scheduler); err != nil {
		return err
	}
	return r.clear(ctx)
}

// warmUp waits until kube-scheduler schedules.
func (r *rig) warmUp(ctx context.Context) error {
	pods := r.client.Pods(namespace)
	warm := r.models[0].DeepCopy()
	warm.Name = warmUp
	if err := r.create(ctx, warm); err != nil {
		return err
	}
	if err := await(ctx, "kube-scheduler schedules", func() bool {
		p, err := pods.Get(ctx, warmUp, metav1.GetOptions{})
		return err == nil && p.Spec.NodeName != ""
	}); err != nil {
		return err
	}
	var atOnce int64
	return pods.Delete(ctx, warmUp, metav1.DeleteOptions{GracePeriodSeconds: &atOnce})
}

// clear deletes all pods and claims, and waits until they are gone.
func (r *rig) clear(ctx context.Context) error {
	var atOnce int64
	// An API server gives up after a minute, however many are left.
	if err := await(ctx, "pods are deleted", func() bool {
		_, err := r.cluster.Do(ctx, "DELETE", namespacePath+"/pods", &metav1.DeleteOptions{GracePeriodSeconds: &atOnce})
		return err == nil
	}); err != nil {
		return err
	}
	if err := await(ctx, "claims are deleted", func() bool {
		_, err := r.cluster.Do(ctx, "DELETE", "/apis/resource.k8s.io/v1/namespaces/"+namespace+"/resourceclaims", nil)
		return err == nil
	}); err != nil {
		return err
	}
	if err := await(ctx, "claims are gone", func() bool {
		list, err := r.client.ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	}); err != nil {
		return err
	}
	return r.until(ctx, 0)
}

// controller is a process that leads.
type controller struct {
	*exec.Cmd
	out *bufio.Reader
}

// spawn starts the controller of a turn, -1 for one that is not measured, and waits until it leads.
func (r *rig) spawn(turn int) (*controller, error) {
	profiles := ""
	if r.profile && turn >= 0 && r.out != "" {
		profiles = filepath.Join(r.out, fmt.Sprintf("turn-%d", turn+1))
	}
	c := &controller{Cmd: exec.Command(os.Args[0], leadArgument, r.cluster.Kubeconfig, namespace, profiles, r.class())}
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if line, err := c.out.ReadString('\n'); line != "leads\n" {
		return nil, fmt.Errorf("the controller said %q: %w", line, errors.Join(err, c.Wait()))
	}
	return c, nil
}

// end interrupts the controller, and returns what it tells.
func (c *controller) end() (f figures, err error) {
	if err := c.Process.Signal(os.Interrupt); err != nil {
		return f, err
	}
	err = json.NewDecoder(c.out).Decode(&f)
	return f, errors.Join(err, c.Wait())
}

// peakOf is the most memory that a process had, in MB.
func peakOf(pid int) (int, error) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(content)) {
		if rest, is := strings.CutPrefix(line, "VmHWM:"); is {
			kilobytes, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			return kilobytes / 1000, err
		}
	}
	return 0, errors.New("the kernel does not report how much memory was used")
}

// away is what of its processors' time a machine knows of: all, and what others had while this machine wanted it.
type away struct{ all, taken float64 }

// takenAway reads the times of the kernel, in its ticks; zero where it tells none.
func takenAway() (a away) {
	content, err := os.ReadFile("/proc/stat")
	if err != nil {
		return a
	}
	first, _, _ := strings.Cut(string(content), "\n")
	const steal = 7
	for i, field := range strings.Fields(strings.TrimPrefix(first, "cpu")) {
		ticks, _ := strconv.ParseFloat(field, 64)
		switch {
		case i < steal:
			a.all += ticks
		case i == steal:
			a.all += ticks
			a.taken = ticks
		}
	}
	return a
}

// since is the share that others had since, in percent.
func (a away) since(before away) float64 {
	return 100 * (a.taken - before.taken) / max(a.all-before.all, 1)
}

// tally counts writes that the API server served, by what they were.
type tally map[string]int

// writes asks the API server what it served. What nodes, leases and the API server itself write is left out.
func (r *rig) writes(ctx context.Context) (tally, error) {
	answer, err := r.cluster.Do(ctx, "GET", "/metrics", nil)
	if err != nil {
		return nil, err
	}
	t := tally{}
	for line := range bytes.Lines(answer) {
		labels, is := bytes.CutPrefix(line, []byte("apiserver_request_total{"))
		if !is {
			continue
		}
		text, value, _ := strings.Cut(string(labels), "} ")
		label := func(name string) string {
			_, rest, _ := strings.Cut(","+text, ","+name+`="`)
			is, _, _ := strings.Cut(rest, `"`)
			return is
		}
		resource, verb := label("resource"), label("verb")
		switch {
		case !slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, verb):
		case slices.Contains([]string{"leases", "nodes", "events", "tokenreviews", "subjectaccessreviews"}, resource):
		default:
			count, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return nil, err
			}
			t[strings.TrimSuffix(verb+" "+resource+"/"+label("subresource"), "/")] += int(count)
		}
	}
	return t, nil
}

// since counts what a scheduler wrote: about pods, and in all. What others wrote is left out: nodes the statuses of pods, the
// controller manager the endpoints of services, and the client the jobs.
func (t tally) since(before tally, jobs int) (ofPods, all int) {
	for what, count := range t {
		n := count - before[what]
		_, resource, _ := strings.Cut(what, " ")
		switch {
		case what == "POST pods", resource == "pods/binding", what == "PATCH pods", what == "DELETE pods":
			ofPods += n
		case resource == "pods/status", strings.HasPrefix(resource, "endpoints"):
			continue
		case what == "POST trainingjobs":
			n -= jobs
		}
		all += n
	}
	return ofPods, all
}

func (t tally) text(before tally) string {
	var parts []string
	for what, count := range t {
		if n := count - before[what]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", what, n))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
