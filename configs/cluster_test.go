package configs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoadByNodes(t *testing.T) {
	cases := map[string]struct {
		nodes, factor string
		want          string
		note          string
	}{
		"as it is":           {"{name: a, count: 4, accelerator: t4, devices: 2}", "1", "a-0 a-1 a-2 a-3", ""},
		"half the load":      {"{name: a, count: 2, accelerator: t4, devices: 2}", "0.5", "a-0 a-1 a-2 a-3", ""},
		"twice the load":     {"{name: a, count: 4, accelerator: t4, devices: 2}", "2", "a-0 a-1", ""},
		"one is left":        {"{name: a, count: 4, accelerator: t4, devices: 2}", "4", "a-0", ""},
		"one becomes two":    {"{name: a, accelerator: t4, devices: 2}", "0.5", "a-0 a-1", ""},
		"none would be left": {"{name: a, count: 4, accelerator: t4, devices: 2}", "100", "a-0", "becomes 4 times as much, for nodes are whole: there are 2 devices instead of 8"},
		"not whole":          {"{name: a, count: 4, accelerator: t4, devices: 2}", "1.5", "a-0 a-1 a-2", "becomes 1.33 times as much"},
		"two groups of three": {
			"{name: a, count: 3, accelerator: t4, devices: 2}, {name: b, count: 3, accelerator: k80, devices: 2}", "2", "a-0 a-1 b-0", "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := mustParse(t, minimal, Options{Sets: []string{"cluster.nodes=[" + tc.nodes + "]", "sample.load={by: nodes, factor: " + tc.factor + "}"}})
			var names []string
			for _, n := range c.BuildCluster().Nodes {
				names = append(names, n.Name)
			}
			if diff := cmp.Diff(tc.want, strings.Join(names, " ")); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			told := ""
			if len(c.Notes) > 0 {
				told = c.Notes.Err().Error()
			}
			if tc.note == "" && told != "" || !strings.Contains(told, tc.note) {
				t.Errorf("note %q, want %q", told, tc.note)
			}
		})
	}
}

func TestSampleIsChecked(t *testing.T) {
	cases := map[string]struct{ set, want string }{
		"no load":              {"sample.load.factor=0", "--set: sample.load.factor: must be above 0, got 0"},
		"less than none":       {"sample.load.factor=-1", "--set: sample.load.factor: must be at least 0, got -1"},
		"no number":            {"sample.load.factor=.nan", "--set: sample.load.factor: expected a finite number, got NaN"},
		"another way":          {"sample.load.by=thining", `--set: sample.load.by: unknown value "thining"; did you mean "thinning"?`},
		"a negative window":    {"sample.window.jobs=-1", "--set: sample.window.jobs: must be at least 0, got -1"},
		"jobs and time":        {"sample.window={jobs: 3, span: 1h}", "--set: sample.window: is given both in jobs and in time"},
		"a quiet rank":         {"sample.window={jobs: 3, quiet: 1h}", "--set: sample.window.quiet: moves the ends of a window that is given in time"},
		"a negative span":      {"sample.window.span=-1h", "--set: sample.window.span: must be at least 0s, got -1h"},
		"blocks without unit":  {"sample.blocks.length=24", "--set: sample.blocks.length: expected a duration"},
		"too many nodes":       {"sample.load={by: nodes, factor: 1e-6}", "--set: sample.load.factor: leads to more than 100000 nodes"},
		"an error of the true": {"estimate.sigma=1", "--set: estimate.sigma: source declared has no error; write source: noisy"},
		"a negative error":     {"estimate={source: noisy, sigma: -1}", "--set: estimate.sigma: must be at least 0, got -1"},
		"an endless error":     {"estimate={source: noisy, sigma: .inf}", "--set: estimate.sigma: expected a finite number, got +Inf"},
		"another source":       {"estimate.source=truth", `--set: estimate.source: unknown value "truth"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(fakeCatalog(), "test.yaml", []byte(minimal), Options{Sets: []string{tc.set}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
	if diff := cmp.Diff([]string{"sample", "estimate"}, mustParse(t, minimal, Options{
		Sets: []string{"sample.load.factor=0.5", "estimate={source: noisy, sigma: 1}"},
	}).SeedUsers()); diff != "" {
		t.Errorf("what the seed changes (-want +got):\n%s", diff)
	}
}

// A cluster is as large as may be, and no larger.
func TestTheLargestCluster(t *testing.T) {
	for count, want := range map[int]string{maxNodes: "", maxNodes + 1: "too many nodes"} {
		_, err := Parse(fakeCatalog(), "test.yaml", []byte(minimal), Options{Sets: []string{fmt.Sprintf("cluster.nodes[0].count=%d", count)}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d nodes: error %v, want %q", count, err, want)
		}
	}
}
