package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

const checkedIn = "../../core/backend/kube/manifests/components/monitoring/dashboard.yaml"

// words of PromQL and names of variables and labels that stand in expressions.
var noMetric = map[string]bool{"increase": true, "job": true, "__rate_interval": true}

// shown are the metrics in the expressions of a dashboard, by the name of their family.
func shown(t *testing.T, panels []any) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, p := range panels {
		panel := p.(map[string]any)
		if inside, found := panel["panels"].([]any); found {
			maps.Copy(names, shown(t, inside))
		}
		targets, _ := panel["targets"].([]any)
		if len(targets) == 0 && panel["type"] != "row" {
			t.Errorf("panel %q asks for nothing", panel["title"])
		}
		for _, target := range targets {
			for _, name := range regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_]*`).FindAllString(target.(map[string]any)["expr"].(string), -1) {
				if !noMetric[name] {
					names[name] = true
				}
			}
		}
	}
	return names
}

// TestDashboardShowsWhatIsTold reads what is checked in and what a scrape answers, both without the code that makes panels.
func TestDashboardShowsWhatIsTold(t *testing.T) {
	content, err := os.ReadFile(checkedIn)
	if err != nil {
		t.Fatal(err)
	}
	var wrapped struct {
		Metadata struct{ Labels map[string]string }
		Data     map[string]string
	}
	if err := yaml.Unmarshal(content, &wrapped); err != nil {
		t.Fatal(err)
	}
	if wrapped.Metadata.Labels["grafana_dashboard"] == "" {
		t.Error("Grafana's sidecar does not find it")
	}
	var document struct{ Panels []any }
	if err := json.Unmarshal([]byte(wrapped.Data["quartet.json"]), &document); err != nil {
		t.Fatal(err)
	}
	text, err := scrape()
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			told[line[:strings.IndexAny(line, "{ ")]] = true
		}
	}
	got := shown(t, document.Panels)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(told)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("metrics (-told +shown):\n%s", diff)
	}

	// The page lists them by hand, and a test of package exposition holds it to that.
	page, err := os.ReadFile("../../docs/outputs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Metrics")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := regexp.MustCompile("quartet_[a-z0-9_]+").FindAllString(section, -1)
	for _, name := range documented {
		if !got[name] && !got[name+"_count"] {
			t.Errorf("%s is documented and not on the dashboard", name)
		}
	}
	if len(documented) < 40 {
		t.Errorf("only %d metrics are documented", len(documented))
	}
}

func TestCheckedInDashboardIsTheOneMade(t *testing.T) {
	to := t.TempDir() + "/dashboard.yaml"
	if err := run(to); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(checkedIn)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, content) {
		t.Error("go generate ./core/backend/kube/manifests makes another one")
	}
}

func TestPanels(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string // expressions
		unit string
		fail string
	}{
		"a counter":        {"# HELP a_total x\n# TYPE a_total counter\na_total 1\n", []string{`increase(a_total{job=~"$job"}[$__rate_interval])`}, "short", ""},
		"a gauge":          {"# HELP a_seconds x\n# TYPE a_seconds gauge\na_seconds 1\n", []string{`a_seconds{job=~"$job"}`}, "s", ""},
		"a moment":         {"# HELP a_seconds since unix epoch\n# TYPE a_seconds gauge\na_seconds 1\n", []string{`a_seconds{job=~"$job"} * 1000`}, unitMoment, ""},
		"a mean":           {"# HELP a x\n# TYPE a summary\na_sum 1\n", []string{`a_sum{job=~"$job"} / a_count{job=~"$job"}`}, "short", ""},
		"a summary":        {"# HELP a_ratio x\n# TYPE a_ratio summary\na_ratio{quantile=\"0.5\"} 1\na_ratio_sum 1\n", []string{`a_ratio{job=~"$job"}`, `a_ratio_sum{job=~"$job"} / a_ratio_count{job=~"$job"}`}, "percentunit", ""},
		"a histogram":      {"# HELP a x\n# TYPE a histogram\n", nil, "", "a: no panel for a histogram"},
		"without its type": {"# HELP a x\na 1\n", nil, "", "a has no type"},
	} {
		t.Run(name, func(t *testing.T) {
			families, err := read(tc.text)
			var panel object
			if err == nil {
				panel, err = families[0].panel(1)
			}
			if err != nil || tc.fail != "" {
				if err == nil || err.Error() != tc.fail {
					t.Errorf("error %v, want %q", err, tc.fail)
				}
				return
			}
			var got []string
			for _, target := range panel["targets"].([]object) {
				got = append(got, target["expr"].(string))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if unit := panel["fieldConfig"].(object)["defaults"].(object)["unit"]; unit != tc.unit {
				t.Errorf("unit %v, want %q", unit, tc.unit)
			}
		})
	}
}
