package trainingjob

import (
	"bytes"
	_ "embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// How the API names the resource.
const (
	Group    = "quartet.sched"
	Version  = "v1alpha1"
	Kind     = "TrainingJob"
	Resource = "trainingjobs"
)

// FieldManager is in whose name the scheduler applies the status.
const FieldManager = "quartet"

// GroupVersion is that of the resource.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: Version} }

// GroupVersionKind is that of a TrainingJob, as an owner reference names it.
func GroupVersionKind() schema.GroupVersionKind { return GroupVersion().WithKind(Kind) }

//go:embed crd.yaml
var definition []byte

// Definition is the CustomResourceDefinition, in YAML.
func Definition() []byte { return bytes.Clone(definition) }

// AddToScheme makes the types known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion(), &TrainingJob{}, &TrainingJobList{})
	metav1.AddToGroupVersion(s, GroupVersion())
	return nil
}
