//go:build linux

package kube

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// A job that can never be as it is written is told so and ends, and one that may be later goes on being tried.
func TestNeverAndLater(t *testing.T) {
	t.Parallel()
	c := shared(t)
	for name, do := range map[string]func(*rig){
		"a template without an image":              imageless,
		"a policy that is lifted":                  policyLifted,
		"a template that asks for other devices":   otherDevices,
		"a template that asks for the same":        sameDevices,
		"a template edited to ask for other":       editedDevices,
		"one that was taken in before":             takenInBefore,
		"a Job is edited that was taken in before": editedJob,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			do(newRig(t, c))
		})
	}
}

// templated is a job with a template as it is written.
func templated(text string) func(*trainingjob.TrainingJob) {
	return func(j *trainingjob.TrainingJob) { j.Spec.Template.Raw = []byte(text) }
}

func imageless(r *rig) {
	r.settings.RetryRefused = time.Second
	s := r.schedule(nil)
	s.hears("node_added b")
	r.submit("one", asked{edit: templated(`{"spec":{"containers":[{"name":"main"}]}}`)})
	s.hears("job_failed one refused")
	job := r.becomes("one", trainingjob.Failed)
	r.condition(job, trainingjob.ConditionFinished, metav1.ConditionTrue, "Failed")
	if said := job.Status.Condition(trainingjob.ConditionFinished).Message; !strings.Contains(said, "spec.containers[0].image: Required value") {
		r.Errorf("got %q, want the API server's sentence", said)
	}
	r.submit("next", asked{replicas: 4}) // it has all devices
	s.hears("job_started next")
}

// policyLifted has a policy of the cluster refuse pods, with the same code and reason as for those that are never valid.
func policyLifted(r *rig) {
	r.settings.RetryRefused = time.Second
	const policies, bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
	always := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: r.namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &always,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: r.namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "no pods on Sundays"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta,
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	r.ask("POST", policies, policy, nil)
	r.ask("POST", bindings, binding, nil)
	r.await("the policy holds", func() bool {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: r.namespace}, Spec: podOf(1, 0, 0).Spec}
		_, err := r.admin.Pods(r.namespace).Create(r.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err)
	})
	s := r.schedule(nil)
	s.hears("node_added b")
	r.submit("one", asked{})
	s.hears("job_interrupted one refused")
	r.await("its status says why", func() bool {
		c := r.job("one").Status.Condition(trainingjob.ConditionRunning)
		return c != nil && strings.Contains(c.Message, "no pods on Sundays")
	})
	r.ask("DELETE", bindings+"/"+binding.Name, nil, nil)
	s.hears("job_started one")
	r.ask("DELETE", policies+"/"+policy.Name, nil, nil)
}

// asking is a template whose container asks for devices itself.
func asking(devices string) string {
	return `{"spec":{"containers":[{"name":"main","image":"none","resources":{"limits":{"` + string(gang.DefaultResource) + `":"` + devices + `"}}}]}}`
}

func otherDevices(r *rig) {
	s := r.schedule(nil)
	r.submit("one", asked{edit: templated(asking("2"))})
	job := r.becomes("one", trainingjob.Rejected)
	r.condition(job, trainingjob.ConditionFinished, metav1.ConditionTrue, "Invalid")
	if said := job.Status.Condition(trainingjob.ConditionFinished).Message; !strings.Contains(said, "asks for 2 nvidia.com/gpu, and replicas.devicesPerReplica is 1") {
		r.Errorf("got %q", said)
	}
	s.wantNews()
}

func sameDevices(r *rig) {
	s := r.schedule(nil)
	r.submit("one", asked{edit: func(j *trainingjob.TrainingJob) {
		j.Spec.Replicas.DevicesPerReplica = 2
		templated(asking("2"))(j)
	}})
	s.hears("job_started one")
}

func editedDevices(r *rig) {
	s := r.schedule(nil)
	r.submit("one", asked{})
	s.hears("job_started one")
	r.edit("one", `{"spec":{"template":`+asking("2")+`}}`)
	r.await("its status says why it is not taken", func() bool {
		c := r.job("one").Status.Condition(trainingjob.ConditionDegraded)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == "Invalid" && strings.Contains(c.Message, "asks for 2 nvidia.com/gpu")
	})
	r.edit("one", `{"spec":{"template":`+asking("1")+`}}`)
	r.await("it is mended", func() bool {
		c := r.job("one").Status.Condition(trainingjob.ConditionDegraded)
		return c != nil && c.Status == metav1.ConditionFalse
	})
	if job := r.job("one"); job.Status.State != trainingjob.Running {
		r.Errorf("the job is %s", job.Status.State)
	}
}

// takenInBefore has a job that a scheduler of before took, which looked at no such thing.
func takenInBefore(r *rig) {
	r.submit("one", asked{edit: templated(asking("2"))})
	if _, err := r.admin.jobs.ReplaceStatus(r.Context(), r.job("one"), &trainingjob.Status{
		State: trainingjob.Waiting, Decision: &trainingjob.Decision{Epoch: 0, Round: 1, Run: 1, Stop: true},
	}); err != nil {
		r.Fatal(err)
	}
	s := r.schedule(nil)
	s.hears("job_started one")
}

// editedJob edits what a mirror can say only once.
func editedJob(r *rig) {
	s := begin(r)
	job := r.submitBatch("train", batch{})
	mirror := r.mirrorOf(job.UID)
	s.hears("job_started " + mirror)
	r.editBatch("train", `{"metadata":{"annotations":{"`+pinnedAnnotation+`":"true"}}}`)
	if said := r.hearsOf(job.UID, "NotTakenOver"); !strings.Contains(said, "whether it is pinned cannot be changed any more: delete the TrainingJob "+mirror) {
		r.Errorf("got %q", said)
	}
	r.editBatch("train", `{"spec":{"suspend":true}}`) // what can be changed is
	r.await("the mirror is suspended", func() bool { return r.job(mirror).Spec.Suspend })
	if r.job(mirror).Spec.Pinned {
		r.Error("the mirror is pinned")
	}
}
