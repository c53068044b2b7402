package trainingjob

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// shape is what this test reads of a definition.
type shape struct {
	Type       string
	Required   []string
	Enum       []string
	Properties map[string]shape
	Items      *shape
}

// kinds are the types of the definition by those of Go.
var kinds = map[reflect.Kind]string{
	reflect.Struct: "object", reflect.Slice: "array", reflect.String: "string", reflect.Bool: "boolean",
	reflect.Int: "integer", reflect.Int32: "integer", reflect.Int64: "integer", reflect.Float64: "number",
}

// agree holds a type to its shape: the API server drops a field that the definition lacks.
func agree(t *testing.T, path string, of reflect.Type, s shape) {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of {
	case reflect.TypeFor[metav1.Time]():
		of = reflect.TypeFor[string]()
	case reflect.TypeFor[runtime.RawExtension]():
		of = reflect.TypeFor[struct{}]()
	}
	if want := kinds[of.Kind()]; s.Type != want {
		t.Errorf("%s is of type %q, want %q", path, s.Type, want)
	}
	switch of.Kind() {
	case reflect.Slice:
		agree(t, path+"[]", of.Elem(), *s.Items)
	case reflect.Struct:
		var names, always []string
		for field := range of.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
			if !strings.Contains(options, "omit") {
				always = append(always, name)
			}
			agree(t, path+"."+name, field.Type, s.Properties[name])
		}
		slices.Sort(names)
		if diff := cmp.Diff(names, slices.Sorted(maps.Keys(s.Properties)), ignoreEmpty); diff != "" {
			t.Errorf("%s (-type +definition):\n%s", path, diff)
		}
		for _, name := range s.Required {
			if !slices.Contains(always, name) {
				t.Errorf("%s.%s is required, and not always written", path, name)
			}
		}
	}
}

var ignoreEmpty = cmp.Transformer("known", func(names []string) []string { return append([]string{}, names...) })

// The types and the definition know the same fields and states.
func TestDefinition(t *testing.T) {
	var crd struct {
		Metadata struct{ Name string }
		Spec     struct {
			Group    string
			Names    struct{ Kind, Plural string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema shape }
			}
		}
	}
	if err := yaml.Unmarshal(Definition(), &crd); err != nil {
		t.Fatal(err)
	}
	got := []string{crd.Metadata.Name, crd.Spec.Group, crd.Spec.Versions[0].Name, crd.Spec.Names.Kind, crd.Spec.Names.Plural}
	if diff := cmp.Diff([]string{Resource + "." + Group, Group, Version, Kind, Resource}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	top := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	agree(t, "spec", reflect.TypeFor[Spec](), top.Properties["spec"])
	agree(t, "status", reflect.TypeFor[Status](), top.Properties["status"])
	states := []string{}
	for _, s := range []State{Pending, Waiting, Starting, Running, Completed, Rejected, Failed, Suspended} {
		states = append(states, string(s))
	}
	if diff := cmp.Diff(states, top.Properties["status"].Properties["state"].Enum); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	changed := Definition()
	changed[0]++
	if Definition()[0] == changed[0] {
		t.Error("who changes the bytes changes those of others")
	}
}
