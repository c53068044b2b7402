//go:build linux

package kubetrainee

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/internal/kubecluster"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"), goleak.IgnoreAnyFunction("net/http.(*http2ClientConn).readLoop"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"))
}

const (
	audience = "quartet-agent.test"
	pods     = "/api/v1/namespaces/default/pods"
	patience = time.Minute
)

// rig is a cluster with a scheduler's side of agents, and somebody who plays the pods.
type rig struct {
	cluster *kubecluster.Cluster
	server  *agent.Server
	address string
	ca      string
	dir     string
	saved   map[string]float64 // up to what each job said that it has a checkpoint
}

func newRig(t *testing.T) *rig {
	dir, c := t.TempDir(), kubetest.Start(t, kubecluster.Options{})
	must(t, c.AddNodes(t.Context(), kubecluster.Pool{Name: "node", Count: 2, Devices: 8}))
	r := &rig{cluster: c, dir: filepath.Join(dir, "trainee"), saved: make(map[string]float64)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = "tls://" + l.Addr().String()
	certificate := r.certify(t)
	r.server = agent.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}}), r.admit)
	t.Cleanup(func() { must(t, r.server.Close()) })
	r.await(t, "a service account", func() error {
		_, err := c.Do(t.Context(), "GET", "/api/v1/namespaces/default/serviceaccounts/default", nil)
		return err
	})
	r.must(t, "POST", "/api/v1/namespaces/default/configmaps", map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "agent"}, "data": map[string]string{"ca.crt": r.ca},
	})
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func (r *rig) certify(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	r.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// admit asks the API server whose token it is: a pod is a member, and its job what is before the dash in its name.
func (r *rig) admit(ctx context.Context, h agent.Hello) (agent.Identity, error) {
	answer, err := r.cluster.Do(ctx, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
		"spec": map[string]any{"token": h.Token, "audiences": []string{audience}},
	})
	if err != nil {
		return agent.Identity{}, err
	}
	var review struct {
		Status struct {
			Authenticated bool
			User          struct{ Extra map[string][]string }
			Error         string
		}
	}
	if err := json.Unmarshal(answer, &review); err != nil {
		return agent.Identity{}, err
	}
	names := review.Status.User.Extra["authentication.kubernetes.io/pod-name"]
	if !review.Status.Authenticated || len(names) != 1 {
		return agent.Identity{}, fmt.Errorf("no token of a pod: %s", review.Status.Error)
	}
	job, _, _ := strings.Cut(names[0], "-")
	return agent.Identity{Job: job, Member: names[0]}, nil
}

// train plays the pods until the test or the returned function ends it.
func (r *rig) train(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	go func() {
		ended <- Run(ctx, Config{Cluster: r.cluster, Dir: r.dir, Clock: time.Now, Log: log}) //nolint:forbidigo // a clock is what it is
	}()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			must(t, <-ended)
		}
	}
	t.Cleanup(stop)
	return stop
}

func (r *rig) must(t *testing.T, method, path string, body any) {
	t.Helper()
	if _, err := r.cluster.Do(t.Context(), method, path, body); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) await(t *testing.T, what string, ask func() error) {
	t.Helper()
	var err error
	for range int(patience / (20 * time.Millisecond)) {
		if err = ask(); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s: %v", what, err)
}

// podOf is what a test wants to be played.
type podOf struct {
	job             string
	run, rank       int
	replicas, nodes int
	work            float64
	alone           bool // without an agent
}

func (p podOf) name() string { return fmt.Sprintf("%s-r%d-%d", p.job, p.run, p.rank) }

func (r *rig) create(t *testing.T, p podOf) string {
	t.Helper()
	env := []any{
		map[string]any{"name": agent.JobVariable, "value": p.job},
		map[string]any{"name": agent.RankVariable, "value": strconv.Itoa(p.rank)},
		map[string]any{"name": agent.ReplicasVariable, "value": strconv.Itoa(p.replicas)},
		map[string]any{"name": agent.NodesVariable, "value": strconv.Itoa(p.nodes)},
	}
	var volumes, mounts []any
	if !p.alone {
		env = append(env, map[string]any{"name": agent.SocketVariable, "value": r.address},
			map[string]any{"name": agent.TokenVariable, "value": "/var/run/quartet/token"},
			map[string]any{"name": agent.CAVariable, "valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "agent", "key": "ca.crt"}}})
		volumes = []any{map[string]any{"name": "agent", "projected": map[string]any{"sources": []any{
			map[string]any{"serviceAccountToken": map[string]any{"path": "token", "audience": audience, "expirationSeconds": 600}},
		}}}}
		mounts = []any{map[string]any{"name": "agent", "mountPath": "/var/run/quartet"}}
	}
	r.must(t, "POST", pods, map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{
			"name": p.name(), "labels": map[string]string{jobLabel: p.job, runLabel: strconv.Itoa(p.run)},
			"annotations": map[string]string{
				workAnnotation: strconv.FormatFloat(p.work, 'g', -1, 64), reportAnnotation: "0.1", checkpointAnnotation: "0.3",
				ranksAnnotation: strconv.Itoa(p.rank),
			},
		},
		"spec": map[string]any{
			"nodeName": "node-" + strconv.Itoa(p.rank%2), "restartPolicy": "Never", "volumes": volumes,
			"containers": []any{map[string]any{"name": "main", "image": "none", "env": env, "volumeMounts": mounts}},
		},
	})
	return p.name()
}

// ends waits until a pod has ended, and returns its phase and exit code.
func (r *rig) ends(t *testing.T, name string) (phase string, exit int) {
	t.Helper()
	r.await(t, name+" ends", func() error {
		answer, err := r.cluster.Do(t.Context(), "GET", pods+"/"+name, nil)
		if err != nil {
			return err
		}
		var p struct {
			Status struct {
				Phase             string
				ContainerStatuses []struct {
					State struct{ Terminated struct{ ExitCode int } }
				}
			}
		}
		if err := json.Unmarshal(answer, &p); err != nil {
			return err
		}
		phase = p.Status.Phase
		if phase != succeeded && phase != failed {
			return errors.New("it is " + phase)
		}
		exit = p.Status.ContainerStatuses[0].State.Terminated.ExitCode
		return nil
	})
	return phase, exit
}

// until takes what agents say up to what is wanted.
func (r *rig) until(t *testing.T, want func(agent.Event) bool) agent.Event {
	t.Helper()
	limit := time.After(patience)
	for {
		select {
		case e := <-r.server.Events():
			if e.Err != nil {
				t.Errorf("%s: %v", e.Member, e.Err)
			}
			if e.Checkpointed != nil {
				r.saved[e.Job] = e.Checkpointed.Progress
			}
			if want(e) {
				return e
			}
		case <-limit:
			t.Fatal("nobody said what is wanted")
		}
	}
}

func (r *rig) send(t *testing.T, job, member string, m agent.ToJob) {
	t.Helper()
	n, err := r.server.SendTo(job, member, m)
	if n != 1 || err != nil {
		t.Errorf("%d of %s are told, %v; want one", n, member, err)
	}
}

func report(job string, want func(agent.Report) bool) func(agent.Event) bool {
	return func(e agent.Event) bool { return e.Job == job && e.Report != nil && want(*e.Report) }
}

func whatever(agent.Report) bool { return true }

// Trainings run to their end, through worlds that change, stops and deletions, on a real control plane.
func TestTrainings(t *testing.T) {
	r := newRig(t)
	stop := r.train(t)
	for _, job := range []string{"whole", "elastic", "killed", "alone", "outage"} {
		r.server.Expect(job)
	}
	t.Run("to the end", r.toTheEnd)
	t.Run("without an agent", r.withoutAnAgent)
	t.Run("through worlds and a stop", r.throughWorlds)
	t.Run("while the API server is away", r.outage)
	t.Run("deleted", func(t *testing.T) { r.deleted(t, stop) })
}

func (r *rig) toTheEnd(t *testing.T) {
	p := podOf{job: "whole", run: 1, replicas: 2, nodes: 2, work: 2}
	names := []string{r.create(t, p)}
	p.rank = 1
	names = append(names, r.create(t, p))
	var last agent.Report
	for done := map[string]bool{}; len(done) < 2; {
		e := r.until(t, func(e agent.Event) bool { return e.Job == "whole" })
		if e.Report != nil {
			if e.Member != names[0] || e.Report.Progress < last.Progress {
				t.Errorf("%s reports %+v after %+v", e.Member, e.Report, last)
			}
			last = *e.Report
		}
		if e.Done != nil {
			done[e.Member] = true
		}
	}
	want := agent.Report{Replicas: 2, Nodes: 2, BatchPerDevice: 1, PassSeconds: 0.1, StepSeconds: 0.1, Progress: 2}
	if last != want || r.saved["whole"] != 2 {
		t.Errorf("the last report is %+v, want %+v; saved %v of 2", last, want, r.saved["whole"])
	}
	for _, name := range names {
		if phase, exit := r.ends(t, name); phase != succeeded || exit != 0 {
			t.Errorf("%s: %s with %d", name, phase, exit)
		}
	}
}

func (r *rig) withoutAnAgent(t *testing.T) {
	if phase, exit := r.ends(t, r.create(t, podOf{job: "alone", run: 1, replicas: 1, nodes: 1, work: 0.5, alone: true})); phase != succeeded || exit != 0 {
		t.Errorf("%s with %d", phase, exit)
	}
}

func (r *rig) throughWorlds(t *testing.T) {
	p := podOf{job: "elastic", run: 1, replicas: 1, nodes: 1, work: 1e6}
	old := r.create(t, p)
	before := r.until(t, report("elastic", whatever)).Report.Progress
	young := p
	young.rank, young.replicas, young.nodes = 1, 2, 2
	second := r.create(t, young)
	if e := r.until(t, func(e agent.Event) bool { return e.Member == second && e.Hello != nil }); !e.Hello.Worlds {
		t.Error("it takes no other world")
	}
	r.send(t, "elastic", second, agent.ToJob{World: &agent.World{Generation: 1, Rank: 1, Replicas: 2, Nodes: 2, Address: old}})
	r.send(t, "elastic", old, agent.ToJob{World: &agent.World{Generation: 1, Rank: 0, Replicas: 2, Nodes: 2, Address: old}})
	both := r.until(t, report("elastic", func(r agent.Report) bool { return r.Replicas == 2 }))
	if both.Report.Nodes != 2 || both.Report.Progress < before {
		t.Errorf("after %v: %+v", before, both.Report)
	}
	r.send(t, "elastic", old, agent.ToJob{World: &agent.World{Generation: 2, Replicas: 1, Nodes: 1, Address: old}})
	r.send(t, "elastic", second, agent.ToJob{Stop: &agent.Stop{GraceSeconds: 5}})
	alone := r.until(t, report("elastic", func(r agent.Report) bool { return r.Replicas == 1 }))
	if alone.Report.Progress < both.Report.Progress {
		t.Errorf("lost: %v after %v", alone.Report.Progress, both.Report.Progress)
	}
	if phase, exit := r.ends(t, second); phase != succeeded || exit != 0 {
		t.Errorf("the member that left: %s with %d", phase, exit)
	}
	last := r.until(t, report("elastic", func(r agent.Report) bool { return r.Progress > alone.Report.Progress })).Report.Progress
	r.send(t, "elastic", old, agent.ToJob{Stop: &agent.Stop{GraceSeconds: 5}})
	done := false
	r.until(t, func(e agent.Event) bool {
		done = done || e.Done != nil
		return e.Member == old && e.Gone
	})
	saved := r.saved["elastic"]
	if saved < last || done {
		t.Errorf("stopped after %v, with %v saved; done %v", last, saved, done)
	}
	if phase, exit := r.ends(t, old); phase != succeeded || exit != 0 {
		t.Errorf("the member that was stopped: %s with %d", phase, exit)
	}
	r.server.Expect("elastic")
	p.run = 2
	r.create(t, p)
	if again := r.until(t, report("elastic", whatever)).Report.Progress; again < saved {
		t.Errorf("the next run goes on from %v, want %v at least", again, saved)
	}
}

// What a pod that is deleted has done is kept, also over another start of the trainee.
func (r *rig) deleted(t *testing.T, stop func()) {
	p := podOf{job: "killed", run: 1, replicas: 1, nodes: 1, work: 1e6}
	name := r.create(t, p)
	last := r.until(t, report("killed", whatever)).Report.Progress
	r.must(t, "DELETE", pods+"/"+name, nil)
	r.until(t, func(e agent.Event) bool { return e.Member == name && e.Gone })
	saved := r.saved["killed"]
	if saved < last {
		t.Errorf("deleted after %v, with %v saved", last, saved)
	}
	r.await(t, "the pod is gone", func() error {
		if _, err := r.cluster.Do(t.Context(), http.MethodGet, pods+"/"+name, nil); !missing(err) {
			return fmt.Errorf("it is there, %w", err)
		}
		return nil
	})
	p.run = 2
	running := r.create(t, p)
	r.until(t, func(e agent.Event) bool { return e.Member == running && e.Report != nil })
	stop()
	r.until(t, func(e agent.Event) bool { return e.Member == running && e.Gone })
	r.train(t)
	e := r.until(t, func(e agent.Event) bool { return e.Member == running && e.Report != nil })
	if e.Report.Progress < saved {
		t.Errorf("after another start it goes on from %v, want %v at least", e.Report.Progress, saved)
	}
}

// Who trains goes on while the API server is away, and hears afterwards of what it missed.
func (r *rig) outage(t *testing.T) {
	p := podOf{job: "outage", run: 1, replicas: 1, nodes: 1, work: 1e6}
	name := r.create(t, p)
	before := r.until(t, report("outage", whatever)).Report.Progress
	must(t, r.cluster.Kill("kube-apiserver"))
	after := r.until(t, report("outage", func(r agent.Report) bool { return r.Progress > before+1 })).Report.Progress
	r.send(t, "outage", name, agent.ToJob{Stop: &agent.Stop{GraceSeconds: 5}}) // whose end it cannot write down
	r.until(t, func(e agent.Event) bool { return e.Member == name && e.Gone })
	if r.saved["outage"] < after {
		t.Errorf("stopped after %v, with %v saved", after, r.saved["outage"])
	}
	must(t, errors.Join(r.cluster.Restart("kube-apiserver"), r.cluster.WaitReady(t.Context())))
	if phase, exit := r.ends(t, name); phase != succeeded || exit != 0 {
		t.Errorf("%s with %d", phase, exit)
	}
	p.run = 2
	again := r.create(t, p)
	if e := r.until(t, func(e agent.Event) bool { return e.Member == again && e.Report != nil }); e.Report.Progress < after {
		t.Errorf("it goes on from %v, want %v at least", e.Report.Progress, after)
	}
}
