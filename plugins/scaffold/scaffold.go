// Package scaffold writes new plugins that build and conform as they are, for their authors to change.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// The stages and languages that New knows.
var (
	Stages    = []string{"admission", "allocation", "placement", "elasticity", "scaler"}
	Languages = []string{"go", "python"}
)

// Plugin is what New writes.
type Plugin struct {
	Name     string // lower case letters, digits and "-"
	Stage    string // one of Stages
	Language string // one of Languages
	Version  string // of Quartet that the plugin is built against, such as v0.1.0
	// Replace is a checkout of Quartet to build against in place of a published version; empty for none.
	Replace string
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Type is the type of the policy in configs.
func (p Plugin) Type() string { return strings.ReplaceAll(p.Name, "-", "_") }

// Script is the file of a plugin in Python.
func (p Plugin) Script() string { return p.Type() + ".py" }

// Service is the Go interface of the stage, without its package.
func (p Plugin) Service() string {
	return map[string]string{
		"admission": "Admitter", "allocation": "Allocator", "placement": "Placer", "elasticity": "Elasticity", "scaler": "ClusterScaler",
	}[p.Stage]
}

// Suite is the function of coretest that holds a policy of the stage to its contract.
func (p Plugin) Suite() string { return "Run" + strings.TrimPrefix(p.Service(), "Cluster") }

// Slot is the path of the stage in a config, below pipeline.
func (p Plugin) Slot() string {
	switch p.Stage {
	case "elasticity":
		return "elasticity: {job: {type: " + p.Type() + "}}"
	case "scaler":
		return "elasticity: {cluster: {type: " + p.Type() + "}}"
	case "admission":
		return "admission: [{type: " + p.Type() + "}]"
	default:
		return p.Stage + ": {type: " + p.Type() + "}"
	}
}

// New writes a plugin into a folder, which it makes, and returns the names of its files. It overwrites nothing.
func New(dir string, p Plugin) ([]string, error) {
	switch {
	case !namePattern.MatchString(p.Name):
		return nil, fmt.Errorf("%q is no name of a plugin; use lower case letters, digits and \"-\"", p.Name)
	case !slices.Contains(Stages, p.Stage):
		return nil, fmt.Errorf("there is no stage %q", p.Stage)
	case !slices.Contains(Languages, p.Language):
		return nil, fmt.Errorf("there are no templates for language %q", p.Language)
	}
	files, err := p.render()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
		if _, err := os.Lstat(filepath.Join(dir, f.name)); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s exists; choose another folder", filepath.Join(dir, f.name))
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.content, f.mode); err != nil {
			return nil, err
		}
	}
	return names, nil
}

type file struct {
	name    string
	content []byte
	mode    os.FileMode
}

// render fills in the templates of the language: those at its top for every stage, and those in the folder of the stage.
func (p Plugin) render() ([]file, error) {
	var files []file
	for _, folder := range []string{"templates/" + p.Language, "templates/" + p.Language + "/" + p.Stage} {
		entries, err := templates.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			t, err := template.ParseFS(templates, folder+"/"+e.Name())
			if err != nil {
				return nil, err
			}
			var b bytes.Buffer
			if err := t.Execute(&b, p); err != nil {
				return nil, err
			}
			f := file{name: p.fileName(e.Name()), content: b.Bytes(), mode: 0o644}
			if bytes.HasPrefix(f.content, []byte("#!")) {
				f.mode = 0o755
			}
			files = append(files, f)
		}
	}
	if p.Language == "go" && p.Replace != "" {
		return p.pinDependencies(files)
	}
	return files, nil
}

// fileName is that of the file made from a template.
func (p Plugin) fileName(name string) string {
	name = strings.TrimSuffix(name, ".tmpl")
	switch name {
	case "gitignore":
		return ".gitignore"
	case "policy.py":
		return p.Script()
	}
	return name
}

// pinDependencies takes the versions and hashes of all dependencies from the checkout, so that the plugin builds without
// asking anybody for them.
func (p Plugin) pinDependencies(files []file) ([]file, error) {
	module, err := os.ReadFile(filepath.Join(p.Replace, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read the checkout: %w", err)
	}
	if !bytes.HasPrefix(module, []byte("module github.com/quartet-sched/quartet\n")) {
		return nil, fmt.Errorf("%s is no checkout of Quartet", p.Replace)
	}
	sums, err := os.ReadFile(filepath.Join(p.Replace, "go.sum"))
	if err != nil {
		return nil, fmt.Errorf("read the checkout: %w", err)
	}
	for i := range files {
		if files[i].name == "go.mod" {
			files[i].content = append(files[i].content, requirements(module)...)
		}
	}
	return append(files, file{name: "go.sum", content: sums, mode: 0o644}), nil
}

// requirements are the require blocks of a go.mod, every line of them indirect.
func requirements(module []byte) []byte {
	var b bytes.Buffer
	inside := false
	for line := range strings.Lines(string(module)) {
		switch {
		case strings.HasPrefix(line, "require ("):
			inside = true
			b.WriteString("\n" + line)
		case inside && strings.HasPrefix(line, ")"):
			inside = false
			b.WriteString(line)
		case inside && strings.Contains(line, "// indirect"):
			b.WriteString(line)
		case inside:
			b.WriteString(strings.TrimRight(line, "\n") + " // indirect\n")
		}
	}
	return b.Bytes()
}
