package trace

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/core/workload"
)

func (a *app) profileCommand() *cobra.Command {
	return cli.Group("profile", "Fit profiles of applications", a.profileFitCommand())
}

func (a *app) profileFitCommand() *cobra.Command {
	var folder, application string
	c := &cobra.Command{
		Use:   "fit",
		Short: "Sum up what was measured of an application in a small profile",
		Long: `Fits the throughput model to the step times in traces/<application>/placements.csv and scalability.csv, and the
gradient-noise curve to validation-*.csv. Writes the profile as YAML to stdout, and to stderr how well it fits.
docs/profiles.md describes the format.`,
		Example: "  quartet profile fit --profiles pollux-osdi21 --app cifar10 > cifar10.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.RefuseOtherFormats(c, "YAML"); err != nil {
				return err
			}
			names, err := workload.FittedNames(folder)
			if err != nil {
				return err
			}
			if c.Flags().Changed("app") {
				if !slices.Contains(names, application) {
					return cli.Problem("--app", fmt.Sprintf("%q was not measured", application), core.SuggestHint(application, "names", names))
				}
				names = []string{application}
			}
			return a.fitProfiles(c, folder, names)
		},
	}
	c.Flags().StringVar(&folder, "profiles", "", "folder of the measurements, holding traces/")
	c.Flags().StringVar(&application, "app", "", "application to fit (default: each of them, as one YAML document)")
	cli.MustRequire(c, "profiles", "pollux-osdi21")
	return c
}

// fitProfiles writes the profiles, and then how well they fit.
func (a *app) fitProfiles(c *cobra.Command, folder string, names []string) error {
	var fitted []goodput.Profile
	for i, name := range names {
		p, err := workload.FitApplication(c.Context(), folder, name)
		if err != nil {
			return err
		}
		fitted = append(fitted, p)
		if i > 0 {
			fmt.Fprintln(a.Stdout, "---")
		}
		if _, err := a.Stdout.Write(p.YAML()); err != nil {
			return err
		}
	}
	if a.Quiet {
		return nil
	}
	t := render.Table{Columns: []render.Column{
		{Name: "application"}, {Name: "points"}, {Name: "pass error"}, {Name: "step error"}, {Name: "gain error"},
	}}
	for i := range fitted {
		r := fitted[i].Residuals
		t.Rows = append(t.Rows, []any{
			fitted[i].Name, r.Points, render.Percent(r.Pass), render.Percent(r.Step), render.Percent(r.Gain),
		})
	}
	return t.Write(a.Stderr, render.Text)
}
