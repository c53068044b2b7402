package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// member is a pod of made.
func member(run, number int, ranks string, phase corev1.PodPhase) corev1.Pod {
	yes := true
	name := fmt.Sprintf("train-r%d-%d", run, number)
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "vision",
		Labels:          map[string]string{gang.JobLabel: "train", gang.RunLabel: strconv.Itoa(run), gang.MemberLabel: strconv.Itoa(number)},
		Annotations:     map[string]string{gang.RanksAnnotation: ranks},
		OwnerReferences: []metav1.OwnerReference{{Kind: trainingjob.Kind, Name: "train", UID: "u", Controller: &yes}},
	}}
	p.UID, p.Status.Phase = types.UID(name), phase
	p.Spec.Containers = []corev1.Container{{Name: "main"}, {Name: "sidecar"}}
	return p
}

// answers is an API server with one job, whose looks at it come one after another: the last one stays.
type answers struct {
	states []trainingjob.State
	pods   [][]corev1.Pod
	asked  int
	logs   []string // requests for logs
}

func (a *answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	look := func(n int) int { return min(max(a.asked-1, 0), n-1) }
	w.Header().Set("Content-Type", "application/json")
	fail := func(code int, reason metav1.StatusReason, message string) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
		})
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/trainingjobs/train"):
		a.asked++
		_ = json.NewEncoder(w).Encode(made(func(t *trainingjob.TrainingJob) { t.Status.State = a.states[look(len(a.states))] }))
	case strings.HasSuffix(r.URL.Path, "/log"):
		name := strings.Split(r.URL.Path, "/")[6]
		a.logs = append(a.logs, name+" "+r.URL.RawQuery)
		for _, p := range a.pods[look(len(a.pods))] {
			if p.Name == name && p.Status.Phase == corev1.PodPending {
				fail(http.StatusBadRequest, metav1.StatusReasonBadRequest, "container is waiting to start")
				return
			}
		}
		fmt.Fprintf(w, "output of %s\n", name)
	case strings.HasSuffix(r.URL.Path, "/pods"):
		_ = json.NewEncoder(w).Encode(corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: a.pods[look(len(a.pods))]})
	default:
		fail(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	}
}

// opened is the cluster of an API server that is not one.
func opened(t *testing.T, handler http.Handler) *Cluster {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c, namespace: vision}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	soon := make(chan time.Time)
	close(soon)
	c, err := Open(Access{Kubeconfig: file}, Options{Now: func() time.Time { return at(0) }, After: func(time.Duration) <-chan time.Time { return soon }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLogs(t *testing.T) {
	first := []corev1.Pod{member(1, 1, "4-5", corev1.PodRunning), member(1, 0, "0-3", corev1.PodRunning)}
	second := append([]corev1.Pod{member(2, 0, "0", corev1.PodSucceeded)}, first...)
	foreign := member(3, 0, "0", corev1.PodRunning)
	foreign.OwnerReferences = nil
	adopted := member(1, 0, "0", corev1.PodRunning)
	adopted.OwnerReferences, adopted.Spec.SchedulerName, adopted.Annotations[gang.AdoptedAnnotation] = nil, trainingjob.SchedulerName, "u"
	pending := []corev1.Pod{member(1, 0, "0", corev1.PodPending)}
	cases := map[string]struct {
		api  answers
		log  backend.Log
		want string
		err  string
		logs []string
	}{
		"of the first rank":      {answers{pods: [][]corev1.Pod{first}}, backend.Log{}, "output of train-r1-0\n", "", []string{"train-r1-0 container=main"}},
		"of another":             {answers{pods: [][]corev1.Pod{first}}, backend.Log{Rank: 5}, "output of train-r1-1\n", "", nil},
		"of none":                {answers{pods: [][]corev1.Pod{first}}, backend.Log{Rank: 6}, "", `no pod of job "train" has rank 6`, nil},
		"of the last run":        {answers{pods: [][]corev1.Pod{second}}, backend.Log{}, "output of train-r2-0\n", "", nil},
		"somebody else's label":  {answers{pods: [][]corev1.Pod{append([]corev1.Pod{foreign}, first...)}}, backend.Log{}, "output of train-r1-0\n", "", nil},
		"of a pod of others":     {answers{pods: [][]corev1.Pod{{adopted}}}, backend.Log{}, "output of train-r1-0\n", "", nil},
		"before it has pods":     {answers{pods: [][]corev1.Pod{nil}}, backend.Log{}, "", "it has no pods, it is running", nil},
		"before it has begun":    {answers{pods: [][]corev1.Pod{pending}}, backend.Log{}, "", `its pod "train-r1-0" has not begun: Pending`, nil},
		"standard error":         {answers{}, backend.Log{Stderr: true}, "", "Kubernetes keeps one output", nil},
		"followed from no pods":  {answers{states: []trainingjob.State{"waiting", "running", "completed"}, pods: [][]corev1.Pod{nil, pending, first}}, backend.Log{Follow: true}, "output of train-r1-0\n", "", nil},
		"followed over runs":     {answers{states: []trainingjob.State{"running", "waiting", "completed"}, pods: [][]corev1.Pod{first, first, second}}, backend.Log{Follow: true}, "output of train-r1-0\noutput of train-r2-0\n", "", []string{"train-r1-0 container=main&follow=true", "train-r2-0 container=main&follow=true"}},
		"followed to no end":     {answers{states: []trainingjob.State{"waiting", "failed"}, pods: [][]corev1.Pod{nil}}, backend.Log{Follow: true}, "", "it has no pods, it is failed", nil},
		"followed without begin": {answers{states: []trainingjob.State{"starting", "failed"}, pods: [][]corev1.Pod{pending}}, backend.Log{Follow: true}, "", "", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.api.states == nil {
				tc.api.states = []trainingjob.State{trainingjob.Running}
			}
			c := opened(t, &tc.api)
			tc.log.Job = "train"
			var out bytes.Buffer
			err := c.ReadLog(t.Context(), tc.log, &out)
			if out.String() != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q, %v; want %q, %q", out.String(), err, tc.want, tc.err)
			}
			if tc.logs != nil && fmt.Sprint(tc.logs) != fmt.Sprint(tc.api.logs) {
				t.Errorf("asked for %q, want %q", tc.api.logs, tc.logs)
			}
		})
	}
}

// What an API server says comes to a sentence.
func TestWords(t *testing.T) {
	refuse := func(code int, reason metav1.StatusReason, message string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
			})
		})
	}
	cases := map[string]struct {
		handler http.Handler
		want    string
	}{
		"no right": {
			refuse(403, metav1.StatusReasonForbidden, `trainingjobs.quartet.sched is forbidden: User "anna" cannot list resource "trainingjobs" in API group "quartet.sched" in the namespace "vision"`),
			`list training jobs: user "anna" may not list trainingjobs in namespace "vision"; an administrator grants it: "kubectl --namespace vision create rolebinding NAME --clusterrole=quartet-trainingjobs-view --user=anna"`,
		},
		"a right of the cluster": {
			refuse(403, metav1.StatusReasonForbidden, `trainingjobs.quartet.sched is forbidden: User "anna" cannot list resource "trainingjobs" in API group "quartet.sched" at the cluster scope`),
			`list training jobs: user "anna" may not list trainingjobs in the whole cluster; an administrator grants it: a cluster role with list of trainingjobs`,
		},
		"a webhook": {refuse(403, metav1.StatusReasonForbidden, "the webhook says no"), "list training jobs: the webhook says no"},
		"nobody":    {refuse(401, metav1.StatusReasonUnauthorized, "Unauthorized"), `list training jobs: the cluster of context "c" rejected your credentials: they are wrong or have expired`},
		"not installed": {
			refuse(404, metav1.StatusReasonNotFound, "the server could not find the requested resource"),
			`the cluster of context "c" has no training jobs: Quartet is not installed there; an administrator installs it: "quartet kube manifests | kubectl apply -f -"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, _, err := opened(t, tc.handler).Jobs(t.Context(), true); err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
	c := opened(t, refuse(500, "", ""))
	c.server = "gone"
	server := httptest.NewServer(nil)
	server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(Access{Kubeconfig: file}, c.options)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Jobs(t.Context(), true); err == nil || !strings.Contains(err.Error(), `the API server of context "c", `+server.URL+", does not answer") {
		t.Errorf("%v", err)
	}
}

func TestContexts(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	two := file("two", `{apiVersion: v1, kind: Config, clusters: [{name: k, cluster: {server: "http://k"}}], contexts: [{name: staging, context: {cluster: k, namespace: a}}, {name: production, context: {cluster: k}}]}`)
	if got := Contexts(two); fmt.Sprint(got) != "[production staging]" || Contexts(filepath.Join(dir, "x")) != nil {
		t.Errorf("contexts %q", got)
	}
	cases := map[string]struct {
		access    Access
		namespace string
		want      string
	}{
		"its namespace":  {Access{two, "staging", ""}, "a", ""},
		"none":           {Access{two, "production", ""}, "default", ""},
		"another":        {Access{two, "staging", "b"}, "b", ""},
		"mistyped":       {Access{two, "stagin", ""}, "", `--context: there is no context "stagin" in ` + two + `; did you mean "staging"? valid contexts: production, staging`},
		"none in use":    {Access{two, "", ""}, "", "--kubeconfig: no context is in use in " + two + "; valid contexts: production, staging; name one with --context"},
		"no such file":   {Access{filepath.Join(dir, "x"), "", ""}, "", "--kubeconfig: " + filepath.Join(dir, "x") + " cannot be read: no such file or directory"},
		"nothing in it":  {Access{file("empty", ""), "c", ""}, "", "--context: there are no contexts in " + filepath.Join(dir, "empty") + "; set KUBECONFIG, or name a kubeconfig with --kubeconfig"},
		"no YAML":        {Access{file("broken", "{"), "c", ""}, "", "--kubeconfig: " + filepath.Join(dir, "broken") + " cannot be read: "},
		"no such server": {Access{file("dangling", "{apiVersion: v1, kind: Config, contexts: [{name: c, context: {cluster: k}}]}"), "c", ""}, "", `context "c": `},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := Open(tc.access, Options{})
			if tc.want == "" {
				if err != nil || c.namespace != tc.namespace {
					t.Errorf("%v, namespace %q, want %q", err, c.namespace, tc.namespace)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// mirroring is an API server with a job that has pods of others.
type mirroring struct {
	kind    string
	owned   bool
	deleted int
}

func (m *mirroring) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodDelete {
		m.deleted++
	}
	_ = json.NewEncoder(w).Encode(made(func(t *trainingjob.TrainingJob) {
		t.Spec.Adopts = &trainingjob.Adopts{APIVersion: "v1", Kind: m.kind, Name: "theirs", UID: "x"}
		if m.owned {
			t.OwnerReferences = []metav1.OwnerReference{{Kind: m.kind, Name: "theirs", UID: "x"}}
		}
	}))
}

// A job that has pods of others is cancelled by deleting what it was made for, if that is there.
func TestCancelOfOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		api  mirroring
		want string // hint; empty when the job is deleted
	}{
		"of a Job":            {mirroring{kind: gang.JobUnit, owned: true}, "kubectl --namespace vision delete job theirs"},
		"of a pod":            {mirroring{kind: gang.PodUnit, owned: true}, "kubectl --namespace vision delete pod theirs"},
		"of a group":          {mirroring{kind: gang.GroupUnit, owned: true}, "kubectl --namespace vision delete pods --selector quartet.sched/group=theirs"},
		"of one that is gone": {mirroring{kind: gang.JobUnit}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := opened(t, &tc.api).Cancel(t.Context(), "train")
			problems, is := errors.AsType[core.Diagnostics](err)
			switch {
			case tc.want == "" && (err != nil || tc.api.deleted != 1):
				t.Errorf("%v, %d deletions", err, tc.api.deleted)
			case tc.want != "" && (!is || problems[0].Hint != tc.want || tc.api.deleted > 0):
				t.Errorf("%v, %d deletions, want the hint %q", err, tc.api.deleted, tc.want)
			}
		})
	}
}

// listing is an API server with jobs of two Jobs of one name, the first of which has ended, and with one of its own.
type listing struct{}

func (listing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if !strings.HasSuffix(r.URL.Path, "/trainingjobs") {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: "trainingjobs.quartet.sched \"x\" not found", Details: &metav1.StatusDetails{Name: "x"}})
		return
	}
	mirror := func(name string, state trainingjob.State) trainingjob.TrainingJob {
		return *made(func(t *trainingjob.TrainingJob) {
			t.Name, t.Status.State = name, state
			t.Spec.Adopts = &trainingjob.Adopts{APIVersion: "batch/v1", Kind: gang.JobUnit, Name: "nightly", UID: "x"}
		})
	}
	_ = json.NewEncoder(w).Encode(trainingjob.TrainingJobList{Items: []trainingjob.TrainingJob{
		mirror("nightly-bcdfg", trainingjob.Failed), mirror("nightly-hjklm", trainingjob.Running), *made(func(*trainingjob.TrainingJob) {}),
	}})
}

// A job is found by the name of the Job whose pods it has.
func TestDescribeByTheNameOfAJob(t *testing.T) {
	c := opened(t, listing{})
	d, err := c.Describe(t.Context(), "nightly")
	if err != nil || d.GetJob().GetName() != "nightly-hjklm" {
		t.Errorf("got %v, %v; want the one that runs", d.GetJob().GetName(), err)
	}
	if _, err = c.Describe(t.Context(), "nightl"); err == nil || !strings.Contains(err.Error(), "nightly") {
		t.Errorf("got %v, want to be asked whether nightly was meant", err)
	}
}
