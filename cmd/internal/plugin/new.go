package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
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
		Short: "Begin a plugin that builds and conforms as it is",
		Long: `Writes a plugin with a simple policy, its settings and its test, to be changed into yours. docs/write-a-plugin.md
goes on from there.

A development build of quartet writes plugins that build against its own checkout, or the one given with --replace.`,
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
			if err := chooseQuartet(&p); err != nil {
				return err
			}
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
			a.Note("%s says how to go on", filepath.Join(dir, "README.md"))
			return nil
		},
	}
	c.Flags().StringVar(&p.Stage, "stage", "", "stage of the policy: "+strings.Join(scaffold.Stages, ", "))
	c.Flags().StringVar(&p.Language, "lang", "go", "language: "+strings.Join(scaffold.Languages, ", "))
	c.Flags().StringVar(&dir, "dir", "", "folder to write into (default: the name)")
	c.Flags().StringVar(&p.Replace, "replace", "", "checkout of Quartet to build against, instead of a published version")
	cli.MustComplete(c, "stage", scaffold.Stages)
	cli.MustRequire(c, "stage", "allocation")
	cli.MustComplete(c, "lang", scaffold.Languages)
	cli.MustCompleteDirs(c, "dir")
	cli.MustCompleteDirs(c, "replace")
	return c
}

// published is the form of the versions of Quartet that others can fetch.
var published = regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)

// chooseQuartet says what a new plugin is built against.
func chooseQuartet(p *scaffold.Plugin) (err error) {
	p.Version = cli.ReadBuild().Version
	if !published.MatchString(p.Version) {
		p.Version = "v0.0.0"
		if p.Replace == "" {
			p.Replace = checkout()
		}
		if p.Replace == "" {
			return cli.Problem("--replace", "this is a development build of quartet", "name a checkout of Quartet to build against")
		}
	}
	if p.Replace != "" {
		p.Replace, err = filepath.Abs(p.Replace)
	}
	return err
}

// checkout is the folder that this program was built from, where it is still there; empty otherwise.
func checkout() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return ""
	}
	root := filepath.Join(filepath.Dir(file), "..", "..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return ""
	}
	return root
}
