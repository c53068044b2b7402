//go:build linux

package kube

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

var (
	hangs = flag.Duration("kube.stopped", 10*time.Second, "for how long TestStoreStops stops etcd, each time")
	stops = flag.Int("kube.stops", 1, "how often it does")
	busy  = flag.Int("kube.busy", 16, "jobs at a time meanwhile")
)

// TestStoreStops stops etcd while jobs start, run, end, fail, are deleted, suspended and submitted, and another scheduler stands by.
// Decisions resume, under whoever leads then, and by the API's own history no job is lost or runs twice, and no pod is there twice.
func TestStoreStops(t *testing.T) {
	t.Parallel() // it is waiting that takes its time
	t.Logf("seed %d: %d times %v, %d jobs at a time", *seed, *stops, *hangs, *busy)
	cluster := own(t)
	r := newRig(t, cluster)
	t.Cleanup(func() { _ = cluster.Resume("etcd") }) // it may run
	const nodes, devices = 6, 4
	h := r.record(r.enlarge(nodes, devices))
	c := &crowd{
		rig: r, history: h, rand: rand.New(rand.NewPCG(*seed, 3)), most: devices, there: *busy, live: map[string]*fate{}, ended: map[trainingjob.State]int{},
	}
	leader := r.spawn("fifo")
	r.awaitLead(leader)
	standby := r.spawn("fifo")
	for i := range *stops {
		stop := c.fill()
		r.await("jobs run", func() bool { return h.running() >= nodes/2 })
		stop() // what it asks for would hang
		for len(c.live) < c.there {
			c.step(true)
		}
		began := realClock{}.Now()
		if err := cluster.Pause("etcd"); err != nil {
			t.Fatal(err)
		}
		late := r.persist(fmt.Sprintf("late-%d", i), 6)
		time.Sleep(*hangs) // that is the fault
		if err := cluster.Resume("etcd"); err != nil {
			t.Fatal(err)
		}
		resumed := realClock{}.Now()
		c.putOff(resumed.Sub(began) + 2*time.Second)
		if err := cluster.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, job := range late() {
			c.live[job.Name] = &fate{uid: job.UID, want: trainingjob.Completed, runs: 1}
			c.count++
			r.await("job "+job.Name+", which was submitted meanwhile, is decided on", func() bool { return h.stateOf(job.UID).run > 0 })
		}
		t.Logf("stopped for %v; the next decision %v later, of all that came meanwhile %v", resumed.Sub(began), h.nextDecision(resumed).Sub(resumed), realClock{}.Now().Sub(resumed))
		if standby.hasLed() { // the lease was over, and it was the first to notice
			r.await("the leader before ends: it is fenced", leader.hasEnded)
			leader, standby = standby, r.spawn("fifo")
		}
		r.alive(leader)
		r.alive(standby)
	}
	r.drain(c)
	r.alive(leader)
	h.verdict()
	t.Logf("%d jobs: %v; %d events, %d leaders; a part of a gang was bound for %v at most", c.count, c.ended, h.events, len(h.leaders), h.longestGap)
}

// nextDecision is when the first decision later than a moment was seen.
func (h *history) nextDecision(at time.Time) time.Time {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, decided := range h.decisions {
		if decided.After(at) {
			return decided
		}
	}
	return time.Time{}
}

// putOff has owners suspend and delete jobs so much later than they meant to. What all comes due while the store stands still would else
// fall into the very second in which pods end that did meanwhile: nobody could tell which came first (see docs/kubernetes.md, Limits).
func (c *crowd) putOff(by time.Duration) {
	for _, f := range c.live {
		for _, at := range [...]*time.Time{&f.deleteAt, &f.pauseAt, &f.resumeAt} {
			if !at.IsZero() {
				*at = at.Add(by)
			}
		}
	}
}

func (p *process) hasLed() bool {
	select {
	case <-p.leads:
		return true
	default:
		return false
	}
}

func (p *process) hasEnded() bool {
	select {
	case err := <-p.ended:
		p.ended <- err
		return true
	default:
		return false
	}
}

// running is how many jobs are said to run.
func (h *history) running() (count int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, j := range h.jobs {
		if j.state == trainingjob.Running && !j.gone {
			count++
		}
	}
	return count
}

// persist submits short jobs, each until it is there, and returns what waits for that.
func (r *rig) persist(name string, count int) (wait func() []*trainingjob.TrainingJob) {
	r.Helper()
	jobs := make([]*trainingjob.TrainingJob, count)
	var group sync.WaitGroup
	for i := range jobs {
		group.Go(func() { jobs[i] = r.insist(fmt.Sprintf("%s-%d", name, i), asked{replicas: 1 + i%2, run: time.Second}) })
	}
	return func() []*trainingjob.TrainingJob {
		group.Wait()
		if r.Failed() {
			r.FailNow()
		}
		return jobs
	}
}

// insist submits a job again and again until it is there: an answer that was lost may have been a yes.
func (r *rig) insist(name string, a asked) *trainingjob.TrainingJob {
	r.Helper()
	jobs := r.admin.jobs.Of(r.namespace)
	var err error
	for range patience {
		var job *trainingjob.TrainingJob
		if job, err = jobs.Create(context.Background(), r.object(name, a), metav1.CreateOptions{}); err == nil {
			return job
		}
		if apierrors.IsAlreadyExists(err) {
			if job, err = jobs.Get(context.Background(), name, metav1.GetOptions{}); err == nil {
				return job
			}
		}
		time.Sleep(look)
	}
	r.Errorf("submit %s: %v", name, err)
	return nil
}
