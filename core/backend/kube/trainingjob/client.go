package trainingjob

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Interface is what can be done with the TrainingJobs of a namespace.
type Interface interface {
	Create(ctx context.Context, job *TrainingJob, opts metav1.CreateOptions) (*TrainingJob, error)
	Update(ctx context.Context, job *TrainingJob, opts metav1.UpdateOptions) (*TrainingJob, error)
	UpdateStatus(ctx context.Context, job *TrainingJob, opts metav1.UpdateOptions) (*TrainingJob, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*TrainingJob, error)
	List(ctx context.Context, opts metav1.ListOptions) (*TrainingJobList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*TrainingJob, error)
}

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

// Of are the TrainingJobs of a namespace; empty for all, which can be listed and watched only.
func (c *Client) Of(namespace string) Interface {
	return gentype.NewClientWithList[*TrainingJob, *TrainingJobList](Resource, c.rest, c.codec, namespace,
		func() *TrainingJob { return &TrainingJob{} }, func() *TrainingJobList { return &TrainingJobList{} })
}

// NewInformer is a cache of the TrainingJobs of a namespace, or of all if it is empty, indexed by namespace.
func NewInformer(c *Client, namespace string, resync time.Duration) cache.SharedIndexInformer {
	jobs := c.Of(namespace)
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return jobs.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return jobs.Watch(ctx, opts)
		},
	}, &TrainingJob{}, resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
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
