package exchange

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// The formats that Import reads.
const (
	Sacct  = "sacct"  // of `sacct --parsable2` or `--parsable`, of Slurm
	Kueue  = "kueue"  // a table of Kueue's workloads
	SWF    = "swf"    // the standard workload format
	Batsim = "batsim" // the JSON workloads of Batsim
	CSV    = "csv"    // any table with a header

	Kubectl = "kubectl" // what `kubectl get ... -o json` prints of jobs, pods or workloads
	Philly  = "philly"  // cluster_job_log, the JSON of Microsoft's Philly cluster
	PAI     = "pai"     // pai_task_table of Alibaba's cluster trace of 2020
	OpenB   = "openb"   // the tables of Alibaba's cluster traces of 2023 (openb), 2025 and 2026 (spot)
	Acme    = "acme"    // the job traces of Shanghai AI Lab's Acme
	Helios  = "helios"  // the cluster logs of SenseTime's Helios
)

// Formats lists the formats that Import reads.
var Formats = []string{Sacct, Kueue, Kubectl, SWF, Batsim, Philly, PAI, OpenB, Acme, Helios, CSV}

// Options say how a log is read.
type Options struct {
	From string            // one of Formats
	Map  map[string]string // a column of the log, by the column of the trace that it becomes; for tables only
	Keep []Keep            // what a row must be to be kept: all of it
	Zone *time.Location    // of dates without a zone; nil for UTC
}

// Keep is a column of the log with the values that are kept.
type Keep struct {
	// Column: name of the column.
	Column string
	// Values: values of the rows that are kept.
	Values []string
}

// importer is an import on its way.
type importer struct {
	context.Context
	Options
	file    string
	trace   Trace
	tally   tally
	labels  map[string]string
	byName  map[string]int32
	requeue bool // a name that comes again is the same job, of which the row that ended last is kept
}

// Import reads a log, named for messages. Every row is in the trace or in the counts. The error is a core.Diagnostics with
// every problem of the options and of the head of the log, or that of the reader.
func Import(ctx context.Context, name string, r io.Reader, o Options) (*Trace, Counts, error) {
	in := &importer{Context: ctx, Options: o, file: name, labels: map[string]string{}, byName: map[string]int32{}}
	content, err := plain(r)
	if err != nil {
		return nil, Counts{}, in.problem(0, err.Error(), "")
	}
	switch o.From {
	case SWF:
		err = in.swf(content)
	case Batsim:
		err = in.batsim(content)
	case Kubectl:
		err = in.kubectl(content)
	case Philly:
		err = in.philly(content)
	default:
		if l, table := layouts[o.From]; table {
			err = in.rows(content, l)
			break
		}
		err = core.Diagnostics{{Summary: fmt.Sprintf("unknown format %q", o.From), Hint: core.SuggestHint(o.From, "formats", Formats)}}
	}
	if err != nil {
		return nil, Counts{}, err
	}
	in.rebase()
	return &in.trace, in.tally.counts(in.trace.count), nil
}

// textStart is how many bytes of a log are looked at before it is read, such that one without end is refused.
const textStart = 1 << 12

// plain is the text of a log: decompressed, and without a byte order mark.
func plain(r io.Reader) (io.Reader, error) {
	content := bufio.NewReaderSize(r, 1<<16)
	if start, _ := content.Peek(2); string(start) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(content)
		if err != nil {
			return nil, cutShort(err)
		}
		content = bufio.NewReaderSize(unzipped, 1<<16)
	}
	if start, _ := content.Peek(2); string(start) == "\xff\xfe" || string(start) == "\xfe\xff" {
		return nil, errors.New("is UTF-16 text; save it as UTF-8")
	}
	if start, _ := content.Peek(textStart); bytes.IndexByte(start, 0) >= 0 {
		return nil, errors.New("is not text: it holds zero bytes")
	}
	if start, _ := content.Peek(3); string(start) == "\ufeff" {
		_, _ = content.Discard(len(start)) // just peeked at
	}
	return content, nil
}

// cutShort words the error of a file that ends too early.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file is cut short")
	}
	return err
}

func (in *importer) problem(line int, summary, hint string) error {
	return core.Diagnostics{{Position: core.Position{File: in.file, Line: line}, Summary: summary, Hint: hint}}
}

// broken is the error of a log that cannot be read on.
func (in *importer) broken(line int, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return in.problem(line, fmt.Sprintf("cannot be read: %v", cutShort(err)), "")
}

// label is a text that many records share; it is kept once.
func (in *importer) label(text []byte) string {
	if known, found := in.labels[string(text)]; found {
		return known
	}
	s := string(text)
	in.labels[s] = s
	return s
}

// keeps reports whether a record whose log has no columns is kept.
func (in *importer) keeps(outcome string) bool {
	return !slices.ContainsFunc(in.Keep, func(k Keep) bool {
		return !slices.ContainsFunc(k.Values, func(v string) bool {
			wanted, _, _ := outcomeOf(v)
			return strings.EqualFold(v, outcome) || wanted != "" && wanted == outcome
		})
	})
}

// checkFixed refuses options that a log without columns has no use for.
func (in *importer) checkFixed() error {
	var ds core.Diagnostics
	if len(in.Map) > 0 {
		ds = append(ds, core.Diagnostic{Summary: in.From + " has no columns to map", Hint: "only tables have columns, such as sacct, kueue and csv"})
	}
	for _, k := range in.Keep {
		if !strings.EqualFold(k.Column, "outcome") && !strings.EqualFold(k.Column, "state") && !strings.EqualFold(k.Column, "status") {
			ds = append(ds, core.Diagnostic{Summary: fmt.Sprintf("%s has no column %q to keep by", in.From, k.Column), Hint: "it has outcome"})
		}
	}
	return ds.Err()
}

// reasonKeep words why a row is not kept.
func reasonKeep(k Keep) string { return k.Column + " is not " + strings.Join(k.Values, " or ") }

// Reasons that several formats drop rows for.
const (
	reasonNotEnded  = "has not ended"
	reasonNeverRan  = "never started"
	reasonNoGPU     = "no GPU"
	reasonNoTime    = "ran for no time"
	reasonBackwards = "ends before it starts"
	reasonEarly     = "starts before it is submitted"
	reasonAgain     = "another row of the same job is kept"
	reasonName      = "name is not printable text"
	reasonEpoch     = "is submitted years before most others, as by a clock that was not set"
	reasonLong      = "line is longer than 1 MiB"
)

// keep adds a record unless one of its name is kept already.
func (in *importer) keep(r *Record) {
	if at, again := in.byName[r.Name]; again {
		if kept := in.trace.At(int(at)); in.requeue && r.ends() > kept.ends() {
			in.tally.drop(reasonAgain, int(kept.line), r.Name)
			*kept = *r
			return
		}
		in.tally.drop(reasonAgain, int(r.line), r.Name)
		return
	}
	in.byName[r.Name] = int32(in.trace.count)
	in.trace.add(r)
}

// ends is when the job ended, as far as the log tells.
func (r *Record) ends() float64 {
	if r.Start == r.Start {
		return r.Start + r.Duration
	}
	return r.Submit + r.Duration
}

// fault is why the times of a record do not go together; empty when they do.
func (r *Record) fault() string {
	switch {
	case r.Submit < 0:
		return "submit_s is before 1970"
	case r.Start < r.Submit:
		return reasonEarly
	case r.Duration == 0:
		return reasonNoTime
	case r.Duration < 0:
		return reasonBackwards
	}
	return ""
}
