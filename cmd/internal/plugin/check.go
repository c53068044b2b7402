package plugin

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/internal/inputfile"
	"github.com/quartet-sched/quartet/plugins/host"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

type pluginTestFlags struct {
	config   string
	evicting bool
	effort   coretest.Effort
}

func (a *app) pluginTestCommand() *cobra.Command {
	var f pluginTestFlags
	c := &cobra.Command{
		Use:   "test FILE|NAME",
		Short: "Hold a plugin to the contract of its stages",
		Long: `Runs the conformance suite, the same that every built-in passes, against each policy of the plugin in a process
of its own: random clusters, jobs, failures and neighbours. Lists what is wrong and how to fix it. Exit code 1 when
something is.`,
		Example:           "  quartet plugin test ./my-policy\n  quartet plugin test ./my-policy --config settings.yaml --worlds 1000",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePlugins,
		RunE: func(c *cobra.Command, args []string) error {
			b, _, err := a.pluginNamed(args[0])
			if err != nil {
				return err
			}
			settings, err := readSettings(f.config)
			if err != nil {
				return err
			}
			pool, err := host.NewPool(c.Context(), b, coretest.Instances)
			if err != nil {
				return err
			}
			defer pool.Close()
			description, err := pool.Describe()
			if err != nil {
				return err
			}
			t := render.Table{Columns: []render.Column{
				{Name: "policy"}, {Name: "check"}, {Name: "result"}, {Name: "fault"}, {Name: "remedy"},
			}}
			var faults []string
			for _, info := range description.Components {
				results, err := checkComponent(pool, info, &f, settings)
				if err != nil {
					return err
				}
				for _, r := range results {
					row := []any{info.ID(), r.Check, "ok", "", ""}
					if r.Fault != "" {
						faults = append(faults, faultText(info.ID(), r))
						row = []any{info.ID(), r.Check, "FAULT", r.Fault, remedyFor(r)}
					}
					t.Rows = append(t.Rows, row)
				}
			}
			return a.reportConformance(t, faults)
		},
	}
	c.Flags().StringVar(&f.config, "config", "", "YAML file with settings of the policy, as under config: in a config (default: none)")
	c.Flags().BoolVar(&f.evicting, "evicting", false, "the placement policy moves running jobs on purpose")
	c.Flags().IntVar(&f.effort.Worlds, "worlds", 100, "random worlds to try")
	c.Flags().Uint64Var(&f.effort.Seed, "seed", 0, "seed of the first world, to see a fault again (default: another one each time)")
	return c
}

// reportConformance prints a row for each check, and each fault at length where people read.
func (a *app) reportConformance(t render.Table, faults []string) error {
	if a.Format == render.Text || a.Format == render.Markdown { // faults are long: they follow
		t.Columns = t.Columns[:3]
		for i := range t.Rows {
			t.Rows[i] = t.Rows[i][:3]
		}
	}
	if err := t.Write(a.Stdout, a.Format); err != nil {
		return err
	}
	if len(faults) == 0 {
		a.Note("it conforms")
		return nil
	}
	if _, err := io.WriteString(a.Stderr, "\n"+strings.Join(faults, "\n")); err != nil {
		return err
	}
	return fmt.Errorf("%d of %d checks found a fault", len(faults), len(t.Rows))
}

func faultText(id string, r coretest.Result) string {
	text := fmt.Sprintf("%s: %s: %s\n  remedy: %s\n", id, r.Check, r.Fault, remedyFor(r))
	if r.Seed != 0 {
		text += fmt.Sprintf("  see it again: --seed %d --worlds 1\n", r.Seed)
	}
	return text
}

// readSettings reads a YAML mapping; nil for no file.
func readSettings(path string) (map[string]any, error) {
	if path == "" {
		return nil, nil
	}
	data, err := inputfile.Read(path, inputfile.Document)
	if err != nil {
		return nil, cli.Problem(path, err.Error(), "")
	}
	var settings map[string]any
	if err := yaml.Unmarshal(data, &settings); err != nil {
		return nil, cli.Problem(path, "not a mapping of settings: "+strings.TrimPrefix(err.Error(), "yaml: "), "")
	}
	return settings, nil
}

func checkComponent(p *host.Pool, info host.ComponentInfo, f *pluginTestFlags, settings map[string]any) ([]coretest.Result, error) {
	switch info.Stage {
	case stagev1.Stage_STAGE_ADMISSION:
		return check[core.Admitter](p, info, f, settings)
	case stagev1.Stage_STAGE_ALLOCATION:
		return check[core.Allocator](p, info, f, settings)
	case stagev1.Stage_STAGE_PLACEMENT:
		return check[core.Placer](p, info, f, settings)
	case stagev1.Stage_STAGE_ELASTICITY:
		return check[core.Elasticity](p, info, f, settings)
	case stagev1.Stage_STAGE_SCALER:
		return check[core.ClusterScaler](p, info, f, settings)
	default:
		return nil, fmt.Errorf("%q is of no stage that this quartet knows", info.Type)
	}
}

func check[S any](p *host.Pool, info host.ComponentInfo, f *pluginTestFlags, settings map[string]any) ([]coretest.Result, error) {
	options := []coretest.Option{coretest.WithConfig(settings), coretest.Elsewhere(), coretest.Reporting()}
	if f.evicting {
		options = append(options, coretest.Evicting())
	}
	factory := host.PoolFactory[S](p, info)
	return coretest.Check(factory, f.effort, append(options, heldTo(&factory.Info)...)...)
}

// heldTo has a policy that says what it counts beside whole devices be held to that.
func heldTo(i *core.Info) []coretest.Option {
	if len(i.Sharing) == 0 && !i.Counts {
		return nil
	}
	return []coretest.Option{coretest.Sharing()}
}

// remedies tell how to mend a fault, by words that its text holds; the first that fits.
var remedies = []struct{ words, remedy string }{
	{"required but missing", "give the settings that have no default with --config FILE"},
	{"no documentation", "give every setting one sentence of documentation"},
	{"not snake_case", "write types and settings in lower_snake_case"},
	{"unknown key is not refused", "decode settings strictly; the SDKs do so unless a policy decodes them itself"},
	{core.RuleReplicasInRange, "stay between MinReplicas and MaxReplicas of the job's response"},
	{core.RuleAnswerForAsked, "answer for the jobs that the call is about, and no others"},
	{core.RuleAnswerOnce, "answer once for each job"},
	{core.RuleAnswerEveryGrant, "put every grant into Placed or Unseated"},
	{core.RuleDeviceOnce, "give out free devices of ready nodes only; the Ledger of the SDK counts them"},
	{core.RuleDeviceLeft, "give no job more of a device, or of its memory, than is left; the Shares of the SDK for Go count that"},
	{core.RuleNodeLeft, "give no job more CPUs or memory than its node has left; the Shares of the SDK for Go count that"},
	{core.RuleGangComplete, "seat all replicas of a grant, or none"},
	{core.RuleOneAccelerator, "keep a job on devices of one type, that of its grant where that names one"},
	{"proposes seats", "propose one device for each replica, or nothing"},
	{core.RuleResponseSane, "answer with rates, times and work that are numbers from 0 on, for no more replicas than the cluster has devices"},
	{core.RuleGapSane, "certify a gap between 0 and 1, or NaN for none"},
	{core.RulePinnedStays, "leave a pinned job that runs where it is, with all its devices"},
	{core.RuleTuningSane, "tune with whole numbers and factors from 0 on, and split a batch over the replicas that the job has"},
	{core.RuleVerdictAllowed, "take code and reason from their lists, and evidence that is a number"},
	{core.RuleStandingSane, "return a moment, infinity for ever, and as a condition no more grants than the answer holds"},
	{core.RuleTargetSane, "want a number of nodes, 0 for no opinion"},
	{"kept a reference", "copy what outlives a call, take randomness from the SDK's stream only, and let no order of a map decide"},
	{"changed what it was given", "the View and the lists are read-only: copy a list before sorting it"},
	{"without declaring the capability", "declare the capability that the policy reads: remaining_work or step_times"},
	{"nothing changes before", "its Standing does not hold: promise less, or return none"},
	{"stand differently", "its Standing must follow from its input, like its answer"},
	{"timed out", "a call must end in time, and at once when its context is cancelled"},
	{"the process died", "keep the process alive during a call; its last output above says why it ended"},
	{"panicked", "find the panic by the stack that the policy logged, above"},
	{"raised", "find the exception by the traceback that the policy logged, above"},
	{"no answer within", "return when the context is cancelled"},
}

func remedyFor(r coretest.Result) string {
	for _, m := range remedies {
		if strings.Contains(r.Fault, m.words) {
			return m.remedy
		}
	}
	return "the contract of the stage, in core/stages.go, says what an answer may hold"
}
