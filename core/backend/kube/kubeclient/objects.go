package kubeclient

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Object is an object of the API, with its metadata.
type Object interface {
	runtime.Object
	metav1.Object
}

// Objects reads and writes the objects of one resource in one namespace. With an empty namespace it is for a resource of the whole
// cluster, or lists and watches the objects of all namespaces. T is the type of an object, L that of a list of them; both are pointers.
type Objects[T Object, L runtime.Object] struct {
	client    rest.Interface
	codec     runtime.ParameterCodec
	resource  string
	namespace string
	newObject func() T
	newList   func() L
}

// NewObjects returns the objects of a resource. The client has to be for the group and version of the resource, and its scheme, as
// the codec's, has to know T and L.
func NewObjects[T Object, L runtime.Object](client rest.Interface, codec runtime.ParameterCodec, resource, namespace string, newObject func() T, newList func() L) *Objects[T, L] {
	return &Objects[T, L]{client, codec, resource, namespace, newObject, newList}
}

// on addresses a request: at the resource, or at one of its objects if a name is given, or at a subresource of that.
func (o *Objects[T, L]) on(r *rest.Request, name string, subresources ...string) *rest.Request {
	r = r.NamespaceIfScoped(o.namespace, o.namespace != "").Resource(o.resource)
	if name != "" {
		r = r.Name(name).SubResource(subresources...)
	}
	return r
}

// read sends a request and decodes the object that is the answer.
func (o *Objects[T, L]) read(ctx context.Context, r *rest.Request) (T, error) {
	object := o.newObject()
	err := r.Do(ctx).Into(object)
	return object, err
}

// Create creates an object and returns it as the API server stored it.
func (o *Objects[T, L]) Create(ctx context.Context, object T, opts metav1.CreateOptions) (T, error) {
	return o.read(ctx, o.on(o.client.Post(), "").VersionedParams(&opts, o.codec).Body(object))
}

// Update replaces an object and returns it as the API server stored it.
func (o *Objects[T, L]) Update(ctx context.Context, object T, opts metav1.UpdateOptions) (T, error) {
	return o.read(ctx, o.on(o.client.Put(), object.GetName()).VersionedParams(&opts, o.codec).Body(object))
}

// UpdateStatus replaces the status of an object and returns it as the API server stored it.
func (o *Objects[T, L]) UpdateStatus(ctx context.Context, object T, opts metav1.UpdateOptions) (T, error) {
	return o.read(ctx, o.on(o.client.Put(), object.GetName(), "status").VersionedParams(&opts, o.codec).Body(object))
}

// Patch changes an object, or a subresource of it, and returns it as the API server stored it.
func (o *Objects[T, L]) Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, opts metav1.PatchOptions, subresources ...string) (T, error) {
	return o.read(ctx, o.on(o.client.Patch(kind), name, subresources...).VersionedParams(&opts, o.codec).Body(patch))
}

// Delete deletes an object.
func (o *Objects[T, L]) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	return o.on(o.client.Delete(), name).Body(&opts).Do(ctx).Error()
}

// Get returns an object by its name.
func (o *Objects[T, L]) Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error) {
	return o.read(ctx, o.on(o.client.Get(), name).VersionedParams(&opts, o.codec))
}

// List returns the objects that options select.
func (o *Objects[T, L]) List(ctx context.Context, opts metav1.ListOptions) (L, error) {
	list := o.newList()
	err := o.on(o.client.Get(), "").VersionedParams(&opts, o.codec).Timeout(timeout(&opts)).Do(ctx).Into(list)
	return list, err
}

// Watch reports each change of the objects that options select.
func (o *Objects[T, L]) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return o.on(o.client.Get(), "").VersionedParams(&opts, o.codec).Timeout(timeout(&opts)).Watch(ctx)
}

// Subresource starts a request of a subresource of an object.
func (o *Objects[T, L]) Subresource(r *rest.Request, name, subresource string, opts runtime.Object) *rest.Request {
	return o.on(r, name, subresource).VersionedParams(opts, o.codec)
}

func timeout(opts *metav1.ListOptions) time.Duration {
	if opts.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*opts.TimeoutSeconds) * time.Second
}

// NewInformer returns a cache of objects that follows their changes once it runs. Only those that the field selector selects are in
// it; all if it is empty.
func NewInformer[T Object, L runtime.Object](objects *Objects[T, L], fieldSelector string, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = fieldSelector
			return objects.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = fieldSelector
			return objects.Watch(ctx, opts)
		},
	}, objects.newObject(), 0, indexers)
}
