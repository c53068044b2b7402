//go:build linux

package kube

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/lead"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// counted counts writes by the job that they are about.
type counted struct {
	http.RoundTripper
	mutex sync.Mutex
	paths []string
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if isWrite(r) {
		c.mutex.Lock()
		c.paths = append(c.paths, r.Method+" "+r.URL.Path)
		c.mutex.Unlock()
	}
	return c.RoundTripper.RoundTrip(r)
}

func (c *counted) about(part string) (count int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, p := range c.paths {
		if strings.Contains(p, part) {
			count++
		}
	}
	return count
}

// Nothing is written about a job that runs while others come and go, and few times about one that does.
func TestWritesOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharedOrStandIn(t))
	c := new(counted)
	s := r.schedule(func(rt http.RoundTripper) http.RoundTripper {
		c.RoundTripper = rt
		return c
	})
	s.hears("node_added b")
	r.submit("stays", asked{replicas: 2})
	s.hears("job_started stays")
	r.becomes("stays", trainingjob.Running)
	before := c.about("/stays")
	for _, name := range []string{"first", "second", "third"} {
		r.submit(name, asked{run: 500 * time.Millisecond})
		s.hears("job_finished " + name)
		r.becomes(name, trainingjob.Completed)
		count := c.about("/trainingjobs/" + name)
		t.Logf("%d writes of the status of job %s", count, name)
		if count > 8 { // its decision, what it waits for, that it runs, that it ended; a refused one is sent again
			t.Errorf("the status of job %s is written %d times", name, count)
		}
	}
	if after := c.about("/stays"); after != before {
		t.Errorf("%d writes about a job on which nothing changed", after-before)
	}
}

// A job whose decision is of a term before, and of a later round than any of this one, is started and moved in the first rounds.
func TestRoundsOfAnotherTerm(t *testing.T) {
	for name, lost := range map[string]bool{"it runs": false, "it lost its devices": true} {
		n := newNodes(testConfig(), func(core.NodeID) core.DeviceSet { return 0 })
		n.told = []*node{{name: "a", devices: 4}}
		b := &Backend{
			term: &lead.Term{Epoch: 4}, clock: realClock{}, work: newLabour(), held: map[core.NodeID]core.DeviceSet{},
			holds: map[types.UID][]core.Seat{}, released: map[types.UID]*job{}, nodes: n, now: 10,
		}
		j := newJob(&trainingjob.TrainingJob{ObjectMeta: metav1.ObjectMeta{UID: "x"}, Status: trainingjob.Status{
			Decision: &trainingjob.Decision{Epoch: 3, Round: 500, Run: 2, Seats: []trainingjob.Seat{{Node: "a", Devices: "0"}}},
		}})
		if lost {
			b.lose(j, 10, core.CauseKilled, "Deleted", "")
			j.losing = false // it was told
		}
		if c := (core.Change{Round: 2, Action: core.Move, Seats: []core.Seat{{Devices: 1}}}); !b.decide(j, &c) || j.status.Decision.Run != 3 {
			t.Errorf("%s: the decision is %+v, want run 3", name, j.status.Decision)
		}
		j.dirty = false
		if c := (core.Change{Round: 2, Action: core.Stop}); b.decide(j, &c) {
			t.Errorf("%s: a round is taken in twice", name)
		}
		b.work.end()
	}
}
