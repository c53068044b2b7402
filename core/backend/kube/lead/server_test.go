package lead

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
)

// realClock is the clock of this machine, or of a bubble.
type realClock struct{}

func (realClock) Now() time.Time                         { return time.Now() } //nolint:forbidigo // a clock is what it is
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// server keeps Leases and ConfigMaps, and refuses writes that rest on an old version, as an API server does.
type server struct {
	mu      sync.Mutex
	version int
	objects map[string]runtime.Object
	down    bool
	epochs  []int64 // that State was written with, in the order of the writes
}

func (s *server) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// writes is how often something was written.
func (s *server) writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

func (s *server) remove(resource, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, resource+"/"+name)
}

func (s *server) lease() *coordination.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, _ := s.objects["leases/"+leaseName].(*coordination.Lease)
	return l.DeepCopy()
}

var errAway = errors.New("connection refused")

// do does what a request asks for; the object is that of a request that writes.
func (s *server) do(method, resource, name string, object runtime.Object) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errAway
	}
	kind, at := schema.GroupResource{Resource: resource}, resource+"/"+name
	switch is := s.objects[at]; method {
	case http.MethodPost:
		if is != nil {
			return nil, apierrors.NewAlreadyExists(kind, name)
		}
		object.(metav1.Object).SetUID(types.UID(strconv.Itoa(s.version)))
		return s.put(at, object), nil
	case http.MethodPut:
		m := object.(metav1.Object)
		switch {
		case is == nil:
			return nil, apierrors.NewNotFound(kind, name)
		case m.GetUID() != is.(metav1.Object).GetUID() || m.GetResourceVersion() != is.(metav1.Object).GetResourceVersion():
			return nil, apierrors.NewConflict(kind, name, errors.New("changed"))
		}
		return s.put(at, object), nil
	case http.MethodGet:
		if is != nil {
			return is.DeepCopyObject(), nil
		}
		return nil, apierrors.NewNotFound(kind, name)
	}
	return nil, errors.New("not served")
}

// answer answers a request as an API server does. An error is that of a connection.
func (s *server) answer(r *http.Request) (*http.Response, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource, name := parts[len(parts)-2], parts[len(parts)-1]
	if r.Method == http.MethodPost {
		resource, name = name, ""
	}
	var object runtime.Object = &corev1.ConfigMap{}
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	if resource == "leases" {
		object, kind = &coordination.Lease{}, coordination.SchemeGroupVersion.WithKind("Lease")
	}
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(object); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	if name == "" {
		name = object.(metav1.Object).GetName()
	}
	stored, err := s.do(r.Method, resource, name, object)
	code, body := http.StatusOK, any(stored)
	var refusal apierrors.APIStatus
	switch {
	case errors.As(err, &refusal):
		status := refusal.Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		code, body = int(status.Code), status
	case err != nil:
		return nil, err
	default:
		stored.GetObjectKind().SetGroupVersionKind(kind)
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)),
	}, nil
}

// clientOver is a client whose requests a transport carries.
func clientOver(transport http.RoundTripper) *kubeclient.Client {
	client, err := kubeclient.New(&rest.Config{
		Host: "http://quartet.test", Transport: transport, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
	})
	if err != nil {
		panic(err) // the types of an API group are known twice
	}
	return client
}

func (s *server) put(at string, o runtime.Object) runtime.Object {
	s.version++
	o.(metav1.Object).SetResourceVersion(strconv.Itoa(s.version))
	if s.objects == nil {
		s.objects = map[string]runtime.Object{}
	}
	s.objects[at] = o
	if m, ok := o.(*corev1.ConfigMap); ok {
		if k, err := read(m); err == nil {
			s.epochs = append(s.epochs, k.Epoch)
		}
	}
	return o.DeepCopyObject()
}

// Names of the tests.
const (
	namespace = "quartet"
	leaseName = "quartet"
	stateName = "quartet-state"
)

// process is a program that uses the server. It can be stopped in its tracks, as by SIGSTOP, cut off, and killed.
type process struct {
	server *server
	name   string
	shift  time.Duration // of its clock

	mu      sync.Mutex
	stopped chan struct{} // closed when it goes on; nil while it runs
	cut     bool
	slow    time.Duration // until an answer comes
	lost    bool          // answers do not come, though what is asked is done
	ctx     context.Context
	kill    context.CancelFunc
	dead    bool
}

func newProcess(s *server, name string) *process {
	ctx, kill := context.WithCancel(context.Background())
	return &process{server: s, name: name, ctx: ctx, kill: kill}
}

// run returns when the process is not stopped.
func (p *process) run() {
	for {
		p.mu.Lock()
		stopped := p.stopped
		p.mu.Unlock()
		if stopped == nil {
			return
		}
		<-stopped
	}
}

func (p *process) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped == nil {
		p.stopped = make(chan struct{})
	}
}

func (p *process) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped != nil {
		close(p.stopped)
		p.stopped = nil
	}
}

func (p *process) set(change func(*process)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *process) Now() time.Time {
	p.run()
	p.mu.Lock()
	defer p.mu.Unlock()
	return now().Add(p.shift)
}

func (p *process) After(d time.Duration) <-chan time.Time {
	p.run()
	at := make(chan time.Time, 1)
	go func() {
		select {
		case now := <-time.After(d):
			p.run()
			at <- now
		case <-p.ctx.Done():
		}
	}()
	return at
}

// client is a client of the server, for as long as the process can reach it.
func (p *process) client() *kubeclient.Client { return clientOver(p) }

func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	p.run()
	p.mu.Lock()
	cut, slow, lost, dead := p.cut, p.slow, p.lost, p.dead
	p.mu.Unlock()
	if cut || dead {
		return nil, errAway
	}
	time.Sleep(slow / 2)
	answer, err := p.server.answer(r)
	time.Sleep(slow / 2)
	p.run()
	if lost {
		return nil, context.DeadlineExceeded
	}
	return answer, err
}

func (p *process) options() Options {
	return Options{
		Client: p.client(), Namespace: namespace, Name: leaseName, State: stateName, Identity: p.name,
		Lease: DefaultLease, Renew: DefaultRenew, Retry: DefaultRetry, Clock: p, ReleaseOnCancel: true,
	}
}

// end kills the process: nothing that it wanted to do is done any more.
func (p *process) end() {
	p.set(func(p *process) { p.dead = true })
	p.resume()
	p.kill()
}

func now() time.Time { return realClock{}.Now() }
