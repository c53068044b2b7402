//go:build linux

package manifests

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOnACluster installs everything on a real API server, which holds to its roles.
func TestOnACluster(t *testing.T) {
	c := start(t)
	all := byID(c.install(t, Options{CRD: definition(t), DRA: true, Scaler: true, Monitoring: true, Config: []byte("backend: {type: kubernetes}\n")}))
	c.namespace(t, "team-a", "team-b")
	controller := c.token(t, "quartet", Name)
	t.Run("the controller has its rights and no other", func(t *testing.T) { checkRights(t, c, controller) })
	t.Run("the controller can do its work", func(t *testing.T) { checkWork(t, c, controller) })
	t.Run("the controller can allocate devices", func(t *testing.T) { checkAllocation(t, c, controller) })
	t.Run("the controller is refused", func(t *testing.T) { checkRefused(t, c, controller) })
	t.Run("users keep to their namespaces", func(t *testing.T) { checkUsers(t, c) })
	t.Run("the pod is restricted", func(t *testing.T) { checkRestricted(t, c, all["Deployment quartet/quartet"]) })
	t.Run("two run, and agents reach the leader", func(t *testing.T) { checkRuns(t, c, controller) })
}

// rules are the rights that the API server sees in a namespace, as RESOURCE.GROUP VERB, with the name where there is one.
func (c *cluster) rules(t *testing.T, who caller, namespace string) map[string]bool {
	t.Helper()
	a := c.ask(t, who, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
		manifest{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": manifest{"namespace": namespace}}, typeJSON)
	if a.code != http.StatusCreated {
		t.Fatal(a)
	}
	list := func(rule map[string]any, key string) []any {
		values, _ := rule[key].([]any)
		return values
	}
	rights := map[string]bool{}
	for _, r := range list(a.body.in("status").(map[string]any), "resourceRules") {
		rule := r.(map[string]any)
		names := list(rule, "resourceNames")
		if len(names) == 0 {
			names = []any{""}
		}
		for _, resource := range list(rule, "resources") {
			for _, group := range list(rule, "apiGroups") {
				for _, verb := range list(rule, "verbs") {
					for _, name := range names {
						rights[strings.TrimSpace(fmt.Sprintf("%v.%v %v %v", resource, group, verb, name))] = true
					}
				}
			}
		}
	}
	return rights
}

// checkRights compares with a service account to which nobody gave anything.
func checkRights(t *testing.T, c *cluster, controller caller) {
	everywhere := map[string]string{
		"trainingjobs.quartet.sched": "get list watch create update", "trainingjobs/status.quartet.sched": "get update patch",
		"trainingjobs/finalizers.quartet.sched": "update",
		"pods.":                                 "get list watch create delete patch", "pods/binding.": "create", "pods/finalizers.": "update",
		"pods/status.": "patch", "jobs.batch": "list watch",
		"nodes.": "get list watch", "services.": "list watch create",
		"events.": "create patch", "tokenreviews.authentication.k8s.io": "create",
		"resourceclaims.resource.k8s.io": "get list watch create update delete", "resourceclaims/status.resource.k8s.io": "update",
		"resourceclaims/binding.resource.k8s.io": "update", "resourceslices.resource.k8s.io": "get list watch",
		"deviceclasses.resource.k8s.io": "get list watch", "nodeclaims.karpenter.sh": "get list watch create delete",
	}
	here := []string{
		"leases.coordination.k8s.io create", "leases.coordination.k8s.io get quartet", "leases.coordination.k8s.io update quartet",
		"configmaps. create", "configmaps. get quartet-state", "configmaps. update quartet-state",
	}
	nobody := c.token(t, "team-a", "default")
	for namespace, more := range map[string][]string{"team-a": nil, "kube-system": nil, "quartet": here} {
		want := slices.Clone(more)
		for resource, verbs := range everywhere {
			for verb := range strings.SplitSeq(verbs, " ") {
				want = append(want, resource+" "+verb)
			}
		}
		slices.Sort(want)
		got := c.rules(t, controller, namespace)
		for right := range c.rules(t, nobody, namespace) {
			delete(got, right)
		}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("rights in %s (-want +got):\n%s", namespace, diff)
		}
	}
}

// step is one request and the code of its answer; 403 is a refusal of RBAC.
type step struct {
	method, path string
	body         any
	contentType  string
	want         int
}

func (s step) run(t *testing.T, c *cluster, who caller) manifest {
	t.Helper()
	if s.contentType == "" {
		s.contentType = typeJSON
	}
	a := c.ask(t, who, s.method, s.path, s.body, s.contentType)
	if a.code != s.want {
		t.Errorf("%s %s: %v, want %d", s.method, s.path, a, s.want)
	}
	return a.body
}

func trainingJob(t *testing.T, namespace, name string) manifest {
	t.Helper()
	return yamlOf(t, `
apiVersion: quartet.sched/v1alpha1
kind: TrainingJob
metadata: {name: %s, namespace: %s}
spec:
  replicas: {min: 1, max: 2}
  requested: 1
  template:
    spec:
      containers: [{name: main, image: none}]
`, name, namespace)
}

// checkWork takes a job from its decision to its end as the controller does.
func checkWork(t *testing.T, c *cluster, controller caller) {
	job := c.admin(t, http.MethodPost, jobs("team-a"), trainingJob(t, "team-a", "train"))
	pods, own := "/api/v1/namespaces/team-a/pods", "/api/v1/namespaces/quartet"
	pod := yamlOf(t, `
apiVersion: v1
kind: Pod
metadata:
  name: train-r1-0
  labels: {quartet.sched/job: train}
  finalizers: [quartet.sched/devices]
  ownerReferences: [{apiVersion: quartet.sched/v1alpha1, kind: TrainingJob, name: train, uid: %s, controller: true, blockOwnerDeletion: true}]
spec:
  schedulerName: quartet
  restartPolicy: Never
  automountServiceAccountToken: false
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 4}}}]
`, job.in("metadata", "uid"))
	lease := yamlOf(t, "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: quartet}, spec: {holderIdentity: me}}")
	state := yamlOf(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: quartet-state}, data: {round: '1'}}")
	event := func(namespace string) manifest {
		return yamlOf(t, `{apiVersion: v1, kind: Event, metadata: {name: e, namespace: %[1]s}, reason: Started, message: m, type: Normal, involvedObject: {kind: Pod, name: train-r1-0, namespace: %[1]s}}`, namespace)
	}
	leases := "/apis/coordination.k8s.io/v1/namespaces/quartet/leases"
	step{http.MethodPost, leases, lease, "", 201}.run(t, c, controller)
	step{http.MethodPut, leases + "/quartet", step{http.MethodGet, leases + "/quartet", nil, "", 200}.run(t, c, controller), "", 200}.run(t, c, controller)
	for _, s := range []step{
		{http.MethodPost, own + "/configmaps", state, "", 201},
		{http.MethodGet, own + "/configmaps/quartet-state", nil, "", 200},
		{http.MethodPut, own + "/configmaps/quartet-state", state, "", 200},
		{http.MethodGet, "/apis/quartet.sched/v1alpha1/trainingjobs", nil, "", 200},
		{http.MethodGet, "/apis/batch/v1/jobs", nil, "", 200},
		{http.MethodPost, jobs("team-a"), trainingJob(t, "team-a", "mirror"), "", 201},
		{http.MethodGet, "/api/v1/nodes", nil, "", 200},
		{http.MethodGet, "/api/v1/pods", nil, "", 200},
		{
			http.MethodPatch, jobs("team-a") + "/train/status?fieldManager=quartet&force=true",
			yamlOf(t, "{apiVersion: quartet.sched/v1alpha1, kind: TrainingJob, metadata: {name: train}, status: {state: starting}}"), typeApply, 200,
		},
		{http.MethodPost, pods, pod, "", 201},
		{
			http.MethodPost, pods + "/train-r1-0/binding",
			yamlOf(t, "{apiVersion: v1, kind: Binding, metadata: {name: train-r1-0}, target: {apiVersion: v1, kind: Node, name: node-0}}"), "", 201,
		},
		{http.MethodPatch, pods + "/train-r1-0", yamlOf(t, "{metadata: {annotations: {quartet.sched/round: '1'}}}"), typeMerge, 200},
		{http.MethodPatch, pods + "/train-r1-0/status", manifest{"status": manifest{"message": "m"}}, typeMerge, 200},
		{http.MethodPost, "/api/v1/namespaces/team-a/events", event("team-a"), "", 201},
		{http.MethodPost, own + "/events", event("quartet"), "", 201},
		{
			http.MethodPost, "/api/v1/namespaces/team-a/services",
			yamlOf(t, "{apiVersion: v1, kind: Service, metadata: {name: quartet-members}, spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {quartet.sched/names: quartet-members}}}"), "", 201,
		},
		{
			http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews",
			yamlOf(t, "{apiVersion: authentication.k8s.io/v1, kind: TokenReview, spec: {token: %s, audiences: [quartet]}}", controller.token), "", 201,
		},
		{http.MethodDelete, pods + "/train-r1-0", nil, "", 200},
		{http.MethodPatch, pods + "/train-r1-0", yamlOf(t, "{metadata: {finalizers: null}}"), typeMerge, 200},
	} {
		s.run(t, c, controller)
	}
}

// checkAllocation hands out a device as a scheduler does.
func checkAllocation(t *testing.T, c *cluster, controller caller) {
	c.admin(t, http.MethodPost, "/apis/resource.k8s.io/v1/deviceclasses",
		yamlOf(t, "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {selectors: [{cel: {expression: 'device.driver == \"gpu.example.com\"'}}]}}"))
	claims := "/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims"
	made := step{
		http.MethodPost, claims,
		yamlOf(t, "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: train}, spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu, count: 1}}]}}}"), "", 201,
	}.run(t, c, controller)
	made.in("metadata").(map[string]any)["finalizers"] = []string{"resource.kubernetes.io/delete-protection"}
	made = step{http.MethodPut, claims + "/train", made, "", 200}.run(t, c, controller)
	made["status"] = yamlOf(t, `
allocation:
  devices: {results: [{request: gpus, driver: gpu.example.com, pool: node-0, device: gpu-0}]}
  nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node-0]}]}]}
reservedFor: [{resource: pods, name: train-r1-0, uid: 6cd8e5cb-0c8a-4f0e-9a54-0f6c3c1c5f0a}]
`)
	made = step{http.MethodPut, claims + "/train/status", made, "", 200}.run(t, c, controller)
	if made.in("status", "allocation") == nil {
		t.Errorf("the claim is not allocated: %v", made["status"])
	}
	for _, s := range []step{
		{http.MethodGet, "/apis/resource.k8s.io/v1/resourceslices", nil, "", 200},
		{http.MethodGet, "/apis/resource.k8s.io/v1/deviceclasses/gpu", nil, "", 200},
		{http.MethodDelete, claims + "/train", nil, "", 200},
		{http.MethodPost, "/apis/resource.k8s.io/v1/deviceclasses", yamlOf(t, "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: own}}"), "", 403},
	} {
		s.run(t, c, controller)
	}
}

// checkRefused asks for what a scheduler that somebody took over would like to do.
func checkRefused(t *testing.T, c *cluster, controller caller) {
	for _, s := range []step{
		{http.MethodGet, "/api/v1/secrets", nil, "", 403},
		{http.MethodGet, "/api/v1/namespaces/quartet/secrets/quartet-agent-tls", nil, "", 403},
		{http.MethodPost, "/api/v1/namespaces/team-a/pods/train-r1-0/exec?command=sh", nil, "", 403},
		{http.MethodGet, "/api/v1/namespaces/team-a/pods/train-r1-0/log", nil, "", 403},
		{http.MethodPost, "/api/v1/namespaces/team-a/pods/train-r1-0/eviction", manifest{}, "", 403},
		{http.MethodGet, "/api/v1/nodes/node-0/proxy/pods", nil, "", 403},
		{http.MethodPatch, "/api/v1/nodes/node-0", manifest{"spec": manifest{"unschedulable": true}}, typeMerge, 403},
		{http.MethodDelete, "/api/v1/nodes/node-0", nil, "", 403},
		{http.MethodDelete, "/api/v1/namespaces/team-b", nil, "", 403},
		{http.MethodGet, "/api/v1/namespaces", nil, "", 403},
		{http.MethodPost, "/apis/batch/v1/namespaces/team-a/jobs", manifest{}, "", 403},
		{http.MethodPatch, "/apis/batch/v1/namespaces/team-a/jobs/any", manifest{"spec": manifest{"suspend": true}}, typeMerge, 403},
		{http.MethodDelete, jobs("team-a") + "/train", nil, "", 403},
		{http.MethodPatch, jobs("team-a") + "/train", manifest{"spec": manifest{"suspend": true}}, typeMerge, 403},
		{http.MethodGet, "/api/v1/namespaces/team-a/configmaps", nil, "", 403},
		{http.MethodPatch, "/api/v1/namespaces/quartet/configmaps/quartet", manifest{"data": manifest{ConfigKey: "other"}}, typeMerge, 403},
		{http.MethodPatch, "/apis/apps/v1/namespaces/quartet/deployments/quartet", manifest{"spec": manifest{"replicas": 0}}, typeMerge, 403},
		{http.MethodPost, "/api/v1/namespaces/quartet/serviceaccounts/quartet/token", manifest{"spec": manifest{}}, "", 403},
		{
			http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
			yamlOf(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: mine}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}"), "", 403,
		},
		{http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", nil, "", 403},
	} {
		s.run(t, c, controller)
	}
	if a := c.ask(t, caller{token: controller.token + "x"}, http.MethodGet, "/api/v1/nodes", nil, typeJSON); a.code != http.StatusUnauthorized {
		t.Errorf("a token that is none: %v", a)
	}
	// Acting as somebody else is refused whatever that one may do.
	a := c.impersonate(t, controller, "admin")
	if a.code != http.StatusForbidden || !strings.Contains(fmt.Sprint(a.body["message"]), "impersonate") {
		t.Errorf("it acts as the administrator: %v", a)
	}
}
