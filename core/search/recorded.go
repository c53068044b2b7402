package search

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/quartet-sched/quartet/internal/inputfile"
)

// Exchange is one call of a search with its answer: it was asked for trials, or else it got results.
type Exchange struct {
	Ask     int      // trials that were asked for; 0 where it got results
	Trials  []Trial  // trials that it answered
	Results []Result // results that it was given
	Stop    []int    // ids of the trials that it stopped
}

// Resumer is implemented by a search that may answer the same calls differently when they are repeated, because it is another program. Instead it gets the past.
type Resumer interface {
	// Resume is called before anything else.
	Resume(past []Exchange) error
}

// Recorded is a search whose exchanges are on disk before they are answered. A program that opens the record again, after a kill at whatever moment, repeats its calls from the
// beginning, and gets the same answers up to the end of the record; from there on the search goes on. A call that differs from the recorded one is an error, and so
// is a search that now answers otherwise. One process at a time has a record.
type Recorded struct {
	search  Search
	log     *record
	past    []Exchange
	next    int // of past
	resumed bool
	broken  error
}

// Record makes a search as New does, with its record in a file, which may be there from before: then the search is the same one.
func (c *Chosen) Record(file string, seed uint64, log *slog.Logger) (*Recorded, error) {
	s, err := c.New(seed, log)
	if err != nil {
		return nil, err
	}
	identity, err := c.Identity()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	r, err := OpenRecorded(file, identity, seed, s)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return r, nil
}

// OpenRecorded puts a search, of which nothing was asked, on record. Identity is JSON that differs for searches that differ.
func OpenRecorded(file string, identity []byte, seed uint64, s Search) (*Recorded, error) {
	log, past, err := openRecord(file, identity, seed)
	if err != nil {
		return nil, fmt.Errorf("record of a search: %w", err)
	}
	return &Recorded{search: s, log: log, past: past}, nil
}

// Past is what is on record from before it was opened.
func (r *Recorded) Past() []Exchange { return r.past }

// Skip has the search take the past as answered, for who has kept its answers and goes on from there.
func (r *Recorded) Skip(ctx context.Context) error {
	for r.next < len(r.past) && r.broken == nil {
		if _, err := r.exchange(ctx, r.past[r.next]); err != nil {
			return err
		}
	}
	return r.broken
}

// Ask asks, or answers from the record.
func (r *Recorded) Ask(ctx context.Context, n int) ([]Trial, error) {
	if err := checkAsk(n); err != nil {
		return nil, err
	}
	x, err := r.exchange(ctx, Exchange{Ask: n})
	return x.Trials, err
}

// Tell passes results on, or answers from the record.
func (r *Recorded) Tell(ctx context.Context, results []Result) ([]int, error) {
	if len(results) == 0 {
		return nil, r.broken
	}
	x, err := r.exchange(ctx, Exchange{Results: slices.Clone(results)})
	return x.Stop, err
}

func (r *Recorded) exchange(ctx context.Context, x Exchange) (Exchange, error) {
	if r.broken != nil {
		return Exchange{}, r.broken
	}
	var err error
	if r.next < len(r.past) {
		x, err = r.again(ctx, x)
	} else {
		x, err = r.anew(ctx, x)
	}
	if err != nil {
		return Exchange{}, err
	}
	return x, nil
}

// again answers from the record.
func (r *Recorded) again(ctx context.Context, x Exchange) (Exchange, error) {
	known := r.past[r.next]
	differs := func(what string) (Exchange, error) {
		r.broken = fmt.Errorf("record of a search: %s:%d: %s", r.log.path, r.next+2, what) // after the first line
		return Exchange{}, r.broken
	}
	switch {
	case x.Ask != known.Ask:
		return differs(fmt.Sprintf("the search was %s, and is now %s: what asks it goes otherwise than before", known.call(), x.call()))
	case !slices.EqualFunc(x.Results, known.Results, Result.same):
		return differs("the search gets other results than before")
	}
	if _, out := r.search.(Resumer); !out {
		trials, stop, err := call(ctx, r.search, x)
		switch {
		case err != nil:
			return Exchange{}, err
		case !slices.EqualFunc(trials, known.Trials, Trial.same):
			return differs("the search proposes other trials than before: it, or what it is made of, has changed")
		case !slices.Equal(stop, known.Stop):
			return differs("the search stops other trials than before: it, or what it is made of, has changed")
		}
	}
	r.next++
	return known, nil
}

// anew asks the search and writes down what it answers.
func (r *Recorded) anew(ctx context.Context, x Exchange) (Exchange, error) {
	if out, ok := r.search.(Resumer); ok && !r.resumed {
		if err := out.Resume(r.past); err != nil {
			r.broken = fmt.Errorf("record of a search: %s: %w", r.log.path, err)
			return Exchange{}, r.broken
		}
		r.resumed = true
	}
	var err error
	if x.Trials, x.Stop, err = call(ctx, r.search, x); err != nil {
		return Exchange{}, err
	}
	if err := r.log.append(x); err != nil { // what the search knows and the record does not cannot be mended
		r.broken = fmt.Errorf("record of a search: %w", err)
		return Exchange{}, r.broken
	}
	return x, nil
}

func call(ctx context.Context, s Search, x Exchange) (trials []Trial, stop []int, err error) {
	if x.Ask > 0 {
		trials, err = s.Ask(ctx, x.Ask)
	} else {
		stop, err = s.Tell(ctx, x.Results)
	}
	return trials, stop, err
}

func (x *Exchange) call() string {
	if x.Ask > 0 {
		return fmt.Sprintf("asked for %d", x.Ask)
	}
	return fmt.Sprintf("given %d results", len(x.Results))
}

func (t Trial) same(o Trial) bool { return t.ID == o.ID && t.Params.Equal(o.Params) }

func (r Result) same(o Result) bool {
	return r.Trial == o.Trial && r.Kind == o.Kind && sameBits(r.AtSeconds, o.AtSeconds) && sameBits(r.Step, o.Step) && sameBits(r.Value, o.Value)
}

// sameBits is equality in which NaN is NaN.
func sameBits(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

// Inputs are those of the search.
func (r *Recorded) Inputs() []Input {
	if in, ok := r.search.(Reader); ok {
		return in.Inputs()
	}
	return nil
}

// Close closes the search and the record.
func (r *Recorded) Close() error { return errors.Join(r.search.Close(), r.log.close()) }

// record is a file with one JSON object a line, the first of which says what it is of.
type record struct {
	path string
	file *os.File
}

// openRecord makes a record, or reads one. A last line that was not written to its end never was.
func openRecord(path string, identity []byte, seed uint64) (_ *record, past []Exchange, err error) {
	file, err := inputfile.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, nil, err
	}
	whole, past, err := readRecord(path, text, identity, seed)
	if err != nil {
		return nil, nil, err
	}
	r := &record{path: path, file: file}
	if whole < len(text) {
		if err := errors.Join(file.Truncate(int64(whole)), file.Sync()); err != nil {
			return nil, nil, err
		}
	}
	if _, err := file.Seek(int64(whole), io.SeekStart); err != nil {
		return nil, nil, err
	}
	if whole == 0 {
		line, err := plainJSON(recordHead{recordVersion, seed, identity})
		if err == nil {
			err = errors.Join(r.write(line), syncFolder(filepath.Dir(path)))
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return r, past, nil
}

// syncFolder has the name of a new file on disk.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func (r *record) append(x Exchange) error {
	line, err := plainJSON(exchangeLine{Ask: x.Ask, Trials: linesOf(x.Trials), Tell: exactResults(x.Results), Stop: x.Stop})
	if err != nil {
		return err
	}
	return r.write(line)
}

func (r *record) write(line []byte) error {
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return err
	}
	return r.file.Sync()
}

func (r *record) close() error { return r.file.Close() }
