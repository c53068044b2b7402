package engine_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// crowded comes in a burst for which first come, first served is a bad rule.
func crowded(method string) quartet.Spec {
	s := doortest.Small()
	s.Cluster.Nodes = []quartet.NodeGroup{{Name: "n", Count: 2, Accelerator: "t4", Devices: 4}}
	s.Workload.Config = map[string]any{"jobs": 120, "span": "8h", "replicas": "philly", "durations": "pollux", "arrivals": "bursty", "burst_every": "4h", "burst_length": "30m", "burst_factor": 6.0}
	s.Round.OnEvents = true
	s.Backend.Config = map[string]any{"restart_overhead": "30s"}
	s.Synthesizer.Method, s.Synthesizer.Own, s.Synthesizer.Horizon = method, "fifo", 4*time.Hour
	s.Synthesizer.Candidates = []configs.Candidate{
		{Name: "srtf", Pipeline: map[string]any{"allocation": map[string]any{"type": "srtf"}}},
		{Name: "gated", Pipeline: map[string]any{
			"admission": []any{map[string]any{"type": "load_threshold", "config": map[string]any{"factor": 1.2}}}, "allocation": map[string]any{"type": "las"},
		}},
	}
	return s
}

func TestARunChooses(t *testing.T) {
	alone := crowded("twin")
	alone.Synthesizer = configs.DefaultSynthesizer()
	without := doortest.Simulate(t, doortest.Compose(t, quartet.Builtins(), alone))
	if without.Summary.Synthesizer != nil || bytes.Contains(without.Text, []byte("synthesizer")) {
		t.Error("a run with one composition tells of others")
	}
	for method, gains := range map[string]float64{"twin": 0.7, "bandit": 1} {
		t.Run(method, func(t *testing.T) {
			results := make([]*quartet.Result, 2)
			for i := range results {
				c := doortest.Compose(t, quartet.Builtins(), crowded(method))
				c.Keep = true
				results[i] = doortest.Simulate(t, c)
			}
			r := results[0]
			if diff := cmp.Diff(string(r.Text), string(results[1].Text)); diff != "" {
				t.Errorf("summaries of a repeated run differ:\n%s", diff)
			}
			if diff := cmp.Diff(r.Files, results[1].Files); diff != "" {
				t.Errorf("files of a repeated run differ:\n%s", diff)
			}
			m := r.Summary.Synthesizer
			if m == nil || m.Method != method || m.Looks == 0 || m.Switches == 0 || m.Switches != len(m.Log) {
				t.Fatalf("the summary tells %+v", m)
			}
			total := 0.0
			for _, in := range m.InForce {
				total += float64(in.Seconds)
			}
			if diff := total - r.EndSeconds; diff > 1e-6 || diff < -1e-6 {
				t.Errorf("compositions decided for %v s of %v s", total, r.EndSeconds)
			}
			if ratio := float64(r.Summary.JCTSeconds.Mean / without.Summary.JCTSeconds.Mean); ratio > gains {
				t.Errorf("the mean JCT is %.2f times that of the first candidate alone, want %v at most; %+v", ratio, gains, m.Log)
			}
			checkSwitches(t, m, r.Summary.Earlier)
		})
	}
}

// checkSwitches holds what is told of switches against what is told of components.
func checkSwitches(t *testing.T, m *metrics.Synthesizer, earlier []metrics.EarlierComponents) {
	t.Helper()
	allocations := map[string]string{"fifo": "allocation/fifo", "srtf": "allocation/srtf", "gated": "allocation/las"}
	if len(earlier) != len(m.Log) {
		t.Fatalf("%d switches, and %d components decided earlier", len(m.Log), len(earlier))
	}
	for i, l := range m.Log {
		if earlier[i].Allocation != allocations[l.From] || earlier[i].UntilRound != l.Round-1 || !strings.Contains(l.Why, `"`) {
			t.Errorf("switch %d is %+v, and decided until then: %+v", i, l, earlier[i])
		}
	}
}

// A manifest holds the config with all candidates, and no config of one that took over: a run is repeated from it.
func TestARunThatChoseIsRepeated(t *testing.T) {
	c := doortest.Compose(t, quartet.Builtins(), crowded("twin"))
	c.Keep, c.Dir = true, t.TempDir()
	r := doortest.Simulate(t, c)
	at := slices.IndexFunc(r.Files, func(f quartet.File) bool { return f.File == "decisions.jsonl" })
	resolved, err := c.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	again, err := quartet.Parse(quartet.Builtins(), "manifest", string(resolved), quartet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	again.Keep = true
	second := doortest.Simulate(t, again)
	if diff := cmp.Diff(string(r.Files[at].Content), string(second.Files[at].Content)); diff != "" {
		t.Errorf("decisions differ:\n%s", diff)
	}
}

// Forecasts and what-ifs of a run that chose begin with the composition in force, and say that later switches are not foreseen.
func TestATwinOfARunThatChose(t *testing.T) {
	c := doortest.Compose(t, quartet.Builtins(), crowded("twin"))
	m := doortest.Simulate(t, c).Summary.Synthesizer
	if len(m.Log) == 0 {
		t.Fatal("the run does not switch")
	}
	first, at := m.Log[0], time.Duration(float64(m.Log[0].AtSeconds)+1)*time.Second
	for name, tc := range map[string]struct {
		at   time.Duration
		want string
	}{
		"before the first switch": {time.Duration(float64(first.AtSeconds)/2) * time.Second, first.From}, "after it": {at, first.To},
	} {
		t.Run(name, func(t *testing.T) {
			told, err := doortest.Compose(t, quartet.Builtins(), crowded("twin")).TwinAt(t.Context(), tc.at, quartet.Forecasting{})
			if err != nil {
				t.Fatal(err)
			}
			stages, err := told.Policies().NewInstances()
			if err != nil {
				t.Fatal(err)
			}
			allocations := map[string]string{"fifo": "allocation/fifo", "srtf": "allocation/srtf", "gated": "allocation/las"}
			if got := stages.Allocation.ID; got != allocations[tc.want] {
				t.Errorf("decides by %s, want %s", got, allocations[tc.want])
			}
			f, err := told.Forecast(t.Context(), 2)
			if err != nil {
				t.Fatal(err)
			}
			other := doortest.Compose(t, quartet.Builtins(), crowded("bandit"))
			w, err := told.WhatIf(t.Context(), &quartet.Change{Policy: other.Config, Horizon: time.Hour}, 2)
			if err != nil {
				t.Fatal(err)
			}
			note := "\"" + tc.want + "\" is taken to decide from now on"
			for _, notes := range [][]string{f.Notes, w.Notes} {
				if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, note) }) {
					t.Errorf("notes are %q, want one that begins with %s", notes, note)
				}
			}
			if !slices.ContainsFunc(w.Notes, func(n string) bool { return strings.Contains(n, "has a synthesizer") }) {
				t.Errorf("notes are %q, want one of the candidates that are left out", w.Notes)
			}
			if text, err := told.WithPolicies(c.Alternatives[1].Config).Resolved(); err != nil || bytes.Contains(text, []byte("synthesizer")) {
				t.Errorf("error %v; with the policies of a candidate, the config is\n%s", err, text)
			}
		})
	}
}
