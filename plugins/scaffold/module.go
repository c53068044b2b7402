package scaffold

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/quartet-sched/quartet/internal/inputfile"
)

// quartetModule is the module that plugins in Go require.
const quartetModule = "github.com/quartet-sched/quartet"

// goVersion is the version of Go that a plugin needs at least: that of Quartet.
const goVersion = "1.26.0"

// requirements lists the modules that the SDK and its test suite need, one "PATH VERSION" a line; sums holds their checksums, as
// go.sum does. Both follow from the go.mod and go.sum of Quartet: `go test ./plugins/scaffold -update` writes them.
var (
	//go:embed require.txt
	requirements string
	//go:embed sums.txt
	sums string
)

// Module returns the path of the module of Quartet.
func (p Plugin) Module() string { return quartetModule }

// GoVersion returns the version of Go that the plugin needs.
func (p Plugin) GoVersion() string { return goVersion }

// Dependencies returns the modules that the plugin needs besides Quartet, each with its version.
func (p Plugin) Dependencies() []string { return strings.Split(strings.TrimSpace(requirements), "\n") }

// Sums returns the checksums of Dependencies, in the form of a go.sum.
func (p Plugin) Sums() string { return sums }

// Unpublished is the version that a plugin requires when the running program was not built from a published version: nobody can
// fetch it, so the plugin needs a replace directive or a Go workspace.
const Unpublished = "v0.0.0"

// publishedVersion is the form of the versions of Quartet that others can fetch.
var publishedVersion = regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)

// RequiredVersion returns the version of Quartet that a new plugin requires, given the version of the running program: the same one
// if it was published, and Unpublished otherwise.
func RequiredVersion(program string) string {
	if publishedVersion.MatchString(program) {
		return program
	}
	return Unpublished
}

// relativeCheckout returns the path from the folder of a plugin to a checkout of Quartet, as a replace directive writes it.
func relativeCheckout(dir, checkout string) (string, error) {
	module, err := inputfile.Read(filepath.Join(checkout, "go.mod"), inputfile.Document)
	if err != nil {
		return "", fmt.Errorf("read the checkout: %w", err)
	}
	if !bytes.HasPrefix(module, []byte("module "+quartetModule+"\n")) {
		return "", fmt.Errorf("%s is not a checkout of Quartet", checkout)
	}
	from, err := realPath(dir)
	if err != nil {
		return "", err
	}
	to, err := realPath(checkout)
	if err != nil {
		return "", err
	}
	path, err := filepath.Rel(from, to)
	if err != nil {
		return "", fmt.Errorf("write the path of the checkout relative to %s: %w", dir, err)
	}
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "../") && path != ".." {
		path = "./" + path // go.mod takes anything else for the path of a module
	}
	return path, nil
}

// realPath returns an absolute path without symbolic links, of a folder whose last parts may not exist yet.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for existing := path; ; existing = filepath.Dir(existing) {
		if real, err := filepath.EvalSymlinks(existing); err == nil {
			return filepath.Join(real, rest), nil
		} else if !os.IsNotExist(err) || existing == filepath.Dir(existing) {
			return "", err
		}
		rest = filepath.Join(filepath.Base(existing), rest)
	}
}
