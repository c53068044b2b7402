package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload/exchange"
	"github.com/quartet-sched/quartet/internal/inputfile"
	"github.com/quartet-sched/quartet/internal/interrupt"
)

// importFlags choose a log and how it is read.
type importFlags struct {
	from string
	maps []string
	keep []string
	zone string
	out  string
}

func (a *app) traceImportCommand() *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Read the job log of another system as a trace",
		Long: `Writes a trace in Quartet's own CSV to stdout, or with --out to a file, and says how many rows were
kept and how many were dropped for which reason: on stderr, unless --quiet is given, or with --out on
stdout. Every row is one or the other. FILE may be compressed by gzip; - is standard input. docs/traces.md describes the formats.`,
		Example: `  sacct -a -P -S 2026-01-01 -o JobID,Account,Submit,Start,End,Elapsed,Timelimit,State,AllocTRES > log
  quartet trace import log --from sacct --keep state=COMPLETED > trace.csv
  quartet trace import jobs.csv --from csv --map submit_s=queued,duration_s=runtime,replicas=gpus --out trace.csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c, a, args[0])
		},
	}
	c.Flags().StringVar(&f.from, "from", "", "format of the file: "+strings.Join(exchange.Formats, ", "))
	c.Flags().StringArrayVar(&f.maps, "map", nil, "columns of the file, as submit_s=Submit,replicas=GPUs; may be repeated (default: those that the format names)")
	c.Flags().StringArrayVar(&f.keep, "keep", nil, "keep rows with one of these values, as state=COMPLETED,FAILED; may be repeated")
	c.Flags().StringVar(&f.zone, "zone", "UTC", "time zone of dates that name none, such as Europe/Berlin")
	c.Flags().StringVar(&f.out, "out", "", "file to write the trace to, - for stdout (default: stdout)")
	cli.MustComplete(c, "from", exchange.Formats)
	cli.MustRequire(c, "from", exchange.Formats[0])
	return c
}

// columns takes the columns of --map into a map, and reports what is wrong with them.
func (f *importFlags) columns(into map[string]string, report func(place, summary, hint string)) {
	for _, list := range f.maps {
		for pair := range strings.SplitSeq(list, ",") {
			target, column, ok := strings.Cut(pair, "=")
			if !ok || target == "" || column == "" {
				report("--map", fmt.Sprintf("%q is not of the form column=COLUMN", pair), "for example submit_s=Submit")
				continue
			}
			if other, twice := into[target]; twice && other != column {
				report("--map", fmt.Sprintf("%s is given twice, as %q and %q", target, other, column), "")
			}
			into[target] = column
		}
	}
}

// options reads the flags, and reports everything that is wrong with them.
func (f *importFlags) options() (exchange.Options, error) {
	o := exchange.Options{From: f.from, Map: map[string]string{}}
	var ds core.Diagnostics
	add := func(place, summary, hint string) {
		ds = append(ds, core.Diagnostic{Position: core.Position{File: place}, Summary: summary, Hint: hint})
	}
	if !slices.Contains(exchange.Formats, f.from) {
		add("--from", fmt.Sprintf("unknown format %q", f.from), core.SuggestHint(f.from, "formats", exchange.Formats))
	}
	f.columns(o.Map, add)
	for _, condition := range f.keep {
		column, values, ok := strings.Cut(condition, "=")
		if !ok || column == "" || values == "" {
			add("--keep", fmt.Sprintf("%q is not of the form column=VALUE", condition), "for example state=COMPLETED")
			continue
		}
		o.Keep = append(o.Keep, exchange.Keep{Column: column, Values: strings.Split(values, ",")})
	}
	zone, err := time.LoadLocation(f.zone)
	if err != nil || f.zone == "Local" {
		add("--zone", fmt.Sprintf("unknown time zone %q", f.zone), "for example Europe/Berlin")
	}
	o.Zone = zone
	return o, ds.Err()
}

func (f *importFlags) run(c *cobra.Command, a *app, path string) error {
	if f.out == "-" {
		f.out = "" // as if it were left out
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	in, err := a.openLog(c.Context(), path)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := f.keepInput(path, in); err != nil {
		return err
	}
	trace, counts, err := exchange.Import(c.Context(), path, in, o)
	if err != nil {
		return err
	}
	if counts.Kept > 0 {
		if err := writeInto(f.out, a.Stdout, func(w io.Writer) error { return exchange.WriteCSV(w, trace) }); err != nil {
			return err
		}
	}
	report := a.Stderr
	switch {
	case f.out != "":
		report = a.Stdout // it is the data
	case a.Quiet && counts.Kept > 0:
		return nil
	}
	if err := writeCounts(report, counts, a.Format); err != nil {
		return err
	}
	if counts.Kept == 0 {
		return cli.Problem(path, "no row is kept", "the reasons are listed above")
	}
	return nil
}

// keepInput refuses to write the trace over the log.
func (f *importFlags) keepInput(path string, in io.ReadCloser) error {
	file, isFile := in.(*os.File)
	if !isFile {
		file = os.Stdin
	}
	log, err := file.Stat()
	if err != nil {
		return nil // there is none: it is told where it is read
	}
	if out, err := os.Stat(f.out); err == nil && os.SameFile(log, out) {
		return cli.Problem("--out", f.out+" is the log itself, which would be lost", "name another file")
	}
	return nil
}

// openLog opens a file, or standard input for -.
func (a *app) openLog(ctx context.Context, path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	file, err := interrupt.Call(ctx, func() (*os.File, error) { return inputfile.Open(path) })
	if err != nil {
		if pathError, ok := errors.AsType[*fs.PathError](err); ok {
			err = pathError.Err
		}
		return nil, cli.Problem(path, fmt.Sprintf("cannot be read: %v", err), "")
	}
	return file, nil
}

// writeInto writes to a file, which appears when it is complete, or to standard output where no file is named.
func writeInto(path string, stdout io.Writer, write func(io.Writer) error) (err error) {
	if path == "" {
		return write(stdout)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // what failed is told
		}
	}()
	const readable = 0o644
	if err := errors.Join(write(file), file.Chmod(readable), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// writeCounts accounts for the rows of a log.
func writeCounts(w io.Writer, counts exchange.Counts, format render.Format) error {
	if format == render.JSON {
		return render.Document(w, counts)
	}
	table := render.Table{Columns: []render.Column{
		{Name: "rows", Numeric: true},
		{Name: "what"},
		{Name: "first_line", Numeric: true},
		{Name: "example"},
	}}
	table.Rows = append(table.Rows, []any{counts.Rows, "read", "", ""}, []any{counts.Kept, "kept", "", ""})
	for _, d := range counts.Dropped {
		table.Rows = append(table.Rows, []any{d.Rows, "dropped: " + d.Reason, strconv.Itoa(d.Line), d.Example})
	}
	return table.Write(w, format)
}
