//go:build linux

package kubetrainee

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core/agent"
)

// The labels and the annotation by which pods of a job are known, as package gang writes them.
const (
	jobLabel        = "quartet.sched/job"
	runLabel        = "quartet.sched/run"
	ranksAnnotation = "quartet.sched/ranks"
	stopAnnotation  = "quartet.sched/stop" // how long the node takes to stop it
)

// The phases of a pod that count here.
const (
	running   = "Running"
	succeeded = "Succeeded"
	failed    = "Failed"
)

// pod is what counts of one here.
type pod struct {
	Metadata struct {
		Name, Namespace, UID string
		Labels, Annotations  map[string]string
		DeletionTimestamp    string
		OwnerReferences      []struct {
			UID        string
			Controller bool
		}
	}
	Spec struct {
		ServiceAccountName string
		Containers         []container
		Volumes            []volume
	}
	Status struct{ Phase, StartTime string }
}

type container struct {
	Name, Image string
	Env         []struct {
		Name, Value string
		ValueFrom   struct {
			ConfigMapKeyRef struct{ Name, Key string }
		}
	}
	VolumeMounts []struct{ Name, MountPath string }
}

type volume struct {
	Name      string
	Projected struct {
		Sources []struct {
			ServiceAccountToken *tokenSource
		}
	}
}

// tokenSource is how a pod asks for a token.
type tokenSource struct {
	Audience, Path    string
	ExpirationSeconds int64
}

// job is by what the progress of its job is kept: an object has a UID, and pods without an owner have a name.
func (p *pod) job() string {
	for _, o := range p.Metadata.OwnerReferences {
		if o.Controller {
			return o.UID
		}
	}
	return p.Metadata.Namespace + "/" + p.Metadata.Labels[jobLabel]
}

// run is by what those are known that train together.
func (p *pod) run() string { return p.job() + "/" + p.Metadata.Labels[runLabel] }

func (p *pod) final() bool    { return p.Status.Phase == succeeded || p.Status.Phase == failed }
func (p *pod) stopping() bool { return p.Metadata.DeletionTimestamp != "" }

func (p *pod) path() string {
	return "/api/v1/namespaces/" + p.Metadata.Namespace + "/pods/" + p.Metadata.Name
}

// size is how many replicas the pod has, by ranks such as 0-3,6. A pod that does not say has one.
func (p *pod) size() int {
	count := 0
	for part := range strings.SplitSeq(p.Metadata.Annotations[ranksAnnotation], ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, err := strconv.Atoi(first)
		to, wrong := strconv.Atoi(last)
		if err != nil || wrong != nil || to < from {
			return 1
		}
		count += to - from + 1
	}
	return count
}

// variables are those of the first container. Those that come from elsewhere than a ConfigMap are not there.
func (p *pod) variables(value func(configMap, key string) (string, error)) (map[string]string, error) {
	variables := make(map[string]string)
	if len(p.Spec.Containers) == 0 {
		return variables, nil
	}
	for _, v := range p.Spec.Containers[0].Env {
		variables[v.Name] = v.Value
		if from := v.ValueFrom.ConfigMapKeyRef; from.Name != "" {
			text, err := value(from.Name, from.Key)
			if err != nil {
				return nil, err
			}
			variables[v.Name] = text
		}
	}
	return variables, nil
}

// token is what a file of the first container is a token of.
func (p *pod) token(file string) (tokenSource, error) {
	if len(p.Spec.Containers) > 0 {
		for _, m := range p.Spec.Containers[0].VolumeMounts {
			for _, v := range p.Spec.Volumes {
				if v.Name != m.Name {
					continue
				}
				for _, s := range v.Projected.Sources {
					if s.ServiceAccountToken != nil && path.Join(m.MountPath, s.ServiceAccountToken.Path) == path.Clean(file) {
						return *s.ServiceAccountToken, nil
					}
				}
			}
		}
	}
	return tokenSource{}, errors.New(agent.TokenVariable + ": no volume of the pod has a token at " + strconv.Quote(file))
}

// change is a pod that is there, or went; or all that are.
type change struct {
	pod  pod
	gone bool
	all  []pod // in place of the others, if not nil
}

// again is how long to wait before the API server is asked again.
const again = 300 * time.Millisecond

// watch tells of all pods of jobs, and of what becomes of them, until the context ends.
func (t *trainee) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if err := t.follow(ctx); err != nil && ctx.Err() == nil {
			t.log.Info("watch pods again", "after", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

func (t *trainee) follow(ctx context.Context) error {
	const path = "/api/v1/pods?labelSelector="
	selector := url.QueryEscape(jobLabel)
	answer, err := t.cluster.Do(ctx, "GET", path+selector, nil)
	if err != nil {
		return err
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []pod
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return err
	}
	if list.Items == nil {
		list.Items = []pod{}
	}
	t.changed(ctx, change{all: list.Items})
	stream, err := t.cluster.Stream(ctx, path+selector+"&watch=true&resourceVersion="+list.Metadata.ResourceVersion)
	if err != nil {
		return err
	}
	defer stream.Close()
	for events := json.NewDecoder(stream); ; {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := events.Decode(&event); err != nil {
			return err
		}
		var c change
		switch event.Type {
		case "ADDED", "MODIFIED", "DELETED":
			if err := json.Unmarshal(event.Object, &c.pod); err != nil {
				return err
			}
			c.gone = event.Type == "DELETED"
			t.changed(ctx, c)
		default: // ERROR: what is asked for is too old
			return errors.New(string(event.Object))
		}
	}
}

func (t *trainee) changed(ctx context.Context, c change) {
	select {
	case t.changes <- c:
	case <-ctx.Done():
	}
}
