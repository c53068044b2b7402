package host

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/inputfile"
	"github.com/quartet-sched/quartet/internal/yamlpos"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// LockFile is the name of the lock in a plugin folder.
const LockFile = "plugins.lock.yaml"

// lockVersion is the version of the form of a lock.
const lockVersion = 1

// Lock records the plugins of a folder that may be started. A file that it does not name is not started.
type Lock struct {
	// Version of the form of this file, 1.
	Version int `config:"version" yaml:"version" doc:"version of the form of this file, 1" required:"true"`
	// Plugins are sorted by name.
	Plugins []Entry `config:"plugins" yaml:"plugins" doc:"the plugins, by name"`
}

// Entry records one plugin.
type Entry struct {
	// Name of the plugin, such as "fair-share".
	Name string `config:"name" yaml:"name" doc:"name of the plugin" required:"true"`
	// Version of the plugin, such as "v1.2.0".
	Version string `config:"version" yaml:"version" doc:"its version" required:"true"`
	// Path of its file, relative to the folder of the lock.
	Path string `config:"path" yaml:"path" doc:"its file, relative to the lock" required:"true"`
	// Protocol is the latest version of the contract that the plugin speaks.
	Protocol int `config:"protocol" yaml:"protocol" doc:"latest version of the contract that it speaks" required:"true"`
	// SHA256 of its file, in hex. A file with another hash is not started.
	SHA256 string `config:"sha256" yaml:"sha256" doc:"of its file, hex" required:"true"`
	// Components are the policies of the plugin, in its order.
	Components []LockedComponent `config:"components" yaml:"components" doc:"what it holds, in its order" required:"true"`
}

// LockedComponent describes a component of a plugin that is not started.
type LockedComponent struct {
	// Stage of the policy, such as "allocation".
	Stage string `config:"stage" yaml:"stage" doc:"stage of the policy" required:"true"`
	// Type of the policy, as configs name it.
	Type string `config:"type" yaml:"type" doc:"its type" required:"true"`
	// Summary is one line about the policy.
	Summary string `config:"summary" yaml:"summary" doc:"what it does, one line"`
}

var (
	namePattern    = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	versionPattern = regexp.MustCompile(`^v?[0-9][0-9A-Za-z.+-]*$`)
	typePattern    = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
)

// longestName bounds names, versions and types in bytes: they become names of files.
const longestName = 64

// fits reports whether a name is of a form, and not too long.
func fits(name string, form *regexp.Regexp) bool {
	return len(name) <= longestName && form.MatchString(name)
}

// ReadLock reads the lock of a folder, empty where there is none. An error is a core.Diagnostics with every problem.
func ReadLock(folder string) (Lock, error) {
	path := filepath.Join(folder, LockFile)
	lock := Lock{Version: lockVersion}
	data, err := inputfile.Read(path, inputfile.Document)
	if errors.Is(err, fs.ErrNotExist) {
		return lock, nil
	}
	if err == nil {
		err = checkPermissions(path, fileOwner) // it vouches for what is started
	}
	if err != nil {
		return lock, fmt.Errorf("read the lock: %w", err)
	}
	var values map[string]any
	document, err := yamlpos.Read(path, data)
	if err == nil {
		values, err = document.Values()
	}
	if err != nil {
		return lock, core.Diagnostics{{Position: core.Position{File: path}, Summary: "cannot read YAML: " + err.Error(), Hint: repairHint}}
	}
	problems := core.Decode(&lock, values)
	if len(problems) == 0 {
		problems = lock.check()
	}
	problems = document.Locate(problems)
	for i := range problems {
		if problems[i].Hint == "" {
			problems[i].Hint = repairHint
		}
	}
	return lock, problems.Err()
}

const repairHint = "do not edit the lock by hand; `quartet plugin install` writes it"

// check finds what the form of the file cannot say.
func (l *Lock) check() (problems core.Diagnostics) {
	report := func(path, format string, args ...any) {
		problems = append(problems, core.Diagnostic{Path: path, Summary: fmt.Sprintf(format, args...)})
	}
	if l.Version != lockVersion {
		report("version", "unknown version %d; this program reads version %d", l.Version, lockVersion)
	}
	names, owners := map[string]bool{}, map[string]string{}
	for i, e := range l.Plugins {
		at := fmt.Sprintf("plugins[%d]", i)
		if names[e.Name] {
			report(at+".name", "there are two plugins %q", e.Name)
		}
		names[e.Name] = true
		if !fits(e.Name, namePattern) {
			report(at+".name", "%q is no name of a plugin; use lower case letters, digits and \"-\", at most %d", core.CleanText(e.Name, longestQuote), longestName)
		}
		if !fits(e.Version, versionPattern) {
			report(at+".version", "%q is no version", core.CleanText(e.Version, longestQuote))
		}
		if !filepath.IsLocal(e.Path) {
			report(at+".path", "%q leaves the folder of the lock", e.Path)
		}
		if sum, err := hex.DecodeString(e.SHA256); err != nil || len(sum) != 32 {
			report(at+".sha256", "%q is no sha256 in hex", e.SHA256)
		}
		if len(e.Components) == 0 {
			report(at+".components", "plugin %q holds no components", e.Name)
		}
		for k, c := range e.Components {
			at := fmt.Sprintf("%s.components[%d]", at, k)
			if wire.StageNamed(c.Stage) == 0 {
				report(at+".stage", "unknown stage %q", c.Stage)
			}
			if !fits(c.Type, typePattern) {
				report(at+".type", "%q is no type of a component; write it in lower_snake_case, at most %d letters", core.CleanText(c.Type, longestQuote), longestName)
			}
			if owner, taken := owners[c.ID()]; taken {
				report(at+".type", "%q is also a component of plugin %q", c.ID(), owner)
			}
			owners[c.ID()] = e.Name
		}
	}
	return problems
}

// ID returns the component id, such as "allocation/backfill".
func (c LockedComponent) ID() string { return c.Stage + "/" + c.Type }

// put records a plugin in place of one of the same name.
func (l *Lock) put(e Entry) {
	l.remove(e.Name)
	l.Plugins = append(l.Plugins, e)
}

// remove forgets a plugin, if it is there.
func (l *Lock) remove(name string) {
	l.Plugins = slices.DeleteFunc(l.Plugins, func(e Entry) bool { return e.Name == name })
}

const lockHeader = "# The plugins of this folder that Quartet may start. Written by `quartet plugin install`; do not edit.\n"

// Write replaces the lock of a folder atomically.
func (l *Lock) Write(folder string) error {
	slices.SortFunc(l.Plugins, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	text := bytes.NewBufferString(lockHeader)
	e := yaml.NewEncoder(text)
	e.SetIndent(2)
	if err := e.Encode(l); err != nil {
		return fmt.Errorf("write the lock: %w", err)
	}
	if err := replaceFile(filepath.Join(folder, LockFile), text, 0o644); err != nil {
		return fmt.Errorf("write the lock: %w", err)
	}
	return nil
}
