package engine

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Build says what the running program was built from.
type Build struct {
	Version      string       `json:"version"`      // version of Quartet
	Commit       string       `json:"commit"`       // of the program's own repository
	Go           string       `json:"go"`           // version of Go
	Platform     string       `json:"platform"`     // operating system and processor, such as linux/amd64
	Dependencies []Dependency `json:"dependencies"` // modules that were linked
}

// Dependency is a module that the program was built with.
type Dependency struct {
	Module  string `json:"module"`  // path of the module
	Version string `json:"version"` // of the module
}

const (
	unknownBuild = "unknown"
	modulePath   = "github.com/quartet-sched/quartet"
)

// program names the version of the program, for people.
func (b Build) program() string {
	if b.Commit == unknownBuild {
		return b.Version
	}
	return fmt.Sprintf("%s, commit %s", b.Version, b.Commit)
}

// ReadBuild returns what the running program was built from.
func ReadBuild() Build {
	b := Build{Version: unknownBuild, Commit: unknownBuild, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	modified := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if modified {
		b.Commit += "-modified"
	}
	for _, d := range info.Deps {
		embedded := d.Path == modulePath
		if d.Replace != nil {
			d = d.Replace
		}
		if embedded {
			b.Version = d.Version
		}
		b.Dependencies = append(b.Dependencies, Dependency{Module: d.Path, Version: d.Version})
	}
	return b
}
