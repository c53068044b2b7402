package manifests

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"go.yaml.in/yaml/v3"
)

// File is one of a tree. Its name has slashes.
type File struct {
	Name    string // path below the root of the tree
	Content []byte // of the file
}

//go:embed chart
var chart embed.FS

// kustomizeRoot is the folder of the tree; the custom resource is beside it, as it is in the repository.
const (
	kustomizeRoot = "manifests"
	crdFolder     = "trainingjob"
)

// Kustomize returns the tree with its custom resource, ready to be built: manifests/overlays/default is what [Render] makes
// without options, and overlays/full has every component. Files are in order of their names.
func Kustomize(crd []byte) ([]File, error) {
	o := Options{CRD: crd}
	if problems := append(needed(crd), o.checkCRD()...); len(problems) > 0 {
		return nil, problems.Err()
	}
	files, err := read(tree, kustomizeRoot)
	if err != nil {
		return nil, err
	}
	return append(files,
		File{path.Join(crdFolder, "crd.yaml"), crd},
		File{path.Join(crdFolder, "kustomization.yaml"), []byte(crdKustomization)}), nil
}

const crdKustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - crd.yaml
`

func needed(crd []byte) core.Diagnostics {
	if len(crd) > 0 {
		return nil
	}
	return core.Diagnostics{{Path: "crd", Summary: "there is none", Hint: "give the YAML of package trainingjob"}}
}

func read(from embed.FS, to string) ([]File, error) {
	var files []File
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := from.ReadFile(name)
		files = append(files, File{path.Join(to, name), content})
		return err
	})
	return files, err
}

// Chart returns a Helm chart, made from the same manifests, in a folder of its name. The version is one of semantic versioning,
// without a v.
func Chart(version string, crd []byte) ([]File, error) {
	o := Options{CRD: crd}
	problems := append(needed(crd), o.checkCRD()...)
	if !semantic.MatchString(version) {
		problems = append(problems, core.Diagnostic{
			Path: "version", Summary: fmt.Sprintf("%q is no semantic version", version), Hint: "write MAJOR.MINOR.PATCH, such as 0.1.0",
		})
	}
	if len(problems) > 0 {
		return nil, problems.Err()
	}
	about, err := chart.ReadFile("chart/Chart.yaml")
	if err != nil {
		return nil, err
	}
	documents, err := parse("chart/Chart.yaml", about)
	if err != nil {
		return nil, err
	}
	for _, key := range [...]string{"version", "appVersion"} {
		if err := documents[0].put(version, key); err != nil {
			return nil, err
		}
	}
	if about, err = encode(documents); err != nil {
		return nil, err
	}
	values, err := chartValues()
	if err != nil {
		return nil, err
	}
	schema, err := chart.ReadFile("chart/values.schema.json")
	if err != nil {
		return nil, err
	}
	notes, err := chart.ReadFile("chart/NOTES.txt")
	if err != nil {
		return nil, err
	}
	files := []File{
		{"quartet/Chart.yaml", about},
		{"quartet/values.yaml", values},
		{"quartet/values.schema.json", schema},
		{"quartet/crds/trainingjob.yaml", crd},
		{"quartet/templates/NOTES.txt", notes},
	}
	everything := Options{DRA: true, Scaler: true, Monitoring: true}
	for _, source := range everything.files() {
		content, err := template(source)
		if err != nil {
			return nil, err
		}
		files = append(files, File{"quartet/templates/" + templateName(source), content})
	}
	return files, nil
}

// chartValues are the values with the resources and the composition of the base.
func chartValues() ([]byte, error) {
	values, err := chart.ReadFile("chart/values.yaml")
	if err != nil {
		return nil, err
	}
	configs, err := load("base/config.yaml")
	if err != nil {
		return nil, err
	}
	config, err := yaml.Marshal(map[string]string{"config": defaultConfig(configs)})
	if err != nil {
		return nil, err
	}
	deployment, err := load("base/deployment.yaml")
	if err != nil {
		return nil, err
	}
	resources, err := yaml.Marshal(map[string]*yaml.Node{"resources": child(deployment[0].at("spec", "template", "spec", "containers").Content[0], "resources")})
	if err != nil {
		return nil, err
	}
	return slices.Concat(values, []byte("# Resources of the controller.\n"), resources, []byte("# Composition that the controller runs.\n"), config), nil
}

// templateName is that of a file of the tree: base/roles.yaml is roles.yaml, components/dra/roles.yaml dra-roles.yaml.
func templateName(source string) string {
	source = strings.TrimPrefix(strings.TrimPrefix(source, "base/"), "components/")
	return strings.ReplaceAll(source, "/", "-")
}

// Marks stand in a manifest where the chart has an expression. They are words, so that YAML quotes none of them.
const (
	markNamespace = "MARKnamespace"
	markImage     = "MARKimage"
	markReplicas  = "MARKreplicas"
	markConfig    = "MARKconfig"
	markHash      = "MARKhash"
	markPod       = "MARKpod"
	markResources = "MARKresources"
)

// expressions are in the order in which they take the place of marks.
var expressions = strings.NewReplacer(
	"{{", `{{ "{{" }}`, "}}", `{{ "}}" }}`,
	markNamespace, "{{ .Release.Namespace | quote }}",
	markImage, "{{ .Values.image | quote }}",
	markReplicas, "{{ .Values.replicas }}",
	markConfig, "{{ .Values.config | toJson }}",
	markHash, "{{ sha256sum .Values.config }}",
	markResources, "{{ .Values.resources | toJson }}",
	"      "+markPod+": true\n", podExpressions,
)

const podExpressions = `      {{- with .Values.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.tolerations }}
      tolerations: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.priorityClassName }}
      priorityClassName: {{ . | quote }}
      {{- end }}
      {{- with .Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
`

// conditions say by which value a file is asked for.
var conditions = map[string]string{
	"base/namespace.yaml": "namespace",
	draFile:               "dra",
	scalerFile:            "scaler",
	dashboardFile:         "monitoring",
}

// template makes a file of the tree one of the chart.
func template(source string) ([]byte, error) {
	documents, err := load(source)
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		if err := d.edit(edits{markNamespace, markImage, markReplicas, markConfig, markHash}); err != nil {
			return nil, err
		}
		if pod := d.at("spec", "template", "spec"); pod != nil {
			ensure(pod, markPod).SetString("true")
			child(pod, markPod).Tag = "!!bool"
			child(pod, markPod).Style = 0
			for _, container := range child(pod, "containers").Content {
				setText(child(container, "resources"), markResources)
			}
		}
	}
	content, err := encode(documents)
	if err != nil {
		return nil, err
	}
	text := expressions.Replace(string(content))
	if value, found := conditions[source]; found {
		text = "{{- if .Values." + value + " }}\n" + text + "{{- end }}\n"
	}
	return []byte(text), nil
}
