package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What cobra keeps its groups of flags under, for completion.
const (
	excludingGroups = "cobra_annotation_mutually_exclusive"
	togetherGroups  = "cobra_annotation_required_if_others_set"
)

// validValues is what the values of a flag are kept under.
const validValues = "quartet_valid_values"

// MustRequire makes a flag required. The example is shown where its values cannot be listed.
func MustRequire(c *cobra.Command, flag, example string) {
	if err := errors.Join(c.MarkFlagRequired(flag), c.Flags().SetAnnotation(flag, flagExample, []string{example})); err != nil {
		panic(err) // the flag does not exist: a mistake in this package
	}
}

const flagExample = "quartet_example"

// missingFlags tells all required flags that were not given, with what they may be.
func missingFlags(c *cobra.Command) error {
	var missing []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Annotations[cobra.BashCompOneRequiredFlag] == nil {
			return
		}
		text := "--" + f.Name + " is required"
		if values := f.Annotations[validValues]; values != nil {
			text += "; valid values: " + strings.Join(values, ", ")
		} else if example := f.Annotations[flagExample]; example != nil {
			text += "; for example --" + f.Name + " " + example[0]
		}
		missing = append(missing, text)
	})
	if missing == nil {
		return nil
	}
	return errors.New(strings.Join(missing, "\n"))
}

// CheckFlags refuses flags that are given nothing, such as --jobs "$JOBS" with JOBS unset, flags that do not go together and
// those that are missing, in words of its own: cobra names its groups.
func CheckFlags(c *cobra.Command, _ []string) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if err != nil {
			return
		}
		if emptyFlag(f) {
			err = fmt.Errorf("--%s is empty; leave it out, or give it a value", f.Name)
			return
		}
		if f.Value.Type() == "duration" && strings.HasPrefix(f.Value.String(), "-") {
			err = fmt.Errorf("--%s: %s is negative", f.Name, f.Value)
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
	return cmp.Or(err, missingFlags(c))
}

// FlagError words what is wrong with a number, a truth or a duration in a flag: pflag passes on the words of the parser.
func FlagError(_ *cobra.Command, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	wanted := ""
	switch invalid.GetFlag().Value.Type() {
	case "bool":
		wanted = "true or false"
	case "float64":
		wanted = "a number"
	case "int":
		wanted = "a whole number"
	case "uint32", "uint64":
		wanted = "a whole number, 0 or more"
	case "duration":
		wanted = "a duration such as 30s"
	default:
		return err
	}
	reason := "is not " + wanted
	if errors.Is(err, strconv.ErrRange) {
		reason = "is out of range"
	}
	return fmt.Errorf("--%s: %q %s", invalid.GetFlag().Name, invalid.GetValue(), reason)
}

// emptyFlag reports whether a flag holds an empty text. An empty --set is told of with the form of the others.
func emptyFlag(f *pflag.Flag) bool {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values := list.GetSlice()
		return len(values) == 0 || f.Name != "set" && slices.Contains(values, "")
	}
	return f.Value.Type() == "string" && f.Value.String() == ""
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
