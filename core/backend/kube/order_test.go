//go:build linux

package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// Two jobs that lost a node while nobody led are started anew in the first round, each on what the other one had. It is written first
// that both have nothing.
func TestTakeoverOfJobsThatChangePlaces(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharedOrStandIn(t))
	h := r.record(map[string]int{r.node("a"): 2, r.node("b"): 2})
	for i, name := range []string{"one", "two"} {
		r.submit(name, asked{replicas: 2})
		patch := fmt.Appendf(nil, `{"status":{"id":%d,"state":"running","replicas":3,"decision":{"epoch":0,"round":1,"run":1,"atSeconds":0,
			"seats":[{"node":%q,"devices":"0-1"},{"member":1,"node":"gone","devices":"%d"}]}}}`, i, r.node([]string{"b", "a"}[i]), i)
		if _, err := r.admin.jobs.Of(r.namespace).Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	s := r.schedule(nil)
	s.hears("job_started one")
	s.hears("job_started two")
	for i, name := range []string{"one", "two"} {
		if d := r.becomes(name, trainingjob.Running).Status.Decision; d.Run != 2 || d.Seats[0].Node != r.node([]string{"a", "b"}[i]) {
			t.Errorf("job %s is decided %+v, want run 2 where the other one was", name, d)
		}
	}
	h.verdict()
}

// Of jobs that move, those are written first whose devices others are to have.
func TestMovesInTurn(t *testing.T) {
	t.Parallel()
	move := func(name, from, to string) *job {
		object := &trainingjob.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: name}}
		object.Status.Decision = &trainingjob.Decision{Run: 1, Seats: []trainingjob.Seat{{Node: from, Devices: "0-1"}}}
		j := newJob(object)
		j.seats = []gang.Seat{{Node: to, Devices: core.FirstDevices(2)}}
		return j
	}
	for want, moved := range map[string][]*job{
		"":                       nil,
		"stays, other":           {move("stays", "a", "a"), move("other", "b", "c")},
		"third; second; first":   {move("first", "a", "b"), move("second", "b", "c"), move("third", "c", "d")},
		"one, two":               {move("one", "a", "b"), move("two", "b", "a")},
		"free; one, two, behind": {move("one", "a", "b"), move("two", "b", "a"), move("behind", "c", "a"), move("free", "d", "e")},
	} {
		var lists []string
		for _, list := range inTurn(moved) {
			var names []string
			for _, j := range list {
				names = append(names, j.name)
			}
			lists = append(lists, strings.Join(names, ", "))
		}
		if got := strings.Join(lists, "; "); got != want {
			t.Errorf("they are written in the order %q, want %q", got, want)
		}
	}
}

// A run whose pods nobody has driven yet is none that may have ended: the one before it stays the one to look at.
func TestRunsThatNeverBeganAreNotLookedAt(t *testing.T) {
	t.Parallel()
	j := &job{seats: []gang.Seat{{Node: "a"}, {Node: "b"}}, past: gang.Past{Run: 3, Pods: 1}, driven: 3}
	next := trainingjob.Decision{Run: 4, Stopped: &trainingjob.Stopped{Run: 3, Pods: 1}}
	if j.leaves(&next); j.past.Run != 3 || next.Stopped.Run != 3 {
		t.Errorf("the run to look at is %+v, and %+v for the next scheduler, want run 3", j.past, next.Stopped)
	}
	j.keepState(decisionID{run: 4}, &gang.State{Phase: gang.Creating})
	if j.leaves(&next); j.past != (gang.Past{Run: 4, Pods: 2}) || *next.Stopped != (trainingjob.Stopped{Run: 4, Pods: 2}) {
		t.Errorf("the run to look at is %+v, and %+v for the next scheduler, want run 4", j.past, next.Stopped)
	}
}
