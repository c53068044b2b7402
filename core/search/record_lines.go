package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

const recordVersion = 1

type recordHead struct {
	Version int             `json:"version"`
	Seed    uint64          `json:"seed"`
	Search  json.RawMessage `json:"search"`
}

// exchangeLine is an exchange as it is recorded.
type exchangeLine struct {
	Ask    int           `json:"ask,omitempty"`
	Trials []trialLine   `json:"trials,omitempty"`
	Tell   []exactResult `json:"tell,omitempty"`
	Stop   []int         `json:"stop,omitempty"`
}

// exactResult is a result with all that its numbers may be.
type exactResult struct {
	Trial int    `json:"trial"`
	Kind  string `json:"kind"`
	At    exact  `json:"at_seconds"`
	Step  exact  `json:"step"`
	Value exact  `json:"value"`
}

// exact is a number in JSON; one that is not finite is a string.
type exact float64

// MarshalJSON writes the shortest text that is read as the same number.
func (x exact) MarshalJSON() ([]byte, error) {
	text := strconv.FormatFloat(float64(x), 'g', -1, 64)
	if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
		text = strconv.Quote(text)
	}
	return []byte(text), nil
}

// UnmarshalJSON reads a number, or a string that names one.
func (x *exact) UnmarshalJSON(text []byte) error {
	if unquoted, err := strconv.Unquote(string(text)); err == nil {
		text = []byte(unquoted)
	}
	number, err := strconv.ParseFloat(string(text), 64)
	*x = exact(number)
	return err
}

func exactResults(results []Result) []exactResult {
	lines := make([]exactResult, len(results))
	for i := range results {
		r := &results[i]
		lines[i] = exactResult{r.Trial, r.Kind.String(), exact(r.AtSeconds), exact(r.Step), exact(r.Value)}
	}
	return lines
}

// readRecord reads a record, and says how much of it is whole: all but a last line without an end.
func readRecord(path string, text, identity []byte, seed uint64) (whole int, past []Exchange, err error) {
	whole = bytes.LastIndexByte(text, '\n') + 1
	if whole == 0 {
		return 0, nil, nil
	}
	for i, line := range bytes.Split(text[:whole-1], []byte("\n")) {
		if i == 0 {
			err = checkHead(line, identity, seed)
		} else {
			var x Exchange
			if x, err = readExchange(line); err == nil {
				past = append(past, x)
			}
		}
		if err != nil {
			return 0, nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	return whole, past, nil
}

func checkHead(line, identity []byte, seed uint64) error {
	var head recordHead
	if err := strict(line, &head); err != nil {
		return fmt.Errorf("is no record of a search: %w", err)
	}
	var ours, theirs bytes.Buffer
	if err := errors.Join(json.Compact(&ours, identity), json.Compact(&theirs, head.Search)); err != nil {
		return err
	}
	switch {
	case head.Version != recordVersion:
		return fmt.Errorf("is a record of version %d, only %d is understood", head.Version, recordVersion)
	case head.Seed != seed:
		return fmt.Errorf("is of seed %d, not of %d", head.Seed, seed)
	case !bytes.Equal(ours.Bytes(), theirs.Bytes()):
		return fmt.Errorf("is of another search: %s, not %s", theirs.Bytes(), ours.Bytes())
	}
	return nil
}

func readExchange(text []byte) (x Exchange, err error) {
	var line exchangeLine
	if err := strict(text, &line); err != nil {
		return x, fmt.Errorf("is damaged: %w", err)
	}
	if (line.Ask > 0) == (len(line.Tell) > 0) || line.Ask < 0 {
		return x, errors.New("is damaged: it is one of ask and tell")
	}
	x = Exchange{Ask: line.Ask, Stop: line.Stop}
	for _, t := range line.Trials {
		if t.ID == nil || t.Params == nil {
			return x, errors.New("is damaged: a trial lacks its id or its params")
		}
		x.Trials = append(x.Trials, Trial{*t.ID, *t.Params})
	}
	for _, r := range line.Tell {
		kind := slices.Index(kinds[:], r.Kind)
		if kind < 0 {
			return x, fmt.Errorf("is damaged: unknown kind %q", r.Kind)
		}
		x.Results = append(x.Results, Result{r.Trial, Kind(kind), float64(r.At), float64(r.Step), float64(r.Value)})
	}
	return x, nil
}

// strict reads one JSON value without unknown keys.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return cutShort(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}
