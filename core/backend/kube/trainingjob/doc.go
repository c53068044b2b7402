// Package trainingjob is the custom resource of a job on Kubernetes.
package trainingjob

import (
	_ "k8s.io/api/core/v1"
	_ "k8s.io/client-go/gentype"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/kubernetes/fake"
	_ "k8s.io/client-go/informers"
	_ "k8s.io/client-go/tools/clientcmd"
	_ "k8s.io/client-go/rest"
	_ "sigs.k8s.io/yaml"
)
