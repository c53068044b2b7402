package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/lead"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// What fails is told with how often it failed, counted anew when it worked; an end of the term is no failure, and neither is a lease
// that is not renewed.
func TestServeTellsFailures(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Microsecond, time.Microsecond))
	broken := errors.New("broken")
	answers := []error{
		broken, broken, nil, broken, &core.Unavailable{Cause: lead.ErrNotRenewed}, broken, fmt.Errorf("wrapped: %w", context.Canceled), broken,
		fmt.Errorf("wrapped: %w", core.ErrFenced),
	}
	var told []int
	done := 0
	queue.Add("x")
	serve(queue, func(string) error {
		err := answers[done]
		if done++; done == len(answers) {
			queue.ShutDown()
		} else if !errors.Is(err, broken) && !errors.Is(err, lead.ErrNotRenewed) {
			queue.Add("x")
		}
		return err
	}, func(item string, times int, err error) {
		if item != "x" || !errors.Is(err, broken) {
			t.Errorf("%q failed: %v", item, err)
		}
		told = append(told, times)
	})
	if diff := cmp.Diff([]int{1, 2, 1, 1, 1}, told); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

// Failures are logged at the first and then less and less often. Those that last the job says itself, until its pods are as decided.
func TestFailuresThatLast(t *testing.T) {
	refused := apierrors.NewForbidden(trainingjob.GroupVersion().WithResource("pods").GroupResource(), "train-0", errors.New("quota exceeded"))
	invalid := metav1.Condition{Type: trainingjob.ConditionDegraded, Status: metav1.ConditionTrue, Reason: "Invalid", Message: "requested: 0"}
	for name, tc := range map[string]struct {
		times  int
		err    error
		before []metav1.Condition
		logged int
		want   string // the reason of the condition, while it is true
		mended string // after it worked
	}{
		"once":                  {times: 1, err: refused, logged: 1},
		"three times":           {times: 3, err: refused, logged: 2},
		"four times":            {times: 4, err: refused, logged: 3, want: podsFail},
		"a hundred times":       {times: 100, err: refused, logged: 7, want: podsFail},
		"nobody answers":        {times: 100, err: errors.New("connection refused"), logged: 7},
		"its spec is wrong too": {times: 4, err: refused, logged: 3, before: []metav1.Condition{invalid}, want: "Invalid", mended: "Invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			b := quietBackend(t)
			var log bytes.Buffer
			b.log = slog.New(slog.NewTextHandler(&log, nil))
			object := plain("train")
			object.Status.Conditions = tc.before
			b.welcome(object, 0)
			j := b.jobs["train"]
			for i := range tc.times {
				b.stuck("train", i+1, fmt.Errorf("create train-0: %w", tc.err))
			}
			if got := strings.Count(log.String(), "level=WARN"); got != tc.logged || !strings.Contains(log.String(), "team/train") {
				t.Errorf("%d lines are logged, want %d:\n%s", got, tc.logged, log.String())
			}
			degraded := func() string {
				if c := j.status.Condition(trainingjob.ConditionDegraded); c != nil && c.Status == metav1.ConditionTrue {
					if c.Reason == podsFail && !strings.Contains(c.Message, "quota exceeded") {
						t.Errorf("the condition says %q, and not what the server said", c.Message)
					}
					return c.Reason
				}
				return ""
			}
			if got := degraded(); got != tc.want {
				t.Errorf("it is degraded for %q, want %q", got, tc.want)
			}
			if b.clearFailure(j); degraded() != tc.mended {
				t.Errorf("it is degraded for %q after it worked, want %q", degraded(), tc.mended)
			}
		})
	}
}

// Of jobs that have ended and are deleted nothing is kept, and what is decided about one before that is known does no harm.
func TestEndedJobsAreLetGo(t *testing.T) {
	const count = 1000
	b := quietBackend(t)
	for i := range count {
		uid := types.UID(fmt.Sprintf("job-%d", i))
		b.welcome(plain(string(uid)), 0)
		j := b.jobs[uid]
		switch i % 4 {
		case 0:
			b.finish(j, 1, core.JobFinished, trainingjob.Completed, "", core.CauseUnknown)
		case 1:
			b.finish(j, 1, core.JobFailed, trainingjob.Failed, "", core.CauseExited)
		case 2: // deleted while it waits
		case 3:
			j.dirty = false // or it would be written
			if b.decide(j, &core.Change{Round: 1, Job: j.id, Action: core.Discard}); !j.ended {
				t.Fatal("a job that is rejected has not ended")
			}
			j.deleted = true // it is not written any more
			if err := b.Apply(t.Context(), []core.Change{{Round: 1, Job: j.id, Action: core.Discard}}); err != nil {
				t.Fatal(err)
			}
		}
		b.gone(j, 2)
	}
	b.observe(3)
	kept := 0
	for _, j := range b.byID {
		if j != nil {
			kept++
		}
	}
	if kept+len(b.jobs)+len(b.holds)+len(b.heldBack) > 0 {
		t.Errorf("of %d ended jobs are kept: %d by id, %d by UID, %d that hold, %d held back", count, kept, len(b.jobs), len(b.holds), len(b.heldBack))
	}
	if err := b.Apply(t.Context(), []core.Change{{Round: 2, Job: 5, Action: core.Stop}}); err != nil {
		t.Errorf("a change of a job that has ended: %v", err)
	}
	if err := b.Apply(t.Context(), []core.Change{{Round: 2, Job: count + 5, Action: core.Stop}}); err == nil {
		t.Error("a change of a job that was never submitted is taken in")
	}
}
