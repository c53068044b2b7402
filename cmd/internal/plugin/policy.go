package plugin

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/host"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// component is what a config can name, as its users see it, whatever slot it is for.
type component struct {
	stage string
	core.Info
	fields []core.Field
	plugin *host.Installed // that it comes from; nil for a built-in
}

func (c component) id() string { return c.stage + "/" + c.Type }

// origin says where the component comes from.
func (c component) origin() string {
	if c.plugin == nil {
		return "built-in"
	}
	return c.plugin.Name + " " + c.plugin.Version
}

// components lists every built-in in the order of the catalog.
func (a *app) components() []component {
	c := a.Catalog()
	var list []component
	list = appendComponents(list, "admission", c.Admission)
	list = appendComponents(list, "allocation", c.Allocation)
	list = appendComponents(list, "placement", c.Placement)
	list = appendComponents(list, "elasticity", c.Elasticity)
	list = appendComponents(list, "scaler", c.Scaler)
	list = appendComponents(list, "workload", c.Workload)
	return appendComponents(list, "backend", c.Backend)
}

func appendComponents[S any](list []component, stage string, factories []core.Factory[S]) []component {
	for _, f := range factories {
		list = append(list, component{stage: stage, Info: f.Info, fields: f.Fields()})
	}
	return list
}

// allComponents lists the built-ins and, behind those of their stage, the components of plugins, of which only type and
// summary are known before they are asked.
func (a *app) allComponents() ([]component, error) {
	plugins, err := host.Find(a.PluginFolders(nil))
	if err != nil {
		return nil, err
	}
	list := a.components()
	for _, p := range plugins {
		for _, c := range p.Components {
			list = append(list, component{stage: c.Stage, Info: core.Info{Type: c.Type, Summary: c.Summary}, plugin: &p})
		}
	}
	stages := stageNames(a.components())
	slices.SortStableFunc(list, func(a, b component) int {
		return slices.Index(stages, a.stage) - slices.Index(stages, b.stage)
	})
	return list, nil
}

// ask fills in what only the plugin itself tells.
func (c *component) ask(ctx context.Context) error {
	if c.plugin == nil {
		return nil
	}
	description, err := c.plugin.Binary().Describe(ctx)
	if err != nil {
		return err
	}
	info, ok := description.Component(wire.StageNamed(c.stage), c.Type)
	if !ok {
		return fmt.Errorf("plugin %q does not hold %q any more; install it again", c.plugin.Name, c.id())
	}
	c.Info, c.fields = info.Info, info.Fields
	return nil
}

func (a *app) policyCommand() *cobra.Command {
	c := cli.Group("policy", "List and describe the parts that a config can name",
		a.policyListCommand(), a.policyDescribeCommand())
	a.RegisterPluginDirs(c)
	return c
}

func (a *app) policyListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list [STAGE]",
		Short: "List the policies, workloads and backends",
		Args:  cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return stageNames(a.components()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := a.allComponents()
			if err != nil {
				return err
			}
			if len(args) == 1 {
				stages := stageNames(list)
				if !slices.Contains(stages, args[0]) {
					return cli.Problem("", fmt.Sprintf("unknown stage %q", args[0]), core.SuggestHint(args[0], "stages", stages))
				}
				list = slices.DeleteFunc(list, func(c component) bool { return c.stage != args[0] })
			}
			t := render.Table{Columns: []render.Column{{Name: "stage"}, {Name: "type"}, {Name: "source"}, {Name: "summary"}}}
			for _, c := range list {
				t.Rows = append(t.Rows, []any{c.stage, c.Type, c.origin(), c.Summary})
			}
			return t.Write(a.Stdout, a.Format)
		},
	}
}

func stageNames(list []component) []string {
	var names []string
	for _, c := range list {
		names = append(names, c.stage)
	}
	return slices.Compact(names)
}

func (a *app) policyDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "describe [STAGE/]TYPE",
		Short:   "Show a policy's idea, source, needs and settings",
		Example: "  quartet policy describe las\n  quartet policy describe placement/consolidated",
		Args:    cobra.ExactArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			list, err := a.allComponents()
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return ids(list), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(command *cobra.Command, args []string) error {
			list, err := a.allComponents()
			if err != nil {
				return err
			}
			c, err := findComponent(list, args[0])
			if err != nil {
				return err
			}
			if a.Engine.Absent && c.stage == "backend" && c.Type == cluster.Backend {
				return cluster.ErrElsewhere() // it knows the settings
			}
			if err := c.ask(command.Context()); err != nil {
				return err
			}
			return a.describe(c)
		},
	}
}

func ids(list []component) []string {
	var names []string
	for _, c := range list {
		names = append(names, c.id())
	}
	return names
}

// findComponent takes stage/type, or the type alone where it is unique. A policy goes before a workload or backend of
// the same type.
func findComponent(list []component, name string) (component, error) {
	found := slices.DeleteFunc(slices.Clone(list), func(c component) bool { return c.id() != name && c.Type != name })
	if policies := slices.DeleteFunc(slices.Clone(found), component.isInput); len(policies) > 0 {
		found = policies
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return component{}, cli.Problem("", fmt.Sprintf("unknown policy %q", name), core.SuggestHint(name, "values", names(list, name)))
	default:
		return component{}, cli.Problem("", fmt.Sprintf("%q is the type of several", name), "say which: "+strings.Join(ids(found), ", "))
	}
}

// isInput reports whether the component is not a policy but what policies are run on.
func (c component) isInput() bool { return c.stage == "workload" || c.stage == "backend" }

// names lists what the user may have meant: ids if the name looks like one, types otherwise.
func names(list []component, name string) []string {
	if strings.Contains(name, "/") {
		return ids(list)
	}
	var types []string
	for _, c := range list {
		if !slices.Contains(types, c.Type) {
			types = append(types, c.Type)
		}
	}
	return types
}

// description is a component as JSON.
type description struct {
	Stage        string            `json:"stage"`
	Type         string            `json:"type"`
	Plugin       *cli.Plugin       `json:"plugin,omitempty"` // that it comes from
	Summary      string            `json:"summary"`
	Description  string            `json:"description"`
	Source       string            `json:"source"`
	Capabilities []core.Capability `json:"capabilities"`
	Sharing      []string          `json:"sharing,omitempty"` // that a placement seats, or of which an allocation needs one
	Counts       bool              `json:"counts,omitempty"`  // a placement that counts CPUs and memory
	Config       []setting         `json:"config"`
}

// setting is one row of a config table.
type setting struct {
	Key     string `json:"key"`
	Type    string `json:"type"`
	Default string `json:"default"`
	Values  string `json:"values"`
	Doc     string `json:"doc"`
}

func (a *app) describe(c component) error {
	settings := listSettings([]setting{}, "", c.fields)
	if a.Format == render.JSON {
		return render.Document(a.Stdout, c.describe(settings))
	}
	table := render.Table{Columns: []render.Column{{Name: "key"}, {Name: "type"}, {Name: "default"}, {Name: "values"}, {Name: "doc"}}}
	for _, s := range settings {
		table.Rows = append(table.Rows, []any{s.Key, s.Type, s.Default, s.Values, s.Doc})
	}
	if a.Format == render.CSV {
		return table.Write(a.Stdout, a.Format)
	}
	if err := c.introduce(a.Stdout); err != nil {
		return err
	}
	if len(settings) == 0 {
		_, err := fmt.Fprintln(a.Stdout, "\nIt has no settings.")
		return err
	}
	if _, err := fmt.Fprintln(a.Stdout); err != nil {
		return err
	}
	return table.Write(a.Stdout, a.Format)
}

func (c component) describe(settings []setting) description {
	d := description{
		Stage: c.stage, Type: c.Type, Summary: c.Summary, Description: c.Description, Source: c.Source,
		Capabilities: append([]core.Capability{}, c.Capabilities...), Sharing: sharings(c.Sharing), Counts: c.Counts, Config: settings,
	}
	if c.plugin != nil {
		d.Plugin = &cli.Plugin{Name: c.plugin.Name, Version: c.plugin.Version, SHA256: c.plugin.SHA256}
	}
	return d
}

// introduce writes what a component is, in plain text that is also Markdown.
func (c component) introduce(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", c.id(), c.Summary)
	if c.Description != "" {
		fmt.Fprintf(&b, "\n%s\n", c.Description)
	}
	if c.plugin != nil {
		fmt.Fprintf(&b, "\nPlugin: %s, %s\n", c.origin(), c.plugin.File())
	}
	if c.Source != "" {
		fmt.Fprintf(&b, "\nSource: %s\n", c.Source)
	}
	if len(c.Capabilities) > 0 {
		fmt.Fprintf(&b, "\nNeeds of the backend: %s\n", joinCapabilities(c.Capabilities))
	}
	if ways := sharings(c.Sharing); len(ways) > 0 && c.stage == "allocation" {
		fmt.Fprintf(&b, "\nNeeds cluster.sharing: %s\n", strings.Join(ways, " or "))
	} else if len(ways) > 0 {
		fmt.Fprintf(&b, "\nGoes with cluster.sharing: %s\n", strings.Join(append([]string{core.Exclusive.String()}, ways...), ", "))
	}
	if c.Counts {
		fmt.Fprint(&b, "\nGoes with cluster.count_resources\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sharings names ways of sharing.
func sharings(ways []core.Sharing) (names []string) {
	for _, s := range ways {
		names = append(names, s.String())
	}
	return names
}

func joinCapabilities(list []core.Capability) string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = string(c)
	}
	return strings.Join(names, ", ")
}

// listSettings flattens nested settings into dotted keys.
func listSettings(list []setting, prefix string, fields []core.Field) []setting {
	for _, f := range fields {
		key := prefix + f.Name
		list = append(list, setting{Key: key, Type: f.Type, Default: f.Default, Values: values(f), Doc: f.Doc})
		if strings.HasPrefix(f.Type, "list of ") {
			key += "[]"
		}
		list = listSettings(list, key+".", f.Fields)
	}
	return list
}

// values words what a setting may be.
func values(f core.Field) string {
	switch {
	case f.Required && len(f.Enum) == 0:
		return "required"
	case len(f.Enum) > 0:
		return strings.Join(f.Enum, ", ")
	case f.Min != "" && f.Max != "":
		return f.Min + " to " + f.Max
	case f.Min != "":
		return "at least " + f.Min
	case f.Max != "":
		return "at most " + f.Max
	default:
		return ""
	}
}
