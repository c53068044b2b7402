package lead

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/testing"
)

// realClock is the clock of this machine, or of a bubble.
type realClock struct{}

func (realClock) Now() time.Time                         { return time.Now() } //nolint:forbidigo // a clock is what it is
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// server keeps Leases and ConfigMaps, and refuses writes that rest on an old version, as an API server does and the tracker
// of client-go's fake does not.
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

func (s *server) do(action testing.Action) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errAway
	}
	resource := schema.GroupResource{Resource: action.GetResource().Resource}
	at := func(name string) string { return resource.Resource + "/" + name }
	switch action.GetVerb() {
	case "create":
		o := action.(testing.CreateAction).GetObject().DeepCopyObject()
		m := o.(metav1.Object)
		if s.objects[at(m.GetName())] != nil {
			return nil, apierrors.NewAlreadyExists(resource, m.GetName())
		}
		m.SetUID(types.UID(strconv.Itoa(s.version)))
		return s.put(at(m.GetName()), o), nil
	case "update":
		o := action.(testing.UpdateAction).GetObject().DeepCopyObject()
		m := o.(metav1.Object)
		is := s.objects[at(m.GetName())]
		switch {
		case is == nil:
			return nil, apierrors.NewNotFound(resource, m.GetName())
		case m.GetUID() != is.(metav1.Object).GetUID() || m.GetResourceVersion() != is.(metav1.Object).GetResourceVersion():
			return nil, apierrors.NewConflict(resource, m.GetName(), errors.New("changed"))
		}
		return s.put(at(m.GetName()), o), nil
	case "get":
		a := action.(testing.GetAction)
		if o := s.objects[at(a.GetName())]; o != nil {
			return o.DeepCopyObject(), nil
		}
		return nil, apierrors.NewNotFound(resource, a.GetName())
	}
	return nil, errors.New("not served")
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

// client answers as the server does, if the process can reach it.
func (p *process) client() *fake.Clientset {
	client := &fake.Clientset{}
	client.AddReactor("*", "*", func(action testing.Action) (bool, runtime.Object, error) {
		p.run()
		p.mu.Lock()
		cut, slow, lost, dead := p.cut, p.slow, p.lost, p.dead
		p.mu.Unlock()
		if cut || dead {
			return true, nil, errAway
		}
		time.Sleep(slow / 2)
		o, err := p.server.do(action)
		time.Sleep(slow / 2)
		p.run()
		if lost {
			return true, nil, context.DeadlineExceeded
		}
		return true, o, err
	})
	return client
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
