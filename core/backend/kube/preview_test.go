//go:build linux

package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// reader complains of everything that is more than to read, and of watches.
type reader struct {
	rig  *rig
	next http.RoundTripper
}

func (t reader) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || r.URL.Query().Get("watch") != "" {
		t.rig.Errorf("who looks asks for %s %s", r.Method, r.URL)
	}
	return t.next.RoundTrip(r)
}

// foresee plans the next round, first come, first served, as a user.
func (r *rig) foresee(user string) (*preview, error) {
	r.Helper()
	config := rest.CopyConfig(r.config)
	config.Impersonate.UserName = user
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return reader{r, rt} })
	o := &Opener{config: r.settings, log: slog.New(slog.DiscardHandler), clock: r.clock}
	p, err := o.preview(r.Context(), config)
	if err != nil {
		return nil, err
	}
	return p, core.NewPipeline(&core.Cluster{MayGrow: true}, backendtest.FIFO(), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}}).Run(r.Context(), p)
}

// planned words the changes of a plan.
func (r *rig) planned(p *preview) (list []string) {
	names := map[core.JobID]string{}
	nodes := map[core.NodeID]string{}
	for i := range p.seen.Events {
		switch e := &p.seen.Events[i]; e.Kind {
		case core.JobSubmitted:
			names[e.Job] = strings.TrimPrefix(e.Spec.Name, r.namespace+"/")
		case core.NodeAdded:
			nodes[e.Node] = e.Added.Name
		}
	}
	for i := range p.changes {
		c := &p.changes[i]
		text := c.Action.String() + " " + names[c.Job]
		for _, s := range c.Seats {
			text += fmt.Sprint(" ", nodes[s.Node], ":", trainingjob.FormatDevices(s.Devices))
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

// What is planned is what the next leader decides, to the devices; and to look changes nothing.
func TestPreviewIsTheNextRound(t *testing.T) {
	for name, claims := range map[string]bool{"extended resource": false, "claims": true} {
		t.Run(name, func(t *testing.T) {
			r := newRigOf(t, sharedFor(t, claims), claims)
			r.witness()
			l := &line{cut: make(chan struct{})}
			first := r.schedule(l.through)
			for _, name := range []string{"runs", "deleted", "ends"} {
				r.submit(name, asked{})
				first.hears("job_started " + name)
			}
			r.submit("wide", asked{replicas: 2})
			r.becomes("wide", trainingjob.Waiting)
			if err := first.backend.Keep([]core.Learned{{Component: "allocation/fifo", Data: []byte("much")}}); err != nil {
				t.Fatal(err)
			}
			if p, err := r.foresee(""); err != nil || len(p.changes) > 0 {
				t.Errorf("while all is as decided %q is planned, %v", r.planned(p), err)
			}
			l.sever()
			_ = first.stop()
			if err := r.admin.jobs.Of(r.namespace).Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			r.submit("narrow", asked{})
			r.submit("late", asked{})
			r.bury()
			r.await("others are done with the pods of the deleted job", func() bool {
				return !slices.ContainsFunc(r.podsOf("deleted"), func(p corev1.Pod) bool {
					grace := p.DeletionGracePeriodSeconds
					return !final(&p) || grace == nil || *grace > 0
				})
			})
			versions := r.versions()
			p, err := r.foresee("")
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(versions, r.versions()); diff != "" {
				t.Errorf("what was looked at changed (-before +after):\n%s", diff)
			}
			if len(p.learned) != 1 || p.learned[0].Component != "allocation/fifo" || string(p.learned[0].Data) != "much" {
				t.Errorf("what the policies learned is %+v", p.learned)
			}
			plan := r.planned(p)
			if len(plan) == 0 {
				t.Fatal("nothing is planned")
			}
			r.schedule(nil)
			for _, line := range plan {
				words := strings.Fields(line)
				if words[0] != "start" {
					t.Errorf("planned to %q", line)
					continue
				}
				job := r.becomes(words[1], trainingjob.Running)
				got := []string{"start", words[1]}
				for _, s := range job.Status.Decision.Seats {
					got = append(got, s.Node+":"+s.Devices)
				}
				if diff := gocmp.Diff(words, got); diff != "" {
					t.Errorf("job %s (-planned +decided):\n%s", words[1], diff)
				}
			}
			for _, name := range []string{"wide", "narrow", "late"} {
				decided := r.job(name).Status.Decision != nil
				if planned := slices.ContainsFunc(plan, func(line string) bool { return strings.Fields(line)[1] == name }); planned != decided {
					t.Errorf("job %s: planned %v, decided %v: %q", name, planned, decided, plan)
				}
			}
		})
	}
}

// versions are those of all that a plan reads of a rig.
func (r *rig) versions() map[string]string {
	r.Helper()
	found := map[string]string{}
	for _, p := range r.pods() {
		found["pod "+p.Name] = p.ResourceVersion
	}
	jobs, err := r.admin.jobs.Of(r.namespace).List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	for i := range jobs.Items {
		found["job "+jobs.Items[i].Name] = jobs.Items[i].ResourceVersion
	}
	state, err := r.admin.ConfigMaps(r.namespace).Get(r.Context(), stateName, metav1.GetOptions{})
	lease, err2 := r.admin.Leases(r.namespace).Get(r.Context(), leaseName, metav1.GetOptions{})
	if err := errors.Join(err, err2); err != nil {
		r.Fatal(err)
	}
	found["state"], found["lease"] = state.ResourceVersion, lease.ResourceVersion
	return found
}

// Where none ever ran, the first round is planned. Who may not look is told what it is that he may not.
func TestPreviewOfNothing(t *testing.T) {
	r := newRig(t, shared(t))
	p, err := r.foresee("")
	if err != nil || len(p.changes) > 0 || len(p.learned) > 0 {
		t.Errorf("%q is planned, %v", r.planned(p), err)
	}
	r.submit("first", asked{replicas: 3})
	if p, err = r.foresee(""); err != nil {
		t.Fatal(err)
	}
	want := []string{"start first " + r.node("a") + ":0-1 " + r.node("b") + ":0"}
	if diff := gocmp.Diff(want, r.planned(p)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if _, err := p.Next(t.Context(), core.Wake{}); !errors.Is(err, io.EOF) {
		t.Errorf("after the round: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Next(ctx, core.Wake{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	_, err = r.foresee("nobody")
	failed, is := errors.AsType[*ReadError](err)
	if !is || failed.What != "read the state of the scheduler" || !apierrors.IsForbidden(err) {
		t.Errorf("who may read nothing is told %v", err)
	}
}

// Jobs that ended are told with what they did, in the order of their ends, and those that never ran are not.
func TestEndedJobsOfAPreview(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	b := &Backend{jobs: map[types.UID]*job{}}
	b.state.Store(newRun(now.Add(-1000*time.Second), now, 0))
	add := func(name string, state trainingjob.State, created, ended time.Duration, p *trainingjob.Progress) {
		object := &trainingjob.TrainingJob{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "n", UID: types.UID(name), CreationTimestamp: metav1.NewTime(now.Add(-created)),
		}}
		object.Spec.Work, object.Spec.Application = 500, "resnet"
		object.Spec.Template.Raw = []byte(`{"spec":{"containers":[{"name":"main","image":"t:1"}]}}`)
		object.Status.State, object.Status.Progress = state, p
		object.Status.Decision = &trainingjob.Decision{Run: 1, AtSeconds: 1000 - ended.Seconds(), Stop: true}
		object.Status.SetCondition(trainingjob.ConditionFinished, metav1.ConditionTrue, string(state), "", 1, now.Add(-ended))
		b.jobs[object.UID] = newJob(object)
	}
	start := 150.0
	did := trainingjob.Progress{Done: 100, Rate: 2, FromSeconds: 500, ExecutedSeconds: 400, AttainedSeconds: 800, FirstStartSeconds: &start}
	add("a-late", trainingjob.Completed, 900*time.Second, 400*time.Second, &did)
	add("b-early", trainingjob.Failed, 900*time.Second, 450*time.Second, &did)
	add("c-before-the-run", trainingjob.Completed, 2000*time.Second, 100*time.Second, &trainingjob.Progress{Done: 1e9, ExecutedSeconds: 1, AttainedSeconds: 1, FirstStartSeconds: &start})
	add("d-never-ran", trainingjob.Completed, 900*time.Second, 400*time.Second, nil)
	add("e-rejected", trainingjob.Rejected, 900*time.Second, 400*time.Second, &did)
	var got []string
	for _, j := range b.ended(1000) {
		got = append(got, fmt.Sprint(j.Name, " ", j.Application, " ", j.State, " ", j.SubmitSeconds, " ", j.FinishSeconds, " ", j.ExecutedSeconds(1000), " ", j.AttainedService(1000), " ", j.Progress))
	}
	want := []string{"n/b-early resnet failed 100 550 400 800 200", "n/a-late resnet completed 100 600 400 800 300", "n/c-before-the-run resnet completed 0 900 1 1 500"}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A job that ended has its own id, and never one of another job.
func TestEndedJobsHaveTheirOwnIDs(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	id := func(n int32) *int32 { return &n }
	for name, tc := range map[string]struct {
		live  []*job // by id
		ended []*int32
		want  []core.JobID // in the order of the ends
	}{
		"its own":                      {[]*job{{}, {}, nil, {}}, []*int32{id(2)}, []core.JobID{2}},
		"none":                         {[]*job{{}, {}}, []*int32{nil, nil}, []core.JobID{2, 3}},
		"that of a live job":           {[]*job{{}, {}}, []*int32{id(1), id(1)}, []core.JobID{2, 3}},
		"that of another that ended":   {[]*job{nil, {}}, []*int32{id(0), id(0)}, []core.JobID{0, 2}},
		"none is live":                 {nil, []*int32{nil, id(-1)}, []core.JobID{0, 1}},
		"beyond all that are known of": {[]*job{{}}, []*int32{id(7), nil}, []core.JobID{7, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &Backend{jobs: map[types.UID]*job{}, byID: tc.live, nextID: core.JobID(len(tc.live))}
			b.state.Store(newRun(now.Add(-1000*time.Second), now, 0))
			for i, had := range tc.ended {
				object := &trainingjob.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("j", i), Namespace: "n", UID: types.UID(fmt.Sprint(i))}}
				object.Spec.Template.Raw = []byte(`{"spec":{"containers":[{"name":"main","image":"t:1"}]}}`)
				object.Status.ID, object.Status.State, object.Status.Progress = had, trainingjob.Completed, &trainingjob.Progress{Done: 1, ExecutedSeconds: 1, AttainedSeconds: 1}
				object.Status.SetCondition(trainingjob.ConditionFinished, metav1.ConditionTrue, "Completed", "", 1, now.Add(time.Duration(i-100)*time.Second))
				b.jobs[object.UID] = newJob(object)
				if had != nil {
					b.nextID = max(b.nextID, core.JobID(*had)+1) // as when they are met
				}
			}
			var got []core.JobID
			for _, j := range b.ended(1000) {
				got = append(got, j.ID)
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A plan of rounds on a grid is of the moment of the next one.
func TestPreviewOnTheGrid(t *testing.T) {
	for name, tc := range map[string]struct {
		wake core.Wake
		want float64
	}{
		"on the grid": {core.Wake{IntervalSeconds: 60}, 180},
		"on events":   {core.Wake{IntervalSeconds: 60, OnEvents: true}, 130},
	} {
		t.Run(name, func(t *testing.T) {
			p := &preview{seen: core.Observation{NowSeconds: 130}}
			if seen, err := p.Next(t.Context(), tc.wake); err != nil || cmp.Compare(seen.NowSeconds, tc.want) != 0 {
				t.Errorf("the round is at %v, %v; want %v", seen.NowSeconds, err, tc.want)
			}
		})
	}
}
