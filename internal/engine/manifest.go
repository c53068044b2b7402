package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

// ManifestSchema names the form of a manifest. It changes when a field changes its meaning or goes away.
const ManifestSchema = "quartet.manifest/v1"

// Manifest is what it takes to repeat a run byte for byte. It holds no time and nothing of the machine but the paths
// of the inputs.
type Manifest struct {
	Schema      string          `json:"schema"`                    // ManifestSchema, of the version that wrote it
	Name        string          `json:"name"`                      // of the run
	Seed        uint64          `json:"seed"`                      // of the run
	Quartet     string          `json:"quartet"`                   // version of Quartet
	Commit      string          `json:"commit"`                    // of the program's own repository
	Go          string          `json:"go"`                        // version of Go
	Interrupted bool            `json:"interrupted"`               // the outputs are those of a part of the run
	Failed      string          `json:"failed,omitempty"`          // why the run failed; the outputs are those up to then
	Config      string          `json:"config"`                    // in force at the end; resolved, YAML
	Earlier     []EarlierConfig `json:"earlier_configs,omitempty"` // in force before, oldest first
	Plugins     []Plugin        `json:"plugins,omitempty"`         // those that took part
	Inputs      []Digest        `json:"inputs"`                    // files that the run read
	Outputs     []Digest        `json:"outputs"`                   // files that the run wrote, but for the summary and the manifest
}

// Plugin names a plugin and its content.
type Plugin struct {
	Name    string `json:"name"`    // as configs name it
	Version string `json:"version"` // as the plugin reports it
	SHA256  string `json:"sha256"`  // of its program, hex
}

func digestsOf(inputs []workload.Input) []Digest {
	list := []Digest{}
	for _, in := range inputs {
		list = append(list, Digest{File: in.Path, SHA256: in.SHA256})
	}
	return list
}

// LoadManifest reads the manifest of any run of this or an older program, be it one that failed or was interrupted. ReadManifest
// reads that of one that can be repeated.
func LoadManifest(path string) (*Manifest, error) {
	data, err := inputfile.Read(path, inputfile.Document)
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &m); err != nil {
		return nil, fmt.Errorf("not a manifest: %w", err)
	}
	return &m, nil
}

// ReadManifest reads the manifest of a run that can be repeated.
func ReadManifest(path string) (*Manifest, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		hint := "a run leaves it as " + filepath.Join("DIR", "NAME", ManifestFile)
		if inside := filepath.Join(path, ManifestFile); exists(inside) {
			hint = "write " + inside
		}
		return nil, problem(path, "is a folder, not the manifest of a run", hint)
	}
	m, err := LoadManifest(path)
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		return nil, problem(path, "cannot read the manifest: "+pathError.Err.Error(), "")
	} else if err != nil {
		return nil, problem(path, err.Error(), "")
	}
	switch {
	case m.Schema != ManifestSchema:
		return nil, problem(path, fmt.Sprintf("schema is %q", m.Schema), fmt.Sprintf("this program repeats %q", ManifestSchema))
	case m.Interrupted:
		return nil, problem(path, "the run was interrupted", "only a whole run can be repeated")
	case m.Failed != "":
		return nil, problem(path, "the run failed: "+m.Failed, "only a whole run can be repeated")
	case len(m.Earlier) > 0:
		return nil, problem(path, "the config was changed during the run", "only a run of one config can be repeated")
	case m.Config == "":
		return nil, problem(path, "holds no config", "nothing can be repeated without it")
	}
	return m, nil
}

// Differences lists how a repeated run differs from the recorded one.
func (m *Manifest) Differences(r *Result) []string {
	var differences []string
	for _, in := range m.Inputs {
		if got, ok := find(r.Inputs, in.File); !ok || got != in.SHA256 {
			differences = append(differences, fmt.Sprintf("input %q is not the recorded one: sha256 %s, recorded %s", in.File, orNone(got), orNone(in.SHA256)))
		}
	}
	for _, p := range m.Plugins {
		if !slices.Contains(r.Plugins, p) {
			differences = append(differences, fmt.Sprintf("plugin %q %s with sha256 %s is not the one that took part", p.Name, p.Version, p.SHA256))
		}
	}
	for _, name := range repeatableFiles {
		want, recorded := find(m.Outputs, name)
		if got, _ := find(r.Outputs, name); recorded && got != want {
			differences = append(differences, fmt.Sprintf("%s differs: sha256 %s, recorded %s", name, orNone(got), want))
		}
	}
	return differences
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func find(list []Digest, file string) (sha string, ok bool) {
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

// problem is a single thing wrong with what the user gave; place is a file or a key of the config.
func problem(place, summary, hint string) error {
	return core.Diagnostics{{Position: core.Position{File: place}, Summary: summary, Hint: hint}}
}
