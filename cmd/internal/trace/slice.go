package trace

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quartet-sched/quartet/configs"
)

func (a *app) traceSliceCommand() *cobra.Command {
	var f traceFlags
	quiet := quietFlag{app: a}
	c := &cobra.Command{
		Use:   "slice",
		Short: "Write a part of a workload as a trace",
		Long: `Writes so many jobs, or those submitted in a span of time, as a trace in Quartet's own CSV to stdout: what the key
sample.window of a config takes. Times count from the begin of the part.`,
		Example: `  quartet trace slice --type philly --set path=philly.csv.gz --first-job 2000 --jobs 300 > part.csv
  quartet trace slice --type csv --set path=trace.csv --from 72h --span 24h --move-ends 6h > day.csv`,
		Args: quiet.arguments,
		RunE: func(c *cobra.Command, _ []string) error { return a.writeTrace(c, &f) },
	}
	f.register(c)
	f.sample(c, "first-job", "window.first_job", "int", "rank in submission order, from 0, of the first job")
	f.sample(c, "jobs", "window.jobs", "int", "how many jobs; 0 for all from the first on")
	f.sample(c, "from", "window.from", "duration", "instead of jobs, the moment at which the part begins")
	f.sample(c, "span", "window.span", "duration", "how long it is; 0s for all from its begin on")
	f.sample(c, moveEnds, "window.quiet", "duration", "how far its ends may move, to where the fewest devices are asked for")
	quiet.flags = c.Flags()
	quiet.flags.VarPF(&quiet, "quiet", "q", "no progress and no notes on stderr").NoOptDefVal = "true"
	return c
}

const moveEnds = "move-ends"

// quietFlag is --quiet as every command has it. Here it was also how far the ends may move, once: a duration still says that.
type quietFlag struct {
	app   *app
	flags *pflag.FlagSet
	given bool
}

// String is empty for the value that is not shown as a default.
func (q *quietFlag) String() string {
	if q.given {
		return "true"
	}
	return ""
}

// Type is that of the flag of every command.
func (*quietFlag) Type() string { return "bool" }

// Set takes a truth, or a duration for --move-ends.
func (q *quietFlag) Set(value string) error {
	truth, err := strconv.ParseBool(value)
	if err == nil {
		q.given, q.app.Quiet = truth, truth
		return nil
	}
	if _, duration := time.ParseDuration(value); duration != nil {
		return err
	}
	return q.flags.Set(moveEnds, value)
}

// arguments refuses all but the duration in "--quiet 6h".
func (q *quietFlag) arguments(c *cobra.Command, args []string) error {
	if q.given && len(args) == 1 {
		if _, err := time.ParseDuration(args[0]); err == nil {
			q.given, q.app.Quiet = false, false
			return q.flags.Set(moveEnds, args[0])
		}
	}
	return cobra.NoArgs(c, args)
}

// sampleFlag is a flag that sets a key of a config's sample.
type sampleFlag struct{ name, key, kind, value string }

// String is what the flag is set to.
func (f *sampleFlag) String() string { return f.value }

// Set takes the value as it is: the config reports what is wrong with it.
func (f *sampleFlag) Set(value string) error {
	f.value = value
	return nil
}

// Type names the kind of value.
func (f *sampleFlag) Type() string { return f.kind }

// sample registers a flag for a key of the sample.
func (f *traceFlags) sample(c *cobra.Command, name, key, kind, usage string) {
	flag := &sampleFlag{name: name, key: key, kind: kind}
	f.sampling = append(f.sampling, flag)
	c.Flags().Var(flag, name, usage)
}

// sampleSets are the settings that the flags for the sample give.
func (f *traceFlags) sampleSets(c *cobra.Command) (sets []configs.Flag) {
	for _, flag := range f.sampling {
		if c.Flags().Changed(flag.name) {
			sets = append(sets, configs.Flag{Name: "--" + flag.name, Set: fmt.Sprintf("sample.%s=%s", flag.key, flag.value)})
		}
	}
	return sets
}
