package kubeclient

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Pods are the pods of a namespace, or of all namespaces.
type Pods struct {
	*Objects[*corev1.Pod, *corev1.PodList]
}

// Pods returns the pods of a namespace.
func (c *Client) Pods(namespace string) Pods {
	return Pods{NewObjects(c.core, c.codec, "pods", namespace,
		func() *corev1.Pod { return &corev1.Pod{} }, func() *corev1.PodList { return &corev1.PodList{} })}
}

// Bind puts a pod on the node that a binding names.
func (p Pods) Bind(ctx context.Context, binding *corev1.Binding, opts metav1.CreateOptions) error {
	return p.on(p.client.Post(), binding.Name, "binding").VersionedParams(&opts, p.codec).Body(binding).Do(ctx).Error()
}

// Log returns a request for the output of a pod.
func (p Pods) Log(name string, opts *corev1.PodLogOptions) *rest.Request {
	return p.on(p.client.Get(), name, "log").VersionedParams(opts, p.codec)
}
