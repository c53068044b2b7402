package program

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand writes the manual pages that packages ship. It is hidden: users read --help.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual page of every command",
		Long:   "Writes a manual page in section 1 for every command into DIR: quartet.1, quartet-simulate.1 and so on.",
		Args:   cobra.ExactArgs(1),
		Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.RefuseOtherFormats(c, "manual pages"); err != nil {
				return err
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("make the folder of the manual pages: %w", err)
			}
			n, err := writeManuals(c.Root(), args[0])
			if err != nil {
				return err
			}
			a.Note("wrote %d manual pages into %s", n, args[0])
			return nil
		},
	}
}

// writeManuals writes the pages of a command and of those below it, the same bytes each time.
func writeManuals(c *cobra.Command, dir string) (written int, err error) {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		n, err := writeManuals(sub, dir)
		if err != nil {
			return 0, err
		}
		written += n
	}
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	if err := os.WriteFile(filepath.Join(dir, name+".1"), manual(c, name), 0o644); err != nil { //nolint:gosec // everybody may read a manual
		return 0, err
	}
	return written + 1, nil
}

// manual is the page of a command in the language of man, roff. It bears the first date of all: a page must not change with the day it is
// written on.
func manual(c *cobra.Command, name string) []byte {
	c.InitDefaultHelpFlag()
	var b bytes.Buffer
	fmt.Fprintf(&b, ".nh\n.TH %q \"1\" \"Jan 1970\" %q \"Quartet\"\n", strings.ToUpper(name), "quartet "+c.Root().Version)
	manualSection(&b, "NAME", name+" - "+roff(c.Short)+"\n")
	manualSection(&b, "SYNOPSIS", bold(c.UseLine())+"\n")
	manualSection(&b, "DESCRIPTION", manualText(cmp.Or(c.Long, c.Short)))
	manualSection(&b, "OPTIONS", manualFlags(c.NonInheritedFlags()))
	manualSection(&b, "OPTIONS INHERITED FROM PARENT COMMANDS", manualFlags(c.InheritedFlags()))
	if c.Example != "" {
		manualSection(&b, "EXAMPLE", manualExample(c.Example))
	}
	var others []string
	if c.HasParent() {
		others = append(others, bold(strings.ReplaceAll(c.Parent().CommandPath(), " ", "-")+"(1)"))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			others = append(others, bold(name+"-"+sub.Name()+"(1)"))
		}
	}
	if len(others) > 0 {
		manualSection(&b, "SEE ALSO", strings.Join(others, ", ")+"\n")
	}
	return b.Bytes()
}

// manualSection writes a part of a page under its heading, unless it is empty.
func manualSection(b *bytes.Buffer, heading, text string) {
	if text != "" {
		if heading != "NAME" {
			b.WriteString("\n")
		}
		b.WriteString("\n.SH " + heading + "\n" + text)
	}
}

// manualText is a text of paragraphs, of headings after ####, and of examples that are indented by a tab.
func manualText(text string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		switch heading, is := strings.CutPrefix(part, "#### "); {
		case is:
			part = ".SS " + roff(heading)
		case strings.HasPrefix(part, "\t"):
			part = manualExample(strings.ReplaceAll(part[1:], "\n\t", "\n"))
		case len(parts) > 0:
			part = ".PP\n" + roff(part) + "\n"
		default:
			part = roff(part) + "\n"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "\n")
}

func manualExample(text string) string { return ".EX\n" + roff(text) + "\n.EE\n" }

// manualFlags is a paragraph for each flag that users may give: its names, the value that it has unless it is given, and what it is for.
func manualFlags(flags *pflag.FlagSet) string {
	var paragraphs []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		names, value := bold("--"+f.Name), "="+f.DefValue
		if f.Shorthand != "" {
			names = bold("-"+f.Shorthand) + ", " + names
		}
		if f.Value.Type() == "string" {
			value = fmt.Sprintf("=%q", f.DefValue)
		}
		if f.NoOptDefVal != "" {
			value = "[" + value + "]"
		}
		paragraphs = append(paragraphs, names+roff(value)+"\n\t"+roff(f.Usage)+"\n")
	})
	return strings.Join(paragraphs, "\n.PP\n")
}

func bold(text string) string { return `\fB` + roff(text) + `\fP` }

// roff writes a text such that man shows it as it is: it takes lines that begin with a dot or an apostrophe for its own.
func roff(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, `\`, `\\`), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
