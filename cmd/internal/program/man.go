package program

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
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
	c.DisableAutoGenTag = true
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
	page, err := os.Create(filepath.Join(dir, name+".1"))
	if err != nil {
		return 0, err
	}
	date := time.Unix(0, 0).UTC() // a page must not change with the day it is written on
	header := doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: "quartet " + c.Root().Version, Manual: "Quartet", Date: &date}
	if err := doc.GenMan(c, &header, page); err != nil {
		_ = page.Close()
		return 0, err
	}
	return written + 1, page.Close()
}
