package program

import (
	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version, the commit and the modules of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := cli.ReadBuild()
			if a.Format == render.JSON {
				return render.Document(a.Stdout, b)
			}
			return render.Table{
				Columns: []render.Column{{Name: "what"}, {Name: "value"}},
				Rows:    [][]any{{"version", b.Version}, {"commit", b.Commit}, {"go", b.Go}, {"platform", b.Platform}},
			}.Write(a.Stdout, a.Format)
		},
	}
}
