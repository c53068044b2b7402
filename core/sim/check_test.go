package sim

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
	"github.com/quartet-sched/quartet/core/workload"
)

func TestConfigNamesEveryProblem(t *testing.T) {
	_, got := NewSimulator().Decode(map[string]any{
		"restart_overhead": "10s", "stall_after": "10s",
		"application_overhead": []any{
			map[string]any{"application": "bert", "overhead": "1s"},
			map[string]any{"application": "vgg", "overhead": "1m"},
			map[string]any{"application": "bert", "overhead": "2s"},
			map[string]any{"application": "", "overhead": "2s"},
		},
		"resize":        map[string]any{"overhead": "5s"},
		"tune_overhead": "10s",
		"failures":      map[string]any{"mtbf": "1h"},
		"publication":   map[string]any{"epoch_ends": "whole_seconds"},
	})
	want := core.Diagnostics{
		{Path: "failures.repair", Summary: "must be positive when failures.mtbf is set"},
		{Path: "stall_after", Summary: "must be longer than restart_overhead"},
		{Path: "tune_overhead", Summary: "must be shorter than stall_after"},
		{Path: "resize.overhead", Summary: "needs resize.in_place"},
		{Path: "publication.epoch_ends", Summary: "whole_seconds needs publication.progress: per_round"},
		{Path: "application_overhead[1].overhead", Summary: "must be shorter than stall_after"},
		{Path: "application_overhead[2].application", Summary: `application "bert" is listed twice`},
		{Path: "application_overhead[3].application", Summary: "must not be empty"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

// Each option is alright by itself, or with the one that it needs.
func TestConfigsThatContradictThemselves(t *testing.T) {
	const (
		repair      = "failures.repair: must be positive when failures.mtbf is set"
		resize      = "resize.overhead: needs resize.in_place"
		wholeEnds   = "publication.epoch_ends: whole_seconds needs publication.progress: per_round"
		completion  = "publication.completion: next_round needs publication.progress: exact"
		firstRound  = "publication.first_round: one_interval needs rounds on a clock, not publication.progress: back_to_back"
		application = "application_overhead[0].overhead: must be shorter than stall_after"
	)
	published := func(progress string, change func(*Publication)) Config {
		p := Publication{FirstRound: atStart, Progress: progress, EpochEnds: exact, Completion: exact}
		change(&p)
		return Config{Publication: p}
	}
	nothing := func(*Publication) {}
	whole := func(p *Publication) { p.EpochEnds = wholeSeconds }
	next := func(p *Publication) { p.Completion = nextRound }
	one := func(p *Publication) { p.FirstRound = oneInterval }
	for name, tc := range map[string]struct {
		config Config
		want   string
	}{
		"exact":                             {published(exact, nothing), ""},
		"rounds":                            {published(perRound, nothing), ""},
		"rounds back to back":               {published(backToBack, nothing), ""},
		"failures and repairs":              {Config{Failures: Failures{MTBF: 1, Repair: 1}}, ""},
		"failures alone":                    {Config{Failures: Failures{MTBF: 1}}, repair},
		"repairs alone":                     {Config{Failures: Failures{Repair: 1}}, ""},
		"resizing in place":                 {Config{Resize: Resize{InPlace: true, Overhead: 1}}, ""},
		"resizing in place for free":        {Config{Resize: Resize{InPlace: true}}, ""},
		"a cost of resizing alone":          {Config{Resize: Resize{Overhead: 1}}, resize},
		"whole seconds in rounds":           {published(perRound, whole), ""},
		"whole seconds in exact time":       {published(exact, whole), wholeEnds},
		"whole seconds back to back":        {published(backToBack, whole), wholeEnds},
		"ends at the next round":            {published(exact, next), ""},
		"ends at the next of rounds":        {published(perRound, next), completion},
		"ends at the next round, in a row":  {published(backToBack, next), completion},
		"one interval first":                {published(exact, one), ""},
		"one interval first, in rounds":     {published(perRound, one), ""},
		"one interval first, back to back":  {published(backToBack, one), firstRound},
		"pauses at changes, free starts":    {Config{FreeFirstStart: true, Publication: Publication{Overhead: everyChange}}, "free_first_start: needs publication.overhead: at_starts"},
		"pauses at rounds, free starts":     {Config{FreeFirstStart: true, Publication: Publication{Overhead: everyRound}}, "free_first_start: needs publication.overhead: at_starts"},
		"pauses at starts, free starts":     {Config{FreeFirstStart: true, Publication: Publication{Overhead: atStarts}}, ""},
		"pauses at rounds, jobs by rounds":  {Config{Publication: Publication{Overhead: everyRound, Progress: perRound, FirstRound: atStart}}, "publication.overhead: every_round needs publication.progress: exact"},
		"an owner's loss without owners":    {Config{CoLocation: CoLocation{Model: "hinge", OwnerLoss: 0.1}}, "co_location.owner_loss: needs co_location.model: guarantee"},
		"a spill without owners":            {Config{CoLocation: CoLocation{Model: "none", SpillLoss: 0.1}}, "co_location.spill_loss: needs co_location.model: guarantee"},
		"losses of a guarantee":             {Config{CoLocation: CoLocation{Model: "guarantee", OwnerLoss: 1, SpillLoss: 1}}, ""},
		"an application twice, by devices":  {Config{Cost: restart.Cost{ApplicationOverhead: []restart.Application{{Application: "a", Overhead: 0, Devices: 2}, {Application: "a", Overhead: 1, Devices: 4}}}}, ""},
		"an application twice for as many":  {Config{Cost: restart.Cost{ApplicationOverhead: []restart.Application{{Application: "a", Overhead: 0, Devices: 2}, {Application: "a", Overhead: 1, Devices: 2}}}}, `application_overhead[1].application: application "a" is listed twice for 2 devices`},
		"an application just below the end": {Config{Cost: restart.Cost{ApplicationOverhead: []restart.Application{{Application: "a", Overhead: time.Hour - 1}}}}, ""},
		"an application as long as a stall": {Config{Cost: restart.Cost{ApplicationOverhead: []restart.Application{{Application: "a", Overhead: time.Hour}}}}, application},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.StallAfter = time.Hour
			got := ""
			if err := tc.config.Validate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	const rounds, hint = " needs rounds on an interval, and none on events", "set round.interval, and round.on_events to false"
	published := Publication{FirstRound: oneInterval, Progress: perRound, Completion: nextRound}
	refused := core.Diagnostics{
		{Path: "publication.first_round", Summary: "one_interval" + rounds, Hint: hint},
		{Path: "publication.progress", Summary: "per_round" + rounds, Hint: hint},
		{Path: "publication.completion", Summary: "next_round" + rounds, Hint: hint},
	}
	backToBackRounds := Config{Publication: Publication{Progress: backToBack}}
	event := func(node, to string) []NodeEvent { return []NodeEvent{{Node: node, At: time.Second, To: to}} }
	for name, tc := range map[string]struct {
		config Config
		nodes  int
		rounds core.RoundOptions
		want   core.Diagnostics
	}{
		"published rounds on an interval": {Config{Publication: published}, 1, core.RoundOptions{IntervalSeconds: 60}, nil},
		"published rounds without one":    {Config{Publication: published}, 1, core.RoundOptions{OnEvents: true}, refused},
		"published rounds on nothing":     {Config{Publication: published}, 1, core.RoundOptions{}, refused},
		"an event on a node of many":      {Config{NodeEvents: event("rack-seven", "down")}, 16, core.RoundOptions{}, core.Diagnostics{{Path: "node_events[0].node", Summary: `unknown node "rack-seven"`, Hint: "valid nodes: n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11, n12, n13, n14, n15"}}},
		"published rounds on events too":  {Config{Publication: published}, 1, core.RoundOptions{IntervalSeconds: 60, OnEvents: true}, refused},
		"rounds back to back":             {backToBackRounds, 1, core.RoundOptions{IntervalSeconds: 60}, nil},
		"rounds back to back on events":   {backToBackRounds, 1, core.RoundOptions{IntervalSeconds: 60, OnEvents: true}, core.Diagnostics{{Path: "publication.progress", Summary: "back_to_back" + rounds, Hint: hint}}},
		"exact rounds on anything":        {Config{}, 1, core.RoundOptions{OnEvents: true}, nil},
		"an event on a node":              {Config{NodeEvents: event("n0", "down")}, 1, core.RoundOptions{}, nil},
		"an event on a mistyped node":     {Config{NodeEvents: event("no", "down")}, 2, core.RoundOptions{}, core.Diagnostics{{Path: "node_events[0].node", Summary: `unknown node "no"`, Hint: `did you mean "n0"? valid nodes: n0, n1`}}},
		"the same in a large cluster":     {Config{NodeEvents: event("n1000", "down")}, 120, core.RoundOptions{}, core.Diagnostics{{Path: "node_events[0].node", Summary: `unknown node "n1000"`, Hint: `did you mean "n100"?`}}},
		"one that is far from any":        {Config{NodeEvents: event("rack-seven", "down")}, 120, core.RoundOptions{}, core.Diagnostics{{Path: "node_events[0].node", Summary: `unknown node "rack-seven"`, Hint: `the cluster has 120 nodes, from "n0" to "n119"`}}},
		"a state that no node has":        {Config{NodeEvents: event("n0", "dwon")}, 1, core.RoundOptions{}, core.Diagnostics{{Path: "node_events[0].to", Summary: `unknown state "dwon"`, Hint: `did you mean "down"? valid states: ready, draining, down, gone`}}},
		"neither the node nor the state":  {Config{NodeEvents: event("a", "b")}, 1, core.RoundOptions{}, core.Diagnostics{{Path: "node_events[0].node", Summary: `unknown node "a"`, Hint: "valid nodes: n0"}, {Path: "node_events[0].to", Summary: `unknown state "b"`, Hint: "valid states: ready, draining, down, gone"}}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &core.Cluster{}
			for i := range tc.nodes {
				cluster.Nodes = append(cluster.Nodes, core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("n%d", i), Devices: 1})
			}
			o := opener{tc.config, core.Settings{Rand: core.NewRand(1, "sim")}}
			if diff := cmp.Diff(tc.want, o.Check(cluster, tc.rounds)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			_, err := o.Open(context.Background(), cluster, &workload.Workload{})
			if refuses := len(tc.config.checkNodes(cluster)) > 0; (err != nil) != refuses {
				t.Errorf("opens with error %v, want one: %v", err, refuses)
			}
		})
	}
}

// A job of unknown length would let virtual time pass without end.
func TestOpenRefusesEndlessJobs(t *testing.T) {
	w := &workload.Workload{Jobs: []workload.Job{
		{Spec: core.JobSpec{Name: "known"}, Model: workload.NewDurationModel(5, 1)},
		{Spec: core.JobSpec{Name: "open"}, Model: workload.NewDurationModel(math.Inf(1), 1), At: core.Position{File: "jobs.yaml", Line: 4}},
	}}
	_, err := (&opener{}).Open(t.Context(), &core.Cluster{}, w)
	want := `jobs.yaml:4: job "open" does not say how long it takes, and would never end in a simulation; give it "seconds"`
	if fmt.Sprint(err) != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Whoever opens a simulator without asking Check is told by the first round.
func TestNextRefusesRoundsThatDoNotSuit(t *testing.T) {
	s := open(t, Config{Publication: Publication{Completion: nextRound}}, 1, arrival{0, phased{10}})
	if _, err := s.Next(context.Background(), core.Wake{OnEvents: true}); err == nil {
		t.Error("no error, want one")
	}
}
