package manifests

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/quartet-sched/quartet/core"
)

// What an installation is where nothing else is asked for.
const (
	DefaultNamespace = "quartet"
	DefaultImage     = "quartet:latest"
	DefaultReplicas  = 2
)

// Names that the controller and its manifests have to agree on.
const (
	// Name is that of the service account, the roles, the deployment and the config map.
	Name = "quartet"
	// LeaseName and StateName are those of the lease and the config map, besides which the controller may change none.
	LeaseName = "quartet"
	StateName = "quartet-state"
	// ConfigKey is the key of the composition in the config map.
	ConfigKey = "config.yaml"
	// JobLabel is on every member of a job: only these reach the agent's port.
	JobLabel = "quartet.sched/job"
	// LeaderLabel is "true" on the pod that leads, which puts it there itself: the agent's service selects by it.
	LeaderLabel = "quartet.sched/leader"
	// MonitoringLabel is "true" on namespaces whose pods may read metrics.
	MonitoringLabel = "quartet.sched/monitoring"
	// AgentService is the service that agents of jobs speak to, at AgentPort.
	AgentService = "quartet-agent"
	AgentPort    = 9443
	MetricsPort  = 9476
	// ResourceSetting is the setting of the backend that names the extended resource of devices.
	ResourceSetting = "resource"
	// ClassSetting is the setting of the backend that names the DeviceClass of devices, where they are given by claims.
	ClassSetting = "device_class"

	backendType = "kubernetes"
)

// Bounds of options.
const (
	maxReplicas = 9
	maxConfig   = 512 << 10 // bytes; a config map holds 1 MiB
	maxLabel    = 63
	maxPrefix   = 253
)

// Options say what to install. The zero value is a default installation without the custom resource.
type Options struct {
	Namespace string // DefaultNamespace when empty
	Image     string // DefaultImage when empty
	Config    []byte // composition; first come, first served when empty
	CRD       []byte // the custom resource, as YAML; left out when empty
	Replicas  int    // controllers, of which one leads; DefaultReplicas when 0

	// AcceleratorResource is the extended resource that counts devices, such as amd.com/gpu; empty for what the config says.
	AcceleratorResource string

	DRA        bool // may allocate resource claims
	Scaler     bool // may ask for nodes by Karpenter's node claims
	Monitoring bool // with the dashboard
}

func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.Image == "" {
		o.Image = DefaultImage
	}
	if o.Replicas == 0 {
		o.Replicas = DefaultReplicas
	}
	return o
}

var (
	label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	// image is a reference as registries know it: an optional host, a path, a tag or a digest or both.
	image = regexp.MustCompile(`^([a-zA-Z0-9][-a-zA-Z0-9.]*(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$`)
	// semantic is a version as semver.org has it, in short.
	semantic = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	name     = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
)

// check lists what is wrong with options that have their defaults.
func (o *Options) check() core.Diagnostics {
	var problems core.Diagnostics
	report := func(path, summary, hint string) {
		problems = append(problems, core.Diagnostic{Path: path, Summary: summary, Hint: hint})
	}
	switch {
	case len(o.Namespace) > maxLabel || !label.MatchString(o.Namespace):
		report("namespace", fmt.Sprintf("%q is no name of a namespace", o.Namespace), "use at most 63 lower case letters, digits and dashes, such as quartet")
	case o.Namespace == "default" || strings.HasPrefix(o.Namespace, "kube-"):
		report("namespace", fmt.Sprintf("%q has other tenants, and would be restricted", o.Namespace), "use a namespace of its own, such as quartet")
	}
	if !image.MatchString(o.Image) {
		report("image", fmt.Sprintf("%q is no reference of an image", o.Image), "write REGISTRY/NAME:TAG or REGISTRY/NAME@sha256:DIGEST")
	}
	if o.Replicas < 1 || o.Replicas > maxReplicas {
		report("replicas", fmt.Sprintf("%d replicas", o.Replicas), fmt.Sprintf("use 1 to %d: one leads, the others stand by", maxReplicas))
	}
	if o.AcceleratorResource != "" && !extendedResource(o.AcceleratorResource) {
		report("accelerator_resource", fmt.Sprintf("%q is no extended resource", o.AcceleratorResource), "write DOMAIN/NAME, such as nvidia.com/gpu")
	}
	return append(append(problems, o.checkConfig()...), o.checkCRD()...)
}

// extendedResource reports whether a resource is one that device plugins may offer.
func extendedResource(resource string) bool {
	domain, rest, found := strings.Cut(resource, "/")
	if !found || len(domain) > maxPrefix || len(rest) > maxLabel || !name.MatchString(rest) {
		return false
	}
	for part := range strings.SplitSeq(domain, ".") {
		if !label.MatchString(part) {
			return false
		}
	}
	return domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io")
}

// checkConfig looks at what an installation needs of a composition. The loader of configs checks the rest.
func (o *Options) checkConfig() core.Diagnostics {
	if len(o.Config) == 0 {
		return nil
	}
	problem := func(path, summary, hint string) core.Diagnostics {
		return core.Diagnostics{{Path: path, Summary: summary, Hint: hint}}
	}
	if len(o.Config) > maxConfig || !utf8.Valid(o.Config) {
		return problem("config", fmt.Sprintf("%d bytes that a config map cannot hold", len(o.Config)), fmt.Sprintf("at most %d bytes of UTF-8", maxConfig))
	}
	var parsed struct {
		Backend struct {
			Type   string         `yaml:"type"`
			Config map[string]any `yaml:"config"`
		} `yaml:"backend"`
	}
	documents, err := parse("config", o.Config)
	if err == nil && len(documents) != 1 {
		err = fmt.Errorf("config: %d documents", len(documents))
	}
	if err == nil {
		err = documents[0].root.Decode(&parsed)
	}
	if err != nil {
		return problem("config", strings.TrimPrefix(err.Error(), "config: "), "give a composition as YAML: quartet config init writes one")
	}
	if parsed.Backend.Type != backendType {
		return problem("config.backend.type", fmt.Sprintf("%q schedules no cluster", parsed.Backend.Type), "write backend: {type: kubernetes}")
	}
	if said, found := parsed.Backend.Config[ResourceSetting]; found && o.AcceleratorResource != "" && said != o.AcceleratorResource {
		return problem("config.backend.config."+ResourceSetting, fmt.Sprintf("%v, and the option says %q", said, o.AcceleratorResource), "say it in one place")
	}
	if class, found := parsed.Backend.Config[ClassSetting]; found && class != "" && !o.DRA {
		return problem("config.backend.config."+ClassSetting, "devices by claims take rights of their own", "ask for them: --dra")
	}
	return nil
}

func (o *Options) checkCRD() core.Diagnostics {
	if len(o.CRD) == 0 {
		return nil
	}
	documents, err := parse("crd", o.CRD)
	if err == nil && len(documents) == 0 {
		err = errors.New("crd: it is empty")
	}
	for _, d := range documents {
		if kind := d.text("kind"); kind != "CustomResourceDefinition" {
			err = fmt.Errorf("crd: an object of kind %q, not CustomResourceDefinition", kind)
		}
	}
	if err != nil {
		return core.Diagnostics{{Path: "crd", Summary: strings.TrimPrefix(err.Error(), "crd: "), Hint: "give the YAML of package trainingjob"}}
	}
	return nil
}
