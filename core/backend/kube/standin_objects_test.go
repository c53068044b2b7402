//go:build linux

package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// selected returns what the selectors of a request ask for.
func selected(r *http.Request, k objectKey) (func(objectKey, raw) bool, error) {
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	return func(of objectKey, o raw) bool {
		if o == nil || of.group != k.group || of.resource != k.resource || k.namespace != "" && of.namespace != k.namespace {
			return false
		}
		set := labels.Set{}
		given, _ := at(o, "metadata", "labels").(raw)
		for name, value := range given {
			set[name], _ = value.(string)
		}
		if !byLabel.Matches(set) {
			return false
		}
		return !slices.ContainsFunc(byField.Requirements(), func(f fields.Requirement) bool {
			value, _ := at(o, strings.Split(f.Field, ".")...).(string)
			return (value == f.Value) == (f.Operator == "!=")
		})
	}, nil
}

// kinds are by resource.
var kinds = map[string]string{
	"pods": "Pod", "nodes": "Node", "configmaps": "ConfigMap", "events": "Event", "services": "Service", "jobs": "Job", "leases": "Lease",
	"deviceclasses": "DeviceClass", "resourceclaims": "ResourceClaim", "resourceslices": "ResourceSlice", "trainingjobs": "TrainingJob",
}

func apiVersion(k objectKey) string {
	switch k.group {
	case "":
		return "v1"
	case "quartet.sched":
		return "quartet.sched/v1alpha1"
	default:
		return k.group + "/v1"
	}
}

func (s *standIn) list(r *http.Request, k objectKey) (any, error) {
	selects, err := selected(r, k)
	if err != nil {
		return nil, err
	}
	items := []any{}
	for of, o := range s.objects {
		if selects(of, o) {
			items = append(items, o)
		}
	}
	return raw{
		"apiVersion": apiVersion(k), "kind": kinds[k.resource] + "List", "items": items,
		"metadata": raw{"resourceVersion": strconv.FormatInt(s.version, 10)},
	}, nil
}

// watch reports the changes since a version, and first what is there where the request asks for it.
func (s *standIn) watch(w http.ResponseWriter, r *http.Request, k objectKey) {
	selects, err := selected(r, k)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	report := func(what string, o any) { _ = encoder.Encode(raw{"type": what, "object": o}) }
	since, _ := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
	s.mutex.Lock()
	if initial := r.URL.Query().Get("sendInitialEvents") == "true"; initial || since == 0 {
		for of, o := range s.objects {
			if selects(of, o) {
				report("ADDED", o)
			}
		}
		if since = s.version; initial {
			report("BOOKMARK", raw{"apiVersion": apiVersion(k), "kind": kinds[k.resource], "metadata": raw{
				"resourceVersion": strconv.FormatInt(since, 10), "annotations": raw{metav1.InitialEventsAnnotationKey: "true"},
			}})
		}
	}
	s.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	end := time.After(time.Hour)
	if seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds")); err == nil {
		end = time.After(time.Duration(seconds) * time.Second)
	}
	for {
		s.mutex.Lock()
		from, _ := slices.BinarySearchFunc(s.log, since+1, func(c change, v int64) int { return int(c.version - v) })
		for _, c := range s.log[from:] {
			switch was, is := selects(c.key, c.was), selects(c.key, c.is); {
			case is && was:
				report("MODIFIED", c.is)
			case is:
				report("ADDED", c.is)
			case was:
				report("DELETED", c.was)
			}
		}
		since = s.version
		changed := s.changed
		s.mutex.Unlock()
		if _, err := w.Write(lines.Bytes()); err != nil {
			return
		}
		lines.Reset()
		_ = http.NewResponseController(w).Flush()
		select {
		case <-changed:
		case <-end:
			return
		case <-r.Context().Done():
			return
		case <-s.over:
			return
		}
	}
}

// patched applies a patch to a copy of an object.
func patched(k objectKey, o raw, body []byte, kind types.PatchType) (raw, error) {
	switch kind {
	case types.JSONPatchType:
		var steps []struct {
			Op, Path string
			Value    any
		}
		if err := json.Unmarshal(body, &steps); err != nil {
			return nil, err
		}
		for _, step := range steps {
			path := strings.Split(strings.TrimPrefix(step.Path, "/"), "/")
			in, _ := at(o, path[:len(path)-1]...).(raw)
			if in == nil || step.Op != "add" {
				return nil, fmt.Errorf("cannot %s %s", step.Op, step.Path)
			}
			in[path[len(path)-1]] = step.Value
		}
		return o, nil
	case types.MergePatchType:
		var patch raw
		if err := json.Unmarshal(body, &patch); err != nil {
			return nil, err
		}
		merged, _ := merge(o, patch).(raw)
		return merged, nil
	}
	var patch raw
	if err := json.Unmarshal(body, &patch); err != nil {
		return nil, err
	}
	shape := map[string]any{"pods": corev1.Pod{}, "nodes": corev1.Node{}, "jobs": batchv1.Job{}, "resourceclaims": resourcev1.ResourceClaim{}}[k.resource]
	return strategicpatch.StrategicMergeMapPatch(o, patch, shape)
}

// merge is RFC 7386.
func merge(to, patch any) any {
	p, is := patch.(raw)
	if !is {
		return patch
	}
	o, is := to.(raw)
	if !is {
		o = raw{}
	}
	for name, value := range p {
		if value == nil {
			delete(o, name)
		} else {
			o[name] = merge(o[name], value)
		}
	}
	return o
}

// at is what an object has at a path; nil for nothing.
func at(o any, path ...string) any {
	for _, name := range path {
		in, _ := o.(raw)
		o = in[name]
	}
	return o
}

// copied is a copy as JSON has it.
func copied(o any) any {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var c any
	if err := json.Unmarshal(text, &c); err != nil {
		panic(err)
	}
	return c
}

func present() string { return time.Now().UTC().Format(time.RFC3339) } //nolint:forbidigo // an API server has a clock
