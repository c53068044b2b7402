package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
	"github.com/quartet-sched/quartet/core/workload"
)

func joining(at, provisioning time.Duration, name, accelerator string) JoiningNodes {
	return JoiningNodes{At: at, Name: name, Accelerator: accelerator, Devices: 4, Provisioning: provisioning}
}

func move(id core.JobID, seats ...core.Seat) core.Change {
	return core.Change{Action: core.Move, Job: id, Seats: seats}
}

func TestNodesAndStartsThatTakeTime(t *testing.T) {
	onEvents := core.Wake{BySeconds: math.Inf(1), OnEvents: true}
	for name, tc := range map[string]scenario{
		"a node joins, is provisioned, runs a job and goes": {
			Config{
				JoiningNodes: []JoiningNodes{joining(10*time.Second, 20*time.Second, "new", "h100")},
				NodeEvents:   []NodeEvent{{Node: "new", At: 50 * time.Second, To: "gone"}},
			},
			1,
			[]arrival{{0, phased{100}}},
			[]step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}},
				{wake: onEvents, now: 10, tells: []string{"node_added 0@10"}},
				{wake: onEvents, now: 30, tells: []string{"node_changed 0@30"}, apply: []core.Change{start(0, seats(1, 1))}},
				{wake: onEvents, now: 50, tells: []string{"job_progressed 0@30", "node_removed 0@50", "job_interrupted 0@50"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: onEvents, now: 130, tells: []string{"job_progressed 0@50", "job_finished 0@130"}},
				{wake: onEvents, end: true},
			},
		},
		"a start takes time, then the overhead": {
			Config{StartDelay: 5 * time.Second, Cost: restart.Cost{RestartOverhead: 10 * time.Second}},
			1,
			[]arrival{{0, phased{100}}},
			[]step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: onEvents, now: 5, tells: []string{"job_progressed 0@0", "job_starting 0@0", "job_started 0@5"}},
				{wake: onEvents, now: 115, tells: []string{"job_finished 0@115"}},
				{wake: onEvents, end: true},
			},
		},
		"one that is stopped before never started": {
			Config{StartDelay: 5 * time.Second},
			1,
			[]arrival{{0, phased{100}}},
			[]step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(2, 1), now: 2, tells: []string{"job_progressed 0@0", "job_starting 0@0"}, apply: []core.Change{stop(0)}},
				{wake: by(20, 1), now: 20, tells: []string{"job_progressed 0@2"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: onEvents, now: 25, tells: []string{"job_progressed 0@20", "job_starting 0@20", "job_started 0@25"}},
				{wake: onEvents, now: 125, tells: []string{"job_finished 0@125"}},
			},
		},
		"devices of a stopped job are free later": {
			Config{ReleaseDelay: 7 * time.Second},
			1,
			[]arrival{{0, phased{100}}, {0, phased{50}}},
			[]step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0", "job_submitted 1@0"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: by(10, 1), now: 10, tells: []string{"job_progressed 0@0"}, apply: []core.Change{stop(0), start(1, seats(0, 1))}},
				{wake: onEvents, now: 17, tells: []string{"job_progressed 0@10", "job_progressed 1@10", "job_starting 1@10", "devices_released 0@17", "job_started 1@17"}},
				{wake: onEvents, now: 67, tells: []string{"job_finished 1@67"}, apply: []core.Change{start(0, seats(0, 1))}},
				{wake: onEvents, now: 157, tells: []string{"job_progressed 0@67", "job_finished 0@157"}},
			},
		},
		"two jobs that change places wait for each other": {
			Config{ReleaseDelay: 7 * time.Second, StartDelay: 3 * time.Second},
			1,
			[]arrival{{0, phased{100}}, {0, phased{100}}},
			[]step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0", "job_submitted 1@0"}, apply: []core.Change{start(0, seats(0, 1)), start(1, seats(0, 2))}},
				{wake: onEvents, now: 3, tells: []string{"job_progressed 0@0", "job_starting 0@0", "job_progressed 1@0", "job_starting 1@0", "job_started 0@3", "job_started 1@3"}, apply: []core.Change{move(0, seats(0, 2)), move(1, seats(0, 1))}},
				{wake: onEvents, now: 10, tells: []string{"job_progressed 0@3", "job_starting 0@3", "job_progressed 1@3", "job_starting 1@3", "devices_released 0@10", "devices_released 1@10"}},
				{wake: onEvents, now: 13, tells: []string{"job_started 0@13", "job_started 1@13"}},
				{wake: onEvents, now: 113, tells: []string{"job_finished 0@113", "job_finished 1@113"}},
			},
		},
		"a resize in place waits for new devices only": {
			Config{ReleaseDelay: 7 * time.Second, StartDelay: 3 * time.Second, Resize: Resize{InPlace: true}},
			1,
			[]arrival{{0, phased{100}}},
			[]step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 3))}},
				{wake: onEvents, now: 3, tells: []string{"job_progressed 0@0", "job_starting 0@0", "job_started 0@3"}, apply: []core.Change{move(0, seats(0, 1))}},
				{wake: by(8, 1), now: 8, tells: []string{"job_progressed 0@3"}, apply: []core.Change{move(0, seats(0, 3))}},
				{wake: onEvents, now: 10, tells: []string{"job_progressed 0@8", "job_starting 0@8", "devices_released 0@10"}},
				{wake: onEvents, now: 13, tells: []string{"job_started 0@13"}},
				{wake: onEvents, now: 60.5, tells: []string{"job_finished 0@60.5"}}, // 5 of 100 done on one, the rest on two
			},
		},
		"a node that fails lets go at once": {
			Config{ReleaseDelay: 7 * time.Second, NodeEvents: []NodeEvent{{Node: "n0", At: 10 * time.Second, To: "down"}, {Node: "n0", At: 12 * time.Second, To: "ready"}}},
			2,
			[]arrival{{0, phased{100}}},
			[]step{
				{wake: onEvents, now: 0, tells: []string{"job_submitted 0@0"}, apply: []core.Change{start(0, seats(0, 1), seats(1, 1))}},
				{wake: onEvents, now: 10, tells: []string{"job_progressed 0@0", "node_changed 0@10", "job_interrupted 0@10"}},
				{wake: onEvents, now: 12, tells: []string{"node_changed 0@12"}, apply: []core.Change{start(0, seats(0, 1), seats(1, 2))}},
				{wake: onEvents, now: 17, tells: []string{"job_progressed 0@12", "devices_released 0@17"}},
				{wake: onEvents, now: 52, tells: []string{"job_finished 0@52"}},
			},
		},
	} {
		t.Run(name, tc.run)
	}
}

// outlasting asks again, as a pipeline does that outlasts trouble, and counts in vain how often.
type outlasting struct {
	*Simulator
	inVain int
}

func (o *outlasting) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	for {
		seen, err := o.Simulator.Next(ctx, w)
		if _, unavailable := errors.AsType[*core.Unavailable](err); !unavailable {
			return seen, err
		}
		o.inVain++
	}
}

func (o *outlasting) Apply(ctx context.Context, changes []core.Change) error {
	for {
		err := o.Simulator.Apply(ctx, changes)
		if _, unavailable := errors.AsType[*core.Unavailable](err); !unavailable {
			return err
		}
		o.inVain++
	}
}

func TestOutages(t *testing.T) {
	for name, tc := range map[string]struct {
		outages []Outage
		nodes   []NodeEvent
		stopAt  float64
		want    string
		inVain  int
	}{
		"none": {nil, nil, math.Inf(1), "0 job_submitted@0; 100 job_progressed@0 job_finished@100", 0},
		"the end of the job is told late": {
			[]Outage{{90 * time.Second, 30 * time.Second}}, nil, math.Inf(1), "0 job_submitted@0; 120 job_progressed@0 job_finished@100", 1,
		},
		"one in which nothing happens": {
			[]Outage{{20 * time.Second, 30 * time.Second}}, nil, math.Inf(1), "0 job_submitted@0; 100 job_progressed@0 job_finished@100", 1,
		},
		"a round of its very moment comes into effect at its end": {
			[]Outage{{0, 30 * time.Second}}, nil, math.Inf(1), "0 job_submitted@0; 130 job_progressed@30 job_finished@130", 1,
		},
		"a job whose node failed before it could be started": {
			[]Outage{{0, 30 * time.Second}},
			[]NodeEvent{{Node: "n0", At: 10 * time.Second, To: "down"}},
			math.Inf(1),
			"0 job_submitted@0; 30 node_changed@10 job_progressed@30 job_interrupted@30", 1,
		},
		"a job that was faster than its stop": {
			[]Outage{{60 * time.Second, 60 * time.Second}},
			[]NodeEvent{{Node: "n1", At: 60 * time.Second, To: "down"}},
			60,
			"0 job_submitted@0; 60 job_progressed@0 node_changed@60; 120 job_finished@100", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &outlasting{Simulator: open(t, Config{Outages: tc.outages, NodeEvents: tc.nodes}, 2, arrival{0, phased{100}})}
			var rounds []string
			for round := 1; ; round++ {
				seen, err := b.Next(t.Context(), core.Wake{BySeconds: math.Inf(1), OnEvents: true})
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				text := fmt.Sprint(seen.NowSeconds)
				for _, e := range seen.Events {
					text += fmt.Sprintf(" %v@%v", e.Kind, e.AtSeconds)
				}
				rounds = append(rounds, text)
				var changes []core.Change
				switch {
				case round == 1:
					changes = []core.Change{start(0, seats(0, 1))}
				case seen.NowSeconds == tc.stopAt:
					changes = []core.Change{stop(0)}
				}
				if err := b.Apply(t.Context(), changes); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(rounds, "; "); got != tc.want || b.inVain != tc.inVain {
				t.Errorf("%q, asked %d times in vain, want %q and %d", got, b.inVain, tc.want, tc.inVain)
			}
		})
	}
}

func TestGrowthThatContradictsItself(t *testing.T) {
	good := joining(time.Second, 0, "new", "t4")
	change := func(f func(*JoiningNodes)) []JoiningNodes {
		g := good
		f(&g)
		return []JoiningNodes{g}
	}
	rounds := Publication{Progress: perRound}
	const exactly = ": needs publication.progress: exact"
	for name, tc := range map[string]struct {
		config Config
		want   string
	}{
		"nodes":                    {Config{JoiningNodes: []JoiningNodes{good}}, ""},
		"nodes in rounds":          {Config{JoiningNodes: []JoiningNodes{good}, Publication: rounds}, ""},
		"without a name":           {Config{JoiningNodes: change(func(g *JoiningNodes) { g.Name = "" })}, "joining_nodes[0].name: must not be empty"},
		"without a type":           {Config{JoiningNodes: change(func(g *JoiningNodes) { g.Accelerator = "" })}, "joining_nodes[0].accelerator: must not be empty"},
		"without devices":          {Config{JoiningNodes: change(func(g *JoiningNodes) { g.Devices = 0 })}, "joining_nodes[0].devices: must be between 1 and 64, got 0"},
		"all problems at once":     {Config{JoiningNodes: []JoiningNodes{{Devices: 65}}}, "joining_nodes[0].name: must not be empty\njoining_nodes[0].accelerator: must not be empty\njoining_nodes[0].devices: must be between 1 and 64, got 65"},
		"an event of a node gone":  {Config{NodeEvents: []NodeEvent{{"n", 2, "down"}, {"n", 1, "gone"}, {"m", 3, "down"}}}, `node_events[0].at: node "n" is gone since 1ns`},
		"gone twice":               {Config{NodeEvents: []NodeEvent{{"n", 1, "gone"}, {"n", 1, "gone"}}}, `node_events[1].at: node "n" is gone since 1ns`},
		"an event before":          {Config{NodeEvents: []NodeEvent{{"n", 1, "down"}, {"n", 1, "gone"}}}, ""},
		"a start in rounds":        {Config{StartDelay: 1, Publication: rounds}, "start_delay" + exactly},
		"releases in rounds":       {Config{ReleaseDelay: 1, Publication: rounds}, "release_delay" + exactly},
		"outages in rounds":        {Config{Outages: []Outage{{0, 1}}, Publication: rounds}, "outages" + exactly},
		"a start of free moves":    {Config{StartDelaySpread: 1, Publication: Publication{Moves: freeAlike}}, "start_delay_spread: needs publication.moves: restart, for moves that are free begin at once"},
		"outages with free moves":  {Config{Outages: []Outage{{0, 1}}, Publication: Publication{Moves: freeAlike}}, ""},
		"as long as a stall":       {Config{StartDelay: 20 * time.Minute, StartDelaySpread: 10 * time.Minute, ReleaseDelay: 20 * time.Minute, Cost: restart.Cost{RestartOverhead: 10 * time.Minute}}, "stall_after: must be longer than start_delay, start_delay_spread, release_delay and the restart overhead together"},
		"just shorter":             {Config{StartDelay: 50*time.Minute - 1, Cost: restart.Cost{RestartOverhead: 10 * time.Minute}}, ""},
		"an outage of no length":   {Config{Outages: []Outage{{1, 0}}}, "outages[0].for: must be positive"},
		"outages that overlap":     {Config{Outages: []Outage{{5, 5}, {2, 4}}}, "outages[1].at: must not lie within another outage"},
		"outages that follow":      {Config{Outages: []Outage{{5, 5}, {2, 3}}}, ""},
		"an application too long":  {Config{StartDelay: time.Minute, Cost: restart.Cost{ApplicationOverhead: []restart.Application{{Application: "a", Overhead: time.Hour - time.Minute}}}}, "stall_after: must be longer than start_delay, start_delay_spread, release_delay and the restart overhead together"},
		"no delay, a long restart": {Config{Cost: restart.Cost{RestartOverhead: time.Hour - 1}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.config.StallAfter = time.Hour
			if tc.config.Publication.Progress == "" {
				tc.config.Publication.Progress = exact
			}
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

func TestJoiningNodesThatDoNotSuitTheCluster(t *testing.T) {
	event := func(node string, at time.Duration) []NodeEvent { return []NodeEvent{{node, at, "down"}} }
	two := joining(10*time.Second, 5*time.Second, "new", "t4")
	two.Count = 2
	for name, tc := range map[string]struct {
		config Config
		want   core.Diagnostics
	}{
		"an event when one is ready":   {Config{JoiningNodes: []JoiningNodes{two}, NodeEvents: event("new-1", 15*time.Second)}, nil},
		"an event before it is ready":  {Config{JoiningNodes: []JoiningNodes{two}, NodeEvents: event("new-1", 14*time.Second)}, core.Diagnostics{{Path: "node_events[0].at", Summary: `node "new-1" is not ready before 15s`, Hint: "it joins then, or is provisioned until then"}}},
		"an event on none of them":     {Config{JoiningNodes: []JoiningNodes{two}, NodeEvents: event("new", 15*time.Second)}, core.Diagnostics{{Path: "node_events[0].node", Summary: `unknown node "new"`, Hint: `did you mean "new-0"? valid nodes: n0, n1, n2, new-0, new-1`}}},
		"a name of the cluster":        {Config{JoiningNodes: []JoiningNodes{joining(0, 0, "n1", "t4")}}, core.Diagnostics{{Path: "joining_nodes[0].name", Summary: `there is a node "n1" already`, Hint: "a name is used once, also after its node has gone"}}},
		"a name of others that joined": {Config{JoiningNodes: []JoiningNodes{two, joining(0, 0, "new-1", "t4")}}, core.Diagnostics{{Path: "joining_nodes[1].name", Summary: `there is a node "new-1" already`, Hint: "a name is used once, also after its node has gone"}}},
	} {
		t.Run(name, func(t *testing.T) {
			o := opener{tc.config, core.Settings{Rand: core.NewRand(1, "sim")}}
			if diff := cmp.Diff(tc.want, o.Check(threeNodes(), core.RoundOptions{})); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// Nodes get their ids in the order in which they join, and jobs are held back until the last has joined.
func TestGrowth(t *testing.T) {
	late, early := joining(20*time.Second, 0, "late", "h100"), joining(10*time.Second, 0, "early", "t4")
	early.Count = 2
	c := Config{JoiningNodes: []JoiningNodes{late, early}, StallAfter: time.Hour}
	o, cluster := opener{c, core.Settings{Rand: core.NewRand(1, "sim")}}, threeNodes()
	jobs := &workload.Workload{Jobs: []workload.Job{{Spec: core.JobSpec{Name: "j"}, Model: phased{1}}}}
	b, err := o.Open(t.Context(), cluster, jobs)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 3 {
		seen, err := b.Next(t.Context(), core.Wake{BySeconds: math.Inf(1), OnEvents: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range seen.Events {
			if e.Kind == core.NodeAdded {
				got = append(got, fmt.Sprintf("%v: %d %s %s %v", e.AtSeconds, e.Node, e.Added.Name, e.Added.Accelerator, cluster.MayGrow))
			}
		}
	}
	want := []string{"10: 3 early-0 t4 true", "10: 4 early-1 t4 true", "20: 5 late h100 false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if len(cluster.Nodes) != 3 {
		t.Errorf("the simulator added nodes to the cluster of the pipeline, which does so itself")
	}
	grown := o.Grown(cluster)
	if len(grown.Nodes) != 6 || grown.Devices() != 24 || !slices.Equal(grown.Accelerators, []string{"t4", "h100"}) {
		t.Errorf("the cluster grows to %+v", grown)
	}
}

// No device is held by two jobs, whatever is changed when: the time between the moment from which a job holds its devices and
// that at which it lets go of them is followed from outside.
func TestNoDeviceIsHeldTwice(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := Config{
			ReleaseDelay: time.Duration(rapid.IntRange(0, 20).Draw(rt, "release")) * time.Second,
			StartDelay:   time.Duration(rapid.IntRange(0, 9).Draw(rt, "start")) * time.Second,
			Resize:       Resize{InPlace: rapid.Bool().Draw(rt, "in place")},
			NodeEvents: []NodeEvent{
				{Node: "n0", At: time.Duration(rapid.IntRange(1, 99).Draw(rt, "down")) * time.Second, To: "down"}, {Node: "n0", At: 100 * time.Second, To: "ready"},
			},
		}
		s := open(t, c, 2, arrival{0, phased{300}}, arrival{0, phased{300}}, arrival{0, phased{300}})
		for round := range 30 {
			seen, err := s.Next(t.Context(), by(float64(round)*7, 7))
			if err != nil {
				return // all have ended
			}
			checkHeld(rt, s, seen.NowSeconds)
			if err := s.Apply(t.Context(), drawMoves(rt, s, round+1)); err != nil {
				rt.Fatal(err)
			}
			checkHeld(rt, s, seen.NowSeconds)
			for _, j := range s.starts.starting {
				checkHeld(rt, s, j.holdsFrom)
			}
		}
	})
}

// drawMoves stops, starts and moves jobs on devices that the plan leaves free.
func drawMoves(t *rapid.T, s *Simulator, round int) (changes []core.Change) {
	free := map[core.NodeID]core.DeviceSet{}
	for n := range s.devices.cluster.Nodes {
		if !s.lost(core.NodeID(n)) {
			free[core.NodeID(n)] = 15
		}
	}
	var starts []core.Change
	for _, j := range s.jobs.byID {
		if j == nil {
			continue
		}
		kind := rapid.IntRange(0, 3).Draw(t, "change")
		if kind == 0 && j.seats != nil || kind == 3 {
			for _, seat := range j.seats {
				if seat.Devices&^free[seat.Node] != 0 {
					kind = 0 // another one got them
				}
			}
			if kind == 3 {
				for _, seat := range j.seats {
					free[seat.Node] &^= seat.Devices
				}
				continue
			}
		}
		var given []core.Seat
		for n := range s.devices.cluster.Nodes {
			id := core.NodeID(n)
			if mask := free[id] & core.DeviceSet(rapid.IntRange(0, 15).Draw(t, "devices")); mask != 0 {
				given = append(given, seats(id, mask))
				free[id] &^= mask
			}
		}
		switch {
		case (kind == 0 || len(given) == 0) && j.seats != nil:
			for _, seat := range given {
				free[seat.Node] |= seat.Devices
			}
			changes = append(changes, core.Change{Round: round, Action: core.Stop, Job: j.Spec.ID})
		case len(given) > 0:
			action := core.Start
			if j.seats != nil {
				action = core.Move
			}
			starts = append(starts, core.Change{Round: round, Action: action, Job: j.Spec.ID, Seats: given})
		}
	}
	// Those that stay where they are come first in the plan of a real round; here a job keeps its devices only if nobody took them.
	return append(changes, starts...)
}

func checkHeld(t *rapid.T, s *Simulator, at float64) {
	t.Helper()
	held := map[core.NodeID]core.DeviceSet{}
	hold := func(seats []core.Seat) {
		for _, seat := range seats {
			if held[seat.Node]&seat.Devices != 0 {
				t.Fatalf("at %v s, devices %v of node %d are held twice", at, held[seat.Node]&seat.Devices, seat.Node)
			}
			held[seat.Node] |= seat.Devices
		}
	}
	for _, j := range s.jobs.running {
		hold(j.held(at))
	}
	for _, l := range s.starts.leaving {
		if l.until > at {
			hold(l.seats)
		}
	}
}

// Nodes that join get ids in the order of their times, those of one time in the order of the config, which stays as it is.
func TestJoiningNodesAreOrderedByTime(t *testing.T) {
	groups := []JoiningNodes{
		{At: 20 * time.Second, Name: "late", Provisioning: 5 * time.Second}, {At: 10 * time.Second, Name: "early", Count: 2}, {At: 10 * time.Second, Name: "second"},
	}
	kept := slices.Clone(groups)
	e, ids := nodeEvents{planned: make([]core.Health, 1), failed: make([]bool, 1)}, map[string]core.NodeID{}
	ready := e.join(groups, ids)
	if diff := cmp.Diff(map[string]core.NodeID{"early-0": 1, "early-1": 2, "second": 3, "late": 4}, ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(kept, groups); diff != "" {
		t.Errorf("the groups of the config changed (-want +got):\n%s", diff)
	}
	moments := make([]float64, len(ready))
	for i := range ready {
		moments[i] = ready[i].at
	}
	if diff := cmp.Diff([]float64{10, 10, 10, 25}, moments); diff != "" {
		t.Errorf("ready at (-want +got):\n%s", diff)
	}
}
