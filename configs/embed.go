package configs

import (
	"bytes"
	"embed"
	"io/fs"
)

//go:embed *.yaml compositions papers
var compositions embed.FS

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
