package advise_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/lab/advise"
	"github.com/quartet-sched/quartet/lab/study"
)

// The default candidates have names of their own, begin with the simplest, and are valid compositions.
func TestGrid(t *testing.T) {
	cases := map[string]struct {
		facts    advise.Facts
		with     []string
		without  string // what no name holds
		estimate string
		fewestOf int
	}{
		"rigid, nothing told":    {facts: advise.Facts{Types: 1}, with: []string{"fifo", "las-1h", "tiresias-admit-4"}, without: "goodput", estimate: "none", fewestOf: 30},
		"rigid, told":            {facts: advise.Facts{Types: 1, WorkKnown: true}, with: []string{"srtf", "themis"}, without: "pollux", estimate: "declared", fewestOf: 40},
		"several types":          {facts: advise.Facts{Types: 2, WorkKnown: true}, with: []string{"gavel-max-min", "allox"}, without: "goodput", estimate: "declared", fewestOf: 40},
		"adaptive, told":         {facts: advise.Facts{Types: 2, WorkKnown: true, Elastic: true, Adaptive: true, Seated: true}, with: []string{"pollux-goodput", "sia-goodput", "optimus-elastic", "las-first-fit"}, estimate: "declared", fewestOf: 80},
		"adaptive, nothing told": {facts: advise.Facts{Types: 1, Elastic: true, Adaptive: true}, with: []string{"pollux-goodput", "las-goodput-admit-4"}, without: "srtf", estimate: "none", fewestOf: 50},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			items := advise.Grid(tc.facts)
			var names []string
			for _, item := range items {
				if slices.Contains(names, item.Name) || tc.without != "" && strings.Contains(item.Name, tc.without) {
					t.Errorf("candidate %q is there twice, or should not be there", item.Name)
				}
				names = append(names, item.Name)
				set := append(slices.Clip(item.Set), study.Setting{Path: "estimate.source", Value: tc.estimate})
				if _, err := configs.Load(quartet.Builtins(), configs.Options{Flags: study.Flags(set)}); err != nil {
					t.Errorf("candidate %q: %v", item.Name, err)
				}
			}
			if names[0] != "fifo" || len(names) < tc.fewestOf {
				t.Errorf("%d candidates, the first is %q", len(names), names[0])
			}
			for _, want := range tc.with {
				if !slices.Contains(names, want) {
					t.Errorf("there is no %q among %v", want, names)
				}
			}
		})
	}
}
