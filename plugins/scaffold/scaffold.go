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

// Stages and Languages list the values of Plugin.Stage and Plugin.Language.
var (
	Stages    = []string{"admission", "allocation", "placement", "elasticity", "scaler"}
	Languages = []string{"go", "python"}
)

// Plugin describes the plugin that New writes.
type Plugin struct {
	Name     string // Name of the plugin: lower case letters, digits and "-".
	Stage    string // Stage of its policy, one of Stages.
	Language string // Language it is written in, one of Languages.
	// Version of Quartet that a plugin in Go requires, such as v0.1.0; see RequiredVersion.
	Version string
	// Replace is the folder of a checkout of Quartet that a plugin in Go builds against instead of Version, absolute or relative to
	// the working directory; empty builds against Version. New writes it relative to the folder of the plugin.
	Replace string
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// Type returns the type of the policy, as configs name it.
func (p Plugin) Type() string { return strings.ReplaceAll(p.Name, "-", "_") }

// Script returns the name of the file that holds a plugin in Python.
func (p Plugin) Script() string { return p.Type() + ".py" }

// Service returns the name of the Go interface of the stage in package core.
func (p Plugin) Service() string {
	return map[string]string{
		"admission": "Admitter", "allocation": "Allocator", "placement": "Placer", "elasticity": "Elasticity", "scaler": "ClusterScaler",
	}[p.Stage]
}

// Suite returns the name of the function of package coretest that tests a policy of the stage.
func (p Plugin) Suite() string { return "Run" + strings.TrimPrefix(p.Service(), "Cluster") }

// Slot returns the YAML that selects the policy in a config, to stand below pipeline.
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

// New creates a folder, writes a plugin into it, and returns the names of its files. It fails rather than overwrite a file.
func New(dir string, p Plugin) ([]string, error) {
	switch {
	case !namePattern.MatchString(p.Name):
		return nil, fmt.Errorf("%q is not a valid plugin name; use lower case letters, digits and \"-\"", p.Name)
	case !slices.Contains(Stages, p.Stage):
		return nil, fmt.Errorf("there is no stage %q", p.Stage)
	case !slices.Contains(Languages, p.Language):
		return nil, fmt.Errorf("there are no templates for language %q", p.Language)
	}
	if p.Language == "go" && p.Replace != "" {
		var err error
		if p.Replace, err = relativeCheckout(dir, p.Replace); err != nil {
			return nil, err
		}
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

// file is a file of a plugin: its name in the folder of the plugin, its content and its permissions.
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
