package configs

import (
	"bytes"
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed *.yaml compositions papers
var compositions embed.FS

//go:embed studies
var studies embed.FS

//go:embed default.yaml
var defaultConfig []byte

// defaultName is the name of the embedded default.
const defaultName = "default.yaml"

// builtIn stands before the name of an embedded config in positions.
const builtIn = "(built-in) "

// Default is the config that runs when no file is given.
func Default() []byte { return bytes.Clone(defaultConfig) }

// Embedded holds the configs that come with Quartet: default.yaml, compositions/ with policies mixed as in no publication,
// and papers/ with one folder per publication.
func Embedded() fs.FS { return compositions }

// EmbeddedNames lists the embedded configs, by name: what Options.Files takes besides files.
func EmbeddedNames() []string {
	var names []string
	for _, pattern := range []string{"*.yaml", "compositions/*.yaml", "papers/*/*.yaml"} {
		matches, _ := fs.Glob(Embedded(), pattern) // the patterns are well-formed
		names = append(names, matches...)
	}
	return names
}

// StudyNames lists the studies that come with Quartet, by name: studies/NAME.yaml without the rest.
func StudyNames() []string {
	matches, _ := fs.Glob(studies, "studies/*.yaml") // the pattern is well-formed
	for i, name := range matches {
		matches[i] = strings.TrimSuffix(path.Base(name), ".yaml")
	}
	slices.Sort(matches)
	return matches
}

// Study is the text of a study that comes with Quartet, named as StudyNames has it, or with studies/ before it or .yaml after it.
// Where there is none it is fs.ErrNotExist.
func Study(name string) ([]byte, error) {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "studies/"), ".yaml")
	if !slices.Contains(StudyNames(), name) {
		return nil, fs.ErrNotExist
	}
	return fs.ReadFile(studies, "studies/"+name+".yaml")
}
