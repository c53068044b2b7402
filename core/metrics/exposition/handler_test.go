package exposition

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

// full is a snapshot in which everything is known and every number is another one.
func full(t *testing.T) *metrics.Snapshot {
	t.Helper()
	s := &metrics.Summary{
		Measured: &metrics.Window{}, Fairness: metrics.Fairness{Sia: &metrics.Rho{}},
		Components: metrics.Components{
			Workload: "workload/w", Admission: []string{"admission/a", "admission/b"}, Allocation: "allocation/l",
			Placement: "placement/p", Elasticity: "elasticity/e", Scaler: "scaler/s", Backend: "backend/b",
		},
		Name:            `the "run"`,
		DecisionSeconds: metrics.DecisionTimes{ByComponent: []metrics.ComponentTime{{Component: "elasticity/e", Stage: "respond"}, {Component: "elasticity/e", Stage: "tune"}}},
		Plugins:         []metrics.Trouble{{Component: "plugin/x", Fallback: true}, {Component: "plugin/y"}},
		Accelerators:    []metrics.AcceleratorUse{{Accelerator: "t4"}, {Accelerator: "v100"}},
		Pools:           []metrics.PoolUse{{Pool: "owned"}, {Pool: "spot"}}, Bill: &metrics.Bill{},
		Deadlines: &metrics.Deadlines{}, Tuning: &metrics.Tuning{Best: &metrics.BestTrial{}},
		Synthesizer: &metrics.Synthesizer{InForce: []metrics.InForce{{Name: "a"}, {Name: "b"}}},
		Quality:     &metrics.Quality{}, EndedEarly: &metrics.EndedEarly{},
		Tiers: &metrics.Tiers{Premium: &metrics.TierUse{}, Standard: &metrics.TierUse{}, Basic: &metrics.TierUse{}},
	}
	last := 0.0
	number(t, reflect.ValueOf(s).Elem(), &last)
	snapshot := &metrics.Snapshot{Summary: s, NowSeconds: 1e6, RoundSeconds: 1e5, Started: 17, Running: 9, Pending: map[string]int{}, DevicesUsed: 31, DevicesUsable: 33}
	snapshot.Reported = []metrics.ReportedValue{{Job: "a", Metric: "loss", Step: 3, Value: 0.5}, {Job: "b", Metric: "\xff", Value: 2}, {Job: "b", Metric: "\xfe", Value: 1}}
	snapshot.Forecast = &metrics.Forecast{AtSeconds: 9e4, Starts: metrics.Judged{Bands: 51, Held: 41}, Ends: metrics.Judged{Bands: 52, Held: 42}, Jobs: []metrics.Expected{
		{Job: "a", Moment: "start", Low: 7, Median: 8, High: math.NaN()},
		{Job: "a", Moment: "end", Low: 9, Median: 10, High: 11},
		{Job: "\xff", Moment: "end", Low: 12, Median: 13, High: 14},
		{Job: "\xfe", Moment: "end", Low: 15, Median: 16, High: 17},
	}}
	for i, reason := range core.Reasons() {
		snapshot.Pending[reason] = 200 + i
	}
	return snapshot
}

// number sets every number to the next of 1.5, 3, 4.5, …, rounded down for integers.
func number(t *testing.T, v reflect.Value, last *float64) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			number(t, field, last)
		}
	case reflect.Pointer:
		number(t, v.Elem(), last)
	case reflect.Slice:
		for i := range v.Len() {
			number(t, v.Index(i), last)
		}
	case reflect.String, reflect.Bool:
	default:
		*last += 1.5
		v.Set(reflect.ValueOf(*last).Convert(v.Type()))
	}
}

// scrape returns the series of a handler and what each holds.
func scrape(t *testing.T, h http.Handler) map[string]float64 {
	t.Helper()
	code, text := get(h, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, text)
	}
	series := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, namespace) {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		series[line[:at]] = value
	}
	return series
}

func get(h http.Handler, path string) (code int, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	text, _ := io.ReadAll(w.Result().Body) // it is in memory
	return w.Code, string(text)
}

func handlerOf(s *metrics.Snapshot) http.Handler {
	health := NewHealth(func() time.Duration { return 0 }, Patience)
	health.waits(true)
	return NewHandler(Source{
		Snapshot: func() *metrics.Snapshot { return s },
		Health:   health,
		Build:    Build{Version: "v1", Commit: "abc", Go: "go1"},
	})
}

// numbers lists every number of a document, by its path.
func numbers(path string, document any, into map[string]float64) {
	switch d := document.(type) {
	case map[string]any:
		for key, value := range d {
			numbers(strings.TrimPrefix(path+"."+key, "."), value, into)
		}
	case []any:
		for i, value := range d {
			numbers(fmt.Sprint(path, ".", i), value, into)
		}
	case float64:
		into[path] = d
	}
}

// places says which series holds the number at a path of a summary; a mean is a sum divided by a count.
var places = []struct{ path, series string }{
	{`jobs\.(submitted)`, `jobs_${1}_total`},
	{`jobs\.(completed|rejected|failed|cancelled)`, `jobs_total{outcome="$1"}`},
	{`jobs\.(unfinished)`, `jobs_$1`},
	{`jct_seconds\.p(\d+)`, `job_completion_seconds{quantile="0.$1"}`},
	{`jct_seconds\.mean`, `job_completion_seconds /`},
	{`jct_seconds\.max`, `job_completion_max_seconds`},
	{`queueing_seconds\.p(\d+)`, `queueing_delay_seconds{quantile="0.$1"}`},
	{`queueing_seconds\.mean`, `queueing_delay_seconds /`},
	{`queueing_seconds\.max`, `queueing_delay_max_seconds`},
	{`(makespan_seconds|utilization_ratio|gpu_hours|wall_seconds)`, `$1`},
	{`(preemptions|rounds)`, `${1}_total`},
	{`restarts\.(total|mean)`, `restarts_$1`},
	{`fairness\.(rho_mean|rho_max|unfair_ratio)`, `fairness_$1{measure="requested"}`},
	{`fairness\.(themis|sia)\.(mean|max)`, `fairness_rho_$2{measure="$1"}`},
	{`fairness\.(themis|sia)\.unfair_ratio`, `fairness_unfair_ratio{measure="$1"}`},
	{`decision_seconds\.mean`, `round_duration_seconds /`},
	{`decision_seconds\.p99`, `round_duration_seconds{quantile="0.99"}`},
	{`decision_seconds\.max`, `round_duration_max_seconds`},
	{`decision_seconds\.by_component\.(\d)\.mean`, `stage_duration_seconds{component="elasticity/e",stage="stage$1"} /`},
	{`decision_seconds\.by_component\.(\d)\.max`, `stage_duration_max_seconds{component="elasticity/e",stage="stage$1"}`},
	{`gap_ratio\.(mean|max)`, `gap_${1}_ratio`},
	{`plugins\.(\d)\.restarts`, `plugin_restarts_total{plugin="plugin$1"}`},
	{`accelerators\.(\d)\.(\w+)`, `accelerator_$2{type="type$1"}`},
	{`pools\.(\d)\.(\w+)`, `pool_$2{pool="pool$1"}`},
	{`bill\.(\w+)`, `bill_$1`},
	{`deadlines\.(\w+)`, `deadlines_$1`},
	{`tiers\.(premium|standard|basic)\.(\w+)`, `tier_$2{tier="$1"}`},
	{`tiers\.(guaranteed_devices_max|oversold_seconds)`, `tiers_$1`},
	{`tuning\.best\.(\w+)`, `tuning_best_$1`},
	{`tuning\.(\w+)`, `tuning_$1`},
	{`synthesizer\.in_force\.(\d)\.seconds`, `synthesizer_in_force_seconds{composition="composition$1"}`},
	{`synthesizer\.(\w+)`, `synthesizer_$1`},
	{`quality\.(\w+)`, `quality_$1`},
	{`ended_early\.(\w+)`, `ended_early{reason="$1"}`},
	{`measured\.(first|last)_job`, `measured_${1}_job`},
}

// named puts the names of a full snapshot where places has an index.
var named = strings.NewReplacer(
	"stage0", "respond", "stage1", "tune", "plugin0", "plugin/x", "plugin1", "plugin/y", "pool0", "owned", "pool1", "spot", "type0", "t4", "type1", "v100", "composition0", "a", "composition1", "b", `"0.50"`, `"0.5"`, `"0.90"`, `"0.9"`)

func place(path string) string {
	for _, p := range places {
		if whole := regexp.MustCompile("^" + p.path + "$"); whole.MatchString(path) {
			return namespace + named.Replace(whole.ReplaceAllString(path, p.series))
		}
	}
	return ""
}

// valueAt is what a place holds.
func valueAt(series map[string]float64, place string) (value float64, found bool) {
	of, isMean := strings.CutSuffix(place, " /")
	if !isMean {
		value, found = series[place]
		return value, found
	}
	name, labels, labelled := strings.Cut(of, "{")
	if labelled {
		labels = "{" + labels
	}
	count, found := series[name+"_count"+labels]
	return series[name+"_sum"+labels] / count, found
}

// checkSeries holds the series to every number of a summary.
func checkSeries(t *testing.T, s *metrics.Summary, series map[string]float64) {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{}
	numbers("", document, want)
	if len(want) < 20 {
		t.Fatalf("only %d numbers", len(want))
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if path == "seed" { // a label
			if !slices.ContainsFunc(slices.Collect(maps.Keys(series)), func(s string) bool {
				return strings.HasPrefix(s, namespace+"run_info{") && strings.Contains(s, fmt.Sprintf(`seed="%v"`, want[path]))
			}) {
				t.Error("no series tells the seed")
			}
			continue
		}
		got, found := valueAt(series, place(path))
		if !found || math.Abs(got-want[path]) > 1e-12*math.Abs(want[path]) {
			t.Errorf("%s: %q holds %v (%v), want %v", path, place(path), got, found, want[path])
		}
	}
}

func TestEveryNumberOfASummaryIsTold(t *testing.T) {
	s := full(t)
	series := scrape(t, handlerOf(s))
	checkSeries(t, s.Summary, series)

	want := map[string]float64{
		"quartet_time_seconds":                                   1e6,
		"quartet_last_round_seconds":                             1e5,
		"quartet_running_jobs":                                   9,
		`quartet_pending_jobs{reason="none"}`:                    200,
		`quartet_pending_jobs{reason="waiting_for_devices"}`:     205,
		"quartet_devices_used":                                   31,
		"quartet_devices_usable":                                 33,
		"quartet_queueing_delay_seconds_count":                   17,
		`quartet_plugin_fallback{plugin="plugin/x"}`:             1,
		`quartet_plugin_fallback{plugin="plugin/y"}`:             0,
		`quartet_job_metric{metric="loss",name="a"}`:             0.5,
		`quartet_job_metric{metric="�",name="b"}`:                2,
		`quartet_build_info{commit="abc",go="go1",version="v1"}`: 1,
	}
	got := map[string]float64{}
	for name := range want {
		if value, found := series[name]; found {
			got[name] = value
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestARecordedSummaryIsTold goes from the file of a run, in which some numbers are not known.
func TestARecordedSummaryIsTold(t *testing.T) {
	text, err := os.ReadFile("../testdata/summary.json")
	if err != nil {
		t.Fatal(err)
	}
	s := &metrics.Summary{}
	if err := json.Unmarshal(text, s); err != nil {
		t.Fatal(err)
	}
	for i := range s.DecisionSeconds.ByComponent { // places knows two
		s.DecisionSeconds.ByComponent[i].Component = "elasticity/e"
	}
	s.DecisionSeconds.ByComponent = []metrics.ComponentTime{s.DecisionSeconds.ByComponent[0], s.DecisionSeconds.ByComponent[4]}
	checkSeries(t, s, scrape(t, handlerOf(&metrics.Snapshot{Summary: s, Started: 3})))
}

func TestWhatIsNotKnownIsNotTold(t *testing.T) {
	live := metrics.NewLive(metrics.NewCollector(metrics.Components{}, metrics.Outputs{}), metrics.Run{})
	series := scrape(t, handlerOf(live.Snapshot()))
	for name, value := range series {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			t.Errorf("%s is %v", name, value)
		}
	}
	for name, want := range map[string]bool{
		"quartet_makespan_seconds":             false,
		"quartet_utilization_ratio":            false,
		"quartet_job_completion_max_seconds":   false,
		"quartet_job_completion_seconds_count": true,
		"quartet_rounds_total":                 true,
	} {
		if _, told := series[name]; told != want {
			t.Errorf("%s told: %v, want %v", name, told, want)
		}
	}
}

func TestOddNamesDoNotBreakAScrape(t *testing.T) {
	s := full(t)
	s.Summary.Name = "\xff\n\"\\"
	s.Summary.Plugins = []metrics.Trouble{{Component: "x\xfe", Restarts: 1}, {Component: "x\xfe", Restarts: 2, Fallback: true}}
	series := scrape(t, handlerOf(s))
	if got := series["quartet_plugin_restarts_total{plugin=\"x\uFFFD\"}"]; got != 3 {
		t.Errorf("restarts %v, want 3", got)
	}
}

func TestEveryMetricIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/outputs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Metrics")
	if !found {
		t.Fatal("docs/outputs.md has no section on metrics")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile("quartet_[a-z0-9_]+").FindAllString(section, -1) {
		documented[name] = true
	}
	told := map[string]bool{}
	for series := range scrape(t, handlerOf(full(t))) {
		name, _, _ := strings.Cut(series, "{")
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")
		told[name] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(told)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("metrics (-told +documented):\n%s", diff)
	}
}

func TestPaths(t *testing.T) {
	h := handlerOf(full(t))
	for name, tc := range map[string]struct {
		method, path string
		want         int
	}{
		"metrics":              {http.MethodGet, "/metrics", http.StatusOK},
		"head":                 {http.MethodHead, "/healthz", http.StatusOK},
		"ready":                {http.MethodGet, "/readyz", http.StatusOK},
		"nothing can be sent":  {http.MethodPost, "/metrics", http.StatusMethodNotAllowed},
		"nothing else is told": {http.MethodGet, "/debug/pprof/", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, nil))
			if w.Code != tc.want {
				t.Errorf("status %d, want %d", w.Code, tc.want)
			}
		})
	}
}
