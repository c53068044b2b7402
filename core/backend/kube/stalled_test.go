//go:build linux

package kube

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// endPod has the pods of a job end that were told to.
func (r *rig) endPod(job string) {
	r.Helper()
	for _, p := range r.podsOf(job) {
		if p.DeletionTimestamp == nil || p.Status.Phase != corev1.PodRunning {
			continue
		}
		r.patch(&p, `{"status":{"phase":"Failed"}}`, "status")
	}
}

// The devices of a pod that does not end are nobody's, and who was to have them gets others, or waits.
func TestPodThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	hangs := map[string]string{"quartet.sched/stop": "10m"}
	two := asked{edit: func(j *trainingjob.TrainingJob) { j.Spec.Replicas.DevicesPerReplica = 2 }}
	never := two
	never.annotations = hangs
	open := func(t *testing.T, timeout time.Duration, claims bool) (*rig, *scheduler) {
		r := newRigOf(t, sharedFor(t, claims), claims)
		r.settings.StartTimeout = timeout
		r.settings.RetryRefused = time.Second
		s := r.schedule(nil)
		s.hears("node_added b")
		return r, s
	}
	cancel := func(r *rig, name string) {
		if err := r.admin.jobs.Of(r.namespace).Delete(r.Context(), name, metav1.DeleteOptions{}); err != nil {
			r.Fatal(err)
		}
	}
	for name, claims := range map[string]bool{"extended resource": false, "claims": true} {
		t.Run("the next gets others, "+name, func(t *testing.T) {
			t.Parallel()
			r, s := open(t, 2*time.Second, claims)
			r.submit("hangs", never)
			r.becomes("hangs", trainingjob.Running)
			on := r.podsOf("hangs")[0].Spec.NodeName
			r.submit("fills", two)
			r.becomes("fills", trainingjob.Running)
			cancel(r, "hangs")
			r.submit("next", two)
			s.hears("job_interrupted next start_timeout")
			s.hears("node_changed " + on[:1] + " ready 2")
			cancel(r, "fills")
			r.becomes("next", trainingjob.Running)
			if got := r.podsOf("next")[0].Spec.NodeName; got == on {
				t.Errorf("it runs on %s, whose devices another pod has", got)
			}
			r.submit("last", two)
			s.hears("job_submitted last")
			r.endPod("hangs")
			s.hears("node_changed " + on[:1] + " ready 0")
			r.becomes("last", trainingjob.Running)
		})
	}
	t.Run("one is not given up that is only slow", func(t *testing.T) {
		t.Parallel()
		r, s := open(t, 10*time.Minute, false)
		r.submit("slow", never)
		r.becomes("slow", trainingjob.Running)
		r.submit("fills", two)
		r.becomes("fills", trainingjob.Running)
		cancel(r, "slow")
		r.submit("next", two)
		s.hears("job_starting next")
		r.endPod("slow")
		r.becomes("next", trainingjob.Running)
		for _, e := range s.messages() {
			if e == "job_interrupted next start_timeout" {
				t.Error(e)
			}
		}
	})
	t.Run("one of its own", func(t *testing.T) {
		t.Parallel()
		r, s := open(t, 2*time.Second, false)
		r.submit("again", never)
		r.becomes("again", trainingjob.Running)
		on := r.podsOf("again")[0].Spec.NodeName
		r.edit("again", `{"spec":{"suspend":true}}`)
		r.becomes("again", trainingjob.Suspended)
		r.edit("again", `{"spec":{"suspend":false}}`)
		s.hears("job_interrupted again start_timeout")
		s.hears("node_changed " + on[:1] + " ready 2")
		r.endPod("again")
		s.hears("node_changed " + on[:1] + " ready 0")
		r.becomes("again", trainingjob.Running)
	})
}

// refuser answers writes under a path as an API server does whose webhook is down, for as long as it is to.
type refuser struct {
	http.RoundTripper
	path  string
	cured atomic.Bool
}

func (f *refuser) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.cured.Load() || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, f.path) {
		return f.RoundTripper.RoundTrip(r)
	}
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	if !bytes.Contains(sent, []byte("stuck")) && !strings.Contains(r.URL.Path, "stuck") {
		return f.RoundTripper.RoundTrip(r)
	}
	return answer(r, http.StatusInternalServerError, "InternalError"), nil
}

// A job whose pods the API server does not take, for a webhook is down, gives its devices to others and tries again later.
func TestStartThatIsNotTaken(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ path, want string }{
		"no pod is created": {"/pods", "the API server did not create its pods for "},
		"no pod is bound":   {"/binding", "the API server did not bind its pods for "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, sharedOrStandIn(t))
			r.settings.StartTimeout, r.settings.RetryRefused = 2*time.Second, 5*time.Second
			f := &refuser{path: tc.path}
			s := r.schedule(func(rt http.RoundTripper) http.RoundTripper {
				f.RoundTripper = rt
				return f
			})
			s.hears("node_added b")
			all := asked{replicas: 2, edit: func(j *trainingjob.TrainingJob) { j.Spec.Replicas.DevicesPerReplica = 2 }}
			r.submit("stuck", all)
			s.hears("job_submitted stuck")
			r.submit("next", asked{replicas: all.replicas, edit: all.edit, run: time.Second})
			s.hears("job_interrupted stuck start_timeout")
			told := ""
			r.await("its owner is told", func() bool {
				c := r.job("stuck").Status.Condition(trainingjob.ConditionRunning)
				if c != nil && strings.Contains(c.Message, " for ") {
					told = c.Message
				}
				return told != ""
			})
			s.hears("job_finished next")
			f.cured.Store(true)
			r.becomes("stuck", trainingjob.Running)
			if !strings.Contains(told, tc.want) {
				t.Errorf("it is told that %q, want %q", told, tc.want)
			}
		})
	}
}
