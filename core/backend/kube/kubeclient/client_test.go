package kubeclient_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
)

// server answers every request with the same object, and keeps what was asked.
type server struct {
	answer any
	asked  []string
	header http.Header
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(bytes.TrimSpace(text))
	}
	s.asked, s.header = append(s.asked, fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body)), r.Header
	text, err := json.Marshal(s.answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: io.NopCloser(bytes.NewReader(text)),
	}, nil
}

func connect(t *testing.T, s *server, contentType string) *kubeclient.Client {
	t.Helper()
	c, err := kubeclient.New(&rest.Config{Host: "http://api", Transport: s, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: contentType}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Requests go where the API has the resources, and what comes back is decoded.
func TestRequests(t *testing.T) {
	ctx := t.Context()
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}}
	job := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "j"}}
	review := &authenticationv1.TokenReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}, Status: authenticationv1.TokenReviewStatus{Authenticated: true},
	}
	cases := map[string]struct {
		answer any
		ask    func(c *kubeclient.Client) (got string, err error)
		want   string // what is asked
		got    string
	}{
		"get a pod": {pod, func(c *kubeclient.Client) (string, error) {
			p, err := c.Pods("ns").Get(ctx, "p", metav1.GetOptions{ResourceVersion: "0"})
			return p.Name, err
		}, "GET /api/v1/namespaces/ns/pods/p?resourceVersion=0 ", "p"},
		"list pods of all namespaces": {corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{*pod}}, func(c *kubeclient.Client) (string, error) {
			l, err := c.Pods("").List(ctx, metav1.ListOptions{LabelSelector: "a=b", Limit: 1})
			return fmt.Sprint(len(l.Items)), err
		}, "GET /api/v1/pods?labelSelector=a%3Db&limit=1 ", "1"},
		"patch the status of a pod": {pod, func(c *kubeclient.Client) (string, error) {
			p, err := c.Pods("ns").Patch(ctx, "p", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{FieldManager: "quartet"}, "status")
			return p.Name, err
		}, "PATCH /api/v1/namespaces/ns/pods/p/status?fieldManager=quartet {}", "p"},
		"bind a pod": {metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, func(c *kubeclient.Client) (string, error) {
			return "", c.Pods("ns").Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: corev1.ObjectReference{Name: "n"}}, metav1.CreateOptions{})
		}, `POST /api/v1/namespaces/ns/pods/p/binding {"kind":"Binding","apiVersion":"v1","metadata":{"name":"p"},"target":{"name":"n"}}`, ""},
		"read a log": {pod, func(c *kubeclient.Client) (string, error) {
			_, err := c.Pods("ns").Log("p", &corev1.PodLogOptions{Follow: true}).DoRaw(ctx)
			return "", err
		}, "GET /api/v1/namespaces/ns/pods/p/log?follow=true ", ""},
		"delete a job": {job, func(c *kubeclient.Client) (string, error) {
			orphan := metav1.DeletePropagationOrphan
			return "", c.Jobs("ns").Delete(ctx, "j", metav1.DeleteOptions{PropagationPolicy: &orphan})
		}, `DELETE /apis/batch/v1/namespaces/ns/jobs/j {"kind":"DeleteOptions","apiVersion":"batch/v1","propagationPolicy":"Orphan"}`, ""},
		"create a job strictly": {job, func(c *kubeclient.Client) (string, error) {
			j, err := c.Jobs("ns").Create(ctx, &batchv1.Job{}, metav1.CreateOptions{FieldValidation: "Strict"})
			return j.Name, err
		}, `POST /apis/batch/v1/namespaces/ns/jobs?fieldValidation=Strict {"kind":"Job","apiVersion":"batch/v1","metadata":{},"spec":{"template":{"metadata":{},"spec":{"containers":null}}},"status":{}}`, "j"},
		"review a token": {review, func(c *kubeclient.Client) (string, error) {
			r, err := c.ReviewToken(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "x"}})
			return fmt.Sprint(r.Status.Authenticated), err
		}, `POST /apis/authentication.k8s.io/v1/tokenreviews {"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"spec":{"token":"x"},"status":{"user":{}}}`, "true"},
		"read what is served": {map[string]string{"a": "b"}, func(c *kubeclient.Client) (string, error) {
			text, err := c.Raw(ctx, "/openapi/v3")
			return string(text), err
		}, "GET /openapi/v3 ", `{"a":"b"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &server{answer: tc.answer}
			got, err := tc.ask(connect(t, s, runtime.ContentTypeJSON))
			if err != nil || got != tc.got {
				t.Errorf("%q, %v, want %q", got, err, tc.got)
			}
			if !slices.Equal(s.asked, []string{tc.want}) {
				t.Errorf("asked\n%q, want\n%q", s.asked, tc.want)
			}
		})
	}
}

// A client that is not told otherwise speaks protobuf, and takes JSON from a server that has none.
func TestContentTypes(t *testing.T) {
	s := &server{answer: &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "n"}}}
	c := connect(t, s, "")
	n, err := c.Nodes().Update(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.UpdateOptions{})
	if err != nil || n.Name != "n" {
		t.Errorf("%v, %v", n, err)
	}
	if accept, sent := s.header.Get("Accept"), s.header.Get("Content-Type"); accept != "application/vnd.kubernetes.protobuf,application/json" || sent != "application/vnd.kubernetes.protobuf" {
		t.Errorf("accepts %q and sends %q", accept, sent)
	}
}
