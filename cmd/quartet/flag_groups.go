package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What cobra keeps its groups of flags under, for completion.
const (
	excludingGroups = "cobra_annotation_mutually_exclusive"
	togetherGroups  = "cobra_annotation_required_if_others_set"
)

// checkFlagGroups refuses flags that do not go together, in words of its own: cobra tells of its groups.
func checkFlagGroups(c *cobra.Command, _ []string) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if err != nil {
			return
		}
		for _, group := range f.Annotations[excludingGroups] {
			if given := givenOf(c, group, true); len(given) > 1 {
				err = fmt.Errorf("%s exclude each other", flagList(given))
				return
			}
		}
		for _, group := range f.Annotations[togetherGroups] {
			if missing := givenOf(c, group, false); len(missing) > 0 {
				err = fmt.Errorf("--%s needs %s too", f.Name, flagList(missing))
				return
			}
		}
	})
	return err
}

// givenOf lists the flags of a group that were given, or those that were not.
func givenOf(c *cobra.Command, group string, given bool) []string {
	return slices.DeleteFunc(strings.Fields(group), func(name string) bool { return c.Flags().Changed(name) != given })
}

// flagList words names as in: --a, --b and --c.
func flagList(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return "--" + names[0]
	}
	return "--" + strings.Join(names[:last], ", --") + " and --" + names[last]
}
