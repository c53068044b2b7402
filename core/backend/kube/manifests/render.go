//go:generate go run ../../../../tools/dashboard -o components/monitoring/dashboard.yaml

package manifests

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"path"
	"strconv"

	"github.com/quartet-sched/quartet/core"
	"go.yaml.in/yaml/v3"
)

//go:embed base components overlays
var tree embed.FS

// Files of the base, in the order in which they are applied, and those of the components.
var (
	baseFiles = []string{
		"namespace.yaml", "service-account.yaml", "roles.yaml", "user-roles.yaml", "config.yaml", "deployment.yaml", "services.yaml",
		"network-policy.yaml", "disruption-budget.yaml",
	}
	draFile, scalerFile = "components/dra/roles.yaml", "components/scaler/roles.yaml"
	dashboardFile       = "components/monitoring/dashboard.yaml"
)

const hashAnnotation = "quartet.sched/config-sha256"

// Render returns everything that installs the controller, as one stream of YAML in the order in which it must be applied. The
// same options give the same bytes. Bad options are reported together, as [core.Diagnostics].
func Render(o Options) ([]byte, error) {
	o = o.withDefaults()
	if err := o.check().Err(); err != nil {
		return nil, err
	}
	var all []document
	for _, file := range o.files() {
		documents, err := load(file)
		if err != nil {
			return nil, err
		}
		if all = append(all, documents...); file == crdAfter && len(o.CRD) > 0 {
			documents, err := parse("crd", o.CRD)
			if err != nil {
				return nil, err
			}
			all = append(all, documents...)
		}
	}
	config, err := o.config(all)
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		if err := d.edit(edits{
			namespace: o.Namespace, image: o.Image, replicas: strconv.Itoa(o.Replicas), config: config, hash: sum(config),
		}); err != nil {
			return nil, err
		}
	}
	return encode(all)
}

// crdAfter is the file that the custom resource comes after.
const crdAfter = "base/namespace.yaml"

// files are those that are asked for.
func (o *Options) files() []string {
	var files []string
	for _, name := range baseFiles {
		files = append(files, path.Join("base", name))
	}
	for _, component := range [...]struct {
		file  string
		asked bool
	}{{draFile, o.DRA}, {scalerFile, o.Scaler}, {dashboardFile, o.Monitoring}} {
		if component.asked {
			files = append(files, component.file)
		}
	}
	return files
}

// sum identifies a config.
func sum(config string) string {
	s := sha256.Sum256([]byte(config))
	return hex.EncodeToString(s[:])
}

func load(file string) ([]document, error) {
	content, err := tree.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parse(file, content)
}

// config is the composition that the controller runs with: that of the options, or the one in the base.
func (o *Options) config(documents []document) (string, error) {
	config := string(o.Config)
	if config == "" {
		config = defaultConfig(documents)
	}
	if o.AcceleratorResource == "" {
		return config, nil
	}
	parsed, err := parse("config", []byte(config))
	if err != nil {
		return "", err
	}
	settings := ensure(parsed[0].at("backend"), "config")
	if settings.Kind != yaml.MappingNode { // an alias, whose anchor may have another use
		return "", core.Diagnostics{{
			Path: "config.backend.config", Summary: "the config already sets it elsewhere", Hint: "say " + ResourceSetting + " there, and not as an option",
		}}
	}
	setText(ensure(settings, ResourceSetting), o.AcceleratorResource)
	edited, err := encode(parsed)
	return string(edited), err
}

func defaultConfig(documents []document) string {
	for _, d := range documents {
		if d.isConfig() {
			return d.text("data", ConfigKey)
		}
	}
	return ""
}

func (d document) isConfig() bool {
	return d.text("kind") == "ConfigMap" && d.text("metadata", "name") == Name
}

// edits are what differs between installations.
type edits struct{ namespace, image, replicas, config, hash string }

func (d document) edit(e edits) error {
	if d.at("metadata", "namespace") != nil {
		if err := d.put(e.namespace, "metadata", "namespace"); err != nil {
			return err
		}
	}
	switch kind := d.text("kind"); {
	case kind == "Namespace":
		return d.put(e.namespace, "metadata", "name")
	case kind == "ClusterRoleBinding" || kind == "RoleBinding":
		for _, subject := range d.at("subjects").Content {
			setText(child(subject, "namespace"), e.namespace)
		}
	case d.isConfig():
		return d.put(e.config, "data", ConfigKey)
	case kind == "Deployment":
		return d.editDeployment(e)
	}
	return nil
}

func (d document) editDeployment(e edits) error {
	replicas := d.at("spec", "replicas")
	replicas.Value = e.replicas
	if err := d.put(e.hash, "spec", "template", "metadata", "annotations", hashAnnotation); err != nil {
		return err
	}
	containers := d.at("spec", "template", "spec", "containers")
	if containers == nil || len(containers.Content) != 1 {
		return errors.New("the deployment has not one container")
	}
	setText(child(containers.Content[0], "image"), e.image)
	return nil
}
