package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/metrics/exposition"
)

// family is one metric with all its series.
type family struct {
	name, help, kind string
	labels           []string // but for quantile, in order
	quantiles        bool     // told of a summary
}

// scrape is what the program tells of a run in which everything is known.
func scrape() (string, error) {
	summary := new(metrics.Summary)
	fill(reflect.ValueOf(summary).Elem())
	snapshot := &metrics.Snapshot{Summary: summary, Pending: map[string]int{core.Reasons()[0]: 1}, Reported: []metrics.ReportedValue{{Job: "x", Metric: "x", Value: 1}}}
	snapshot.Forecast = &metrics.Forecast{Jobs: []metrics.Expected{{Job: "x", Moment: "start"}}}
	health := exposition.NewHealth(func() time.Duration { return 0 }, exposition.Patience)
	if _, err := health.Watch(idle{}, nil).Next(context.Background(), core.Wake{}); err != nil {
		return "", err
	}
	handler := exposition.NewHandler(exposition.Source{Snapshot: func() *metrics.Snapshot { return snapshot }, Health: health})
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		return "", fmt.Errorf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String(), nil
}

// idle is a backend on which nothing happens. A scheduler is ready once it asked it for news.
type idle struct{ core.Backend }

func (idle) Next(context.Context, core.Wake) (core.Observation, error) {
	return core.Observation{}, nil
}

// fill makes everything known: numbers are 1, lists have one element, pointers point.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		v.Set(reflect.ValueOf(1).Convert(v.Type()))
	}
}

// read lists the families of a text in the format of Prometheus, in order of their names.
func read(text string) ([]family, error) {
	known := map[string]*family{}
	of := func(name string) *family {
		if known[name] == nil {
			known[name] = &family{name: name}
		}
		return known[name]
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if comment, found := strings.CutPrefix(line, "# "); found {
			fields := strings.SplitN(comment, " ", 3)
			if len(fields) < 3 {
				return nil, fmt.Errorf("odd comment %q", line)
			}
			switch fields[0] {
			case "HELP":
				of(fields[1]).help = fields[2]
			case "TYPE":
				of(fields[1]).kind = fields[2]
			}
			continue
		}
		series, _, _ := strings.Cut(line, " ")
		name, labels, labelled := strings.Cut(series, "{")
		if f := known[name]; f != nil && labelled {
			f.label(strings.TrimSuffix(labels, "}"))
		}
	}
	families := make([]family, 0, len(known))
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if known[name].kind == "" {
			return nil, fmt.Errorf("%s has no type", name)
		}
		families = append(families, *known[name])
	}
	return families, nil
}

// label notes the names of labels; no value has a comma, for none is told of a real run.
func (f *family) label(labels string) {
	for pair := range strings.SplitSeq(labels, ",") {
		name, _, _ := strings.Cut(pair, "=")
		if name == "quantile" {
			f.quantiles = true
		} else if !slices.Contains(f.labels, name) {
			f.labels = append(f.labels, name)
		}
	}
	slices.Sort(f.labels)
}
