// Package kubeclient is a client of the Kubernetes API for the resources that Quartet uses. The clientset of client-go knows all
// API groups, which makes every start slower and the program larger; this one knows those of its methods.
package kubeclient

import (
	"context"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Resources of the API, each in one namespace or in all of the cluster.
type (
	// ConfigMaps are the ConfigMaps of a namespace.
	ConfigMaps = Objects[*corev1.ConfigMap, *corev1.ConfigMapList]
	// Events are the Events of a namespace.
	Events = Objects[*corev1.Event, *corev1.EventList]
	// Nodes are the nodes of the cluster.
	Nodes = Objects[*corev1.Node, *corev1.NodeList]
	// Services are the Services of a namespace.
	Services = Objects[*corev1.Service, *corev1.ServiceList]
	// Jobs are the batch Jobs of a namespace.
	Jobs = Objects[*batchv1.Job, *batchv1.JobList]
	// Leases are the Leases of a namespace.
	Leases = Objects[*coordinationv1.Lease, *coordinationv1.LeaseList]
	// DeviceClasses are the DeviceClasses of the cluster.
	DeviceClasses = Objects[*resourcev1.DeviceClass, *resourcev1.DeviceClassList]
	// ResourceClaims are the ResourceClaims of a namespace.
	ResourceClaims = Objects[*resourcev1.ResourceClaim, *resourcev1.ResourceClaimList]
	// ResourceSlices are the ResourceSlices of the cluster.
	ResourceSlices = Objects[*resourcev1.ResourceSlice, *resourcev1.ResourceSliceList]
)

// Client reads and writes objects of an API server.
type Client struct {
	codec          runtime.ParameterCodec
	core           rest.Interface
	batch          rest.Interface
	coordination   rest.Interface
	resource       rest.Interface
	authentication rest.Interface
}

// New returns a client with connections of its own. Without a content type in the config it speaks protobuf.
func New(c *rest.Config) (*Client, error) {
	connections, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	return NewFor(c, connections)
}

// NewFor returns a client that shares connections with others. The limit of requests in the config is for all groups together.
func NewFor(c *rest.Config, connections *http.Client) (*Client, error) {
	scheme := runtime.NewScheme()
	made := &Client{codec: runtime.NewParameterCodec(scheme)}
	groups := []struct {
		version schema.GroupVersion
		types   func(*runtime.Scheme) error
		client  *rest.Interface
	}{
		{corev1.SchemeGroupVersion, corev1.AddToScheme, &made.core},
		{batchv1.SchemeGroupVersion, batchv1.AddToScheme, &made.batch},
		{coordinationv1.SchemeGroupVersion, coordinationv1.AddToScheme, &made.coordination},
		{resourcev1.SchemeGroupVersion, resourcev1.AddToScheme, &made.resource},
		{authenticationv1.SchemeGroupVersion, authenticationv1.AddToScheme, &made.authentication},
	}
	for _, g := range groups {
		if err := g.types(scheme); err != nil {
			return nil, err
		}
	}
	shared := rest.CopyConfig(c)
	shared.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if shared.ContentType == "" {
		shared.ContentType = runtime.ContentTypeProtobuf
		shared.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	if shared.UserAgent == "" {
		shared.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if shared.RateLimiter == nil && shared.QPS > 0 {
		shared.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(shared.QPS, shared.Burst)
	}
	for _, g := range groups {
		own := rest.CopyConfig(shared)
		own.GroupVersion, own.APIPath = &g.version, "/apis"
		if g.version.Group == "" {
			own.APIPath = "/api"
		}
		client, err := rest.RESTClientForConfigAndClient(own, connections)
		if err != nil {
			return nil, fmt.Errorf("client of %s: %w", g.version, err)
		}
		*g.client = client
	}
	return made, nil
}

// Raw returns what the API server serves at a path, as it is.
func (c *Client) Raw(ctx context.Context, path string) ([]byte, error) {
	return c.core.Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(ctx)
}

// ConfigMaps returns the ConfigMaps of a namespace.
func (c *Client) ConfigMaps(namespace string) *ConfigMaps {
	return NewObjects(c.core, c.codec, "configmaps", namespace,
		func() *corev1.ConfigMap { return &corev1.ConfigMap{} }, func() *corev1.ConfigMapList { return &corev1.ConfigMapList{} })
}

// Events returns the Events of a namespace.
func (c *Client) Events(namespace string) *Events {
	return NewObjects(c.core, c.codec, "events", namespace,
		func() *corev1.Event { return &corev1.Event{} }, func() *corev1.EventList { return &corev1.EventList{} })
}

// Nodes returns the nodes of the cluster.
func (c *Client) Nodes() *Nodes {
	return NewObjects(c.core, c.codec, "nodes", "",
		func() *corev1.Node { return &corev1.Node{} }, func() *corev1.NodeList { return &corev1.NodeList{} })
}

// Services returns the Services of a namespace.
func (c *Client) Services(namespace string) *Services {
	return NewObjects(c.core, c.codec, "services", namespace,
		func() *corev1.Service { return &corev1.Service{} }, func() *corev1.ServiceList { return &corev1.ServiceList{} })
}

// Jobs returns the batch Jobs of a namespace.
func (c *Client) Jobs(namespace string) *Jobs {
	return NewObjects(c.batch, c.codec, "jobs", namespace,
		func() *batchv1.Job { return &batchv1.Job{} }, func() *batchv1.JobList { return &batchv1.JobList{} })
}

// Leases returns the Leases of a namespace.
func (c *Client) Leases(namespace string) *Leases {
	return NewObjects(c.coordination, c.codec, "leases", namespace,
		func() *coordinationv1.Lease { return &coordinationv1.Lease{} }, func() *coordinationv1.LeaseList { return &coordinationv1.LeaseList{} })
}

// DeviceClasses returns the DeviceClasses of the cluster.
func (c *Client) DeviceClasses() *DeviceClasses {
	return NewObjects(c.resource, c.codec, "deviceclasses", "",
		func() *resourcev1.DeviceClass { return &resourcev1.DeviceClass{} }, func() *resourcev1.DeviceClassList { return &resourcev1.DeviceClassList{} })
}

// ResourceClaims returns the ResourceClaims of a namespace.
func (c *Client) ResourceClaims(namespace string) *ResourceClaims {
	return NewObjects(c.resource, c.codec, "resourceclaims", namespace,
		func() *resourcev1.ResourceClaim { return &resourcev1.ResourceClaim{} }, func() *resourcev1.ResourceClaimList { return &resourcev1.ResourceClaimList{} })
}

// ResourceSlices returns the ResourceSlices of the cluster.
func (c *Client) ResourceSlices() *ResourceSlices {
	return NewObjects(c.resource, c.codec, "resourceslices", "",
		func() *resourcev1.ResourceSlice { return &resourcev1.ResourceSlice{} }, func() *resourcev1.ResourceSliceList { return &resourcev1.ResourceSliceList{} })
}

// ReviewToken asks the API server whose a token is.
func (c *Client) ReviewToken(ctx context.Context, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	answer := &authenticationv1.TokenReview{}
	err := c.authentication.Post().Resource("tokenreviews").VersionedParams(&metav1.CreateOptions{}, c.codec).Body(review).Do(ctx).Into(answer)
	return answer, err
}
