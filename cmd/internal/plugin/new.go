package plugin

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/scaffold"
)

func (a *app) pluginNewCommand() *cobra.Command {
	p := scaffold.Plugin{}
	var dir string
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a plugin that builds and passes its test",
		Long: `Writes a plugin with a simple policy, its settings and its test, for you to change. docs/write-a-plugin.md continues
from there.

A plugin in Go requires the version of Quartet that this program was built from. A development build has no such version: use
--replace DIR to build the plugin against a checkout of Quartet.`,
		Example: "  quartet plugin new fair-share --stage allocation\n  quartet plugin new office-hours --stage admission --lang python",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p.Name = args[0]
			if !slices.Contains(scaffold.Stages, p.Stage) {
				return cli.Problem("--stage", fmt.Sprintf("unknown stage %q", p.Stage), core.SuggestHint(p.Stage, "stages", scaffold.Stages))
			}
			if !slices.Contains(scaffold.Languages, p.Language) {
				return cli.Problem("--lang", fmt.Sprintf("unknown language %q", p.Language), core.SuggestHint(p.Language, "languages", scaffold.Languages))
			}
			if id := p.Stage + "/" + p.Type(); a.isBuiltIn(id) {
				return cli.Problem("", fmt.Sprintf("%q is built in", id), "choose another name")
			}
			p.Version = scaffold.RequiredVersion(cli.ReadBuild().Version)
			if dir == "" {
				dir = p.Name
			}
			files, err := scaffold.New(dir, p)
			if err != nil {
				return cli.Problem("", err.Error(), "")
			}
			for _, name := range files {
				a.Note("wrote %s", filepath.Join(dir, name))
			}
			a.Note("next: follow %s", filepath.Join(dir, "README.md"))
			if p.Language == "go" && p.Replace == "" && p.Version == scaffold.Unpublished {
				a.Note("this is a development build of quartet, so go.mod requires %s, which cannot be fetched; before you build, run in %s: "+
					"go mod edit -replace=%s=DIR, with DIR a checkout of Quartet", p.Version, dir, p.Module())
			}
			return nil
		},
	}
	c.Flags().StringVar(&p.Stage, "stage", "", "stage of the policy: "+strings.Join(scaffold.Stages, ", "))
	c.Flags().StringVar(&p.Language, "lang", "go", "language: "+strings.Join(scaffold.Languages, ", "))
	c.Flags().StringVar(&dir, "dir", "", "folder to write into (default: the name)")
	c.Flags().StringVar(&p.Replace, "replace", "", "checkout of Quartet to build against instead of a published version")
	cli.MustComplete(c, "stage", scaffold.Stages)
	cli.MustRequire(c, "stage", "allocation")
	cli.MustComplete(c, "lang", scaffold.Languages)
	cli.MustCompleteDirs(c, "dir")
	cli.MustCompleteDirs(c, "replace")
	return c
}
