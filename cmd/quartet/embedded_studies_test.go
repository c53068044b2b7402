package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/internal/refdata"
	"github.com/quartet-sched/quartet/lab/study"
)

// runsOf is how many runs each study that comes with Quartet has.
var runsOf = map[string]int{
	"adaptive-batch":       90,
	"autoscaling":          110,
	"autoscaling-delays":   36,
	"autoscaling-imagenet": 16,
	"blox-eurosys24":       6,
	"deadlines":            24,
	"elastic":              63,
	"elastic-streams":      180,
	"estimates":            120,
	"five":                 225,
	"fragments":            90,
	"gandiva":              180,
	"gavel-osdi20":         24,
	"hived":                40,
	"lucid":                200,
	"misdeclared":          60,
	"muri":                 35,
	"pollux-osdi21":        81,
	"sia-sosp23":           15,
	"slaq":                 40,
	"spot":                 39,
	"synergy":              90,
	"termination":          36,
	"tiers":                36,
	"tuning":               40,
	"tiresias-nsdi19":      3,
}

// Every study that comes with Quartet can be read, opens with a comment that says what it is, and is named as its file; where the
// published data is at hand, every config of every run is valid.
func TestEmbeddedStudiesAreValid(t *testing.T) {
	if len(configs.StudyNames()) != len(runsOf) {
		t.Errorf("studies %q, want %d", configs.StudyNames(), len(runsOf))
	}
	for _, name := range configs.StudyNames() {
		t.Run(name, func(t *testing.T) {
			text, err := configs.Study(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# ") {
				t.Error("no comment at the top")
			}
			s, err := study.Parse(name+".yaml", "unnamed", text)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != name {
				t.Errorf("its name is %q", s.Name)
			}
			refdata.Path(t, "data")
			var env cli.Environment
			got, err := s.Count(t.Context(), study.Options{Catalog: catalog(), Build: "test", Config: configs.Options{Env: env.Lookup}})
			if err != nil {
				t.Fatal(err)
			}
			if got != runsOf[name] {
				t.Errorf("%d runs, want %d", got, runsOf[name])
			}
		})
	}
}

// The page of studies says how many runs each has.
func TestThePageOfStudiesCountsRuns(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "studies.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9-]+)` \\|.*\\| ([0-9]+) \\|$").FindAllSubmatch(text, -1) {
		told[string(row[1])] = string(row[2])
	}
	for name, runs := range runsOf {
		if told[name] != fmt.Sprint(runs) {
			t.Errorf("%s: the page says %q runs, want %d", name, told[name], runs)
		}
	}
}

// The points of Figure 8 of Pollux are those of the results that were published with it, to a tenth of a second.
func TestPublishedPointsOfPollux(t *testing.T) {
	text, err := os.ReadFile(refdata.Path(t, "reference", "pollux-osdi21", "published.json"))
	if err != nil {
		t.Fatal(err)
	}
	var results map[string]map[string]struct {
		Workloads map[string]struct{ Avg float64 }
	}
	if err := json.Unmarshal(text, &results); err != nil {
		t.Fatal(err)
	}
	file, err := configs.Study("pollux-osdi21")
	if err != nil {
		t.Fatal(err)
	}
	s, err := study.Parse("pollux-osdi21.yaml", "", file)
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string][2]string{
		"every 30 s": {"results-period", "pollux-30s"}, "every 2 min": {"results-period", "pollux-2m"}, "every 4 min": {"results-period", "pollux-4m"}, "every 8 min": {"results-period", "pollux-8m"},
		"jobs may meet": {"results-inter", "noavoid"}, "they slow by 25 %": {"results-inter", "inter25"}, "they slow by 50 %": {"results-inter", "inter50"},
	}
	points := 0
	for _, p := range s.Points {
		if !strings.HasPrefix(p.Figure, "Figure 8") {
			continue
		}
		at := map[string]string{}
		for _, o := range p.At {
			at[s.Axes[o.Axis].Name] = s.Axes[o.Axis].Items[o.Items[0]].Name
		}
		entry, found := entries[at["setting"]]
		if !found {
			entry = [2]string{"results-jobload", at["scheduler"] + "-" + strings.TrimSuffix(at["load"], ".5") + map[string]string{"1": ".0", "0.5": ".5"}[at["load"]]}
		}
		sum, workloads := 0.0, []string{"1", "2", "3", "4", "6"}
		if at["load"] == "0.5" {
			workloads = workloads[:4]
		}
		for _, n := range workloads {
			sum += results[entry[0]][entry[1]].Workloads["workload-"+n].Avg
		}
		if want := sum / float64(len(workloads)); math.Abs(p.Value-want) > 0.051 {
			t.Errorf("%s at %v: %v, published %v", p.Figure, at, p.Value, want)
		}
		points++
	}
	if points != 15 {
		t.Errorf("%d points of Figure 8, want 15", points)
	}
}
