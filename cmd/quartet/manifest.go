package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/quartet-sched/quartet/core/workload"
)

// manifestSchema names the form of a manifest. It changes when a field changes its meaning or goes away.
const manifestSchema = "quartet.manifest/v1"

// manifest is what it takes to repeat a run byte for byte. It holds no time and nothing of the machine but the paths
// of the inputs.
type manifest struct {
	Schema      string   `json:"schema"`
	Name        string   `json:"name"`
	Seed        uint64   `json:"seed"`
	Quartet     string   `json:"quartet"` // version
	Commit      string   `json:"commit"`
	Go          string   `json:"go"`
	Interrupted bool     `json:"interrupted"`       // the outputs are those of a part of the run
	Config      string   `json:"config"`            // resolved, YAML
	Plugins     []plugin `json:"plugins,omitempty"` // those that took part
	Inputs      []digest `json:"inputs"`
	Outputs     []digest `json:"outputs"`
}

// plugin names a plugin and its content.
type plugin struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// pluginsUsed lists the plugins that policies were created from.
func (a *app) pluginsUsed() []plugin {
	if a.library == nil {
		return nil
	}
	var list []plugin
	for _, p := range a.library.Used() {
		list = append(list, plugin{Name: p.Name, Version: p.Version, SHA256: p.SHA256})
	}
	return list
}

func digestsOf(inputs []workload.Input) []digest {
	list := []digest{}
	for _, in := range inputs {
		list = append(list, digest{File: in.Path, SHA256: in.SHA256})
	}
	return list
}

func readManifest(path string) (*manifest, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, problem(path, err.Error(), "")
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, problem(path, fmt.Sprintf("not a manifest: %v", err), "")
	}
	switch {
	case m.Schema != manifestSchema:
		return nil, problem(path, fmt.Sprintf("schema is %q", m.Schema), fmt.Sprintf("this program repeats %q", manifestSchema))
	case m.Interrupted:
		return nil, problem(path, "the run was interrupted", "only a whole run can be repeated")
	case m.Config == "":
		return nil, problem(path, "holds no config", "nothing can be repeated without it")
	}
	return &m, nil
}

// compare lists how a repeated run differs from the recorded one.
func (m *manifest) compare(r *result) []string {
	var differences []string
	for _, in := range m.Inputs {
		if got, ok := find(r.inputs, in.File); !ok || got != in.SHA256 {
			differences = append(differences, fmt.Sprintf("input %q is not the recorded one: sha256 %s, recorded %s", in.File, orNone(got), in.SHA256))
		}
	}
	for _, p := range m.Plugins {
		if !slices.Contains(r.plugins, p) {
			differences = append(differences, fmt.Sprintf("plugin %q %s with sha256 %s is not the one that took part", p.Name, p.Version, p.SHA256))
		}
	}
	for _, name := range repeatableFiles {
		want, recorded := find(m.Outputs, name)
		if got, _ := find(r.outputs, name); recorded && got != want {
			differences = append(differences, fmt.Sprintf("%s differs: sha256 %s, recorded %s", name, orNone(got), want))
		}
	}
	return differences
}

func find(list []digest, file string) (sha string, ok bool) {
	for _, d := range list {
		if d.File == file {
			return d.SHA256, true
		}
	}
	return "", false
}

func orNone(sha string) string {
	if sha == "" {
		return "none"
	}
	return sha
}
