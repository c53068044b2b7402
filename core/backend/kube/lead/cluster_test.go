//go:build linux

package lead

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
	"github.com/quartet-sched/quartet/internal/kubecluster"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

// started is a process that leads.
type started struct {
	*exec.Cmd
	lines chan string
}

func startChild(t *testing.T, kubeconfig string) *started {
	t.Helper()
	c := &started{Cmd: exec.Command(os.Args[0]), lines: make(chan string, 100)}
	c.Env = append(os.Environ(), childVariable+"="+kubeconfig)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(c.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			c.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-read
		_ = c.Wait()
	})
	return c
}

// says waits for the next line, which must begin as given.
func (c *started) says(t *testing.T, want string) string {
	t.Helper()
	select {
	case line := <-c.lines:
		if !strings.HasPrefix(line, want) {
			t.Fatalf("the process says %q, want %q", line, want)
		}
		return line
	case <-time.After(time.Minute):
		t.Fatalf("the process does not say %q", want)
		return ""
	}
}

func (c *started) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// waiting runs for the lease, and tells the term and when it began.
func waiting(t *testing.T, client *kubeclient.Client, name string) (<-chan *Term, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan *Term, 1)
	go func() {
		term, err := Run(ctx, live(client, name))
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		got <- term
	}()
	return got, cancel
}

func (s *State) mustWrite(t *testing.T) {
	t.Helper()
	if err := s.Write(t.Context(), func(k *Kept) { k.Snapshot = number(numberOf(k.Snapshot) + 1) }); err != nil {
		t.Fatal(err)
	}
}

func clusterFor(t *testing.T) (*kubecluster.Cluster, *kubeclient.Client) {
	t.Helper()
	c := kubetest.Start(t, kubecluster.Options{})
	client, err := connected(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return c, client
}

// history is every state that the API server ever told of: no epoch follows a greater one.
func history(t *testing.T, client *kubeclient.Client) (check func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	type entry struct{ epoch, round int64 }
	var seen []entry
	done := make(chan struct{})
	w, err := client.ConfigMaps("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + stateName})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			if m, ok := event.Object.(*corev1.ConfigMap); ok {
				k, err := read(m)
				if err != nil {
					t.Error(err)
				}
				seen = append(seen, entry{k.Epoch, numberOf(k.Snapshot)})
			}
		}
	}()
	return func() {
		w.Stop()
		cancel()
		<-done
		for i := 1; i < len(seen); i++ {
			if seen[i].epoch < seen[i-1].epoch || seen[i].round < seen[i-1].round {
				t.Errorf("after epoch %d, round %d comes epoch %d, round %d", seen[i-1].epoch, seen[i-1].round, seen[i].epoch, seen[i].round)
			}
		}
		if len(seen) < 2 {
			t.Errorf("%d states were seen", len(seen))
		}
		t.Logf("%d states, the last of epoch %d", len(seen), seen[len(seen)-1].epoch)
	}
}

// Leaders that are killed, stopped and released are followed by one that knows what they wrote; the stopped one writes nothing
// any more when it goes on.
func TestProcesses(t *testing.T) {
	t.Parallel()
	c, client := clusterFor(t)
	check := history(t, client)
	epoch := int64(0)
	// next lets a leader in this process follow one in another, writes in its name, and releases.
	next := func(what string, end func(*started)) *started {
		leader := startChild(t, c.Kubeconfig)
		epoch++
		leader.says(t, fmt.Sprintf("leads %d", epoch))
		terms, cancel := waiting(t, client, "parent")
		defer cancel()
		time.Sleep(1500 * time.Millisecond) // it renews, and writes
		end(leader)
		began := now()
		term := <-terms
		t.Logf("%s: another leads after %v", what, now().Sub(began).Round(time.Millisecond))
		if epoch++; term.Epoch != epoch {
			t.Errorf("epoch %d, want %d", term.Epoch, epoch)
		}
		s, err := Open(t.Context(), client, term, "default", stateName, now())
		if err != nil {
			t.Fatal(err)
		}
		s.mustWrite(t)
		if what == "stopped" {
			leader.signal(t, syscall.SIGCONT)
			for line := range leader.lines {
				underWay := strings.HasSuffix(line, context.DeadlineExceeded.Error()) // when it was stopped; nobody took it in: see check
				if !underWay && !strings.HasPrefix(line, "cannot: "+ErrNotRenewed.Error()) && !strings.HasPrefix(line, "fenced: "+ErrFenced.Error()) {
					t.Errorf("the process that goes on says %q", line)
				}
			}
			s.mustWrite(t)
		}
		began = now()
		cancel()
		<-term.Done
		following, stop := waiting(t, client, "third")
		defer stop()
		third := <-following
		t.Logf("released: another leads after %v", now().Sub(began).Round(time.Millisecond))
		epoch++
		stop()
		<-third.Done
		return leader
	}
	for range 2 {
		next("killed", func(s *started) { s.signal(t, syscall.SIGKILL) })
		next("stopped", func(s *started) { s.signal(t, syscall.SIGSTOP) })
	}
	check()
}

// While the API server or etcd is away nobody takes over, and the leader goes on with its epoch.
func TestControlPlaneAway(t *testing.T) {
	t.Parallel()
	c, client := clusterFor(t)
	leader := startChild(t, c.Kubeconfig)
	leader.says(t, "leads 1")
	terms, cancel := waiting(t, client, "parent")
	defer cancel()
	for _, step := range []struct {
		name      string
		away      time.Duration
		off, back func() error
	}{
		{
			"API server", 2 * time.Second, func() error { return c.Kill("kube-apiserver") },
			func() error { return errors.Join(c.Restart("kube-apiserver"), c.WaitReady(t.Context())) },
		},
		{"etcd", 10 * time.Second, func() error { return c.Pause("etcd") }, func() error { return c.Resume("etcd") }},
	} {
		if err := step.off(); err != nil {
			t.Fatal(err)
		}
		leader.says(t, "cannot:")
		time.Sleep(step.away)
		if err := step.back(); err != nil {
			t.Fatal(err)
		}
		leader.says(t, "writes again")
		t.Logf("%s was away for %v and more: the leader writes again", step.name, step.away)
	}
	select {
	case term := <-terms:
		t.Errorf("another took over: %+v", term)
	default:
	}
	leader.signal(t, syscall.SIGKILL)
	if term := <-terms; term.Epoch != 2 {
		t.Errorf("the next epoch is %d, want 2", term.Epoch)
	}
}

// The elector of client-go and ours understand the same Lease.
func TestOtherElector(t *testing.T) {
	t.Parallel()
	c, client := clusterFor(t)
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := coordinationclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	terms, cancel := waiting(t, client, "ours")
	first := <-terms
	ctx, stop := context.WithCancel(t.Context())
	began, ended := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: leaseName}, Client: theirs,
			LockConfig: resourcelock.ResourceLockConfig{Identity: "theirs"},
		},
		LeaseDuration: DefaultLease, RenewDeadline: DefaultRenew, RetryPeriod: DefaultRetry, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(began) }, OnStoppedLeading: func() { close(ended) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	go elector.Run(ctx)
	select {
	case <-began:
		t.Fatal("two lead")
	case <-time.After(DefaultLease + 2*DefaultRetry):
	}
	if !first.Valid() {
		t.Error(first.Err())
	}
	cancel()
	<-first.Done
	<-began
	terms, cancel = waiting(t, client, "ours")
	defer cancel()
	select {
	case <-terms:
		t.Fatal("two lead")
	case <-time.After(DefaultLease + 2*DefaultRetry):
	}
	stop()
	<-ended
	if term := <-terms; term.Epoch != 3 || first.Epoch != 1 {
		t.Errorf("epochs %d and %d, want 1 and 3", first.Epoch, term.Epoch)
	}
	cancel()
}
