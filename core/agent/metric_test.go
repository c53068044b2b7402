package agent

import (
	"fmt"
	"math"
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
		"no number":        {Metric{"loss", 0, math.NaN()}, "value is NaN"},
		"infinite":         {Metric{"loss", 0, math.Inf(-1)}, "value is -Inf"},
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
	told := []Metric{{"loss", 1, 3}, {"accuracy", 1, 0.5}, {"loss", 2, 2}}
	if diff := cmp.Diff([]Metric{{"accuracy", 1, 0.5}, {"loss", 2, 2}}, latest(told)); diff != "" {
		t.Error("want, got:", diff)
	}
}
