package search

import (
	"errors"
	"fmt"
	"math"
)

// history is what a search proposed, and what became of it.
type history struct {
	trials []tried // by their numbers
	now    float64 // of the latest result
	told   bool
}

// tried is a trial as far as it is known.
type tried struct {
	params      Params
	ended       bool
	stopping    bool // the search asked for its end
	kind        Kind // of the latest result
	step, value float64
}

// usable reports whether the trial ended with a value that can be compared.
func (t *tried) usable() bool {
	return t.ended && t.kind != Failed && !math.IsNaN(t.value) && !math.IsInf(t.value, 0)
}

// add numbers a trial.
func (h *history) add(p Params) Trial {
	h.trials = append(h.trials, tried{params: p, step: math.NaN(), value: math.NaN()})
	return Trial{ID: len(h.trials) - 1, Params: p}
}

// tell takes all results, or none where one of them cannot be.
func (h *history) tell(results []Result) error {
	if err := h.check(results); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	for i := range results {
		r := &results[i]
		t := &h.trials[r.Trial]
		t.kind, t.step, t.value, t.ended = r.Kind, r.Step, r.Value, r.Kind != Report
		h.now, h.told = r.AtSeconds, true
	}
	return nil
}

func (h *history) check(results []Result) error {
	ended := map[int]bool{}
	for i := range results {
		r := &results[i]
		switch {
		case r.Trial < 0 || r.Trial >= len(h.trials):
			return fmt.Errorf("trial %d was never proposed", r.Trial)
		case r.Kind > Failed:
			return fmt.Errorf("trial %d: kind %d is unknown", r.Trial, r.Kind)
		case h.trials[r.Trial].ended || ended[r.Trial]:
			return fmt.Errorf("trial %d has ended before", r.Trial)
		case math.IsNaN(r.AtSeconds) || math.IsInf(r.AtSeconds, 0):
			return fmt.Errorf("trial %d: the moment %v is no finite number", r.Trial, r.AtSeconds)
		case h.told && r.AtSeconds < h.now:
			return fmt.Errorf("trial %d: the moment %v is before %v, which was reported", r.Trial, r.AtSeconds, h.now)
		case i > 0 && (r.AtSeconds < results[i-1].AtSeconds || r.AtSeconds == results[i-1].AtSeconds && r.Trial < results[i-1].Trial):
			return fmt.Errorf("trial %d at %v follows trial %d at %v: results are ordered by time and then by trial",
				r.Trial, r.AtSeconds, results[i-1].Trial, results[i-1].AtSeconds)
		}
		if r.Kind != Report {
			ended[r.Trial] = true
		}
	}
	return nil
}

func checkAsk(n int) error {
	if n < 1 {
		return errors.New("ask: at least one trial is asked for")
	}
	return nil
}
