//go:build linux

package kube

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// invalid has the statuses of jobs refused, as long as it is on.
type invalid struct {
	http.RoundTripper
	part    string // of the path of those jobs
	code    int
	reason  string
	on      atomic.Bool
	trial   atomic.Bool // whether it is over with the next try of a status that is not to be written
	refused atomic.Int64
}

func (i *invalid) RoundTrip(r *http.Request) (*http.Response, error) {
	if path := r.URL.Path; !strings.Contains(path, i.part) || !strings.HasSuffix(path, "/status") || !isWrite(r) || !i.on.Load() {
		return i.RoundTripper.RoundTrip(r)
	}
	if i.trial.Load() && r.URL.Query().Get("dryRun") != "" {
		i.on.Store(false)
		return i.RoundTripper.RoundTrip(r)
	}
	i.refused.Add(1)
	a := &answers{RoundTripper: i.RoundTripper, code: i.code, reason: i.reason}
	a.count.Store(2) // the next one is the third
	return a.RoundTrip(r)
}

func (i *invalid) wrap(rt http.RoundTripper) http.RoundTripper {
	i.RoundTripper = rt
	return i
}

// refusals are the answers to the write of one status that lasts, by their reason.
var refusals = map[string]int{
	"Invalid": http.StatusUnprocessableEntity, "RequestEntityTooLarge": http.StatusRequestEntityTooLarge,
	"Forbidden": http.StatusForbidden, "InternalError": http.StatusInternalServerError, "Conflict": http.StatusConflict,
}

func eachRefusal(t *testing.T, test func(r *rig, i *invalid)) {
	t.Parallel()
	for reason, code := range refusals {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, sharedOrStandIn(t))
			r.settings.Lease, r.settings.RetryRefused = 6*time.Second, time.Second
			r.witness()
			test(r, &invalid{part: "/trainingjobs/bad/", code: code, reason: reason})
		})
	}
}

// A job whose status the API server refuses waits, without devices, and no other job does.
func TestStatusThatIsRefused(t *testing.T) {
	eachRefusal(t, func(r *rig, i *invalid) {
		i.on.Store(true)
		s := r.schedule(i.wrap)
		s.hears("node_added b")
		r.submit("bad", asked{replicas: 4, run: 100 * time.Millisecond})
		r.await("it is written that it starts, in vain", func() bool { return i.refused.Load() > 0 })
		r.submit("good", asked{replicas: 4, run: 100 * time.Millisecond})
		s.hears("job_finished good")
		s.hears("job_interrupted bad refused")
		if pods := r.podsOf("bad"); len(pods) > 0 {
			r.Errorf("it has %d pods before it is decided that it has", len(pods))
		}
		i.on.Store(false)
		s.hears("job_finished bad")
		r.becomes("bad", trainingjob.Completed)
	})
}

// A job that runs goes on when its status is refused. Its devices are nobody else's before it is written that it has them no more,
// and what is decided of other devices is written.
func TestStatusThatIsRefusedWhileItRuns(t *testing.T) {
	eachRefusal(t, func(r *rig, i *invalid) {
		var waits atomic.Bool
		r.logs = func(line string) {
			if strings.Contains(line, "/takes ") && strings.Contains(line, errFollows.Error()) {
				waits.Store(true)
			}
		}
		s := r.schedule(i.wrap)
		s.hears("node_added b")
		r.submit("bad", asked{replicas: 2})
		s.hears("job_started bad")
		before := r.becomes("bad", trainingjob.Running)
		pod := r.podsOf("bad")[0].UID
		r.submit("other", asked{replicas: 2})
		s.hears("job_started other")
		i.on.Store(true)
		r.edit("bad", `{"spec":{"suspend":true}}`)
		s.hears("job_changed bad")
		r.submit("takes", asked{replicas: 2, run: 100 * time.Millisecond})
		r.await("it is written later that others have the devices", waits.Load)
		if d := r.job("takes").Status.Decision; d != nil && len(d.Seats) > 0 {
			r.Errorf("devices are in the decision %+v, and in %+v", d, before.Status.Decision)
		}
		if pods := r.podsOf("bad"); len(pods) != 1 || pods[0].UID != pod || pods[0].DeletionTimestamp != nil {
			r.Errorf("the pod of a job of which nothing new is written is not as it was: %v", pods)
		}
		r.edit("other", `{"spec":{"suspend":true}}`)
		r.becomes("other", trainingjob.Suspended)
		i.on.Store(false)
		s.hears("job_finished takes")
		r.becomes("bad", trainingjob.Suspended)
	})
}

// That no status at all is taken is no job's own trouble: what is decided is held up, and done afterwards.
func TestStatusesThatAreAllRefused(t *testing.T) {
	t.Parallel()
	for reason, code := range map[string]int{
		"Forbidden": http.StatusForbidden, "InternalError": http.StatusInternalServerError, "Conflict": http.StatusConflict,
		"TooManyRequests": http.StatusTooManyRequests,
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, shared(t))
			r.settings.Lease = 6 * time.Second
			r.witness()
			i := &invalid{part: "/trainingjobs/", code: code, reason: reason}
			i.on.Store(true)
			s := r.schedule(i.wrap)
			s.hears("node_added b")
			s.news()
			r.submit("one", asked{replicas: 2, run: 100 * time.Millisecond})
			r.submit("two", asked{replicas: 2, run: 100 * time.Millisecond})
			renewed := func() time.Time {
				l, err := r.admin.Leases(r.namespace).Get(r.Context(), leaseName, metav1.GetOptions{})
				if err != nil || l.Spec.RenewTime == nil {
					return time.Time{}
				}
				return l.Spec.RenewTime.Time
			}
			for range 2 {
				last, before := renewed(), i.refused.Load()
				r.await("it is refused more often than once a lease", func() bool { return renewed().After(last) && i.refused.Load() > before+fewTries })
			}
			if i.trial.Store(true); code == http.StatusTooManyRequests { // nothing is tried
				i.on.Store(false)
			}
			s.hears("job_finished one")
			s.hears("job_finished two")
			if news := s.news(); strings.Contains(fmt.Sprint(news), "job_interrupted") {
				r.Errorf("got %q: a start is taken back", news)
			}
		})
	}
}

// Only what an API server answers about a job may be that job's own trouble.
func TestMayBeOwn(t *testing.T) {
	status := func(code int) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(code)}}
	}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"none":              {nil, false},
		"forbidden":         {apierrors.NewForbidden(schema.GroupResource{}, "a", nil), true},
		"a webhook fails":   {&core.Unavailable{Cause: status(http.StatusInternalServerError)}, true},
		"it changes":        {&core.Unavailable{Cause: errChanges}, true},
		"nobody answers":    {&core.Unavailable{Cause: errors.New("connection refused")}, false},
		"too many":          {apierrors.NewTooManyRequests("later", 1), false},
		"it is not ready":   {status(http.StatusServiceUnavailable), false},
		"it takes too long": {apierrors.NewTimeoutError("etcd", 1), false},
		"who are you":       {apierrors.NewUnauthorized("no"), false},
		"another leads":     {core.ErrFenced, false},
	} {
		if got := mayBeOwn(tc.err); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
