package study

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/lab/export"
)

// timelineFormats are what a timeline is written as.
var timelineFormats = []struct {
	name  string
	write func(io.Writer, *export.Run) error
	whole bool // it knows whole devices only
}{
	{"perfetto", export.Perfetto, false},
	{"csv", export.CSV, false},
	{"batsim", export.Batsim, true},
	{"swf", export.SWF, true},
}

func (a *app) timelineCommand() *cobra.Command {
	var names []string
	for _, f := range timelineFormats {
		names = append(names, f.name)
	}
	format := names[0]
	c := &cobra.Command{
		Use:   "timeline RUN",
		Short: "Write who held what when for other tools: Perfetto, CSV, Batsim, SWF",
		Long: `Writes the timeline of a run to stdout. RUN is the folder of a run that wrote timeline.csv, which
--set output.write=[jobs,timeline,usage] asks for. docs/timeline.md says what each format holds.`,
		Example: `  quartet simulate --set 'output.write=[jobs,timeline,usage]'
  quartet timeline runs/default > default.pftrace
  quartet timeline runs/default -o swf > default.swf`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, f := range timelineFormats {
				if f.name != format {
					continue
				}
				r, err := export.Load(args[0])
				if err != nil {
					return err
				}
				if f.name == "perfetto" && cli.IsTerminal(a.Stdout) {
					return cli.Problem("--output", "a Perfetto trace is no text for a terminal", "write it to a file: > trace.pftrace")
				}
				if n := r.Parted(); n > 0 && f.whole {
					a.Note("parts and slices of devices of %d jobs left out: each device stands for a whole one", n)
				}
				return f.write(a.Stdout, r)
			}
			return cli.Problem("--output", fmt.Sprintf("%q is no format of a timeline", format), core.SuggestHint(format, "formats", names))
		},
	}
	c.Flags().StringVarP(&format, "output", "o", format, "format: "+strings.Join(names, ", "))
	cli.MustComplete(c, "output", names)
	return c
}
