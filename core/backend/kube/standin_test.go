//go:build linux

package kube

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/yaml"

	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/internal/kubecluster"
)

// standIn is an API server in this process, with the parts of a control plane that a scheduler meets: objects with versions,
// watches, finalizers and owners, and nodes that play pods as KWOK does by internal/kubecluster/stages.yaml. It checks no
// definitions, knows one user only, and controls neither Jobs nor claims. Tests use it where no programs of a real control plane are named.
type standIn struct {
	mutex     sync.Mutex
	version   int64
	objects   map[objectKey]raw
	log       []change
	changed   chan struct{}    // closed and replaced at each change
	tokens    map[string]raw   // whom a token of a service account stands for
	audiences map[string][]any // of a token
	over      chan struct{}    // closed when the test is over
}

// raw is an object as JSON has it.
type raw = map[string]any

// objectKey names an object: group is empty for the core API.
type objectKey struct{ group, resource, namespace, name string }

// change is what a watch reports: without an old object it was added, without a new one deleted.
type change struct {
	version int64
	key     objectKey
	was, is raw
}

// refusal is an answer of the API server that is an error.
type refusal struct {
	code   int
	reason metav1.StatusReason
	text   string
}

func (r *refusal) Error() string { return r.text }

func notFound(k objectKey) error {
	return &refusal{http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", k.resource, k.name)}
}

func conflict(k objectKey) error {
	return &refusal{http.StatusConflict, metav1.StatusReasonConflict, fmt.Sprintf("%s %q: the object has been modified", k.resource, k.name)}
}

// startStandIn returns a cluster whose API server is a stand-in that ends with the test.
func startStandIn(t testing.TB) *kubecluster.Cluster {
	t.Helper()
	s := &standIn{objects: map[objectKey]raw{}, changed: make(chan struct{}), over: make(chan struct{}), tokens: map[string]raw{}, audiences: map[string][]any{}}
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that tests cut
	server.StartTLS()
	t.Cleanup(func() {
		close(s.over) // ends the watches
		server.CloseClientConnections()
		server.Close()
	})
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	dir := t.TempDir()
	c := &kubecluster.Cluster{Dir: dir, Server: server.URL, Token: "administrator", Kubeconfig: filepath.Join(dir, "kubeconfig")}
	authority := filepath.Join(dir, "certs", "apiserver.crt")
	kubeconfig := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}], users: [{name: u, user: {token: %s}}]}`, c.Server, authority, c.Token)
	if err := errors.Join(os.MkdirAll(filepath.Dir(authority), 0o700), os.WriteFile(authority, certificate, 0o600),
		os.WriteFile(c.Kubeconfig, []byte(kubeconfig), 0o600), define(t.Context(), c)); err != nil {
		t.Fatal(err)
	}
	return c
}

// parse takes a path apart: /api/v1/… or /apis/GROUP/VERSION/…, then [namespaces/NS/]RESOURCE[/NAME[/SUBRESOURCE]].
func parse(path string) (k objectKey, subresource string, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		k.group, parts = parts[1], parts[3:]
	default:
		return k, "", false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		k.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	k.resource, k.name, subresource = parts[0], parts[1], parts[2]
	return k, subresource, true
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k, subresource, ok := parse(r.URL.Path)
	var answer any
	var err error
	switch {
	case r.Header.Get("Authorization") != "Bearer administrator":
		err = &refusal{http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "not the administrator"}
	case r.URL.Path == "/readyz":
		_, _ = io.WriteString(w, "ok")
		return
	case r.URL.Path == definitionPath: // of which a scheduler only wants to know whether a field is there
		definition, _ := yaml.YAMLToJSON(trainingjob.Definition())
		_, _ = w.Write(definition)
		return
	case !ok:
		err = &refusal{http.StatusNotFound, metav1.StatusReasonNotFound, "no such path"}
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		s.watch(w, r, k)
		return
	default:
		var body []byte
		if body, err = io.ReadAll(r.Body); err == nil {
			s.mutex.Lock()
			answer, err = s.answer(r, k, subresource, body)
			answer = copied(answer)
			s.mutex.Unlock()
		}
	}
	code := http.StatusOK
	if r.Method == http.MethodPost {
		code = http.StatusCreated
	}
	if err != nil {
		refused, is := errors.AsType[*refusal](err)
		if !is {
			refused = &refusal{http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error()}
		}
		code = refused.code
		answer = &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: refused.reason,
			Code: int32(code), Message: refused.text, Details: &metav1.StatusDetails{Name: k.name, Group: k.group, Kind: k.resource}, //nolint:gosec // a code of HTTP
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

// answer does what a request asks for that is no watch.
func (s *standIn) answer(r *http.Request, k objectKey, subresource string, body []byte) (any, error) {
	if r.Method == http.MethodPost {
		var o raw
		if err := json.Unmarshal(body, &o); err != nil {
			return nil, err
		}
		return s.post(k, subresource, o)
	}
	if r.Method == http.MethodGet && k.name == "" {
		return s.list(r, k)
	}
	old := s.objects[k]
	if old == nil {
		return nil, notFound(k)
	}
	switch r.Method {
	case http.MethodGet:
		return old, nil
	case http.MethodPut:
		var o raw
		if err := json.Unmarshal(body, &o); err != nil {
			return nil, err
		}
		return s.replace(k, subresource, o)
	case http.MethodPatch:
		o, err := patched(k, copied(old).(raw), body, types.PatchType(r.Header.Get("Content-Type")))
		if err != nil {
			return nil, err
		}
		return s.replace(k, subresource, o)
	case http.MethodDelete:
		var options metav1.DeleteOptions
		if len(body) > 0 {
			if err := json.Unmarshal(body, &options); err != nil {
				return nil, err
			}
		}
		return old, s.remove(k, &options)
	}
	return nil, &refusal{http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "no such method"}
}

// post creates an object or does what a subresource does.
func (s *standIn) post(k objectKey, subresource string, o raw) (any, error) {
	switch {
	case k.resource == "tokenreviews":
		token, _ := at(o, "spec", "token").(string)
		asked, _ := at(o, "spec", "audiences").([]any)
		user, of := s.tokens[token], s.audiences[token]
		if both := slices.DeleteFunc(asked, func(a any) bool { return !slices.Contains(of, a) }); user != nil && len(both) > 0 {
			o["status"] = raw{"authenticated": true, "user": user, "audiences": both}
		} else {
			o["status"] = raw{"authenticated": false}
		}
		return o, nil
	case subresource == "token":
		token := string(uuid.NewUUID())
		user := raw{"username": "system:serviceaccount:" + k.namespace + ":" + k.name}
		if bound, is := at(o, "spec", "boundObjectRef").(raw); is {
			user["extra"] = raw{podNameExtra: []any{bound["name"]}, podUIDExtra: []any{bound["uid"]}}
		}
		s.tokens[token] = user
		s.audiences[token], _ = at(o, "spec", "audiences").([]any)
		o["status"] = raw{"token": token}
		return o, nil
	case subresource == "binding":
		pod := s.objects[k]
		if pod == nil {
			return nil, notFound(k)
		}
		if node, _ := at(pod, "spec", "nodeName").(string); node != "" || at(pod, "metadata", "deletionTimestamp") != nil {
			return nil, conflict(k)
		}
		pod = copied(pod).(raw)
		pod["spec"].(raw)["nodeName"] = at(o, "target", "name")
		s.set(k, pod)
		return raw{"kind": "Status", "apiVersion": "v1", "status": "Success"}, nil
	case subresource == "eviction":
		pod := s.objects[k]
		if pod == nil {
			return nil, notFound(k)
		}
		pod = copied(pod).(raw)
		conditions, _ := at(pod, "status", "conditions").([]any)
		pod["status"].(raw)["conditions"] = append(conditions, raw{
			"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "lastTransitionTime": present(),
		})
		s.set(k, pod)
		return raw{"kind": "Status", "apiVersion": "v1", "status": "Success"}, s.remove(k, &metav1.DeleteOptions{})
	}
	return s.create(k, o)
}

func (s *standIn) create(k objectKey, o raw) (any, error) {
	meta, _ := o["metadata"].(raw)
	k.name, _ = meta["name"].(string)
	if s.objects[k] != nil {
		return nil, &refusal{http.StatusConflict, metav1.StatusReasonAlreadyExists, fmt.Sprintf("%s %q already exists", k.resource, k.name)}
	}
	meta["uid"], meta["creationTimestamp"], meta["generation"] = string(uuid.NewUUID()), present(), 1
	if k.namespace != "" {
		meta["namespace"] = k.namespace
	}
	switch k.resource {
	case "namespaces":
		s.set(objectKey{resource: "serviceaccounts", namespace: k.name, name: "default"}, raw{"metadata": raw{"name": "default"}})
	case "nodes":
		o["status"].(raw)["conditions"] = []any{raw{"type": "Ready", "status": "True", "lastTransitionTime": present()}}
	case "pods":
		o["status"] = raw{"phase": "Pending"}
	default:
		delete(o, "status")
	}
	s.set(k, o)
	return s.objects[k], nil
}

// replace writes an object, or what of it a subresource is for.
func (s *standIn) replace(k objectKey, subresource string, o raw) (any, error) {
	old := s.objects[k]
	if v, _ := at(o, "metadata", "resourceVersion").(string); v != "" && v != at(old, "metadata", "resourceVersion") {
		return nil, conflict(k)
	}
	if uid, _ := at(o, "metadata", "uid").(string); uid != "" && uid != at(old, "metadata", "uid") {
		return nil, conflict(k)
	}
	made := copied(o).(raw)
	if subresource == "status" {
		made = copied(old).(raw)
		made["status"] = o["status"]
	} else if status, has := old["status"]; has {
		made["status"] = status
	} else {
		delete(made, "status")
	}
	meta, was := made["metadata"].(raw), old["metadata"].(raw)
	for _, fixed := range [...]string{"uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"} {
		if value, has := was[fixed]; has {
			meta[fixed] = value
		} else {
			delete(meta, fixed)
		}
	}
	for _, kind := range [...]string{"kind", "apiVersion"} {
		made[kind] = old[kind]
	}
	if made = copied(made).(raw); reflect.DeepEqual(made, old) {
		return old, nil
	}
	if !reflect.DeepEqual(made["spec"], old["spec"]) {
		made["metadata"].(raw)["generation"] = old["metadata"].(raw)["generation"].(float64) + 1
	}
	s.set(k, made)
	s.collect(k)
	if s.objects[k] == nil {
		return made, nil
	}
	return s.objects[k], nil
}

// set stores an object, reports it to who watches, and lets the nodes play it when it is a pod.
func (s *standIn) set(k objectKey, o raw) {
	s.version++
	was := s.objects[k]
	if o != nil {
		o = copied(o).(raw)
		o["metadata"].(raw)["resourceVersion"] = strconv.FormatInt(s.version, 10)
		s.objects[k] = o
	} else {
		delete(s.objects, k)
		was = copied(was).(raw)
		was["metadata"].(raw)["resourceVersion"] = strconv.FormatInt(s.version, 10)
	}
	s.log = append(s.log, change{s.version, k, was, o})
	close(s.changed)
	s.changed = make(chan struct{})
	if o != nil && k.resource == "pods" {
		s.play(k, o)
	}
}

// remove deletes an object when nothing holds it, and otherwise marks it.
func (s *standIn) remove(k objectKey, options *metav1.DeleteOptions) error {
	o := copied(s.objects[k]).(raw)
	meta := o["metadata"].(raw)
	if p := options.Preconditions; p != nil &&
		(p.UID != nil && string(*p.UID) != meta["uid"] || p.ResourceVersion != nil && *p.ResourceVersion != meta["resourceVersion"]) {
		return conflict(k)
	}
	grace := int64(0)
	if node, _ := at(o, "spec", "nodeName").(string); k.resource == "pods" && node != "" && !ended(o) {
		if grace = 30; options.GracePeriodSeconds != nil {
			grace = *options.GracePeriodSeconds
		}
	}
	if left, marked := meta["deletionGracePeriodSeconds"].(float64); marked && left <= float64(grace) {
		s.collect(k)
		return nil
	}
	if meta["deletionTimestamp"] == nil {
		meta["deletionTimestamp"] = time.Now().Add(time.Duration(grace) * time.Second).UTC().Format(time.RFC3339) //nolint:forbidigo // an API server has a clock
	}
	if left, marked := meta["deletionGracePeriodSeconds"].(float64); marked { // earlier by as much
		at, _ := time.Parse(time.RFC3339, meta["deletionTimestamp"].(string))
		meta["deletionTimestamp"] = at.Add(time.Duration(float64(grace)-left) * time.Second).Format(time.RFC3339)
	}
	meta["deletionGracePeriodSeconds"] = grace
	if finalizers, _ := meta["finalizers"].([]any); grace > 0 || len(finalizers) > 0 {
		s.set(k, o)
	}
	if grace == 0 {
		s.objects[k] = copied(o).(raw)
		s.collect(k)
	}
	return nil
}

// collect takes an object away that is to go and that nothing holds, and with it what it owns.
func (s *standIn) collect(k objectKey) {
	o := s.objects[k]
	finalizers, _ := at(o, "metadata", "finalizers").([]any)
	if left, marked := at(o, "metadata", "deletionGracePeriodSeconds").(float64); !marked || left > 0 || len(finalizers) > 0 {
		return
	}
	s.set(k, nil)
	uid := at(o, "metadata", "uid")
	for _, dependent := range slices.Collect(maps.Keys(s.objects)) {
		owners, _ := at(s.objects[dependent], "metadata", "ownerReferences").([]any)
		if slices.ContainsFunc(owners, func(owner any) bool { return at(owner, "uid") == uid }) {
			_ = s.remove(dependent, &metav1.DeleteOptions{})
		}
	}
}

// ended reports whether a pod is over.
func ended(pod raw) bool {
	phase := at(pod, "status", "phase")
	return phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed)
}

// stop is how long a pod takes to stop that does not say so itself.
const stop = 50 * time.Millisecond

// play lets the node of a pod take its next step, by the stages of KWOK.
func (s *standIn) play(k objectKey, pod raw) {
	if node, _ := at(pod, "spec", "nodeName").(string); node == "" {
		return
	}
	phase, deleted := at(pod, "status", "phase"), at(pod, "metadata", "deletionTimestamp") != nil
	later := func(annotation string, usual time.Duration) (time.Duration, bool) {
		text, has := at(pod, "metadata", "annotations", annotation).(string)
		if d, err := time.ParseDuration(text); err == nil {
			return d, true
		}
		return usual, has
	}
	var after time.Duration
	var status raw
	running := phase == string(corev1.PodRunning)
	fail, fails := later("quartet.sched/fail", time.Second)
	succeed, succeeds := later("quartet.sched/run", time.Second)
	switch {
	case deleted && ended(pod):
	case deleted && running:
		after, _ = later("quartet.sched/stop", stop)
		status = overStatus(pod, corev1.PodFailed, 143, "Error")
	case deleted:
		status = overStatus(pod, corev1.PodFailed, 137, "ContainerStatusUnknown")
	case phase == string(corev1.PodPending):
		after, _ = later("quartet.sched/start", 0)
		status = begun(pod)
	case running && fails:
		after, status = fail, overStatus(pod, corev1.PodFailed, 1, "Error")
	case running && succeeds:
		after, status = succeed, overStatus(pod, corev1.PodSucceeded, 0, "Completed")
	default:
		return
	}
	time.AfterFunc(after, func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		now := s.objects[k]
		if now == nil || at(now, "metadata", "uid") != at(pod, "metadata", "uid") || at(now, "status", "phase") != phase ||
			(at(now, "metadata", "deletionTimestamp") != nil) != deleted {
			return
		}
		if status == nil {
			none := int64(0)
			_ = s.remove(k, &metav1.DeleteOptions{GracePeriodSeconds: &none})
			return
		}
		now = copied(now).(raw)
		maps.Copy(now["status"].(raw), status)
		s.set(k, now)
	})
}

// begun is the status of a pod that runs.
func begun(pod raw) raw {
	var conditions []any
	was, _ := at(pod, "status", "conditions").([]any)
	for _, c := range was {
		if kind := at(c, "type"); kind != "Ready" && kind != "Initialized" && kind != "ContainersReady" {
			conditions = append(conditions, c)
		}
	}
	for _, kind := range [...]string{"Initialized", "Ready", "ContainersReady"} {
		conditions = append(conditions, raw{"type": kind, "status": "True", "lastTransitionTime": present()})
	}
	return raw{
		"phase": "Running", "startTime": present(), "conditions": conditions,
		"containerStatuses": states(pod, true, raw{"running": raw{"startedAt": present()}}),
	}
}

// overStatus is the status of a pod that is over.
func overStatus(pod raw, phase corev1.PodPhase, code int, reason string) raw {
	over := raw{"exitCode": code, "finishedAt": present(), "startedAt": present(), "reason": reason}
	return raw{"phase": string(phase), "containerStatuses": states(pod, false, raw{"terminated": over})}
}

func states(pod raw, ready bool, state raw) (all []any) {
	containers, _ := at(pod, "spec", "containers").([]any)
	for _, c := range containers {
		all = append(all, raw{"name": at(c, "name"), "image": at(c, "image"), "ready": ready, "started": ready, "restartCount": 0, "state": state})
	}
	return all
}
