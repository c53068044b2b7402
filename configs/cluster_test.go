package configs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/workload"
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
		"no error":             {"estimate.source=noisy", "--set: estimate.sigma: required with source noisy, but missing; for example 0.7"},
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
	for set, want := range map[string]string{
		"estimate={source: noisy, sigma: 0}":    "--set: estimate.sigma: an error of 0 is none: policies know the true work",
		"estimate={source: noisy, sigma: 0.5}":  "",
		"estimate={source: declared, sigma: 0}": "",
	} {
		told := ""
		if c := mustParse(t, minimal, Options{Sets: []string{set}}); len(c.Notes) > 0 {
			told = c.Notes.Err().Error()
		}
		if told != want {
			t.Errorf("%s: note %q, want %q", set, told, want)
		}
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

// The problem of one section hides none of another, and brings none with it.
func TestSectionsAreCheckedBesideEachOther(t *testing.T) {
	for name, tc := range map[string]struct {
		sets []string
		want []string
	}{
		"a cluster and a name": {[]string{"cluster.nodes[0].devices=none", "name=a/b"}, []string{"cluster.nodes[0].devices", `"a/b" is not a plain file name`}},
		"a workload and a round": {
			[]string{"workload.isolate=7", "round.interval=0s"}, []string{"workload.isolate", "no round would ever be held; give an interval, or set on_events: true"},
		},
		"an unknown key and a name": {[]string{"clusters.nodes=[]", "name=.a"}, []string{"clusters: unknown key", `".a" is not a plain file name`}},
		"a sample and an estimate":  {[]string{"sample.load.factor=x", "estimate.sigma=1"}, []string{"sample.load.factor", "estimate.sigma: source declared has no error"}},
		"an estimate and a sample":  {[]string{"estimate.sigma=x", "sample.load.factor=0"}, []string{"estimate.sigma", "sample.load.factor: must be above 0, got 0"}},
		"names of nodes": {
			[]string{"cluster.nodes=[{name: '', accelerator: '', devices: 1}]"}, []string{"cluster.nodes[0].name: must not be empty", "cluster.nodes[0].accelerator: must not be empty"},
		},
		"a pipeline and a name": {[]string{"pipeline.allocation.isolate=7", "name=-a"}, []string{"pipeline.allocation.isolate", `"-a" is not a plain file name`}},
		"nodes of a load twice": {
			[]string{"cluster.nodes=[{name: a-1, accelerator: t4, devices: 1}, {name: a, accelerator: t4, devices: 1}]", "sample.load={by: nodes, factor: 0.7}"}, []string{`there are two nodes "a-1"`},
		},
		"jobs from the first and a share": {[]string{"measure={last_job: 0, warm_up_ratio: 0.1}"}, []string{"measure: gives ranks and shares of the jobs; give one of them"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(fakeCatalog(), "test.yaml", []byte(minimal), Options{Sets: tc.sets})
			if err == nil {
				t.Fatal("it is taken")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tc.want) {
				t.Errorf("%d problems, want %d:\n%v", len(lines), len(tc.want), err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in\n%v", want, err)
				}
			}
		})
	}
}

func TestPlainFileName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "A_0.b-c": true, strings.Repeat("x", 200): true, strings.Repeat("x", 201): false, "": false, ".a": false, "-a": false, "a b": false, "a/b": false, "é": false, "_": true, "b/": false,
	} {
		if got := plainFileName(name); got != want {
			t.Errorf("%q is a plain file name: %v, want %v", name, got, want)
		}
	}
}

// A load by nodes counts where nodes are counted, leads to as many nodes as may be, and is noted where it becomes another one.
func TestSizesOfALoad(t *testing.T) {
	for name, tc := range map[string]struct {
		count int
		load  string
		notes int
		err   string
	}{
		"the most nodes":       {maxNodes / 2, "{by: nodes, factor: 0.5}", 0, ""},
		"one more":             {maxNodes/2 + 1, "{by: nodes, factor: 0.5}", 0, "leads to more than 100000 nodes"},
		"by thinning":          {maxNodes/2 + 1, "{by: thinning, factor: 0.5}", 0, ""},
		"nearly":               {150, "{by: nodes, factor: 1.005}", 0, ""},
		"further off":          {7, "{by: nodes, factor: 1.05}", 1, ""},
		"a large load, nearly": {1000, "{by: nodes, factor: 9.95}", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse(fakeCatalog(), "test.yaml", []byte(minimal), Options{Sets: []string{fmt.Sprintf("cluster.nodes[0].count=%d", tc.count), "sample.load=" + tc.load}})
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if err == nil && len(c.Notes) != tc.notes {
				t.Errorf("notes %v, want %d", c.Notes, tc.notes)
			}
		})
	}
	groups := []NodeGroup{{Name: "a", Count: 4}}
	for _, l := range []workload.Load{{By: workload.ByNodes}, {By: workload.ByThinning, Factor: 2}} {
		if got := sized(groups, l); got[0].Count != 4 {
			t.Errorf("a load of %+v leads to %d nodes, want 4", l, got[0].Count)
		}
	}
}
