package operate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/engine"
)

// whatIfFlags say what might be done to a run.
type whatIfFlags struct {
	twinFlags
	drain, add, submit []string
	policy             string
	lasts, horizon     time.Duration
}

// The flags that make a plan a comparison, and those that only go with them.
var (
	changeFlags   = []string{"drain", "add", "policy", "submit"}
	whatIfDetails = []string{"for", "horizon", "at", "draws", "work", "arrivals"}
)

func (f *whatIfFlags) register(a *app, c *cobra.Command) {
	flags := c.Flags()
	flags.StringSliceVar(&f.drain, "drain", nil, "what if this node were drained; may be repeated")
	flags.DurationVar(&f.lasts, "for", 0, "with --drain, until it is ready again (default: for ever)")
	flags.StringSliceVar(&f.add, "add", nil, "what if nodes joined, such as big=4: as those of a pool or a group of nodes are, or as a node is; may be repeated")
	flags.StringVar(&f.policy, "policy", "", "what if the policies and rounds of this config decided: a file, or the name of an embedded config")
	flags.StringSliceVar(&f.submit, "submit", nil, "what if the jobs of this job file were submitted now; may be repeated")
	flags.DurationVar(&f.horizon, "horizon", 0, "how far to look ahead (default: until the jobs that are there have ended)")
	f.registerDraws(c)
	cli.MustCompleteFunc(c, "policy", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return configs.EmbeddedNames(), cobra.ShellCompDirectiveDefault
	})
	cli.MustCompleteFunc(c, "drain", func(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		f.patience = 0
		ctx, cancel := context.WithTimeout(c.Context(), completionLimit)
		defer cancel()
		var names []string
		if err := f.with(ctx, func(client cluster.Orders) (err error) {
			names, err = nodeNames(ctx, client)
			return err
		}); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// asked reports whether a change is asked about.
func (f *whatIfFlags) asked(c *cobra.Command) (bool, error) {
	changed := func(names []string) (list []string) {
		for _, name := range names {
			if c.Flags().Changed(name) {
				list = append(list, name)
			}
		}
		return list
	}
	if len(changed(changeFlags)) > 0 {
		return true, nil
	}
	var found core.Diagnostics
	for _, name := range changed(whatIfDetails) {
		found = append(found, core.Diagnostic{
			Position: core.Position{File: "--" + name}, Summary: "is about a change", Hint: "name one, by --drain, --add, --policy or --submit",
		})
	}
	return false, found.Err()
}

// change is what the flags say, and what is wrong with them whatever the run is.
func (f *whatIfFlags) change(c *cobra.Command, a *app) (*quartet.Change, core.Diagnostics) {
	change := &quartet.Change{Drain: f.drain, For: f.lasts, Horizon: f.horizon}
	var found core.Diagnostics
	add := func(flag, summary, hint string) {
		found = append(found, core.Diagnostic{Position: core.Position{File: flag}, Summary: summary, Hint: hint})
	}
	if c.Flags().Changed("for") {
		if len(f.drain) == 0 {
			add("--for", "says how long a drain lasts", "name the nodes by --drain")
		}
		if f.lasts <= 0 {
			add("--for", fmt.Sprintf("must be positive, got %v", f.lasts), "leave it out for ever")
		}
	}
	if c.Flags().Changed("horizon") && f.horizon <= 0 {
		add("--horizon", fmt.Sprintf("must be positive, got %v", f.horizon), "leave it out to look until the jobs that are there have ended")
	}
	change.Add = f.added(add)
	for _, name := range f.submit {
		jobs, err := f.jobsIn(c, a, name)
		if err != nil {
			found = append(found, cli.AsDiagnostics("--submit", err)...)
		}
		change.Submit = append(change.Submit, jobs...)
	}
	if f.policy != "" {
		config, err := a.LoadConfig(c.Context(), configs.Options{Files: []string{f.policy}})
		if err != nil {
			found = append(found, cli.AsDiagnostics("--policy", err)...)
		}
		change.Policy = config
	}
	return change, found
}

// added reads the nodes of --add, and reports what is wrong with them.
func (f *whatIfFlags) added(report func(flag, summary, hint string)) (list []quartet.MoreNodes) {
	named := map[string]bool{}
	for _, text := range f.add {
		like, count, ok := strings.Cut(text, "=")
		n, err := strconv.Atoi(count)
		switch {
		case !ok || like == "" || err != nil || n < 1 || n > mostAdded:
			report("--add", fmt.Sprintf("%q is no NAME=COUNT, with a count from 1 to %d", text, mostAdded), "such as --add big=4")
			continue
		case named[like]:
			report("--add", fmt.Sprintf("%q is named twice", like), "")
		}
		named[like] = true
		list = append(list, quartet.MoreNodes{Like: like, Count: n})
	}
	return list
}

// jobsIn reads the jobs of a job file; on a cluster, as its scheduler would get them.
func (f *whatIfFlags) jobsIn(c *cobra.Command, a *app, name string) ([]workload.Job, error) {
	if !f.Meant() {
		file, err := readJobFile(c.Context(), name, c.InOrStdin())
		if err != nil {
			return nil, err
		}
		return workload.DecodeJobs(file.Name, file.Text)
	}
	on, err := a.OpenCluster(&f.KubeFlags) // before a file is read: the command may be handed to another program
	if err != nil {
		return nil, err
	}
	defer on.Close() //nolint:errcheck // nothing was asked
	file, err := readJobFile(c.Context(), name, c.InOrStdin())
	if err != nil {
		return nil, err
	}
	return on.JobsIn(file)
}

// mostAdded bounds the nodes that join.
const mostAdded = 10_000

// whatIf compares two futures of a run.
func (a *app) whatIf(c *cobra.Command, f *whatIfFlags) error {
	change, found := f.change(c, a)
	if len(found) > 0 {
		f.patience = 0 // it is refused in any case
	}
	o, more := f.forecasting(c)
	found = append(found, more...)
	by := twinning{named: f.drained(&found)}
	by.do = func(t *quartet.Twin) (func() error, error) {
		found = append(found, t.Check(change)...)
		if change.Policy != nil {
			config, err := a.policiesFor(c.Context(), t, change.Policy)
			if err != nil {
				found = append(found, cli.AsDiagnostics("--policy", err)...)
			}
			change.Policy = config
		}
		if err := found.Err(); err != nil {
			return nil, err
		}
		w, err := t.WhatIf(c.Context(), change, f.draws)
		return func() error { return a.writeWhatIf(t, f.words(), w) }, err
	}
	err := a.twin(c.Context(), &f.twinFlags, o, by)
	if wrong := found.Err(); wrong != nil { // whatever else is wrong
		return wrong
	}
	return err
}

// drained adds to what is wrong the nodes to drain that are not there; nil where something else may turn out to be wrong later, for all of it is reported together.
func (f *whatIfFlags) drained(found *core.Diagnostics) func(jobs, nodes []string) error {
	if len(f.drain) == 0 || len(f.add)+len(f.submit) > 0 || f.policy != "" {
		return nil
	}
	return func(_, nodes []string) error {
		if nodes == nil {
			return nil
		}
		*found = append(*found, engine.CheckDrain(f.drain, nodes)...)
		return found.Err()
	}
}

// policiesFor holds the policies of a config against the run that they are to decide: its cluster and what its backend can tell.
func (a *app) policiesFor(ctx context.Context, t *quartet.Twin, other *configs.Config) (*configs.Config, error) {
	text, err := t.WithPolicies(other).Resolved()
	if err != nil {
		return nil, err
	}
	config, err := configs.Parse(a.Catalog(), "--policy", text, configs.Options{Outside: a.Outside(ctx)})
	if found, is := errors.AsType[core.Diagnostics](err); is { // the lines are those of no file
		for i := range found {
			found[i].Position = core.Position{File: "--policy"}
		}
		return nil, found
	}
	if err == nil {
		config.Synthesizer, config.Alternatives = other.Synthesizer, other.Alternatives // so that a note says that they are left out
	}
	return config, err
}

// words say what is changed.
func (f *whatIfFlags) words() string {
	var parts []string
	if len(f.drain) > 0 {
		text := "drain " + strings.Join(f.drain, ", ")
		if f.lasts > 0 {
			text += " for " + core.FormatDuration(f.lasts)
		}
		parts = append(parts, text)
	}
	for _, more := range f.add {
		parts = append(parts, "add "+more)
	}
	if f.policy != "" {
		parts = append(parts, "policy "+f.policy)
	}
	for _, file := range f.submit {
		parts = append(parts, "submit "+file)
	}
	return strings.Join(parts, "; ")
}
