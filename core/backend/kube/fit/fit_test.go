package fit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

// Four nodes: two in each zone, all with 16 CPUs, the last with a taint.
func nodes() (list []*corev1.Node) {
	for i, name := range []string{"a1", "a2", "b1", "b2"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name, "zone": name[:1], "disk": []string{"ssd", "hdd"}[i%2]}}}
		n.Status.Allocatable = corev1.ResourceList{
			"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "ephemeral-storage": resource.MustParse("100Gi"),
			"pods": resource.MustParse("10"), gpu: resource.MustParse("8"), "example.com/nic": resource.MustParse("2"),
		}
		if name == "b2" {
			n.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}
		}
		list = append(list, n)
	}
	return list
}

// pod reads the spec of a pod of namespace team with the label app=x.
func pod(t interface{ Fatal(...any) }, spec string) *Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Labels: map[string]string{"app": "x"}}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	made, err := New(p, gpu)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

const anti = `{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}}`

func TestWhatPodsAskOfNodes(t *testing.T) {
	cases := map[string]struct {
		pod   string
		there map[string]string // pods by node
		want  string            // how many more pods each node takes: a1 a2 b1 b2
	}{
		"nothing":                              {"{}", nil, "10 10 10 0"},
		"a node selector":                      {"nodeSelector: {disk: ssd}", nil, "10 0 10 0"},
		"a node selector of no node":           {"nodeSelector: {disk: tape}", nil, "0 0 0 0"},
		"a required node affinity":             {"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: NotIn, values: [a]}]}]}}}", nil, "0 0 10 0"},
		"a required node affinity by name":     {"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a2]}]}]}}}", nil, "0 10 0 0"},
		"a preferred node affinity":            {"affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: zone, operator: In, values: [a]}]}}]}}", nil, "10 10 10 0"},
		"a toleration":                         {"tolerations: [{key: nvidia.com/gpu, operator: Exists}]", nil, "10 10 10 10"},
		"a toleration of another value":        {"tolerations: [{key: nvidia.com/gpu, value: other}]", nil, "10 10 10 0"},
		"CPUs":                                 {"containers: [{name: c, resources: {requests: {cpu: 5}}}]", nil, "3 3 3 0"},
		"more CPUs than there are":             {"containers: [{name: c, resources: {requests: {cpu: 17}}}]", nil, "0 0 0 0"},
		"CPUs by a limit alone":                {"containers: [{name: c, resources: {limits: {cpu: 5}}}]", nil, "3 3 3 0"},
		"CPUs beside others":                   {"containers: [{name: c, resources: {requests: {cpu: 5}}}]", map[string]string{"a1": "containers: [{name: c, resources: {requests: {cpu: 12}}}]"}, "0 3 3 0"},
		"memory":                               {"containers: [{name: c, resources: {requests: {memory: 32Gi}}}]", nil, "2 2 2 0"},
		"ephemeral storage":                    {"containers: [{name: c, resources: {requests: {ephemeral-storage: 60Gi}}}]", nil, "1 1 1 0"},
		"an extended resource":                 {"containers: [{name: c, resources: {limits: {example.com/nic: 1}}}]", nil, "2 2 2 0"},
		"an extended resource of no node":      {"containers: [{name: c, resources: {limits: {example.com/fpga: 1}}}]", nil, "0 0 0 0"},
		"devices, which others count":          {"containers: [{name: c, resources: {limits: {nvidia.com/gpu: 99}}}]", nil, "10 10 10 0"},
		"an init container that needs more":    {"{initContainers: [{name: i, resources: {requests: {cpu: 9}}}], containers: [{name: c, resources: {requests: {cpu: 1}}}]}", nil, "1 1 1 0"},
		"a sidecar":                            {"{initContainers: [{name: i, restartPolicy: Always, resources: {requests: {cpu: 7}}}], containers: [{name: c, resources: {requests: {cpu: 2}}}]}", nil, "1 1 1 0"},
		"overhead of a runtime class":          {"{overhead: {cpu: 4}, containers: [{name: c, resources: {requests: {cpu: 1}}}]}", nil, "3 3 3 0"},
		"a host port":                          {"containers: [{name: c, ports: [{containerPort: 80, hostPort: 8080}]}]", nil, "1 1 1 0"},
		"a host port that is taken":            {"containers: [{name: c, ports: [{containerPort: 80, hostPort: 8080}]}]", map[string]string{"a1": "containers: [{name: c, ports: [{containerPort: 1, hostPort: 8080}]}]"}, "0 1 1 0"},
		"a host port of another protocol":      {"containers: [{name: c, ports: [{containerPort: 80, hostPort: 8080}]}]", map[string]string{"a1": "containers: [{name: c, ports: [{containerPort: 1, hostPort: 8080, protocol: UDP}]}]"}, "1 1 1 0"},
		"a host port of another address":       {"containers: [{name: c, ports: [{containerPort: 80, hostPort: 8080, hostIP: 10.0.0.1}]}]", map[string]string{"a1": "containers: [{name: c, ports: [{containerPort: 1, hostPort: 8080, hostIP: 10.0.0.2}]}]"}, "1 1 1 0"},
		"the host network":                     {"{hostNetwork: true, containers: [{name: c, ports: [{containerPort: 80}]}]}", nil, "1 1 1 0"},
		"an affinity to pods that are there":   {"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: other}}}]}}", map[string]string{"a1": "other"}, "9 10 0 0"},
		"an affinity to pods that are nowhere": {"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: other}}}]}}", nil, "0 0 0 0"},
		"an affinity to its like":              {"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: x}}}]}}", nil, "10 10 10 0"},
		"an affinity of another namespace":     {"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, namespaces: [other], labelSelector: {matchLabels: {app: other}}}]}}", map[string]string{"a1": "other"}, "0 0 0 0"},
		"an anti-affinity to its like":         {"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" + anti + "]}}", nil, "1 1 1 0"},
		"an anti-affinity by zone":             {"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: other}}}]}}", map[string]string{"a1": "other"}, "0 0 10 0"},
		"an anti-affinity of another pod":      {"{}", map[string]string{"a1": "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" + anti + "]}}"}, "0 10 10 0"},
		"a spread":                             {"topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}]", map[string]string{"a1": "{}"}, "0 1 1 0"},
		"a spread of at least three zones":     {"topologySpreadConstraints: [{maxSkew: 2, minDomains: 3, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}]", map[string]string{"a1": "{}"}, "1 1 2 0"},
		"a spread over a label of no node":     {"topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}]", nil, "0 0 0 0"},
		"a spread that may be broken":          {"topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: x}}}]", nil, "10 10 10 0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := NewCluster(nodes(), []string{"quartet.sched/nodes"})
			for node, spec := range tc.there {
				if spec == "other" {
					other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Labels: map[string]string{"app": "other"}}}
					p, err := New(other, gpu)
					if err != nil {
						t.Fatal(err)
					}
					c.Add(p, node, 1)
					continue
				}
				c.Add(pod(t, spec), node, 1)
			}
			p := pod(t, tc.pod)
			var got []string
			for _, n := range nodes() {
				most := c.Most(p, n.Name)
				got = append(got, fmt.Sprint(most))
				if why := c.Why(p, n.Name); (why == "") != (most > 0) {
					t.Errorf("node %s takes %d, and why none is %q", n.Name, most, why)
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeHeld(t *testing.T) {
	for name, tc := range map[string]struct{ spec, want string }{
		"namespaces by labels": {
			"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, namespaceSelector: {matchLabels: {a: b}}}]}}",
			"podAffinity: term 0: namespaceSelector is not supported",
		},
		"a selector of nonsense":  {"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchExpressions: [{key: a, operator: Like}]}}]}}", "podAntiAffinity: term 0"},
		"an affinity of nonsense": {"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Like}]}]}}}", "nodeAffinity"},
		"a spread of nonsense":    {"topologySpreadConstraints: [{whenUnsatisfiable: DoNotSchedule, labelSelector: {matchExpressions: [{key: a, operator: Like}]}}]", "topologySpreadConstraints[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := new(corev1.Pod)
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &p.Spec); err != nil {
				t.Fatal(err)
			}
			if made, err := New(p, gpu); err == nil || !strings.Contains(err.Error(), tc.want) || made == nil {
				t.Errorf("got %v and %v, want an error with %q, and what can be held", made, err, tc.want)
			}
		})
	}
}

func TestWhatMakesNoDifference(t *testing.T) {
	for spec, want := range map[string]string{
		"{}":                                           "",
		"nodeSelector: {a: b}":                         "",
		"priorityClassName: high":                      "priorityClassName high",
		"preemptionPolicy: Never":                      "preemptionPolicy Never",
		"preemptionPolicy: PreemptLowerPriority":       "",
		"runtimeClassName: kata":                       "runtimeClassName",
		"{runtimeClassName: kata, overhead: {cpu: 1}}": "",
		"volumes: [{name: data, persistentVolumeClaim: {claimName: x}}]":                                                                   "where the volumes data are",
		"volumes: [{name: tmp, emptyDir: {}}]":                                                                                             "",
		"resourceClaims: [{name: nic, resourceClaimName: x}]":                                                                              "resourceClaims",
		"affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: z}}]}}":     "preferred podAffinity",
		"affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: z}}]}}": "preferred podAntiAffinity",
		"affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]}}":                       "preferred nodeAffinity",
		"topologySpreadConstraints: [{whenUnsatisfiable: ScheduleAnyway}]":                                                                 "ScheduleAnyway",
	} {
		var s corev1.PodSpec
		if err := yaml.UnmarshalStrict([]byte(spec), &s); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(Unheeded(&s), "; "); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", spec, got, want)
		}
	}
}

func TestExplain(t *testing.T) {
	c := NewCluster(nodes(), nil)
	p := pod(t, "nodeSelector: {disk: hdd}")
	want := "1 of 4 nodes fit: 2 not matching its nodeSelector or required nodeAffinity, 1 with the taint nvidia.com/gpu=present:NoSchedule"
	if got := Explain([]string{"a1", "a2", "b1", "b2"}, func(n string) string { return c.Why(p, n) }); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n, why := c.Room(p, "b2"); n != 0 || why != "with the taint nvidia.com/gpu=present:NoSchedule" {
		t.Errorf("room for %d: %q", n, why)
	}
	if n, why := c.Room(p, "elsewhere"); n != 0 || why != "gone" {
		t.Errorf("room for %d: %q", n, why)
	}
}

// Pods that come and go leave no trace, and a node takes as many as it says, one after the other.
func TestPodsComeAndGo(t *testing.T) {
	specs := []string{
		"{}", "containers: [{name: c, resources: {requests: {cpu: 3, memory: 1Gi}}}]", "containers: [{name: c, ports: [{containerPort: 80, hostPort: 8080}]}]",
		"affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" + anti + "]}}",
		"affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: x}}}]}}",
		"topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}]",
		"tolerations: [{operator: Exists}]",
	}
	rapid.Check(t, func(t *rapid.T) {
		var kinds []*Pod
		for _, s := range specs {
			kinds = append(kinds, pod(t, s))
		}
		names := []string{"a1", "a2", "b1", "b2"}
		c := NewCluster(nodes(), nil)
		state := func() (all []int) {
			for _, p := range kinds {
				for _, n := range names {
					all = append(all, c.Most(p, n))
				}
			}
			return all
		}
		type at struct {
			p    *Pod
			node string
		}
		var placed []at
		before := [][]int{state()}
		for range rapid.IntRange(1, 12).Draw(t, "pods") {
			one := at{rapid.SampledFrom(kinds).Draw(t, "kind"), rapid.SampledFrom(names).Draw(t, "node")}
			n := c.Most(one.p, one.node)
			if n == 0 {
				continue
			}
			c.Add(one.p, one.node, 1)
			if left := c.Most(one.p, one.node); left < n-1 {
				t.Fatalf("took %d, and one later %d", n, left)
			}
			placed, before = append(placed, one), append(before, state())
		}
		for i, one := range slices.Backward(placed) {
			c.Add(one.p, one.node, -1)
			if diff := cmp.Diff(before[i], state()); diff != "" {
				t.Fatalf("(-before +after):\n%s", diff)
			}
		}
	})
}
