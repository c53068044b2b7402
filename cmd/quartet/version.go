package main

import (
	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/render"
)

// buildInfo says what this program was built from.
type buildInfo = quartet.Build

func readBuild() buildInfo { return quartet.ReadBuild() }

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
