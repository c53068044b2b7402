package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/report"
)

func (a *app) reportCommand() *cobra.Command {
	out, formats := "", []string(nil)
	c := &cobra.Command{
		Use:   "report RUN...|STUDY",
		Short: "Write one HTML page of a run, of several beside each other, or of a study",
		Long: `Reads the folder of a run or a study and writes report.html into it: one file that needs no network. Of several runs it
writes report.html into the present folder. docs/reports.md says what the page shows.

--figures draws its curves and points for papers, too, into the folder figures beside the page, as svg or pdf.`,
		Example: `  quartet report runs/default
  quartet report studies/five --figures svg,pdf
  quartet report runs/default runs/fifo --out compared.html`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkFormats(formats, out); err != nil {
				return err
			}
			page, err := makeReport(args)
			if err != nil {
				return err
			}
			if out == "" {
				out = reportFile
				if len(args) == 1 {
					out = filepath.Join(args[0], reportFile)
				}
			}
			if out == "-" {
				_, err := a.stdout.Write(page)
				return err
			}
			if err := writeWhole(out, page); err != nil {
				return err
			}
			a.note("%s: %.1f MB", out, float64(len(page))/1e6)
			if len(formats) == 0 {
				return nil
			}
			return a.drawFigures(args, filepath.Join(filepath.Dir(out), figuresFolder), formats)
		},
	}
	c.Flags().StringVar(&out, "out", "", "file of the page, - for stdout (default: report.html in the folder of the run)")
	c.Flags().StringSliceVar(&formats, "figures", nil, "formats to draw the figures in, besides the page: "+strings.Join(report.Formats(), ", "))
	mustCompleteFunc(c, "figures", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return report.Formats(), cobra.ShellCompDirectiveNoFileComp
	})
	return c
}

// reportFile is the page in the folder of a run.
const reportFile = "report.html"

// figuresFolder holds figures, beside the page.
const figuresFolder = "figures"

// checkFormats refuses formats that figures are not drawn in, and a page without a folder to put figures beside.
func checkFormats(formats []string, out string) error {
	for _, format := range formats {
		if !slices.Contains(report.Formats(), format) {
			return problem("--figures", fmt.Sprintf("unknown format %q", format), core.SuggestHint(format, "formats", report.Formats()))
		}
	}
	if len(formats) > 0 && out == "-" {
		return problem("--figures", "figures go into a folder beside the page, and this one goes to stdout", "leave out --out -, or --figures")
	}
	return nil
}

// drawFigures writes the figures of one study, or of runs, in each format.
func (a *app) drawFigures(dirs []string, folder string, formats []string) error {
	figures, err := figuresOf(dirs)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder of figures: %w", err)
	}
	for i := range figures {
		for _, format := range formats {
			var drawn bytes.Buffer
			if err := report.Draw(&drawn, &figures[i], format); err != nil {
				return err
			}
			if err := writeWhole(filepath.Join(folder, figures[i].Name+"."+format), drawn.Bytes()); err != nil {
				return err
			}
		}
	}
	a.note("%s: %s as %s", folder, render.Count(len(figures), "figure"), strings.Join(formats, ", "))
	return nil
}

func figuresOf(dirs []string) ([]report.Figure, error) {
	if len(dirs) == 1 && report.IsStudy(dirs[0]) {
		s, err := report.ReadStudy(dirs[0])
		if err != nil {
			return nil, notARun(dirs[0], err)
		}
		return s.Figures(), nil
	}
	var runs []*report.Run
	for _, dir := range dirs {
		r, err := report.ReadRun(dir)
		if err != nil {
			return nil, notARun(dir, err)
		}
		runs = append(runs, r)
	}
	return report.FiguresOfRuns(runs), nil
}

// makeReport is the page of one run or of several.
func makeReport(dirs []string) ([]byte, error) {
	var page bytes.Buffer
	if len(dirs) == 1 {
		if err := report.Write(&page, dirs[0]); err != nil {
			return nil, notARun(dirs[0], err)
		}
		return page.Bytes(), nil
	}
	var runs []*report.Run
	for _, dir := range dirs {
		r, err := report.ReadRun(dir)
		if err != nil {
			return nil, notARun(dir, err)
		}
		runs = append(runs, r)
	}
	err := report.WriteRuns(&page, runs)
	return page.Bytes(), err
}

// notARun words why a folder cannot be reported on.
func notARun(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return problem(dir, "there is no such folder", "give the folder that a run was written to, such as "+filepath.Join(defaultOut, "default"))
	}
	return problem(dir, err.Error(), "give the folder that a run was written to, such as "+filepath.Join(defaultOut, "default"))
}

// writeWhole writes a file that is never seen half written.
func writeWhole(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // best effort: the first error is told
		return fmt.Errorf("write %q: %w", path, err)
	}
	return nil
}
