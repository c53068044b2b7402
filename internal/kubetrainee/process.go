//go:build linux

package kubetrainee

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/quartet-sched/quartet/core/agent"
)

// exitTerminated is how a shell tells of a process that SIGTERM ended.
const exitTerminated = 143

// prepare gives a pod what it needs to train, its agent among it. It has a goroutine of its own.
func (t *trainee) prepare(a *actor) {
	var has equipment
	for {
		var err error
		if has, err = t.equip(a); err == nil {
			break
		}
		t.log.Warn("a pod cannot begin", "pod", a.pod.Metadata.Name, "error", err)
		if !a.pause() {
			return
		}
	}
	select {
	case t.ready <- ready{a, has}:
	case <-a.ctx.Done():
		has.client.Close()
	}
}

func (t *trainee) equip(a *actor) (has equipment, err error) {
	variables, err := a.pod.variables(func(name, key string) (string, error) {
		answer, err := t.cluster.Do(a.ctx, "GET", "/api/v1/namespaces/"+a.pod.Metadata.Namespace+"/configmaps/"+name, nil)
		if err != nil {
			return "", err
		}
		var configMap struct{ Data map[string]string }
		err = json.Unmarshal(answer, &configMap)
		return configMap.Data[key], err
	})
	if err != nil {
		return has, err
	}
	hasAgent := variables[agent.SocketVariable] != ""
	var source tokenSource
	if hasAgent {
		if source, err = a.pod.token(variables[agent.TokenVariable]); err != nil {
			return has, err
		}
		variables[agent.TokenVariable] = t.tokenFile(a)
		if err := t.writeToken(a, source); err != nil {
			return has, err
		}
	}
	if variables[agent.RendezvousVariable] == "" {
		variables[agent.RendezvousVariable] = "none" // all train here
	}
	e, err := agent.ReadEnvironment(func(name string) (string, bool) { value, ok := variables[name]; return value, ok })
	if err != nil {
		return has, err
	}
	e.Worlds = a.plan.worlds
	has.client = agent.Dial(e)
	has.member = &member{name: a.pod.Metadata.Name, size: a.pod.size(), rank: e.Rank, replicas: e.Replicas, nodes: e.Nodes}
	if hasAgent {
		has.member.speaker = has.client
		t.work.Go(func() { t.renew(a, source) })
	}
	return has, nil
}

func (t *trainee) tokenFile(a *actor) string {
	return filepath.Join(t.dir, tokensFolder, a.pod.Metadata.UID)
}

// tokenSeconds is for how long a token is asked for where the pod does not say.
const tokenSeconds = 3600

// writeToken asks for a token of the pod, as its kubelet would.
func (t *trainee) writeToken(a *actor, source tokenSource) error {
	account := a.pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	seconds := source.ExpirationSeconds
	if seconds == 0 {
		seconds = tokenSeconds
	}
	spec := map[string]any{
		"expirationSeconds": seconds,
		"boundObjectRef": map[string]string{
			"kind": "Pod", "apiVersion": "v1", "name": a.pod.Metadata.Name, "uid": a.pod.Metadata.UID,
		},
	}
	if source.Audience != "" {
		spec["audiences"] = []string{source.Audience}
	}
	answer, err := t.cluster.Do(a.ctx, "POST", "/api/v1/namespaces/"+a.pod.Metadata.Namespace+"/serviceaccounts/"+account+"/token",
		map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
	if err != nil {
		return fmt.Errorf("ask for a token: %w", err)
	}
	var request struct{ Status struct{ Token string } }
	if err := json.Unmarshal(answer, &request); err != nil {
		return err
	}
	return replace(t.tokenFile(a), []byte(request.Status.Token))
}

// renew writes the token anew before it expires, as long as the pod is there, and removes it then.
func (t *trainee) renew(a *actor, source tokenSource) {
	seconds := source.ExpirationSeconds
	if seconds == 0 {
		seconds = tokenSeconds
	}
	pause := time.Duration(seconds) * time.Second * 4 / 5 // as the kubelet does
	for {
		select {
		case <-a.ctx.Done():
			_ = os.Remove(t.tokenFile(a)) // it is of no use any more
			return
		case <-time.After(pause):
			if err := t.writeToken(a, source); err != nil {
				t.log.Warn("renew a token", "pod", a.pod.Metadata.Name, "error", err)
			}
		}
	}
}

// exit ends the containers of a pod. It has a goroutine of its own.
func (t *trainee) exit(a *actor, code int) {
	phase, reason := succeeded, "Completed"
	if code != 0 {
		phase, reason = failed, "Error"
	}
	now := t.clock().UTC().Format(time.RFC3339)
	var statuses []map[string]any
	for _, c := range a.pod.Spec.Containers {
		ended := map[string]any{"exitCode": code, "reason": reason, "finishedAt": now}
		if a.pod.Status.StartTime != "" {
			ended["startedAt"] = a.pod.Status.StartTime
		}
		statuses = append(statuses, map[string]any{
			"name": c.Name, "image": c.Image, "imageID": "", "ready": false, "started": false, "restartCount": 0,
			"state": map[string]any{"terminated": ended},
		})
	}
	patch := map[string]any{
		"metadata": map[string]any{"uid": a.pod.Metadata.UID}, // another pod of its name is none of ours
		"status":   map[string]any{"phase": phase, "containerStatuses": statuses},
	}
	for {
		_, err := t.cluster.Do(a.ctx, "PATCH", a.pod.path()+"/status", patch)
		if err == nil || missing(err) {
			return
		}
		if !a.pause() {
			return
		}
		t.log.Warn("end a pod", "pod", a.pod.Metadata.Name, "error", err)
	}
}

// replace writes a file that is read as it was or as it is, and never in between.
func replace(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
