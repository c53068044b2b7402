//go:build linux

package kube

import (
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/internal/kubecluster"
)

// talking lets the jobs of a rig speak to the scheduler.
func (r *rig) talking() {
	r.Helper()
	folder := r.TempDir()
	if err := kubecluster.WriteCertificate(folder, realClock{}.Now()); err != nil {
		r.Fatal(err)
	}
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	r.settings.AgentTLS, r.settings.AgentListen, r.settings.AgentAddress = folder, port.Addr().String(), port.Addr().String()
	if err := port.Close(); err != nil {
		r.Fatal(err)
	}
}

// token asks for a token as the kubelet does for a pod.
func (r *rig) token(pod *corev1.Pod, audiences ...string) string {
	r.Helper()
	return r.newToken(pod.Namespace, "default", &authenticationv1.TokenRequestSpec{
		Audiences: audiences, BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	})
}

// process is what runs in a pod, as far as its environment tells.
func (r *rig) process(pod *corev1.Pod) *agent.Client {
	r.Helper()
	c := &pod.Spec.Containers[0]
	token := filepath.Join(r.TempDir(), "token")
	ours := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "quartet-agent" })
	if ours < 0 {
		r.Fatalf("pod %s has no token", pod.Name)
	}
	audience := pod.Spec.Volumes[ours].Projected.Sources[0].ServiceAccountToken.Audience
	if err := os.WriteFile(token, []byte(r.token(pod, audience)), 0o600); err != nil {
		r.Fatal(err)
	}
	e, err := agent.ReadEnvironment(func(name string) (string, bool) {
		i := slices.IndexFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name })
		switch {
		case name == agent.TokenVariable:
			return token, true
		case i < 0:
			return "", false
		default:
			return c.Env[i].Value, true
		}
	})
	if err != nil {
		r.Fatal(err)
	}
	e.Worlds = true
	client := agent.Dial(e)
	r.Cleanup(client.Close)
	return client
}

// player is a test that decides for itself, beside a backend.
type player struct {
	*rig
	backend *Backend
	jobs    map[string]core.JobID
	nodes   map[string]core.NodeID
	round   int
	told    []core.Event
	unheard []core.Event // of those
}

func (r *rig) play() *player {
	r.Helper()
	return &player{rig: r, backend: r.open(nil), jobs: map[string]core.JobID{}, nodes: map[string]core.NodeID{}}
}

// hears waits until an event is told, which may be behind others that nobody waited for, and returns it.
func (p *player) hears(kind core.EventKind, job string) core.Event {
	p.Helper()
	for range patience {
		i := slices.IndexFunc(p.unheard, func(e core.Event) bool {
			id, known := p.jobs[job]
			return known && e.Kind == kind && e.Job == id && !e.Kind.OfNode()
		})
		if i >= 0 {
			e := p.unheard[i]
			p.unheard = slices.Delete(p.unheard, i, i+1)
			return e
		}
		p.listen()
	}
	p.Fatalf("%v of %s was never told", kind, job)
	panic("unreachable")
}

// listen holds a round: the backend looks while it waits for one.
func (p *player) listen() {
	p.Helper()
	var seen core.Observation
	if err := outlast(func() (err error) {
		seen, err = p.backend.Next(p.Context(), core.Wake{OnEvents: true, BySeconds: p.backend.Present() + look.Seconds()})
		return err
	}); err != nil {
		p.Fatal(err)
	}
	for i := range seen.Events {
		switch e := &seen.Events[i]; e.Kind {
		case core.NodeAdded:
			p.nodes[strings.TrimSuffix(e.Added.Name, "-"+p.namespace+"-0")] = e.Node
		case core.JobSubmitted:
			p.jobs[strings.TrimPrefix(e.Spec.Name, p.namespace+"/")] = e.Job
		}
	}
	p.told, p.unheard = append(p.told, seen.Events...), append(p.unheard, seen.Events...)
}

// receives waits until a process is told what is wanted.
func (p *player) receives(c *agent.Client, what string, want func(agent.ToJob) bool) agent.ToJob {
	p.Helper()
	for range patience {
		if m := c.Poll(); want(m) {
			return m
		}
		p.listen()
	}
	p.Fatalf("it was never told %s: %v", what, c.Err())
	panic("unreachable")
}

// decide gives a job devices, such as "a 0-1".
func (p *player) decide(action core.Action, job string, seats ...string) {
	p.Helper()
	p.round++
	c := core.Change{Action: action, Job: p.jobs[job], Round: p.round}
	for _, text := range seats {
		node, devices, _ := strings.Cut(text, " ")
		set, err := trainingjob.ParseDevices(devices)
		if err != nil || set == 0 {
			p.Fatal(text)
		}
		c.Seats = append(c.Seats, core.Seat{Node: p.nodes[node], Devices: set})
	}
	if err := outlast(func() error { return p.backend.Apply(p.Context(), []core.Change{c}) }); err != nil {
		p.Fatal(err)
	}
}

// members are the pods of a job that are not leaving, by their number.
func (p *player) members(job string) map[int]*corev1.Pod {
	p.Helper()
	pods := map[int]*corev1.Pod{}
	for _, pod := range p.podsOf(job) {
		if pod.DeletionTimestamp != nil {
			continue
		}
		member, err := strconv.Atoi(pod.Labels[gang.MemberLabel])
		if err != nil {
			p.Fatal(err)
		}
		pods[member] = &pod
	}
	return pods
}

// awaitMembers waits until a job has pods of these numbers, all of them running.
func (p *player) awaitMembers(job string, want ...int) map[int]*corev1.Pod {
	p.Helper()
	var pods map[int]*corev1.Pod
	p.await(fmt.Sprintf("members %v of %s", want, job), func() bool {
		pods = p.members(job)
		for _, n := range want {
			if pods[n] == nil || pods[n].Status.Phase != corev1.PodRunning {
				return false
			}
		}
		return len(pods) == len(want)
	})
	return pods
}

func isWorld(generation int64) func(agent.ToJob) bool {
	return func(m agent.ToJob) bool { return m.World != nil && m.World.Generation == generation }
}

// An elastic job says how far it is, gets more and fewer devices while it trains, over a change of schedulers, and loses what no
// checkpoint holds.
func TestElasticJob(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharedOrStandIn(t))
	r.talking()
	r.submit("train", asked{replicas: 1, max: 4})
	p := r.play()
	p.hears(core.JobSubmitted, "train")
	p.decide(core.Start, "train", "a 0-1")
	p.hears(core.JobStarted, "train")
	first := r.process(p.awaitMembers("train", 0)[0])
	report := agent.Report{Replicas: 2, Nodes: 1, BatchPerDevice: 8, PassSeconds: 0.1, StepSeconds: 0.2, GradientSquare: 3, GradientVariance: 4, Progress: 10}
	if err := first.Report(report); err != nil {
		t.Fatal(err)
	}
	measured := p.hears(core.JobMeasured, "train")
	want := core.Measurement{Nodes: 1, Replicas: 2, PerDevice: 8, PassSeconds: 0.1, StepSeconds: 0.2}
	if diff := cmp.Diff(want, measured.Measurement); diff != "" || measured.Gradients != (core.Gradients{SquaredNorm: 3, Variance: 4}) {
		t.Errorf("measured (-want +got):\n%s%v", diff, measured.Gradients)
	}

	p.told = nil
	p.decide(core.Move, "train", "a 0-1", "b 0-1")
	pods := p.awaitMembers("train", 0, 1)
	second := r.process(pods[1])
	address := pods[0].Name + "." + pods[0].Spec.Subdomain
	for i, c := range []*agent.Client{first, second} {
		world := p.receives(c, "the larger world", isWorld(1)).World
		if diff := cmp.Diff(&agent.World{Generation: 1, Rank: 2 * i, Replicas: 4, Nodes: 2, Address: address}, world); diff != "" {
			t.Errorf("world of member %d (-want +got):\n%s", i, diff)
		}
	}
	if err := first.Checkpointed(25); err != nil {
		t.Fatal(err)
	}
	report.Replicas, report.Nodes, report.Progress = 4, 2, 30
	if err := first.Report(report); err != nil {
		t.Fatal(err)
	}
	if e := p.hears(core.JobMeasured, "train"); e.Measurement.Replicas != 4 {
		t.Errorf("measured with %d devices, want 4", e.Measurement.Replicas)
	}
	for _, e := range p.told {
		if e.Kind == core.JobStarting || e.Kind == core.JobStarted || e.Kind == core.JobInterrupted {
			t.Errorf("%v was told, though the job trains on", e.Kind)
		}
	}

	p.decide(core.Move, "train", "a 0-1")
	p.receives(second, "to stop", func(m agent.ToJob) bool { return m.Stop != nil })
	second.Close()
	if world := p.receives(first, "the smaller world", isWorld(2)).World; world.Replicas != 2 || world.Nodes != 1 {
		t.Errorf("world %+v", world)
	}
	report.Replicas, report.Nodes, report.Progress = 2, 1, 40
	if err := first.Report(report); err != nil {
		t.Fatal(err)
	}
	if now := p.awaitMembers("train", 0)[0]; now.UID != pods[0].UID {
		t.Error("the member that stays is another one")
	}

	if err := p.backend.Close(); err != nil {
		t.Fatal(err)
	}
	p = r.play()
	if e := p.hears(core.JobSubmitted, "train"); e.Held == nil || len(e.Held.Seats) != 1 || e.Held.Seats[0].Devices.Count() != 2 {
		t.Errorf("after the takeover it holds %+v", e.Held)
	}
	p.hears(core.JobStarted, "train")
	p.hears(core.JobMeasured, "train") // the agent found the next scheduler, and says it again
	p.decide(core.Move, "train", "b 0", "a 0-1")
	third := p.awaitMembers("train", 0, 2)[2] // 1 is never used again
	if world := p.receives(r.process(third), "its world", isWorld(3)).World; world.Rank != 2 || world.Replicas != 3 {
		t.Errorf("world of the third member %+v", world)
	}
	p.decide(core.Move, "train", "b 1") // none can stay
	p.hears(core.JobStarted, "train")
	for name, pod := range p.awaitMembers("train", 0) {
		if run := pod.Labels[gang.RunLabel]; run != "2" {
			t.Errorf("member %d is of run %s", name, run)
		}
	}
	if e := p.last(core.JobProgressed); e.Progress != 25 || e.Rate != 0 {
		t.Errorf("after a restart its progress is %v at rate %v, want that of the checkpoint", e.Progress, e.Rate)
	}
}

// last is the last event of a kind.
func (p *player) last(kind core.EventKind) core.Event {
	for _, e := range slices.Backward(p.told) {
		if e.Kind == kind {
			return e
		}
	}
	return core.Event{Progress: math.NaN()}
}

// A job that takes another world goes on with the members that it has left, if they are enough, and others lose all of them.
func TestMembersLost(t *testing.T) {
	for name, tc := range map[string]struct {
		min    int
		lose   func(*player, map[int]*corev1.Pod)
		shrunk bool
		cause  core.Cause
	}{
		"the node of one": {min: 1, shrunk: true, cause: core.CauseNodeFailed, lose: func(p *player, _ map[int]*corev1.Pod) {
			if err := p.admin.Nodes().Delete(p.Context(), p.node("b"), metav1.DeleteOptions{}); err != nil {
				p.Fatal(err)
			}
		}},
		"the first of them": {min: 2, shrunk: true, cause: core.CauseKilled, lose: func(p *player, pods map[int]*corev1.Pod) {
			p.remove(pods[0])
		}},
		"too many": {min: 3, cause: core.CauseKilled, lose: func(p *player, pods map[int]*corev1.Pod) {
			p.remove(pods[1])
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, sharedOrStandIn(t))
			r.talking()
			r.submit("train", asked{replicas: tc.min, max: 4})
			p := r.play()
			p.hears(core.JobSubmitted, "train")
			p.decide(core.Start, "train", "a 0-1", "b 0-1")
			p.hears(core.JobStarted, "train")
			pods := p.awaitMembers("train", 0, 1)
			clients := []*agent.Client{r.process(pods[0]), r.process(pods[1])}
			if err := clients[0].Checkpointed(7); err != nil {
				t.Fatal(err)
			}
			if err := clients[0].Report(agent.Report{Replicas: 4, Nodes: 2, PassSeconds: 1, StepSeconds: 1, Progress: 9}); err != nil {
				t.Fatal(err)
			}
			p.hears(core.JobMeasured, "train")
			p.told = nil
			tc.lose(p, pods)
			if !tc.shrunk {
				if e := p.hears(core.JobInterrupted, "train"); e.Cause != tc.cause || e.Progress != 7 {
					t.Errorf("got %v with progress %v, want %v and that of the checkpoint", e.Cause, e.Progress, tc.cause)
				}
				return
			}
			if e := p.hears(core.JobShrunk, "train"); e.Cause != tc.cause || core.Replicas(e.Seats) != 2 || e.Progress < 9 {
				t.Errorf("got %+v", e)
			}
			left := 0
			if tc.min == 2 {
				left = 1
				p.receives(clients[0], "to stop", func(m agent.ToJob) bool { return m.Stop != nil && m.Stop.GraceSeconds == 30 })
			}
			world := p.receives(clients[left], "the smaller world", isWorld(1)).World
			if world.Rank != 0 || world.Replicas != 2 || world.Address != pods[left].Name {
				t.Errorf("world %+v", world)
			}
			p.awaitMembers("train", left)
			for _, e := range p.told {
				if e.Kind == core.JobInterrupted || e.Kind == core.JobStarting {
					t.Errorf("%v was told", e.Kind)
				}
			}
		})
	}
}

func (p *player) remove(pod *corev1.Pod) {
	p.Helper()
	if err := p.admin.Pods(pod.Namespace).Delete(p.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		p.Fatal(err)
	}
}

// Each pod speaks for its own job, by a token that is made for that, and for nobody and nothing else.
func TestWhoMaySpeak(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharedOrStandIn(t))
	r.talking()
	for _, name := range []string{"one", "other"} {
		r.submit(name, asked{replicas: 1})
	}
	p := r.play()
	for i, name := range []string{"one", "other"} {
		p.hears(core.JobSubmitted, name)
		p.decide(core.Start, name, fmt.Sprint("a ", i))
		p.hears(core.JobStarted, name)
	}
	one, other := p.members("one")[0], p.members("other")[0]
	stranger, err := r.admin.Pods(r.namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "stranger", Labels: one.Labels, Annotations: one.Annotations},
		Spec:       corev1.PodSpec{NodeName: r.node("a"), Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.await("the stranger is known", func() bool { return p.backend.world.podOf(r.namespace, "stranger") != nil })
	of := func(job string, pod *corev1.Pod) agent.Identity {
		return agent.Identity{Job: keyOf(r.job(job).UID, 1), Member: pod.Name}
	}
	unbound := r.newToken(r.namespace, "default", &authenticationv1.TokenRequestSpec{Audiences: []string{gang.Audience}})
	for name, tc := range map[string]struct {
		token string
		want  agent.Identity
		err   string
	}{
		"its own":             {token: r.token(one, gang.Audience), want: of("one", one)},
		"another job's":       {token: r.token(other, gang.Audience), want: of("other", other)}, // whatever it calls itself
		"none":                {err: "has no token"},
		"nonsense":            {token: "x", err: "not one of a pod for this channel"},
		"the API server's":    {token: r.token(one), err: "not one of a pod for this channel"},
		"one for others":      {token: r.token(one, "https://example.com"), err: "not one of a pod for this channel"},
		"of no pod":           {token: unbound, err: "not one of a pod for this channel"},
		"of a pod like ours":  {token: r.token(stranger, gang.Audience), err: "is not of a job of this scheduler"},
		"an administrator's":  {token: r.config.BearerToken, err: "this channel"},
		"of two audiences":    {token: r.token(one, gang.Audience, "https://example.com"), want: of("one", one)},
		"with something else": {token: r.token(one, gang.Audience) + "x", err: "not one of a pod for this channel"},
	} {
		got, err := p.backend.door.admit(t.Context(), agent.Hello{Protocol: agent.Protocol, Job: "one", Token: tc.token})
		if got != tc.want || tc.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: speaks for %+v, %v; want %+v, %q", name, got, err, tc.want, tc.err)
		}
	}
	token := r.token(one, gang.Audience)
	config := rest.AnonymousClientConfig(r.config)
	config.BearerToken = token
	member, err := newClients(config, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := member.Pods(r.namespace).Get(t.Context(), one.Name, metav1.GetOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("the API server takes the token of an agent: %v", err)
	}
	p.decide(core.Move, "one", "b 0")
	p.awaitMembers("one", 0)
	p.hears(core.JobStarted, "one")
	r.await("the first run is over", func() bool {
		p.listen()
		return p.backend.world.podOf(r.namespace, one.Name) == nil
	})
	if got, err := p.backend.door.admit(t.Context(), agent.Hello{Token: token}); err == nil {
		t.Errorf("a pod that is gone speaks for %+v", got)
	}
}

// A job that speaks to nobody trains on; without the certificate that was asked for the scheduler does not begin.
func TestNoChannel(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharedOrStandIn(t))
	r.submit("quiet", asked{replicas: 1})
	p := r.play()
	p.hears(core.JobSubmitted, "quiet")
	p.decide(core.Start, "quiet", "a 0")
	p.hears(core.JobStarted, "quiet")
	for _, v := range p.members("quiet")[0].Spec.Containers[0].Env {
		if strings.HasPrefix(v.Name, "QUARTET_AGENT") {
			t.Errorf("it is told %s", v.Name)
		}
	}
	p.decide(core.Move, "quiet", "a 0-1")
	p.hears(core.JobStarted, "quiet") // anew: it knows of no other way
	if err := p.backend.Close(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func() error{
		"no certificate": func() error { return os.Remove(filepath.Join(r.settings.AgentTLS, authorityFile)) },
		"no key":         func() error { return os.Remove(filepath.Join(r.settings.AgentTLS, keyFile)) },
		"an empty one":   func() error { return os.WriteFile(filepath.Join(r.settings.AgentTLS, authorityFile), nil, 0o600) },
		"an address taken": func() error {
			l, err := net.Listen("tcp", r.settings.AgentListen)
			if err == nil {
				t.Cleanup(func() { _ = l.Close() }) // of this test alone
			}
			return err
		},
	} {
		r.talking()
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		b, err := r.tryOpen(t.Context(), nil)
		if err == nil {
			t.Errorf("%s: it begins", name)
		}
		if err := b.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
