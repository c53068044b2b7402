package kube

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// The files of the certificate by which agents know the scheduler, as cert-manager names them.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
	authorityFile   = "ca.crt"
)

// The service by which agents reach the leader, where no other address is given.
const (
	serviceName = "quartet-agent"
	servicePort = "9443"
)

// leaderLabel is on the pod that leads: the service of agents selects it.
const leaderLabel = "quartet.sched/leader"

// door is where the agents of jobs speak to the leader. Its methods may be called from any goroutine.
type door struct {
	world  *world
	review func(context.Context, string) (*authenticationv1.TokenReview, error)
	server *agent.Server
	agent  gang.Agent

	mutex  sync.Mutex
	jobs   map[types.UID][]*members // those that are expected
	runs   map[string]*members      // the same, by their key
	speech map[string]*speech       // by the key of the run
}

// members are those of a run.
type members struct {
	job    types.UID
	run    int64
	tuning core.Tuning    // that was told last
	leads  string         // name of the pod that speaks for the job
	ranks  map[string]int // of the first replica of a pod when that began, by its name
	report agent.Report   // the last one
	spoke  bool
	done   bool // it says so

	stopped map[string]bool // pods that were told to stop
}

// speech is what a run of a job said that nobody took in yet.
type speech struct {
	job          types.UID
	run          int64
	report       *agent.Report
	checkpointed *float64
	worlds       bool // it takes another world while it runs
	metrics      []heardMetric
}

// heardMetric is a value of a metric, which a replica that connects again may say again.
type heardMetric struct {
	agent.Metric
	again bool
}

// mostUnheard bounds how many values of a job's metrics wait until somebody looks: of more, the oldest are forgotten.
const mostUnheard = 1024

// keyOf names a run of a job: what one run is told, the next is not.
func keyOf(uid types.UID, run int64) string { return string(uid) + "-r" + strconv.FormatInt(run, 10) }

// openDoor opens the channel of the agents, if there is a certificate for it. Without one jobs run without agents.
func (b *Backend) openDoor() (*door, error) {
	folder, address := b.config.AgentTLS, b.config.AgentAddress
	authority, err := inputfile.Read(filepath.Join(folder, authorityFile), inputfile.Document)
	switch {
	case address == "" && errors.Is(err, fs.ErrNotExist):
		b.log.Info("no channel for the agents of jobs: no certificate found", "folder", folder)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the certificate of the agents' channel: %w", err)
	case address == "":
		address = serviceName + "." + b.config.Namespace + ".svc:" + servicePort
	}
	if !x509.NewCertPool().AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("the certificate of the agents' channel: %s has no certificate", filepath.Join(folder, authorityFile))
	}
	load := func() (*tls.Certificate, error) { // it may have been renewed
		pair, err := tls.LoadX509KeyPair(filepath.Join(folder, certificateFile), filepath.Join(folder, keyFile))
		return &pair, err
	}
	if _, err := load(); err != nil {
		return nil, fmt.Errorf("the certificate of the agents' channel: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(b.life, "tcp", b.config.AgentListen)
	if err != nil {
		return nil, fmt.Errorf("the agents' channel: %w", err)
	}
	d := &door{
		world: b.world, agent: gang.Agent{Address: "tls://" + address, CA: string(authority)},
		jobs: map[types.UID][]*members{}, runs: map[string]*members{}, speech: map[string]*speech{},
		review: func(ctx context.Context, token string) (*authenticationv1.TokenReview, error) {
			return b.clients.ReviewToken(ctx, &authenticationv1.TokenReview{
				Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{gang.Audience}},
			})
		},
	}
	d.server = agent.Serve(tls.NewListener(listener, &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return load() },
	}), d.admit)
	b.group.Go(func() {
		warned := map[string]bool{}
		for e := range d.server.Events() {
			if what := e.Member + errorText(e.Err); e.Err != nil && !warned[what] { // they try again and again
				if len(warned) == mostWarned {
					clear(warned)
				}
				warned[what] = true
				b.log.Warn("refused an agent", "run", e.Job, "pod", e.Member, "error", e.Err)
			}
			d.hear(&e)
		}
	})
	return d, nil
}

// mostWarned is how many warnings about agents are remembered, so as not to repeat them.
const mostWarned = 1000

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (d *door) close() {
	if d != nil {
		_ = d.server.Close() // nobody is told any more
	}
}

// What a review of a token of a pod says beside the user.
const (
	podNameExtra = "authentication.kubernetes.io/pod-name"
	podUIDExtra  = "authentication.kubernetes.io/pod-uid"
)

// admit finds out for which pod an agent speaks, and for which run. Nobody speaks for another.
func (d *door) admit(ctx context.Context, h agent.Hello) (agent.Identity, error) {
	if h.Token == "" {
		return agent.Identity{}, errors.New("hello has no token")
	}
	review, err := d.review(ctx, h.Token)
	if err != nil {
		return agent.Identity{}, fmt.Errorf("the token cannot be reviewed now: %w", err)
	}
	s := &review.Status
	name, uid := s.User.Extra[podNameExtra], s.User.Extra[podUIDExtra]
	if !s.Authenticated || !slices.Contains(s.Audiences, gang.Audience) || len(name) != 1 || len(uid) != 1 {
		return agent.Identity{}, errors.New("the token is not one of a pod for this channel: " + cmp.Or(s.Error, "not authenticated"))
	}
	namespace, _, ok := strings.Cut(strings.TrimPrefix(s.User.Username, "system:serviceaccount:"), ":")
	if !ok {
		return agent.Identity{}, errors.New("the token is not one of a service account")
	}
	pod := d.world.podOf(namespace, name[0])
	if pod == nil || string(pod.UID) != uid[0] {
		return agent.Identity{}, fmt.Errorf("the pod %s/%s is not known, or not yet", namespace, name[0])
	}
	job := d.world.memberOf(pod)
	run, err := strconv.ParseInt(pod.Labels[gang.RunLabel], 10, 64)
	if job == "" || err != nil {
		return agent.Identity{}, fmt.Errorf("the pod %s/%s is not of a job of this scheduler", namespace, name[0])
	}
	first, _, _ := strings.Cut(pod.Annotations[gang.RanksAnnotation], "-")
	rank, err := strconv.Atoi(first)
	if err != nil {
		return agent.Identity{}, fmt.Errorf("the pod %s/%s has no rank", namespace, name[0])
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	key := keyOf(job, run)
	m := d.runs[key]
	if m == nil {
		return agent.Identity{}, fmt.Errorf("run %d of the job is not the current one", run)
	}
	m.ranks[pod.Name] = rank
	return agent.Identity{Job: key, Member: pod.Name}, nil
}

// follow lets the members of a job speak, and tells them what is decided. Those that have to go,
// because it is decided or because somebody deletes or evicts them, may keep what they did.
func (d *door) follow(g *gang.Job, tuning core.Tuning, pods []*corev1.Pod) error {
	if d == nil {
		return nil
	}
	var problems []error
	if key := keyOf(g.UID, g.Run); len(g.Seats) > 0 && d.expect(g, key, tuning) {
		_, err := d.server.Send(key, agent.ToJob{Tuning: tuningOf(tuning)})
		problems = append(problems, err)
	}
	there := map[int64]bool{g.Run: len(g.Seats) > 0}
	for _, pod := range pods {
		run, err := strconv.ParseInt(pod.Labels[gang.RunLabel], 10, 64)
		if err != nil {
			continue
		}
		there[run] = true
		if (pod.DeletionTimestamp != nil || g.SeatOf(pod) < 0) && d.stops(keyOf(g.UID, run), pod.Name) {
			_, err := d.server.SendTo(keyOf(g.UID, run), pod.Name, agent.ToJob{Stop: &agent.Stop{GraceSeconds: graceOf(pod)}})
			problems = append(problems, err)
		}
	}
	d.part(g.UID, there)
	return errors.Join(problems...)
}

// expect lets the members of a run speak, and reports whether they have to be told another tuning.
func (d *door) expect(g *gang.Job, key string, tuning core.Tuning) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	m := d.runs[key]
	if m == nil {
		m = &members{job: g.UID, run: g.Run, ranks: map[string]int{}, stopped: map[string]bool{}}
		d.runs[key] = m
		d.jobs[g.UID] = append(d.jobs[g.UID], m)
		d.server.Expect(key)
	}
	m.leads = g.Pod(g.Seats[0].Member)
	changed := !m.tuning.Equal(tuning)
	m.tuning = tuning
	return changed
}

// stops reports whether a member of a run is to be told to stop, and was not.
func (d *door) stops(key, pod string) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	m := d.runs[key]
	if m == nil || m.stopped[pod] {
		return false
	}
	m.stopped[pod] = true
	return true
}

// part ends the runs of a job of which no pod is left.
func (d *door) part(job types.UID, there map[int64]bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	left := slices.DeleteFunc(d.jobs[job], func(m *members) bool {
		if there[m.run] {
			return false
		}
		d.server.Forget(keyOf(job, m.run))
		delete(d.runs, keyOf(job, m.run))
		return true
	})
	if d.jobs[job] = left; len(left) == 0 {
		delete(d.jobs, job)
	}
}

func tuningOf(t core.Tuning) *agent.Tuning {
	return &agent.Tuning{
		BatchPerDevice: t.BatchPerDevice, AccumulationSteps: t.AccumulationSteps, LearningRateFactor: t.LearningRateFactor,
		BatchByReplica: slices.Clone(t.BatchByReplica),
	}
}

// graceOf is how many seconds a pod has to end in.
func graceOf(pod *corev1.Pod) float64 {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return float64(*s)
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

// meet tells the members of a run that others joined or left.
func (d *door) meet(g *gang.Job, generation int64) error {
	if d == nil || generation == 0 {
		return nil
	}
	var problems []error
	for i, s := range g.Seats {
		world := g.World(i, generation)
		_, err := d.server.SendTo(keyOf(g.UID, g.Run), g.Pod(s.Member), agent.ToJob{World: &world})
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// done reports whether a run spoke, and whether it said that its work is done.
func (d *door) done(key string) (spoke, done bool) {
	if d == nil {
		return false, false
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if m := d.runs[key]; m != nil {
		return m.spoke, m.done
	}
	return false, false
}

// forget ends what is known of a job.
func (d *door) forget(job types.UID) {
	if d != nil {
		d.part(job, nil)
	}
}

// hear notes what a replica said. The first one of the first member speaks for the job. How far it is waits until somebody looks;
// what may change a decision is looked at now.
func (d *door) hear(e *agent.Event) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	m := d.runs[e.Job]
	if m == nil || e.Gone || e.Member != m.leads || e.Rank != m.ranks[e.Member] {
		return
	}
	m.spoke, m.done = true, m.done || e.Done != nil
	s := d.speech[e.Job]
	if s == nil {
		s = &speech{job: m.job, run: m.run}
		d.speech[e.Job] = s
	}
	s.worlds = s.worlds || e.Hello != nil && e.Hello.Worlds
	if len(e.Metrics) > 0 {
		for _, m := range e.Metrics {
			s.metrics = append(s.metrics, heardMetric{m, e.Hello != nil})
		}
		s.metrics = s.metrics[max(len(s.metrics)-mostUnheard, 0):]
		wake(d.world.happened)
	}
	if e.Checkpointed != nil {
		s.checkpointed = &e.Checkpointed.Progress
	}
	if e.Report != nil {
		report := *e.Report
		s.report = &report
		if !configuredAlike(&m.report, &report) {
			wake(d.world.happened)
		}
		m.report = report
	}
}

// configuredAlike reports whether two reports are of the same number of replicas and nodes, and of the same batch.
func configuredAlike(a, b *agent.Report) bool {
	return a.Replicas == b.Replicas && a.Nodes == b.Nodes && a.BatchPerDevice == b.BatchPerDevice
}

// heard is what jobs said since somebody asked, in any order.
func (d *door) heard() []*speech {
	if d == nil {
		return nil
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	all := slices.Collect(maps.Values(d.speech))
	clear(d.speech)
	return all
}

// label marks the pod of this scheduler as the one that leads, and no other, if the scheduler runs in one.
func (b *Backend) label(ctx context.Context) error {
	self := os.Getenv("POD_NAME")
	if self == "" {
		return nil
	}
	pods := b.clients.Pods(b.config.Namespace)
	led, err := pods.List(ctx, metav1.ListOptions{LabelSelector: labels.Set{leaderLabel: "true"}.String()})
	if err != nil {
		return err
	}
	var problems []error
	for i := range led.Items {
		if name := led.Items[i].Name; name != self {
			_, err := pods.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"`+leaderLabel+`":null}}}`), metav1.PatchOptions{})
			problems = append(problems, err)
		}
	}
	_, err = pods.Patch(ctx, self, types.MergePatchType, []byte(`{"metadata":{"labels":{"`+leaderLabel+`":"true"}}}`), metav1.PatchOptions{})
	return errors.Join(append(problems, err)...)
}
