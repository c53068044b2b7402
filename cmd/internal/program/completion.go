package program

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/operate"
	"github.com/quartet-sched/quartet/configs"
)

// completeSets completes --set of every command that reads a config to the paths of that config, as its -f and --set make it.
func (a *app) completeSets(c *cobra.Command) {
	for _, sub := range c.Commands() {
		a.completeSets(sub)
	}
	if c.Flags().Lookup("set") == nil {
		return
	}
	cli.MustCompleteFunc(c, "set", func(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		config := a.configSoFar(c)
		if config == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var paths []string
		for _, o := range config.Origins() {
			path, inside := o.Path, ""
			if ofWorkload(c) { // there --set is inside the settings of the workload
				if inside, _ = strings.CutPrefix(path, "workload.config."); inside == path {
					continue
				}
				path = inside
			}
			if strings.HasPrefix(path, typed) {
				paths = append(paths, path+"=")
			}
		}
		return slices.Compact(paths), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// ofWorkload reports whether the command reads the workload of a config only.
func ofWorkload(c *cobra.Command) bool { return c.Parent().Name() == "trace" }

// configSoFar is the config of the flags that were typed already; nil when it cannot be read yet.
func (a *app) configSoFar(c *cobra.Command) *configs.Config {
	files, _ := c.Flags().GetStringArray("file")
	sets, _ := c.Flags().GetStringArray("set")
	if len(files) == 0 && (c.Name() == "run" || c.Name() == "plan") {
		files = []string{operate.RunConfig}
	}
	if ofWorkload(c) {
		for i, set := range sets {
			sets[i] = "workload.config." + set
		}
		if kind, _ := c.Flags().GetString("type"); kind != "" {
			sets = append([]string{"workload={type: " + kind + "}"}, sets...)
		}
	}
	// The word that is being typed is among the sets when the shell hands it over as such; without it there may be a config.
	attempts := [][]string{sets, nil}
	if ofWorkload(c) {
		attempts = attempts[:1] // the settings of another workload are no help
	}
	for _, given := range attempts {
		options := configs.Options{Files: files, Sets: given, Env: os.LookupEnv}
		if config, err := configs.Load(a.Catalog(), options); err == nil {
			return config
		}
	}
	return nil
}
