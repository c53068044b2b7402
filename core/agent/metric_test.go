package agent

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMetricsAreSound(t *testing.T) {
	for name, tc := range map[string]struct {
		metric Metric
		want   string // empty for none
	}{
		"sound":            {Metric{"loss", 3, -0.5}, ""},
		"step 0":           {Metric{"loss", 0, 0}, ""},
		"no name":          {Metric{"", 0, 0}, "name has 0 bytes"},
		"a long name":      {Metric{strings.Repeat("x", maxMetric+1), 0, 0}, "name has 129 bytes"},
		"a line in a name": {Metric{"a\nb", 0, 0}, "control characters"},
		"a step below 0":   {Metric{"loss", -1, 0}, "step is -1"},
		"diverged":         {Metric{"loss", 0, math.NaN()}, ""},
		"no step":          {Metric{"loss", math.NaN(), 0}, "step is NaN"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&FromJob{Metrics: []Metric{tc.metric}}).Validate()
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
	if err := (&FromJob{Metrics: make([]Metric, mostMetrics+1)}).Validate(); err == nil {
		t.Error("a line may have more metrics than are kept")
	}
}

// What is not finite is read as NaN, however a program writes it, and never as 0; a value that is missing, or is none, is refused by the name of its metric.
func TestValuesThatAreNotFinite(t *testing.T) {
	nan := math.NaN()
	for text, want := range map[string]struct {
		value float64
		err   string
	}{
		`"value": 0.5`:                     {0.5, ""},
		`"value": -1e30`:                   {-1e30, ""},
		`"value": null`:                    {nan, ""},
		`"value": NaN`:                     {nan, ""}, // Python
		`"value": nan`:                     {nan, ""}, // C
		`"value": -nan`:                    {nan, ""},
		`"value": Infinity`:                {nan, ""},
		`"value": -Infinity`:               {nan, ""},
		`"value": inf`:                     {nan, ""},
		`"value": -inf`:                    {nan, ""},
		`"value": "NaN"`:                   {nan, ""}, // protobuf
		`"value": "-Infinity"`:             {nan, ""},
		`"value": 1e31`:                    {nan, ""},
		`"value": -1e31`:                   {nan, ""},
		`"value": 1e999`:                   {nan, ""},
		`"value": 1, "note": "NaN, \"inf"`: {1, ""},
		`"note": 3`:                        {0, `value of "loss" is missing`},
		`"value": ""`:                      {0, `value of "loss" is "", must be a number`},
		`"value": "low"`:                   {0, `value of "loss" is "low", must be a number`},
		`"value": true`:                    {0, `value of "loss" is true, must be a number`},
		`"value": [1]`:                     {0, `value of "loss" is [1], must be a number`},
		`"value": 1, "step": null`:         {0, `step of "loss" is null`},
		`"value": 1, "step": NaN`:          {0, `step of "loss" is null`},
		`"value": 1, "step": "x"`:          {0, `step of "loss"`},
		`"value": nano`:                    {0, "invalid character"},
	} {
		t.Run(text, func(t *testing.T) {
			lines := newReader[FromJob](strings.NewReader(`{"metrics": [{"name": "loss", "step": 3, ` + text + "}]}\n"))
			got, err := lines.next()
			if want.err != "" {
				if err == nil || !strings.Contains(err.Error(), want.err) {
					t.Errorf("%+v, %v, want %q", got, err, want.err)
				}
				return
			}
			if diff := cmp.Diff(FromJob{Metrics: []Metric{{"loss", 3, want.value}}}, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got)\n%s", err, diff)
			}
		})
	}
	got, err := newReader[FromJob](strings.NewReader(`{"report": {"replicas": 1, "nodes": 1, "gradient_square": NaN}, "metrics": [{"name": "step 0", "value": 2}]}` + "\n")).next()
	if diff := cmp.Diff(FromJob{Report: &Report{Replicas: 1, Nodes: 1}, Metrics: []Metric{{"step 0", 0, 2}}}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, text := range []string{`{"checkpointed": {"progress": null}}`, `{"checkpointed": {"progress": NaN}}`} {
		if got, err := newReader[FromJob](strings.NewReader(text + "\n")).next(); err == nil || !strings.Contains(err.Error(), "checkpointed: progress is null") {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
}

// A training in Go whose loss is not finite says so, and is not cut off.
func TestClientsSayThatTheyDiverged(t *testing.T) {
	overEach(t, func(t *testing.T, at *place) {
		s := at.serve(t, "train")
		c := at.dial(t, "train", 0)
		for step, value := range []float64{2, math.Inf(-1), math.NaN(), -1e31, 1} {
			must(t, c.Metric("loss", float64(step), value))
		}
		var got []Metric
		for len(got) < 5 {
			got = append(got, until(t, s, func(e Event) bool { return len(e.Metrics) > 0 }).Metrics...)
		}
		nan := math.NaN()
		if diff := cmp.Diff([]Metric{{"loss", 0, 2}, {"loss", 1, nan}, {"loss", 2, nan}, {"loss", 3, nan}, {"loss", 4, 1}}, got); diff != "" {
			t.Error("(-want +got)", diff)
		}
		if err := c.Err(); err != nil {
			t.Error(err)
		}
	})
}

// Of what could not be said yet the latest values are kept, in their order, and a line of them is no longer than a line may be.
func TestMetricsFollowOneAnother(t *testing.T) {
	var line FromJob
	line.Hello = &Hello{Protocol: Protocol, Job: strings.Repeat("j", maxName), Token: strings.Repeat("t", maxToken)}
	for i := range mostMetrics + 10 {
		line.add(FromJob{Metrics: []Metric{{strings.Repeat("n", maxMetric-5) + fmt.Sprint(i), 1e-300, -1.2345678901234567e-300}}})
	}
	if got := len(line.Metrics); got != mostMetrics {
		t.Errorf("%d are kept, want %d", got, mostMetrics)
	}
	if got := line.Metrics[0].Name; !strings.HasSuffix(got, "10") {
		t.Errorf("the first that is kept is %s, want the eleventh", got)
	}
	var b strings.Builder
	if err := writeLine(&b, line); err != nil || b.Len() > MaxLine {
		t.Errorf("a line of %d bytes: %v", b.Len(), err)
	}
	told := []Metric{{"loss", 1, 3}, {"accuracy", 1, 0.5}, {"loss", 2, 2}, {"loss", 3, 2}, {"loss", 2, 1}, {"reward", 0, 1}, {"reward", 0, 2}}
	if diff := cmp.Diff([]Metric{{"loss", 1, 3}, {"accuracy", 1, 0.5}, {"loss", 2, 1}, {"reward", 0, 2}}, ascending(told)); diff != "" {
		t.Error("want, got:", diff)
	}
}

func TestFinalReport(t *testing.T) {
	folder := t.TempDir()
	if _, left, err := FinalReport(folder); left || err != nil {
		t.Errorf("of a run that left none: %v, %v", left, err)
	}
	c := Dial(Environment{Job: "a", Replicas: 1, Nodes: 1, Rendezvous: folder, Socket: filepath.Join(folder, "nobody")})
	for step := range 3 {
		if err := c.Metric("loss", float64(step), 1/float64(step+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Done(); err != nil {
		t.Fatal(err)
	}
	c.Close()
	got, left, err := FinalReport(folder)
	if err != nil || !left {
		t.Fatalf("%v, %v", left, err)
	}
	want := FromJob{Done: &Done{}, Metrics: []Metric{{"loss", 0, 1}, {"loss", 1, 0.5}, {"loss", 2, 1.0 / 3}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got)", diff)
	}
	for name, text := range map[string]string{"empty": "", "torn": `{"done":{}`, "no JSON": "{]\n", "no sense": `{"checkpointed":{"progress":-1}}` + "\n", "long": strings.Repeat(" ", 2*MaxLine) + "\n"} {
		if err := os.WriteFile(filepath.Join(folder, FinalReportFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, left, err := FinalReport(folder); left || err == nil {
			t.Errorf("%s: %v, %v; want an error", name, left, err)
		}
	}
}

func TestOnlyTheFirstReplicaLeavesAFinalReport(t *testing.T) {
	folder := t.TempDir()
	Dial(Environment{Job: "a", Rank: 1, Replicas: 2, Nodes: 1, Rendezvous: folder, Socket: filepath.Join(folder, "nobody")}).Close()
	if _, left, err := FinalReport(folder); left || err != nil {
		t.Errorf("%v, %v; want none", left, err)
	}
}
