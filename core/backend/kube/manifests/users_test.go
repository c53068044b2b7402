//go:build linux

package manifests

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// impersonate asks for the nodes as somebody else.
func (c *cluster) impersonate(t *testing.T, who caller, user string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Server+"/api/v1/nodes", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+who.token)
	request.Header.Set("Impersonate-User", user)
	response, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	a := answer{code: response.StatusCode}
	if err := json.NewDecoder(response.Body).Decode(&a.body); err != nil {
		t.Fatal(err)
	}
	return a
}

// checkUsers lets people do what their role in their own namespace allows, and the same in another's.
func checkUsers(t *testing.T, c *cluster) {
	for user, role := range map[string]string{"anna": "admin", "ed": "edit", "vic": "view"} {
		c.admin(t, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/team-a/rolebindings", yamlOf(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[2]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`, user, role))
	}
	c.admin(t, http.MethodPost, jobs("team-b"), trainingJob(t, "team-b", "theirs"))
	for user, allowed := range map[string]bool{"anna": true, "ed": true, "vic": false} {
		who := caller{user: user}
		await(t, "the controller manager aggregates roles", func() error {
			if a := c.ask(t, who, http.MethodGet, jobs("team-a"), nil, typeJSON); a.code != http.StatusOK {
				return fmt.Errorf("%s: %v", user, a)
			}
			return nil
		})
		code := func(yes int) int {
			if allowed {
				return yes
			}
			return http.StatusForbidden
		}
		steps := []step{
			{http.MethodPost, jobs("team-a"), trainingJob(t, "team-a", user), "", code(201)},
			{http.MethodPatch, jobs("team-a") + "/" + user, manifest{"spec": manifest{"suspend": true}}, typeMerge, code(200)},
			{http.MethodGet, jobs("team-a") + "/train", nil, "", 200},
			{http.MethodGet, jobs("team-a") + "/train/status", nil, "", 200},
			{http.MethodDelete, jobs("team-a") + "/" + user, nil, "", code(200)},
			// The status is the controller's: nobody gives himself devices.
			{http.MethodPatch, jobs("team-a") + "/train/status", manifest{"status": manifest{"state": "completed"}}, typeMerge, 403},
			{http.MethodPost, "/api/v1/namespaces/team-a/pods/train-r1-0/binding", yamlOf(t, "{target: {name: node-0}}"), "", 403},
			// What is another team's.
			{http.MethodGet, jobs("team-b"), nil, "", 403},
			{http.MethodGet, jobs("team-b") + "/theirs", nil, "", 403},
			{http.MethodGet, jobs("team-b") + "?watch=true", nil, "", 403},
			{http.MethodGet, "/apis/quartet.sched/v1alpha1/trainingjobs", nil, "", 403},
			{http.MethodPost, jobs("team-b"), trainingJob(t, "team-b", user), "", 403},
			{http.MethodPatch, jobs("team-b") + "/theirs", manifest{"spec": manifest{"suspend": true}}, typeMerge, 403},
			{http.MethodPut, jobs("team-b") + "/theirs", trainingJob(t, "team-b", "theirs"), "", 403},
			{http.MethodDelete, jobs("team-b") + "/theirs", nil, "", 403},
			{http.MethodDelete, jobs("team-b"), nil, "", 403},
			// What is the installation's.
			{http.MethodGet, "/api/v1/namespaces/quartet/configmaps/quartet", nil, "", 403},
			{http.MethodGet, "/api/v1/namespaces/quartet/secrets", nil, "", 403},
		}
		for _, s := range steps {
			s.run(t, c, who)
		}
	}
	if a := c.ask(t, caller{user: "stranger"}, http.MethodGet, jobs("team-a"), nil, typeJSON); a.code != http.StatusForbidden {
		t.Errorf("somebody without a role: %v", a)
	}
	c.admin(t, http.MethodGet, jobs("team-b")+"/theirs", nil) // it is still there
}

// podOf is the pod that a deployment makes.
func podOf(t *testing.T, deployment manifest) manifest {
	t.Helper()
	template, err := json.Marshal(deployment.in("spec", "template"))
	if err != nil {
		t.Fatal(err)
	}
	pod := manifest{}
	if err := json.Unmarshal(template, &pod); err != nil {
		t.Fatal(err)
	}
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	pod.in("metadata").(map[string]any)["name"] = "controller"
	return pod
}

// checkRestricted creates the pod in its namespace, where only restricted ones are let in, and one that is not.
func checkRestricted(t *testing.T, c *cluster, deployment manifest) {
	path := "/api/v1/namespaces/quartet/pods?dryRun=All&fieldValidation=Strict"
	admin := caller{token: c.Token}
	if a := c.ask(t, admin, http.MethodPost, path, podOf(t, deployment), typeJSON); a.code != http.StatusCreated || len(a.warnings) > 0 {
		t.Errorf("%v", a)
	}
	for name, loosen := range map[string]func(pod, container map[string]any){
		"root":       func(pod, _ map[string]any) { pod["securityContext"].(map[string]any)["runAsUser"] = 0 },
		"no profile": func(pod, _ map[string]any) { delete(pod["securityContext"].(map[string]any), "seccompProfile") },
		"capabilities": func(_, container map[string]any) {
			delete(container["securityContext"].(map[string]any), "capabilities")
		},
		"the host": func(pod, _ map[string]any) {
			pod["volumes"] = append(pod["volumes"].([]any), yamlOf(t, "{name: host, hostPath: {path: /}}"))
		},
	} {
		pod := podOf(t, deployment)
		spec := pod["spec"].(map[string]any)
		loosen(spec, spec["containers"].([]any)[0].(map[string]any))
		if a := c.ask(t, admin, http.MethodPost, path, pod, typeJSON); a.code != http.StatusForbidden {
			t.Errorf("a pod with %s: %v", name, a)
		}
	}
}

// checkRuns lets kube-scheduler place the controllers, makes one the leader, and evicts both.
func checkRuns(t *testing.T, c *cluster, controller caller) {
	await(t, "two controllers are ready", func() error {
		d := c.admin(t, http.MethodGet, "/apis/apps/v1/namespaces/quartet/deployments/quartet", nil)
		if d.in("status", "availableReplicas") != 2.0 {
			return fmt.Errorf("%v", d["status"])
		}
		return nil
	})
	list := c.admin(t, http.MethodGet, "/api/v1/namespaces/quartet/pods", nil)["items"].([]any)
	var names []string
	nodes := map[any]bool{}
	for _, item := range list {
		pod := manifest(item.(map[string]any))
		names = append(names, pod.in("metadata", "name").(string))
		nodes[pod.in("spec", "nodeName")] = true
	}
	if len(names) != 2 || len(nodes) != 2 {
		t.Fatalf("pods %q on nodes %v", names, nodes)
	}

	// The leader labels itself.
	step{
		http.MethodPatch, "/api/v1/namespaces/quartet/pods/" + names[1],
		manifest{"metadata": manifest{"labels": manifest{LeaderLabel: "true"}}},
		typeMerge, 200,
	}.run(t, c, controller)
	// KWOK gives pods no address, so that services have no endpoints: their selectors are asked for.
	for service, want := range map[string][]string{AgentService: names[1:], "quartet-metrics": names} {
		var selector []string
		for key, value := range c.admin(t, http.MethodGet, "/api/v1/namespaces/quartet/services/"+service, nil).in("spec", "selector").(map[string]any) {
			selector = append(selector, fmt.Sprint(key, "=", value))
		}
		var got []string
		selected := c.admin(t, http.MethodGet, "/api/v1/namespaces/quartet/pods?labelSelector="+url.QueryEscape(strings.Join(selector, ",")), nil)
		for _, item := range selected["items"].([]any) {
			got = append(got, manifest(item.(map[string]any)).in("metadata", "name").(string))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pods of %s (-want +got):\n%s", service, diff)
		}
	}

	await(t, "one may be evicted", func() error {
		b := c.admin(t, http.MethodGet, "/apis/policy/v1/namespaces/quartet/poddisruptionbudgets/quartet", nil)
		if b.in("status", "disruptionsAllowed") != 1.0 {
			return fmt.Errorf("%v", b["status"])
		}
		return nil
	})
	eviction := func(name string) any {
		return yamlOf(t, "{apiVersion: policy/v1, kind: Eviction, metadata: {name: %s, namespace: quartet}}", name)
	}
	admin := caller{token: c.Token}
	cordon := func(closed bool) { // or another takes the place of the first before the second is asked for
		for _, item := range c.admin(t, http.MethodGet, "/api/v1/nodes", nil)["items"].([]any) {
			node := manifest(item.(map[string]any)).in("metadata", "name").(string)
			step{http.MethodPatch, "/api/v1/nodes/" + node, manifest{"spec": manifest{"unschedulable": closed}}, typeMerge, 200}.run(t, c, admin)
		}
	}
	cordon(true)
	defer cordon(false)
	step{http.MethodPost, "/api/v1/namespaces/quartet/pods/" + names[0] + "/eviction", eviction(names[0]), "", 201}.run(t, c, admin)
	step{http.MethodPost, "/api/v1/namespaces/quartet/pods/" + names[1] + "/eviction", eviction(names[1]), "", 429}.run(t, c, admin)
}
