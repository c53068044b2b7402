package study

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/cmd/internal/ui"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/lab/report"
)

func (a *app) reportCommand() *cobra.Command {
	out, formats := "", []string(nil)
	c := &cobra.Command{
		Use:   "report RUN...|STUDY",
		Short: "Write one HTML page of a run, of several beside each other, or of a study",
		Long: `Reads the folder of a run or a study and writes report.html into it: one file that needs no network. Of several runs it
writes report.html into the present folder. docs/reports.md says what the page shows. Problems with the files, or that
the run has not ended, are reported there and here.

--figures draws its curves and points for papers, too, into the folder figures beside the page, as svg or pdf.`,
		Example: `  quartet report runs/default
  quartet report studies/five --figures svg,pdf
  quartet report runs/default runs/fifo --out compared.html`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkFormats(formats, out); err != nil {
				return err
			}
			read, err := readReport(c.Context(), args)
			if err != nil {
				return err
			}
			var made bytes.Buffer
			if err := read.Write(&made); err != nil {
				return err
			}
			page := made.Bytes()
			for _, note := range read.Notes() {
				a.Note("%s", note)
			}
			if out == "" {
				out = reportFile
				if len(args) == 1 {
					out = filepath.Join(args[0], reportFile)
				}
			}
			if out == "-" {
				_, err := a.Stdout.Write(page)
				return err
			}
			if err := keepSources(args, out); err != nil {
				return err
			}
			if err := writeWhole(out, page); err != nil {
				return err
			}
			a.Note("%s: %.1f MB", out, float64(len(page))/1e6)
			if len(formats) == 0 {
				return nil
			}
			return a.drawFigures(read.Figures(), filepath.Join(filepath.Dir(out), figuresFolder), formats)
		},
	}
	c.Flags().StringVar(&out, "out", "", "file of the page, - for stdout (default: report.html in the folder of the run)")
	c.Flags().StringSliceVar(&formats, "figures", nil, "formats to draw the figures in, besides the page: "+strings.Join(report.Formats(), ", "))
	cli.MustCompleteFunc(c, "figures", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return report.Formats(), cobra.ShellCompDirectiveNoFileComp
	})
	return c
}

// keepSources refuses to write a page over a file in the folder of a run or a study, unless that is a page too.
func keepSources(dirs []string, out string) error {
	if _, err := os.Stat(out); err != nil || strings.EqualFold(filepath.Ext(out), filepath.Ext(reportFile)) {
		return nil
	}
	path, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		above, err := os.Stat(folder)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			if info, err := os.Stat(dir); err == nil && os.SameFile(info, above) {
				return cli.Problem("--out", fmt.Sprintf("%s is a file of %s, which would be lost", out, dir), "name another file, such as page.html")
			}
		}
		if folder == filepath.Dir(folder) {
			return nil
		}
	}
}

// reportFile is the page in the folder of a run.
const reportFile = "report.html"

// figuresFolder holds figures, beside the page.
const figuresFolder = "figures"

// checkFormats refuses formats that figures are not drawn in, and a page without a folder to put figures beside.
func checkFormats(formats []string, out string) error {
	for _, format := range formats {
		if !slices.Contains(report.Formats(), format) {
			return cli.Problem("--figures", fmt.Sprintf("unknown format %q", format), core.SuggestHint(format, "formats", report.Formats()))
		}
	}
	if len(formats) > 0 && out == "-" {
		return cli.Problem("--figures", "figures go into a folder beside the page, and this one goes to stdout", "leave out --out -, or --figures")
	}
	return nil
}

// drawFigures writes the figures of one study, or of runs, in each format.
func (a *app) drawFigures(figures []report.Figure, folder string, formats []string) error {
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
	a.Note("%s: %s as %s", folder, render.Count(len(figures), "figure"), strings.Join(formats, ", "))
	return nil
}

// several are runs beside each other.
type several []*report.Run

func (s several) Write(w io.Writer) error { return report.WriteRuns(w, s) }

func (s several) Figures() []report.Figure { return report.FiguresOfRuns(s) }

func (s several) Notes() (list []string) {
	for _, r := range s {
		for _, note := range r.Notes() {
			list = append(list, r.Dir+": "+note)
		}
	}
	return list
}

// readReport reads one run or study, or several runs.
func readReport(ctx context.Context, dirs []string) (report.Document, error) {
	var runs several
	for _, dir := range dirs {
		d, err := report.Read(dir, soFarIn(ctx, dir))
		if err != nil {
			return nil, notARun(dir, err)
		}
		r, isRun := d.(*report.Run)
		if len(dirs) == 1 {
			return d, nil
		}
		if !isRun {
			return nil, cli.Problem(dir, "is a study, and only runs are put beside each other", "give it alone; quartet compare compares studies")
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// soFarIn is what the scheduler of the run in a folder tells; nil when it has none.
func soFarIn(ctx context.Context, dir string) *report.SoFar {
	socket := ui.Socket(dir)
	if _, err := os.Stat(socket); err != nil {
		return nil
	}
	soFar, err := ui.ReadSoFar(ctx, socket)
	if err != nil {
		return &report.SoFar{Trouble: err.Error()}
	}
	return soFar
}

// notARun words why a folder cannot be reported on.
func notARun(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Problem(dir, "there is no such folder", "give the folder that a run was written to, such as "+filepath.Join(cli.DefaultOut, "default"))
	}
	if errors.Is(err, report.ErrNotEnded) {
		return cli.Problem(dir, err.Error(), "the same quartet bench resumes it")
	}
	return cli.Problem(dir, err.Error(), "give the folder that a run was written to, such as "+filepath.Join(cli.DefaultOut, "default"))
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
