package trainingjob

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
)

// Objects reads and writes the TrainingJobs of a namespace, or lists and watches those of all.
type Objects = kubeclient.Objects[*TrainingJob, *TrainingJobList]

// Client asks an API server for TrainingJobs.
type Client struct {
	rest  rest.Interface
	codec runtime.ParameterCodec
}

// NewClient makes a client of its own connections. The limits of requests are those of the config.
func NewClient(c *rest.Config) (*Client, error) {
	own, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	return NewClientFor(c, own)
}

// NewClientFor makes a client that shares connections with others.
func NewClientFor(c *rest.Config, connections *http.Client) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		return nil, err
	}
	own, group := rest.CopyConfig(c), GroupVersion()
	own.APIPath, own.GroupVersion = "/apis", &group
	own.ContentConfig.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON // no protobuf of a custom resource
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if own.UserAgent == "" {
		own.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	asked, err := rest.RESTClientForConfigAndClient(own, connections)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", Resource, err)
	}
	return &Client{rest: asked, codec: runtime.NewParameterCodec(scheme)}, nil
}

// Of returns the TrainingJobs of a namespace; empty for all, which can be listed and watched only.
func (c *Client) Of(namespace string) *Objects {
	return kubeclient.NewObjects(c.rest, c.codec, Resource, namespace,
		func() *TrainingJob { return &TrainingJob{} }, func() *TrainingJobList { return &TrainingJobList{} })
}

// NewInformer returns a cache of the TrainingJobs of a namespace, or of all if it is empty, indexed by namespace.
func NewInformer(c *Client, namespace string) cache.SharedIndexInformer {
	return kubeclient.NewInformer(c.Of(namespace), "", cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// ReplaceStatus makes the status of a job what is given, all of it, if the job is as it was read: the answer is a conflict when
// somebody changed it since, and nothing was changed then. When the object would be the same nothing is written. An apply would
// leave there what others wrote where nothing of ours is: that a job is to stop, say.
func (c *Client) ReplaceStatus(ctx context.Context, job *TrainingJob, status *Status) (*TrainingJob, error) {
	if job.ResourceVersion == "" {
		return nil, fmt.Errorf("write the status of %s: the job was not read from the API server", job.JobName())
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "add", "path": "/metadata/resourceVersion", "value": job.ResourceVersion}, // another one is a conflict
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return nil, err
	}
	return c.Of(job.Namespace).Patch(ctx, job.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
}
