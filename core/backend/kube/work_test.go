package kube

import (
	"log/slog"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// A run that an earlier version began has pods under a service of its own: members that join get names there.
func TestServiceOfARun(t *testing.T) {
	object := &trainingjob.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "team", UID: "u"}}
	object.Status.Decision = &trainingjob.Decision{Run: 2}
	for name, tc := range map[string]struct {
		run, subdomain, want string
	}{
		"this version":            {"2", gang.Names, ""},
		"an earlier one":          {"2", "train-bcdf", "train-bcdf"},
		"an earlier run of it":    {"1", "train-bcdf", ""},
		"nothing of it runs, yet": {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := newWorld(&Config{}, &clients{Client: new(kubeclient.Client), jobs: new(trainingjob.Client)}, slog.New(slog.DiscardHandler), false)
			if err != nil {
				t.Fatal(err)
			}
			if yes := true; tc.run != "" {
				if err := w.pods.GetStore().Add(&corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{
						Name: "train-0", Namespace: "team", Labels: map[string]string{gang.RunLabel: tc.run},
						OwnerReferences: []metav1.OwnerReference{{APIVersion: trainingjob.GroupVersion().String(), Kind: trainingjob.Kind, UID: "u", Controller: &yes}},
					},
					Spec: corev1.PodSpec{SchedulerName: trainingjob.SchedulerName, Subdomain: tc.subdomain},
				}); err != nil {
					t.Fatal(err)
				}
			}
			b := &Backend{world: w}
			if got := b.gangOf(newJob(object)); got.Subdomain != tc.want || got.Run != 2 {
				t.Errorf("subdomain %q of run %d, want %q", got.Subdomain, got.Run, tc.want)
			}
		})
	}
}

// What members carry anybody can write on pods of his own: they are no members of a job of another namespace, or of what is only
// called the same.
func TestPodsOfOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		known  bool // the job
		want   bool
	}{
		"a member":                            {known: true, want: true},
		"a member of a job that is gone":      {want: true},
		"a pod of another namespace":          {known: true, change: func(p *corev1.Pod) { p.Namespace = "evil" }},
		"a job of another API":                {known: true, change: func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "kubeflow.org/v1" }},
		"a job of another kind":               {known: true, change: func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Job" }},
		"a job that does not control it":      {known: true, change: func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }},
		"a pod that another scheduler places": {known: true, change: func(p *corev1.Pod) { p.Spec.SchedulerName = "default-scheduler" }},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := newWorld(&Config{}, &clients{Client: new(kubeclient.Client), jobs: new(trainingjob.Client)}, slog.New(slog.DiscardHandler), false)
			if err != nil {
				t.Fatal(err)
			}
			yes := true
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: "train-0", Namespace: "team", Annotations: map[string]string{gang.NodeAnnotation: "a", gang.DevicesAnnotation: "0"},
					OwnerReferences: []metav1.OwnerReference{{APIVersion: trainingjob.GroupVersion().String(), Kind: trainingjob.Kind, UID: "u", Controller: &yes}},
				},
				Spec: corev1.PodSpec{SchedulerName: trainingjob.SchedulerName, NodeName: "a"},
			}
			if tc.change != nil {
				tc.change(p)
			}
			if tc.known {
				w.byUID["u"] = &trainingjob.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "team", UID: "u"}}
			}
			if err := w.pods.GetStore().Add(p); err != nil {
				t.Fatal(err)
			}
			if got := len(w.podsOf("u")) == 1; got != tc.want {
				t.Errorf("it is a member: %t", got)
			}
			if got := w.all().Ours(p); got != tc.want {
				t.Errorf("it has devices because it says so: %t", got)
			}
		})
	}
}
