package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// Protocol is the version of the protocol of external searches.
const Protocol = 1

// MaxLine bounds a line of an external search, its end included, in bytes.
const MaxLine = 1 << 20

// hello is the first line that an external search is given.
type hello struct {
	Protocol int    `json:"protocol"`
	Goal     string `json:"goal"`
	Seed     uint64 `json:"seed"`
	Space    Space  `json:"space"`
	Resume   *past  `json:"resume,omitempty"`
}

// past is what an external search did before it was started again.
type past struct {
	Trials []trialLine  `json:"trials"`
	Tell   []resultLine `json:"tell"`
}

// request is a line that an external search is given.
type request struct {
	Hello *hello       `json:"hello,omitempty"`
	Ask   int          `json:"ask,omitempty"`
	Tell  []resultLine `json:"tell,omitempty"`
}

type trialLine struct {
	ID     *int    `json:"id"`
	Params *Params `json:"params"`
}

func linesOf(trials []Trial) []trialLine {
	lines := make([]trialLine, len(trials))
	for i := range trials {
		t := &trials[i]
		if t.Params == nil {
			t.Params = Params{}
		}
		lines[i] = trialLine{&t.ID, &t.Params}
	}
	return lines
}

// resultLine is a result. A value that is no finite number is null.
type resultLine struct {
	Trial int      `json:"trial"`
	Kind  string   `json:"kind"`
	At    float64  `json:"at_seconds"`
	Step  *float64 `json:"step"`
	Value *float64 `json:"value"`
}

func resultLines(results []Result) []resultLine {
	lines := make([]resultLine, len(results))
	for i := range results {
		r := &results[i]
		lines[i] = resultLine{r.Trial, r.Kind.String(), r.AtSeconds, finite(r.Step), finite(r.Value)}
	}
	return lines
}

func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// answer is a line of an external search.
type answer struct {
	Protocol int         `json:"protocol"`
	Error    string      `json:"error"`
	Trials   []trialLine `json:"trials"`
	Stop     []int       `json:"stop"`
	Done     bool        `json:"done"`
}

func answerKeys() []string { return []string{"protocol", "error", "trials", "stop", "done"} }

// parseAnswer reads a line: what it holds is of the right form, whether or not it answers what was asked.
func parseAnswer(line []byte) (a answer, err error) {
	var keys map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(line))
	if err := d.Decode(&keys); err != nil {
		return a, fmt.Errorf("%s is no JSON object: %w", shown(line), cutShort(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return a, fmt.Errorf("%s is more than one JSON object", shown(line))
	}
	if keys == nil {
		return a, fmt.Errorf("%s is no JSON object", shown(line))
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(answerKeys(), key) {
			return a, fmt.Errorf("unknown key %q; %s", key, core.SuggestHint(key, "keys", answerKeys()))
		}
	}
	d = json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return answer{}, fmt.Errorf("%s: %w", shown(line), err)
	}
	for _, t := range a.Trials {
		if t.ID == nil || t.Params == nil {
			return answer{}, fmt.Errorf("%s: a trial lacks its id or its params", shown(line))
		}
	}
	return a, nil
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// mostShown bounds how much of a line an error quotes.
const mostShown = 120

func shown(line []byte) string {
	text := strings.ToValidUTF8(string(line[:min(len(line), mostShown)]), "?")
	if len(line) > mostShown {
		text += "…"
	}
	return fmt.Sprintf("%q", text)
}

// take checks that an answer is one to what was asked and told, and notes its trials. Of the stops it leaves out what needs none: trials that were stopped before, and those
// of whose end it was just told.
func (h *history) take(a answer, space Space, asked int, told []Result) (trials []Trial, stop []int, err error) {
	switch {
	case a.Protocol != 0:
		return nil, nil, errors.New("protocol is said once, in answer to hello")
	case len(a.Trials) > asked:
		return nil, nil, fmt.Errorf("%d trials are proposed, %d were asked for", len(a.Trials), asked)
	case len(a.Stop) > 0 && len(told) == 0:
		return nil, nil, errors.New("trials are stopped without new results")
	}
	next := len(h.trials)
	for _, line := range a.Trials {
		switch id := *line.ID; {
		case id >= 0 && id < next:
			return nil, nil, fmt.Errorf("trial %d is proposed twice", id)
		case id != next:
			return nil, nil, fmt.Errorf("trial %d is proposed, the next number is %d", id, next)
		}
		params, err := space.Arrange(*line.Params)
		if err != nil {
			return nil, nil, fmt.Errorf("trial %d: %w", next, err)
		}
		trials = append(trials, Trial{next, params})
		next++
	}
	for _, id := range slices.Sorted(slices.Values(a.Stop)) {
		switch {
		case id < 0 || id >= len(h.trials):
			return nil, nil, fmt.Errorf("trial %d is stopped and was never proposed", id)
		case len(stop) > 0 && stop[len(stop)-1] == id:
			return nil, nil, fmt.Errorf("trial %d is stopped twice", id)
		case h.trials[id].ended:
			if !slices.ContainsFunc(told, func(r Result) bool { return r.Trial == id }) {
				return nil, nil, fmt.Errorf("trial %d is stopped and has ended", id)
			}
		case !h.trials[id].stopping:
			stop = append(stop, id)
		}
	}
	for _, t := range trials {
		h.add(t.Params)
	}
	for _, id := range stop {
		h.trials[id].stopping = true
	}
	return trials, stop, nil
}
