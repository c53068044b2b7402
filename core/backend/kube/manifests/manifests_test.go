package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/quartet-sched/quartet/core"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

// standIn is a custom resource that is like the real one in what manifests need of it.
const standIn = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: trainingjobs.quartet.sched
spec:
  group: quartet.sched
  scope: Namespaced
  names: {kind: TrainingJob, plural: trainingjobs, singular: trainingjob, shortNames: [tj]}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

type manifest map[string]any

// objects reads a stream as whoever applies it does.
func objects(t interface{ Fatal(...any) }, stream []byte) []manifest {
	var all []manifest
	decoder := yaml.NewDecoder(bytes.NewReader(stream))
	for {
		var o manifest
		if err := decoder.Decode(&o); err != nil {
			if err.Error() == "EOF" {
				return all
			}
			t.Fatal(err)
		}
		if o != nil {
			all = append(all, o)
		}
	}
}

// in is the value under keys of nested mappings.
func (m manifest) in(keys ...string) any {
	var value any = map[string]any(m)
	for _, key := range keys {
		switch inner := value.(type) {
		case map[string]any:
			value = inner[key]
		case manifest:
			value = inner[key]
		default:
			return nil
		}
	}
	return value
}

// id names an object within a cluster.
func (m manifest) id() string {
	return fmt.Sprint(m["kind"], " ", m.in("metadata", "namespace"), "/", m.in("metadata", "name"))
}

func byID(all []manifest) map[string]manifest {
	named := map[string]manifest{}
	for _, o := range all {
		named[o.id()] = o
	}
	return named
}

func render(t *testing.T, o Options) []manifest {
	t.Helper()
	stream, err := Render(o)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, stream)
}

func TestWhatIsInstalled(t *testing.T) {
	base := []string{
		"Namespace <nil>/quartet", "ServiceAccount quartet/quartet",
		"ClusterRole <nil>/quartet", "ClusterRoleBinding <nil>/quartet", "Role quartet/quartet", "RoleBinding quartet/quartet",
		"ClusterRole <nil>/quartet-trainingjobs-edit", "ClusterRole <nil>/quartet-trainingjobs-view",
		"ConfigMap quartet/quartet", "Deployment quartet/quartet", "Service quartet/quartet-metrics", "Service quartet/quartet-agent",
		"NetworkPolicy quartet/quartet", "PodDisruptionBudget quartet/quartet",
	}
	with := func(more ...string) []string { return append(slices.Clone(base), more...) }
	for name, tc := range map[string]struct {
		options Options
		want    []string
	}{
		"nothing asked for":    {Options{}, base},
		"the custom resource":  {Options{CRD: []byte(standIn)}, slices.Insert(slices.Clone(base), 1, "CustomResourceDefinition <nil>/trainingjobs.quartet.sched")},
		"devices by claims":    {Options{DRA: true}, with("ClusterRole <nil>/quartet-dra", "ClusterRoleBinding <nil>/quartet-dra")},
		"nodes on demand":      {Options{Scaler: true}, with("ClusterRole <nil>/quartet-scaler", "ClusterRoleBinding <nil>/quartet-scaler")},
		"a dashboard":          {Options{Monitoring: true}, with("ConfigMap quartet/quartet-dashboard")},
		"none of it is copied": {Options{Namespace: "quartet"}, base},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, o := range render(t, tc.options) {
				got = append(got, o.id())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestLeastRights lists every right that the controller has, as docs/kubernetes-install.md does. A new one belongs into both.
func TestLeastRights(t *testing.T) {
	want := map[string][]string{
		"quartet": {
			"trainingjobs.quartet.sched create,get,list,update,watch", "trainingjobs/status.quartet.sched get,patch,update", "trainingjobs/finalizers.quartet.sched update",
			"pods create,delete,get,list,patch,watch", "pods/binding create", "pods/finalizers update", "pods/status patch", "jobs.batch list,watch", "nodes get,list,watch",
			"services create,list,watch", "events create,patch",
			"tokenreviews.authentication.k8s.io create",
		},
		"quartet in its namespace": {
			"leases.coordination.k8s.io create", "leases.coordination.k8s.io " + LeaseName + ": get,update", "configmaps create",
			"configmaps " + StateName + ": get,update", "events create,patch",
		},
		"quartet-dra": {
			"resourceclaims.resource.k8s.io create,delete,get,list,update,watch", "resourceclaims/status.resource.k8s.io update",
			"resourceclaims/binding.resource.k8s.io update", "resourceslices.resource.k8s.io get,list,watch", "deviceclasses.resource.k8s.io get,list,watch",
		},
		"quartet-scaler": {"nodeclaims.karpenter.sh create,delete,get,list,watch"},
		"quartet-trainingjobs-edit": {
			"trainingjobs.quartet.sched create,delete,deletecollection,get,list,patch,update,watch", "trainingjobs/status.quartet.sched get",
		},
		"quartet-trainingjobs-view": {"trainingjobs.quartet.sched get,list,watch", "trainingjobs/status.quartet.sched get,list,watch"},
	}
	got := rightsOf(render(t, Options{DRA: true, Scaler: true}))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// rightsOf lists what roles give, by role, as RESOURCE.GROUP [NAME:] VERB,VERB.
func rightsOf(all []manifest) map[string][]string {
	got := map[string][]string{}
	for _, o := range all {
		name, _ := o.in("metadata", "name").(string)
		switch o["kind"] {
		case "Role":
			name += " in its namespace"
		case "ClusterRole":
		default:
			continue
		}
		for _, r := range o["rules"].([]any) {
			rule := r.(manifest)
			for _, resource := range rule["resources"].([]any) {
				right := resource.(string)
				for _, group := range rule["apiGroups"].([]any) {
					if group != "" {
						right += "." + group.(string)
					}
				}
				names, _ := rule["resourceNames"].([]any)
				for _, name := range names {
					right += " " + name.(string) + ":"
				}
				var verbs []string
				for _, verb := range rule["verbs"].([]any) {
					verbs = append(verbs, verb.(string))
				}
				slices.Sort(verbs)
				got[name] = append(got[name], right+" "+strings.Join(verbs, ","))
			}
		}
	}
	return got
}

func TestBadOptions(t *testing.T) {
	config := func(text string) Options { return Options{Config: []byte(text)} }
	for name, tc := range map[string]struct {
		options Options
		want    []string // paths
	}{
		"a namespace with a capital":  {Options{Namespace: "Quartet"}, []string{"namespace"}},
		"one that is too long":        {Options{Namespace: strings.Repeat("a", 64)}, []string{"namespace"}},
		"one of the system":           {Options{Namespace: "kube-system"}, []string{"namespace"}},
		"everybody's":                 {Options{Namespace: "default"}, []string{"namespace"}},
		"an image with a space":       {Options{Image: "quartet: latest"}, []string{"image"}},
		"an image and a line":         {Options{Image: "quartet\nreplicas: 9"}, []string{"image"}},
		"a digest that is too short":  {Options{Image: "quartet@sha256:abc"}, []string{"image"}},
		"replicas below none":         {Options{Replicas: -1}, []string{"replicas"}},
		"too many replicas":           {Options{Replicas: 10}, []string{"replicas"}},
		"a resource without a domain": {Options{AcceleratorResource: "gpu"}, []string{"accelerator_resource"}},
		"one of Kubernetes itself":    {Options{AcceleratorResource: "kubernetes.io/gpu"}, []string{"accelerator_resource"}},
		"settings that are written elsewhere": {
			Options{AcceleratorResource: "a.b/c", Config: []byte("x: &x {a: b}\nbackend: {type: kubernetes, config: *x}")}, []string{"config.backend.config"},
		},
		"a config that is none":     {config("a: b: c"), []string{"config"}},
		"a config of bytes":         {config("\xff"), []string{"config"}},
		"a config that is too long": {config("#" + strings.Repeat("x", maxConfig)), []string{"config"}},
		"two configs":               {config("backend: {type: kubernetes}\n---\nbackend: {type: kubernetes}\n"), []string{"config"}},
		"a config of another shape": {config("backend: [kubernetes]"), []string{"config"}},
		"a resource of 64 letters":  {Options{AcceleratorResource: "a.b/" + strings.Repeat("c", 64)}, []string{"accelerator_resource"}},
		"a domain of 254":           {Options{AcceleratorResource: strings.Repeat("a.", 126) + "bb/c"}, []string{"accelerator_resource"}},
		"another backend":           {config("backend: {type: local}"), []string{"config.backend.type"}},
		"no backend":                {config("version: 1"), []string{"config.backend.type"}},
		"two resources": {
			Options{AcceleratorResource: "a.b/c", Config: []byte("backend: {type: kubernetes, config: {resource: a.b/d}}")},
			[]string{"config.backend.config.resource"},
		},
		"claims without their rights": {
			config("backend: {type: kubernetes, config: {device_class: gpu.nvidia.com}}"), []string{"config.backend.config.device_class"},
		},
		"a custom resource that is none": {Options{CRD: []byte("kind: Secret")}, []string{"crd"}},
		"an empty custom resource":       {Options{CRD: []byte("# none")}, []string{"crd"}},
		"a list for one":                 {Options{CRD: []byte("[1]")}, []string{"crd"}},
		"everything at once": {
			Options{Namespace: "-", Image: "-", Replicas: 100, AcceleratorResource: "-", Config: []byte("-"), CRD: []byte("-")},
			[]string{"namespace", "image", "replicas", "accelerator_resource", "config", "crd"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := Render(tc.options)
			var problems core.Diagnostics
			if !errors.As(err, &problems) || stream != nil {
				t.Fatalf("%d bytes, error %v", len(stream), err)
			}
			var got []string
			for _, p := range problems {
				got = append(got, p.Path)
				if p.Hint == "" || p.Summary == "" {
					t.Errorf("%+v says too little", p)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestGoodOptions(t *testing.T) {
	said := []byte("backend: {type: kubernetes, config: {resource: a.b/c}}")
	for name, o := range map[string]Options{
		"a resource of 63 letters":      {AcceleratorResource: "a.b/" + strings.Repeat("c", 63)},
		"a domain of 253":               {AcceleratorResource: strings.Repeat("a.", 126) + "b/c"},
		"the config says the resource":  {Config: said},
		"both say the same":             {Config: said, AcceleratorResource: "a.b/c"},
		"a number for a namespace":      {Namespace: "123"},
		"a word that YAML knows":        {Namespace: "null"},
		"a namespace of 63":             {Namespace: strings.Repeat("a", 63)},
		"a config of one empty setting": {AcceleratorResource: "a.b/c", Config: []byte("---\nbackend: {type: kubernetes, config: }\n...\n")},
	} {
		t.Run(name, func(t *testing.T) {
			o = o.withDefaults()
			for _, m := range render(t, o) {
				if m["kind"] == "Namespace" && m.in("metadata", "name") != o.Namespace {
					t.Errorf("namespace %v", m.in("metadata", "name"))
				}
				if config, _ := m.in("data", ConfigKey).(string); m["kind"] == "ConfigMap" && strings.Count(config, ResourceSetting+": "+o.AcceleratorResource) != 1 &&
					o.AcceleratorResource != "" {
					t.Errorf("config %q", config)
				}
			}
		})
	}
}

// TestOptionsReachTheirPlaces draws good options.
func TestOptionsReachTheirPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			Namespace: rapid.StringMatching(`[a-z]([-a-z0-9]{0,10}[a-z0-9])?`).Draw(t, "namespace"),
			Image:     rapid.SampledFrom([]string{"quartet:1", "localhost:5000/a/b_c:v1.2-x", "ghcr.io/a/b@sha256:" + strings.Repeat("0a", 32)}).Draw(t, "image"),
			Replicas:  rapid.IntRange(1, maxReplicas).Draw(t, "replicas"),
			DRA:       rapid.Bool().Draw(t, "dra"), Scaler: rapid.Bool().Draw(t, "scaler"), Monitoring: rapid.Bool().Draw(t, "monitoring"),
			AcceleratorResource: rapid.SampledFrom([]string{"", "amd.com/gpu", "nvidia.com/mig-1g.5gb"}).Draw(t, "resource"),
		}
		comment := rapid.StringMatching(`[ -~äß☃]*`).Draw(t, "comment")
		o.Config = []byte("# " + comment + rapid.SampledFrom([]string{"\n", "\n\n", "\n#\n"}).Draw(t, "end") + "backend:\n    type: kubernetes" +
			rapid.SampledFrom([]string{"", "\n", "\n\n", " \n"}).Draw(t, "last"))
		stream, err := Render(o)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Render(o)
		if err != nil || !bytes.Equal(stream, again) {
			t.Fatalf("the same options make other bytes (%v)", err)
		}
		named := byID(objects(t, stream))
		for id, m := range named {
			if at := m.in("metadata", "namespace"); at != nil && at != o.Namespace {
				t.Errorf("%s is elsewhere", id)
			}
			subjects, _ := m["subjects"].([]any)
			for _, s := range subjects {
				if at := s.(manifest)["namespace"]; at != o.Namespace {
					t.Errorf("%s gives rights to namespace %v", id, at)
				}
			}
		}
		config, _ := named["ConfigMap "+o.Namespace+"/quartet"].in("data", ConfigKey).(string)
		if o.AcceleratorResource == "" && config != string(o.Config) {
			t.Errorf("config %q, want %q", config, o.Config)
		}
		var parsed struct {
			Backend struct {
				Type   string
				Config map[string]string
			}
		}
		if err := yaml.Unmarshal([]byte(config), &parsed); err != nil || parsed.Backend.Type != backendType ||
			parsed.Backend.Config[ResourceSetting] != o.AcceleratorResource {
			t.Errorf("config %q (%v), want resource %q", config, err, o.AcceleratorResource)
		}
		deployment := named["Deployment "+o.Namespace+"/quartet"]
		if got := deployment.in("spec", "replicas"); got != o.Replicas {
			t.Errorf("replicas %v", got)
		}
		if got := deployment.in("spec", "template", "metadata", "annotations", hashAnnotation); got != sum(config) {
			t.Errorf("annotation %v is not the sum of the config", got)
		}
		container := deployment.in("spec", "template", "spec", "containers").([]any)[0].(manifest)
		if container["image"] != o.Image {
			t.Errorf("image %v, want %q", container["image"], o.Image)
		}
		for kind, asked := range map[string]bool{"ClusterRole <nil>/quartet-dra": o.DRA, "ClusterRole <nil>/quartet-scaler": o.Scaler} {
			if _, found := named[kind]; found != asked {
				t.Errorf("%s is there: %v", kind, found)
			}
		}
	})
}

// TestManifestsAgree holds what is said in two places.
func TestManifestsAgree(t *testing.T) {
	all := render(t, Options{})
	named := byID(all)
	pod := named["Deployment quartet/quartet"].in("spec", "template").(manifest)
	labels := pod.in("metadata", "labels").(manifest)
	selected := func(selector any, extra string) {
		t.Helper()
		for key, value := range selector.(manifest) {
			if key != extra && labels[key] != value {
				t.Errorf("pods of the controller have not %s=%v", key, value)
			}
		}
	}
	selected(named["Deployment quartet/quartet"].in("spec", "selector", "matchLabels"), "")
	selected(named["PodDisruptionBudget quartet/quartet"].in("spec", "selector", "matchLabels"), "")
	selected(named["NetworkPolicy quartet/quartet"].in("spec", "podSelector", "matchLabels"), "")
	selected(named["Service quartet/quartet-metrics"].in("spec", "selector"), "")
	selected(named["Service quartet/"+AgentService].in("spec", "selector"), LeaderLabel)
	if named["Service quartet/"+AgentService].in("spec", "selector", LeaderLabel) != "true" {
		t.Error("the agent's service selects more than the leader")
	}

	stream, err := Render(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{
		fmt.Sprint("containerPort: ", AgentPort), fmt.Sprint("containerPort: ", MetricsPort), fmt.Sprint("port: ", AgentPort), JobLabel, MonitoringLabel,
		"image: " + DefaultImage, fmt.Sprint("replicas: ", DefaultReplicas), fmt.Sprintf("%q]", fmt.Sprint(":", MetricsPort)),
	} {
		if !strings.Contains(string(stream), word) {
			t.Errorf("no %q", word)
		}
	}

	// The base is right without Render, too.
	raw, err := load("base/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := named["ConfigMap quartet/quartet"].in("data", ConfigKey).(string)
	if got := raw[0].text("spec", "template", "metadata", "annotations", hashAnnotation); got != sum(config) {
		t.Errorf("base/deployment.yaml has the sum %s of the config, which is %s", got, sum(config))
	}
	values, err := chartValues()
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Image    string
		Replicas int
		Config   string
	}
	if err := yaml.Unmarshal(values, &said); err != nil {
		t.Fatal(err)
	}
	if said.Image != DefaultImage || said.Replicas != DefaultReplicas || said.Config != config {
		t.Errorf("the chart's values are %+v", said)
	}
	if documented := slices.Sorted(maps.Keys(conditions)); len(documented) != 4 {
		t.Errorf("conditions on %v", documented)
	}
}

func TestTreesNeedTheCustomResource(t *testing.T) {
	for name, make := range map[string]func(crd []byte) ([]File, error){
		"kustomize": Kustomize,
		"chart":     func(crd []byte) ([]File, error) { return Chart("0.1.0", crd) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, crd := range []string{"", "kind: Secret"} {
				var problems core.Diagnostics
				if files, err := make([]byte(crd)); !errors.As(err, &problems) || files != nil {
					t.Errorf("%q makes %d files (%v)", crd, len(files), err)
				}
			}
			files, err := make([]byte(standIn))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(files, func(f File) bool { return string(f.Content) == standIn }) {
				t.Error("the custom resource is not among the files")
			}
		})
	}
	for _, version := range []string{"", "v1.0.0", "1.0", "01.0.0", "1.0.0 "} {
		if _, err := Chart(version, []byte(standIn)); err == nil {
			t.Errorf("version %q is taken", version)
		}
	}
}
