//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/internal/kubecluster"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

// rig is a control plane with training jobs, and the kubeconfig of several people.
type rig struct {
	*kubecluster.Cluster
	config string
}

const rigJobs = "/apis/quartet.sched/v1alpha1/namespaces/vision/trainingjobs"

// people are the contexts of the kubeconfig: an administrator, one who may edit jobs of his namespace, one who may look at them,
// and one of another namespace.
var people = map[string]string{"admin": "", "ed": "quartet-trainingjobs-edit", "vic": "quartet-trainingjobs-view", "mallory": ""}

func startRig(t *testing.T) *rig {
	t.Helper()
	c := kubetest.Start(t, kubecluster.Options{})
	r := &rig{Cluster: c}
	r.installed(t)
	r.post(t, "/api/v1/namespaces", `{metadata: {name: vision}}`)
	r.post(t, "/api/v1/namespaces", `{metadata: {name: speech}}`)
	for user, role := range people {
		if role != "" {
			r.post(t, "/apis/rbac.authorization.k8s.io/v1/namespaces/vision/rolebindings", fmt.Sprintf(
				`{metadata: {name: %s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: %s}]}`, user, role, user))
		}
	}
	if err := c.AddNodes(t.Context(), kubecluster.Pool{Name: "a100", Count: 2, Devices: 4, Accelerator: "a100"}, kubecluster.Pool{Name: "plain", Count: 1}); err != nil {
		t.Fatal(err)
	}
	r.await(t, "/apis/quartet.sched/v1alpha1/trainingjobs", "items")
	for _, node := range [...]string{"a100-0", "a100-1"} {
		r.await(t, "/api/v1/nodes/"+node, `"type":"Ready","status":"True"|"status":"True"[^}]*"type":"Ready"`)
	}
	r.writeConfig(t)
	return r
}

// installed puts what `quartet kube manifests` prints for people into the cluster: the definition and their roles.
func (r *rig) installed(t *testing.T) {
	t.Helper()
	code, stdout, stderr := invoke(t, "kube", "manifests")
	if code != 0 {
		t.Fatal(stderr)
	}
	decoder := yaml.NewDecoder(strings.NewReader(stdout))
	paths := map[string]string{
		"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
	}
	for {
		var object map[string]any
		if err := decoder.Decode(&object); err == io.EOF { //nolint:errorlint // as it is documented
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if path := paths[object["kind"].(string)]; path != "" {
			if _, err := r.Do(t.Context(), "POST", path, object); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (r *rig) writeConfig(t *testing.T) {
	t.Helper()
	users, contexts := "", ""
	for user := range people {
		as := ""
		if user != "admin" {
			as = ", as: " + user
		}
		users += fmt.Sprintf("  - {name: %s, user: {token: %s%s}}\n", user, r.Token, as)
		contexts += fmt.Sprintf("  - {name: %s, context: {cluster: c, user: %s, namespace: vision}}\n", user, user)
	}
	r.config = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n  - {name: c, cluster: {server: %q, certificate-authority: %q}}\nusers:\n%scontexts:\n%s",
		r.Server, filepath.Join(r.Dir, "certs", "apiserver.crt"), users, contexts)
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", r.config)
}

func (r *rig) post(t *testing.T, path, text string) {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Do(t.Context(), "POST", path, object); err != nil {
		t.Fatal(err)
	}
}

// await asks until an answer matches.
func (r *rig) await(t *testing.T, path, pattern string) {
	t.Helper()
	var answer []byte
	var err error
	for range 1500 {
		if answer, err = r.Do(t.Context(), "GET", path, nil); err == nil && regexp.MustCompile(pattern).Match(answer) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s: %s, %v", path, answer, err)
}

// says writes the status of a job, as a scheduler would, whose moments are given in seconds after the creation of the job.
func (r *rig) says(t *testing.T, job, status string) (uid string) {
	t.Helper()
	text, err := r.Do(t.Context(), "GET", rigJobs+"/"+job, nil)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	metadata := object["metadata"].(map[string]any)
	created := metadata["creationTimestamp"].(string)
	var said map[string]any
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(status, "CREATED", `"`+created+`"`)), &said); err != nil {
		t.Fatal(err)
	}
	object["status"] = said
	if _, err := r.Do(t.Context(), "PUT", rigJobs+"/"+job+"/status", object); err != nil {
		t.Fatal(err)
	}
	return metadata["uid"].(string)
}

var (
	calendar = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	lengths  = regexp.MustCompile(`\b(\d+h )?(\d+m )?[0-9.]+ ?(ms|s)\b`)
	blanks   = regexp.MustCompile(` +`)
)

// without takes away what differs between runs: moments, and how wide they are.
func without(text string) string {
	text = lengths.ReplaceAllString(calendar.ReplaceAllString(text, "DATE"), "SPAN")
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight(blanks.ReplaceAllString(line, " "), " \n"))
	}
	return strings.Join(lines, "\n")
}

func condition(kind, status, reason, message string) string {
	return fmt.Sprintf("{type: %s, status: %q, reason: %s, message: %q, lastTransitionTime: CREATED}", kind, status, reason, message)
}

const rigJobFile = `version: 1
jobs:
  - {name: train, command: [python, train.py], replicas: 4, tenant: vision, iterations: 1000}
  - {name: big, command: [python, big.py], replicas: 12}
  - {name: old, command: [python, old.py]}
`

// TestCluster is a day of several people on a control plane: who submits, who looks, who drains, and who may not.
func TestCluster(t *testing.T) {
	r := startRig(t)
	t.Chdir(t.TempDir())
	r.testSubmit(t)
	r.act(t)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"jobs": {[]string{"jobs", "--context", "vic"}, `id job state replicas age ran progress where or why not
 0 train running 4 SPAN SPAN 10.0 % a100-0:0,1,2 a100-1:3
 1 big waiting 12 SPAN SPAN - waiting_for_devices`},
		"jobs everywhere": {[]string{"jobs", "--context", "admin", "-A", "--all", "--state", "failed"}, `id job state replicas age ran progress where or why not
 2 vision/old failed 1 SPAN SPAN - exit code 1`},
		"nodes": {[]string{"nodes", "--context", "admin"}, `node accelerator rack devices used health
a100-0 a100 4 3 ready
a100-1 a100 4 1 ready`},
		"explain": {[]string{"explain", "--context", "vic", "big"}, `Job big is pending: needs 12 GPUs, 8 available [waiting_for_devices]
Pending for SPAN: SPAN for GPUs.

round at what by where or why
 DATE defer waiting_for_devices (wants 12 devices, 8 available)
 DATE job_submitted`},
		"describe": {[]string{"describe", "--context", "admin", "train"}, `job train
id 0
state running
tenant vision
command python train.py
replicas 4 asked for, 4 held
devices a100-0:0,1,2 a100-1:3
submitted at DATE, SPAN ago
first start at DATE, SPAN ago
ran SPAN, SPAN of devices
restarts 0
preemptions 0
progress 10.0 %

round at what by where or why
 DATE job_submitted
 3 DATE start placement/packed a100-0:0,1,2 a100-1:3
 DATE job_started all 2 pods run

pod run node devices ranks phase why
train-r1-0 1 a100-0 0-2 0-2 Running`},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := invoke(t, tc.args...)
			if diff := cmp.Diff(tc.want, without(stdout)); diff != "" || code != 0 {
				t.Errorf("exit code %d, %s(-want +got):\n%s", code, stderr, diff)
			}
		})
	}
	for name, want := range map[string]string{"--context": "admin\ned\nmallory\nvic\n", "train": "train\nbig\n"} {
		args := []string{"__complete", "jobs", "--context", ""}
		if name == "train" {
			args = []string{"__complete", "cancel", "--context", "vic", ""}
		}
		if code, stdout, stderr := invoke(t, args...); code != 0 || !strings.HasPrefix(stdout, want) {
			t.Errorf("%s: exit code %d, %s%s, want %s", args, code, stdout, stderr, want)
		}
	}
	r.testRefusals(t)
	r.testShards(t)
	r.testPlan(t)
	r.testOrders(t)
}

// testShards has the shards of a study run on the cluster, by whoever may.
func (r *rig) testShards(t *testing.T) {
	bench := func(more ...string) []string {
		return append([]string{"bench", "five", "--on", "kubernetes", "--image", "example.org/quartet", "--claim", "data", "--shards", "3"}, more...)
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{bench("--context", "ed"), 1, `submit the shards: user "ed" may not create jobs in namespace "vision"`},
		{bench("--context", "admin", "-n", "speech"), 0, `as job speech/quartet-five; when it has ended, join the shards with "quartet bench merge`},
		{bench("--kubeconfig", r.config, "--context", "admin", "-n", "speech"), 2, `there is a job speech/quartet-five on the cluster of context "admin" already`},
		{bench("--context", "amin"), 2, `admin`},
		{bench("--namespace", "speech"), 2, "--namespace: is for a Kubernetes cluster"},
		{[]string{"bench", "five", "--context", "admin"}, 2, "are for --on kubernetes"},
		{[]string{"bench", "five", "--on", "slurm", "--context", "admin"}, 2, "are for --on kubernetes"},
		{bench(), 0, "submit it with"},
	} {
		if code, _, stderr := invoke(t, tc.args...); code != tc.code || !strings.Contains(stderr, tc.want) {
			t.Errorf("%v: exit %d, %s; want %d, %q", tc.args, code, stderr, tc.code, tc.want)
		}
	}
	r.await(t, "/apis/batch/v1/namespaces/speech/jobs/quartet-five", `"completions":3`)
}

// testSubmit submits a job file and TrainingJobs, and those that are wrong.
func (r *rig) testSubmit(t *testing.T) {
	for name, text := range map[string]string{
		"jobs.yaml":    rigJobFile,
		"foreign.yaml": "version: 1\njobs:\n  - {name: a, command: [a], dir: here, retries: 2}\n  - {name: b, command: [b], checkpoint: true, submit: 5s}\n  - {name: c_d, command: [c]}\n",
		"elsewhere.yaml": `apiVersion: quartet.sched/v1alpha1
kind: TrainingJob
metadata: {name: other, namespace: speech}
spec: {template: {spec: {containers: [{name: main, image: "t:1"}]}}}
`,
		"nowhere.yaml": `apiVersion: quartet.sched/v1alpha1
kind: TrainingJob
metadata: {name: other, namespace: nowhere}
spec: {template: {spec: {containers: [{name: main, image: "t:1"}]}}}
`,
		"pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n",
		"wrong.yaml": `apiVersion: quartet.sched/v1alpha1
kind: TrainingJob
metadata: {name: fresh}
spec: {template: {spec: {containers: [{name: main, image: "t:1"}]}}}
---
apiVersion: quartet.sched/v1alpha1
kind: TrainingJob
metadata: {name: a.b}
spec:
  quue: x
  replicas:
    min: 4
    max: 2
  template:
    spec: {containers: [{name: main, imagee: "t:1"}]}
---
apiVersion: quartet.sched/v1alpha1
kind: TrainingJob
metadata: {name: fresh}
spec:
  weight: -1
  template: {spec: {nodeName: node-1, containers: [{name: main, image: "t:1"}]}}
`,
		"empty.yaml": "", "broken.yaml": "version: 1\njobs: [\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"jobs.yaml", "--context", "ed"}, 2, "", "jobs.yaml: a job file names no image, and pods need one; name it with --image, or submit TrainingJobs\n"},
		{[]string{"jobs.yaml", "--context", "ed", "--image", "t:1"}, 0, "train\nbig\nold\n", ""},
		{[]string{"jobs.yaml", "--context", "ed", "--image", "t:1"}, 2, "", `jobs.yaml:3:6: metadata.name: there is a job "train" in namespace "vision" already; choose another name, or delete that one
jobs.yaml:4:6: metadata.name: there is a job "big" in namespace "vision" already; choose another name, or delete that one
jobs.yaml:5:6: metadata.name: there is a job "old" in namespace "vision" already; choose another name, or delete that one
`},
		{[]string{"foreign.yaml", "--context", "ed", "--image", "t:1"}, 2, "", `foreign.yaml:3:29: jobs[0].dir: "here" is relative to a folder of this machine; write a folder of the image, or leave it out
foreign.yaml:3:40: jobs[0].retries: a job on Kubernetes is not repeated when it fails; set the template's restartPolicy to OnFailure in a TrainingJob
foreign.yaml:4:29: jobs[1].checkpoint: there is no folder of checkpoints on Kubernetes; submit a TrainingJob with a volume, and QUARTET_CHECKPOINT in its environment
foreign.yaml:4:47: jobs[1].submit: a job on Kubernetes is submitted now; leave it out
foreign.yaml:5:6: metadata.name: the name of a job is lower-case letters, digits and "-", as it becomes part of host names
`},
		{[]string{"wrong.yaml", "--context", "ed"}, 2, "", `wrong.yaml:8:12: metadata.name: the name of a job is lower-case letters, digits and "-", as it becomes part of host names
wrong.yaml:10:3: spec.quue: unknown field
wrong.yaml:11:3: spec.replicas: replicas.min must be at most replicas.max
wrong.yaml:15:38: spec.template.spec.containers[0].imagee: unknown field
wrong.yaml:19:12: metadata.name: "fresh" is given twice
wrong.yaml:22:21: spec.template.spec.nodeName: is for the scheduler to choose; leave it out
`},
		{[]string{"elsewhere.yaml", "--context", "admin", "-n", "vision"}, 2, "", `elsewhere.yaml:3:25: metadata.namespace: is "speech", and --namespace says "vision"; say it in one place` + "\n"},
		{[]string{"elsewhere.yaml", "--context", "admin"}, 0, "speech/other\n", ""},
		{[]string{"nowhere.yaml", "--context", "admin"}, 2, "", `nowhere.yaml:3:25: metadata.namespace: there is no namespace "nowhere"` + "\n"},
		{[]string{"pod.yaml", "--context", "admin"}, 2, "", `pod.yaml:2:1: kind: is "Pod", and only a TrainingJob is a job; kubectl creates others` + "\n"},
		{[]string{"empty.yaml", "--context", "admin"}, 2, "", "empty.yaml: is empty\n"},
		{[]string{"broken.yaml", "--context", "admin"}, 2, "", "broken.yaml:2: did not find expected node content\n"},
	} {
		code, stdout, stderr := invoke(t, append([]string{"submit"}, step.args...)...)
		if code != step.code || stdout != step.stdout || stderr != step.stderr {
			t.Errorf("submit %s: exit code %d, want %d, %s", step.args, code, step.code, cmp.Diff(step.stdout+step.stderr, stdout+stderr))
		}
	}
}

// act does what a scheduler would.
func (r *rig) act(t *testing.T) {
	t.Helper()
	uid := r.says(t, "train", `{id: 0, state: running, replicas: 4,
  decision: {epoch: 1, round: 3, run: 1, atSeconds: 40, by: placement/packed, seats: [{node: a100-0, devices: 0-2}, {member: 1, node: a100-1, devices: "3"}]},
  progress: {done: 100, firstStartSeconds: 40},
  conditions: [`+condition("Admitted", "True", "Admitted", "")+","+condition("Running", "True", "Running", "all 2 pods run")+`]}`)
	r.says(t, "big", `{id: 1, state: waiting, conditions: [`+
		condition("Running", "False", "WaitingForDevices", "waiting_for_devices (wants 12 devices, 8 available)")+`]}`)
	r.says(t, "old", `{id: 2, state: failed, conditions: [`+condition("Finished", "True", "Failed", "exit code 1")+`]}`)
	r.post(t, "/api/v1/namespaces/vision/pods", fmt.Sprintf(`{metadata: {name: train-r1-0, labels: {quartet.sched/job: train, quartet.sched/run: "1", quartet.sched/member: "0"},
  annotations: {quartet.sched/devices: 0-2, quartet.sched/ranks: 0-2},
  ownerReferences: [{apiVersion: quartet.sched/v1alpha1, kind: TrainingJob, name: train, uid: %s, controller: true}]},
  spec: {nodeName: a100-0, schedulerName: quartet, containers: [{name: main, image: "t:1"}]}}`, uid))
	r.await(t, "/api/v1/namespaces/vision/pods/train-r1-0", `"phase":"Running"`)
}

// testRefusals is what people may not do, and cannot mean.
func (r *rig) testRefusals(t *testing.T) {
	const mallory = `user "mallory" may not `
	for _, step := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"jobs", "--context", "mallory"}, 1, "list training jobs: " + mallory + `list trainingjobs in namespace "vision"; an administrator grants it: `},
		{[]string{"describe", "train", "--context", "mallory"}, 1, `read training job "train": ` + mallory + "get trainingjobs"},
		{[]string{"explain", "big", "--context", "mallory"}, 1, mallory + "get trainingjobs"},
		{[]string{"logs", "train", "--context", "mallory"}, 1, mallory + "get trainingjobs"},
		{[]string{"cancel", "train", "--context", "mallory"}, 1, mallory + "get trainingjobs"},
		{[]string{"submit", "jobs.yaml", "--image", "t:1", "--context", "mallory"}, 1, `submit job "train" to namespace "vision": ` + mallory + "create trainingjobs"},
		{[]string{"nodes", "--context", "mallory"}, 1, mallory + "list nodes in the whole cluster"},
		{[]string{"jobs", "-A", "--context", "ed"}, 1, `user "ed" may not list trainingjobs in the whole cluster`},
		{[]string{"cancel", "train", "--context", "vic"}, 1, `cancel job "train": user "vic" may not delete trainingjobs in namespace "vision"; an administrator grants it: "kubectl --namespace vision create rolebinding NAME --clusterrole=quartet-trainingjobs-edit --user=vic"`},
		{[]string{"jobs", "--context", "malory"}, 2, `--context: there is no context "malory" in ` + r.config + `; did you mean "mallory"? valid contexts: admin, ed, mallory, vic`},
		{[]string{"describe", "trian", "--context", "vic"}, 2, `there is no job "trian" in namespace "vision"; did you mean "train"? valid jobs: train, big, old`},
		{[]string{"describe", "../x", "--context", "vic"}, 2, `there is no job "../x" in namespace "vision"`},
		{[]string{"drain", "a100-3", "--context", "admin"}, 2, `there is no node "a100-3"; did you mean "a100-0"?`},
		{[]string{"plan", "--context", "admin"}, 2, `--context: no composition of a scheduler is in namespace "quartet"; name the config that it was started with by -f`},
		{[]string{"plan", "--context", "admin", "--jobs", "jobs.yaml"}, 2, "--jobs: is for a run that has not begun"},
		{[]string{"plan", "--context", "vic"}, 1, `read the composition of the scheduler: user "vic" may not get configmaps in namespace "quartet"; an administrator grants it: a role with get of configmaps there`},
		{[]string{"jobs", "-n", "vision"}, 2, "--namespace: is for a Kubernetes cluster; name one with --context or --kubeconfig"},
		{[]string{"submit", "jobs.yaml", "--image", "t:1"}, 2, "--image: is for a Kubernetes cluster"},
		{[]string{"jobs", "-A"}, 2, "--all-namespaces: is for a Kubernetes cluster"},
		{[]string{"jobs", "--context", "admin", "--run", "x"}, 2, "--context and --run exclude each other"},
		{[]string{"logs", "train", "--stderr", "--context", "admin"}, 2, "--stderr: Kubernetes keeps one output of a pod"},
	} {
		if code, stdout, stderr := invoke(t, step.args...); code != step.code || !strings.Contains(stderr, step.want) {
			t.Errorf("%s: exit code %d, want %d, %s\n%s, want %s", step.args, code, step.code, stdout, stderr, step.want)
		}
	}
}

// testOrders drains and cancels.
func (r *rig) testOrders(t *testing.T) {
	for _, step := range []struct {
		args []string
		code int
		want string // on stderr
	}{
		{[]string{"drain", "a100-1", "--context", "admin"}, 0, "node \"a100-1\" is drained: the next round takes 1 job off it: vision/train\n"},
		{[]string{"drain", "a100-1", "--context", "admin"}, 0, "node \"a100-1\" is draining already\n"},
		{[]string{"undrain", "a100-1", "--context", "admin"}, 0, "node \"a100-1\" is ready for jobs again\n"},
		{[]string{"cancel", "train", "old", "--context", "ed"}, 0, "job \"train\" is cancelled; it was running\njob old has already ended (failed); nothing to cancel\n"},
		{[]string{"cancel", "train", "--context", "ed"}, 2, "there is no job \"train\" in namespace \"vision\"; valid jobs: big, old\n"},
		{[]string{"wait", "old", "--context", "vic"}, 3, "error: 1 job failed\n"},
		{[]string{"describe", "big", "--context", "ed"}, 0, "user \"ed\" may not list pods in namespace \"vision\"; an administrator grants it: a role with list of pods there\n"},
	} {
		if code, stdout, stderr := invoke(t, step.args...); code != step.code || stderr != step.want {
			t.Errorf("%s: exit code %d, want %d, %s\n%s, want %s", step.args, code, step.code, stdout, stderr, step.want)
		}
	}
	r.await(t, "/api/v1/namespaces/vision/pods", `"items":\[\]`) // they went with their job
	// What the API server is away for is told.
	if err := r.Kill("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := invoke(t, "jobs", "--context", "admin"); code != 1 || !strings.Contains(stderr, `the API server of context "admin", https://`) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out strings.Builder
	if code := run(ctx, []string{"jobs", "--context", "admin"}, &out, &out); code != cli.ExitInterrupted {
		t.Errorf("exit code %d of an interrupted command, %s", code, out.String())
	}
}
