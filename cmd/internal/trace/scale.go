package trace

import (
	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core/workload"
)

func (a *app) traceScaleCommand() *cobra.Command {
	var f traceFlags
	c := &cobra.Command{
		Use:   "scale",
		Short: "Write a workload as a denser or sparser trace",
		Long: `Writes the workload at another load as a trace in Quartet's own CSV to stdout: what the key sample.load of a config makes of
it. Thinning leaves jobs out by chance, or repeats them; compression divides the times of submission.`,
		Example: "  quartet trace scale --type philly --set path=philly.csv.gz --load 0.5 > half.csv",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if by := c.Flags().Lookup("by").Value.String(); by == workload.ByNodes {
				return cli.Problem("--by", "a trace has no nodes", "use thinning or compression; nodes is for sample.load of a config")
			}
			return a.writeTrace(c, &f)
		},
	}
	f.register(c)
	f.sample(c, "load", "load.factor", "number", "how dense jobs come, over how dense they are")
	f.sample(c, "by", "load.by", "string", "thinning or compression (default thinning)")
	cli.MustComplete(c, "by", []string{workload.ByThinning, workload.ByCompression})
	cli.MustRequire(c, "load", "0.5")
	return c
}
