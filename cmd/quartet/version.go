package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/render"
)

// buildInfo says what this program was built from.
type buildInfo struct {
	Version      string       `json:"version"`
	Commit       string       `json:"commit"`
	Go           string       `json:"go"`
	Platform     string       `json:"platform"`
	Dependencies []dependency `json:"dependencies"`
}

type dependency struct {
	Module  string `json:"module"`
	Version string `json:"version"`
}

const unknownBuild = "unknown"

func readBuild() buildInfo {
	b := buildInfo{Version: unknownBuild, Commit: unknownBuild, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
		if d.Replace != nil {
			d = d.Replace
		}
		b.Dependencies = append(b.Dependencies, dependency{Module: d.Path, Version: d.Version})
	}
	return b
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Tell the version, the commit and the modules of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			if a.format == render.JSON {
				return render.Document(a.stdout, b)
			}
			return render.Table{
				Columns: []render.Column{{Name: "what"}, {Name: "value"}},
				Rows:    [][]any{{"version", b.Version}, {"commit", b.Commit}, {"go", b.Go}, {"platform", b.Platform}},
			}.Write(a.stdout, a.format)
		},
	}
}
