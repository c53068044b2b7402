package configs

import (
	"bytes"
	"embed"
	"io/fs"
)

//go:embed *.yaml papers
var compositions embed.FS

//go:embed default.yaml
var defaultConfig []byte

// builtIn is how positions name the embedded default.
const builtIn = "(built-in) default.yaml"

// Default is the config that runs when no file is given.
func Default() []byte { return bytes.Clone(defaultConfig) }

// Embedded holds the configs that come with Quartet: default.yaml, and papers/ with one folder per publication.
func Embedded() fs.FS { return compositions }
