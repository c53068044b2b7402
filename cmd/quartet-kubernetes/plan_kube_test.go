//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const rigComposition = `version: 1
name: cluster
cluster: {nodes: [{name: any, accelerator: any, devices: 1}]}
workload: {type: submitted}
round: {interval: 10s, on_events: true}
pipeline: {allocation: {type: fifo}}
backend: {type: kubernetes, config: {kubeconfig: /nowhere, tolerate: [mine]}}
`

// testPlan is what people foresee: by the composition that is installed, by others, and only with the right to look.
func (r *rig) testPlan(t *testing.T) {
	r.post(t, "/api/v1/namespaces", `{metadata: {name: quartet}}`)
	r.post(t, "/api/v1/namespaces/quartet/configmaps", fmt.Sprintf("{metadata: {name: quartet}, data: {config.yaml: %q}}", rigComposition))
	r.post(t, "/api/v1/namespaces/vision/configmaps", `{metadata: {name: quartet}, data: {config.yaml: "version: 1"}}`)
	r.post(t, "/apis/rbac.authorization.k8s.io/v1/namespaces/quartet/roles", `{metadata: {name: reads}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]}`)
	r.post(t, "/apis/rbac.authorization.k8s.io/v1/namespaces/quartet/rolebindings",
		`{metadata: {name: vic}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reads}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: vic}]}`)
	const other = `version: 1
name: other
cluster: {nodes: [{name: node, accelerator: v100, devices: 64}]}
workload: {type: generated}
pipeline: {allocation: {type: las}, placement: {type: first_fit}}
`
	const later = `apiVersion: quartet.sched/v1alpha1
kind: TrainingJob
metadata: {name: later}
spec: {template: {spec: {containers: [{name: main, image: "t:1"}]}}}
`
	for file, text := range map[string]string{"other.yaml": other, "later.yaml": later} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := func() string {
		var versions []string
		for _, path := range [...]string{"/apis/quartet.sched/v1alpha1/trainingjobs", "/api/v1/pods", "/apis/coordination.k8s.io/v1/namespaces/quartet/leases"} {
			text, err := r.Do(t.Context(), "GET", path, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, items, _ := strings.Cut(string(text), `"items":`)
			items, _, _ = strings.Cut(items, `],"kind":"TrainingJobList"`) // whose version is that of all that there is
			versions = append(versions, items)
		}
		return strings.Join(versions, "\n")
	}
	before := all()
	const (
		next  = "the next round of a scheduler that takes over now\n"
		table = `job action replicas on batch why by
speech/other start 1 a100-0:3 placement/%s
vision/big wait awaiting_nodes (wants 12 devices, 8 available) pipeline`
	)
	for name, tc := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"the installed composition": {nil, 0, fmt.Sprintf(table, "consolidated"), next},
		"another policy":            {[]string{"--set", "pipeline.placement.type=first_fit"}, 0, fmt.Sprintf(table, "first_fit"), next},
		"another composition":       {[]string{"-f", "other.yaml"}, 0, fmt.Sprintf(table, "first_fit"), next},
		"one that must know more":   {[]string{"--set", "pipeline.allocation.type=srtf"}, 2, "", `--set: pipeline.allocation.type: "allocation/srtf" needs capability "remaining_work", which "backend/kubernetes" does not give`},
		"no such policy":            {[]string{"--set", "pipeline.allocation.type=lass"}, 2, "", `--set: pipeline.allocation.type: unknown allocation "lass"; did you mean "las"?`},
		"none that is there":        {[]string{"-n", "speech"}, 2, "", `--context: no composition of a scheduler is in namespace "speech"; name the config that it was started with by -f, and with --namespace`},
		"one that is wrong":         {[]string{"-n", "vision"}, 2, "", `the installed config:1:1: workload.type: required but missing`},
		"a right that is missing":   {[]string{"--context", "vic"}, 1, "", `error: list nodes: user "vic" may not list nodes in the whole cluster; an administrator grants it: a cluster role with list of nodes`},
	} {
		t.Run("plan by "+name, func(t *testing.T) {
			code, stdout, stderr := invoke(t, append([]string{"plan", "--context", "admin"}, tc.args...)...)
			if code != tc.code || without(stdout) != tc.stdout || !strings.HasPrefix(stderr, tc.stderr) {
				t.Errorf("exit code %d, want %d\n%s%s\nwant\n%s\n%s", code, tc.code, without(stdout), stderr, tc.stdout, tc.stderr)
			}
		})
	}
	for name, tc := range map[string]struct {
		args []string
		want string // the beginning of stdout
	}{
		"a forecast": {[]string{"forecast"}, `job state position start start_between end end_between after
vision/train running`},
		"a drain":   {[]string{"plan", "--drain", "a100-1", "--for", "1h"}, "job holds next_round with_the_change\nvision/train a100-0:0,1,2 a100-1:3 as it is move a100-0:0,1,2,3\nspeech/other start a100-0:3 as it is\n"},
		"more":      {[]string{"plan", "--add", "a100=1"}, "job holds next_round with_the_change\nspeech/other start a100-0:3 as it is\n"},
		"a policy":  {[]string{"plan", "--policy", "other.yaml"}, ""},
		"more jobs": {[]string{"plan", "--submit", "later.yaml"}, ""},
	} {
		t.Run("look ahead by "+name, func(t *testing.T) {
			code, stdout, stderr := invoke(t, append(tc.args, "--context", "admin")...)
			if code != 0 || !strings.HasPrefix(without(stdout), tc.want) || !strings.Contains(stderr, "is not kept") {
				t.Errorf("exit code %d\n%s%s\nwant\n%s", code, without(stdout), stderr, tc.want)
			}
		})
	}
	if after := all(); after != before {
		t.Errorf("to plan changed something:\n%s", cmp.Diff(before, after))
	}
}
